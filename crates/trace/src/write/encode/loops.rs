//! Loops that are one record, which may go on in several chunks.

use std::borrow::Cow;

use super::{Encoder, FULL_ACCESSES};
use crate::write::AddressSpace;
use crate::write::known::carried_out;

/// A loop of which a part is in chunks already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parted {
    /// Number of times that its strides are there.
    iterations: u64,
    /// When it began, if that is known.
    began: Option<u64>,
    /// About when that part was over, or 0.
    pub time: u64,
}

impl Encoder {
    /// Encodes as many iterations of a segment's strides as the chunk has room for, and `behind`
    /// them words of other segments. Returns whether these were the last iterations. If others
    /// follow and both sides of the loop are stamped, the chunk ends when its part of the loop did.
    #[inline(never)]
    pub(super) fn repeat(&mut self, id: u32, operands: &[u64], behind: &[u64], space: &AddressSpace) -> bool {
        let strides = self.segments[id as usize].strides;
        let steps = self.segments[id as usize].steps;
        let base = self.hot[id as usize].base;
        let room = FULL_ACCESSES.saturating_sub(self.chunk.accesses).div_ceil(strides.into());
        let steps = &self.steps[steps.0 as usize..steps.1 as usize];
        let done = self.parted.iterations;
        let all = carried_out(operands, steps);
        let left = all.saturating_sub(done);
        let iterations = left.min(room);
        let mut part = Cow::Borrowed(operands);
        if iterations != operands[0] {
            let part = part.to_mut();
            part[0] = iterations;
            for &(word, step) in steps {
                part[word as usize] = part[word as usize].wrapping_add(step.wrapping_mul(done));
            }
        }
        if done == 0 {
            let before = self.chunk.previous;
            let base = self.hot[before as usize].base as usize;
            self.parted.began = self.segments[before as usize]
                .stamp
                .map(|word| self.last[base + usize::from(word)])
                .filter(|&stamp| stamp > 1);
        }
        let last = &mut self.last[base as usize..base as usize + part.len()];
        self.chunk.put(&part, last, &mut self.differences);
        self.chunk.segments += 1;
        self.chunk.accesses += iterations * u64::from(strides);
        self.chunk.previous = id;
        if iterations == left {
            self.parted = Parted::default();
            return true;
        }
        self.parted.iterations = done + iterations;
        if let (Some(began), Some(ended)) = (self.parted.began, self.stamp_in(behind, space)) {
            let gone =
                u128::from(ended.saturating_sub(began)) * u128::from(done + iterations) / u128::from(all);
            let stamps = &mut self.chunk.stamps;
            self.parted.time = began.saturating_add(gone as u64).clamp(stamps.0, stamps.1);
            stamps.1 = self.parted.time;
        }
        false
    }

    /// The stamp in the first segment of some words, if there is one.
    fn stamp_in(&mut self, words: &[u64], space: &AddressSpace) -> Option<u64> {
        let (&header, operands) = words.split_first()?;
        let id = self.look_up::<true>(header, space).ok()?;
        let stamp = *operands.get(usize::from(self.segments[id as usize].stamp?))?;
        Some(stamp).filter(|&stamp| stamp > 1)
    }
}
