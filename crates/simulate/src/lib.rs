//! Cache models: exact, fast, no I/O.
//!
//! A model takes a [`MemRef`] (core, address, bytes, whether it writes) and says how far it had to
//! go. It knows nothing of traces, names, files or threads of its own; its caller decides what the
//! accesses mean.
//!
//! ```
//! use memlode_simulate::{Hierarchy, LevelSpec, MemRef};
//!
//! let l1 = LevelSpec { bytes: 32 << 10, ways: 8, line_bytes: 64, shared_by: 1 };
//! let l2 = LevelSpec { bytes: 1 << 20, ways: 16, line_bytes: 64, shared_by: 1 };
//! let mut caches = Hierarchy::new(&[l1, l2], 1)?;
//! assert_eq!(caches.access(MemRef::read(0, 0x1000, 8)), 2); // memory served it
//! assert_eq!(caches.access(MemRef::write(0, 0x1008, 8)), 0); // same line: the first level served it
//! assert_eq!(caches.counters()[0].read_misses, 1);
//! # Ok::<(), memlode_simulate::ImpossibleHierarchy>(())
//! ```
//!
//! # The model
//!
//! - Every level is set-associative with exact least-recently-used replacement. A line's set is its
//!   line number modulo the number of sets, which need not be a power of two (a last-level cache
//!   built of slices).
//! - A level is looked up only when the level inside it missed, and every level that was looked up
//!   keeps the line afterwards, for reads and writes alike (write-allocate). Nothing removes a line
//!   from an inner level because an outer one dropped it: non-inclusive, non-exclusive.
//! - Writes stay in the first level as dirty lines. A dirty line that is evicted is passed to the
//!   next level; the next level that holds the line becomes dirty, and neither its order nor its
//!   contents change otherwise. Write-backs therefore never change which accesses miss.
//! - An access that touches several lines counts once at each level it reaches ([`Straddle`]).
//!
//! # The general model
//!
//! [`Model`] has other rules for each level (replacement, inclusion, writes, sectors, prefetchers)
//! and keeps private caches coherent; it reports which misses are due to another core's write, and
//! whether the two cores really share data. Without any of its rules it gives the results of
//! [`Hierarchy`], more slowly.
//!
//! # Layers
//!
//! [`Detailed`] is a hierarchy, or drives a model. It reports for each access why it missed; and
//! for each tag how much of the fetched lines was used, and whose accesses evicted or took the
//! missing lines. It takes accesses one by one or in batches, with whole loops ([`Strided`]) among
//! them. It changes no result, and needs 63 to 70 bytes for each distinct line of three levels (of
//! each group of cores that shares a first level, if there are several); of a model, about twice as
//! many. With it go [`Tlb`] (translations, and the use of pages), [`StoreBuffer`] (loads that agree
//! with a store in the low 12 bits of another address) and [`Numa`] (memory of another node).
//! [`Timed`] computes when the accesses of a core commit, and what they wait for.
//! [`Hierarchy::with_residencies`] follows some lines from fetch to fetch, and records which of
//! their bytes are touched, at almost no cost. [`Bounds`] gives bounds of the number of misses
//! where the trace has gaps. [`ReuseDistance`] needs no hierarchy: it measures the stream itself.
//!
//! # What it does not model
//!
//! Time and bandwidth except in [`Timed`], physical addresses (sets are chosen by virtual ones),
//! and hashed slice selection. A [`Hierarchy`] also models no coherence between private caches, no
//! prefetching, and no replacement other than LRU. A cache shared by several cores sees their
//! accesses in the order in which the caller makes them.
//!
//! # Sharding
//!
//! The order of replacement is kept per set, so sets never influence each other. Two lines whose
//! addresses differ in [`Hierarchy::shard_bits`] use different sets at every level; a trace split
//! by the value of those bits can be simulated in independent pieces, and the pieces' counters add
//! up to those of one sequential run. Only one thing crosses pieces: an access that straddles lines
//! of two of them. Its depth is the greater of the two depths. [`Straddle::Together`] breaks the
//! law and must be simulated in one piece; so does [`Detailed`], whose fully associative caches
//! have one set, and a [`Model`] with prefetchers.
//!
//! # Inside
//!
//! `lru/` has the fast path, `model/` the rules of machines, `watch/` why lines were missed,
//! `loops/` loops that are one record, `core_parts/` translations, store buffer and memory nodes,
//! `streams/` reuse distances and bounds, `side_by_side/` threads with a core each, `time/` when
//! accesses of a core commit.
//!
//! - L1 misses are queued and looked up in batches (`lru/deferred`): the tables of outer levels are
//!   larger than our caches, and a batch can wait for many rows at a time.
//! - A set is a row of entries, most recent first (`lru/row`). Outer levels have entries of 32
//!   bits, a line's number divided by that of the sets, which distinguish all lines of a program. A
//!   line that they cannot distinguish (with an address of more than 47 bits, say) makes all
//!   entries of its cache 64 bits wide, as those of the first level always are (`lru/cache`).
//! - Lines that are followed (`lru/residencies`, `lru/follow`) have a mark in their entry in the
//!   first level. The mark makes the fast lookup fail, and only then is the line looked up among
//!   the followed ones. A hash of a line's number decides whether it is followed. Whenever there
//!   are too many, half of them are dropped, so a long run pays for few. The results equal those of
//!   a plain model (`tests/residencies.rs`).
//! - Where many lines go through a cache one after the other (misses, or the accesses that a loop
//!   shows), the loop over them is compiled for the width of the cache's rows, with the operation
//!   on a row inlined (`lru/many_lines`).
//! - Only `tag` knows the bits that share a word with an access's tag, and only `space` the bits
//!   that distinguish processes.

