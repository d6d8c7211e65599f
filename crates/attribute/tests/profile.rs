//! Hand-made batches with results worked out by hand.

mod common;

use common::site;
use memlode_attribute::LoadedGlobal;
use memlode_attribute::{Counts, Home, Profile, Profiler};
use memlode_simulate::{Hierarchy, LevelSpec};
use memlode_trace::calls::Caller;
use memlode_trace::event::{Access, Batch, Frame, Mark, ProcessId, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{FunctionId, Site, SiteId, SiteKind, TypeId};

const LOAD: SiteId = SiteId(0);
const STORE: SiteId = SiteId(1);
const LOCAL: SiteId = SiteId(2);
const ALLOC: SiteId = SiteId(3);
const FREE: SiteId = SiteId(4);

fn sites() -> Vec<Site> {
    vec![
        site(SiteKind::Load, 0),
        site(SiteKind::Store, 0),
        site(SiteKind::Load, flag::STACK),
        site(SiteKind::Alloc, 0),
        site(SiteKind::Free, 0),
    ]
}

/// Two private levels of one line and of four lines: every change of line misses the first.
fn caches(cores: u32) -> Hierarchy {
    let level = |lines: u64, ways| LevelSpec { bytes: 64 * lines, ways, line_bytes: 64, shared_by: 1 };
    Hierarchy::new(&[level(1, 1), level(4, 4)], cores).unwrap()
}

fn batch(process: u32, thread: u32, sequence: u32) -> Batch {
    Batch {
        process: Some(ProcessId(process)),
        thread: Some(ThreadId(thread)),
        sequence,
        stack: vec![Frame { function: FunctionId(0), address: 0x7fff_0000 }],
        ..Batch::default()
    }
}

fn access(site: SiteId, address: u64) -> Access {
    Access { address, bytes: 8, site }
}

/// (home, reads by answering level, writes by answering level), in the order of the cells.
fn cells(profile: &Profile) -> Vec<(Home, [u64; 3], [u64; 3])> {
    let three = |side: [u64; 9]| [side[0], side[1], side[2]];
    let home = |cell: &memlode_attribute::Cell| profile.classes[cell.class.0 as usize].home.clone();
    profile
        .cells
        .iter()
        .map(|cell| (home(cell), three(cell.counts.reads), three(cell.counts.writes)))
        .collect()
}

#[test]
fn accesses_tell_the_type_that_an_allocation_does_not() {
    let mut sites = sites();
    sites[LOAD.0 as usize].ty = Some(TypeId(7));
    // A block of each call path: (loads, stores) of it, and what is believed. Stores name no type.
    for (loads, stores, told, element) in [
        (3, 2, None, (Some(TypeId(7)), true)),
        (2, 2, None, (None, false)),
        (3, 0, Some(TypeId(9)), (Some(TypeId(9)), false)),
        (0, 0, None, (None, false)),
    ] {
        sites[ALLOC.0 as usize].ty = told;
        let mut profiler = Profiler::new(&sites, caches(1));
        let mut only = batch(0, 0, 0);
        only.marks = vec![(0, Mark::Alloc { site: ALLOC, base: 0x1000, count: 1, element_bytes: 64 })];
        only.accesses = [vec![access(LOAD, 0x1000); loads], vec![access(STORE, 0x1008); stores]].concat();
        profiler.observe(&only);
        let profile = profiler.finish();
        let block = profile.classes.iter().find(|class| matches!(class.home, Home::Heap { .. })).unwrap();
        assert_eq!((block.element, block.element_by_use), element, "{loads} loads, {stores} stores");
    }
}

#[test]
fn accesses_go_to_the_object_alive_at_that_moment() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(1));
    let mut first = batch(0, 0, 0);
    first.marks = vec![
        (0, Mark::Enter { function: FunctionId(1), frame: 0x7ffe_ff00, caller: Caller::UNKNOWN }),
        (0, Mark::Alloc { site: ALLOC, base: 0x1000, count: 4, element_bytes: 32 }),
        (3, Mark::Exit { function: FunctionId(1) }),
        (3, Mark::Free { site: FREE, base: 0x1000 }),
        (3, Mark::Alloc { site: ALLOC, base: 0x1040, count: 1, element_bytes: 64 }),
    ];
    first.accesses = vec![
        access(LOAD, 0x1000),  // memory
        access(LOAD, 0x1008),  // first level
        access(STORE, 0x1040), // memory
        access(LOAD, 0x1040),  // first level, of the second block now
        access(LOAD, 0x1000),  // second level; the first block has been overwritten
    ];
    profiler.observe(&first);
    let mut second = batch(0, 0, 1);
    second.accesses = vec![access(LOCAL, 0x7ffe_fff8), access(LOAD, 0x7ffe_fff8)];
    profiler.observe(&second);
    let profile = profiler.finish();

    let home = |home: &Home| match home {
        Home::Heap { site: ALLOC, path, dormant: false } => {
            format!("heap {:?}", profile.paths.functions(*path).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    };
    let counted: Vec<_> =
        cells(&profile).into_iter().map(|(class, reads, writes)| (home(&class), reads, writes)).collect();
    let (first, second) = ("heap [FunctionId(1), FunctionId(0)]", "heap [FunctionId(0)]");
    let stack = "Stack { function: FunctionId(0), variable: None }";
    let mut expected = [
        (first, [1, 0, 1], [0, 0, 0]),
        (first, [0, 0, 0], [0, 0, 1]), // the store
        (second, [1, 0, 0], [0, 0, 0]),
        ("Unknown", [0, 1, 0], [0, 0, 0]), // memory that no block holds any more
        (stack, [0, 0, 1], [0, 0, 0]),     // the local variable
        (stack, [1, 0, 0], [0, 0, 0]),     // the same, reached through a pointer
    ];
    let mut found: Vec<_> =
        counted.iter().map(|(home, reads, writes)| (&home[..], *reads, *writes)).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let objects: Vec<_> = profile.classes.iter().map(|class| (class.objects, class.bytes)).collect();
    assert!(objects.contains(&(1, 128)) && objects.contains(&(1, 64)), "{objects:?}");
    let misses: Vec<_> = profile.levels.iter().map(|l| l.read_misses + l.write_misses).collect();
    assert_eq!(misses, [4, 3]);
}

#[test]
fn ranges_count_once_a_line() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(1));
    let mut copy = batch(0, 0, 0);
    copy.accesses = vec![Access { address: 0x1020, bytes: 256, site: STORE }];
    profiler.observe(&copy);
    let profile = profiler.finish();
    assert_eq!(cells(&profile), [(Home::Unknown, [0, 0, 0], [0, 0, 5])]);
}

