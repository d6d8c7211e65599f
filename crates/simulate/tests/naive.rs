//! The simulator against the naive model, access by access, over random hierarchies and traces.

mod common;

use common::{Naive, NaiveCache, cases};
use memlode_simulate::{Cache, Hierarchy, LevelCounters, LevelSpec, MemRef, Straddle};
use proptest::prelude::*;

fn add(sum: &mut [LevelCounters], part: &[LevelCounters]) {
    for (sum, part) in sum.iter_mut().zip(part) {
        sum.reads += part.reads;
        sum.writes += part.writes;
        sum.read_misses += part.read_misses;
        sum.write_misses += part.write_misses;
        sum.write_backs += part.write_backs;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_access_goes_as_deep_as_in_the_naive_model(
        (levels, cores, trace) in cases(),
        together in any::<bool>(),
    ) {
        let straddle = if together { Straddle::Together } else { Straddle::Apart };
        let mut naive = Naive::new(&levels, cores, straddle);
        let mut caches = Hierarchy::new(&levels, cores).unwrap().with_straddle(straddle);
        for (i, a) in trace.iter().enumerate() {
            let expected = naive.access(a.core, a.address, a.bytes, a.write);
            prop_assert_eq!(caches.access(MemRef::read(a.core, a.address, a.bytes).writing(a.write)), expected, "access {} {:?}", i, a);
        }
        prop_assert_eq!(caches.counters(), naive.counters);
    }

    /// Misses that wait get the results that they would have got at once.
    #[test]
    fn misses_may_wait((levels, cores, trace) in cases(), most in 1usize..100) {
        let mut naive = Naive::new(&levels, cores, Straddle::Apart);
        let mut caches = Hierarchy::new(&levels, cores).unwrap();
        let mut depths = vec![0; trace.len()];
        for (i, a) in trace.iter().enumerate() {
            let hit = caches.access_later(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(i as u32));
            let expected = naive.access(a.core, a.address, a.bytes, a.write);
            prop_assert_eq!(hit, expected == 0, "access {} {:?}", i, a);
            depths[i] = expected;
            if caches.waiting() >= most || i + 1 == trace.len() {
                caches.settle(|tag, depth, _| depths[tag.index()] = depths[tag.index()].wrapping_sub(depth));
            }
        }
        prop_assert!(depths.iter().all(|&left| left == 0), "{:?}", depths);
        prop_assert_eq!(caches.counters(), naive.counters);
    }

    #[test]
    fn a_cache_keeps_and_drops_the_same_lines(
        sets in 1u64..20,
        ways in 1u32..=40,
        from in prop_oneof![Just(0), Just(40)],
        far in 0..3,
        trace in prop::collection::vec((0u64..600, any::<bool>(), 0u8..10), 1..2000),
    ) {
        let spec = LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by: 1 };
        let mut naive = NaiveCache::new(&spec);
        let mut cache = Cache::new(&spec).unwrap();
        for (line, write, what) in trace {
            // Line numbers from both ends of what an address can give, and of what narrow entries can.
            let line = match far {
                0 => from + line,
                1 if line % 32 == 1 => (sets << 31) + 20 - line,
                2 if line % 2 == 1 => (1 << 58) - line,
                _ => from + line,
            };
            if what == 0 {
                prop_assert_eq!(cache.mark_dirty(line), naive.mark_dirty(line));
            } else {
                let touch = cache.touch(line, write);
                let evicted = touch.evicted.map(|evicted| (evicted.line, evicted.dirty));
                prop_assert_eq!((touch.hit, evicted), naive.touch(line, write));
            }
            let set: Vec<_> = cache.set_of(line).map(|entry| (entry.line, entry.dirty)).collect();
            let expected: Vec<_> = naive.content[&(line % sets)].iter().copied().collect();
            prop_assert_eq!(&set, &expected);
            prop_assert_eq!(cache.holds(line), set.iter().any(|(held, _)| *held == line));
        }
    }

    /// The sharding law: pieces by the value of the shard bits, simulated separately, add up to the
    /// whole run.
    #[test]
    fn shards_add_up((levels, cores, trace) in cases()) {
        let mut whole = Hierarchy::new(&levels, cores).unwrap();
        let bits = whole.shard_bits();
        let shards = 1usize << bits.len().min(4);
        let mut pieces = vec![Hierarchy::new(&levels, cores).unwrap(); shards];
        let mut sum = vec![LevelCounters::default(); levels.len()];
        for a in &trace {
            // Single bytes: no access straddles pieces.
            let depth = whole.access(MemRef::read(a.core, a.address, 1).writing(a.write));
            let piece = (a.address >> bits.start) as usize & (shards - 1);
            prop_assert_eq!(pieces[piece].access(MemRef::read(a.core, a.address, 1).writing(a.write)), depth);
        }
        for piece in &pieces {
            add(&mut sum, &piece.counters());
        }
        prop_assert_eq!(sum, whole.counters());
    }
}
