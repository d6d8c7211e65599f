//! Events before those that anybody looks at: blocks come and go, functions are entered and left,
//! and accesses are counted only.

use memlode_replay::{Events, LoopPart, Piece};
use memlode_simulate::touch_lines;
use memlode_trace::event::Stride;

use crate::count::engine::Engine;
use crate::count::profiler::{Profiler, Stream};
use crate::count::route::Route;

/// A route that ends before the caches: a simulator that keeps nothing of an access need not see it.
pub(crate) struct Past;

impl<E: Engine> Route<E> for Past {
    fn events(&mut self, profiler: &mut Profiler<E>, stream: &mut Stream, events: Events<'_>) {
        for (_, mark) in events.marks {
            profiler.mark(mark, stream);
        }
    }

    fn repeat(&mut self, _: &mut Profiler<E>, _: &mut Stream, _: LoopPart<'_>, _: &[Stride]) {}
}

impl<E: Engine> Profiler<E> {
    /// Follows the blocks and calls of a piece, and leaves out its accesses.
    pub(crate) fn pass(&mut self, piece: &Piece<'_>) {
        self.observe_piece_by(&mut Past, piece);
    }

    /// Number of accesses in a piece whose loops are unrolled, where each line of a range is one.
    pub(crate) fn count_of(&self, piece: &Piece<'_>) -> u64 {
        let long = piece.accesses().iter().filter(|access| access.bytes > self.line_bytes);
        let more = long.map(|access| {
            touch_lines(access.address, u64::from(access.bytes), self.line_bytes).count() as u64 - 1
        });
        piece.accesses().len() as u64 + more.sum::<u64>()
    }
}
