//! Streams merged as their threads ran (SPEC §4.4).
//!
//! ```text
//! stream 0  │ 10 ──────────── 40 ───── 60 ─────────│      a piece runs from one stamp to the next;
//! stream 1       │ 20 ── 30 ─────── 50 ─────│             its time is the stamp it begins with
//! replay      10   20   30   40   50   60
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashMap;

use crate::decode::Loops;
use crate::event::{Access, Batch, Loop, Mark, ThreadId};
use crate::index::ChunkRef;
use crate::read::Trace;
use crate::replay::{Begins, Replayed, Source, Supply, supply, supply_shards};
use crate::shards::{Half, Shards};

/// A run of a chunk's events that nothing of another stream comes between.
#[derive(Clone, Debug)]
pub struct Piece<'b> {
    /// The chunk.
    pub batch: &'b Batch,
    accesses: Range<usize>,
    marks: Range<usize>,
    loops: Range<usize>,
}

/// What a run of events ends with.
#[derive(Clone, Copy, Debug)]
pub enum Stop<'b> {
    /// A loop, where they are kept.
    Loop(&'b Loop),
    /// A part of an access that goes on, or began, in another shard.
    Half(&'b Half),
}

/// Accesses, and the marks between them.
#[derive(Clone, Copy, Debug)]
pub struct Events<'b> {
    /// The accesses, in program order.
    pub accesses: &'b [Access],
    /// The marks, in program order, each with the number of the chunk's accesses that come before it.
    pub marks: &'b [(u32, Mark)],
    /// How many of the chunk's accesses come before these.
    pub before: usize,
}

impl<'b> Piece<'b> {
    /// All of a chunk.
    pub fn whole(batch: &'b Batch) -> Piece<'b> {
        let (accesses, marks) = (0..batch.accesses.len(), 0..batch.marks.len());
        Piece { batch, accesses, marks, loops: 0..batch.loops.len() }
    }

    /// Whether the chunk begins with it.
    pub fn is_first(&self) -> bool {
        self.accesses.start == 0 && self.marks.start == 0 && self.loops.start == 0
    }

    /// Whether the chunk ends with it.
    pub fn is_last(&self) -> bool {
        self.accesses.end == self.batch.accesses.len()
            && self.marks.end == self.batch.marks.len()
            && self.loops.end == self.batch.loops.len()
    }

    /// Whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.marks.is_empty() && self.loops.is_empty()
    }

    /// The accesses, in program order.
    pub fn accesses(&self) -> &'b [Access] {
        &self.batch.accesses[self.accesses.clone()]
    }

    /// The marks, in program order: `(i, m)` stands before the access that is the `i`th of this piece.
    pub fn marks(&self) -> impl Iterator<Item = (usize, &'b Mark)> {
        let piece = self.clone();
        self.batch.marks[self.marks.clone()].iter().map(move |(at, mark)| (piece.within(*at), mark))
    }

    /// Its events in order: runs of accesses and marks, and what stands behind each, which is nothing behind the last one alone.
    pub fn runs(&self) -> impl Iterator<Item = (Events<'b>, Option<Stop<'b>>)> {
        let batch = self.batch;
        let (mut accesses, mut marks) = (self.accesses.clone(), self.marks.clone());
        let mut loops = batch.loops[self.loops.clone()].iter().peekable();
        let mut halves = self.halves().iter().peekable();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let half = halves.peek().map_or(usize::MAX, |half| half.access as usize);
            let next = loops.next_if(|next| next.access as usize <= half);
            let (access, mark, stop) = if let Some(next) = next {
                (next.access as usize, next.mark as usize, Some(Stop::Loop(next)))
            } else if let Some(half) = halves.next() {
                let before = batch.marks[marks.clone()].partition_point(|(at, _)| *at <= half.access);
                (half.access as usize, marks.start + before, Some(Stop::Half(half)))
            } else {
                is_over = true;
                (accesses.end, marks.end, None)
            };
            let access = access.clamp(accesses.start, accesses.end);
            let mark = mark.clamp(marks.start, marks.end);
            let events = Events {
                accesses: &batch.accesses[accesses.start..access],
                marks: &batch.marks[marks.start..mark],
                before: accesses.start,
            };
            accesses.start = access + usize::from(matches!(stop, Some(Stop::Half(_))));
            marks.start = mark;
            Some((events, stop))
        })
    }

    /// A place among the chunk's accesses as one among the piece's.
    fn within(&self, at: u32) -> usize {
        (at as usize).clamp(self.accesses.start, self.accesses.end) - self.accesses.start
    }

    /// The halves of accesses among this piece's, in order.
    fn halves(&self) -> &'b [Half] {
        let Range { start, end } = self.accesses;
        let halves = &self.batch.halves;
        let from = halves.partition_point(|half| (half.access as usize) < start);
        let to = halves.partition_point(|half| (half.access as usize) < end);
        &halves[from..to]
    }

    /// Values: index of the access in this piece, and the bytes.
    pub fn values(&self) -> impl Iterator<Item = (usize, &'b [u8])> {
        let Range { start, end } = self.accesses;
        self.batch.values.between(start, end).map(move |(access, bytes)| (access - start, bytes))
    }
}

