//! The general model against the naive one, event by event, and the laws that its rules promise.

mod common;
#[path = "oracle/model.rs"]
mod oracle;
#[path = "oracle/rules.rs"]
mod rules;

use common::{Access, cases};
use memlode_simulate::{
    Coherence, Found, Held, Hierarchy, ImpossibleHierarchy, Inclusion, LevelSpec, MemRef, Model, ModelLevel,
    ModelSpec, Prefetch, Problem, Replacement,
};
use oracle::{Event, Log, NaiveModel};
use proptest::prelude::*;
use rules::{rules, spec, walks};

fn held(model: &Model, cache: usize) -> Vec<Held> {
    let mut held: Vec<Held> = model.held(cache).collect();
    held.sort_by_key(|held| held.line);
    held
}

/// Byte ranges of the lines that a cache holds.
fn ranges(model: &Model, level: usize, cache: usize) -> Vec<(u64, u64)> {
    let bytes = u64::from(model.spec().levels[level].shape.line_bytes);
    held(model, cache).iter().map(|held| (held.line * bytes, held.line * bytes + (bytes - 1))).collect()
}

/// Checks the promise of inclusion, for every core's way.
fn check_inclusion(model: &Model) {
    for core in 0..model.spec().cores as usize {
        for (level, rules) in model.spec().levels.iter().enumerate().skip(1) {
            let outer = ranges(model, level, model.cache_of(core, level));
            let covers = |line: &(u64, u64)| outer.iter().any(|out| out.0 <= line.0 && line.1 <= out.1);
            for inner in 0..level {
                let mut lines = ranges(model, inner, model.cache_of(core, inner)).into_iter();
                match rules.inclusion {
                    Inclusion::Inclusive => assert!(lines.all(|line| covers(&line)), "inner ⊆ outer"),
                    // Where inner caches share it, the other one's eviction may bring a line that we still have.
                    Inclusion::Exclusive
                        if inner + 1 == level
                            && model.spec().levels[0].shape.shared_by == rules.shape.shared_by =>
                    {
                        assert!(!lines.any(|line| covers(&line)), "never both");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Checks the promise of MESI: if a core owns a line, no cache off its way has it; and a dirty line
/// in a write-back first level is owned.
fn check_mesi(model: &Model) {
    let cores = model.spec().cores as usize;
    for core in 0..cores {
        let own = model.cache_of(core, 0);
        let bytes = u64::from(model.spec().levels[0].shape.line_bytes);
        for line in held(model, own) {
            assert!(line.owned || !line.dirty, "dirty lines are owned");
            if !line.owned {
                continue;
            }
            let way: Vec<usize> =
                (0..model.spec().levels.len()).map(|level| model.cache_of(core, level)).collect();
            for other in 0..cores {
                for level in 0..model.spec().levels.len() {
                    let cache = model.cache_of(other, level);
                    let address = line.line * bytes;
                    let has = ranges(model, level, cache).iter().any(|(a, b)| (a..=b).contains(&&address));
                    assert!(!has || way.contains(&cache), "line {line:?} of cache {own} is in {cache}");
                }
            }
        }
    }
}

fn run(spec: &ModelSpec, trace: impl IntoIterator<Item = (Access, u32)>) {
    let mut naive = NaiveModel::new(spec);
    let mut model = Model::new(spec).unwrap();
    for (i, (a, tag)) in trace.into_iter().enumerate() {
        let mut log = Log::default();
        naive.log.events.clear();
        let expected = naive.access(a.core, a.address, a.bytes, a.write, tag);
        let outcome = model
            .access_observed(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(tag), &mut log);
        assert_eq!(log.events, naive.log.events, "access {i} {a:?}");
        assert_eq!(outcome, expected, "access {i} {a:?}");
        if i % 64 == 0 {
            check_inclusion(&model);
            if spec.coherence == Coherence::Mesi && spec.levels[0].shape.shared_by < spec.cores {
                check_mesi(&model);
            }
        }
    }
    assert_eq!(model.counters(), naive.counters);
    assert_eq!(model.traffic(), naive.traffic);
    assert_eq!(model.coherence(), naive.coherence);
    assert_eq!(model.prefetch(), naive.prefetch);
    let naive_caches: Vec<_> = naive.caches.iter().flatten().collect();
    for (cache, naive) in naive_caches.iter().enumerate() {
        assert_eq!(held(&model, cache), naive.held(), "cache {cache}");
    }
}

/// One core makes the first accesses (a share in thousandths) before others make any.
fn alone_at_first(mut trace: Vec<(Access, u32)>, thousandths: usize) -> Vec<(Access, u32)> {
    let (first, alone) = (trace.first().map_or(0, |(a, _)| a.core), trace.len() * thousandths / 1000);
    trace[..alone].iter_mut().for_each(|(a, _)| a.core = first);
    trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn all_rules_together_are_as_in_the_naive_model(
        (shapes, cores, trace) in cases(),
        rules in rules(3),
        mesi in any::<bool>(),
        alone in 0usize..1000,
    ) {
        let trace = trace.into_iter().zip((0..7).cycle()).collect();
        run(&spec(&shapes, cores, &rules, mesi), alone_at_first(trace, alone));
    }

    #[test]
    fn prefetchers_are_as_in_the_naive_model(
        ((shapes, cores, _), walks) in cases().prop_flat_map(|case| { let walks = walks(case.1); (Just(case), walks) }),
        rules in rules(15),
        mesi in any::<bool>(),
        alone in 0usize..1000,
    ) {
        run(&spec(&shapes, cores, &rules, mesi), alone_at_first(walks, alone));
    }

    /// Without any of its rules, the model is the hierarchy to the digit.
    #[test]
    fn plain_rules_equal_the_hierarchy((shapes, cores, trace) in cases()) {
        let levels = shapes.iter().map(|shape| ModelLevel::from(*shape)).collect();
        let mut model = Model::new(&ModelSpec::new(levels, cores)).unwrap();
        let mut hierarchy = Hierarchy::new(&shapes, cores).unwrap();
        for a in &trace {
            let (mut log, mut expected) = (Log::default(), Log { of_hierarchy: true, ..Log::default() });
            let depth = hierarchy.access_observed(MemRef::read(a.core, a.address, a.bytes).writing(a.write), &mut expected);
            let outcome = model.access_observed(MemRef::read(a.core, a.address, a.bytes).writing(a.write), &mut log);
            prop_assert_eq!((outcome.depth, log.events), (depth, expected.events));
        }
        prop_assert_eq!(model.counters(), hierarchy.counters());
        prop_assert_eq!(model.shard_bits(), hierarchy.shard_bits());
    }

    /// Coherence takes nothing from a program of one thread.
    #[test]
    fn one_core_alone_needs_no_coherence((shapes, cores, trace) in cases(), rules in rules(0)) {
        let mut with = Model::new(&spec(&shapes, cores, &rules, true)).unwrap();
        let mut without = Model::new(&spec(&shapes, cores, &rules, false)).unwrap();
        for a in &trace {
            let outcome = with.access(MemRef::read(0, a.address, a.bytes).writing(a.write));
            prop_assert_eq!(outcome, without.access(MemRef::read(0, a.address, a.bytes).writing(a.write)));
        }
        prop_assert_eq!(with.counters(), without.counters());
        prop_assert_eq!(with.traffic(), without.traffic());
        prop_assert_eq!(with.coherence(), Default::default());
    }

    /// The sharding law: pieces by the value of the shard bits, simulated separately, add up to the
    /// whole run.
    #[test]
    fn shards_add_up((shapes, cores, trace) in cases(), rules in rules(0), mesi in any::<bool>()) {
        let mut spec = spec(&shapes, cores, &rules, mesi);
        spec.levels.iter_mut().for_each(|level| level.prefetch.clear());
        let mut whole = Model::new(&spec).unwrap();
        let bits = whole.shard_bits();
        let shards = 1usize << bits.len().min(3);
        let mut pieces: Vec<Model> = (0..shards).map(|_| Model::new(&spec).unwrap()).collect();
        for a in &trace {
            let outcome = whole.access(MemRef::read(a.core, a.address, 1).writing(a.write).tagged(3));
            let piece = (a.address >> bits.start) as usize & (shards - 1);
            prop_assert_eq!(pieces[piece].access(MemRef::read(a.core, a.address, 1).writing(a.write).tagged(3)), outcome);
        }
        for (level, traffic) in whole.traffic().iter().enumerate() {
            let invalidations: u64 = pieces.iter().map(|piece| piece.traffic()[level].invalidations).sum();
            let write_backs: u64 = pieces.iter().map(|piece| piece.counters()[level].write_backs).sum();
            prop_assert_eq!(invalidations, traffic.invalidations);
            prop_assert_eq!(write_backs, whole.counters()[level].write_backs);
        }
        let upgrades: u64 = pieces.iter().map(|piece| piece.coherence().upgrades).sum();
        prop_assert_eq!(upgrades, whole.coherence().upgrades);
    }
}

/// The policies one by one, on a cache small enough that each line is fought for.
#[test]
fn each_policy_is_as_in_the_naive_model() {
    use Replacement::{Brrip, Fifo, Lru, Random, Srrip, TreePlru};
    let mut state = 88172645463325252u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for replacement in [Lru, TreePlru, Srrip, Brrip, Fifo, Random] {
        for ways in [1, 2, 4, 8, 16, 128] {
            let shape = LevelSpec { bytes: 3 * 64 * u64::from(ways), ways, line_bytes: 64, shared_by: 1 };
            let level = ModelLevel { replacement, ..ModelLevel::from(shape) };
            let spec = ModelSpec::new(vec![level], 1);
            let lines = u64::from(ways) * 3 * 4 / 3 + 1;
            let access = |line| Access { core: 0, address: line * 64, bytes: 8, write: line % 3 == 0 };
            let trace: Vec<Access> = (0..3000).map(|_| access(random(lines))).collect();
            run(&spec, trace.into_iter().zip(0..));
        }
    }
}

#[test]
fn impossible_rules_are_refused_with_level_and_key() {
    let shape = LevelSpec { bytes: 12 * 64 * 64, ways: 12, line_bytes: 64, shared_by: 1 };
    let plain = ModelLevel::from(shape);
    let refused = |levels: &[ModelLevel]| {
        let spec = ModelSpec::new(levels.to_vec(), 1);
        Model::new(&spec).err().expect("refused")
    };
    let problem = |level, problem| ImpossibleHierarchy::Level { level, problem };
    let tree = ModelLevel { replacement: Replacement::TreePlru, ..plain.clone() };
    let error = refused(&[plain.clone(), tree]);
    assert_eq!(error, problem(2, Problem::TreeWays(12)));
    assert_eq!(
        error.to_string(),
        "cache level 2: `replacement`: tree-plru needs a power of two of ways, not 12"
    );
    for inclusion in [Inclusion::Inclusive, Inclusion::Exclusive] {
        let inner = ModelLevel { inclusion, ..plain.clone() };
        assert_eq!(refused(&[inner]), problem(1, Problem::NothingInside));
    }
    let long = ModelLevel {
        inclusion: Inclusion::Exclusive,
        ..ModelLevel::from(LevelSpec { line_bytes: 128, ..shape })
    };
    assert_eq!(refused(&[plain.clone(), long]), problem(2, Problem::ExclusiveLines));
    let sectored = ModelLevel { inclusion: Inclusion::Exclusive, sector_bytes: Some(32), ..plain.clone() };
    assert_eq!(refused(&[plain.clone(), sectored]), problem(2, Problem::ExclusiveLines));
    for sector in [0, 24, 128] {
        let sectored = ModelLevel { sector_bytes: Some(sector), ..plain.clone() };
        assert_eq!(refused(&[sectored]), problem(1, Problem::Sector(sector, 64)));
    }
    let ahead =
        ModelLevel { inclusion: Inclusion::Exclusive, prefetch: vec![Prefetch::NextLine], ..plain.clone() };
    assert_eq!(refused(&[plain.clone(), ahead]), problem(2, Problem::ExclusivePrefetch));
    let vast = LevelSpec { bytes: 64 << 17, ways: 1 << 17, ..shape };
    assert_eq!(refused(&[vast.into()]), problem(1, Problem::ModelWays(1 << 17)));
    assert_eq!(refused(&[]), ImpossibleHierarchy::LevelCount(0));
    for page_bytes in [0, 32, 4095] {
        let spec = ModelSpec { page_bytes, ..ModelSpec::new(vec![plain.clone()], 1) };
        assert_eq!(Model::new(&spec).err(), Some(ImpossibleHierarchy::Page(page_bytes)));
    }
}

/// An observer's log has all events in order: line 0 is lost to core 1.
#[test]
fn observers_are_told_who_took_a_line() {
    let shape = LevelSpec { bytes: 1024, ways: 2, line_bytes: 64, shared_by: 1 };
    let spec = ModelSpec { coherence: Coherence::Mesi, ..ModelSpec::new(vec![shape.into()], 2) };
    let mut model = Model::new(&spec).unwrap();
    model.access(MemRef::read(0, 0, 4).tagged(5));
    let mut log = Log::default();
    model.access_observed(MemRef::write(1, 8, 4).tagged(6), &mut log);
    assert_eq!(log.events, [Event::Invalidated(0, 0, 0, 1, 6), Event::Asked(0, 1, 0, Found::Miss)]);
}
