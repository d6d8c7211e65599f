//! Small traces with answers worked out by hand.

use memlode_simulate::{Hierarchy, ImpossibleHierarchy, LevelCounters, LevelSpec, MemRef, Problem, Straddle};

fn level(sets: u64, ways: u32, shared_by: u32) -> LevelSpec {
    LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by }
}

/// Line `n`, first byte.
fn line(n: u64) -> u64 {
    n * 64
}

/// Depths of reads of whole lines by core 0.
fn depths(caches: &mut Hierarchy, lines: &[u64]) -> Vec<u8> {
    lines.iter().map(|n| caches.access(MemRef::read(0, line(*n), 8))).collect()
}

/// Two ways, one set: A B A C B. C evicts B, since A is younger; B then evicts A.
#[test]
fn least_recently_used_goes() {
    let mut caches = Hierarchy::new(&[level(1, 2, 1)], 1).unwrap();
    assert_eq!(depths(&mut caches, &[0, 1, 0, 2, 1, 0]), [1, 1, 0, 1, 1, 1]);
    assert_eq!(depths(&mut caches, &[1, 0]), [0, 0]);
}

/// A loop over one line more than there are ways misses always: LRU's worst case.
#[test]
fn cyclic_overflow_misses_every_time() {
    let mut caches = Hierarchy::new(&[level(1, 4, 1), level(1, 8, 1)], 1).unwrap();
    let round = [0, 1, 2, 3, 4];
    assert_eq!(depths(&mut caches, &round), [2; 5]);
    for _ in 0..3 {
        assert_eq!(depths(&mut caches, &round), [1; 5]);
    }
}

/// Three sets: lines 0, 3 and 6 meet; 1 and 2 do not meet them.
#[test]
fn sets_need_not_be_a_power_of_two() {
    let mut caches = Hierarchy::new(&[level(3, 2, 1)], 1).unwrap();
    assert_eq!(depths(&mut caches, &[0, 3, 1, 2, 0, 6, 3, 1, 2]), [1, 1, 1, 1, 0, 1, 1, 0, 0]);
}

/// A level is asked only after a miss inside it, so a line kept alive in the first level ages in
/// the second, drops out there, and is not taken from the first (non-inclusive).
#[test]
fn inner_hits_do_not_refresh_outer_levels() {
    // First level: 2 sets × 1 way; second: 1 set × 2 ways.
    let mut caches = Hierarchy::new(&[level(2, 1, 1), level(1, 2, 1)], 1).unwrap();
    assert_eq!(depths(&mut caches, &[0, 1, 0, 3, 0]), [2, 2, 0, 2, 0]);
    // Line 3 pushed 0 out of the second level; 2 takes 0's place in the first.
    assert_eq!(depths(&mut caches, &[2, 0]), [2, 2]);
}

/// Cores 0 and 1 share the second level, core 2 has another.
#[test]
fn what_one_core_fetched_another_finds_in_the_shared_level() {
    let mut caches = Hierarchy::new(&[level(4, 2, 1), level(16, 4, 2)], 3).unwrap();
    assert_eq!(caches.access(MemRef::read(0, line(5), 8)), 2);
    assert_eq!(caches.access(MemRef::read(1, line(5), 8)), 1);
    assert_eq!(caches.access(MemRef::read(2, line(5), 8)), 2);
    assert_eq!(caches.access(MemRef::read(1, line(5), 8)), 0);
}

/// An access over lines 1 and 2 when the first level holds line 1 only, and the second level (one
/// set of two ways, shared with core 1) holds 9 and, less recent, 1. It counts once everywhere.
/// Apart, only 2 is asked for outside and pushes out 1; together, 1 is looked up as well and 2
/// pushes out 9.
#[test]
fn a_straddling_access_misses_once() {
    let levels = [level(4, 2, 1), level(1, 2, 2)];
    for (straddle, depth_of_line_1) in [(Straddle::Apart, 2), (Straddle::Together, 1)] {
        let mut caches = Hierarchy::new(&levels, 2).unwrap().with_straddle(straddle);
        assert_eq!(depths(&mut caches, &[1, 9]), [2, 2]);
        assert_eq!(caches.access(MemRef::write(0, line(2) - 4, 8)), 2);
        let counters = caches.counters();
        assert_eq!((counters[0].writes, counters[0].write_misses), (1, 1));
        assert_eq!((counters[1].writes, counters[1].write_misses), (1, 1));
        assert_eq!(caches.access(MemRef::read(1, line(1), 8)), depth_of_line_1, "{straddle:?}");
    }
}

