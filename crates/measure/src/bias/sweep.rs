//! Many contexts in which one thing is timed: which of them slow it down?
//!
//! Each context is timed some times in random order, the slowest more often. The slowest of all are
//! then timed again, in a new random order, beside two contexts that differ only in the suspected
//! cause: the control, 2 KiB away, and a second control, 1 KiB away. Only a context that differs
//! from its control is called a spike. If the controls differ from each other by a third of that,
//! nothing is concluded.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::Error;
use crate::process::{Pinned, StopFlag, processors};
use crate::stats::{Effect, Random, quantile, random};

/// The share of a sweep's time; the rest is for confirming.
const SWEEP: f64 = 0.7;
/// Contexts that are timed again at most.
const CANDIDATES: usize = 6;
/// Fewer timings of a context have no low quantile.
const LEAST_RUNS: usize = 3;
/// Fewer confirming rounds can claim nothing of six candidates.
pub const LEAST_ROUNDS: usize = 16;
/// More rounds would add little.
const MOST_ROUNDS: usize = 400;
/// The most timings, as a multiple of the fewest.
const MOST_OVER: usize = 20;
/// The quantile of a context's times that stands for it: bursts of other programs only ever add.
const QUANTILE: f64 = 0.2;
/// Timings of one candidate in a confirming round: itself and two controls.
const TRIO: usize = 3;

/// Something that can be timed in many contexts. Contexts are numbered from 0, and evenly spaced over whole pages.
pub trait SweepSource {
    /// The logarithm of the time in a context, in any unit that does not depend on the clock
    /// frequency.
    ///
    /// # Errors
    /// If it cannot be timed, or is stopped.
    fn time(&mut self, context: usize) -> Result<f64, Error>;

    /// Starts a new process, with new random properties (physical pages). Called between passes.
    ///
    /// # Errors
    /// If it cannot be started.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// The number of contexts, and how long each is timed.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Contexts.
    pub contexts: usize,
    /// Contexts of one page of 4 KiB.
    pub page: usize,
    /// Time for everything.
    pub time: Duration,
    /// Confirming rounds that are made in any case: [`LEAST_ROUNDS`] or more.
    pub rounds: usize,
    /// All random choices follow from it.
    pub seed: u64,
}

/// The times of all contexts, and the slow ones that were tried again.
#[derive(Clone, Debug, Serialize)]
pub struct Swept {
    /// Times over the median context's, by context.
    pub ratio: Vec<f64>,
    /// Timings of each context; the slowest have more.
    pub runs: usize,
    /// Contexts that were timed again, the slowest first.
    pub candidates: Vec<Candidate>,
    /// The contexts' spread: the 90% quantile of the ratios over the 10% quantile.
    pub spread: f64,
    /// The logarithm of the median context's time.
    #[serde(skip)]
    pub middle: f64,
}

/// A context that looked slow.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Candidate {
    /// Its number.
    pub context: usize,
    /// The number of the control.
    pub control: usize,
    /// Its time relative to that of the control, timed alternately.
    pub effect: Effect,
    /// The time of the control over that of the second one.
    pub controls: Effect,
}

/// The verdict on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepVerdict {
    /// Slower than its control, by more than chance and by more than controls differ.
    Spike,
    /// Slower than its control, but controls differ as much.
    Inconclusive,
    /// Not slower.
    Nothing,
}

impl Candidate {
    /// The test: p < 0.001, divided by the number of candidates, and three times as far from 1 as controls
    /// are from each other: an even slope over the page moves them half as far.
    pub fn verdict(&self) -> SweepVerdict {
        if !self.effect.is_claimed() || self.effect.ratio <= 1.0 {
            return SweepVerdict::Nothing;
        }
        let moved = self.controls.ratio.ln().abs();
        match self.controls.is_claimed() && 3.0 * moved > self.effect.ratio.ln() {
            true => SweepVerdict::Inconclusive,
            false => SweepVerdict::Spike,
        }
    }
}

impl Swept {
    /// The candidates with a verdict, largest effect first.
    pub fn of(&self, verdict: SweepVerdict) -> Vec<Candidate> {
        let mut all: Vec<Candidate> =
            self.candidates.iter().filter(|one| one.verdict() == verdict).copied().collect();
        all.sort_by(|a, b| b.effect.ratio.total_cmp(&a.effect.ratio));
        all
    }

    /// The size of effect that would have been claimed of any candidate: a ratio above 1.
    pub fn detectable(&self) -> f64 {
        self.candidates.iter().map(|one| one.effect.detectable).fold(1.0, f64::max)
    }
}

/// Returns numbers of the slowest contexts, and how often these are timed: most contexts are soon seen not to matter.
fn rungs(contexts: usize) -> [(usize, usize); 3] {
    [(contexts, LEAST_RUNS), (contexts.div_ceil(4), 6), (contexts.div_ceil(16), 16)]
}

