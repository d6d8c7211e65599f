//! Accesses that wait for a [`Detailed`] simulation, and go through it together.
//!
//! The watchers of caches, translations and stores are independent of each other, so each can take
//! all accesses at once, in a small loop of its own. The records of lines do not fit into the
//! caches of the host, which can fetch those of later accesses meanwhile.

use std::ops::Range;

use crate::fragment::Fragment;
use crate::loops::{MOST_STRIDES, Strided};
use crate::lru::deferred::Asked;
use crate::mem_ref::MemRef;
use crate::tag::Tag;
use crate::watch::detailed::{CacheSide, CoreSide, Detailed};

/// Distance in accesses at which a line's place in the index is prefetched.
pub(crate) const FAR: usize = 24;
/// Distance in accesses at which a line's record is prefetched.
pub(crate) const NEAR: usize = 12;
/// Accesses behind a miss for which records are fetched ahead: where there is one, there are more.
pub(crate) const AFTER_A_MISS: u32 = 64;

/// Accesses whose distance in bytes is below this lead to records that are already there, or come
/// by themselves: records of neighbouring lines are often neighbours.
const NEARBY: u64 = 128;

/// Accesses that wait.
#[derive(Default)]
pub struct Requests {
    list: Vec<MemRef>,
    /// The requests are of several cores.
    is_mixed: bool,
    /// Between them.
    loops: Vec<Loop>,
    strides: Vec<Strided>,
    /// Number of accesses that the loops count for.
    of_loops: usize,
}

/// A loop that waits.
struct Loop {
    /// Number of accesses of the list that come before it.
    before: usize,
    core: usize,
    iterations: u64,
    /// Its range of all strides.
    strides: Range<usize>,
    /// The fragments of this access, instead of a loop.
    access: Option<MemRef>,
}

/// A part of the waiting accesses.
enum Run<'r> {
    /// Accesses of a core.
    Accesses(usize, &'r [MemRef]),
    /// A loop of a core, and its strides.
    Iterations(usize, u64, &'r [Strided]),
    /// An access, and its fragments.
    Fragments(MemRef, &'r [Strided]),
}

/// Accesses of a loop that take as long as one that is not in a loop.
const AS_ONE: u64 = 8;

impl Requests {
    /// One more.
    #[inline(always)]
    pub fn push(&mut self, access: MemRef) {
        self.note(access.core);
        self.list.push(access);
    }

    /// Adds a loop; every iteration makes all strides. It counts as a number of accesses that take
    /// about as long.
    ///
    /// # Panics
    /// If there are more than [`MOST_STRIDES`], or none.
    pub fn push_iterations(&mut self, core: usize, iterations: u64, strides: &[Strided]) {
        assert!((1..=MOST_STRIDES).contains(&strides.len()), "{} accesses an iteration", strides.len());
        if iterations == 0 {
            return;
        }
        let first = self.strides.len();
        self.strides.extend_from_slice(strides);
        let (before, strides) = (self.list.len(), first..self.strides.len());
        let accesses = iterations.saturating_mul(strides.len() as u64);
        self.of_loops = self.of_loops.saturating_add((accesses / AS_ONE) as usize + strides.len());
        self.loops.push(Loop { before, core, iterations, strides, access: None });
    }

    /// Adds an access that consists of fragments, at least one, in this order.
    pub fn push_fragments(&mut self, access: MemRef, fragments: &[Fragment]) {
        let (first, tag) = (self.strides.len(), access.tag);
        let strided = |&Fragment { address, bytes, is_write }: &Fragment| Strided {
            address,
            step: 0,
            bytes,
            is_write,
            tag,
        };
        self.strides.extend(fragments.iter().map(strided));
        let (before, strides) = (self.list.len(), first..self.strides.len());
        self.of_loops = self.of_loops.saturating_add(fragments.len());
        self.loops.push(Loop { before, core: access.core(), iterations: 1, strides, access: Some(access) });
    }

    /// The requests of a core, for many accesses in a row: to be settled when there are `most`.
    pub fn queue(&mut self, core: usize, line_shift: u32, most: usize) -> Queue<'_> {
        self.note(core as u32);
        let most = most.saturating_sub(self.of_loops);
        self.list.reserve(most.saturating_sub(self.list.len()));
        Queue { requests: &mut self.list, line_shift, most }
    }

    /// Returns the number of waiting accesses; loops count by the time they take.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.list.len().saturating_add(self.of_loops)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.list.clear();
        self.is_mixed = false;
        self.loops.clear();
        self.strides.clear();
        self.of_loops = 0;
    }

    #[inline(always)]
    fn note(&mut self, core: u32) {
        self.is_mixed |= self.list.last().is_some_and(|last| last.core != core);
    }

    /// In their order.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut from = 0;
        let ends = self.loops.iter().map(Some).chain([None]);
        ends.flat_map(move |next| {
            let end = next.map_or(self.list.len(), |next| next.before);
            let before = &self.list[std::mem::replace(&mut from, end)..end];
            let iterations = |next: &Loop| {
                let strides = &self.strides[next.strides.start..next.strides.end];
                match next.access {
                    None => Run::Iterations(next.core, next.iterations, strides),
                    Some(access) => Run::Fragments(access, strides),
                }
            };
            self.by_core(before).chain(next.map(iterations))
        })
    }

    /// Runs of requests of one core. Most often there is one run, and its end need not be looked
    /// for.
    fn by_core<'r>(&self, requests: &'r [MemRef]) -> impl Iterator<Item = Run<'r>> + use<'r> {
        let (whole, mixed) = if self.is_mixed { (&[][..], requests) } else { (requests, &[][..]) };
        let whole = (!whole.is_empty()).then_some(whole);
        let runs = whole.into_iter().chain(mixed.chunk_by(|a, b| a.core == b.core));
        runs.map(|run| Run::Accesses(run[0].core(), run))
    }
}

