//! The interface between attribution and the simulation of caches.

use memlode_simulate::{
    Asked, Detailed, Fetched, Followed, Fragment, Front, Hierarchy, LevelCounters, LevelSpec, MemRef, Queue,
    Request, Strided, Tag, TouchedBits,
};
use memlode_trace::event::{SyncKind, ThreadId};
use memlode_trace::sites::SiteId;

use crate::objects::WithinObject;
use crate::objects::classes::{ClassId, Classes};
use crate::objects::paths::{PathId, Paths};

/// The most misses (or accesses, if a layer watches) that wait: enough to fetch their rows
/// together, few enough to stay in a cache themselves.
pub(crate) const MOST_WAITING: usize = 256;

/// A place that no chunk has room for.
pub(crate) const NO_PLACE: usize = usize::MAX / 2;

/// Simulates the caches that a [`Profiler`](crate::Profiler) drives.
///
/// # Order of calls
///
/// ```text
///   introduce, set_pages_of     once for each tag, before its first access
///   access, lane, repeat, show  accesses in replay order; a lane takes many of one core
///   settle                      when is_full says so, and at the end of each piece of a chunk
///   finish                      once, after the last access
///   counters, other_cycles      at any time, of what is settled by then
/// ```
///
/// # Answers
///
/// The answer to an access is the number of levels that missed. It comes at once, or later from
/// [`Engine::settle`] or [`Engine::finish`], by tag. The caller counts an access as a hit of the
/// first level when it makes it, and corrects that when the answer comes. The caller needs no
/// answer to go on.
///
/// # Threads
///
/// One thread at a time calls an engine. An engine may have threads of its own, which see the
/// accesses in the order of the calls; such an engine answers in [`Engine::finish`] alone.
pub trait Engine {
    /// Its treatment of a loop that is one record.
    const LOOPS: LoopMode;

    /// A taker of accesses of one core, many in a row. [`NoLane`] if there is no such thing.
    type Lane<'e>: Lane
    where
        Self: 'e;

    /// Simulates one access; returns how many levels missed, if that is known at once.
    fn access(&mut self, access: MemRef) -> Option<u8>;

    /// Returns an object that takes many accesses of one core in a row.
    fn lane(&mut self, core: usize) -> Option<Self::Lane<'_>>;

    /// Counts accesses that are known to hit the first level, or that wait. Only a lane, and
    /// [`LoopMode::Lines`], leave that to the caller.
    fn count_hits(&mut self, _is_write: bool, _accesses: u64) {}

    /// Simulates a loop of a core. Only for [`LoopMode::Whole`].
    fn repeat(&mut self, _core: usize, _iterations: u64, _strides: &[Strided]) {}

    /// Makes lines the most recent ones of a core's first level; missing lines go on to the next
    /// level. Only for [`LoopMode::Lines`]. From a line's first address and its bytes, `touched`
    /// computes which bits of the line are touched, and which by accesses with a tag.
    fn show(&mut self, _core: usize, _lines: &[Request], _touched: impl Fn(u64, u32, Tag) -> TouchedBits) {}

    /// Does the same for one access to two lines, beginning with that of its address.
    fn show_both(&mut self, _access: MemRef, _touched: impl Fn(u64, u32, Tag) -> TouchedBits) {}

    /// Records the bits that a loop touches of the line at an address, which the caller has just
    /// looked up by itself.
    fn touch_more(&mut self, _core: usize, _line: u64, _touched: impl FnOnce() -> TouchedBits) {}

    /// Labels the residencies of followed lines that have no label yet.
    #[inline(always)]
    fn label_residencies(&mut self, _label: impl FnMut(Fetched) -> u32) {}

    /// Returns the residencies of the followed lines, when the simulation is finished.
    fn residencies(&self) -> Followed {
        Followed::default()
    }

