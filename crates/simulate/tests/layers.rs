//! Causes of misses and use of lines against their definitions, and on traces worked out by hand.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use common::{Event, Naive, cases};
use memlode_simulate::{
    Cause, CauseCounters, Causes, FullyAssociative, Hierarchy, LevelSpec, LineUse, Straddle, Usage,
    touch_lines,
};
use proptest::prelude::*;

fn lines_of(spec: &LevelSpec) -> usize {
    (spec.bytes / u64::from(spec.line_bytes)) as usize
}

/// A fully associative LRU cache as a list, most recent first. True if the line was there.
fn touch_list(list: &mut VecDeque<u64>, capacity: usize, line: u64) -> bool {
    let place = list.iter().position(|held| *held == line);
    if let Some(place) = place {
        list.remove(place);
    }
    list.push_front(line);
    list.truncate(capacity);
    place.is_some()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn full_associativity_equals_a_list(
        capacity in 1usize..40,
        trace in prop::collection::vec(0u64..60, 1..2000),
    ) {
        let mut list = VecDeque::new();
        let mut full = FullyAssociative::new(capacity as u64);
        for line in trace {
            prop_assert_eq!(full.touch(line), touch_list(&mut list, capacity, line));
        }
    }

    #[test]
    fn causes_are_as_defined((levels, cores, trace) in cases(), together in any::<bool>()) {
        let straddle = if together { Straddle::Together } else { Straddle::Apart };
        let mut naive = Naive::new(&levels, cores, straddle);
        let mut lists: HashMap<(usize, usize), VecDeque<u64>> = HashMap::new();
        let mut seen: HashSet<(usize, usize, u64)> = HashSet::new();
        let mut expected_counters = vec![CauseCounters::default(); levels.len()];

        let mut hierarchy = Hierarchy::new(&levels, cores).unwrap().with_straddle(straddle);
        let mut causes = Causes::new(&hierarchy);
        for a in &trace {
            naive.events.clear();
            let depth = naive.access(a.core, a.address, a.bytes, a.write);
            let mut expected: BTreeMap<usize, Cause> = BTreeMap::new();
            for &(event, level, cache, line) in &naive.events {
                if event == Event::Evicted {
                    continue;
                }
                let found = touch_list(lists.entry((level, cache)).or_default(), lines_of(&levels[level]), line);
                let cold = seen.insert((level, cache, line));
                if event == Event::Hit {
                    expected_counters[level].spared += u64::from(!found);
                    continue;
                }
                let cause = if cold { Cause::Cold } else if found { Cause::Conflict } else { Cause::Capacity };
                expected.entry(level).or_insert(cause);
            }
            for (level, cause) in &expected {
                // Together, an outer level may miss a line that was looked up for another's sake only;
                // the access still missed there.
                let counters = &mut expected_counters[*level];
                match cause {
                    Cause::Cold => counters.cold += 1,
                    Cause::Capacity => counters.capacity += 1,
                    Cause::Conflict => counters.conflict += 1,
                }
            }
            let misses = causes.access(&mut hierarchy, a.core, a.address, a.bytes, a.write);
            prop_assert_eq!(misses.depth, depth);
            prop_assert_eq!(misses.causes().collect::<Vec<_>>(), expected.into_values().collect::<Vec<_>>());
        }
        prop_assert_eq!(causes.counters(), expected_counters);
        for (causes, counters) in causes.counters().iter().zip(hierarchy.counters()) {
            let misses = counters.read_misses + counters.write_misses;
            prop_assert_eq!(causes.cold + causes.capacity + causes.conflict, misses);
        }
    }

    #[test]
    fn use_of_lines_is_as_defined((levels, cores, trace) in cases()) {
        let mut naive = Naive::new(&levels, cores, Straddle::Apart);
        // By level, cache and line: the tag and the bytes touched.
        let mut held: HashMap<(usize, usize, u64), (u32, BTreeSet<u64>)> = HashMap::new();
        let mut expected: BTreeMap<(usize, u32), Usage> = BTreeMap::new();
        // Bytes of a level are told apart down to 1/64 of a line.
        let used_bytes = |level: usize, bytes: &BTreeSet<u64>| {
            let grain = u64::from(levels[level].line_bytes).div_ceil(64);
            bytes.iter().map(|byte| byte / grain).collect::<BTreeSet<_>>().len() as u64 * grain
        };

        let mut hierarchy = Hierarchy::new(&levels, cores).unwrap();
        let mut line_use = LineUse::new(&hierarchy);
        for (i, a) in trace.iter().enumerate() {
            let tag = i as u32 % 5;
            // Line by line, as the lines of an access are asked for one after the other.
            for (address, bytes) in touch_lines(a.address, a.bytes.into(), levels[0].line_bytes) {
                naive.events.clear();
                naive.access(a.core, address, bytes, a.write);
                for &(event, level, cache, line) in &naive.events {
                    if event == Event::Miss {
                        held.insert((level, cache, line), (tag, BTreeSet::new()));
                    } else if event == Event::Evicted {
                        let (tag, bytes) = held.remove(&(level, cache, line)).unwrap();
                        let usage = expected.entry((level, tag)).or_default();
                        usage.evicted_lines += 1;
                        usage.evicted_used_bytes += used_bytes(level, &bytes);
                    }
                }
                for (level, spec) in levels.iter().enumerate() {
                    let cache = a.core / spec.shared_by as usize;
                    let line = address / u64::from(spec.line_bytes);
                    if let Some((_, touched)) = held.get_mut(&(level, cache, line)) {
                        touched.extend((0..u64::from(bytes)).map(|byte| address + byte));
                    }
                }
            }
            line_use.access(&mut hierarchy, a.core, a.address, a.bytes, a.write, tag);
        }
        for ((level, _, _), (tag, bytes)) in &held {
            let usage = expected.entry((*level, *tag)).or_default();
            usage.resident_lines += 1;
            usage.resident_used_bytes += used_bytes(*level, bytes);
        }
        for level in 0..levels.len() {
            let expected: Vec<(u32, Usage)> =
                expected.range((level, 0)..(level + 1, 0)).map(|((_, tag), usage)| (*tag, *usage)).collect();
            prop_assert_eq!(line_use.usage(level), expected, "level {}", level);
        }
    }
}

