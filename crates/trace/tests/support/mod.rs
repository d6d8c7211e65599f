//! A small instrumented image made by hand, a program's words for it, and a naive expansion of
//! them: written from SPEC.md alone, so that the crate is not checked against itself.
#![allow(dead_code, reason = "each test binary uses a part")]

use memlode_trace::manifest::ManifestInfo;
use memlode_trace::module::{Global, ModuleImage, Section};
use memlode_trace::write::{
    AddressSpace, ChunkEncoder, DirectoryStore, Packer, Stop, Store, Tail, TraceWriter,
};
use memlode_trace::{ForeignCode, ForeignFunction};
use std::path::Path;

/// An operand that is the next word, or is derived from an op a number of places before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Word,
    Back(usize, i64),
}

/// An op as in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Access(usize, Operand),
    Range(usize, Operand, Operand),
    Masked(usize, u64, Operand),
    Gather(usize, u64),
    /// Site; segments back, word of that segment, distance.
    Derived(usize, usize, usize, i64),
    /// The strides behind it, all executed in each iteration.
    Repeat,
    /// Site; address of the first iteration; step.
    Stride(usize, Operand, i64),
    Enter,
    Exit,
    Resume,
    Alloc(usize),
    AllocArray(usize),
    Realloc(usize),
    Free(usize),
    Unmap(usize),
    /// The value of the step before.
    Value,
    Stamp,
    /// The kind's number, the object.
    Sync(u8, Operand),
}

/// A segment: function and ops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seg {
    pub function: usize,
    pub steps: Vec<Step>,
}

/// An image: site i has `site_bytes[i]` bytes, line 100 + i and variable `v<i>`; function i is
/// `f<i>` in `a.c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub functions: usize,
    pub site_bytes: Vec<u32>,
    pub segments: Vec<Seg>,
}

/// Events, in the words of the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Access {
        line: u32,
        address: u64,
        bytes: u32,
    },
    /// The value of the access before.
    Value(Vec<u8>),
    Stamp(u64),
    /// A release or an acquisition: object, stamp.
    Sync(bool, u64, u64),
    Enter(String, u64),
    Exit(String),
    Resume(String, u64),
    Alloc(u32, u64, u64, u64),
    Realloc(u32, u64, u64, u64),
    Free(u32, u64),
    Unmap(u32, u64, u64),
}

pub const ANCHORS_AT: u64 = 0x4000;
pub const TABLES_AT: u64 = 0x9000;
pub const LOAD_BIAS: u64 = 0x5555_0000_0000;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value == 0 { byte } else { byte | 0x80 });
        if value == 0 {
            return;
        }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn operand(out: &mut Vec<u8>, operand: Operand, with_distance: bool) {
    match operand {
        Operand::Word => varint(out, 0),
        Operand::Back(back, distance) => {
            varint(out, back as u64);
            if with_distance {
                varint(out, ((distance << 1) ^ (distance >> 63)) as u64);
            }
        }
    }
}

/// A site table, header and all.
pub fn table(plan: &Plan) -> Vec<u8> {
    let mut p = Vec::new();
    let mut strings = vec!["/src".to_owned(), "a.c".to_owned(), "struct s".to_owned(), "m".to_owned()];
    let functions_at = strings.len() as u64;
    strings.extend((0..plan.functions).map(|i| format!("f{i}")));
    let variables_at = strings.len() as u64;
    strings.extend((0..plan.site_bytes.len()).map(|i| format!("v{i}")));
    varint(&mut p, strings.len() as u64);
    strings.iter().for_each(|string| text(&mut p, string));
    p.extend([1, 0, 1]); // files: /src/a.c
    varint(&mut p, plan.functions as u64);
    for function in 0..plan.functions as u64 {
        varint(&mut p, functions_at + function);
        varint(&mut p, functions_at + function);
        p.extend([1, 10]); // file 0, line 10
    }
    varint(&mut p, plan.site_bytes.len() as u64);
    for site in 0..plan.site_bytes.len() as u64 {
        varint(&mut p, 0); // function
        varint(&mut p, 100 + site);
        p.extend([7, 0]); // column 7, not inlined
    }
    p.extend([1, 2, 48]); // types: struct s of 48 bytes
    varint(&mut p, plan.site_bytes.len() as u64);
    for (site, &bytes) in plan.site_bytes.iter().enumerate() {
        p.extend([(site % 3) as u8, 1, 0]); // kind, evidence source, no flags
        varint(&mut p, bytes.into());
        varint(&mut p, site as u64 + 1); // location
        varint(&mut p, variables_at + site as u64 + 1);
        p.extend([1, 4]); // type 0, member "m"
    }
    varint(&mut p, plan.segments.len() as u64);
    for segment in &plan.segments {
        varint(&mut p, segment.function as u64);
        varint(&mut p, segment.steps.len() as u64);
        segment.steps.iter().for_each(|step| put_step(&mut p, step));
    }
    let mut out = b"MLTB\x01\x00\x00\x00".to_vec();
    out.extend((p.len() as u32).to_le_bytes());
    out.extend(crc32fast::hash(&p).to_le_bytes());
    out.extend(p);
    out
}

