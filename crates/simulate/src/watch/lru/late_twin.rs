//! The lines that a fully associative cache would hold ([`Twin`](crate::watch::twin::Twin)),
//! updated late by a [first level](crate::watch::lru::first_level): of a line's touches in an epoch
//! it learns the first when it comes, and the last when the line is dropped or the epoch ends.

use crate::table::{At, Table};
use crate::watch::twin::{Before, LOST, NEVER};

/// The lines that a fully associative cache would hold, updated late.
#[derive(Clone, Debug)]
pub(crate) struct LateTwin {
    pub capacity: u32,
    pub held: u32,
    /// Word of a record whose low half is the line's last touch, [`NEVER`] or [`LOST`].
    pub word: usize,
    /// Indexed by time: the record that was touched, if this is its last touch.
    pub records: Vec<At>,
    /// Indexed by time, one bit each: it is a line's last touch.
    pub is_last: Vec<u64>,
    /// All last touches are at this time or later.
    pub begin: u32,
    /// When the epoch began, and how many lines have been touched in it.
    pub epoch: u32,
    pub lines: u32,
    pub now: u32,
    /// The first time: lower ones order the lines that the twin has lost.
    pub start: u32,
}

impl LateTwin {
    /// All times are used up.
    #[inline(always)]
    pub fn is_late(&self) -> bool {
        self.now as usize >= self.records.len()
    }

    /// A line is touched now.
    pub fn touch(&mut self, table: &mut Table, record: At) -> Before {
        let before = self.set_last_touch(table, record, self.now);
        self.now += 1;
        if before >= self.start {
            self.forget(before);
            return Before::Held;
        }
        self.held += 1;
        if self.held > self.capacity {
            self.lose(table);
        }
        if before == NEVER { Before::Never } else { Before::Lost }
    }

    /// Corrects the last touch of a line that was touched again.
    pub fn correct(&mut self, table: &mut Table, record: At, told: u32, touched: u32) {
        self.forget(told);
        self.set_last_touch(table, record, touched);
    }

    pub fn last_touch(&self, table: &mut Table, record: At) -> u32 {
        *table.word(record, self.word) as u32
    }

    /// Sets a line's last touch.
    #[inline]
    fn set_last_touch(&mut self, table: &mut Table, record: At, time: u32) -> u32 {
        let stamp = table.word(record, self.word);
        let before = *stamp as u32;
        *stamp = *stamp & !0xffff_ffff | u64::from(time);
        self.records[time as usize] = record;
        self.is_last[time as usize / 64] |= 1 << (time % 64);
        before
    }

    #[inline]
    fn forget(&mut self, time: u32) {
        self.is_last[time as usize / 64] &= !(1 << (time % 64));
    }

    /// Drops the least recent line.
    fn lose(&mut self, table: &mut Table) {
        let mut word = self.begin as usize / 64;
        // Nothing is left below the beginning.
        while self.is_last[word] == 0 {
            word += 1;
        }
        let time = (word * 64) as u32 + self.is_last[word].trailing_zeros();
        debug_assert!(time < self.epoch, "all of what was touched in an epoch is held");
        self.forget(time);
        self.begin = time + 1;
        let stamp = table.word(self.records[time as usize], self.word);
        *stamp = *stamp & !0xffff_ffff | u64::from(LOST);
        self.held -= 1;
    }

    /// Numbers the last touches from the first time on.
    pub fn renumber(&mut self, table: &mut Table) {
        let mut held = Vec::with_capacity(self.held as usize);
        for (word, times) in self.is_last.iter_mut().enumerate() {
            let mut times = std::mem::take(times);
            while times != 0 {
                held.push(self.records[word * 64 + times.trailing_zeros() as usize]);
                times &= times - 1;
            }
        }
        (self.begin, self.now) = (self.start, self.start);
        for record in held {
            self.set_last_touch(table, record, self.now);
            self.now += 1;
        }
    }
}
