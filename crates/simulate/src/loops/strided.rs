//! One access of a loop, in all its turns.

use crate::mem_ref::MemRef;
use crate::tag::Tag;

/// One access of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Its address in the first turn.
    pub address: u64,
    /// From one turn to the next, modulo 2^64.
    pub step: u64,
    /// Bytes touched.
    pub bytes: u32,
    /// True if it writes.
    pub is_write: bool,
    /// As of an access.
    pub tag: Tag,
}

impl Strided {
    /// Its address in a turn, counted from 0.
    #[inline(always)]
    pub fn address_in(&self, turn: u64) -> u64 {
        self.address.wrapping_add(self.step.wrapping_mul(turn))
    }

    /// Its access in a turn, made by a core.
    #[inline(always)]
    pub(crate) fn access_in(&self, core: usize, turn: u64) -> MemRef {
        let &Strided { bytes, is_write, tag, .. } = self;
        MemRef { address: self.address_in(turn), bytes, core: core as u32, tag, is_write }
    }

    /// Returns whether each of its accesses lies in one line of `line_bytes`, a power of two, because it is aligned to its own size.
    pub fn is_aligned(&self, line_bytes: u64) -> bool {
        let bytes = u64::from(self.bytes);
        bytes.is_power_of_two() && bytes <= line_bytes && (self.address | self.step) & (bytes - 1) == 0
    }

    /// Bytes from one turn to the next, in either direction.
    #[inline(always)]
    pub(super) fn length(&self) -> u64 {
        (self.step as i64).unsigned_abs()
    }

    /// For how many turns, from this one on, it lies in a block of `size` bytes, a power of two up to 2^31, that it is in: 0 if it goes
    /// over its end.
    #[inline(always)]
    pub(super) fn stays(&self, turn: u64, size: u64) -> u64 {
        let offset = self.address_in(turn) & (size - 1);
        let Some(behind) = size.checked_sub(offset + u64::from(self.bytes.max(1))) else { return 0 };
        let length = self.length();
        if length >= size {
            return 1;
        }
        let room = if (self.step as i64) < 0 { offset } else { behind };
        // In 32 bits: these divide several times as fast.
        (room as u32).checked_div(length as u32).map_or(u64::MAX, |turns| 1 + u64::from(turns))
    }
}