#[test]
fn processes_share_addresses_but_neither_lines_nor_objects() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(1));
    let global = |process: u32| LoadedGlobal {
        address: 0x4000,
        bytes: 8,
        symbol: format!("g{process}"),
        image: "a.out".to_string(),
    };
    for process in 0..2 {
        profiler.add_globals(ProcessId(process), [global(process)]);
        let mut one = batch(process, process, 0);
        one.accesses = vec![access(LOAD, 0x4000)];
        profiler.observe(&one);
    }
    let profile = profiler.finish();
    let symbols: Vec<_> = cells(&profile).into_iter().map(|(home, reads, _)| (home, reads)).collect();
    let home = |process: u32| Home::Global { symbol: format!("g{process}"), image: "a.out".to_string() };
    assert_eq!(symbols, [(home(0), [0, 0, 1]), (home(1), [0, 0, 1])]);
}

#[test]
fn threads_have_their_own_cores_and_cells() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(2));
    for (thread, sequence) in [(0, 0), (1, 0), (0, 1), (2, 0)] {
        let mut one = batch(0, thread, sequence);
        one.accesses = vec![access(LOAD, 0x4000)];
        profiler.observe(&one);
    }
    let profile = profiler.finish();
    let counted: Vec<_> = profile
        .cells
        .iter()
        .map(|cell| (cell.thread.0, cell.counts.reads[0], cell.counts.reads[2]))
        .collect();
    // Thread 2 runs on core 0 again, where thread 0 has left the line.
    assert_eq!(counted, [(0, 1, 1), (1, 0, 1), (2, 1, 0)]);
}

