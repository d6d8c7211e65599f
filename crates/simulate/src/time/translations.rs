//! Page walks under way.

use super::{TimeSpec, ticks};
use crate::core_parts::tlb::Translation;

/// Pages whose last walk is remembered, by the low bits of their numbers.
const PAGES: usize = 64;

/// The page walks of one core. A page that is being walked for can be waited for by others.
pub(super) struct Translations {
    /// Time at which the next walk can begin.
    free: u64,
    /// Ticks of a walk whose line of the page tables is in the second level, and ticks between two
    /// such walks.
    near: u64,
    near_apart: u64,
    /// Lines of page tables from behind the second level that are on their way at the same time.
    far_overlap: u64,
    /// Numbers of pages, and the end of the walk for each.
    pages: [(u64, u64); PAGES],
    /// The latest of these ends.
    latest: u64,
}

impl Translations {
    /// Without walks on their way.
    pub fn new(spec: &TimeSpec) -> Translations {
        Translations {
            free: 0,
            near: ticks(spec.walk),
            near_apart: ticks(spec.walk / spec.overlap_walk),
            far_overlap: (spec.overlap_memory.round() as u64).max(1),
            pages: [(u64::MAX, 0); PAGES],
            latest: 0,
        }
    }

    /// Returns when a page is translated for an access that is ready at a time; `ticks` is the cost
    /// of its translation alone.
    #[inline]
    pub fn translated(&mut self, page: u64, translation: Translation, ready: u64, ticks: u64) -> u64 {
        if self.latest > ready {
            let (walked, end) = self.pages[page as usize % PAGES];
            if walked == page && end > ready {
                return end;
            }
        }
        match translation {
            Translation::Walk => self.walk(page, ready, ticks),
            _ => ready + ticks,
        }
    }

    fn walk(&mut self, page: u64, ready: u64, ticks: u64) -> u64 {
        let begins = ready.max(self.free);
        let end = begins + ticks;
        self.free = begins + self.near_apart + ticks.saturating_sub(self.near) / self.far_overlap;
        self.pages[page as usize % PAGES] = (page, end);
        self.latest = self.latest.max(end);
        end
    }
}