mod by_block;
mod core_parts;
mod fragment;
mod lines;
mod loops;
mod lru;
mod mem_ref;
mod model;
mod ranges;
pub mod side_by_side;
mod space;
mod spec;
mod streams;
mod table;
mod tag;
mod time;
mod watch;

pub use by_block::ByBlock;
pub use core_parts::numa::{Homes, Numa, NumaDetail, Placement};
pub use core_parts::store_buffer::{AliasConflict, AliasPair, StoreBuffer};
pub use core_parts::tlb::{ImpossibleTlb, Pages, Tlb, TlbDetail, TlbSpec, Translation};
pub use fragment::Fragment;
pub use lines::{Lines, touch_lines};
pub use loops::{MOST_STRIDES, Periods, Schedule, Schedules, Shape, ShownAccess, Strided};
pub use lru::cache::{Cache, Evicted, Touch};
pub use lru::deferred::{Asked, Front, Waiting};
pub use lru::hierarchy::{Found, Hierarchy, LevelCounters, Observer, Straddle};
pub use lru::many_lines::Request;
pub use lru::residencies::{Fetched, Followed, Residency, TouchedBits, touched_bits};
pub use mem_ref::MemRef;
pub use model::{
    Answer, Coherence, CoherenceCounters, Held, Inclusion, LevelTraffic, Model, ModelLevel, ModelSpec,
    Prefetch, PrefetchCounters, Replacement, Sharing, Write,
};
pub use space::Space;
pub use spec::{ImpossibleHierarchy, LevelSpec, MAX_LEVELS, Problem};
pub use streams::bounds::Bounds;
pub use streams::reuse::{ReuseDistance, ReuseHistogram};
pub use tag::{Tag, Tagged};
pub use time::{
    Act, Charged, CoreTime, FeedGroups, KEPT_LOADS, Stall, TICKS, TimeSpec, Timed, TimedAccess, TimedFeed,
    TimedLine, TimedSite,
};
pub use watch::batch::{Queue, Requests};
pub use watch::detailed::{CacheSide, CoreSide, Detailed, Details, ModelDetails, Outcome};
pub use watch::misses::{Cause, Eviction, LevelDetail};
pub use watch::model::SharedLine;
pub use watch::touched::Touched;
