//! The law of [`Splits`]: whatever way a trace may be split for an analysis, the parts, merged, give what one
//! pass over the whole gives, to the digit, also if each part numbers cells and objects in its own way and its state goes
//! through bytes. And a way that an analysis does not declare really differs, so that
//! the law is tested and none is declared too few.
//!
//! Names, threads and cells are those of a recorded trace; the accesses are random.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use memlode_analyses::{
    Arguments, BadPart, Blocks, Findings, Merged, Reads, Registered, Running, View, all, findings_of,
};
use memlode_attribute::annotate::{
    AnnotatedAccesses, BlockEvent, Cells, EventCell, Extras, Life, Options, PathStep, SyncEvent, Traffic,
    WithinObject,
};
use memlode_attribute::{Cell, CostModel, Counts, Profile, Simulation, Source};
use memlode_machine::Machine;
use memlode_trace::Trace;
use memlode_trace::event::{ProcessId, SyncKind};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// Names and objects that the numbers of random accesses refer to.
struct Recorded {
    trace: Arc<Trace>,
    cells: Cells,
    machine: Machine,
    levels: Vec<String>,
    latencies: Vec<u32>,
}

impl Recorded {
    fn view(&self) -> View<'_> {
        View {
            cells: &self.cells,
            names: self.trace.sites(),
            threads: self.trace.threads(),
            machine: &self.machine,
            levels: &self.levels,
            latencies: &self.latencies,
            clock: self.trace.clock(),
            counted: None,
            before: &[],
        }
    }
}

fn source(fixture: &str) -> (Arc<Trace>, Source) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(fixture).join("trace");
    let trace = Arc::new(Trace::open(&directory).expect("a fixture's trace"));
    (trace.clone(), Source::Stored(trace))
}

fn machine() -> Machine {
    Machine::find("generic").expect("a built-in machine")
}

/// Two threads, and members, lines and objects of several kinds.
fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let (trace, source) = source("shared");
        let machine = machine();
        let extras = Extras { paths: true, ..Extras::default() };
        let options = Options { extras, ..Options::default() };
        let mut annotations = Simulation::of(&source, &machine).rows(options).expect("a machine");
        while let Some(events) = annotations.next_batch() {
            annotations.give_back(events);
        }
        let levels = machine.levels.iter().map(|level| level.name.clone());
        Recorded {
            cells: annotations.cells().clone(),
            levels: levels.chain(["memory".to_string()]).collect(),
            latencies: machine.latencies(),
            machine,
            trace,
        }
    })
}

/// Recorded names with the cells, objects and paths numbered in another way, as another replay would.
struct Renumbered {
    cells: Cells,
    /// Indexed by cell, by object, and by path less one, of those that were recorded.
    cell: Vec<u32>,
    object: Vec<u32>,
    path: Vec<u32>,
}

impl Renumbered {
    fn by(seed: u64) -> Renumbered {
        let Cells { cells, objects, paths } = &recorded().cells;
        let (cell, cell_order) = shuffled(cells.len(), seed);
        let (object, object_order) = shuffled(objects.len(), seed ^ 1);
        let (path, path_order) = shuffled(paths.len(), seed ^ 2);
        let path_number = |old: u32| if old == 0 { 0 } else { path[old as usize - 1] + 1 };
        let renumbered =
            |&old: &usize| EventCell { object: object[cells[old].object as usize], ..cells[old] };
        let cells = Cells {
            cells: cell_order.iter().map(renumbered).collect(),
            objects: object_order.iter().map(|&old| objects[old].clone()).collect(),
            paths: path_order
                .iter()
                .map(|&old| PathStep { outer: path_number(paths[old].outer), ..paths[old] })
                .collect(),
        };
        Renumbered { cells, cell, object, path }
    }

    fn rows(&self, mut rows: AnnotatedAccesses) -> AnnotatedAccesses {
        rows.cell.iter_mut().for_each(|cell| *cell = self.cell[*cell as usize]);
        for path in rows.path.iter_mut().filter(|path| **path > 0) {
            *path = self.path[*path as usize - 1] + 1;
        }
        rows.syncs.iter_mut().for_each(|sync| sync.object = self.object[sync.object as usize]);
        for block in &mut rows.blocks {
            if let Life::Begins { object, .. } = &mut block.life {
                *object = self.object[*object as usize];
            }
        }
        rows
    }
}

