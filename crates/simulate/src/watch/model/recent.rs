//! Uses of lines that are not in the lines' records yet.
//!
//! Most accesses are to one of a few lines to which nothing else happens. So their uses are
//! gathered here. They are entered before anything happens to the line, or when another line takes
//! its place.

use crate::table::At;
use crate::tag::LineState;
use crate::watch::model::Lines;
use crate::watch::records::Place;
use crate::watch::watcher::Watcher;

/// Number of lines that may have uses that are not in their records.
pub(crate) const RECENT: usize = 1 << 9;

/// A line of the first level, and uses of it that are not in the records yet.
#[derive(Clone, Copy)]
pub(crate) struct Recent {
    pub line: u64,
    /// Bits as in the first level.
    pub used: u64,
    pub core: u32,
    pub record: At,
}

impl Lines {
    /// Enters the uses of a recent line with every cache on its core's way that has it.
    #[inline(never)]
    pub(crate) fn settle(&mut self, number: usize) {
        let Recent { core, line, mut record, used } = self.recent[number];
        if used == 0 {
            return;
        }
        self.recent[number].used = 0;
        let first = self.watcher.paths[core as usize][0] as usize;
        let mut inside = self.caches[first].place.table;
        let address = line << self.watcher.levels[0].line_shift;
        for level in 0..self.watcher.levels.len() {
            let cache = self.watcher.paths[core as usize][level] as usize;
            let Place { table, word, .. } = self.caches[cache].place;
            if table != inside {
                let line = address >> self.watcher.levels[level].line_shift;
                record = self.watcher.outside(inside, record, table, line);
                inside = table;
            }
            let Watcher { levels, tables, exclusive, .. } = &mut self.watcher;
            let table = &mut tables[table];
            if !exclusive[level] && LineState::of(table.get(record, word)).is_held() {
                *table.word(record, word + 1) |= levels[level].widen(&levels[0], address, used);
            }
        }
    }

    /// To be called before anything but a request happens to a line.
    #[inline]
    pub(crate) fn settle_if(&mut self, level: usize, line: u64) {
        let finer = self.watcher.levels[level].line_shift - self.watcher.levels[0].line_shift;
        for line in line << finer..(line + 1) << finer {
            let number = line as usize % RECENT;
            if self.recent[number].line == line {
                self.settle(number);
            }
        }
    }

    /// Returns whether the line that was touched last lies in this one.
    #[inline]
    pub(crate) fn is_last(&self, level: usize, line: u64) -> bool {
        self.recent[self.last].line << self.watcher.levels[0].line_shift
            >> self.watcher.levels[level].line_shift
            == line
    }

    /// Records the bytes of the last line that the current access uses.
    #[inline]
    pub(crate) fn note_use(&mut self) {
        let inner = &self.watcher.levels[0];
        let last = &mut self.recent[self.last];
        let start = last.line << inner.line_shift;
        let end = start + ((1 << inner.line_shift) - 1);
        last.used |= inner.bits(self.now.first.max(start), self.now.last.min(end));
    }
}