fn put_step(p: &mut Vec<u8>, step: &Step) {
    let mut code = |code: u8, site: usize| {
        p.push(code);
        varint(p, site as u64);
    };
    match *step {
        Step::Access(site, address) => {
            code(0, site);
            operand(p, address, true);
        }
        Step::Range(site, address, length) => {
            code(1, site);
            operand(p, address, true);
            operand(p, length, false);
        }
        Step::Masked(site, lanes, address) => {
            code(2, site);
            varint(p, lanes);
            operand(p, address, true);
        }
        Step::Gather(site, lanes) => {
            code(3, site);
            varint(p, lanes);
        }
        Step::Derived(site, back, word, distance) => {
            code(4, site);
            varint(p, back as u64);
            varint(p, word as u64);
            varint(p, ((distance << 1) ^ (distance >> 63)) as u64);
        }
        Step::Repeat => p.push(5),
        Step::Stride(site, address, step) => {
            code(6, site);
            operand(p, address, true);
            varint(p, ((step << 1) ^ (step >> 63)) as u64);
        }
        Step::Enter => p.push(16),
        Step::Exit => p.push(17),
        Step::Resume => p.push(18),
        Step::Alloc(site) => code(32, site),
        Step::AllocArray(site) => code(33, site),
        Step::Realloc(site) => code(34, site),
        Step::Free(site) => code(35, site),
        Step::Unmap(site) => code(36, site),
        Step::Value => p.push(48),
        Step::Stamp => p.push(49),
        Step::Sync(kind, object) => {
            p.extend([50, kind]);
            operand(p, object, true);
        }
    }
}

/// The image: one table, one anchor a segment, one global.
pub fn image(plan: &Plan) -> ModuleImage {
    let mut anchors = Vec::new();
    for segment in 0..plan.segments.len() as u64 {
        let rel = TABLES_AT.wrapping_sub(ANCHORS_AT + 8 * segment) as u32;
        anchors.extend(rel.to_le_bytes());
        anchors.extend((segment as u32).to_le_bytes());
    }
    ModuleImage {
        path: "/usr/bin/program".to_owned(),
        build_id: vec![1, 2, 3],
        anchors: Section { address: ANCHORS_AT, bytes: anchors },
        tables: Section { address: TABLES_AT, bytes: table(plan) },
        globals: vec![Global { name: "counter".to_owned(), address: 0x2000, bytes: 64 }],
        foreign: ForeignCode {
            functions: vec![ForeignFunction { name: "grind".to_owned(), bytes: 300, is_local: true }],
            has_libraries: true,
        },
        sampled: None,
    }
}

/// Sites load, store and update in turn.
pub fn is_update(site: usize) -> bool {
    site % 3 == 2
}

/// Words of the value of a step.
fn value_words(site_bytes: &[u32], step: &Step) -> usize {
    let words = |site: usize, lanes: u64| {
        let bytes = site_bytes[site] as usize * lanes as usize;
        bytes.div_ceil(8) * if is_update(site) { 2 } else { 1 }
    };
    match *step {
        Step::Access(site, _) | Step::Derived(site, ..) => words(site, 1),
        Step::Masked(site, lanes, _) | Step::Gather(site, lanes) => words(site, lanes),
        _ => unreachable!("{step:?} has no value"),
    }
}