/// New numbers by old ones, and the other way round.
fn shuffled(count: usize, seed: u64) -> (Vec<u32>, Vec<usize>) {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&number| {
        (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed).rotate_left(23)
    });
    let mut numbers = vec![0; count];
    (0..).zip(&order).for_each(|(new, &old)| numbers[old] = new);
    (numbers, order)
}

/// One access: address, bytes, cell, level, and ticks since the one before.
type Row = (u64, u32, u32, u8, u64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let cells = recorded().cells.cells.len() as u32;
    let levels = recorded().levels.len() as u8;
    // Few lines, so that they are touched again; a few accesses cross lines and pages.
    let address = prop_oneof![
        0x10_0000u64..0x10_0400,
        0x10_0f80u64..0x10_1080,
        0x20_0000u64..0x20_8000,
        // And again at the same byte.
        (0u64..4).prop_map(|at| 0x10_0000 + 256 * at),
    ];
    let row = (address, 1u32..200, 0..cells, 0..levels, 0u64..5000);
    prop::collection::vec(row, 1..300)
}

/// The columns of some rows, each with its number among all. If blocks are wanted, some begin and end at the lines that are
/// accessed.
fn columns(rows: &[(u64, Row)], with_blocks: bool) -> AnnotatedAccesses {
    let mut events = AnnotatedAccesses::default();
    for (row, &(number, (address, bytes, cell, level, stamp))) in (0..).zip(rows) {
        let life = match bytes % 3 {
            _ if !with_blocks => None,
            0 => Some(Life::Begins { bytes: 64, object: recorded().cells.cells[cell as usize].object }),
            1 => Some(Life::Ends),
            _ => None,
        };
        let block = |life| BlockEvent { row, process: ProcessId(0), address: address / 64 * 64, life };
        events.blocks.extend(life.map(block));
        let EventCell { thread, object, .. } = recorded().cells.cells[cell as usize];
        let kind = [Some(SyncKind::Lock), Some(SyncKind::Unlock), None][(number % 3) as usize];
        let sync = |kind| SyncEvent { row, thread, kind, address: 0x5000 + 8 * u64::from(object), object };
        events.syncs.extend(kind.map(sync));
        events.sequence.push(number);
        events.stamp.push(stamp);
        events.address.push(address);
        events.bytes.push(bytes);
        // Few values, so that memory holds some of them already; of some accesses none is known.
        let value = if bytes % 5 == 4 { 0 } else { u8::from(stamp % 8 == 0) };
        if with_blocks && (address ^ number) % 4 != 0 {
            events.values.push(row, |all| all.extend(std::iter::repeat_n(value, bytes as usize)));
        }
        events.cell.push(cell);
        events.level.push(level);
        let (fetched, written) = (64 * u32::from(level / 3), 64 * (bytes % 2));
        events.traffic.push(Traffic { fetched, written });
        // Chunks by themselves know no objects, as they know no levels.
        let (offset, bytes) = (number % 777, 777 * u64::from(level));
        events.place.push(WithinObject { offset, bytes, block: number / 2 });
        events.path.push((number % (recorded().cells.paths.len() as u64 + 1)) as u32);
    }
    events
}

/// Rows in order, with time stamps that go on from the process's first.
fn numbered(rows: &[Row]) -> Vec<(u64, Row)> {
    let mut stamp = recorded().trace.manifest_stamp();
    let stamped = rows.iter().map(|&(address, bytes, cell, level, ticks)| {
        stamp += ticks;
        (address, bytes, cell, level, stamp)
    });
    (0..).zip(stamped).collect()
}

trait FirstStamp {
    fn manifest_stamp(&self) -> u64;
}

impl FirstStamp for Trace {
    /// A stamp at or after the beginning of the clock.
    fn manifest_stamp(&self) -> u64 {
        (0..64)
            .map(|bit| 1u64 << bit)
            .find(|stamp| self.clock().is_none_or(|clock| clock.ns(*stamp) > 0))
            .unwrap_or(0)
    }
}

/// A way to deal rows to parts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Address(u64),
    Thread,
    Time,
    /// In any order, and without objects and levels.
    Chunks,
}

