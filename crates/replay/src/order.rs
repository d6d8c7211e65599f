//! Streams merged as their threads ran (SPEC §4.4).
//!
//! ```text
//! stream 0  │ 10 ──────────── 40 ───── 60 ─────────│      a piece runs from one stamp to the next;
//! stream 1       │ 20 ── 30 ─────── 50 ─────│             its time is the stamp it begins with
//! replay      10   20   30   40   50   60
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use memlode_trace::event::{Batch, Mark, ThreadId};
use memlode_trace::{ChunkRef, Loops, Trace};
use rustc_hash::FxHashMap;

use crate::crew::{Begins, Chunk, Replayed, Source, Stored, Supply, supply, supply_shards};
use crate::piece::Piece;
use crate::shards::Shards;

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
    /// Time of its latest piece.
    time: u64,
    /// The chunk at hand, and where in it the next piece begins.
    at_hand: Option<(Chunk, Place)>,
    /// Chunks whose turn has come by their `first_stamp`, before the end of the one at hand.
    waiting: VecDeque<Chunk>,
}

impl Stream {
    /// Takes up the next chunk.
    fn begin(&mut self) -> Option<u64> {
        let chunk = self.waiting.pop_front()?;
        self.time = self.time.max(chunk.batch.stamps.0);
        self.at_hand = Some((chunk, Place::default()));
        Some(self.time)
    }

    /// The piece at hand, up to the first stamp behind `limit`; the stream's time is that stamp then.
    fn piece(&mut self, limit: u64) -> Option<Piece<'_>> {
        let (Chunk { batch, dealing }, next) = self.at_hand.as_mut()?;
        let begin = *next;
        // The stamp a piece begins with has been looked at.
        let looked_at = usize::from(begin != Place::default());
        *next = Place { accesses: batch.accesses.len(), marks: batch.marks.len(), loops: batch.loops.len() };
        for (number, (at, mark)) in batch.marks.iter().enumerate().skip(begin.marks + looked_at) {
            if let Some(stamp) = learnt(mark) {
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
        Some(Piece { batch, dealing, accesses: begin.accesses..accesses, marks: begin.marks..marks, loops })
    }
}

/// When the thread learnt from others, if it did at a mark. Pieces are cut there alone: what a release orders, the
/// acquisition that follows it does.
fn learnt(mark: &Mark) -> Option<u64> {
    match *mark {
        Mark::Sync { kind, .. } if kind.releases() => None,
        _ => mark.stamp(),
    }
}

/// Replays a trace.
pub trait Replay {
    /// Decodes all chunks, with `workers` threads to help, and hands them over whole, on this thread, in the order
    /// in which they began. A damaged chunk is left out and reported. [`Replay::interleave`] is finer.
    fn replay(&self, workers: usize, consume: impl FnMut(&Batch) -> ControlFlow<()>) -> Replayed;

    /// The same for some chunks, in their given order.
    fn replay_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        consume: impl FnMut(&Batch) -> ControlFlow<()>,
    ) -> Replayed;

    /// Hands over all events, on this thread, in replay order: chunk by chunk where only one stream runs, piece by piece
    /// where several do. `workers` threads help to decode. A damaged chunk is left out and reported.
    fn interleave(&self, workers: usize, consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>) -> Replayed;

    /// The same for some of the chunks, which are in the order of [`Trace::chunks`].
    fn interleave_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed;

    /// Hands over all events, each shard's to a consumer of its own, as [`Replay::interleave`] does, but loops are kept. The
    /// consumers run on threads of their own, the first on this one, and decode; `workers` threads help them with that.
    fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send;
}

impl Replay for Trace {
    fn replay(&self, workers: usize, consume: impl FnMut(&Batch) -> ControlFlow<()>) -> Replayed {
        self.replay_chunks(self.chunks(), workers, consume)
    }

    fn replay_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        mut consume: impl FnMut(&Batch) -> ControlFlow<()>,
    ) -> Replayed {
        supply(&Stored { trace: self, chunks }, workers, Loops::Unrolled, |supply| {
            for _ in chunks {
                if let Some(chunk) = supply.next() {
                    consume(&chunk.batch)?;
                    supply.give_back(chunk);
                }
            }
            ControlFlow::Continue(())
        })
    }

    fn interleave(&self, workers: usize, consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>) -> Replayed {
        self.interleave_chunks(self.chunks(), workers, consume)
    }

    fn interleave_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        mut consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed {
        interleave(&Stored { trace: self, chunks }, workers, &mut consume)
    }

    fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
    {
        interleave_shards(&Stored { trace: self, chunks: self.chunks() }, shards, workers, consumers)
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
            let Some(chunk) = supply.next() else { continue };
            let identity = (chunk.batch.thread.unwrap_or(ThreadId(0)), chunk.batch.stream);
            let number = *numbers.entry(identity).or_insert_with(|| {
                streams.push(Stream::default());
                streams.len() - 1
            });
            let stream = &mut streams[number];
            stream.waiting.push_back(chunk);
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
        if let Some((chunk, _)) = stream.at_hand.take() {
            supply.give_back(chunk);
        }
        next.extend(stream.begin().map(|time| Reverse((time, number))));
    }
}
