//! Traces with gaps: the part of the program that they cover, and the errors of a sample.
//!
//! Recording may be off for a while. The stretch between two such gaps is a *run*, and may hold
//! chunks of several threads. When the runs are bursts of a duty cycle, they are a systematic
//! sample, and their counts are scaled by ratio estimators. The standard errors are those of
//! clusters, one for each run:
//!
//! ```text
//! R = Σ yᵢ / Σ xᵢ        v(R) = (1 − f) · k / (k − 1) · Σ (yᵢ − R xᵢ)² / (Σ xᵢ)²
//! ```
//!
//! for `k` runs and the part `f` that they cover (Cochran, *Sampling Techniques*, 3rd edition,
//! theorem 2.5). It is the formula of random samples: it cannot detect a program whose phases have
//! the period of the duty cycle.

use memlode_simulate::MAX_LEVELS;
use memlode_trace::event::ThreadId;
use memlode_trace::{ChunkRef, Trace};
use rustc_hash::FxHashMap;

use crate::sampled::cell_runs::CellRuns;

/// Numbers the runs of a trace, chunk by chunk in replay order.
#[derive(Default)]
pub struct Runs {
    /// Number of the run, and the stamp at which it began; none before the first gap.
    latest: Option<u64>,
    number: usize,
    /// The position of each stream when it was last seen.
    seen: FxHashMap<(ThreadId, u8), u64>,
}

impl Runs {
    /// The run of the next chunk, and whether it is the first of a run behind a gap.
    pub fn next(
        &mut self,
        thread: ThreadId,
        stream: u8,
        stamps: (u64, u64),
        after_gap: bool,
    ) -> (usize, bool) {
        let seen = self.seen.insert((thread, stream), stamps.1).unwrap_or(0);
        // Every thread has its gap; they are one unless it has been recorded in between.
        let begins = after_gap && self.latest.is_none_or(|latest| latest <= seen);
        if begins {
            self.number += usize::from(self.latest.is_some() || self.seen.len() > 1 || seen > 0);
            self.latest = Some(stamps.0);
        }
        (self.number, begins)
    }
}

/// A ratio, estimated from runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The ratio.
    pub value: f64,
    /// Its standard error; `None` if there are less than two runs.
    pub standard_error: Option<f64>,
}

impl Estimate {
    /// The ratio of the sums of two quantities, of which each pair is a run's; `covered` is the
    /// part of the whole that the runs are.
    pub fn ratio(runs: impl Iterator<Item = (f64, f64)> + Clone, covered: f64) -> Estimate {
        let (y, x, k) = runs.clone().fold((0.0, 0.0, 0u32), |(y, x, k), (yi, xi)| (y + yi, x + xi, k + 1));
        if x <= 0.0 {
            return Estimate::default();
        }
        let value = y / x;
        let squares: f64 = runs.map(|(yi, xi)| (yi - value * xi).powi(2)).sum();
        let standard_error = (k > 1).then(|| clusters_error(squares, f64::from(k), covered) / x);
        Estimate { value, standard_error }
    }
}

/// The standard error of a sum over `k` clusters, given the sum of the squares of their residuals.
pub(crate) fn clusters_error(squares: f64, k: f64, covered: f64) -> f64 {
    ((1.0 - covered.clamp(0.0, 1.0)) * k / (k - 1.0) * squares).sqrt()
}

/// The part of a program that a trace with gaps covers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covered {
    /// Part of the threads' lifetime that was recorded, 0 to 1.
    pub time: f64,
    /// Part of all accesses that was recorded, 0 to 1, assuming that each thread goes on between
    /// its runs as in them. Recording slows a program down, so the true part is at most this.
    pub accesses: Estimate,
}

/// The part of one run that one thread did.
#[derive(Clone, Copy, Default)]
struct Stretch {
    first: u64,
    last: u64,
    accesses: u64,
}

/// Returns how much of its program a trace covers. `None` if it has no gaps.
pub fn covered(trace: &Trace) -> Option<Covered> {
    let chunks = trace.chunks();
    if !chunks.iter().any(ChunkRef::is_after_gap) {
        return None;
    }
    let mut runs = Runs::default();
    let mut stretches: FxHashMap<(ThreadId, usize), Stretch> = FxHashMap::default();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_dormant()) {
        let (run, _) = runs.next(chunk.thread, chunk.stream(), chunk.stamps(), chunk.is_after_gap());
        let (first, last) = chunk.stamps();
        let new = Stretch { first, last, accesses: 0 };
        let stretch = stretches.entry((chunk.thread, run)).or_insert(new);
        stretch.first = stretch.first.min(first);
        stretch.last = stretch.last.max(last);
        stretch.accesses += chunk.accesses();
    }
    // Time and accesses of each thread.
    let mut threads = vec![(0.0, 0.0); trace.threads().len()];
    for ((thread, _), stretch) in &stretches {
        let (time, accesses) = &mut threads[thread.0 as usize];
        *time += stretch.time();
        *accesses += stretch.accesses as f64;
    }
    let lives: Vec<f64> =
        threads.iter().enumerate().map(|(thread, seen)| life(trace, thread).max(seen.0)).collect();
    let recorded: f64 = threads.iter().map(|thread| thread.1).sum();
    let time =
        (threads.iter().map(|thread| thread.0).sum::<f64>() / lives.iter().sum::<f64>().max(1.0)).min(1.0);
    let scale = |thread: usize| (lives[thread] / threads[thread].0.max(1.0)).max(1.0);
    let whole: f64 = threads.iter().enumerate().map(|(i, thread)| scale(i) * thread.1).sum();
    // By the delta method, the whole is a sum of ratios; a run's residual is the sum of those of its threads.
    let mut residuals: FxHashMap<usize, f64> = FxHashMap::default();
    for ((thread, run), stretch) in &stretches {
        let (time, accesses) = threads[thread.0 as usize];
        let residual = stretch.accesses as f64 - accesses / time.max(1.0) * stretch.time();
        *residuals.entry(*run).or_default() += scale(thread.0 as usize) * residual;
    }
    let k = residuals.len() as f64;
    let share = recorded / whole.max(1.0);
    let error = (k > 1.0).then(|| {
        let squares: f64 = residuals.values().map(|residual| residual * residual).sum();
        share * ((1.0 - share) * k / (k - 1.0) * squares).sqrt() / whole.max(1.0)
    });
    Some(Covered { time, accesses: Estimate { value: share, standard_error: error } })
}