    /// Returns whether so much waits that it is time to settle.
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }

    /// Settles waiting accesses: reports by tag how many levels missed, and how often.
    fn settle(&mut self, _told: impl FnMut(Tag, u8, u64)) {}

    /// Settles the accesses that [`Engine::settle`] has not settled.
    fn finish(&mut self, _told: impl FnMut(Tag, u8, u64)) {}

    /// Reports a store that went past the caches, and how many lines it began to write. The caller
    /// has counted it, as if that many levels had missed.
    fn store_past(&mut self, _access: MemRef, _depth: u8, _begun: u32) {}

    /// Returns the counters of each level, innermost first.
    fn counters(&self) -> Vec<LevelCounters>;

    /// Returns the shape of the first level.
    fn first_level(&self) -> &LevelSpec;

    /// Returns the shapes of the levels whose lines are followed, if there are any.
    fn followed_levels(&self) -> &[LevelSpec] {
        &[]
    }

    /// Returns the number of cores.
    fn cores(&self) -> u32;

    /// Introduces the next tag; tags are numbered from 0.
    fn introduce(&mut self, _cell: NewCell<'_>) {}

    /// Sets the page size of the memory that accesses with a tag touch.
    fn set_pages_of(&mut self, _tag: Tag, _page_bytes: u64) {}

    /// Returns the cycles that accesses with a tag waited, besides those of the cache levels.
    fn other_cycles(&self, _tag: Tag) -> u64 {
        0
    }

    /// Returns whether translations are simulated. Their cycles are among the others.
    fn has_translations(&self) -> bool {
        false
    }

    /// A block of memory begins: the old values of its bytes are gone.
    fn begun(&mut self, _block: NewBlock<'_>) {}

    /// The block of memory that begins at an address ends.
    fn ended(&mut self, _address: u64) {}

    /// Returns whether [`Engine::at`] is to be called for each access.
    #[inline(always)]
    fn takes_places(&self) -> bool {
        false
    }

    /// Reports where in its object the next access lies; `None` if no object is known.
    fn at(&mut self, _place: Option<WithinObject>) {}

    /// Returns whether [`Engine::synced`] is to be called.
    fn takes_syncs(&self) -> bool {
        false
    }

    /// An operation on an object orders the current stream with others.
    fn synced(&mut self, _sync: NewSync<'_>) {}

    /// Reports at which place of its chunk the next access stands, and its bytes. An access of a
    /// loop that is one record has no place: it is [`NO_PLACE`] or higher.
    #[inline(always)]
    fn comes(&mut self, _place: usize, _bytes: u32) {}

    /// The current stream met a time stamp.
    fn stamp(&mut self, _stamp: u64) {}
}

/// An engine's treatment of a loop that is one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopMode {
    /// Access by access.
    Unrolled,
    /// One loop, for [`Engine::repeat`].
    Whole,
    /// Only the accesses that enter a line, or leave it out of order ([`Engine::show`]); the caller
    /// counts the others as hits.
    Lines,
}

/// Takes accesses of one core to one line each, many in a row.
pub trait Lane {
    /// Simulates an access. Unless it is to [`Asked::Several`] lines, the caller counts it as a
    /// hit.
    fn access(&mut self, access: MemRef) -> Asked;
    /// Does what [`Engine::count_hits`] does.
    fn count_hits(&mut self, is_write: bool, accesses: u64);
    /// Returns whether so much waits that it is time to settle.
    fn is_full(&self) -> bool;
}

/// The lane of an engine that serves each access at once.
pub enum NoLane {}

impl Lane for NoLane {
    fn access(&mut self, _access: MemRef) -> Asked {
        match *self {}
    }

    fn count_hits(&mut self, _is_write: bool, _accesses: u64) {
        match *self {}
    }

    fn is_full(&self) -> bool {
        match *self {}
    }
}

impl Lane for Front<'_> {
    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Asked {
        Front::access(self, access)
    }

    fn count_hits(&mut self, is_write: bool, accesses: u64) {
        Front::count_hits(self, is_write, accesses);
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting() >= MOST_WAITING
    }
}

/// Queues every access, where somebody watches.
impl Lane for Queue<'_> {
    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Asked {
        self.push(access)
    }

    fn count_hits(&mut self, _is_write: bool, _accesses: u64) {}

    #[inline(always)]
    fn is_full(&self) -> bool {
        Queue::is_full(self)
    }
}

/// An engine that takes accesses whose bytes lie in several places. Their answers come later.
pub trait TakesFragments: Engine {
    /// Simulates an access that consists of fragments, in this order.
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]);
}

