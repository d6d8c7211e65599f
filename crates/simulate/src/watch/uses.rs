//! From the slots of first levels, which see every use of a line, to the records of lines.

use crate::table::At;
use crate::watch::causes::{Level, LineWatch};
use crate::watch::records::OUTER;

impl LineWatch {
    /// Enters uses with the innermost level of a record, for [`LineWatch::evicted`] to hand on.
    #[inline]
    pub(crate) fn enter_used(&mut self, first: usize, line: u64, record: At, used: u64) {
        let place = self.places[first];
        *self.tables[place.table].word(record, place.word + 1) |= used;
        if self.tables.len() > 1 {
            self.enter_used_outside(first, line, record, used);
        }
    }

    /// The same with the outer records, which have other users besides.
    #[inline(never)]
    fn enter_used_outside(&mut self, first: usize, line: u64, mut record: At, used: u64) {
        let Some(path) = self.paths.iter().find(|path| path[0] as usize == first) else { return };
        let mut table = self.places[first].table;
        let inner = &self.levels[0];
        for (level, cache) in self.levels.iter().zip(path).skip(1) {
            let place = self.places[*cache as usize];
            if place.table == table {
                continue;
            }
            let outer = *self.tables[table].word(record, OUTER) as u32;
            if outer == 0 {
                return; // Nobody has asked for the line that far out.
            }
            (table, record) = (place.table, outer - 1);
            *self.tables[table].word(record, place.word + 1) |= match level.line_shift == inner.line_shift {
                true => used,
                false => widen(inner, level, line << inner.line_shift, used),
            };
        }
    }

    /// Enters what first levels have seen of a line of an outer cache; says whether any of them has it.
    #[inline]
    pub(crate) fn enter_used_of(&mut self, level: usize, cache: usize, line: u64) -> bool {
        let finer = self.levels[level].line_shift - self.levels[0].line_shift;
        let mut is_there = false;
        for core in 0..self.paths.len() {
            if self.paths[core][level] as usize != cache {
                continue;
            }
            let first = self.paths[core][0] as usize;
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

/// Bits of a first-level line as bits of the longer line around it.
pub(crate) fn widen(inner: &Level, outer: &Level, address: u64, used: u64) -> u64 {
    let grain = 1 << inner.grain_shift;
    let set = (0..64).filter(|bit| used >> bit & 1 != 0).map(|bit| address + bit * grain);
    set.fold(0, |bits, first| bits | outer.bits(first, first + (grain - 1)))
}
