//! Translations of a loop's accesses.

use crate::core_parts::tlb::{RecentPages, Tlb};
use crate::loops::Strided;

/// The least number of iterations for which pages are worth checking.
const SEVERAL: u64 = 4;

impl Tlb {
    /// Makes a number of iterations of a core's loop.
    ///
    /// # Panics
    /// As [`Tlb::access`].
    pub(crate) fn access_iterations(&mut self, core: usize, iterations: u64, strides: &[Strided]) {
        let mut iteration = 0;
        while iteration < iterations {
            let stays = self.recent(core).map_or(0, |recent| use_all(recent, iteration, iterations, strides));
            if stays == 0 {
                for stride in strides {
                    self.access(stride.access_in(core, iteration));
                }
            }
            iteration += stays.max(1);
        }
    }
}

/// Returns for how many iterations all accesses are to pages that are, and remain, the most recent
/// ones of their sets, and counts these uses. Returns 0 if that is not worth while.
#[inline]
fn use_all(mut recent: RecentPages<'_>, iteration: u64, iterations: u64, strides: &[Strided]) -> u64 {
    let mut stays = iterations - iteration;
    for stride in strides {
        stays = stays.min(stride.stays(iteration, recent.page_bytes()));
        if stays < SEVERAL {
            return 0;
        }
    }
    if !strides.iter().all(|stride| recent.has(stride.address_in(iteration))) {
        return 0;
    }
    for stride in strides {
        let bytes = u64::from(stride.bytes.max(1));
        let (first, last) = (stride.address_in(iteration), stride.address_in(iteration + stays - 1));
        if stride.length() <= recent.part_bytes() {
            recent.use_parts(first.min(last), first.max(last) + (bytes - 1));
            continue;
        }
        for iteration in iteration..iteration + stays {
            let first = stride.address_in(iteration);
            recent.use_parts(first, first + (bytes - 1));
        }
    }
    stays
}