/// Sweeps. `tell` receives the number of timings, and the seconds of each.
///
/// # Errors
/// If something cannot be timed, if the fewest timings do not fit into the time, or if it is
/// stopped.
pub fn sweep(
    extent: Extent,
    source: &mut dyn SweepSource,
    stop: &StopFlag,
    tell: &mut dyn FnMut(usize, f64),
) -> Result<Swept, Error> {
    let Extent { contexts, page, time, rounds: least_rounds, seed } = extent;
    let started = Instant::now();
    let mut random = random(seed);
    let cpus = processors();
    let pin =
        |random: &mut Random| cpus.get(random.random_range(0..cpus.len().max(1))).map(|cpu| Pinned::to(*cpu));
    source.time(0)?;
    // The least of some: other programs only ever add.
    let mut each = f64::INFINITY;
    for context in 0..3 {
        let pilot = Instant::now();
        source.time(context)?;
        each = each.min(pilot.elapsed().as_secs_f64());
    }
    let rungs = rungs(contexts);
    let least: usize = rungs.iter().map(|(contexts, runs)| contexts * runs).sum();
    let times_over = ((SWEEP * time.as_secs_f64() / (each * least as f64)) as usize).min(MOST_OVER);
    if times_over < 1 {
        return Err(Error::LimitTooShort {
            round_seconds: each * contexts as f64,
            rounds: LEAST_RUNS,
            needed_seconds: 1.2 * each * least as f64 / SWEEP,
        });
    }
    tell(times_over * least, each);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contexts];
    let mut slowest: Vec<usize> = (0..contexts).collect();
    for (kept, runs) in rungs {
        slowest.truncate(kept);
        for pass in 0..runs * times_over {
            // Whatever happens to the machine meanwhile, each context gets its fewest timings.
            if pass >= runs && started.elapsed() > time.mul_f64(SWEEP) {
                break;
            }
            let _pinned = pin(&mut random);
            source.renew()?;
            let mut order = slowest.clone();
            order.shuffle(&mut random);
            for context in order {
                times[context].push(source.time(context)?);
            }
        }
        let low = |context: &usize| quantile(&times[*context], QUANTILE);
        slowest.sort_by(|a, b| low(b).total_cmp(&low(a)));
    }
    let low: Vec<f64> = times.iter().map(|times| quantile(times, QUANTILE)).collect();
    let middle = quantile(&low, 0.5);
    slowest.truncate(CANDIDATES);
    let away = |context: usize, part: usize| (context + page / part) % contexts;
    let mut differences: Vec<[Vec<f64>; 2]> = vec![Default::default(); slowest.len()];
    let mut rounds = 0;
    while rounds < least_rounds
        || (rounds < MOST_ROUNDS && started.elapsed() < time && !stop.load(Ordering::Relaxed))
    {
        let _pinned = pin(&mut random);
        source.renew()?;
        let mut order: Vec<usize> = (0..slowest.len()).collect();
        order.shuffle(&mut random);
        for candidate in order {
            let context = slowest[candidate];
            let mut trio: [(usize, usize); TRIO] =
                [(0, context), (1, away(context, 2)), (2, away(context, 4))];
            trio.shuffle(&mut random);
            let mut taken = [0.0; TRIO];
            for (which, context) in trio {
                taken[which] = source.time(context)?;
            }
            differences[candidate][0].push(taken[0] - taken[1]);
            differences[candidate][1].push(taken[1] - taken[2]);
        }
        rounds += 1;
    }
    let candidates = slowest.iter().zip(&differences).map(|(context, [effect, controls])| Candidate {
        context: *context,
        control: away(*context, 2),
        effect: Effect::of(effect, slowest.len(), &mut random),
        controls: Effect::of(controls, slowest.len(), &mut random),
    });
    let candidates = candidates.collect();
    let ratio: Vec<f64> = low.iter().map(|low| (low - middle).exp()).collect();
    Ok(Swept {
        candidates,
        spread: quantile(&ratio, 0.9) / quantile(&ratio, 0.1),
        ratio,
        runs: times.iter().map(Vec::len).min().unwrap_or(0),
        middle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of one microsecond with jitter and bursts, and the effects of contexts.
    struct Synthetic<F> {
        random: Random,
        adds: F,
    }

    impl<F: Fn(usize) -> f64> SweepSource for Synthetic<F> {
        fn time(&mut self, context: usize) -> Result<f64, Error> {
            let burst = if self.random.random_bool(0.1) { self.random.random::<f64>() } else { 0.0 };
            Ok((self.adds)(context) + 0.02 * self.random.random::<f64>() + burst)
        }
    }

    fn swept(seed: u64, adds: impl Fn(usize) -> f64) -> Swept {
        let extent = Extent { contexts: 512, page: 256, time: Duration::from_millis(200), rounds: 100, seed };
        let mut source = Synthetic { random: random(seed ^ 77), adds };
        sweep(extent, &mut source, &StopFlag::new(false), &mut |_, _| {}).expect("times")
    }

    #[test]
    fn the_two_contexts_that_are_slow_are_found_and_no_others() {
        for seed in 0..3 {
            let found = swept(seed, |context| if context % 256 == 177 { 0.05 } else { 0.0 });
            let mut spikes: Vec<usize> =
                found.of(SweepVerdict::Spike).iter().map(|one| one.context).collect();
            spikes.sort_unstable();
            assert_eq!(spikes, [177, 433], "{:?}", found.candidates);
        }
    }

    #[test]
    fn nothing_is_found_where_there_is_nothing() {
        for seed in 0..8 {
            let found = swept(seed, |_| 0.0);
            assert!(found.of(SweepVerdict::Spike).is_empty(), "{:?}", found.candidates);
            assert!(found.detectable() < 1.1, "{}", found.detectable());
        }
    }

    /// A slope over the page moves the controls as much as the contexts beside them.
    #[test]
    fn nothing_is_concluded_where_controls_differ_as_much() {
        let found = swept(3, |context| 0.2 * (context % 256) as f64 / 256.0);
        assert!(found.of(SweepVerdict::Spike).is_empty(), "{:?}", found.candidates);
        assert!(!found.of(SweepVerdict::Inconclusive).is_empty(), "{:?}", found.candidates);
    }
}
