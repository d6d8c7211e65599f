//! Moments between the stamps of a chunk, at which streams that ran side by side take turns (SPEC
//! §4.4).

use memlode_trace::event::{Batch, Course, Loop};

/// Accesses between two moments: less than a line takes from one core to another and back.
const STEP: u64 = 64;
/// The same in a loop that does not stay in any line for long.
const MOVING_STEP: u64 = 1024;
/// A loop with fewer iterations is not split: it is simulated by line.
const FEWEST_ITERATIONS: u64 = 4;

/// A place in a chunk, or in a shard's part of it, and the time at which it was reached, as far as
/// stamps show. In front of a long loop it also stands for the moments in the loop.
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
    /// The moments in the loop that follows.
    pub inside: Option<Inside>,
}

/// Moments in a loop, at equal distances. Between two of them accesses go whole blocks of 256
/// bytes, so that every part of the loop looks the same to the caches, apart from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Number of them, 1 or more.
    pub count: u64,
    /// Iterations from one to the next, and from the loop's beginning to the first.
    pub apart: u64,
    /// Iterations of the loop.
    pub iterations: u64,
    /// Time at the loop's end.
    pub until: u64,
    /// Accesses from one to the next that are among the batch's: none if the loop is kept.
    pub accesses: u32,
}

impl Inside {
    /// The moments of a long loop that is one record. A loop that does not stay in its lines is not
    /// split if it would then be simulated access by access.
    fn of(repeated: &Loop) -> Option<Inside> {
        let Loop { iterations, ref strides, course: Course { period, is_aligned, stays }, .. } = *repeated;
        let step = match stays {
            true => STEP,
            false if is_aligned => MOVING_STEP,
            false => return None,
        };
        let least = step.div_ceil(strides.len().max(1) as u64).max(FEWEST_ITERATIONS);
        let apart = least.next_multiple_of(period.into());
        // The last part has as many iterations at least.
        let count = (iterations / apart).checked_sub(1).filter(|count| *count > 0)?;
        Some(Inside { count, apart, iterations, until: 0, accesses: 0 })
    }
}

impl Moment {
    /// Number of moments that it stands for.
    pub(crate) fn count(&self) -> u64 {
        self.inside.map_or(1, |inside| inside.count + 1)
    }

    /// The time of one of them, counted from 0.
    pub(crate) fn time_of(&self, number: u64) -> u64 {
        let Some(Inside { apart, iterations, until, .. }) = self.inside.filter(|_| number > 0) else {
            return self.time;
        };
        let gone = u128::from(until - self.time) * u128::from(number * apart) / u128::from(iterations);
        self.time + gone as u64
    }

    /// The first moment, from a number on, whose time is after `limit`, if there is one.
    pub(crate) fn first_behind(&self, limit: u64, from: u64) -> Option<u64> {
        let count = self.count();
        if self.time_of(count - 1) <= limit {
            return None;
        }
        let (mut low, mut high) = (from, count - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.time_of(middle) > limit {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Some(low)
    }
}

/// Finds the moments of a chunk: one in [`STEP`] accesses, each in front of an access, a loop or an
/// iteration of a loop. Between stamps, time goes by in proportion to accesses.
pub fn moments(batch: &Batch, out: &mut Vec<Moment>) {
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
    /// Moments whose time is known. The times of the others are numbers of the accesses before
    /// them.
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
            let accesses = next.iterations.saturating_mul(next.strides.len() as u64);
            match Inside::of(next) {
                Some(mut inside) => {
                    if self.is_unrolled {
                        inside.accesses = (inside.apart * next.strides.len() as u64) as u32;
                    }
                    inside.until = self.accesses.saturating_add(accesses);
                    self.moment(Some(inside));
                }
                None => self.moment_if_due(),
            }
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
        if self.since >= STEP {
            self.moment(None);
        }
    }

    fn moment(&mut self, inside: Option<Inside>) {
        self.since = 0;
        let loops = if self.is_unrolled { 0 } else { self.next_loop as u32 };
        let (accesses, marks) = (self.access, self.mark);
        self.out.push(Moment { time: self.accesses, accesses, marks, loops, inside });
    }

    /// Gives the moments since the latest stamp their times.
    fn stamp(&mut self, stamp: u64) {
        let (before, began) = self.stamped;
        let stamp = stamp.max(began);
        let accesses = u128::from((self.accesses - before).max(1));
        let time_at = |access: u64| {
            let part = u128::from(access - before) * u128::from(stamp - began) / accesses;
            began + part as u64
        };
        for moment in &mut self.out[self.timed..] {
            moment.time = time_at(moment.time);
            if let Some(inside) = &mut moment.inside {
                inside.until = time_at(inside.until);
            }
        }
        self.timed = self.out.len();
        self.stamped = (self.accesses, stamp);
    }
}
