//! Loops that are one record, simulated by line and not by access.
//!
//! While no access of a loop leaves its line, each turn after the first one finds all its lines in the first level and leaves
//! them in the order in which it found them, if there are no more of them than a set has ways. So one turn in full and a
//! count of those that stay give what all turns would. Where few turns stay, finding out costs more than it saves.

use memlode_trace::event::Stride;

use crate::objects::Objects;
use crate::profile::{Origin, Profiler};
use crate::simulator::Simulator;
use crate::stacks::ThreadStack;

/// Turns that must stay in a line, by the fastest stride alone, for it to be worth a look.
const FEW_TURNS: u64 = 4;
/// Accesses that are written out at a time.
const UNROLLED: usize = 256;

impl<S: Simulator> Profiler<S> {
    /// A loop: its strides by turns.
    pub(crate) fn repeat(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        turns: u64,
        strides: &[Stride],
    ) {
        let mut walk = std::mem::take(&mut self.walk);
        walk.clear();
        walk.extend_from_slice(strides);
        let slow = u64::from(self.line_bytes) / FEW_TURNS;
        let few = strides.len() <= self.ways
            && strides.iter().all(|stride| (stride.step as i64).unsigned_abs() <= slow)
            && self.gaps.is_none()
            && self.caches.counting().is_some();
        if !few {
            self.unroll(origin, objects, stack, turns, &mut walk);
            self.walk = walk;
            return;
        }
        let mut left = turns;
        while left > 0 {
            for Stride { access, .. } in &walk {
                // Accesses that have lines of several shards are not in loops that are dealt out.
                if self.is_own(access.address) {
                    self.access(origin, objects, stack, access);
                }
            }
            left -= 1;
            let stay = self.staying(objects, &walk, left);
            for stride in &mut walk {
                if stay > 0 && self.is_own(stride.access.address) {
                    let cell = self.cell(origin, objects, stack, &stride.access);
                    self.hit(cell, &stride.access, stay);
                }
                stride.access.address =
                    stride.access.address.wrapping_add(stride.step.wrapping_mul(1 + stay));
            }
            left -= stay;
        }
        self.walk = walk;
    }

    /// All turns, access by access.
    fn unroll(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        turns: u64,
        walk: &mut [Stride],
    ) {
        let mut unrolled = std::mem::take(&mut self.unrolled);
        for _ in 0..turns {
            for Stride { access, step } in &mut *walk {
                if self.is_own(access.address) {
                    unrolled.push(*access);
                }
                access.address = access.address.wrapping_add(*step);
            }
            if unrolled.len() >= UNROLLED {
                self.accesses(origin, objects, stack, &unrolled);
                unrolled.clear();
            }
        }
        self.accesses(origin, objects, stack, &unrolled);
        unrolled.clear();
        self.unrolled = unrolled;
    }

    /// How many of the next `most` turns stay in the lines of this one and with the same objects.
    fn staying(&self, objects: &mut Objects, walk: &[Stride], most: u64) -> u64 {
        let line = u64::from(self.line_bytes) - 1;
        let mut stay = most;
        for Stride { access, step } in walk {
            let offset = access.address & line;
            // Room in the line behind the access, or in front of it.
            let last =
                u64::from(access.bytes).checked_sub(1).map_or(u64::MAX, |more| offset.saturating_add(more));
            let Some(behind) = line.checked_sub(last) else { return 0 };
            let (room, pace) = match *step as i64 {
                0 => continue,
                step @ 1.. => (behind, step as u64),
                step => (offset, step.unsigned_abs()),
            };
            stay = stay.min(room / pace);
        }
        if stay == 0 {
            return 0;
        }
        for Stride { access, step } in walk {
            let end = access.address.wrapping_add(step.wrapping_mul(stay));
            let (first, last) = (access.address.min(end), access.address.max(end));
            if self.is_fixed(access.site) {
                continue;
            }
            let Some(class) = objects.class_at(access.address) else { return 0 };
            if !objects.has_all(class, first, last) {
                return 0;
            }
        }
        stay
    }
}
