//! A trace to replay, complete or still being written.

use std::ops::ControlFlow;
use std::sync::Arc;

use memlode_replay::{Excerpt, LiveTrace, Piece, Replay, Replayed, Shards};
use memlode_trace::{ChunkRef, Trace};

/// A source of pieces of chunks; the simulation need not know whether the trace is complete.
#[derive(Clone)]
pub enum Source {
    /// A trace directory.
    Stored(Arc<Trace>),
    /// Stretches of one, which are decoded already. Caches keep what they hold from one stretch to
    /// the next.
    Excerpt {
        /// The trace.
        trace: Arc<Trace>,
        /// Its stretches.
        excerpt: Arc<Excerpt>,
    },
    /// A trace that is still written. It is replayed until it is complete.
    Live {
        /// The reader's end.
        trace: Arc<LiveTrace>,
        /// True if recording may be off now and then.
        may_have_gaps: bool,
    },
}

impl From<Trace> for Source {
    fn from(trace: Trace) -> Source {
        Source::Stored(Arc::new(trace))
    }
}

impl Source {
    /// Reads the trace, as far as it is known. A writer waits meanwhile.
    pub fn look<T>(&self, at: impl FnOnce(&Trace) -> T) -> T {
        match self {
            Source::Stored(trace) | Source::Excerpt { trace, .. } => at(trace),
            Source::Live { trace, .. } => trace.look(at),
        }
    }

    /// Changes when names or images come in, and is not 0. They are there before the events that
    /// need them.
    pub fn news(&self) -> u64 {
        match self {
            Source::Stored(_) | Source::Excerpt { .. } => 1,
            Source::Live { trace, .. } => 1 + trace.news(),
        }
    }

    /// Returns whether gaps must be reckoned with.
    pub(crate) fn may_have_gaps(&self) -> bool {
        match self {
            Source::Stored(trace) => has_gaps(trace),
            Source::Excerpt { .. } => false,
            Source::Live { may_have_gaps, .. } => *may_have_gaps,
        }
    }

    /// Returns how many threads there are; `None` while there may be more.
    pub(crate) fn threads(&self) -> Option<usize> {
        match self {
            Source::Stored(trace) | Source::Excerpt { trace, .. } => Some(trace.threads().len()),
            Source::Live { .. } => None,
        }
    }

    /// Like [`Replay::interleave`].
    pub(crate) fn interleave(
        &self,
        workers: usize,
        consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed {
        match self {
            Source::Stored(trace) => trace.interleave(workers, consume),
            Source::Excerpt { excerpt, .. } => replay(excerpt, consume),
            Source::Live { trace, .. } => trace.interleave(workers, consume),
        }
    }

    /// Like [`Replay::interleave_shards`].
    pub(crate) fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
    {
        match self {
            Source::Stored(trace) => trace.interleave_shards(shards, workers, consumers),
            // It was dealt out to one shard.
            Source::Excerpt { excerpt, .. } => consumers
                .into_iter()
                .next()
                .map_or_else(Replayed::default, |consume| replay(excerpt, consume)),
            Source::Live { trace, .. } => trace.interleave_shards(shards, workers, consumers),
        }
    }
}

fn replay(excerpt: &Excerpt, mut consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>) -> Replayed {
    let stopped = excerpt.pieces().any(|piece| consume(&piece).is_break());
    Replayed { stopped, ..Replayed::default() }
}

/// Returns whether recording was off for a while.
pub fn has_gaps(trace: &Trace) -> bool {
    trace.chunks().iter().any(ChunkRef::is_after_gap)
}
