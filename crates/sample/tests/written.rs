//! Recordings that no machine here makes: loads with HITM, IBS and latencies in three parts. They are written here, and
//! `perf script` and `perf c2c report` say what is in them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};

use memlode_sample::attributes::{EventAttributes, flag};
use memlode_sample::data_source::DataLevel;
use memlode_sample::perf_data::{Imported, import};
use memlode_sample::records::{RecordLayout, SampleRecord, SampleWeight, field};
use memlode_sample::{SampleReport, SampledSource, name};

mod dump;
mod writer;

use dump::{assert_agrees, perf, script};
use writer::{Moment, Writer};

/// The process, and where its data and its instructions are.
const PID: u32 = 500;
const DATA: u64 = 0x7f00_0000_0000;
const CODE: u64 = 0x40_0000;

/// Numbers that look like chance, and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Words of `union perf_mem_data_src`: operation, levels as bits and as a number, the answers of other caches, lock,
/// translation, and why it waited.
struct Source {
    operation: u64,
    level: u64,
    number: u64,
    snoop: u64,
    lock: u64,
    translation: u64,
    blocked: u64,
}

const LOAD: u64 = 2;
const STORE: u64 = 4;
const HIT: u64 = 2;
const MISS: u64 = 4;
const L1: u64 = 1 << 3;
const L3: u64 = 1 << 6;
const HITM: u64 = 16;

impl Source {
    /// A word of Intel's processors, as kernels before Linux 4.14 make it, without the number, or as later ones do.
    /// Another node's memory and caches are bits alone: where the word has the node, too, `perf c2c` of Linux 6.1 counts
    /// such loads twice.
    fn intel(chance: &mut Chance, operation: u64) -> Source {
        let (level, number, snoop) = match operation {
            STORE => chance.of(&[(L1 | HIT, 1, 0), (L1 | MISS, 0, 0)]),
            _ => chance.of(&[
                (L1 | HIT, 1, 2),
                (1 << 4 | HIT, 0xc, 2),
                (1 << 5 | HIT, 2, 2),
                (L3 | HIT, 3, 4),
                (L3 | HIT, 3, HITM),
                (1 << 7 | HIT, 0xd, 4),
                (1 << 8 | HIT, 0, 4),
                (1 << 10 | HIT, 0, HITM),
                (1 << 10 | HIT, 0, 4),
            ]),
        };
        let number = if chance.below(2) == 0 { 0 } else { number };
        Source {
            operation,
            level,
            number,
            snoop,
            lock: chance.of(&[1, 2]),
            translation: chance.of(&[0x1a, 0x2c]),
            blocked: chance.of(&[0, 1, 2, 4]),
        }
    }

    /// A word that the kernel makes of AMD's IBS: an operation of any kind, the third cache's state.
    fn ibs(chance: &mut Chance) -> Source {
        let (operation, level, number, snoop) = chance.of(&[
            (1, 0, 0, 0),
            (LOAD, L1 | HIT, 1, 0),
            (LOAD, 1 << 5 | HIT, 2, 0),
            (LOAD, L3 | HIT, 3, 0),
            (LOAD, L3 | HIT, 3, HITM),
            (LOAD, 1 << 10 | HIT, 0, HITM),
            (LOAD, 1 << 7 | HIT, 0xd, 0),
            (LOAD, 1 << 8 | HIT, 0, 0),
            (STORE, L1 | HIT, 1, 0),
        ]);
        let (lock, translation) = (chance.of(&[1, 2]), chance.of(&[0x0a, 0x2c]));
        Source { operation, level, number, snoop, lock, translation, blocked: 0 }
    }

    fn word(&self) -> u64 {
        self.operation
            | self.level << 5
            | self.snoop << 19
            | self.lock << 24
            | self.translation << 26
            | self.number << 33
            | self.blocked << 40
    }
}

/// An event, whose samples have these fields besides place, thread and time.
fn event(kind: u32, config: u64, fields: u64) -> EventAttributes {
    let sample_type = field::IP | field::TID | field::TIME | fields;
    let layout = RecordLayout { sample_type, sample_id_all: true, read_format: 4, ..RecordLayout::default() };
    let flags = flag::SAMPLE_ID_ALL | flag::RATE;
    EventAttributes { kind, config, period: 4000, flags, layout, ..EventAttributes::default() }
}

