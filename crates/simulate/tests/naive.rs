//! The simulator against the naive model, access by access, over random hierarchies and traces.

mod common;

use common::{Naive, NaiveCache};
use memlode_simulate::{Cache, Hierarchy, LevelCounters, LevelSpec, Straddle};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Access {
    core: usize,
    address: u64,
    bytes: u32,
    write: bool,
}

/// 1 to 4 levels: any number of sets, 1 to 40 ways (beyond 32 is another code path), lines and groups of
/// cores that grow outwards. Small, so that random traces overflow them.
fn hierarchies() -> impl Strategy<Value = (Vec<LevelSpec>, u32)> {
    let level = (1u64..=24, 1u32..=40, 0u32..=1, 1u32..=2);
    (prop::collection::vec(level, 1..=4), 2u32..=5, 1u32..=5).prop_map(|(shapes, line_shift, cores)| {
        let mut line_bytes = 1 << line_shift;
        let mut shared_by = 1;
        let spec = |(sets, ways, grow, share): (u64, u32, u32, u32)| {
            line_bytes <<= grow;
            shared_by *= share;
            LevelSpec { bytes: sets * u64::from(ways) * u64::from(line_bytes), ways, line_bytes, shared_by }
        };
        (shapes.into_iter().map(spec).collect(), cores)
    })
}

/// Accesses that dwell on a few regions, one of them at the end of the address space.
fn traces(cores: u32, most_bytes: u32) -> impl Strategy<Value = Vec<Access>> {
    let region = prop_oneof![
        Just(0u64),
        Just(0x7fff_ffff_e000),
        Just(u64::MAX - 4095),
        any::<u64>().prop_map(|a| a & !0xfff)
    ];
    let regions = prop::collection::vec((region, prop_oneof![Just(256u64), Just(4096), Just(32768)]), 1..4);
    regions.prop_flat_map(move |regions| {
        let access = (0..regions.len(), any::<u64>(), 0..=most_bytes, any::<bool>(), 0..cores as usize);
        prop::collection::vec(access, 1..1500).prop_map(move |accesses| {
            let place = |(region, offset, bytes, write, core): (usize, u64, u32, bool, usize)| {
                let (base, size) = regions[region];
                Access { core, address: base.saturating_add(offset % size), bytes, write }
            };
            accesses.into_iter().map(place).collect()
        })
    })
}

fn cases() -> impl Strategy<Value = (Vec<LevelSpec>, u32, Vec<Access>)> {
    hierarchies().prop_flat_map(|(levels, cores)| (Just(levels), Just(cores), traces(cores, 40)))
}

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
            prop_assert_eq!(caches.access(a.core, a.address, a.bytes, a.write), expected, "access {} {:?}", i, a);
        }
        prop_assert_eq!(caches.counters(), naive.counters);
    }

    #[test]
    fn a_cache_keeps_and_drops_the_same_lines(
        sets in 1u64..20,
        ways in 1u32..=40,
        trace in prop::collection::vec((0u64..600, any::<bool>(), 0u8..10), 1..2000),
    ) {
        let spec = LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by: 1 };
        let mut naive = NaiveCache::new(&spec);
        let mut cache = Cache::new(&spec).unwrap();
        for (line, write, what) in trace {
            // Line numbers from both ends of what an address can give.
            let line = if line & 1 == 0 { line } else { (1 << 58) - line };
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

    /// The sharding law: pieces by the value of the shard bits, simulated apart, add up to the whole run.
    #[test]
    fn shards_add_up((levels, cores, trace) in cases()) {
        let mut whole = Hierarchy::new(&levels, cores).unwrap();
        let bits = whole.shard_bits();
        let shards = 1usize << bits.len().min(4);
        let mut pieces = vec![Hierarchy::new(&levels, cores).unwrap(); shards];
        let mut sum = vec![LevelCounters::default(); levels.len()];
        for a in &trace {
            // Single bytes: no access straddles pieces.
            let depth = whole.access(a.core, a.address, 1, a.write);
            let piece = (a.address >> bits.start) as usize & (shards - 1);
            prop_assert_eq!(pieces[piece].access(a.core, a.address, 1, a.write), depth);
        }
        for piece in &pieces {
            add(&mut sum, &piece.counters());
        }
        prop_assert_eq!(sum, whole.counters());
    }
}
