//! Misses of the first level that wait, and then go to the next levels together.
//!
//! The requests of a level follow from what the level inside it missed and dropped, in that order,
//! and from nothing else. So the first level can go ahead, and each of the others then serves all
//! requests that have come up meanwhile.
//!
//! ```text
//!   level 0   hit  hit  MISS a  hit  MISS b (dropped x, which was written)  hit  MISS c …
//!   level 1   asked for a, given x, asked for b, asked for c …         the rows of those to come are fetched meanwhile
//!   level 2   what of these level 1 had not
//! ```
//! The tables of outer levels do not fit into the caches of the host. Here it is known early which
//! rows will be needed, so the host can fetch many of them at a time.

use crate::fragment::Fragment;
use crate::lru::cache::Rows;
use crate::lru::hierarchy::Hierarchy;
use crate::lru::many_lines::{Request, Seen};
use crate::lru::residencies::{TouchedBits, touched_bits};
use crate::lru::row::DIRTY;
use crate::mem_ref::MemRef;
use crate::tag::{Asker, Tag};

/// Requests that wait.
#[derive(Clone, Default)]
pub struct Waiting {
    requests: Vec<Request>,
    /// The pass over the current level.
    seen: Seen,
    /// Accesses with several lines, and lines of which it is followed how deep each request for
    /// them goes.
    pub(super) several: Vec<Several>,
}

/// An access, or one line of it, whose results are combined.
#[derive(Clone, Copy)]
pub(super) struct Several {
    pub tag: Tag,
    pub is_write: bool,
    /// The deepest level looked up so far.
    pub depth: u8,
    /// A fetch of a line that is followed.
    pub is_fetch: bool,
    /// The access that it is a part of, which alone counts.
    pub part_of: Option<usize>,
}

/// A core and its first level, for many accesses in a row.
pub struct Front<'h> {
    /// The rows by value, separate from the fields that only misses need, so that the compiler
    /// keeps them in registers.
    rows: Rows,
    shift: u32,
    core: u32,
    /// The number of its first level.
    cache: u32,
    hierarchy: &'h mut Hierarchy,
}

/// The first level's result for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The line is there. The caller counts it ([`Front::count_hits`]), like those that wait.
    Hit,
    /// The line is missing: the access waits for [`Hierarchy::settle`].
    Waits,
    /// Nothing was done: it touches several lines, or no byte.
    Several,
}

/// The first level's result for a line that is not the most recent one of its set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Hit,
    Missed,
    /// Nothing was done: the line is followed ([`Hierarchy::follow`]).
    Followed,
}

/// A line that a core's first level is looked up for.
#[derive(Clone, Copy)]
pub(super) struct Asks {
    pub line: u64,
    pub is_write: bool,
    pub asker: Asker,
}

impl Front<'_> {
    /// [`Hierarchy::access_later`] of an access of the core to one line, but that it is not
    /// counted: the caller knows of many at once.
    #[inline(always)]
    pub fn access(&mut self, access: MemRef) -> Asked {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        let line = address >> self.shift;
        // Of no bytes, the last one is 4 GiB away.
        if address.wrapping_add(u64::from(bytes.wrapping_sub(1))) >> self.shift != line {
            return Asked::Several;
        }
        // SAFETY: the cache is the hierarchy's, which is borrowed.
        let is_near = unsafe {
            self.rows.is_front(line, is_write)
                || is_write && self.rows.touch_front(line, true)
                || self.rows.swap_front(line, is_write)
        };
        if is_near {
            return Asked::Hit;
        }
        match self.hierarchy.behind_front(self.cache, self.core, line, is_write, Asker::one(tag)) {
            Behind::Hit => Asked::Hit,
            Behind::Missed => Asked::Waits,
            Behind::Followed => {
                let Front { cache, core, .. } = *self;
                match self.hierarchy.follow_one(cache, core, address, bytes, is_write, Asker::one(tag)) {
                    true => Asked::Hit,
                    false => Asked::Waits,
                }
            }
        }
    }

    /// Counts accesses that hit, or wait.
    pub fn count_hits(&mut self, is_write: bool, accesses: u64) {
        self.hierarchy.hit_again(is_write, accesses);
    }

    /// Returns how many requests wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.hierarchy.waiting()
    }
}

