//! A program at every length of the environment: which of them slow it down?
//!
//! The length of the environment decides where the stack begins, and with fixed addresses nothing else does. Over two
//! pages of 4 KiB there are 512 such contexts. Each is run some times in random order, the slowest more often; the slowest of
//! all are then run again beside the context 2 KiB away, in a new random order, and only what differs there is called a spike.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::Error;
use crate::process::{Launch, Layout, Limits, Pinned, Stop, calibrate, processors};
use crate::stats::{Effect, quantile, random};

/// Contexts: stack starts that the kernel tells apart, over two pages.
pub const CONTEXTS: usize = 512;
/// Bytes from one context to the next.
pub const STEP: usize = 16;
/// The first: shorter ones leave no room for the variable's name.
const FIRST: usize = 32;
/// Contexts of one page.
const PAGE: usize = 256;
/// The share of a sweep's time; the rest is for confirming.
const SWEEP: f64 = 0.7;
/// Contexts that are run again at most.
const CANDIDATES: usize = 6;
/// Fewer runs of a context have no low quantile.
const LEAST_RUNS: usize = 3;
/// So many of the slowest contexts get so many runs more: most contexts are soon seen not to matter.
const RUNGS: [(usize, usize); 3] = [(CONTEXTS, LEAST_RUNS), (CONTEXTS / 4, 6), (CONTEXTS / 16, 16)];
/// Fewer confirming rounds can claim nothing of six candidates.
const LEAST_ROUNDS: usize = 16;
/// The quantile of a context's times that stands for it: bursts of other programs only ever add.
const QUANTILE: f64 = 0.2;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// By context: bytes added to the environment.
    pub padding: Vec<usize>,
    /// By context: time over the median context's.
    pub ratio: Vec<f64>,
    /// Runs of each context; the slowest have more.
    pub runs: usize,
    /// Contexts that were run again, the slowest first.
    pub candidates: Vec<Candidate>,
    /// The contexts' spread: the 90% quantile of the ratios over the 10% quantile.
    pub spread: f64,
    /// Seconds of the median context.
    pub seconds: f64,
    /// The program's addresses could not be fixed, so nothing of this means anything.
    pub not_fixed: bool,
}

/// A context that looked slow.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Candidate {
    /// Bytes added to the environment.
    pub padding: usize,
    /// Its time over that of the context 2 KiB away, run in turns.
    pub effect: Effect,
}

/// What to sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program.
    pub program: Launch,
    /// Time for everything.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// Sweeps. `tell` hears how many runs there will be, and seconds of each.
