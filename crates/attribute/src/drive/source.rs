//! A trace to replay, complete or still being written.

use std::ops::ControlFlow;
use std::sync::Arc;

use memlode_replay::{LiveTrace, Piece, Replay, Replayed, Shards};
use memlode_trace::{ChunkRef, Trace};

/// A source of pieces of chunks; the simulation need not know whether the trace is complete.
#[derive(Clone)]
pub enum Source {
    /// A trace directory.
    Stored(Arc<Trace>),
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
            Source::Stored(trace) => at(trace),
            Source::Live { trace, .. } => trace.look(at),
        }
    }

    /// Changes when names or images come in, and is not 0. They are there before the events that
    /// need them.
    pub fn news(&self) -> u64 {
        match self {
            Source::Stored(_) => 1,
            Source::Live { trace, .. } => 1 + trace.news(),
        }
    }

    /// Returns whether gaps must be reckoned with.
    pub(crate) fn may_have_gaps(&self) -> bool {
        match self {
            Source::Stored(trace) => has_gaps(trace),
            Source::Live { may_have_gaps, .. } => *may_have_gaps,
        }
    }

    /// Returns how many threads there are; `None` while there may be more.
    pub(crate) fn threads(&self) -> Option<usize> {
        match self {
            Source::Stored(trace) => Some(trace.threads().len()),
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
            Source::Live { trace, .. } => trace.interleave_shards(shards, workers, consumers),
        }
    }
}

/// Returns whether recording was off for a while.
pub fn has_gaps(trace: &Trace) -> bool {
    trace.chunks().iter().any(ChunkRef::is_after_gap)
}
