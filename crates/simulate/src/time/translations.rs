//! Page walks under way.

use crate::core_parts::tlb::Translation;

/// Pages whose last walk is remembered, by the low bits of their numbers.
const PAGES: usize = 64;

/// The page walkers of one core. A page that is being walked for can be waited for by others.
pub(super) struct Translations {
    /// Time at which each walker is free.
    walkers: Vec<u64>,
    /// Numbers of pages, and the end of the walk for each.
    pages: [(u64, u64); PAGES],
    /// The latest of these ends.
    latest: u64,
}

impl Translations {
    /// So many walkers, all idle.
    pub fn new(walkers: usize) -> Translations {
        Translations { walkers: vec![0; walkers.max(1)], pages: [(u64::MAX, 0); PAGES], latest: 0 }
    }

    /// Returns when a page is translated for an access that is ready at a time; `ticks` is what its translation takes by itself.
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
        let walker = (0..self.walkers.len()).min_by_key(|&walker| self.walkers[walker]).unwrap_or(0);
        let end = ready.max(self.walkers[walker]) + ticks;
        self.walkers[walker] = end;
        self.pages[page as usize % PAGES] = (page, end);
        self.latest = self.latest.max(end);
        end
    }
}
