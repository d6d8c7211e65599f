//! What prefetchers see, what they set off, and what it was good for.

use super::Model;
use super::array::{Left, PREFETCHED};
use super::prefetch::{Ahead, Seen};
use super::spec::{ModelLevel, ModelSpec};
use super::walk::{Origin, Request};
use crate::hierarchy::Observer;

/// A line that a prefetcher would like to have.
pub(super) struct Wanted {
    core: usize,
    level: usize,
    line: u64,
    tag: u32,
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
    /// A request for the line at `first` arrived at a cache with prefetchers, which holds it in `slot` or not.
    pub(super) fn see(
        &mut self,
        level: usize,
        request: &Request,
        first: u64,
        slot: Option<usize>,
        demand: bool,
    ) {
        let cache = self.paths[request.core][level] as usize;
        let Some(ahead) = &mut self.ahead[cache] else { return };
        let counters = &mut self.prefetch[level];
        let shift = self.line_shifts[level];
        let line = first >> shift;
        let mut first_use = false;
        match slot {
            Some(slot) => {
                let flags = self.arrays[cache].flags(slot);
                first_use = *flags & PREFETCHED != 0;
                *flags &= !PREFETCHED;
                counters.useful += u64::from(first_use);
                counters.late += u64::from(first_use && self.clock < ahead.arrivals[slot]);
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
        let mut lines = std::mem::take(&mut self.lines);
        for prefetcher in &mut ahead.prefetchers {
            prefetcher.see(&seen, &mut lines);
        }
        let page_shift = self.spec.page_bytes.trailing_zeros() - shift;
        for wanted in lines.drain(..).filter(|wanted| wanted >> page_shift == line >> page_shift) {
            self.wanted.push_back(Wanted { core: request.core, level, line: wanted, tag: request.tag });
        }
        self.lines = lines;
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

    /// Fetches what the access made prefetchers want. A prefetch can make only those of outer levels want more.
    pub(super) fn fetch_ahead(&mut self, observer: &mut impl Observer) {
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