/// Copy-back with write-allocate: a dirty line that is replaced goes to the next level that holds
/// it, a clean one is dropped. One set in each level, of two and of three ways; `*` marks dirty
/// lines.
///
/// ```text
///  access    level 1   level 2    what leaves
///  write A   A*        A
///  read  B   B A*      B A
///  read  C   C B       C B A*     A* leaves 1 and makes the copy in 2 dirty
///  read  D   D C       D C B      A* leaves 2
///  write C   C* D      D C B
///  read  E   E C*      E D C
///  read  F   F E       F E D      C* leaves 1, then 2
///  write F   F* E      F E D
///  read  D   D F*      D F E
///  read  F   F* D      D F E
///  read  G   G F*      G D F
///  read  F   F* G      G D F
///  read  H   H F*      H G D      F leaves 2, clean there, and stays in 1
///  read  I   I H       I H G      F* leaves 1, and passes 2, which does not hold it
/// ```
#[test]
fn dirty_lines_are_written_back_once() {
    let mut caches = Hierarchy::new(&[level(1, 2, 1), level(1, 3, 1)], 1).unwrap();
    let steps = [
        // access, depth, write-backs so far past level 1 and past level 2
        ("write A", 2, 0, 0),
        ("read B", 2, 0, 0),
        ("read C", 2, 1, 0),
        ("read D", 2, 1, 1),
        ("write C", 0, 1, 1),
        ("read E", 2, 1, 1),
        ("read F", 2, 2, 2),
        ("write F", 0, 2, 2),
        ("read D", 1, 2, 2),
        ("read F", 0, 2, 2),
        ("read G", 2, 2, 2),
        ("read F", 0, 2, 2),
        ("read H", 2, 2, 2),
        ("read I", 2, 3, 3),
    ];
    for (i, (access, depth, past_1, past_2)) in steps.into_iter().enumerate() {
        let name = access.as_bytes()[access.len() - 1];
        let found = caches.access(MemRef::read(0, line(name.into()), 8).writing(access.starts_with("write")));
        let counters = caches.counters();
        let found = (found, counters[0].write_backs, counters[1].write_backs);
        assert_eq!(found, (depth, past_1, past_2), "step {i}, {access}");
    }
}

#[test]
fn nothing_is_touched_by_no_bytes_and_nothing_lies_behind_the_last_address() {
    let mut caches = Hierarchy::new(&[level(4, 2, 1)], 1).unwrap();
    assert_eq!(caches.access(MemRef::write(0, 0, 0)), 0);
    assert_eq!(caches.access(MemRef::write(0, 100, 0)), 0);
    assert_eq!(caches.counters(), [LevelCounters::default()]);
    assert_eq!(caches.access(MemRef::read(0, u64::MAX, u32::MAX)), 1);
    assert_eq!(caches.access(MemRef::read(0, u64::MAX - 63, 64)), 0);
    assert_eq!(caches.access(MemRef::read(0, 0, 1)), 1);
}

#[test]
fn impossible_hierarchies_are_refused() {
    let good = level(64, 8, 1);
    let refused = |levels: &[LevelSpec], cores| Hierarchy::new(levels, cores).err().expect("refused");
    let problem = |spec: LevelSpec| match refused(&[good, spec], 2) {
        ImpossibleHierarchy::Level { level: 2, problem } => problem,
        other => panic!("{other}"),
    };
    assert_eq!(refused(&[], 1), ImpossibleHierarchy::LevelCount(0));
    assert_eq!(refused(&[good; 9], 1), ImpossibleHierarchy::LevelCount(9));
    assert_eq!(refused(&[good], 0), ImpossibleHierarchy::NoCores);
    assert_eq!(problem(LevelSpec { ways: 0, ..good }), Problem::Ways);
    assert_eq!(problem(LevelSpec { line_bytes: 0, ..good }), Problem::Line(0));
    assert_eq!(problem(LevelSpec { line_bytes: 48, ..good }), Problem::Line(48));
    assert_eq!(problem(LevelSpec { line_bytes: 32, ..good }), Problem::LineShrinks(32, 64));
    assert_eq!(problem(LevelSpec { shared_by: 0, ..good }), Problem::SharedByNone);
    assert_eq!(problem(LevelSpec { bytes: 0, ..good }), Problem::Size { bytes: 0, ways: 8, line_bytes: 64 });
    let odd = good.bytes + 64;
    assert_eq!(
        problem(LevelSpec { bytes: odd, ..good }),
        Problem::Size { bytes: odd, ways: 8, line_bytes: 64 }
    );
    assert_eq!(
        refused(&[LevelSpec { shared_by: 2, ..good }, LevelSpec { shared_by: 3, ..good }], 6),
        ImpossibleHierarchy::Level { level: 2, problem: Problem::Sharing(3, 2) }
    );
    let vast = LevelSpec { bytes: 1 << 50, ways: 1 << 20, ..good };
    assert!(matches!(refused(&[vast], 1), ImpossibleHierarchy::TooManyLines(_)));
    assert!(matches!(refused(&[good], u32::MAX), ImpossibleHierarchy::TooManyLines(_)));
}

#[test]
fn shard_bits_are_those_common_to_all_levels() {
    let bits = |levels: &[LevelSpec]| Hierarchy::new(levels, 1).unwrap().shard_bits();
    assert_eq!(bits(&[level(64, 8, 1), level(1024, 16, 1)]), 6..12);
    assert_eq!(bits(&[level(64, 8, 1), level(7 << 13, 11, 1)]), 6..12);
    assert_eq!(bits(&[level(64, 8, 1), level(12, 4, 1)]), 6..8);
    assert_eq!(bits(&[level(64, 8, 1), level(7, 4, 1)]), 6..6);
    let wide = LevelSpec { bytes: 256 * 128, ways: 8, line_bytes: 128, shared_by: 1 };
    assert_eq!(bits(&[level(64, 8, 1), wide]), 7..12);
}
