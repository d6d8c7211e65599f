//! Reuse distances against the definition, and against direct simulation of caches of all sizes.

use memlode_simulate::{Cache, LevelSpec, ReuseDistance, ReuseHistogram};
use proptest::prelude::*;

/// Streams with repetition at several scales: lines from nested working sets.
fn streams() -> impl Strategy<Value = Vec<u64>> {
    let line = prop_oneof![0u64..4, 0u64..60, 0u64..400, any::<u64>().prop_map(|n| n % 3000)];
    prop::collection::vec(line.prop_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 6), 1..4000)
}

/// The stack itself: a list, most recent first.
fn by_definition(stream: &[u64]) -> Vec<Option<u64>> {
    let mut stack: Vec<u64> = Vec::new();
    let depth = |line: &u64| {
        let place = stack.iter().position(|held| held == line);
        if let Some(place) = place {
            stack.remove(place);
        }
        stack.insert(0, *line);
        place.map(|place| place as u64)
    };
    stream.iter().map(depth).collect()
}

fn measured(stream: &[u64]) -> Vec<Option<u64>> {
    let mut reuse = ReuseDistance::new();
    stream.iter().map(|line| reuse.touch(*line)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_position_in_the_lru_stack(stream in streams()) {
        prop_assert_eq!(measured(&stream), by_definition(&stream));
    }

    /// Mattson: one pass gives the misses of every size, each equal to a simulation of that size.
    #[test]
    fn gives_the_misses_of_caches_of_all_sizes(stream in streams()) {
        let distances = measured(&stream);
        let mut histogram = ReuseHistogram::default();
        distances.iter().for_each(|distance| histogram.add(*distance));
        for lines in (1..20).chain([31, 32, 33, 63, 64, 72, 100, 128, 300, 512, 1024, 4096]) {
            let spec = LevelSpec { bytes: lines * 64, ways: lines as u32, line_bytes: 64, shared_by: 1 };
            let mut cache = Cache::new(&spec).unwrap();
            let simulated = stream.iter().filter(|line| !cache.touch(**line, false).hit).count() as u64;
            let counted = distances.iter().filter(|d| d.is_none_or(|d| d >= lines)).count() as u64;
            prop_assert_eq!(counted, simulated, "{} lines", lines);
            if lines <= 64 || lines.is_power_of_two() {
                prop_assert_eq!(histogram.misses(lines), simulated, "{} lines", lines);
            } else {
                prop_assert!(histogram.misses(lines) >= simulated);
            }
        }
        prop_assert_eq!(histogram.accesses(), stream.len() as u64);
    }
}

/// Long enough to renumber time often, with more lines than the first slots hold.
#[test]
fn a_long_stream_with_known_distances() {
    let lines = 50_000u64;
    let mut reuse = ReuseDistance::new();
    for round in 0..6u64 {
        for line in 0..lines {
            let expected = (round > 0).then_some(lines - 1);
            assert_eq!(reuse.touch(line), expected, "round {round}, line {line}");
        }
    }
    // Backwards: those touched later, and those just touched again, lie between.
    for back in 0..lines {
        assert_eq!(reuse.touch(lines - 1 - back), Some(back), "back {back}");
    }
    // Two lines in turn, for far longer than there are time slots.
    reuse.touch(1);
    reuse.touch(2);
    for _ in 0..300_000 {
        assert_eq!((reuse.touch(1), reuse.touch(2)), (Some(1), Some(1)));
    }
    assert_eq!(reuse.lines(), lines);
}

#[test]
fn histograms_merge() {
    let (mut a, mut b, mut both) =
        (ReuseHistogram::default(), ReuseHistogram::default(), ReuseHistogram::default());
    for (i, distance) in [None, Some(0), Some(5), Some(1 << 40), Some(u64::MAX), None].into_iter().enumerate()
    {
        if i % 2 == 0 {
            a.add(distance)
        } else {
            b.add(distance)
        }
        both.add(distance);
    }
    a.merge(&b);
    assert_eq!(a, both);
    assert_eq!((a.accesses(), a.first_touches(), a.misses(1), a.misses(1 << 41)), (6, 2, 5, 3));
    assert_eq!(a.buckets().map(|(_, count)| count).sum::<u64>(), 4);
}
