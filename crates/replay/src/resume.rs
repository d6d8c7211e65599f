//! Points between pieces, from which a replay goes on as if it had begun at the start.
//!
//! ```text
//! chunks   0  1  2  3  4  5  6  7 …          from a point: those in work or waiting, then those not taken yet
//!          done  3: at a place  5 waits  6 …                                  3  5  6  7 …
//! ```

use std::cmp::Reverse;

use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::{ChunkRef, UnrecordedId};
use serde::{Deserialize, Serialize};

use crate::crew::{Chunk, Replayed, Supply};
use crate::order::{AtHand, State, Stream};
use crate::piece::{Piece, Place};

/// A step of a replay that has points.
pub enum ReplayStep<'p, 'b> {
    /// Events of one stream.
    Piece(&'p Piece<'b>),
    /// A point that was asked for.
    Point(&'p Point),
}

/// A point between two pieces: how far each stream is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Chunks that were taken.
    taken: u64,
    streams: Vec<StreamAt>,
    /// Times at which streams wait for their turn, and their places; also such as are out of date.
    turns: Vec<(u64, u64)>,
    /// Process and address of objects by which something was released.
    released: Vec<(u32, u64)>,
    /// Executions of places that are not recorded, in the chunks taken.
    unrecorded: Vec<(u32, u64)>,
}

/// A stream at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StreamAt {
    thread: u32,
    stream: u8,
    since: u64,
    time: u64,
    hurries: u64,
    key: u64,
    at_hand: Option<ChunkAt>,
    /// Numbers of the chunks that wait.
    waiting: Vec<u64>,
}

/// The current chunk of a stream at a point: events of it that are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ChunkAt {
    number: u64,
    accesses: u64,
    marks: u64,
    /// Marks and moments looked at.
    seen_marks: u64,
    moments: u64,
    inside: u64,
}

impl Point {
    /// Number of chunks in front of it, or in work there.
    pub fn taken(&self) -> usize {
        self.taken as usize
    }

    /// Returns whether it can be a point of a trace with this number of chunks.
    pub fn fits(&self, chunks: usize) -> bool {
        let taken = self.taken as usize;
        taken <= chunks
            && self.in_work().count() <= taken
            && self.in_work().all(|number| number < taken)
            && self.turns.iter().all(|(_, stream)| (*stream as usize) < self.streams.len())
    }

    /// Chunks in work or waiting, by number.
    fn in_work(&self) -> impl Iterator<Item = usize> {
        let of = |stream: &StreamAt| {
            let at_hand = stream.at_hand.map(|at_hand| at_hand.number);
            at_hand.into_iter().chain(stream.waiting.clone()).map(|number| number as usize)
        };
        self.streams.iter().flat_map(of)
    }

    /// The chunks that are replayed from here on, of all chunks of the trace that it fits.
    pub(crate) fn chunks(&self, all: &[ChunkRef]) -> Vec<ChunkRef> {
        self.in_work().map(|number| all[number]).chain(all[self.taken()..].iter().copied()).collect()
    }
}

/// A replay that begins at a point, or at the start, and the points that are asked for.
pub(crate) struct Resumed<'p> {
    from: Option<&'p Point>,
    /// Chunks taken before, less those that are taken again.
    before: usize,
    points: &'p [usize],
}

impl<'p> Resumed<'p> {
    pub fn from_start(points: &'p [usize]) -> Resumed<'p> {
        Resumed { from: None, before: 0, points }
    }

    pub fn at(point: &'p Point, points: &'p [usize]) -> Resumed<'p> {
        let first = points.partition_point(|number| *number <= point.taken());
        let before = point.taken() - point.in_work().count();
        Resumed { from: Some(point), before, points: &points[first..] }
    }

    /// Number of chunks taken from the trace's start on.
    pub fn taken(&self, supply: &Supply<'_>) -> usize {
        self.before + supply.taken()
    }

