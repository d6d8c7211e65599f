//! Causes of misses, use of lines and who evicted them against their definitions, and on traces
//! worked out by hand.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use common::{Event, Naive, cases};
use memlode_simulate::{
    Cause, Detailed, Eviction, Hierarchy, LevelDetail, LevelSpec, MemRef, Straddle, Tag, touch_lines,
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

/// A line of one cache of one level.
type Key = (usize, usize, u64);

/// Figures computed by their definitions.
struct Definitions {
    levels: Vec<LevelSpec>,
    lists: HashMap<(usize, usize), VecDeque<u64>>,
    seen: HashSet<Key>,
    /// Tag of the fetch and bytes touched since.
    held: HashMap<Key, (u32, BTreeSet<u64>)>,
    evicted_by: HashMap<Key, u32>,
    counts: BTreeMap<(usize, u32), LevelDetail>,
    evictions: BTreeMap<(usize, u32, u32), u64>,
}

impl Definitions {
    fn new(levels: &[LevelSpec]) -> Definitions {
        Definitions {
            levels: levels.to_vec(),
            lists: HashMap::new(),
            seen: HashSet::new(),
            held: HashMap::new(),
            evicted_by: HashMap::new(),
            counts: BTreeMap::new(),
            evictions: BTreeMap::new(),
        }
    }

    /// Simulates one line of an access; returns the causes of its misses by level.
    fn line(&mut self, events: &[(Event, usize, usize, u64)], tag: u32) -> BTreeMap<usize, Cause> {
        let mut causes = BTreeMap::new();
        for &(event, level, cache, line) in events {
            let key = (level, cache, line);
            if event == Event::Evicted {
                let (fetched_by, bytes) = self.held.remove(&key).unwrap();
                let used = self.used_bytes(level, &bytes);
                let counts = self.counts.entry((level, fetched_by)).or_default();
                counts.evicted_lines += 1;
                counts.evicted_used_bytes += used;
                self.evicted_by.insert(key, tag);
                continue;
            }
            let list = self.lists.entry((level, cache)).or_default();
            let found = touch_list(list, lines_of(&self.levels[level]), line);
            let cold = self.seen.insert(key);
            let counts = self.counts.entry((level, tag)).or_default();
            if event == Event::Hit {
                counts.spared += u64::from(!found);
                continue;
            }
            self.held.insert(key, (tag, BTreeSet::new()));
            counts.fetched_bytes += u64::from(self.levels[level].line_bytes);
            if !cold {
                *self.evictions.entry((level, tag, self.evicted_by[&key])).or_default() += 1;
            }
            let cause = if cold {
                Cause::Cold
            } else if found {
                Cause::Conflict
            } else {
                Cause::Capacity
            };
            causes.insert(level, cause);
        }
        causes
    }

    /// Bytes of a level, counted in parts of 1/64 of a line.
    fn used_bytes(&self, level: usize, bytes: &BTreeSet<u64>) -> u64 {
        let grain = u64::from(self.levels[level].line_bytes).div_ceil(64);
        bytes.iter().map(|byte| byte / grain).collect::<BTreeSet<_>>().len() as u64 * grain
    }

    /// Counts every fetch that has not ended.
    fn finish(&mut self) {
        for ((level, _, _), (tag, bytes)) in std::mem::take(&mut self.held) {
            let used = self.used_bytes(level, &bytes);
            let counts = self.counts.entry((level, tag)).or_default();
            counts.resident_lines += 1;
            counts.resident_used_bytes += used;
        }
        self.counts.retain(|_, counts| *counts != LevelDetail::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn details_are_as_defined((levels, cores, trace) in cases()) {
        let mut naive = Naive::new(&levels, cores, Straddle::Apart);
        let mut definitions = Definitions::new(&levels);
        let mut detailed = Detailed::new(Hierarchy::new(&levels, cores).unwrap());
        for (i, a) in trace.iter().enumerate() {
            let tag = i as u32 % 5;
            let mut causes: BTreeMap<usize, Cause> = BTreeMap::new();
            let mut depth = 0;
            // Line by line, as the lines of an access are asked for one after the other.
            for (address, bytes) in touch_lines(a.address, a.bytes.into(), levels[0].line_bytes) {
                naive.events.clear();
                depth = depth.max(naive.access(a.core, address, bytes, a.write));
                for (level, cause) in definitions.line(&naive.events, tag) {
                    causes.entry(level).or_insert(cause);
                }
                for (level, spec) in levels.iter().enumerate() {
                    let key = (level, a.core / spec.shared_by as usize, address / u64::from(spec.line_bytes));
                    if let Some((_, touched)) = definitions.held.get_mut(&key) {
                        touched.extend((0..u64::from(bytes)).map(|byte| address + byte));
                    }
                }
            }
            for (level, cause) in &causes {
                let counts = definitions.counts.entry((*level, tag)).or_default();
                match cause {
                    Cause::Cold => counts.cold += 1,
                    Cause::Capacity => counts.capacity += 1,
                    Cause::Conflict => counts.conflict += 1,
                    Cause::HeldElsewhere | Cause::TrueSharing | Cause::FalseSharing => unreachable!("no coherence"),
                }
            }
            let outcome = detailed.access(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(tag));
            prop_assert_eq!(outcome.depth, depth);
            prop_assert_eq!(outcome.causes().collect::<Vec<_>>(), causes.into_values().collect::<Vec<_>>());
        }
        let counters = detailed.counters();
        let details = detailed.finish();
        for (level, counters) in counters.iter().enumerate() {
            let causes = details.levels.iter().map(|of| of[level].cold + of[level].capacity + of[level].conflict);
            prop_assert_eq!(causes.sum::<u64>(), counters.read_misses + counters.write_misses);
        }
        definitions.finish();
        let found = details.levels.iter().enumerate().flat_map(|(tag, levels)| {
            levels.iter().enumerate().map(move |(level, counts)| ((level, tag as u32), *counts))
        });
        let found: BTreeMap<_, _> = found.filter(|(_, counts)| *counts != LevelDetail::default()).collect();
        prop_assert_eq!(found, definitions.counts);
        let found = details.evictions.iter().enumerate().flat_map(|(level, evictions)| {
            evictions.iter().map(move |e| ((level, e.tag.number(), e.by.number()), e.misses))
        });
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), definitions.evictions);
    }
}

fn level(sets: u64, ways: u32) -> LevelSpec {
    LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by: 1 }
}

