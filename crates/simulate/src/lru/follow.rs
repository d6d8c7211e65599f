//! Lines that a hierarchy follows.
//!
//! The first level finds them by their mark, here. The depth of a fetch is known when it is
//! settled. So each fetch has an entry among the accesses whose results are combined; these are
//! settled in their order, by any thread.

use crate::lru::deferred::{Asks, Several};
use crate::lru::hierarchy::Hierarchy;
use crate::lru::residencies::{Entry, Fetched, Followed, MARK, TouchedBits, touched_bits};
use crate::tag::Asker;

impl Hierarchy {
    /// [`Hierarchy::follow`] of an access to one line. Its arguments are words, so that the loop
    /// around [`Front::access`] needs no memory for them.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_one(
        &mut self,
        cache: u32,
        core: u32,
        address: u64,
        bytes: u32,
        is_write: bool,
        asker: Asker,
    ) -> bool {
        let (line, line_bytes) = (address >> self.shifts[0], self.line_bytes());
        let touched = touched_bits(line << self.shifts[0], line_bytes, address, bytes.into());
        self.follow(cache, core, Asks { line, is_write, asker }, TouchedBits::of_one(touched))
    }

    /// Looks up a line that is followed. Returns whether the first level has it; else the request
    /// waits.
    #[inline(never)]
    pub(super) fn follow(&mut self, cache: u32, core: u32, asks: Asks, touched: TouchedBits) -> bool {
        let Asks { line, is_write, asker } = asks;
        let last = self.residencies.last(cache, line);
        let entry = self.residencies.entry(last);
        let mark = if entry == Entry::Marked { MARK } else { 0 };
        let moved = self.caches[cache as usize].move_to_front(line | mark, u64::from(is_write));
        if let Some(last) = last.filter(|_| moved.hit) {
            let now = self.residencies.touch(last, touched.all);
            if now != entry {
                self.caches[cache as usize].mark_front(line, now == Entry::Marked);
            }
            return true;
        }
        self.caches[cache as usize].mark_front(line, true);
        let (tag, part_of) = match asker.get() {
            Ok(tag) => (tag, None),
            Err(whole) => (self.waiting.several[whole].tag, Some(whole)),
        };
        let fetch = Several { tag, is_write, depth: 0, is_fetch: true, part_of };
        let tag = part_of.is_none().then_some(tag);
        self.waiting.several.push(fetch);
        let asker = Asker::several(self.waiting.several.len() - 1);
        self.missed(core, line, is_write, moved.last, asker);
        if self.residencies.fetch((cache, core), line, tag, touched) {
            self.unmark();
        }
        false
    }

    /// Takes the marks from lines that are followed no more.
    #[cold]
    fn unmark(&mut self) {
        let Hierarchy { caches, residencies, paths, .. } = self;
        // The first level's caches come first.
        let firsts = paths.iter().map(|path| path[0] as usize + 1).max().unwrap_or(0);
        caches[..firsts].iter_mut().for_each(|cache| cache.unmark(|line| residencies.follows(line)));
    }

    /// Records the bits that a loop touches of a line that it has just looked up: `touched` is as
    /// in [`Hierarchy::show`].
    pub fn touch_more(&mut self, core: usize, line: u64, touched: impl FnOnce() -> TouchedBits) {
        let line = line >> self.shifts[0];
        if self.residencies.follows(line) {
            self.residencies.touch_more(self.paths[core][0], line, touched().all);
        }
    }

    /// Labels the residencies that have no label yet, of a hierarchy [with
    /// residencies](Hierarchy::with_residencies).
    #[inline]
    pub fn label_residencies(&mut self, label: impl FnMut(Fetched) -> u32) {
        self.residencies.label(self.shifts[0], label);
    }

    /// Returns the residencies of the followed lines whose fetches are settled.
    pub fn residencies(&self) -> Followed {
        self.residencies.all(self.shifts[0])
    }
}