    /// The streams where the replay begins.
    pub fn begin(&self, supply: &mut Supply<'_>) -> State {
        let mut state = State::default();
        let Some(point) = self.from else { return state };
        let mut take = |number: u64| Some((number as usize, supply.next()?));
        for (number, known) in point.streams.iter().enumerate() {
            let at_hand = known.at_hand.and_then(|at| Some(at.in_chunk(take(at.number)?)));
            let stream = Stream {
                since: known.since,
                time: known.time,
                hurries: known.hurries,
                key: known.key,
                at_hand,
                waiting: known.waiting.iter().filter_map(|number| take(*number)).collect(),
            };
            state.numbers.insert((ThreadId(known.thread), known.stream), number);
            state.turns.streams.push(stream);
        }
        let turns = point.turns.iter().map(|&(time, stream)| Reverse((time, stream as usize)));
        state.turns.next = turns.collect();
        state.released =
            point.released.iter().map(|(process, object)| (ProcessId(*process), *object)).collect();
        let Replayed { chunks, damaged, unrecorded, .. } = supply.replayed();
        *chunks = point.taken() - damaged.len();
        *unrecorded = point.unrecorded.iter().map(|(place, times)| (UnrecordedId(*place), *times)).collect();
        state
    }

    /// Returns whether the next point is here.
    #[inline]
    pub fn is_at_point(&self, supply: &mut Supply<'_>) -> bool {
        self.points.first().is_some_and(|next| *next <= self.taken(supply))
            && supply.replayed().damaged.is_empty()
    }

    /// Leaves a point behind.
    pub fn point(&mut self, supply: &mut Supply<'_>, state: &State) -> Point {
        let taken = self.taken(supply);
        self.points = &self.points[self.points.partition_point(|number| *number <= taken)..];
        let mut streams: Vec<StreamAt> = state.turns.streams.iter().map(StreamAt::of).collect();
        for (&(thread, stream), &number) in &state.numbers {
            (streams[number].thread, streams[number].stream) = (thread.0, stream);
        }
        let turns = state.turns.next.iter().map(|&Reverse((time, stream))| (time, stream as u64));
        let mut turns: Vec<_> = turns.collect();
        turns.sort_unstable();
        let mut released: Vec<_> =
            state.released.iter().map(|(process, object)| (process.0, *object)).collect();
        released.sort_unstable();
        let unrecorded = &supply.replayed().unrecorded;
        let unrecorded = unrecorded.iter().map(|(place, times)| (place.0, *times)).collect();
        Point { taken: taken as u64, streams, turns, released, unrecorded }
    }
}

impl StreamAt {
    fn of(stream: &Stream) -> StreamAt {
        StreamAt {
            thread: 0,
            stream: 0,
            since: stream.since,
            time: stream.time,
            hurries: stream.hurries,
            key: stream.key,
            at_hand: stream.at_hand.as_ref().map(ChunkAt::of),
            waiting: stream.waiting.iter().map(|(number, _)| *number as u64).collect(),
        }
    }
}

impl ChunkAt {
    fn of(at_hand: &AtHand) -> ChunkAt {
        let &AtHand { number, next, marks, moments, inside, .. } = at_hand;
        let [number, accesses, seen_marks, moments] =
            [number, next.accesses, marks, moments].map(|number| number as u64);
        ChunkAt { number, accesses, marks: next.marks as u64, seen_marks, moments, inside }
    }

    /// The chunk with its number, at this place.
    fn in_chunk(self, (number, chunk): (usize, Chunk)) -> AtHand {
        // A damaged point may speak of events that there are not.
        let end = Place::end_of(&chunk.batch);
        let next = Place {
            accesses: (self.accesses as usize).min(end.accesses),
            marks: (self.marks as usize).min(end.marks),
            ..Place::default()
        };
        let moments = self.moments as usize;
        let count = chunk.dealing.moments.get(moments).map_or(0, |moment| moment.count());
        let (marks, inside) =
            ((self.seen_marks as usize).min(end.marks), self.inside.min(count.saturating_sub(1)));
        AtHand { number, chunk, next, marks, moments, inside }
    }
}
