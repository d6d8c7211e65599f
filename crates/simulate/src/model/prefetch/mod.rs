//! Prefetchers: which lines a cache fetches before a core requests them.

mod adjacent_line;
mod next_line;
mod stream;
mod stride;

use super::spec::Prefetch;
use crate::tag::Tag;

/// A request that arrived at a cache, from a core or from a prefetcher of a level inside.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub core: usize,
    /// First byte requested, and the cache's line in which it lies.
    pub address: u64,
    pub line: u64,
    pub tag: Tag,
    /// The access began in the line before: an instruction has one address.
    pub goes_on: bool,
    /// The cache missed.
    pub miss: bool,
    /// The line was here because it was prefetched, and this is its first use.
    pub first_use: bool,
}

/// One prefetcher of one cache.
///
/// It sees the requests of its cache in order, except its own, and proposes lines. Lines that the
/// cache has and lines in another page are left out by the caller.
pub(super) trait Prefetcher {
    /// Learns from a request, and adds the lines to fetch to `wanted`.
    fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>);
}

/// One prefetcher: an enum rather than a pointer, because the first level's prefetchers see every
/// access.
pub(super) enum Kind {
    NextLine(next_line::NextLine),
    AdjacentLine(adjacent_line::AdjacentLine),
    Stride(stride::Stride),
    Stream(stream::Stream),
}

impl Kind {
    /// [`Prefetcher::see`].
    #[inline(always)]
    pub fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>) {
        match self {
            Kind::NextLine(prefetcher) => prefetcher.see(seen, wanted),
            Kind::AdjacentLine(prefetcher) => prefetcher.see(seen, wanted),
            Kind::Stride(prefetcher) => prefetcher.see(seen, wanted),
            Kind::Stream(prefetcher) => prefetcher.see(seen, wanted),
        }
    }
}

/// Returns the prefetcher that learns from a request that hits a line it had not prefetched; most
/// requests are such.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Learner {
    Nobody,
    /// Only one prefetcher, by its number, which is a [`Kind::Stride`].
    Stride(usize),
    Several,
}

/// State of a cache with prefetchers.
pub(super) struct Ahead {
    pub prefetchers: Vec<Kind>,
    pub learner: Learner,
    /// Indexed by slot: the access from which on a prefetched line is there.
    pub arrivals: Vec<u64>,
    /// Line numbers + 1 of lines that made room for a prefetch, by line number modulo the length:
    /// the later replaces the earlier.
    dropped: Vec<u64>,
}

const DROPPED: usize = 4096;

impl Ahead {
    pub fn new(kinds: &[Prefetch], line_shift: u32, page_shift: u32, slots: usize) -> Ahead {
        let prefetcher = |kind: &Prefetch| match kind {
            Prefetch::NextLine => Kind::NextLine(next_line::NextLine),
            Prefetch::AdjacentLine => Kind::AdjacentLine(adjacent_line::AdjacentLine),
            Prefetch::Stride => Kind::Stride(stride::Stride::new(line_shift)),
            Prefetch::Stream => Kind::Stream(stream::Stream::new(page_shift - line_shift)),
        };
        let mut learner = Learner::Nobody;
        for (place, kind) in kinds.iter().enumerate() {
            learner = match (kind, learner) {
                (Prefetch::NextLine | Prefetch::AdjacentLine, learner) => learner,
                (Prefetch::Stride, Learner::Nobody) => Learner::Stride(place),
                _ => Learner::Several,
            };
        }
        Ahead {
            prefetchers: kinds.iter().map(prefetcher).collect(),
            learner,
            arrivals: vec![0; slots],
            dropped: vec![0; DROPPED],
        }
    }

    /// A line in use made room for a prefetch.
    pub fn drop_for_prefetch(&mut self, line: u64) {
        self.dropped[line as usize % DROPPED] = line + 1;
    }

    /// Returns whether the line was evicted by a prefetch. Called when the line comes back, so the
    /// entry is removed.
    pub fn take_dropped(&mut self, line: u64) -> bool {
        let place = &mut self.dropped[line as usize % DROPPED];
        let found = *place == line + 1;
        if found {
            *place = 0;
        }
        found
    }
}