/// Two sets of one way. Lines 0 and 2 fight for set 0 although the cache holds two lines: conflict.
/// With lines 0, 1 and 2 in turn, 0 and 2 would not have stayed in a fully associative cache
/// either: capacity. Line 1, alone in its set, stays where full associativity would lose it:
/// spared.
#[test]
fn the_three_causes() {
    use Cause::{Capacity, Cold, Conflict};
    let mut detailed = Detailed::new(Hierarchy::new(&[level(2, 1)], 1).unwrap());
    let mut causes_of = |lines: &[u64]| -> Vec<Option<Cause>> {
        // The tag is the line.
        let access =
            |line: &u64| detailed.access(MemRef::read(0, line * 64, 8).tagged(*line as u32)).causes().next();
        lines.iter().map(access).collect()
    };
    assert_eq!(causes_of(&[0, 2, 0, 2]), [Some(Cold), Some(Cold), Some(Conflict), Some(Conflict)]);
    assert_eq!(causes_of(&[1, 0, 2]), [Some(Cold), Some(Capacity), Some(Capacity)]);
    assert_eq!(causes_of(&[1, 0, 2]), [None, Some(Capacity), Some(Capacity)]);
    let details = detailed.finish();
    let of = |tag: usize| {
        let LevelDetail { cold, capacity, conflict, spared, .. } = details.levels[tag][0];
        (cold, capacity, conflict, spared)
    };
    assert_eq!([of(0), of(1), of(2)], [(1, 2, 1, 0), (1, 0, 0, 1), (1, 2, 1, 0)]);
    // 0 and 2 pushed each other out.
    let pushed = |tag, by| Eviction { tag: Tag::new(tag), by: Tag::new(by), misses: 3 };
    assert_eq!(details.evictions, [[pushed(0, 2), pushed(2, 0)]]);
}

/// 64 arcs of 56 bytes, of which 8 are read, through a cache of 8 lines: of the 64-byte lines
/// fetched most hold one hot field, some two. Read as an array of the 8 bytes alone, every line is
/// used whole.
#[test]
fn a_hot_field_wastes_most_of_each_line() {
    let used = |stride: u64, count: u64| {
        let mut detailed = Detailed::new(Hierarchy::new(&[level(2, 4)], 1).unwrap());
        for i in 0..count {
            detailed.access(MemRef::read(0, i * stride, 8).tagged(7));
        }
        detailed.finish().levels[7][0]
    };
    // Bytes 0..3584 are 56 lines; each of the 64 fields lies in one line.
    let scattered = LevelDetail {
        cold: 56,
        fetched_bytes: 56 * 64,
        evicted_lines: 48,
        evicted_used_bytes: 55 * 8,
        resident_lines: 8,
        resident_used_bytes: 9 * 8,
        ..LevelDetail::default()
    };
    assert_eq!(used(56, 64), scattered);
    // 64 × 8 bytes are 8 lines, none of which had to leave.
    let dense = LevelDetail {
        cold: 8,
        fetched_bytes: 512,
        resident_lines: 8,
        resident_used_bytes: 512,
        ..LevelDetail::default()
    };
    assert_eq!(used(8, 64), dense);
}
