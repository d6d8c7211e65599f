//! A hierarchy's way with lines that are followed.
//!
//! The first level finds them by their mark, here. How deep a fetch goes is known when it is settled: so each has an entry among the
//! accesses whose answers are put together, and these are answered in their order, by whichever thread.

use crate::lru::deferred::{Asks, Several};
use crate::lru::hierarchy::Hierarchy;
use crate::lru::stays::{Entry, Fetched, Followed, MARK, TouchedBits, touched_bits};
use crate::tag::Asker;

impl Hierarchy {
    /// [`Hierarchy::follow`] of an access to one line. Its arguments are words, so that the loop around [`Front::access`] needs no
    /// memory for them.
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

    /// An access to a line that is followed: says whether the first level has it, else the request waits.
    #[inline(never)]
    pub(super) fn follow(&mut self, cache: u32, core: u32, asks: Asks, touched: TouchedBits) -> bool {
        let Asks { line, is_write, asker } = asks;
        let last = self.stays.last(cache, line);
        let entry = self.stays.entry(last);
        let mark = if entry == Entry::Marked { MARK } else { 0 };
        let moved = self.caches[cache as usize].move_to_front(line | mark, u64::from(is_write));
        if let Some(last) = last.filter(|_| moved.hit) {
            let now = self.stays.touch(last, touched.all);
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
        if self.stays.fetch((cache, core), line, tag, touched) {
            self.unmark();
        }
        false
    }

    /// Takes the marks from lines that are followed no more.
    #[cold]
    fn unmark(&mut self) {
        let Hierarchy { caches, stays, paths, .. } = self;
        // The first level's caches come first.
        let firsts = paths.iter().map(|path| path[0] as usize + 1).max().unwrap_or(0);
        caches[..firsts].iter_mut().for_each(|cache| cache.unmark(|line| stays.follows(line)));
    }

    /// Says what a loop touches of a line that it has just asked for: `touched` is as of [`Hierarchy::show`].
    pub fn touch_more(&mut self, core: usize, line: u64, touched: impl FnOnce() -> TouchedBits) {
        let line = line >> self.shifts[0];
        if self.stays.follows(line) {
            self.stays.touch_more(self.paths[core][0], line, touched().all);
        }
    }

    /// Labels the stays that have no label yet, of a hierarchy [with stays](Hierarchy::with_stays).
    #[inline]
    pub fn label_stays(&mut self, label: impl FnMut(Fetched) -> u32) {
        self.stays.label(self.shifts[0], label);
    }

    /// Returns the stays of the lines that were followed, as far as their fetches are settled.
    pub fn stays(&self) -> Followed {
        self.stays.all(self.shifts[0])
    }
}
