//! Translations of a loop's accesses.

use crate::core_parts::tlb::{RecentPages, Tlb};
use crate::loops::Strided;

/// Turns for which it is worth while to look whether pages stay.
const SEVERAL: u64 = 4;

impl Tlb {
    /// As many turns of a core's loop.
    ///
    /// # Panics
    /// As [`Tlb::access`].
    pub(crate) fn access_turns(&mut self, core: usize, turns: u64, strides: &[Strided]) {
        let mut turn = 0;
        while turn < turns {
            let stays = self.recent(core).map_or(0, |recent| use_all(recent, turn, turns, strides));
            if stays == 0 {
                for stride in strides {
                    self.access(stride.access_in(core, turn));
                }
            }
            turn += stays.max(1);
        }
    }
}

/// For how many turns all accesses are to pages that are the most recent ones of their sets, and stay it; these are used then. 0 if
/// it is not worth while.
#[inline]
fn use_all(mut recent: RecentPages<'_>, turn: u64, turns: u64, strides: &[Strided]) -> u64 {
    let mut stays = turns - turn;
    for stride in strides {
        stays = stays.min(stride.stays(turn, recent.page_bytes()));
        if stays < SEVERAL {
            return 0;
        }
    }
    if !strides.iter().all(|stride| recent.has(stride.address_in(turn))) {
        return 0;
    }
    for stride in strides {
        let bytes = u64::from(stride.bytes.max(1));
        let (first, last) = (stride.address_in(turn), stride.address_in(turn + stays - 1));
        if stride.length() <= recent.part_bytes() {
            recent.use_parts(first.min(last), first.max(last) + (bytes - 1));
            continue;
        }
        for turn in turn..turn + stays {
            let first = stride.address_in(turn);
            recent.use_parts(first, first + (bytes - 1));
        }
    }
    stays
}
