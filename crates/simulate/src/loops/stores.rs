//! Stores in flight, and loads, of a loop.
//!
//! Conflicts are a matter of distances: between addresses, and in accesses. Where all go the same step, or nothing is stored, these
//! are the same in each turn, once the stores in flight are all of the loop: so it is asked once, and counted for all turns.

use crate::core_parts::store_buffer::StoreBuffer;
use crate::loops::Strided;

impl StoreBuffer {
    /// As many turns of a core's loop, which has an access.
    ///
    /// # Panics
    /// As [`StoreBuffer::access`].
    pub(crate) fn access_turns(&mut self, core: usize, turns: u64, strides: &[Strided]) {
        // So many turns are more accesses than are in flight.
        let full = self.window() / strides.len() as u64 + 1;
        let is_steady = strides.iter().all(|stride| stride.step == strides[0].step)
            || !strides.iter().any(|stride| stride.is_write);
        let later = match is_steady {
            true => turns.saturating_sub(full),
            false => 0,
        };
        // Else nothing would be gained.
        let later = if later > full { later } else { 0 };
        for turn in 0..turns - later {
            self.access_turn(core, turn, 1, strides);
        }
        if later > 0 {
            self.access_turn(core, full, later, strides);
            self.skip(core, (later - 1 - full) * strides.len() as u64);
            for turn in turns - full..turns {
                for stride in strides {
                    self.pass(stride.access_in(core, turn));
                }
            }
        }
    }

    /// A turn, which is the same so many `times`.
    #[inline(always)]
    fn access_turn(&mut self, core: usize, turn: u64, times: u64, strides: &[Strided]) {
        self.access_all(core, times, strides.iter().map(|stride| stride.access_in(core, turn)));
    }
}
