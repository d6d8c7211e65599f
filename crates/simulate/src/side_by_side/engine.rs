//! All threads in one order of time.

use super::ledger::{Ledger, Pair, Taken};
use super::line::Line;
use super::past::Past;
use super::thread::{Shared, Stage, Thread};
use super::{Item, NEVER, Pace, Program, Ticks};

/// Which steps are simulated: all, or one of each `every` windows of a fixed number of steps, which
/// then counts `every` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Steps of all threads in a window.
    pub window: u64,
    /// One window of this many is simulated.
    pub every: u64,
}

impl Sampling {
    /// Everything.
    pub const ALL: Sampling = Sampling { window: u64::MAX, every: 1 };
}

/// The outcome for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadOutcome {
    /// When it ended.
    pub ended: Ticks,
    /// Time that it waited for others.
    pub waited: Ticks,
    /// Time that it lost to transfers; may be less than nothing.
    pub lost: Ticks,
    /// Time that it would have taken, without waiting, if no line had moved.
    pub alone: Ticks,
    /// Transfers.
    pub transfers: u64,
    /// Steps that were simulated.
    pub steps: u64,
}

/// The outcome for all.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Indexed by thread.
    pub threads: Vec<ThreadOutcome>,
    /// The transfers.
    pub pairs: Vec<(Pair, Taken)>,
    /// Acquisitions that could not have what they waited for: the recorded order is not consistent.
    pub unmet: u64,
}

/// Runs each thread on its own core. There are `lines` lines.
pub fn simulate(program: &mut dyn Program, lines: usize, pace: &Pace, sampling: Sampling) -> Outcome {
    let threads = program.threads();
    let mut run = Run {
        threads: (0..threads).map(|thread| Thread::new(thread, pace)).collect(),
        next: vec![(NEVER, Stage::Issue); threads],
        lines: (0..lines).map(|_| Line::new()).collect(),
        ledger: Ledger::new(sampling.every),
        past: Past::new((0..threads).map(|thread| program.maker(thread)).collect()),
        pace: *pace,
        sums: vec![ThreadOutcome::default(); threads],
        before: vec![(0, 0, 0, 0); threads],
        unmet: 0,
    };
    run.all(program, sampling);
    run.finish()
}

struct Run {
    threads: Vec<Thread>,
    /// Indexed by thread: its next stage, and when it begins.
    next: Vec<(Ticks, Stage)>,
    lines: Vec<Line>,
    ledger: Ledger,
    past: Past,
    pace: Pace,
    sums: Vec<ThreadOutcome>,
    /// Indexed by thread, at the beginning of a window: lost, alone, transfers, waited.
    before: Vec<(Ticks, Ticks, u64, Ticks)>,
    unmet: u64,
}

impl Run {
    fn all(&mut self, program: &mut dyn Program, sampling: Sampling) {
        for thread in 0..self.threads.len() {
            self.look(thread, program);
        }
        while self.window(program, sampling.window) {
            self.add_up(sampling.every);
            if sampling.every > 1 {
                self.leave_out(program, sampling.every - 1);
            }
        }
        self.add_up(sampling.every);
    }

    /// Simulates `most` steps; returns whether anything is left.
    fn window(&mut self, program: &mut dyn Program, most: u64) -> bool {
        let first: u64 = self.threads.iter().map(|thread| thread.steps).sum();
        let end = first.saturating_add(most);
        let mut steps = first;
        while steps < end {
            let Some((at, thread)) = self.earliest() else {
                if !self.free_somebody() {
                    return false;
                }
                continue;
            };
            let (_, stage) = self.next[thread];
            let before = (self.threads[thread].steps, self.threads[thread].releases);
            let (lines, ledger, past) = (&mut self.lines, &mut self.ledger, &self.past);
            let mut shared = Shared { lines, ledger, past, pace: &self.pace };
            match stage {
                Stage::Store => self.threads[thread].store(at, &mut shared),
                Stage::Retire => self.threads[thread].retire(at, &mut shared),
                Stage::Issue => self.threads[thread].issue(at, &mut shared),
            }
            steps += self.threads[thread].steps - before.0;
            self.look(thread, program);
            if self.threads[thread].releases != before.1 {
                self.wake(thread);
            }
        }
        true
    }

    fn earliest(&self) -> Option<(Ticks, usize)> {
        let mut earliest = (NEVER, 0);
        for (thread, &(at, _)) in self.next.iter().enumerate() {
            if at < earliest.0 {
                earliest = (at, thread);
            }
        }
        (earliest.0 != NEVER).then_some(earliest)
    }