///
/// # Errors
/// If the program fails, if the fewest runs do not fit into the time, or if somebody wants to stop.
pub fn sweep(plan: &Plan, stop: &Stop, tell: &mut dyn FnMut(usize, f64)) -> Result<Sweep, Error> {
    let started = Instant::now();
    let limits = Limits { stop, longest: plan.time };
    let mut random = random(plan.seed);
    let cpus = processors();
    let run = |context: usize| -> Result<f64, Error> {
        let before = calibrate();
        let layout = Layout { padding: FIRST + STEP * context, randomised: false };
        let cpu = plan.program.run(layout, limits)?.cpu.max(1e-6);
        // In units of the calibration: seconds at the usual clock.
        Ok((cpu / (before + calibrate())).ln())
    };
    let clock = 2.0 * calibrate();
    plan.program.run(Layout::GIVEN, limits)?;
    let pilot = Instant::now();
    (0..3).try_for_each(|context| run(context).map(|_| ()))?;
    let each = pilot.elapsed().as_secs_f64() / 3.0;
    let least: usize = RUNGS.iter().map(|(contexts, runs)| contexts * runs).sum();
    let times_over = (SWEEP * plan.time.as_secs_f64() / (each * least as f64)) as usize;
    if times_over < 1 {
        return Err(Error::LimitTooShort {
            round_seconds: each * CONTEXTS as f64,
            rounds: LEAST_RUNS,
            needed_seconds: 1.2 * each * least as f64 / SWEEP,
        });
    }
    tell(times_over * least, each);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); CONTEXTS];
    let mut slowest: Vec<usize> = (0..CONTEXTS).collect();
    for (contexts, runs) in RUNGS {
        slowest.truncate(contexts);
        for pass in 0..runs * times_over {
            // Whatever happens to the machine meanwhile, each context gets its fewest runs.
            if pass >= runs && started.elapsed() > plan.time.mul_f64(SWEEP) {
                break;
            }
            let _pinned = cpus.get(random.random_range(0..cpus.len().max(1))).map(|cpu| Pinned::to(*cpu));
            let mut order = slowest.clone();
            order.shuffle(&mut random);
            for context in order {
                times[context].push(run(context)?);
            }
        }
        let low = |context: &usize| quantile(&times[*context], QUANTILE);
        slowest.sort_by(|a, b| low(b).total_cmp(&low(a)));
    }
    let low: Vec<f64> = times.iter().map(|times| quantile(times, QUANTILE)).collect();
    let middle = quantile(&low, 0.5);
    slowest.truncate(CANDIDATES);
    let mut differences: Vec<Vec<f64>> = vec![Vec::new(); slowest.len()];
    let mut rounds = 0;
    while rounds < LEAST_ROUNDS || (started.elapsed() < plan.time && !stop.load(Ordering::Relaxed)) {
        let _pinned = cpus.get(random.random_range(0..cpus.len().max(1))).map(|cpu| Pinned::to(*cpu));
        let mut order: Vec<usize> = (0..slowest.len()).collect();
        order.shuffle(&mut random);
        for candidate in order {
            let (slow, control) = (slowest[candidate], (slowest[candidate] + PAGE / 2) % CONTEXTS);
            let difference = if random.random_bool(0.5) {
                let slow = run(slow)?;
                slow - run(control)?
            } else {
                let control = run(control)?;
                run(slow)? - control
            };
            differences[candidate].push(difference);
        }
        rounds += 1;
    }
    let candidates = slowest.iter().zip(&differences).map(|(context, differences)| Candidate {
        padding: FIRST + STEP * context,
        effect: Effect::of(differences, slowest.len(), &mut random),
    });
    let ratio: Vec<f64> = low.iter().map(|low| (low - middle).exp()).collect();
    Ok(Sweep {
        candidates: candidates.collect(),
        padding: (0..CONTEXTS).map(|context| FIRST + STEP * context).collect(),
        spread: quantile(&ratio, 0.9) / quantile(&ratio, 0.1),
        ratio,
        runs: times.iter().map(Vec::len).min().unwrap_or(0),
        seconds: middle.exp() * clock,
        not_fixed: !crate::process::can_fix_addresses(),
    })
}

impl Sweep {
    /// Contexts that are slower than the one 2 KiB away, by more than chance, the slowest first.
    pub fn spikes(&self) -> Vec<Candidate> {
        let mut spikes: Vec<Candidate> = self
            .candidates
            .iter()
            .filter(|candidate| candidate.effect.is_claimed() && candidate.effect.ratio > 1.0)
            .copied()
            .collect();
        spikes.sort_by(|a, b| b.effect.ratio.total_cmp(&a.effect.ratio));
        spikes
    }

    /// All of it in one sentence.
    pub fn sentence(&self) -> String {
        if self.not_fixed {
            return "This system does not let a program have fixed addresses, so the environment decides nothing here."
                .into();
        }
        let spikes = self.spikes();
        let percent = |ratio: f64| format!("{:.1}%", 100.0 * (ratio - 1.0));
        let Some(first) = spikes.first() else {
            let seen = self.candidates.iter().map(|one| one.effect.detectable).fold(1.0, f64::max);
            return format!(
                "No length of the environment slows this program down: the slowest of {} contexts did not differ from \
                 those 2 KiB away; {} would have been seen there.",
                self.ratio.len(),
                percent(seen)
            );
        };
        let place = |spike: &Candidate| format!("{} bytes ({})", spike.padding, percent(spike.effect.ratio));
        let all: Vec<String> = spikes.iter().map(place).collect();
        let twice = spikes.iter().any(|other| {
            other.padding.abs_diff(first.padding) == STEP * PAGE
                && (other.effect.ratio - first.effect.ratio).abs() < 0.5
        });
        format!(
            "The environment's length slows this program down at {}, beside the context 2 KiB away{}.",
            all.join(", "),
            if twice { ", in both pages alike" } else { "" }
        )
    }
}
