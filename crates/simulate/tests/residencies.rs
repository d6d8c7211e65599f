//! Stays of lines that are followed, against a plain model of the caches; and caches that follow
//! lines answer as others do.

mod common;

use std::collections::{BTreeMap, HashMap};

use common::{Event, Naive, cases};
use memlode_simulate::{Hierarchy, MemRef, Straddle, Tag, touch_lines};
use proptest::prelude::*;

/// The stays of a line in a core's first level: how deep each fetch went, and which bytes were
/// touched then.
type Residencies = BTreeMap<(u32, u64), Vec<(u8, u64)>>;

/// Answers by tag and depth.
type Told = BTreeMap<(Tag, u8), u64>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn stays_are_as_seen_by_a_plain_model(
        (mut levels, cores, trace) in cases(),
        sets in prop::sample::select(vec![1u64, 2, 4, 8]),
        one_of in prop::sample::select(vec![1u64, 3]),
    ) {
        // Lines of one size, and a first level that can be followed.
        let line_bytes = levels[0].line_bytes.max(8);
        for level in &mut levels {
            level.bytes = level.bytes / u64::from(level.line_bytes) * u64::from(line_bytes);
            level.line_bytes = line_bytes;
        }
        (levels[0].bytes, levels[0].shared_by) = (sets * u64::from(levels[0].ways * line_bytes), 1);
        let empty = Hierarchy::new(&levels, cores).unwrap();
        let (mut plain, mut following) = (empty.clone(), empty.with_residencies(one_of));
        let (mut told, mut told_following) = (Told::new(), Told::new());
        let mut naive = Naive::new(&levels, cores, Straddle::Apart);
        let mut seen = Residencies::new();
        let mut last: HashMap<(u32, u64), (usize, u32)> = HashMap::new();
        for (number, access) in trace.iter().enumerate() {
            for (address, bytes) in touch_lines(access.address, access.bytes.into(), line_bytes) {
                let key = (access.core as u32, address / u64::from(line_bytes) * u64::from(line_bytes));
                naive.events.clear();
                naive.access(access.core, address, bytes, access.write);
                let missed = |(event, ..): &&(Event, usize, usize, u64)| *event == Event::Miss;
                let depth = naive.events.iter().filter(missed).count() as u8;
                let residencies = seen.entry(key).or_default();
                if depth > 0 {
                    residencies.push((depth, 0));
                    last.insert(key, (residencies.len() - 1, 0));
                }
                let (residency, accesses) = last.get_mut(&key).unwrap();
                *accesses += 1;
                let grain = u64::from(line_bytes).div_ceil(64);
                // What was hit often is left alone until it is fetched again.
                for byte in 0..u64::from(if *accesses <= 128 { bytes } else { 0 }) {
                    residencies[*residency].1 |= 1 << ((address + byte - key.1) / grain);
                }
            }
            let access = MemRef::read(access.core, access.address, access.bytes).writing(access.write);
            let access = access.tagged(number as u32 % 7);
            let hits = plain.access_later(access);
            prop_assert_eq!(following.access_later(access), hits);
            if number % 97 == 0 {
                plain.settle(|tag, depth, times| *told.entry((tag, depth)).or_default() += times);
                following.settle(|tag, depth, times| *told_following.entry((tag, depth)).or_default() += times);
            }
        }
        plain.settle(|tag, depth, times| *told.entry((tag, depth)).or_default() += times);
        following.settle(|tag, depth, times| *told_following.entry((tag, depth)).or_default() += times);
        prop_assert_eq!(told, told_following);
        prop_assert_eq!(plain.counters(), following.counters());
        let mut found = Residencies::new();
        for residency in following.residencies().residencies {
            found.entry((residency.core, residency.line)).or_default().push((residency.depth, residency.touched));
        }
        // Of too many, some are given up: of a line all or none.
        if one_of > 1 || seen.values().map(Vec::len).sum::<usize>() > 4096 {
            seen.retain(|key, _| found.contains_key(key));
        }
        prop_assert_eq!(found, seen);
    }
}

/// With more residencies than are kept, those of the remaining lines are all there, for any shards.
#[test]
fn shards_give_up_the_lines_that_one_would() {
    let level = |sets: u64| memlode_simulate::LevelSpec {
        bytes: sets * 2 * 64,
        ways: 2,
        line_bytes: 64,
        shared_by: 1,
    };
    let empty = Hierarchy::new(&[level(8), level(64)], 1).unwrap().with_residencies(2);
    let mut alone = empty.clone();
    let mut shards = [empty.clone(), empty];
    for iteration in 0..3 {
        for line in 0..100_000u64 {
            let access = MemRef::read(0, line * 64 + iteration * 8, 8);
            alone.access_later(access);
            shards[(line % 2) as usize].access_later(access);
            if line % 200 == 0 {
                alone.settle(|_, _, _| {});
                shards.iter_mut().for_each(|shard| shard.settle(|_, _, _| {}));
            }
        }
    }
    alone.settle(|_, _, _| {});
    shards.iter_mut().for_each(|shard| shard.settle(|_, _, _| {}));
    let by_line = |residencies: memlode_simulate::Followed| {
        let mut lines: BTreeMap<u64, Vec<(u8, u64)>> = BTreeMap::new();
        residencies.residencies.iter().for_each(|residency| {
            lines.entry(residency.line).or_default().push((residency.depth, residency.touched))
        });
        lines
    };
    let [mut both, second] = shards.map(|shard| shard.residencies());
    both.add(second);
    let alone = by_line(alone.residencies());
    assert_eq!(by_line(both), alone);
    // One of 128 is left: one of 64 would be more stays than there is room for.
    assert!((700..900).contains(&alone.len()), "{}", alone.len());
    assert!(alone.values().all(|residencies| *residencies == [(2, 0xff), (2, 0xff00), (2, 0xff_0000)]));
}