/// A place in a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    accesses: usize,
    marks: usize,
    loops: usize,
}

/// A stream with the chunks of it that are decoded.
#[derive(Default)]
struct Stream {
    /// Of its latest piece.
    time: u64,
    /// The chunk at hand, and where in it the next piece begins.
    at_hand: Option<(Batch, Place)>,
    /// Chunks whose turn has come by their `first_stamp`, before the end of the one at hand.
    waiting: VecDeque<Batch>,
}

impl Stream {
    /// Takes up the next chunk.
    fn begin(&mut self) -> Option<u64> {
        let batch = self.waiting.pop_front()?;
        self.time = self.time.max(batch.stamps.0);
        self.at_hand = Some((batch, Place::default()));
        Some(self.time)
    }

    /// The piece at hand, up to the first stamp behind `limit`; the stream's time is that stamp then.
    fn piece(&mut self, limit: u64) -> Option<Piece<'_>> {
        let (batch, next) = self.at_hand.as_mut()?;
        let begin = *next;
        // The stamp a piece begins with has been looked at.
        let looked_at = usize::from(begin != Place::default());
        *next = Place { accesses: batch.accesses.len(), marks: batch.marks.len(), loops: batch.loops.len() };
        for (number, (at, mark)) in batch.marks.iter().enumerate().skip(begin.marks + looked_at) {
            if let Mark::Stamp { stamp } = *mark {
                self.time = self.time.max(stamp);
                if self.time > limit {
                    let accesses = (*at as usize).clamp(begin.accesses, batch.accesses.len());
                    let loops = batch.loops.partition_point(|l| l.mark as usize <= number).max(begin.loops);
                    *next = Place { accesses, marks: number, loops };
                    break;
                }
            }
        }
        let Place { accesses, marks, loops } = *next;
        let loops = begin.loops..loops;
        Some(Piece { batch, accesses: begin.accesses..accesses, marks: begin.marks..marks, loops })
    }
}

impl Trace {
    /// Hands over all events, on this thread, in replay order: chunk by chunk where only one stream runs, piece by piece
    /// where several do. `workers` threads help to decode. A damaged chunk is left out and reported.
    pub fn interleave(&self, workers: usize, consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>) -> Replayed {
        self.interleave_chunks(self.chunks(), workers, consume)
    }

    /// The same for some of the chunks, which are in the order of [`Trace::chunks`].
    pub fn interleave_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        mut consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed {
        interleave(&self.stored(chunks), workers, &mut consume)
    }

    /// Hands over all events, each shard's to a consumer of its own, as [`Trace::interleave`] does, but loops are kept. The
    /// consumers run on threads of their own, the first on this one, and decode; `workers` threads help them with that.
    pub fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
    {
        interleave_shards(&self.stored(self.chunks()), shards, workers, consumers)
    }
}

pub(crate) fn interleave(
    source: &dyn Source,
    workers: usize,
    consume: &mut impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> Replayed {
    supply(source, workers, Loops::Unrolled, |supply| merge(supply, consume))
}

pub(crate) fn interleave_shards<C>(
    source: &dyn Source,
    shards: &Shards,
    workers: usize,
    consumers: Vec<C>,
) -> Replayed
where
    C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
{
    let merging = |mut consume: C| move |supply: &mut Supply<'_>| merge(supply, &mut consume);
    supply_shards(source, shards, workers, consumers.into_iter().map(merging).collect())
}

fn merge(
    supply: &mut Supply<'_>,
    consume: &mut impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut numbers: FxHashMap<(ThreadId, u8), usize> = FxHashMap::default();
    let mut streams: Vec<Stream> = Vec::new();
    // Time of the next piece, stream.
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    loop {
        let time = next.peek().map(|&Reverse((time, _))| time);
        let begins = supply.begins(time);
        if let Begins::At(stamp) = begins
            && time.is_none_or(|time| stamp <= time)
        {
            let Some(batch) = supply.next() else { continue };
            let identity = (batch.thread.unwrap_or(ThreadId(0)), batch.stream);
            let number = *numbers.entry(identity).or_insert_with(|| {
                streams.push(Stream::default());
                streams.len() - 1
            });
            let stream = &mut streams[number];
            stream.waiting.push_back(batch);
            if stream.at_hand.is_none() {
                next.extend(stream.begin().map(|time| Reverse((time, number))));
            }
            continue;
        }
        let Some(Reverse((_, number))) = next.pop() else { return ControlFlow::Continue(()) };
        let begins = match begins {
            Begins::At(stamp) | Begins::NotBefore(stamp) => stamp,
            Begins::Never => u64::MAX,
        };
        let limit = next.peek().map_or(begins, |&Reverse((time, _))| time.min(begins));
        let stream = &mut streams[number];
        let Some(piece) = stream.piece(limit) else { continue };
        let ends = piece.is_last();
        // A chunk may begin with a stamp.
        if ends || !piece.is_empty() {
            consume(&piece)?;
        }
        if !ends {
            next.push(Reverse((stream.time, number)));
            continue;
        }
        if let Some((batch, _)) = stream.at_hand.take() {
            supply.give_back(batch);
        }
        next.extend(stream.begin().map(|time| Reverse((time, number))));
    }
}