/// The parts, each in order.
fn deal(rows: &[(u64, Row)], way: Way, parts: usize, seed: u64) -> Vec<Vec<(u64, Row)>> {
    let mut dealt = vec![Vec::new(); parts];
    let mixed =
        |value: u64| (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed).rotate_left(23) as usize % parts;
    for &(number, row) in rows {
        let (address, bytes, cell, level, stamp) = row;
        match way {
            Way::Address(block) => {
                let (mut first, end) = (address, address + u64::from(bytes));
                while first < end {
                    let next = end.min((first / block + 1) * block);
                    dealt[mixed(first / block)]
                        .push((number, (first, (next - first) as u32, cell, level, stamp)));
                    first = next;
                }
            }
            Way::Thread => {
                let thread = recorded().cells.cells[cell as usize].thread;
                dealt[(thread.0 as usize + seed as usize) % parts].push((number, row));
            }
            Way::Chunks => {
                dealt[mixed(number)].push((number, (address, bytes, without_object(cell), 0, stamp)));
            }
            Way::Time => dealt[number as usize * parts / rows.len()].push((number, row)),
        }
    }
    dealt
}

/// The first cell of the same thread and site, whatever its objects.
fn without_object(cell: u32) -> u32 {
    let cells = &recorded().cells.cells;
    let EventCell { thread, site, .. } = cells[cell as usize];
    let first = cells.iter().position(|known| (known.thread, known.site) == (thread, site));
    first.expect("at the latest, itself") as u32
}

/// Blocks, and values, are shown to analyses that look at them.
fn takes_blocks(analysis: &dyn Running) -> bool {
    analysis.extras().values || ["heap", "temporaries"].contains(&analysis.meta().id)
}

/// Shows rows in batches of some size.
fn show(analysis: &mut Box<dyn Running>, rows: &[(u64, Row)], batch: usize) {
    let with_blocks = takes_blocks(analysis.as_ref());
    let columns = |rows| columns(rows, with_blocks);
    rows.chunks(batch).for_each(|rows| analysis.observe(&columns(rows), &recorded().view()));
}

fn begin(known: &Registered, arguments: &str) -> Box<dyn Running> {
    known.begin(&arguments.parse().expect("arguments")).expect("arguments that it knows")
}

fn one_pass(known: &Registered, arguments: &str, rows: &[(u64, Row)]) -> Findings {
    let mut analysis = begin(known, arguments);
    show(&mut analysis, rows, 64);
    analysis.finish(&recorded().view())
}

/// Bytes of each part's state. Each part is another replay, with numbers of its own.
fn states(known: &Registered, arguments: &str, parts: &[Vec<(u64, Row)>], seed: u64) -> Vec<Vec<u8>> {
    let parts = (1..).zip(parts);
    let state = |(part, rows): (u64, &Vec<(u64, Row)>)| {
        let mut analysis = begin(known, arguments);
        let replay = Renumbered::by(seed.wrapping_mul(part));
        let view = View { cells: &replay.cells, ..recorded().view() };
        let with_blocks = takes_blocks(analysis.as_ref());
        rows.chunks(7).for_each(|rows| analysis.observe(&replay.rows(columns(rows, with_blocks)), &view));
        analysis.save(&replay.cells)
    };
    parts.map(state).collect()
}

/// The same in parts, merged from the left or, as parts may be merged in any grouping, from the right.
fn split(
    known: &Registered,
    arguments: &str,
    parts: &[Vec<(u64, Row)>],
    (seed, from_left): (u64, bool),
) -> Findings {
    let whole = begin(known, arguments);
    let (mut merged, view) = (Merged::default(), recorded().view());
    let states = states(known, arguments, parts, seed);
    let mut states: Vec<_> =
        states.iter().map(|bytes| whole.load(bytes, &mut merged, &view).expect("bytes of a state")).collect();
    while states.len() > 1 {
        let at = if from_left { 0 } else { states.len() - 2 };
        let later = states.remove(at + 1);
        states[at].merge(later);
    }
    states.remove(0).finish(&View { cells: merged.cells(), ..view })
}

