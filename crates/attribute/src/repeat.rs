//! Loops that are one record, simulated by line and not by access, where that gives the same ([`Schedule`]).

use std::sync::Arc;

use memlode_trace::Schedule;
use memlode_trace::event::{Dealt, Loop, Stride};

use crate::objects::Objects;
use crate::profile::{Origin, Profiler};
use crate::simulator::Simulator;
use crate::stacks::ThreadStack;

/// Accesses that are written out at a time.
const UNROLLED: usize = 256;

/// The accesses of a stride.
#[derive(Clone, Copy)]
pub(crate) struct Tally {
    /// Whose they are; `None` if not all are of one cell.
    cell: Option<u32>,
    is_write: bool,
    /// How many of them may have missed.
    asked: u64,
}

impl<S: Simulator> Profiler<S> {
    /// A loop: its strides by turns.
    pub(crate) fn repeat(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        repeated: &Loop,
        strides: &[Stride],
    ) {
        let (schedule, begins) = match &repeated.dealt {
            Some(Dealt::Scheduled(schedule)) => (Some(schedule.clone()), false),
            Some(Dealt::Aligned) => (None, true),
            None if self.gaps.is_none() && self.caches.counting().is_some() => {
                (self.schedules.of(strides, repeated.turns).cloned(), true)
            }
            None => (None, true),
        };
        match schedule {
            Some(schedule) => {
                self.by_line(origin, objects, stack, (repeated.turns, begins), strides, &schedule);
            }
            None => self.unroll(origin, objects, stack, repeated.turns, strides),
        }
    }

    /// All turns, access by access.
    fn unroll(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        turns: u64,
        strides: &[Stride],
    ) {
        let mut unrolled = std::mem::take(&mut self.unrolled);
        for turn in 0..turns {
            // Accesses that have lines of several shards are not in loops that are dealt out.
            let accesses = strides.iter().map(|stride| stride.access_in(turn));
            unrolled.extend(accesses.filter(|access| self.is_own(access.address)));
            if unrolled.len() >= UNROLLED {
                self.accesses(origin, objects, stack, &unrolled);
                unrolled.clear();
            }
        }
        self.accesses(origin, objects, stack, &unrolled);
        unrolled.clear();
        self.unrolled = unrolled;
    }

    /// What the schedule shows goes to the caches, of the lines of this shard; the first shard counts all other accesses, which are
    /// hits. The first turn is done if the loop does not begin here.
    fn by_line(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        (turns, begins): (u64, bool),
        strides: &[Stride],
        schedule: &Arc<Schedule>,
    ) {
        let from = u64::from(!begins);
        let counts = self.counts_for_all();
        let mut tallies = std::mem::take(&mut self.tallies);
        for stride in strides {
            let (first, last) = (stride.access_in(from), stride.access_in(turns - 1));
            let ends = (first.address.min(last.address), first.address.max(last.address));
            let cell = self.cell(origin, objects, stack, &first);
            let is_one = self.is_fixed(stride.access.site) || objects.are_one(ends.0, ends.1);
            if !is_one && counts {
                for turn in from..turns {
                    let cell = self.cell(origin, objects, stack, &stride.access_in(turn));
                    self.hits[cell as usize] += 1;
                }
            }
            tallies.push(Tally { cell: is_one.then_some(cell), is_write: stride.is_write, asked: 0 });
        }
        let shift = self.line_bytes.trailing_zeros();
        // Asked for each line: where there is one shard, everything is its own.
        let is_alone = self.shard.1.count() == 1;
        let line_of = |stride: usize| (strides[stride].access.address ^ origin.space) >> shift;
        schedule.walk(begins, turns, line_of, |touch| {
            let tally = &mut tallies[touch.stride];
            let is_own = is_alone || self.is_own(touch.line << shift);
            if !touch.asks {
                if let (true, Some(caches)) = (is_own, self.caches.counting()) {
                    caches.show_line(origin.core, touch.line, tally.is_write);
                }
                return;
            }
            tally.asked += 1;
            let (cell, is_write) = (tally.cell, tally.is_write);
            let cell = match cell {
                Some(cell) => cell,
                None if is_own || counts => {
                    let access = strides[touch.stride].access_in(touch.turn);
                    let cell = self.cell(origin, objects, stack, &access);
                    self.hits[cell as usize] -= u64::from(counts);
                    cell
                }
                None => return,
            };
            let Some(caches) = self.caches.counting().filter(|_| is_own) else { return };
            let is_hit = match touch.lines {
                1 => caches.line_later(origin.core, touch.line, is_write, cell),
                _ => caches.access_later(origin.core, ((touch.line + 1) << shift) - 1, 2, is_write, cell),
            };
            if is_hit {
                self.hits[cell as usize] += 1;
            } else if self.caches.is_full() {
                self.settle();
            }
        });
        for tally in tallies.drain(..).filter(|_| counts) {
            let hits = turns - from - tally.asked;
            if let Some(cell) = tally.cell {
                self.hits[cell as usize] += hits;
            }
            if let Some(caches) = self.caches.counting() {
                caches.hit_again(tally.is_write, hits);
            }
        }
        self.tallies = tallies;
    }
}