/// A block of memory that begins.
pub struct NewBlock<'p> {
    /// First byte.
    pub address: u64,
    /// Size.
    pub bytes: u64,
    /// The class of objects that it is one of.
    pub class: ClassId,
    /// The classes.
    pub classes: &'p Classes,
    /// The call paths that they refer to.
    pub paths: &'p Paths,
}

/// An operation that orders threads.
pub struct NewSync<'p> {
    /// Its kind.
    pub kind: SyncKind,
    /// The address of the object that orders them.
    pub address: u64,
    /// The class of that object.
    pub class: ClassId,
    /// The classes.
    pub classes: &'p Classes,
    /// The call paths that they refer to.
    pub paths: &'p Paths,
}

/// The meaning of a tag that is new: the accesses of a thread at a site to objects of one class.
pub struct NewCell<'p> {
    /// The thread.
    pub thread: ThreadId,
    /// The call path of the access; the root where paths are not distinguished.
    pub path: PathId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// The classes.
    pub classes: &'p Classes,
    /// The call paths that they refer to.
    pub paths: &'p Paths,
}

impl Engine for Hierarchy {
    const LOOPS: LoopMode = LoopMode::Lines;
    type Lane<'e> = Front<'e>;

    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Option<u8> {
        self.access_later(access).then_some(0)
    }

    #[inline(always)]
    fn lane(&mut self, core: usize) -> Option<Front<'_>> {
        self.front(core)
    }

    #[inline(always)]
    fn count_hits(&mut self, is_write: bool, accesses: u64) {
        self.hit_again(is_write, accesses);
    }

    fn show(&mut self, core: usize, lines: &[Request], touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        Hierarchy::show(self, core, lines, touched);
    }

    fn show_both(&mut self, access: MemRef, touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        Hierarchy::show_both(self, access, touched);
    }

    fn touch_more(&mut self, core: usize, line: u64, touched: impl FnOnce() -> TouchedBits) {
        Hierarchy::touch_more(self, core, line, touched);
    }

    #[inline(always)]
    fn label_residencies(&mut self, label: impl FnMut(Fetched) -> u32) {
        Hierarchy::label_residencies(self, label);
    }

    fn residencies(&self) -> Followed {
        Hierarchy::residencies(self)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting() >= MOST_WAITING
    }

    fn settle(&mut self, told: impl FnMut(Tag, u8, u64)) {
        Hierarchy::settle(self, told);
    }

    fn counters(&self) -> Vec<LevelCounters> {
        Hierarchy::counters(self)
    }

    fn first_level(&self) -> &LevelSpec {
        &self.levels()[0]
    }

    fn followed_levels(&self) -> &[LevelSpec] {
        self.levels()
    }

    fn cores(&self) -> u32 {
        Hierarchy::cores(self)
    }
}

impl TakesFragments for Hierarchy {
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) {
        self.fragments_later(access, fragments);
    }
}

impl Engine for Detailed {
    const LOOPS: LoopMode = LoopMode::Whole;
    type Lane<'e> = Queue<'e>;

    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Option<u8> {
        self.access_later(access);
        None
    }

    #[inline(always)]
    fn lane(&mut self, core: usize) -> Option<Queue<'_>> {
        Some(self.queue(core, MOST_WAITING))
    }

    fn repeat(&mut self, core: usize, iterations: u64, strides: &[Strided]) {
        self.requests().push_iterations(core, iterations, strides);
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting() >= MOST_WAITING
    }

    fn settle(&mut self, mut told: impl FnMut(Tag, u8, u64)) {
        Detailed::settle(self, |tag, depth| told(tag, depth, 1));
    }

    fn counters(&self) -> Vec<LevelCounters> {
        Detailed::counters(self)
    }

    fn first_level(&self) -> &LevelSpec {
        Detailed::first_level(self)
    }

    fn cores(&self) -> u32 {
        Detailed::cores(self)
    }

    fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        Detailed::set_pages_of(self, tag, page_bytes);
    }

    fn other_cycles(&self, tag: Tag) -> u64 {
        Detailed::other_cycles(self, tag)
    }

    fn has_translations(&self) -> bool {
        Detailed::has_translations(self)
    }
}

impl TakesFragments for Detailed {
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) {
        self.fragments_later(access, fragments);
    }
}