/// Arguments that make something of a few hundred accesses.
const ARGUMENTS: [(&str, &str); 20] = [
    ("accesses", ""),
    ("accesses", "misses=yes"),
    ("alias", "least=1"),
    ("cells", ""),
    ("contexts", ""),
    ("heap", ""),
    ("locks", ""),
    ("ranges", ""),
    ("ranges", "contexts=0,blocks=yes"),
    ("ranges", "blocks=yes"),
    ("reloads", "least=1,share=0"),
    ("shared", "least=2"),
    ("shared", "rule=source"),
    ("reuse", ""),
    ("strides", ""),
    ("temporaries", "least=1"),
    ("values", "least=1,share=0"),
    ("working-set", "every=64"),
    ("timeline", "every=50"),
    ("timeline", "every=20us"),
];

fn ways(known: &Registered, arguments: &str) -> [(Way, bool); 4] {
    let splits = begin(known, arguments).splits();
    [
        (Way::Address(block_bytes(splits.address)), splits.address.is_some()),
        (Way::Thread, splits.thread),
        (Way::Time, splits.time),
        (Way::Chunks, splits.chunks),
    ]
}

fn block_bytes(blocks: Option<Blocks>) -> u64 {
    match blocks {
        Some(Blocks::Bytes) => 1,
        Some(Blocks::Lines) | None => recorded().view().line_bytes(),
    }
}

fn known(id: &str) -> Registered {
    all().into_iter().find(|known| known.meta.id == id).expect("an analysis of that name")
}

#[test]
fn all_analyses_of_rows_are_tested_here() {
    for known in all().iter().filter(|known| known.meta.reads == Reads::Rows) {
        assert!(ARGUMENTS.iter().any(|(id, _)| *id == known.meta.id), "{}", known.meta.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn merged_parts_are_the_whole(rows in rows(), parts in 2usize..5, seed in any::<u64>(), left in any::<bool>()) {
        let rows = numbered(&rows);
        for (id, arguments) in ARGUMENTS {
            let known = known(id);
            let whole = one_pass(&known, arguments, &rows);
            for (way, is_declared) in ways(&known, arguments) {
                if is_declared {
                    let merged = split(&known, arguments, &deal(&rows, way, parts, seed), (seed, left));
                    prop_assert_eq!(&merged, &whole, "{} {} {:?}", id, arguments, way);
                }
            }
        }
    }

    /// A profile whose cells are counted in parts that are not added up yet is the same to analyses of cells.
    #[test]
    fn counts_may_come_in_parts(seed in any::<u64>()) {
        let (trace, source) = source("offenders");
        let machine = machine();
        let profile = || Simulation::of(&source, &machine).count(|_| std::ops::ControlFlow::Continue(())).expect("a profile").0;
        let found = |profile: &Profile| {
            let costs = CostModel::new(profile, trace.sites(), &machine);
            findings_of(&trace, &machine, profile, &costs)
        };
        let whole = profile();
        let mut parted = profile();
        parted.cells = whole.cells.iter().flat_map(|cell| in_two(cell, seed)).collect();
        let expected = found(&whole);
        prop_assert!(!expected.is_empty());
        let found = found(&parted);
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found.subject, expected.subject);
            prop_assert_eq!(found.counts, expected.counts);
            prop_assert_eq!(&found.edit, &expected.edit);
            // Costs are sums of products, whose last digits depend on what is added first.
            prop_assert!((found.cost.wait_share - expected.cost.wait_share).abs() < 1e-9);
        }
    }
}

/// A cell as two, whose counts add up.
fn in_two(cell: &Cell, seed: u64) -> [Cell; 2] {
    let (mut one, mut other) = (cell.counts, Counts::default());
    for (depth, (from, to)) in one
        .reads
        .iter_mut()
        .zip(&mut other.reads)
        .chain(one.writes.iter_mut().zip(&mut other.writes))
        .enumerate()
    {
        let part = if *from == 0 { 0 } else { seed.rotate_left(depth as u32) % (*from + 1) };
        (*from, *to) = (*from - part, part);
    }
    // No part has more first touches than memory answered.
    let memory = machine().levels.len();
    other.first_touches = one.first_touches.min(other.reads[memory] + other.writes[memory]);
    one.first_touches -= other.first_touches;
    [Cell { counts: one, ..cell.clone() }, Cell { counts: other, ..cell.clone() }]
}

