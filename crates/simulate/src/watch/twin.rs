//! The lines that a fully associative LRU cache of a given size would hold.
//!
//! Touches are numbered, and each line remembers the number of its last one, its *stamp*. The cache
//! holds the lines with the highest stamps. So it is enough to keep where these begin, and which
//! line each later touch was of:
//!
//! ```text
//!   touch     2 3 4 5 6 7 8 9               capacity 3
//!   line      A B A C B A D .               lines A, B and C were held when D came; the last touches of
//!   stamp     . . . 5 6 7 8                 these are 5, 6 and 7, so C is lost, and the cache begins at 6
//! ```
//!
//! A touch writes two words in a row, whatever the size of the cache; the beginning moves over each
//! touch once. When the numbers are used up, the last touches are renumbered.

use crate::table::{At, Table};

/// Stamp of a line that was never touched.
pub(crate) const NEVER: u32 = 0;
/// Stamp of a line that the cache does not hold any more.
pub(crate) const LOST: u32 = 1;
/// The first touch.
const FIRST: u32 = 2;

/// A cache's knowledge of a line that was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing.
    Never,
    /// It had held it.
    Lost,
    /// It held it.
    Held,
}

/// One fully associative cache over the records of a [`Table`].
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    capacity: u32,
    /// The word of a record whose low half is the stamp.
    word: usize,
    held: u32,
    /// Indexed by touch: the line's record.
    touched: Vec<At>,
    /// First touch that may count.
    begin: u32,
    /// Number of the next touch.
    now: u32,
}

impl Twin {
    /// Empty, for `lines` lines, fewer than 2^29. Its stamps are the low halves of the records'
    /// words `word`.
    pub fn new(lines: u32, word: usize) -> Twin {
        debug_assert!((1..1 << 29).contains(&lines));
        // Four times as many touches as lines: numbering anew costs a third of a step a touch.
        let touches = (4 * lines as usize).max(1 << 12);
        Twin { capacity: lines, word, held: 0, touched: vec![0; touches], begin: FIRST, now: FIRST }
    }

    /// Makes a line the most recent.
    #[inline]
    pub fn touch(&mut self, table: &mut Table, at: At) -> Before {
        if self.now as usize == self.touched.len() {
            self.renumber(table);
        }
        let stamp = table.word(at, self.word);
        let before = *stamp as u32;
        *stamp = *stamp & !0xffff_ffff | u64::from(self.now);
        self.touched[self.now as usize] = at;
        self.now += 1;
        match before {
            NEVER | LOST => {
                self.held += 1;
                if self.held > self.capacity {
                    self.lose(table);
                }
                if before == NEVER { Before::Never } else { Before::Lost }
            }
            _ => Before::Held,
        }
    }

    /// Returns the state of a line in the cache.
    #[inline]
    pub fn look(&self, table: &mut Table, at: At) -> Before {
        match *table.word(at, self.word) as u32 {
            NEVER => Before::Never,
            LOST => Before::Lost,
            _ => Before::Held,
        }
    }

    /// Removes a line, or remembers that it was requested; returns its state before.
    pub fn take(&mut self, table: &mut Table, at: At) -> Before {
        let before = self.look(table, at);
        self.held -= u32::from(before == Before::Held);
        let stamp = table.word(at, self.word);
        *stamp = *stamp & !0xffff_ffff | u64::from(LOST);
        before
    }

    /// Drops the least recent line.
    fn lose(&mut self, table: &mut Table) {
        loop {
            let touch = self.begin;
            self.begin += 1;
            // The lines at this end were touched long ago.
            if let Some(soon) = self.touched.get(self.begin as usize + 8) {
                table.prefetch(*soon);
            }
            let stamp = table.word(self.touched[touch as usize], self.word);
            if *stamp as u32 == touch {
                *stamp = *stamp & !0xffff_ffff | u64::from(LOST);
                self.held -= 1;
                return;
            }
        }
    }

    /// Numbers the touches that count from the first on.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self, table: &mut Table) {
        let mut next = FIRST;
        for touch in self.begin..self.now {
            let at = self.touched[touch as usize];
            let stamp = table.word(at, self.word);
            let last = *stamp as u32 == touch;
            let new = if last { next } else { *stamp as u32 };
            *stamp = *stamp & !0xffff_ffff | u64::from(new);
            // `next` is at most `touch`; what it overwrites has been read.
            self.touched[next as usize] = at;
            next += u32::from(last);
        }
        (self.begin, self.now) = (FIRST, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Long enough to number anew several times.
        #[test]
        fn a_twin_equals_a_list(capacity in 1u32..1500, lines in 1u64..2500, seed in any::<u64>()) {
            let mut table = Table::new(2);
            let mut twin = Twin::new(capacity, 1);
            let mut list: Vec<u64> = Vec::new();
            let mut seen = vec![false; lines as usize];
            let mut random = seed | 1;
            for _ in 0..20_000 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let line = (random >> 40) % (1 + (random >> 20) % lines);
                let place = list.iter().rposition(|held| *held == line);
                if let Some(place) = place {
                    list.remove(place);
                } else if list.len() == capacity as usize {
                    list.remove(0);
                }
                list.push(line);
                let seen = std::mem::replace(&mut seen[line as usize], true);
                let expected = match (seen, place) {
                    (false, _) => Before::Never,
                    (true, None) => Before::Lost,
                    (true, Some(_)) => Before::Held,
                };
                let at = table.find(line);
                prop_assert_eq!(twin.touch(&mut table, at), expected);
            }
        }
    }
}