impl Stretch {
    fn time(&self) -> f64 {
        self.last.saturating_sub(self.first) as f64
    }
}

/// Returns how long a thread lived, in ticks of the time stamp counter. The first of a process was
/// there from its beginning; when others began is known from their first run only.
fn life(trace: &Trace, thread: usize) -> f64 {
    let thread = &trace.threads()[thread];
    let process = trace.processes().get(thread.process.0 as usize);
    let started = match thread.index {
        0 => process.and_then(|process| process.started).or(thread.started),
        _ => thread.started,
    };
    let ended = thread.ended.or(process.and_then(|process| process.ended));
    match (started, ended) {
        (Some(started), Some(ended)) => ended.saturating_sub(started) as f64,
        _ => 0.0, // recording did not finish: as long as it was seen
    }
}

/// Counts of the caches in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Accesses, as the first level counts them.
    pub accesses: u64,
    /// Misses of each level, innermost first.
    pub misses: [u64; MAX_LEVELS],
}

impl RunCounts {
    /// Adds the difference between `now` and `before`.
    pub(crate) fn add(&mut self, now: RunCounts, before: RunCounts) {
        self.accesses += now.accesses - before.accesses;
        for ((sum, now), before) in self.misses.iter_mut().zip(now.misses).zip(before.misses) {
            *sum += now - before;
        }
    }
}

/// Counts of the caches in a trace with gaps.
#[derive(Clone, Debug)]
pub struct Gaps {
    /// Counts of each run. Caches keep their contents over a gap.
    pub runs: Vec<RunCounts>,
    /// Least and most misses of each level, for any contents of the caches behind gaps; for exact
    /// LRU caches only.
    pub bounds: Option<Vec<(u64, u64)>>,
    /// The same runs cell by cell.
    pub cells: CellRuns,
}

impl Gaps {
    /// Part of all accesses that miss a level (0 is the first).
    pub fn miss_ratio(&self, level: usize, covered: f64) -> Estimate {
        let runs = self.runs.iter().map(|run| (run.misses[level] as f64, run.accesses as f64));
        Estimate::ratio(runs, covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_go_to_sleep_together_have_their_gaps_in_common() {
        let mut runs = Runs::default();
        let (a, b) = (ThreadId(0), ThreadId(1));
        assert_eq!(runs.next(a, 0, (10, 20), false), (0, false));
        assert_eq!(runs.next(b, 0, (12, 30), false), (0, false));
        assert_eq!(runs.next(a, 0, (20, 25), false), (0, false));
        assert_eq!(runs.next(a, 0, (100, 110), true), (1, true));
        assert_eq!(runs.next(b, 0, (105, 120), true), (1, false));
        // Of a thread that is new.
        assert_eq!(runs.next(ThreadId(2), 0, (115, 120), true), (1, false));
        assert_eq!(runs.next(b, 0, (200, 220), true), (2, true));
        assert_eq!(runs.next(a, 0, (210, 220), true), (2, false));
    }

    #[test]
    fn a_trace_that_begins_behind_a_gap_has_its_first_run_there() {
        let mut runs = Runs::default();
        assert_eq!(runs.next(ThreadId(0), 0, (10, 20), true), (0, true));
        assert_eq!(runs.next(ThreadId(1), 0, (12, 20), true), (0, false));
        assert_eq!(runs.next(ThreadId(0), 0, (50, 60), true), (1, true));
    }

    #[test]
    fn the_standard_error_is_that_of_a_ratio_of_means() {
        // y/x: 0.1, 0.2, 0.3 of runs of equal size: R = 0.2, s = 0.1, v = s²/3.
        let runs = [(10.0, 100.0), (20.0, 100.0), (30.0, 100.0)];
        let estimate = Estimate::ratio(runs.into_iter(), 0.0);
        assert!((estimate.value - 0.2).abs() < 1e-12);
        assert!((estimate.standard_error.unwrap() - 0.1 / 3f64.sqrt()).abs() < 1e-12);
        // All of it has no error; of one run nothing is known.
        assert_eq!(Estimate::ratio(runs.into_iter(), 1.0).standard_error, Some(0.0));
        assert_eq!(Estimate::ratio([(1.0, 2.0)].into_iter(), 0.0).standard_error, None);
        assert_eq!(Estimate::ratio([].into_iter(), 0.0), Estimate::default());
    }
}