    /// Updates a thread's next stage.
    fn look(&mut self, thread: usize, program: &mut dyn Program) {
        self.threads[thread].look_ahead(program);
        self.next[thread] = self.next_of(thread);
        self.past.releases[thread] = self.threads[thread].releases;
        self.past.has_ended[thread] = self.threads[thread].is_done();
    }

    fn next_of(&self, thread: usize) -> (Ticks, Stage) {
        self.threads[thread].next(|others| self.acquired(others))
    }

    /// Returns the time at which all of these threads had released this often, if they have.
    fn acquired(&self, others: &[(u32, u64)]) -> Option<Ticks> {
        let mut at = 0;
        for &(other, releases) in others {
            let other = &self.threads[other as usize];
            if other.releases < releases {
                return None;
            }
            // A later release was later still: how much is not kept.
            if other.releases == releases {
                at = at.max(other.released_at);
            }
        }
        Some(at)
    }

    /// A thread has released: others may go on.
    fn wake(&mut self, _by: usize) {
        for other in 0..self.threads.len() {
            if self.next[other].0 == NEVER
                && matches!(self.threads[other].next_item(), Some(Item::Acquire(_)))
            {
                self.next[other] = self.next_of(other);
            }
        }
    }

    /// No thread can go on: the first one that waits goes on nevertheless. Returns false if none
    /// waits.
    fn free_somebody(&mut self) -> bool {
        let waits = |thread: &Thread| matches!(thread.next_item(), Some(Item::Acquire(_)));
        let Some(thread) = self.threads.iter().position(waits) else { return false };
        self.unmet += 1;
        let at = self.threads[thread].time();
        self.next[thread] = (at, Stage::Issue);
        true
    }

    /// Adds what threads did since the last call, `times` times.
    fn add_up(&mut self, times: u64) {
        for ((thread, sum), before) in self.threads.iter().zip(&mut self.sums).zip(&mut self.before) {
            let now = (thread.lost(), thread.alone(), thread.transfers, thread.waited);
            sum.lost += (now.0 - before.0) * times as Ticks;
            sum.alone += (now.1 - before.1) * times as Ticks;
            sum.transfers += (now.2 - before.2) * times;
            sum.waited += (now.3 - before.3) * times as Ticks;
            *before = now;
        }
    }

    /// Skips `times` as many steps of each thread as it made in the window before.
    fn leave_out(&mut self, program: &mut dyn Program, times: u64) {
        let mut left: Vec<u64> = self
            .threads
            .iter()
            .zip(&mut self.sums)
            .map(|(thread, sum)| {
                let steps = thread.steps - sum.steps;
                sum.steps = thread.steps;
                steps * times
            })
            .collect();
        let mut moved = true;
        while moved {
            moved = false;
            for (thread, left) in left.iter_mut().enumerate() {
                while *left > 0 && self.leave_out_some(thread, left, program) {
                    moved = true;
                }
            }
        }
        for thread in 0..self.threads.len() {
            self.look(thread, program);
        }
    }

    /// Skips steps of a thread up to the next item that orders it, and that item, if possible;
    /// returns false if the thread cannot go on.
    fn leave_out_some(&mut self, thread: usize, left: &mut u64, program: &mut dyn Program) -> bool {
        let ahead = self.threads[thread].leave_out_ahead();
        *left = left.saturating_sub(ahead);
        if let Some(item) = self.threads[thread].next_item() {
            if let Item::Acquire(others) = item
                && self.acquired(others).is_none()
            {
                return false;
            }
            self.threads[thread].pass();
            return true;
        }
        let skipped = program.skip(thread, *left);
        *left -= skipped.min(*left);
        if skipped == 0 {
            self.threads[thread].look_ahead(program);
        }
        skipped > 0 || ahead > 0 || self.threads[thread].next_item().is_some()
    }

    fn finish(mut self) -> Outcome {
        for thread in &mut self.threads {
            thread.finish(&mut self.ledger);
        }
        for line in &mut self.lines {
            line.finish(&mut self.ledger);
        }
        for (thread, sum) in self.threads.iter().zip(&mut self.sums) {
            sum.ended = thread.time();
            sum.steps = thread.steps;
        }
        let mut pairs: Vec<_> = self.ledger.pairs.into_iter().collect();
        pairs.sort_unstable_by_key(|&(pair, _)| pair);
        Outcome { threads: self.sums, pairs, unmet: self.unmet }
    }
}