/// Without this, an analysis that declares nothing would pass, and so would a test that sees no
/// difference.
#[test]
fn ways_that_are_not_declared_differ() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let samples: Vec<Vec<(u64, Row)>> =
        (0..20).map(|_| numbered(&rows().new_tree(&mut runner).expect("rows").current())).collect();
    for (id, arguments) in ARGUMENTS {
        let known = known(id);
        for (way, is_declared) in ways(&known, arguments) {
            // Intervals of so many accesses are the same whichever part sees an access.
            let differs = samples.iter().any(|rows| {
                let merged =
                    std::panic::catch_unwind(|| split(&known, arguments, &deal(rows, way, 3, 1), (1, true)));
                merged.ok().is_none_or(|merged| merged != one_pass(&known, arguments, rows))
            });
            assert_eq!(differs, !is_declared, "{id} {arguments} {way:?}");
        }
    }
}

/// Bytes of a state of each analysis.
fn saved() -> Vec<(Registered, &'static str, Vec<u8>)> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let rows = numbered(&rows().new_tree(&mut runner).expect("rows").current());
    let state = |(id, arguments)| {
        (known(id), arguments, states(&known(id), arguments, std::slice::from_ref(&rows), 7).remove(0))
    };
    ARGUMENTS.into_iter().map(state).collect()
}

fn load(known: &Registered, arguments: &str, bytes: &[u8]) -> Result<Box<dyn Running>, BadPart> {
    begin(known, arguments).load(bytes, &mut Merged::default(), &recorded().view())
}

#[test]
fn truncated_and_damaged_states_are_refused() {
    for (known, arguments, bytes) in saved() {
        assert!(load(&known, arguments, &bytes).is_ok());
        for end in 0..bytes.len() {
            assert!(load(&known, arguments, &bytes[..end]).is_err(), "{} {end}", known.meta.id);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(load(&known, arguments, &damaged).is_err(), "{} {at}", known.meta.id);
        }
        let mut newer = bytes.clone();
        newer[8] += 1;
        let refused = load(&known, arguments, &newer).err().expect("refused");
        assert!(refused.to_string().contains("has version 5, and this memlode reads version 4"), "{refused}");
        let other = if known.meta.id == "reuse" { "alias" } else { "reuse" };
        let refused = load(&self::known(other), "", &bytes).err().expect("refused");
        assert!(refused.to_string().contains("one is of"), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// States from strangers, with a valid checksum, give an error, or numbers that the trace has.
    #[test]
    fn hostile_states_are_refused_or_finished(
        which in 0..ARGUMENTS.len(), at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        static SAVED: OnceLock<Vec<(Registered, &str, Vec<u8>)>> = OnceLock::new();
        let (known, arguments, state) = &SAVED.get_or_init(saved)[which];
        let mut state = state.clone();
        let begin = HEAD + at.index(state.len() - HEAD);
        let end = (begin + bytes.len()).min(state.len());
        state.splice(begin..end, bytes);
        let sum = crc32fast::hash(&state[HEAD..]);
        state[HEAD - 4..HEAD].copy_from_slice(&sum.to_le_bytes());
        let mut merged = Merged::default();
        let view = recorded().view();
        if let Ok(mut loaded) = self::begin(known, arguments).load(&state, &mut merged, &view)
            && let Ok(again) = self::begin(known, arguments).load(&state, &mut merged, &view) {
            loaded.merge(again);
            loaded.finish(&View { cells: merged.cells(), ..view });
        }
    }
}

/// Bytes in front of what the sum is of.
const HEAD: usize = 14;

#[test]
fn unknown_arguments_are_refused() {
    let refused = known("shared").begin(&Arguments::one("most", 1)).err().expect("refused");
    assert_eq!(refused.0, "shared has no argument `most`; it has least, ratio, rule");
    let refused = known("strides").begin(&Arguments::one("most", 1)).err().expect("refused");
    assert_eq!(refused.0, "strides has no arguments");
    let refused = known("timeline").begin(&Arguments::one("every", "soon")).err().expect("refused");
    assert!(refused.0.contains("such as 500k or 10M"), "{}", refused.0);
}
