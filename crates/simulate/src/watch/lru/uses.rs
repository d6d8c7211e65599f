//! From the slots of first levels, which see every use of a line, to the records of lines.

use crate::table::At;
use crate::watch::lru::WatchedLru;

impl WatchedLru {
    /// Enters uses with the innermost level of a record, to be passed to the next level when that
    /// one misses the line.
    #[inline]
    pub(crate) fn enter_used(&mut self, first: usize, line: u64, record: At, used: u64) {
        let place = self.watcher.places[first];
        *self.watcher.tables[place.table].word(record, place.word + 1) |= used;
        if self.watcher.tables.len() > 1 {
            self.enter_used_outside(first, line, record, used);
        }
    }

    /// The same with the outer records, which have other users besides.
    #[inline(never)]
    fn enter_used_outside(&mut self, first: usize, line: u64, mut record: At, used: u64) {
        let Some(path) = self.watcher.paths.iter().find(|path| path[0] as usize == first) else { return };
        let mut table = self.watcher.places[first].table;
        let inner = &self.watcher.levels[0];
        for (level, cache) in self.watcher.levels.iter().zip(path).skip(1) {
            let place = self.watcher.places[*cache as usize];
            if place.table == table {
                continue;
            }
            let Some(outside) = self.watcher.known_outside(table, record) else { return };
            (table, record) = (place.table, outside);
            *self.watcher.tables[table].word(record, place.word + 1) |=
                level.widen(inner, line << inner.line_shift, used);
        }
    }

    /// Enters the uses that first levels have seen of a line of an outer cache; returns whether any
    /// of them has the line.
    #[inline]
    pub(crate) fn enter_used_of(&mut self, level: usize, cache: usize, line: u64) -> bool {
        let finer = self.watcher.levels[level].line_shift - self.watcher.levels[0].line_shift;
        let mut is_there = false;
        for core in 0..self.watcher.paths.len() {
            if self.watcher.paths[core][level] as usize != cache {
                continue;
            }
            let first = self.watcher.paths[core][0] as usize;
            for line in line << finer..(line + 1) << finer {
                if let Some((record, used)) = self.take_used(first, line) {
                    is_there = true;
                    self.enter_used(first, line, record, used);
                }
            }
        }
        is_there
    }
}