/// Words behind the header.
pub fn word_count(site_bytes: &[u32], segment: &Seg) -> usize {
    let operand = |operand: Operand| usize::from(operand == Operand::Word);
    let words = |step: &Step| match *step {
        Step::Access(_, a) | Step::Stride(_, a, _) => operand(a),
        Step::Repeat => 1,
        Step::Range(_, a, l) => operand(a) + operand(l),
        Step::Masked(_, _, a) => operand(a) + 1,
        Step::Gather(_, lanes) => lanes as usize + 1,
        Step::Enter | Step::Resume | Step::Free(_) => 1,
        Step::Exit | Step::Derived(..) => 0,
        Step::Alloc(_) | Step::Unmap(_) => 2,
        Step::AllocArray(_) | Step::Realloc(_) => 3,
        Step::Stamp => 1,
        Step::Sync(_, a) => operand(a) + 1,
        Step::Value => 0,
    };
    let values = segment.steps.windows(2).filter(|pair| pair[1] == Step::Value);
    let values: usize = values.map(|pair| value_words(site_bytes, &pair[0])).sum();
    segment.steps.iter().map(words).sum::<usize>() + values
}

/// The words of each segment's last execution in a thread.
pub type History = std::collections::HashMap<usize, Vec<u64>>;

/// Expands one execution of a segment, word by word.
pub fn expand(plan: &Plan, index: usize, words: &[u64], history: &mut History, out: &mut Vec<Happened>) {
    let segment = &plan.segments[index];
    history.insert(index, words.to_vec());
    if segment.steps.first() == Some(&Step::Repeat) {
        return repeat(plan, &segment.steps[1..], words, out);
    }
    let mut words = words.iter().copied();
    let mut next = || words.next().expect("as many words as word_count says");
    // Address and length of each op so far.
    let mut addresses: Vec<u64> = Vec::new();
    let mut lengths: Vec<u64> = Vec::new();
    let name = || format!("f{}", segment.function);
    // Of the step before: its accesses, and how many lanes it has, which of them set.
    let (mut made, mut lanes_before, mut mask_before) = (0, 1, 1);
    for (number, step) in segment.steps.iter().enumerate() {
        let events_before = out.len();
        let (mut address, mut length) = (0, 0);
        let mut derive = |operand: Operand, earlier: &[u64]| match operand {
            Operand::Word => next(),
            Operand::Back(back, distance) => earlier[earlier.len() - back].wrapping_add(distance as u64),
        };
        let mut access = |site: usize, address: u64, bytes: u32| {
            out.push(Happened::Access { line: 100 + site as u32, address, bytes });
        };
        match *step {
            Step::Access(site, a) => {
                address = derive(a, &addresses);
                access(site, address, plan.site_bytes[site]);
            }
            Step::Range(site, a, l) => {
                address = derive(a, &addresses);
                length = derive(l, &lengths);
                let (mut at, mut left) = (address, length);
                while left > 0 {
                    let bytes = left.min(0xffff_ffff);
                    access(site, at, bytes as u32);
                    at = at.wrapping_add(bytes);
                    left -= bytes;
                }
            }
            Step::Masked(site, lanes, a) => {
                address = derive(a, &addresses);
                let mask = next();
                (lanes_before, mask_before) = (lanes, mask);
                for lane in 0..lanes {
                    if mask & (1 << lane) != 0 {
                        let bytes = plan.site_bytes[site];
                        access(site, address.wrapping_add(lane * u64::from(bytes)), bytes);
                    }
                }
            }
            Step::Gather(site, lanes) => {
                let at: Vec<u64> = (0..lanes).map(|_| next()).collect();
                let mask = next();
                (lanes_before, mask_before) = (lanes, mask);
                for (lane, &address) in at.iter().enumerate() {
                    if mask & (1 << lane) != 0 {
                        access(site, address, plan.site_bytes[site]);
                    }
                }
            }
            Step::Derived(site, back, word, distance) => {
                let from = history[&(index - back)][word];
                access(site, from.wrapping_add(distance as u64), plan.site_bytes[site]);
            }
            Step::Repeat | Step::Stride(..) => unreachable!("they have been expanded"),
            Step::Enter => out.push(Happened::Enter(name(), next())),
            Step::Exit => out.push(Happened::Exit(name())),
            Step::Resume => out.push(Happened::Resume(name(), next())),
            Step::Alloc(site) => {
                let base = next();
                out.push(Happened::Alloc(100 + site as u32, base, 1, next()));
            }
            Step::AllocArray(site) => {
                let (base, count) = (next(), next());
                out.push(Happened::Alloc(100 + site as u32, base, count, next()));
            }
            Step::Realloc(site) => {
                let (base, bytes) = (next(), next());
                out.push(Happened::Realloc(100 + site as u32, base, bytes, next()));
            }
            Step::Free(site) => out.push(Happened::Free(100 + site as u32, next())),
            Step::Unmap(site) => {
                let base = next();
                out.push(Happened::Unmap(100 + site as u32, base, next()));
            }
            Step::Sync(kind, object) => {
                address = derive(object, &addresses);
                let stamp = Some(next()).filter(|&stamp| stamp > 1);
                out.extend(stamp.map(|stamp| Happened::Sync(kind % 2 == 1, address, stamp)));
            }
            Step::Stamp => out.extend(Some(next()).filter(|&stamp| stamp > 1).map(Happened::Stamp)),
            Step::Value => {
                let before = &segment.steps[number - 1];
                let (Step::Access(site, _) | Step::Masked(site, ..) | Step::Gather(site, _)) = *before else {
                    unreachable!()
                };
                let bytes = plan.site_bytes[site] as usize;
                let (lanes, mask) = match before {
                    Step::Access(..) => (1, 1),
                    _ => (lanes_before, mask_before),
                };
                let copies = if is_update(site) { 2 } else { 1 };
                let words = value_words(&plan.site_bytes, before) / copies;
                let memory: Vec<Vec<u8>> =
                    (0..copies).map(|_| (0..words).flat_map(|_| next().to_le_bytes()).collect()).collect();
                let mut access = out.len() - made;
                for lane in (0..lanes as usize).filter(|lane| mask >> lane & 1 == 1) {
                    let of_lane = memory.iter().flat_map(|copy| &copy[lane * bytes..][..bytes]);
                    out.insert(access + 1, Happened::Value(of_lane.copied().collect()));
                    access += 2;
                }
            }
        }
        made = out.len() - events_before;
        addresses.push(address);
        lengths.push(length);
    }
}

