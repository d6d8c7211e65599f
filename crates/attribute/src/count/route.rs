//! The route of an access from the trace to the caches: direct, or through another layout.

use memlode_replay::{Events, LoopPart, Piece, Walk};
use memlode_trace::event::Stride;
use memlode_trace::sites::SiteId;

use crate::count::engine::Engine;
use crate::count::profiler::{Profiler, Stream};

/// A route for a piece's events, all of which come in order and on one thread.
pub(crate) trait Route<E: Engine> {
    /// Accesses and marks.
    fn events(&mut self, profiler: &mut Profiler<E>, stream: &mut Stream, events: Events<'_>);

    /// Iterations of a loop, and its strides there.
    fn repeat(
        &mut self,
        profiler: &mut Profiler<E>,
        stream: &mut Stream,
        part: LoopPart<'_>,
        strides: &[Stride],
    );

    /// Begins a piece. Returns whether the route itself looks at how sites walk, because its
    /// accesses go elsewhere.
    fn begins(&mut self, _piece: &Piece<'_>) -> bool {
        false
    }

    /// Ends a piece, and adds the walks of its sites.
    fn ends(&mut self, _piece: &Piece<'_>, _walks: &mut Vec<(SiteId, Walk)>) {}
}

/// Accesses as they were made.
pub(crate) struct Direct;

impl<E: Engine> Route<E> for Direct {
    #[inline(always)]
    fn events(&mut self, profiler: &mut Profiler<E>, stream: &mut Stream, events: Events<'_>) {
        profiler.events(stream, events);
    }

    #[inline(always)]
    fn repeat(
        &mut self,
        profiler: &mut Profiler<E>,
        stream: &mut Stream,
        part: LoopPart<'_>,
        strides: &[Stride],
    ) {
        profiler.repeat(stream, part, strides);
    }
}