impl Hierarchy {
    /// A core and its first level, if that has a power of two of sets.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline]
    pub fn front(&mut self, core: usize) -> Option<Front<'_>> {
        let cache = self.paths[core][0];
        let rows = self.caches[cache as usize].rows()?;
        Some(Front { rows, shift: self.shifts[0], core: core as u32, cache, hierarchy: self })
    }

    /// Looks up a line that is not the most recent one of its set. Unless it is followed, returns
    /// whether the first level has it; else the request waits.
    #[inline(never)]
    fn behind_front(&mut self, cache: u32, core: u32, line: u64, is_write: bool, asker: Asker) -> Behind {
        // One that was hit often enough is there as others are.
        if self.residencies.follows(line) && !self.caches[cache as usize].has(line) {
            return Behind::Followed;
        }
        let moved = self.caches[cache as usize].move_to_front(line, u64::from(is_write));
        if moved.hit {
            return Behind::Hit;
        }
        self.missed(core, line, is_write, moved.last, asker);
        Behind::Missed
    }

    /// The request for a line, for which another one was evicted, waits.
    #[inline(always)]
    pub(super) fn missed(&mut self, core: u32, line: u64, is_write: bool, dropped: u64, asker: Asker) {
        let shift = self.shifts[0];
        let request = Request::of(core as usize, line << shift, is_write, asker);
        // An unused way is never dirty.
        if dropped & DIRTY != 0 {
            self.write_backs[0] += 1;
            self.waiting.requests.push(request.dropped((dropped >> 1) << shift));
        }
        self.waiting.requests.push(request);
    }

    /// [`Hierarchy::access`] whose result may come later. Returns true if the first level held
    /// every line. Else the access waits for [`Hierarchy::settle`] under its tag; until then it is
    /// counted as a hit. Whatever the rule for accesses that straddle lines, this is
    /// [`Straddle::Apart`](crate::Straddle).
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline(always)]
    pub fn access_later(&mut self, access: MemRef) -> bool {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        if bytes == 0 {
            return true;
        }
        let (core, last) = (access.core(), access.last());
        let shift = self.shifts[0];
        let line = address >> shift;
        self.hit_again(is_write, 1);
        if last >> shift == line && self.caches[self.paths[core][0] as usize].touch_front(line, is_write) {
            return true;
        }
        let touched =
            |line, line_bytes| TouchedBits::of_one(touched_bits(line, line_bytes, address, bytes.into()));
        self.wait(core, (line..=last >> shift).map(|line| (line, is_write)), is_write, tag, touched)
    }

    /// [`Hierarchy::access_later`] for an access that consists of fragments, in this order.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    pub fn fragments_later(&mut self, access: MemRef, fragments: &[Fragment]) -> bool {
        self.hit_again(access.is_write, 1);
        let shift = self.shifts[0];
        let lines = |fragment: &Fragment| {
            let is_write = fragment.is_write;
            (fragment.address >> shift..=fragment.last() >> shift).map(move |line| (line, is_write))
        };
        let touched = |line, line_bytes| {
            let bits = |part: &Fragment| touched_bits(line, line_bytes, part.address, part.bytes.into());
            TouchedBits::of_one(fragments.iter().fold(0, |all, part| all | bits(part)))
        };
        self.wait(access.core(), fragments.iter().flat_map(lines), access.is_write, access.tag, touched)
    }

    /// Makes lines of a core's first level the most recent ones of their sets. Missing lines wait
    /// for [`Hierarchy::settle`]; all of them count as hits elsewhere ([`Hierarchy::hit_again`]).
    /// `touched` is called for followed lines: from a line's first address and its bytes it
    /// computes which of its bits are touched ([`touched_bits`]), and which by accesses with a tag.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    pub fn show(&mut self, core: usize, shown: &[Request], touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        let mut left = shown;
        if self.residencies.follow_any() {
            let shift = self.shifts[0];
            while let Some(at) =
                left.iter().position(|request| self.residencies.follows(request.address >> shift))
            {
                let (before, [request, after @ ..]) = left.split_at(at) else { break };
                self.show_others(core, before);
                let is_write = request.address & Request::WRITE != 0;
                let asks = Asks { line: request.address >> shift, is_write, asker: request.asker() };
                let tag = asks.asker.get().unwrap_or_default();
                let bits = touched(asks.line << shift, self.line_bytes(), tag);
                self.follow(self.paths[core][0], core as u32, asks, bits);
                left = after;
            }
        }
        self.show_others(core, left);
    }

    /// [`Hierarchy::show`] for lines that are not followed.
    fn show_others(&mut self, core: usize, shown: &[Request]) {
        let Waiting { requests, seen, .. } = &mut self.waiting;
        std::mem::swap(requests, &mut seen.further);
        self.caches[self.paths[core][0] as usize].show(self.shifts[0], shown, seen);
        std::mem::swap(requests, &mut seen.further);
        self.write_backs[0] += std::mem::take(&mut seen.dropped);
    }

    /// The same for an access to two lines, beginning with that of the address.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    pub fn show_both(&mut self, access: MemRef, touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        let (line, is_write) = (access.address >> self.shifts[0], access.is_write);
        let lines = [(line, is_write), (line + 1, is_write)].into_iter();
        let touched = |line, line_bytes| touched(line, line_bytes, access.tag);
        self.wait(access.core(), lines, is_write, access.tag, touched);
    }

    /// Lines of an access, each with whether it is written.
    #[inline(never)]
    fn wait(
        &mut self,
        core: usize,
        mut lines: impl Iterator<Item = (u64, bool)>,
        is_write: bool,
        tag: Tag,
        touched: impl Fn(u64, u32) -> TouchedBits,
    ) -> bool {
        let mut asker = Asker::one(tag);
        let Some(first) = lines.next() else { return true };
        let mut lines = lines.peekable();
        if lines.peek().is_some() || first.1 != is_write {
            let whole = Several { tag, is_write, depth: 0, is_fetch: false, part_of: None };
            self.waiting.several.push(whole);
            asker = Asker::several(self.waiting.several.len() - 1);
        }
        let mut hit = true;
        for (line, writes) in std::iter::once(first).chain(lines) {
            let (cache, core) = (self.paths[core][0], core as u32);
            hit &= match self.behind_front(cache, core, line, writes, asker) {
                Behind::Hit => true,
                Behind::Missed => false,
                Behind::Followed => {
                    let asks = Asks { line, is_write: writes, asker };
                    self.follow(cache, core, asks, touched(line << self.shifts[0], self.line_bytes()))
                }
            };
        }
        if hit && asker.is_several() {
            self.waiting.several.pop();
        }
        hit
    }

    /// Returns how many requests wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.waiting.requests.len()
    }

    /// Returns the waiting requests, and puts others in their place.
    pub fn replace_waiting(&mut self, waiting: Waiting) -> Waiting {
        std::mem::replace(&mut self.waiting, waiting)
    }

    /// [`Hierarchy::settle`] for the waiting requests of another hierarchy of this shape, whose
    /// first level produced them; leaves them empty. All earlier ones must have been settled here.
    pub fn settle_for(&mut self, waiting: &mut Waiting, told: impl FnMut(Tag, u8, u64)) {
        std::mem::swap(&mut self.waiting, waiting);
        self.settle(told);
        std::mem::swap(&mut self.waiting, waiting);
    }

    /// Adds the lookups of another hierarchy's outer levels, which this one's did not see
    /// ([`Hierarchy::settle_for`]). Both have the same shape.
    pub fn count_those_of(&mut self, outer: &Hierarchy) {
        let served = self.served.iter_mut().flatten().zip(outer.served.iter().flatten());
        // What was counted as hits here, and were none, is less than nothing there.
        served.for_each(|(all, more)| *all = all.wrapping_add(*more));
        self.write_backs.iter_mut().zip(&outer.write_backs).for_each(|(all, more)| *all += more);
        self.residencies.take_served_of(&outer.residencies);
    }

    /// Looks up the waiting requests in the outer levels. `told` receives the tag of accesses, the
    /// deepest level that had to be looked up, as [`Hierarchy::access`] returns it, and the number
    /// of such accesses, in any order and in any number of parts. All of them were counted as hits
    /// before. A hierarchy [with first touches](Hierarchy::with_first_touches) reports those that
    /// memory served and that touched a line for the first time as one level deeper than memory.
    pub fn settle(&mut self, mut told: impl FnMut(Tag, u8, u64)) {
        let Waiting { mut requests, mut seen, mut several } = std::mem::take(&mut self.waiting);
        let served = &mut self.served;
        let levels = self.specs.len();
        let mut count = |tag: Tag, is_write: usize, depth: u8, times: u64| {
            // Where there are several shards, another may have counted it.
            served[is_write][0] = served[is_write][0].wrapping_sub(times);
            served[is_write][usize::from(depth).min(levels)] += times;
            told(tag, depth, times);
        };
        let is_write = |request: &Request| (request.address & Request::WRITE) as usize;
        let mut tell = |requests: &[Request], depth: u8| {
            // Neighbours are often alike.
            for alike in requests.chunk_by(|a, b| a.asker() == b.asker() && is_write(a) == is_write(b)) {
                match alike[0].asker().get() {
                    Ok(tag) => count(tag, is_write(&alike[0]), depth, alike.len() as u64),
                    Err(number) => {
                        let deepest = &mut several[number].depth;
                        *deepest = depth.max(*deepest);
                    }
                }
            }
        };
        for level in 1..levels {
            for run in requests.chunk_by(|a, b| a.core() == b.core()) {
                let Some(first) = run.first() else { continue };
                let cache = &mut self.caches[self.paths[first.core()][level] as usize];
                cache.answer(self.shifts[level], run, &mut seen);
            }
            tell(&seen.here, level as u8);
            seen.here.clear();
            self.write_backs[level] += std::mem::take(&mut seen.dropped);
            requests.clear();
            std::mem::swap(&mut requests, &mut seen.further);
        }
        requests.retain(|request| request.address & Request::DROPPED == 0);
        match &mut self.touched {
            None => tell(&requests, levels as u8),
            Some(touched) => {
                let mut is_first = |request: &Request| touched.is_first(request.address);
                let first = requests.extract_if(.., |request| is_first(request));
                seen.here.extend(first);
                tell(&requests, levels as u8);
                tell(&seen.here, levels as u8 + 1);
                seen.here.clear();
            }
        }
        // Parts come behind their whole.
        for at in 0..several.len() {
            let part = several[at];
            if let Some(whole) = part.part_of {
                several[whole].depth = several[whole].depth.max(part.depth);
            }
        }
        for Several { tag, is_write, depth, is_fetch, part_of } in several.drain(..) {
            if is_fetch {
                self.residencies.answer(depth.min(levels as u8));
            }
            if part_of.is_none() {
                count(tag, usize::from(is_write), depth, 1);
            }
        }
        requests.clear();
        self.waiting = Waiting { requests, seen, several };
    }
}
