//! Moments between the stamps of a chunk, at which streams that ran side by side take turns (SPEC §4.4).

use memlode_trace::event::{Batch, Loop};

/// Accesses between two moments: less than a line takes from one core to another and back.
const STEP: u64 = 64;

/// A place in a chunk, or in a shard's part of it, and the time at which it was reached, as far as stamps tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time stamp counter, not later than the event that follows.
    pub time: u64,
    /// Accesses in front of it.
    pub accesses: u32,
    /// Marks in front of it.
    pub marks: u32,
    /// Loops in front of it.
    pub loops: u32,
}

/// Finds the moments of a chunk: one in [`STEP`] accesses, each in front of an access or a loop, never in one. Between stamps, time
/// goes by in proportion to accesses.
pub(crate) fn moments(batch: &Batch, out: &mut Vec<Moment>) {
    out.clear();
    let mut walk = Walk::new(batch, out);
    for (number, (access, mark)) in batch.marks.iter().enumerate() {
        let Some(stamp) = mark.stamp() else { continue };
        walk.loops_before(number);
        walk.accesses_to(*access);
        walk.stamp(stamp);
    }
    walk.loops_before(batch.marks.len());
    walk.accesses_to(batch.accesses.len() as u32);
    walk.stamp(batch.stamps.1);
}

/// A walk through the events of a chunk.
struct Walk<'a> {
    batch: &'a Batch,
    /// The loops, in order, and true if their accesses are among the batch's.
    loops: &'a [Loop],
    is_unrolled: bool,
    out: &'a mut Vec<Moment>,
    /// The events behind.
    access: u32,
    mark: u32,
    next_loop: usize,
    accesses: u64,
    /// Accesses since the latest moment.
    since: u64,
    /// The latest stamp: accesses in front of it, and its time.
    stamped: (u64, u64),
    /// Moments whose time is known. Of the others, `time` is the number of accesses in front of them.
    timed: usize,
}

impl<'a> Walk<'a> {
    fn new(batch: &'a Batch, out: &'a mut Vec<Moment>) -> Walk<'a> {
        let is_unrolled = batch.loops.is_empty();
        let loops = if is_unrolled { &batch.unrolled } else { &batch.loops };
        let stamped = (0, batch.stamps.0);
        let (access, mark, next_loop, accesses, since, timed) = (0, 0, 0, 0, 0, 0);
        Walk { batch, loops, is_unrolled, out, access, mark, next_loop, accesses, since, stamped, timed }
    }

    /// Goes behind the loops that stand before a mark.
    fn loops_before(&mut self, mark: usize) {
        while let Some(next) = self.loops.get(self.next_loop).filter(|next| next.mark as usize <= mark) {
            self.accesses_to(next.access);
            self.mark = next.mark;
            self.moment_if_due();
            let accesses = next.turns.saturating_mul(next.strides.len() as u64);
            self.next_loop += 1;
            if self.is_unrolled {
                self.access += accesses as u32;
            }
            self.went(accesses);
        }
    }

    /// Goes on to an access, which no loop stands before.
    fn accesses_to(&mut self, access: u32) {
        while self.access < access {
            let marks = &self.batch.marks[self.mark as usize..];
            self.mark += marks.iter().take_while(|(at, _)| *at <= self.access).count() as u32;
            self.moment_if_due();
            let run = u64::from(access - self.access).min(STEP - self.since);
            self.access += run as u32;
            self.went(run);
        }
    }

    fn went(&mut self, accesses: u64) {
        self.accesses = self.accesses.saturating_add(accesses);
        self.since = self.since.saturating_add(accesses);
    }

    fn moment_if_due(&mut self) {
        if self.since < STEP {
            return;
        }
        self.since = 0;
        let loops = if self.is_unrolled { 0 } else { self.next_loop as u32 };
        let (accesses, marks) = (self.access, self.mark);
        self.out.push(Moment { time: self.accesses, accesses, marks, loops });
    }

    /// Gives the moments since the latest stamp their times.
    fn stamp(&mut self, stamp: u64) {
        let (before, began) = self.stamped;
        let stamp = stamp.max(began);
        let accesses = u128::from((self.accesses - before).max(1));
        for moment in &mut self.out[self.timed..] {
            let part = u128::from(moment.time - before) * u128::from(stamp - began) / accesses;
            moment.time = began + part as u64;
        }
        self.timed = self.out.len();
        self.stamped = (self.accesses, stamp);
    }
}
