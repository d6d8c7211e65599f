//! Facts that a profiler keeps of a trace with gaps besides its counts.

use memlode_replay::Piece;
use memlode_simulate::Bounds;
use memlode_trace::event::{Batch, ThreadId};
use rustc_hash::FxHashMap;

use crate::count::engine::Engine;
use crate::counts::Counts;
use crate::sampled::cell_runs::Ledger;
use crate::sampled::sample::{Gaps, RunCounts, Runs};

/// The run that each piece belongs to, and the counts of each run.
pub(crate) struct GapWatch {
    numbers: Runs,
    /// The run of each stream's current chunk.
    at_hand: FxHashMap<(ThreadId, u8), usize>,
    runs: Vec<RunCounts>,
    /// Bounds of misses. Nothing is certain under rules other than those of a
    /// [`Hierarchy`](memlode_simulate::Hierarchy).
    pub bounds: Option<Bounds>,
    /// The same cell by cell.
    pub ledger: Ledger,
}

impl GapWatch {
    /// Makes an empty one, for caches with this many levels.
    pub fn new(levels: usize, bounds: Option<Bounds>) -> GapWatch {
        GapWatch {
            numbers: Runs::default(),
            at_hand: FxHashMap::default(),
            runs: Vec::new(),
            bounds,
            ledger: Ledger::new(levels),
        }
    }

    /// The run that a piece belongs to.
    pub fn run_of(&mut self, thread: ThreadId, piece: &Piece<'_>) -> usize {
        let Batch { stream, stamps, after_gap, .. } = *piece.batch;
        if !piece.is_first() {
            return self.at_hand.get(&(thread, stream)).copied().unwrap_or(0);
        }
        let (run, begins) = self.numbers.next(thread, stream, stamps, after_gap);
        if let Some(bounds) = self.bounds.as_mut().filter(|_| begins) {
            bounds.forget();
        }
        self.runs.resize(self.runs.len().max(run + 1), RunCounts::default());
        self.at_hand.insert((thread, stream), run);
        run
    }

    /// Adds all that was done in a run since `before`.
    pub fn add(&mut self, run: usize, now: RunCounts, before: RunCounts) {
        self.runs[run].add(now, before);
    }

    /// Returns the counts of all runs; `counted` returns the counts of a cell.
    pub fn finish(self, counted: impl Fn(u32) -> Counts) -> Gaps {
        Gaps {
            runs: self.runs,
            bounds: self.bounds.map(|bounds| bounds.misses()),
            cells: self.ledger.finish(counted),
        }
    }
}

/// Accesses and misses so far.
pub(crate) fn counted(caches: &impl Engine) -> RunCounts {
    let levels = caches.counters();
    let accesses = levels.first().map_or(0, |level| level.reads + level.writes);
    let mut counts = RunCounts { accesses, ..RunCounts::default() };
    for (sum, level) in counts.misses.iter_mut().zip(levels) {
        *sum = level.read_misses + level.write_misses;
    }
    counts
}