/// Strides: one access of each in every iteration.
fn repeat(plan: &Plan, strides: &[Step], words: &[u64], out: &mut Vec<Happened>) {
    for iteration in 0..words[0] {
        let mut next = words[1..].iter();
        let mut first_iteration: Vec<u64> = Vec::new();
        for stride in strides {
            let Step::Stride(site, a, step) = *stride else { unreachable!("strides alone") };
            first_iteration.push(match a {
                Operand::Word => *next.next().expect("as many words as word_count says"),
                Operand::Back(back, distance) => {
                    first_iteration[first_iteration.len() - back].wrapping_add(distance as u64)
                }
            });
            let address = first_iteration[first_iteration.len() - 1]
                .wrapping_add((step as u64).wrapping_mul(iteration));
            out.push(Happened::Access { line: 100 + site as u32, address, bytes: plan.site_bytes[site] });
        }
    }
}

/// A batch in the words of the tests.
pub fn happened(trace: &memlode_trace::Trace, batch: &memlode_trace::event::Batch) -> Vec<Happened> {
    use memlode_trace::event::Mark;
    let sites = trace.sites();
    let line = |site| sites.location(sites.site(site).location.unwrap()).line;
    let name = |function| sites.string(sites.function(function).name).to_owned();
    let mut out = Vec::new();
    let mut marks = batch.marks.iter().peekable();
    let mut values = batch.values.iter().peekable();
    for at in 0..=batch.accesses.len() {
        while let Some((_, mark)) = marks.next_if(|(before, _)| *before as usize == at) {
            out.push(match *mark {
                Mark::Enter { function, frame, .. } => Happened::Enter(name(function), frame),
                Mark::Exit { function } => Happened::Exit(name(function)),
                Mark::Resume { function, frame } => Happened::Resume(name(function), frame),
                Mark::Alloc { site, base, count, element_bytes } => {
                    Happened::Alloc(line(site), base, count, element_bytes)
                }
                Mark::Realloc { site, base, bytes, old } => Happened::Realloc(line(site), base, bytes, old),
                Mark::Free { site, base } => Happened::Free(line(site), base),
                Mark::Unmap { site, base, bytes } => Happened::Unmap(line(site), base, bytes),
                Mark::Stamp { stamp } => Happened::Stamp(stamp),
                Mark::Sync { kind, object, stamp } => Happened::Sync(kind.releases(), object, stamp),
            });
        }
        if let Some(access) = batch.accesses.get(at) {
            let memlode_trace::event::Access { address, bytes, site } = *access;
            out.push(Happened::Access { line: line(site), address, bytes });
            let value = values.next_if(|&(of, _)| of == at);
            out.extend(value.map(|(_, bytes)| Happened::Value(bytes.to_vec())));
        }
    }
    assert!(values.next().is_none() && marks.next().is_none(), "every mark has its place");
    out
}

