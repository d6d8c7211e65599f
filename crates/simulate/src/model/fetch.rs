//! Prefetchers: what they see, what they fetch, and whether it was useful.

use super::Model;
use super::array::{Left, PREFETCHED};
use super::prefetch::{Ahead, Kind, Learner, Seen};
use super::spec::{ModelLevel, ModelSpec};
use super::walk::{Origin, Request};
use crate::lru::hierarchy::Observer;
use crate::tag::Tag;

/// A line that a prefetcher would like to have.
pub(super) struct Wanted {
    core: usize,
    level: usize,
    line: u64,
    tag: Tag,
}

/// The prefetchers of one cache of a level.
pub(super) fn ahead(spec: &ModelSpec, level: &ModelLevel) -> Option<Box<Ahead>> {
    let shape = &level.shape;
    let slots = shape.sets() as usize * shape.ways as usize;
    let page_shift = spec.page_bytes.trailing_zeros();
    let ahead = || Box::new(Ahead::new(&level.prefetch, shape.line_shift(), page_shift, slots));
    (!level.prefetch.is_empty()).then(ahead)
}

impl Model {
    /// [`Self::see`] for an access that the first level serves from this slot.
    #[inline]
    pub(super) fn see_hit(&mut self, cache: usize, request: &Request, slot: usize) {
        let Some(ahead) = &mut self.ahead[cache] else { return };
        let was_fetched_ahead = *self.arrays[cache].flags(slot) & PREFETCHED != 0;
        match ahead.learner {
            Learner::Nobody if !was_fetched_ahead => {}
            Learner::Stride(place) if !was_fetched_ahead => {
                let &Request { core, first, tag, goes_on, .. } = request;
                if let Kind::Stride(stride) = &mut ahead.prefetchers[place]
                    && !goes_on
                    && let Some(line) = stride.learn(core, tag, first)
                {
                    let page_shift = self.spec.page_bytes.trailing_zeros();
                    if line << self.line_shifts[0] >> page_shift == first >> page_shift {
                        self.wanted.push_back(Wanted { core, level: 0, line, tag });
                    }
                }
            }
            _ => self.see(0, request, request.first, Some(slot), true),
        }
    }

    /// A request for the line at `first` arrived at a cache with prefetchers, which holds it in
    /// `slot` or not.
    pub(super) fn see(
        &mut self,
        level: usize,
        request: &Request,
        first: u64,
        slot: Option<usize>,
        demand: bool,
    ) {
        let Model { spec, arrays, ahead, prefetch, lines, wanted, .. } = self;
        let cache = self.paths[request.core][level] as usize;
        let Some(ahead) = &mut ahead[cache] else { return };
        let counters = &mut prefetch[level];
        let shift = self.line_shifts[level];
        let line = first >> shift;
        let mut first_use = false;
        match slot {
            Some(slot) => {
                let flags = arrays[cache].flags(slot);
                first_use = *flags & PREFETCHED != 0;
                if first_use {
                    *flags &= !PREFETCHED;
                    counters.useful += 1;
                    counters.late += u64::from(self.clock < ahead.arrivals[slot]);
                }
            }
            None if demand => counters.pollution += u64::from(ahead.take_dropped(line)),
            None => {}
        }
        let address = first.max(request.first);
        let seen = Seen {
            core: request.core,
            address,
            line,
            tag: request.tag,
            goes_on: request.goes_on,
            miss: slot.is_none(),
            first_use,
        };
        for prefetcher in &mut ahead.prefetchers {
            prefetcher.see(&seen, lines);
        }
        if lines.is_empty() {
            return;
        }
        let page_shift = spec.page_bytes.trailing_zeros() - shift;
        for line in lines.drain(..).filter(|wanted| wanted >> page_shift == line >> page_shift) {
            wanted.push_back(Wanted { core: request.core, level, line, tag: request.tag });
        }
    }

    /// A prefetched line was given a slot, for which another may have made room.
    pub(super) fn sent_for(&mut self, cache: usize, line: u64, slot: usize, out: Option<Left>) {
        let arrival = self.clock + 1 + u64::from(self.spec.fill_accesses) * self.busy;
        let Some(ahead) = &mut self.ahead[cache] else { return };
        ahead.arrivals[slot] = arrival;
        ahead.take_dropped(line);
        if let Some(out) = out.filter(|out| out.flags & PREFETCHED == 0) {
            ahead.drop_for_prefetch(out.line);
        }
    }

    /// Fetches the lines that prefetchers want after an access. A prefetch can set off only
    /// prefetchers of outer levels.
    #[inline]
    pub(super) fn fetch_ahead(&mut self, observer: &mut impl Observer) {
        if !self.wanted.is_empty() {
            self.fetch_wanted(observer);
        }
    }

    #[inline(never)]
    fn fetch_wanted(&mut self, observer: &mut impl Observer) {
        while let Some(Wanted { core, level, line, tag }) = self.wanted.pop_front() {
            let cache = self.paths[core][level] as usize;
            if self.arrays[cache].find(line).is_some() {
                continue;
            }
            self.prefetch[level].issued += 1;
            let (first, last) = self.range(level, line, u64::MAX);
            let request = Request { core, first, last, is_write: false, tag, goes_on: false };
            // Other cores' copies are their own no longer; a level that all cores share is on everyone's way.
            let private = self.directory.as_ref().is_some_and(|directory| directory.tracks(cache));
            let claimed = private.then(|| self.claim(&request, observer));
            let shared = claimed.is_some_and(|claimed| claimed.shared);
            self.walk(&request, Origin::Prefetcher(level), shared, observer);
            if let Some(claimed) = claimed.filter(|_| level == 0) {
                self.own(&request, claimed);
            }
        }
    }
}
