//! The lines of a watched cache behind the first level: which line of a set is the most recent, and
//! which is evicted next.
//!
//! ```text
//!   row     C D A B │ 2       a set of four ways: a ring of records, and where its most recent one is
//!                             in the order of their last touches A, B, C, D; D goes next, and what comes takes its place
//! ```
//! A line's record says whether the cache holds it. So missing lines are never searched for, and
//! replacing a line takes one store. Rows of records are half as long as rows of lines, so more of
//! them stay in the host's caches, which matters here.

use crate::lru::sets::SetIndex;
use crate::spec::LevelSpec;
use crate::table::{At, prefetch};

/// An unused way. No record is there: it would end beyond the words that a table may have.
const EMPTY: At = At::MAX;

/// With fewer records than this, they stay in the host's second level.
const STAYS: usize = 1 << 16;

/// Rows of records.
#[derive(Clone, Debug)]
pub(crate) struct Outer {
    sets: SetIndex,
    ways: usize,
    /// Indexed by set, `ways` records, and the place of the most recent one.
    rows: Vec<At>,
}

impl Outer {
    /// Makes an empty cache.
    pub fn new(spec: &LevelSpec) -> Outer {
        let (sets, ways) = (spec.sets() as usize, spec.ways as usize);
        let rows = (0..sets * (ways + 1)).map(|word| if word % (ways + 1) == ways { 0 } else { EMPTY });
        Outer { sets: SetIndex::new(spec.sets()), ways, rows: rows.collect() }
    }

    /// A line that is here becomes the most recent one of its set.
    #[inline]
    pub fn touch(&mut self, line: u64, record: At) {
        let (row, newest) = self.row(line);
        let (mut place, mut moved) = (*newest as usize, record);
        // All that were touched since move on by one.
        loop {
            std::mem::swap(&mut row[place], &mut moved);
            if moved == record {
                return;
            }
            place = if place + 1 == row.len() { 0 } else { place + 1 };
            assert!(place != *newest as usize, "a cache holds what came in and did not go");
        }
    }

    /// Makes a line the most recent one of its set; returns the line that is evicted, if there is
    /// one.
    #[inline]
    pub fn enter(&mut self, line: u64, record: At) -> Option<At> {
        let (row, newest) = self.row(line);
        *newest = if *newest == 0 { row.len() as At } else { *newest } - 1;
        let gone = std::mem::replace(&mut row[*newest as usize], record);
        (gone != EMPTY).then_some(gone)
    }

    /// The one that would go if a line came in now.
    #[inline]
    pub fn oldest(&self, line: u64) -> Option<At> {
        let first = self.first(line);
        let newest = self.rows[first + self.ways] as usize;
        let oldest = self.rows[first + if newest == 0 { self.ways } else { newest } - 1];
        (oldest != EMPTY).then_some(oldest)
    }

    /// Prefetches the row of a line's set, if it may not be in the host's caches.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        if self.rows.len() < STAYS {
            return;
        }
        let first = self.first(line);
        prefetch(&self.rows[first]);
        prefetch(&self.rows[first + self.ways]);
    }

    #[inline(always)]
    fn first(&self, line: u64) -> usize {
        self.sets.of(line) * (self.ways + 1)
    }

    /// The ring of a line's set, and the place of its most recent record.
    #[inline(always)]
    fn row(&mut self, line: u64) -> (&mut [At], &mut At) {
        let (first, ways) = (self.first(line), self.ways);
        let (row, newest) = self.rows[first..=first + ways].split_at_mut(ways);
        (row, &mut newest[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ring_equals_a_list(sets in 1u64..6, ways in 1u32..20, lines in prop::collection::vec(0u64..60, 1..600)) {
            let mut outer = Outer::new(&LevelSpec {
                bytes: 64 * sets * u64::from(ways),
                ways,
                line_bytes: 64,
                shared_by: 1,
            });
            let mut lists = vec![Vec::new(); sets as usize];
            for line in lines {
                let list: &mut Vec<u64> = &mut lists[(line % sets) as usize];
                let goes = (list.len() == ways as usize).then(|| list[0] as At);
                prop_assert_eq!(outer.oldest(line), goes);
                match list.iter().position(|held| *held == line) {
                    Some(place) => {
                        list.remove(place);
                        outer.touch(line, line as At);
                    }
                    None => {
                        prop_assert_eq!(outer.enter(line, line as At), goes);
                        list.drain(..usize::from(goes.is_some()));
                    }
                }
                list.push(line);
            }
        }
    }
}
