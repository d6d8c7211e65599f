//! One access of a loop, in all its iterations.

use crate::mem_ref::MemRef;
use crate::tag::Tag;

/// One access of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Its address in the first iteration.
    pub address: u64,
    /// From one iteration to the next, modulo 2^64.
    pub step: u64,
    /// Bytes touched.
    pub bytes: u32,
    /// True if it writes.
    pub is_write: bool,
    /// The tag, as in an access.
    pub tag: Tag,
}

impl Strided {
    /// Its address in an iteration, counted from 0.
    #[inline(always)]
    pub fn address_in(&self, iteration: u64) -> u64 {
        self.address.wrapping_add(self.step.wrapping_mul(iteration))
    }

    /// Its access in an iteration, made by a core.
    #[inline(always)]
    pub(crate) fn access_in(&self, core: usize, iteration: u64) -> MemRef {
        let &Strided { bytes, is_write, tag, .. } = self;
        MemRef { address: self.address_in(iteration), bytes, core: core as u32, tag, is_write }
    }

    /// Returns whether each of its accesses lies in one line of `line_bytes`, a power of two,
    /// because it is aligned to its own size.
    pub fn is_aligned(&self, line_bytes: u64) -> bool {
        let bytes = u64::from(self.bytes);
        bytes.is_power_of_two() && bytes <= line_bytes && (self.address | self.step) & (bytes - 1) == 0
    }

    /// Bytes from one iteration to the next, in either direction.
    #[inline(always)]
    pub(super) fn length(&self) -> u64 {
        (self.step as i64).unsigned_abs()
    }

    /// The number of iterations, from this one on, in which it stays in its block of `size` bytes,
    /// a power of two up to 2^31: 0 if it crosses the block's end.
    #[inline(always)]
    pub(super) fn stays(&self, iteration: u64, size: u64) -> u64 {
        let offset = self.address_in(iteration) & (size - 1);
        let Some(behind) = size.checked_sub(offset + u64::from(self.bytes.max(1))) else { return 0 };
        let length = self.length();
        if length >= size {
            return 1;
        }
        let room = if (self.step as i64) < 0 { offset } else { behind };
        // In 32 bits: these divide several times as fast.
        (room as u32).checked_div(length as u32).map_or(u64::MAX, |iterations| 1 + u64::from(iterations))
    }
}