fn begun(events: Vec<(&'static str, EventAttributes)>) -> Writer {
    let mut writer = Writer::new(events);
    writer.starts(PID, b"program\0");
    writer.maps(PID, CODE, 0x10_0000, "/nonexistent/program");
    writer.maps(PID, DATA, 0x10_0000, "//anon");
    writer
}

/// A sample of four threads on two nodes, of a few cache lines.
fn sampled(chance: &mut Chance, layout: &RecordLayout, source: u64) -> (u32, SampleRecord) {
    let thread = chance.below(4) as u32;
    let weight = match layout.sample_type & field::WEIGHT {
        // The third part is another maker's: perf drops it on this machine.
        0 => SampleWeight::Parts(30 + chance.below(900) as u32, chance.below(65_536) as u16, 0),
        _ => SampleWeight::Whole(30 + chance.below(900)),
    };
    let chain =
        [vec![512_u64.wrapping_neg()], (0..chance.below(5)).map(|at| CODE + 64 * at).collect()].concat();
    let sample = SampleRecord {
        ip: CODE + 4 * chance.below(64),
        // Those of memory events are all of the program, as `perf c2c` counts the kernel's, too.
        is_kernel: layout.sample_type & field::CALLCHAIN != 0 && chance.below(4) == 0,
        address: Some(DATA + 8 * chance.below(256)),
        cpu: Some(thread),
        period: Some(1 + chance.below(5000)),
        call_chain: chain,
        weight: Some(weight),
        data_source: Some(source),
        physical: Some(chance.below(1 << 40)),
        cgroup: Some(chance.below(9)),
        page_bytes: Some(chance.of(&[0x1000, 0x20_0000])),
        code_page_bytes: Some(0x1000),
        ..SampleRecord::default()
    };
    (thread, sample)
}

/// Fills a recording with samples of its events in turn.
fn filled(
    chance: &mut Chance,
    events: &[(&'static str, EventAttributes)],
    source: fn(&mut Chance, usize) -> Source,
) -> Writer {
    let mut writer = begun(events.to_vec());
    for number in 0..400 {
        let at = number % events.len();
        let word = source(chance, at).word();
        let (thread, sample) = sampled(chance, &events[at].1.layout, word);
        writer.sample(at, Moment { pid: PID, tid: PID + thread, time: 1000 + number as u64 * 10 }, &sample);
    }
    writer
}

fn written(folder: &Path, writer: &Writer) -> PathBuf {
    let path = folder.join("recording");
    writer.write(&path);
    path
}

const MEMORY: u64 = field::ADDR | field::CPU | field::PERIOD | field::DATA_SRC;

fn intel(chance: &mut Chance, event: usize) -> Source {
    Source::intel(chance, [LOAD, STORE][event])
}

fn ibs(chance: &mut Chance, _: usize) -> Source {
    Source::ibs(chance)
}

/// Loads and stores of Intel's with numbers of events, and AMD's operations.
fn recordings(weight: u64) -> [Writer; 2] {
    let fields = MEMORY | weight | field::IDENTIFIER;
    let chance = &mut Chance(weight);
    let loads = ("cpu/mem-loads,ldlat=30/P", event(4, 0x1cd, fields));
    let stores = ("cpu/mem-stores/P", event(4, 0x2cd, fields));
    let operations = ("ibs_op/cnt_ctl=1/", event(11, 1 << 19, MEMORY | weight));
    [filled(chance, &[loads, stores], intel), filled(chance, &[operations], ibs)]
}

/// Any fields that samples may have beside each other.
#[test]
fn any_fields_decode_to_what_perf_says() {
    const OTHERS: [u64; 13] = [
        field::ADDR,
        field::ID,
        field::STREAM_ID,
        field::CPU,
        field::PERIOD,
        field::CALLCHAIN,
        field::DATA_SRC,
        field::TRANSACTION,
        field::PHYS_ADDR,
        field::CGROUP,
        field::DATA_PAGE_SIZE,
        field::CODE_PAGE_SIZE,
        field::REGS_INTR,
    ];
    let mut chance = Chance(7);
    for _ in 0..12 {
        let mut fields = chance.of(&[0, field::WEIGHT, field::WEIGHT_STRUCT]);
        fields |= OTHERS.iter().filter(|_| chance.below(2) == 0).sum::<u64>();
        let folder = tempfile::tempdir().expect("a folder");
        let loads = ("cpu/mem-loads,ldlat=30/P", event(4, 0x1cd, fields));
        let path = written(folder.path(), &filled(&mut chance, &[loads], intel));
        assert_agrees(&path, &script(&path), 400);
    }
}

#[test]
fn memory_events_of_both_makers_decode_to_what_perf_says() {
    for weight in [field::WEIGHT, field::WEIGHT_STRUCT] {
        for writer in recordings(weight) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = written(folder.path(), &writer);
            assert_agrees(&path, &script(&path), 400);
        }
    }
}

/// The count of a line of `perf c2c report --stats`.
fn count(text: &str, line: &str) -> u64 {
    let found = text.lines().find_map(|one| one.trim().strip_prefix(line)?.trim().strip_prefix(':'));
    found.unwrap_or_else(|| panic!("{line}: {text}")).trim().parse().expect("a number")
}

/// Levels, HITM and locks are counted as `perf c2c` counts them.
#[test]
fn sources_are_those_of_c2c() {
    for writer in recordings(field::WEIGHT_STRUCT) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = written(folder.path(), &writer);
        let output = perf(&["c2c", "report", "--stats", "--stdio", "--no-source", "-i"])
            .arg(&path)
            .output()
            .expect("perf");
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        let Imported { sampled, source, .. } = import(&path, None, None).expect("a recording");
        let report: SampleReport = name(&sampled, source);
        let sources = report.cost.expect("sources").sources;
        let ours = |is_wanted: &dyn Fn(&SampledSource) -> bool| -> u64 {
            sources.iter().filter(|source| is_wanted(source)).map(|source| source.samples).sum()
        };
        let loads = |level, is_modified| {
            ours(&|source| !source.is_store && source.level == level && source.is_modified == is_modified)
        };
        for (line, ours) in [
            ("Load Operations", ours(&|source| !source.is_store)),
            ("Store Operations", ours(&|source| source.is_store)),
            ("Load Fill Buffer Hit", loads(DataLevel::FillBuffer, false)),
            ("Load L1D hit", loads(DataLevel::L1, false)),
            ("Load L2D hit", loads(DataLevel::L2, false)),
            // Of this node's, those of changed lines are among the hits.
            ("Load LLC hit", loads(DataLevel::L3, false) + loads(DataLevel::L3, true)),
            ("Load Local HITM", loads(DataLevel::L3, true)),
            ("Load Remote HITM", loads(DataLevel::RemoteCache, true)),
            ("Load Remote HIT", loads(DataLevel::RemoteCache, false)),
            ("Load Local DRAM", loads(DataLevel::Memory, false)),
            ("Load Remote DRAM", loads(DataLevel::RemoteMemory, false)),
        ] {
            assert_eq!(ours, count(&theirs, line), "{line}");
        }
    }
}
