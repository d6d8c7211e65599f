//! Stores in flight, and loads, of a loop.
//!
//! Conflicts depend on distances: between addresses, and in accesses. If all strides go the same
//! step, or nothing is stored, these distances are the same in each iteration, once all stores in
//! flight are the loop's. So one iteration is examined, and counted for all.

use crate::core_parts::store_buffer::StoreBuffer;
use crate::loops::Strided;

impl StoreBuffer {
    /// Makes a number of iterations of a core's loop, which has an access.
    ///
    /// # Panics
    /// As [`StoreBuffer::access`].
    pub(crate) fn access_iterations(&mut self, core: usize, iterations: u64, strides: &[Strided]) {
        // So many iterations are more accesses than are in flight.
        let full = self.window() / strides.len() as u64 + 1;
        let is_steady = strides.iter().all(|stride| stride.step == strides[0].step)
            || !strides.iter().any(|stride| stride.is_write);
        let later = match is_steady {
            true => iterations.saturating_sub(full),
            false => 0,
        };
        // Else nothing would be gained.
        let later = if later > full { later } else { 0 };
        for iteration in 0..iterations - later {
            self.access_iteration(core, iteration, 1, strides);
        }
        if later > 0 {
            self.access_iteration(core, full, later, strides);
            self.skip(core, (later - 1 - full) * strides.len() as u64);
            for iteration in iterations - full..iterations {
                for stride in strides {
                    self.pass(stride.access_in(core, iteration));
                }
            }
        }
    }

    /// Makes the accesses of an iteration, and counts what they meet `times` times.
    #[inline(always)]
    fn access_iteration(&mut self, core: usize, iteration: u64, times: u64, strides: &[Strided]) {
        self.access_all(core, times, strides.iter().map(|stride| stride.access_in(core, iteration)));
    }
}