/// One execution: index of the segment, its words.
pub type Execution = (usize, Vec<u64>);

/// The raw words of some executions.
pub fn raw(executions: &[Execution]) -> Vec<u64> {
    let word = |&(segment, ref words): &Execution| {
        let header = LOAD_BIAS + ANCHORS_AT + 8 * segment as u64;
        std::iter::once(header).chain(words.iter().copied()).collect::<Vec<_>>()
    };
    executions.iter().flat_map(word).collect()
}

/// Writes a finished trace: each inner list is a chunk, each outer one a thread of process 0.
/// Returns the number of its accesses.
pub fn write_trace(directory: &Path, plan: &Plan, threads: &[Vec<Vec<Execution>>]) -> u64 {
    write_trace_to(Box::new(DirectoryStore::create(directory, true).unwrap()), plan, threads)
}

/// The same, wherever.
pub fn write_trace_to(store: Box<dyn Store>, plan: &Plan, threads: &[Vec<Vec<Execution>>]) -> u64 {
    write_image_to(store, image(plan), ManifestInfo::default(), threads)
}

/// The same of an image that may be none of [`image`]'s.
pub fn write_image_to(
    store: Box<dyn Store>,
    image: ModuleImage,
    info: ManifestInfo,
    threads: &[Vec<Vec<Execution>>],
) -> u64 {
    let mut accesses = 0;
    use memlode_trace::log::Event;
    use memlode_trace::manifest::Summary;
    let command = info.command.clone();
    let mut writer = TraceWriter::new(store, info).unwrap();
    let (id, module) = writer.add_module(image).unwrap();
    let mut space = AddressSpace::default();
    space.load(id, module, LOAD_BIAS);
    let start = Event::ProcessStart { process: 0, pid: 7, parent: None, command, stamp: 1 };
    writer.event(&start).unwrap();
    writer.event(&Event::ModuleLoad { process: 0, module: id.0, load_bias: LOAD_BIAS, stamp: 1 }).unwrap();
    let mut packer = Packer::new();
    for (number, chunks) in threads.iter().enumerate() {
        let thread = number as u32;
        writer.event(&Event::ThreadStart { process: 0, thread, tid: 7 + thread, stamp: 2 }).unwrap();
        let mut encoder = ChunkEncoder::of_form(writer.form());
        for (sequence, chunk) in chunks.iter().enumerate() {
            let stamp = 10 * sequence as u64 + number as u64;
            let words = raw(chunk);
            let appended = encoder.append(&words, Tail::HandedOver, (stamp, stamp + 5), &space);
            assert_eq!((appended.consumed, appended.stop), (words.len(), Stop::End));
            if let Some(chunk) = encoder.finish().map(|chunk| chunk.pack(&mut packer)) {
                accesses += chunk.expanded();
                writer.append(0, thread, chunk).unwrap();
            }
        }
    }
    writer.event(&Event::ProcessEnd { process: 0, clean: true, stamp: 1000 }).unwrap();
    writer.finish(Summary { exit_code: Some(0), ..Default::default() }).unwrap();
    accesses
}
