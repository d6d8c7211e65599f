//! Bounds of misses where the first contents of the caches are unknown.
//!
//! Before a trace that begins in the middle of a program, and after each gap in it, caches hold
//! lines whose fetches were not recorded. Under LRU, some accesses are certain nevertheless:
//! - a **hit**, if the line was touched since;
//! - a **miss**, if as many other lines of its set as the set has ways were touched since: whatever
//!   the set held is gone. Such a set is called primed (Laha, Patel and Iyer, "Accurate low-cost
//!   methods for performance evaluation of cache memory systems", IEEE Transactions on Computers
//!   37(11), 1988).
//!
//! The rest, the initialization references, may be either (Wood, Hill and Kessler, "A model for
//! estimating trace-sample miss ratios", SIGMETRICS 1991). Taking all of them for hits gives a
//! lower bound of the misses, taking all of them for misses an upper bound.
//!
//! Bounds of an outer level hold as far as it is looked up in the same order: a line that an inner
//! level may have held counts as touched in the outer ones.

use crate::lru::hierarchy::{Found, Hierarchy, Observer};
use crate::mem_ref::MemRef;
use crate::spec::MAX_LEVELS;

/// Least and most misses of each level; the contents of caches become unknown at
/// [`Bounds::forget`].
pub struct Bounds {
    empty: Hierarchy,
    caches: Hierarchy,
    /// True if the caches' contents are known: they were empty, and nothing was forgotten.
    known: bool,
    least: [u64; MAX_LEVELS],
    most: [u64; MAX_LEVELS],
}

impl Bounds {
    /// Caches that are empty as yet: a hierarchy that has simulated nothing.
    pub fn new(empty: Hierarchy) -> Bounds {
        let caches = empty.clone();
        Bounds { empty, caches, known: true, least: [0; MAX_LEVELS], most: [0; MAX_LEVELS] }
    }

    /// From here on the contents of the caches are unknown.
    pub fn forget(&mut self) {
        self.caches = self.empty.clone();
        self.known = false;
    }

    /// One access, as [`Hierarchy::access`].
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    pub fn access(&mut self, access: MemRef) {
        let mut walk = Walk::default();
        let most = self.caches.access_observed(access, &mut walk);
        let least = if self.known { most } else { walk.least() };
        let levels = self.most.iter_mut().zip(&mut self.least);
        for (level, (most_here, least_here)) in (0..most).zip(levels) {
            *most_here += 1;
            *least_here += u64::from(least > level);
        }
    }

    /// Least and most misses of each level, innermost first.
    pub fn misses(&self) -> Vec<(u64, u64)> {
        let levels = self.caches.levels().len();
        self.least.into_iter().zip(self.most).take(levels).collect()
    }
}

/// Finds the level that certainly served the access, or may have: the first that hit, or missed
/// without evicting a line.
#[derive(Default)]
struct Walk {
    /// The deepest of the lines before.
    before: u8,
    /// Number of levels that the current line has certainly missed.
    missed: u8,
    /// True if a level may have had it.
    over: bool,
}

impl Walk {
    fn least(&self) -> u8 {
        self.before.max(self.missed)
    }
}

impl Observer for Walk {
    fn asked(&mut self, level: usize, _cache: usize, _line: u64, found: Found) {
        if level == 0 {
            *self = Walk { before: self.least(), ..Walk::default() };
        }
        // The level inside this one missed, and dropped nothing.
        self.over |= found == Found::Hit || usize::from(self.missed) < level;
    }

    fn evicted(&mut self, level: usize, _cache: usize, _line: u64, _note: u32) {
        if !self.over && usize::from(self.missed) == level {
            self.missed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::LevelSpec;

    fn caches() -> Hierarchy {
        let level = |lines: u64, ways| LevelSpec { bytes: 64 * lines, ways, line_bytes: 64, shared_by: 1 };
        Hierarchy::new(&[level(2, 2), level(4, 4)], 1).unwrap()
    }

    #[test]
    fn of_caches_that_were_empty_everything_is_known() {
        let mut bounds = Bounds::new(caches());
        for line in [0, 1, 0, 2, 0] {
            bounds.access(MemRef::read(0, line * 64, 8));
        }
        assert_eq!(bounds.misses(), [(3, 3), (3, 3)]);
    }

    #[test]
    fn a_set_is_known_once_it_is_full() {
        let mut bounds = Bounds::new(caches());
        bounds.forget();
        // 0 and 1 may have been anywhere; 2 cannot be in the first level, 4 in neither.
        for line in [0, 1, 2, 3, 4] {
            bounds.access(MemRef::write(0, line * 64, 8));
        }
        assert_eq!(bounds.misses(), [(3, 5), (1, 5)]);
        bounds.access(MemRef::read(0, 4 * 64, 8)); // certainly a hit
        bounds.access(MemRef::read(0, 2 * 64, 8)); // certainly in the second level alone
        assert_eq!(bounds.misses(), [(4, 6), (1, 5)]);
    }

    #[test]
    fn two_lines_are_as_deep_as_the_deeper_one() {
        let mut bounds = Bounds::new(caches());
        bounds.forget();
        for line in [0, 1, 2] {
            bounds.access(MemRef::read(0, line * 64, 8));
        }
        bounds.access(MemRef::read(0, 2 * 64 + 60, 8)); // 2 hits; 3 is not in the first level, perhaps in the second
        assert_eq!(bounds.misses(), [(2, 4), (0, 4)]);
    }

    /// For any first contents of the caches, the true count lies between the bounds.
    #[test]
    fn the_truth_lies_between() {
        let mut random = 1u64;
        let mut line = move || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % 7
        };
        for _ in 0..500 {
            let mut truth = caches();
            (0..20).for_each(|_| _ = truth.access(MemRef::read(0, line() * 64, 8)));
            let before = truth.counters();
            let mut bounds = Bounds::new(caches());
            bounds.forget();
            for _ in 0..12 {
                let address = line() * 64;
                truth.access(MemRef::read(0, address, 8));
                bounds.access(MemRef::read(0, address, 8));
            }
            let misses = truth.counters()[0].read_misses - before[0].read_misses;
            let (least, most) = bounds.misses()[0];
            assert!((least..=most).contains(&misses), "{misses} is not in {least}..={most}");
        }
    }
}