#[test]
fn a_gap_in_the_stream_takes_the_stack_from_the_snapshot() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(1));
    let mut first = batch(0, 0, 0);
    first.marks =
        vec![(0, Mark::Enter { function: FunctionId(7), frame: 0x7ffe_0000, caller: Caller::UNKNOWN })];
    profiler.observe(&first);
    let mut later = batch(0, 0, 5);
    later.marks = vec![(0, Mark::Alloc { site: ALLOC, base: 0x1000, count: 1, element_bytes: 8 })];
    later.accesses = vec![access(LOAD, 0x1000)];
    profiler.observe(&later);
    let profile = profiler.finish();
    let Home::Heap { path, .. } = profile.classes[profile.cells[0].class.0 as usize].home else {
        panic!("not a heap object")
    };
    assert_eq!(profile.paths.functions(path).collect::<Vec<_>>(), [FunctionId(0)]);
}

#[test]
fn stall_cycles_charge_the_level_that_answered() {
    let mut counts = Counts::default();
    for (depth, is_write) in [(0, false), (1, false), (2, true), (2, true)] {
        counts.add(depth, is_write, 1);
    }
    assert_eq!(counts.accesses(), 4);
    assert_eq!([counts.misses(0), counts.misses(1)], [3, 2]);
    assert_eq!(counts.stall_cycles(&[4, 14, 200]), 10 + 2 * 196);
}

#[test]
fn sizes_beyond_all_memory_do_no_harm() {
    let sites = sites();
    let mut profiler = Profiler::new(&sites, caches(1));
    let mut first = batch(0, 0, 0);
    let block = |base| Mark::Alloc { site: ALLOC, base, count: u64::MAX, element_bytes: u64::MAX };
    first.marks = vec![(0, block(0x1000)), (0, block(u64::MAX)), (0, block(0x2000))];
    first.accesses = vec![access(LOAD, 0x1000), access(LOAD, u64::MAX)];
    profiler.observe(&first);
    let profile = profiler.finish();
    assert_eq!(profile.classes.iter().map(|class| class.objects).max(), Some(3));
}

#[test]
fn a_block_that_one_resource_passes_on_from_another_is_one() {
    let sites = sites();
    let enter =
        |function, frame| (0, Mark::Enter { function: FunctionId(function), frame, caller: Caller::UNKNOWN });
    let exit = |function| (0, Mark::Exit { function: FunctionId(function) });
    let made = (0, Mark::Alloc { site: ALLOC, base: 0x1000, count: 1, element_bytes: 64 });
    let freed = (0, Mark::Free { site: FREE, base: 0x1000 });
    // `allocate` (1) asks a resource (2), which asks another one by `allocate`.
    let inner = [enter(1, 0x7ffe_f000), enter(2, 0x7ffe_e000), enter(1, 0x7ffe_d000), made, exit(1), exit(2)];
    let mut passed_on = inner.to_vec();
    passed_on.extend([made, exit(1), freed]);
    let mut ended_between = inner.to_vec();
    ended_between.extend([freed, made, exit(1)]);
    // Whoever frees it is not recorded: each call makes one.
    let each = [enter(1, 0x7ffe_f000), made, exit(1)];
    for (marks, blocks) in [(passed_on.repeat(3), 3), (ended_between.repeat(3), 6), (each.repeat(3), 3)] {
        let mut profiler = Profiler::new(&sites, caches(1));
        profiler.observe(&Batch { marks, ..batch(0, 0, 0) });
        let profile = profiler.finish();
        let heap = profile.classes.iter().filter(|class| matches!(class.home, Home::Heap { .. }));
        assert_eq!(
            heap.map(|class| (class.objects, class.bytes)).collect::<Vec<_>>(),
            [(blocks, 64 * blocks)]
        );
    }
}
