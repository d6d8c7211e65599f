//! Claims about samples whose truth is known: how often there are claims without an effect, and how
//! often an effect is found and named correctly. The noise is like that of runs on a busy guest: a
//! clock that drifts, jitter of one percent, and bursts in one run of ten.

use std::time::Duration;

use memlode_measure::bench::{BenchPlace, BenchPlan, BenchRun, Measured, Metric, RANDOM_RUNS, Result};
use memlode_measure::process::{AddressLayout, Launch, Sample};
use memlode_measure::stats::{Random, median, random};
use rand::RngExt;
use rand::seq::SliceRandom;

const ROUNDS: usize = 80;
const VARIANTS: usize = 24;

/// The truth: logarithms of factors.
#[derive(Clone, Copy, Default)]
struct Truth {
    /// The second program's time over the first's, at any layout.
    second: f64,
    /// The layout given over random ones, for the second program.
    given: f64,
    /// Links of both are drawn anew, and move each program so far at most.
    links: Option<f64>,
}

/// Nearly normal, of standard deviation 1.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

fn experiment(seed: u64, truth: Truth) -> Result {
    let mut random = random(seed);
    let launch = |name: &str| Launch { words: vec![name.into()], ..Launch::default() };
    let plan = BenchPlan {
        programs: vec![launch("first"), launch("second")],
        links: vec![None, None],
        variants: VARIANTS,
        prepare: Vec::new(),
        warmup: 0,
        time: Duration::ZERO,
        rounds: Some(ROUNDS),
        metric: None,
        seed,
    };
    let mut runs = Vec::new();
    let mut clock = 0.0;
    let reach = truth.links.unwrap_or(0.0);
    let links: Vec<f64> = (0..2 * VARIANTS).map(|_| reach * (2.0 * random.random::<f64>() - 1.0)).collect();
    for round in 0..ROUNDS {
        let mut places: Vec<(usize, usize)> =
            (0..=RANDOM_RUNS).flat_map(|slot| [(slot, 0), (slot, 1)]).collect();
        places.shuffle(&mut random);
        for (slot, program) in places {
            clock = 0.95 * clock + 0.01 * normal(&mut random);
            let burst = if random.random_bool(0.1) { -0.1 * random.random::<f64>().ln() } else { 0.0 };
            let mut log = clock + burst + 0.012 * normal(&mut random);
            let mut variant = 0;
            if slot > 0 && truth.links.is_some() {
                variant = 1 + (round * RANDOM_RUNS + slot) % VARIANTS;
                log += links[program * VARIANTS + variant - 1];
            }
            if program == 1 {
                log += truth.second + if slot == 0 { truth.given } else { 0.0 };
            }
            let time = 0.1 * log.exp();
            let layout = AddressLayout { padding: 0, randomised: slot > 0 };
            runs.push(BenchRun {
                place: BenchPlace { program, round, slot, variant, layout },
                sample: Sample { wall: time, cpu: time, user: time, queued: 0.0, left_behind: false },
                calibration: 3e5 * (clock + 0.01 * normal(&mut random)).exp(),
            });
        }
    }
    let measured =
        Measured { runs, rounds: ROUNDS, metric: Metric::Cpu, interrupted: false, fixed_addresses: true };
    measured.result(&plan)
}

/// Returns whether any difference is claimed, between programs or layouts.
fn claims_anything(result: &Result) -> bool {
    let one = &result.comparisons[0];
    [one.given, one.random, one.layout].iter().any(|effect| effect.is_claimed())
        || result.programs.iter().any(|program| program.layout.is_claimed())
}

fn share(experiments: u64, truth: Truth, holds: impl Fn(&Result) -> bool) -> f64 {
    (0..experiments).filter(|seed| holds(&experiment(*seed, truth))).count() as f64 / experiments as f64
}

#[test]
fn nothing_is_claimed_where_there_is_nothing() {
    let alarms = share(100, Truth::default(), claims_anything);
    assert!(alarms <= 0.01, "{alarms}");
}

#[test]
fn the_luck_of_links_is_not_claimed_for_programs() {
    let links = Truth { links: Some(0.03), ..Truth::default() };
    let alarms = share(100, links, |result| result.comparisons[0].random.is_claimed());
    assert!(alarms <= 0.01, "{alarms}");
}

#[test]
fn two_percent_are_found_and_not_called_layout() {
    let truth = Truth { second: 0.02, ..Truth::default() };
    let found = share(40, truth, |result| result.comparisons[0].random.is_claimed());
    assert!(found >= 0.95, "{found}");
    let one = &experiment(1, truth).comparisons[0];
    assert!(one.random.is_claimed() && one.random.ratio > 1.0 && !one.layout.is_claimed(), "{one:?}");
}

#[test]
fn a_difference_of_layout_is_called_so() {
    let truth = Truth { given: 0.04, ..Truth::default() };
    let named = |result: &Result| {
        let one = &result.comparisons[0];
        !one.random.is_claimed() && one.given.is_claimed() && one.layout.is_claimed()
    };
    let found = share(40, truth, named);
    assert!(found >= 0.9, "{found}");
}

/// The true value lies in a 95% interval about as often as stated.
#[test]
fn intervals_hold_the_truth() {
    let truth = Truth { second: 0.01, ..Truth::default() };
    let holds = |result: &Result| {
        let random = result.comparisons[0].random;
        (random.low..=random.high).contains(&0.01f64.exp())
    };
    let covered = share(100, truth, holds);
    assert!((0.88..=1.0).contains(&covered), "{covered}");
}

/// An effect of the size that is called detectable is claimed in about 19 of 20 repetitions.
#[test]
fn detectable_sizes_are_detected() {
    let size = |seed: u64| experiment(1000 + seed, Truth::default()).comparisons[0].random.detectable.ln();
    let second = median(&(0..20).map(size).collect::<Vec<_>>());
    let found =
        share(40, Truth { second, ..Truth::default() }, |result| result.comparisons[0].random.is_claimed());
    assert!(found >= 0.85, "{found} of {second}");
}