/// The queue of the accesses of one core.
pub struct Queue<'r> {
    requests: &'r mut Vec<MemRef>,
    line_shift: u32,
    most: usize,
}

impl Queue<'_> {
    /// An access of the core, if it is to one line.
    #[inline(always)]
    pub fn push(&mut self, access: MemRef) -> Asked {
        // Of no bytes, the last one is 4 GiB away.
        let last = access.address.wrapping_add(u64::from(access.bytes.wrapping_sub(1)));
        if last >> self.line_shift != access.address >> self.line_shift {
            return Asked::Several;
        }
        self.requests.push(access);
        Asked::Waits
    }

    /// Returns whether there are enough requests to settle them.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.most
    }
}

impl CoreSide {
    /// Like [`Tlb::set_pages_of`](crate::Tlb), if there are translations.
    pub fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        if let Some(tlb) = &mut self.tlb {
            tlb.set_pages_of(tag, page_bytes);
        }
    }

    /// Translates addresses and keeps stores in flight.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, requests: &Requests) {
        for run in requests.runs() {
            match run {
                Run::Accesses(core, of_core) => self.settle_accesses(core, of_core),
                Run::Iterations(core, iterations, strides) => {
                    if let Some(tlb) = &mut self.tlb {
                        tlb.access_iterations(core, iterations, strides);
                    }
                    if let Some(stores) = &mut self.stores {
                        stores.access_iterations(core, iterations, strides);
                    }
                }
                Run::Fragments(access, strides) => {
                    let fragments = fragments(strides);
                    if let Some(tlb) = &mut self.tlb {
                        tlb.access_fragments(access, &fragments);
                    }
                    if let Some(stores) = &mut self.stores {
                        stores.access_fragments(access, &fragments);
                    }
                }
            }
        }
    }

    fn settle_accesses(&mut self, core: usize, of_core: &[MemRef]) {
        if let Some(tlb) = &mut self.tlb {
            let mut left = of_core;
            while !left.is_empty() {
                if let Some(mut recent) = tlb.recent(core) {
                    let others = left.iter().position(|r| !recent.access(r.address, r.bytes));
                    left = &left[others.unwrap_or(left.len())..];
                }
                let [first, rest @ ..] = left else { break };
                tlb.access(*first);
                left = rest;
            }
        }
        if let Some(stores) = &mut self.stores {
            stores.access_all(core, 1, of_core.iter().copied());
        }
    }
}

impl CacheSide {
    /// Looks up the caches: `told` receives the tag and the depth of each access that misses the
    /// first level ([`Outcome::depth`](crate::Outcome)), in their order.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, requests: &Requests, mut told: impl FnMut(Tag, u8)) {
        for run in requests.runs() {
            match run {
                Run::Accesses(_, requests) => self.caches.access_all(requests, &mut self.missed),
                Run::Iterations(core, iterations, strides) => {
                    self.caches.access_iterations(core, iterations, strides, &mut self.missed);
                }
                Run::Fragments(access, strides) => {
                    let (depth, address) = self.caches.access_fragments(access, &fragments(strides));
                    if depth > 0 {
                        self.missed.push((MemRef { address, ..access }, depth));
                    }
                }
            }
            for (access, depth) in self.missed.drain(..) {
                if usize::from(depth) == self.levels
                    && let Some(numa) = &mut self.numa
                {
                    numa.access(access);
                }
                told(access.tag, depth);
            }
        }
    }
}

impl Detailed {
    /// [`Detailed::access`] that waits for [`Detailed::settle`].
    #[inline(always)]
    pub fn access_later(&mut self, access: MemRef) {
        self.waiting.push(access);
    }

    /// [`Detailed::access_later`] for an access that consists of fragments, at least one, in this
    /// order.
    pub fn fragments_later(&mut self, access: MemRef, fragments: &[Fragment]) {
        self.waiting.push_fragments(access, fragments);
    }

    /// Returns the requests that wait for [`Detailed::settle`].
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.waiting
    }

    /// Returns where accesses of a core wait.
    pub fn queue(&mut self, core: usize, most: usize) -> Queue<'_> {
        let line_shift = self.first_level().line_shift();
        self.waiting.queue(core, line_shift, most)
    }

    /// Returns how many accesses wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Simulates the waiting accesses; `told` is as in [`CacheSide::settle`]. Until then none of
    /// them is counted.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, told: impl FnMut(Tag, u8)) {
        self.far.settle(&self.waiting, told);
        self.near.settle(&self.waiting);
        self.waiting.clear();
    }
}

/// The places of an access that waits.
fn fragments(strides: &[Strided]) -> Vec<Fragment> {
    let fragment =
        |&Strided { address, bytes, is_write, .. }: &Strided| Fragment { address, bytes, is_write };
    strides.iter().map(fragment).collect()
}

/// The request of that number, if it goes far from where the one before it went.
#[inline(always)]
pub(crate) fn jump(requests: &[MemRef], number: usize) -> Option<&MemRef> {
    let [before, request] = requests.get(number - 1..=number)? else { return None };
    goes_far(before, request).then_some(request)
}

#[inline(always)]
pub(crate) fn goes_far(before: &MemRef, request: &MemRef) -> bool {
    before.address.abs_diff(request.address) > NEARBY
}