fn level(sets: u64, ways: u32) -> LevelSpec {
    LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by: 1 }
}

/// Two sets of one way. Lines 0 and 2 fight for set 0 although the cache holds two lines: conflict. With
/// lines 0, 1 and 2 in turn, 0 and 2 would not have stayed in a fully associative cache either: capacity.
/// Line 1, alone in its set, stays where full associativity would lose it: spared.
#[test]
fn the_three_causes() {
    use Cause::{Capacity, Cold, Conflict};
    let mut hierarchy = Hierarchy::new(&[level(2, 1)], 1).unwrap();
    let mut causes = Causes::new(&hierarchy);
    let mut causes_of = |lines: &[u64]| -> Vec<Option<Cause>> {
        let access = |line: &u64| causes.access(&mut hierarchy, 0, line * 64, 8, false).causes().next();
        lines.iter().map(access).collect()
    };
    assert_eq!(causes_of(&[0, 2, 0, 2]), [Some(Cold), Some(Cold), Some(Conflict), Some(Conflict)]);
    assert_eq!(causes_of(&[1, 0, 2]), [Some(Cold), Some(Capacity), Some(Capacity)]);
    assert_eq!(causes_of(&[1, 0, 2]), [None, Some(Capacity), Some(Capacity)]);
    let expected = CauseCounters { cold: 3, capacity: 4, conflict: 2, spared: 1 };
    assert_eq!(causes.counters(), [expected]);
}

/// 64 arcs of 56 bytes, of which 8 are read, through a cache of 8 lines: of the 64-byte lines fetched most
/// hold one hot field, some two. Read as an array of the 8 bytes alone, every line is used whole.
#[test]
fn a_hot_field_wastes_most_of_each_line() {
    let used = |stride: u64, count: u64| {
        let mut hierarchy = Hierarchy::new(&[level(2, 4)], 1).unwrap();
        let mut line_use = LineUse::new(&hierarchy);
        for i in 0..count {
            line_use.access(&mut hierarchy, 0, i * stride, 8, false, 7);
        }
        line_use.usage(0)
    };
    // Bytes 0..3584 are 56 lines; each of the 64 fields lies in one line.
    let scattered = Usage {
        evicted_lines: 48,
        evicted_used_bytes: 55 * 8,
        resident_lines: 8,
        resident_used_bytes: 9 * 8,
    };
    assert_eq!(used(56, 64), [(7, scattered)]);
    // 64 × 8 bytes are 8 lines, none of which had to leave.
    let dense = Usage { resident_lines: 8, resident_used_bytes: 512, ..Usage::default() };
    assert_eq!(used(8, 64), [(7, dense)]);
}
