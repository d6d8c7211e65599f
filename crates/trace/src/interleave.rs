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

use crate::event::{Access, Batch, Mark, ThreadId};
use crate::index::ChunkRef;
use crate::read::Trace;
use crate::replay::{Replayed, Supply};

/// A run of a chunk's events that nothing of another stream comes between.
#[derive(Clone, Debug)]
pub struct Piece<'b> {
    /// The chunk.
    pub batch: &'b Batch,
    accesses: Range<usize>,
    marks: Range<usize>,
}

impl<'b> Piece<'b> {
    /// All of a chunk.
    pub fn whole(batch: &'b Batch) -> Piece<'b> {
        Piece { batch, accesses: 0..batch.accesses.len(), marks: 0..batch.marks.len() }
    }

    /// Whether the chunk begins with it.
    pub fn is_first(&self) -> bool {
        self.accesses.start == 0 && self.marks.start == 0
    }

    /// Whether the chunk ends with it.
    pub fn is_last(&self) -> bool {
        self.accesses.end == self.batch.accesses.len() && self.marks.end == self.batch.marks.len()
    }

    /// Whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.marks.is_empty()
    }

    /// The accesses, in program order.
    pub fn accesses(&self) -> &'b [Access] {
        &self.batch.accesses[self.accesses.clone()]
    }

    /// The marks, in program order: `(i, m)` stands before the access that is the `i`th of this piece.
    pub fn marks(&self) -> impl Iterator<Item = (usize, &'b Mark)> {
        let Range { start, end } = self.accesses;
        let within = move |at: u32| (at as usize).clamp(start, end) - start;
        self.batch.marks[self.marks.clone()].iter().map(move |(at, mark)| (within(*at), mark))
    }

    /// Values: index of the access in this piece, and the bytes.
    pub fn values(&self) -> impl Iterator<Item = (usize, &'b [u8])> {
        let Range { start, end } = self.accesses;
        self.batch.values.between(start, end).map(move |(access, bytes)| (access - start, bytes))
    }
}

/// A stream with the chunks of it that are decoded.
#[derive(Default)]
struct Stream {
    /// Of its latest piece.
    time: u64,
    /// The chunk at hand, and where in it the next piece begins: accesses, marks.
    at_hand: Option<(Batch, usize, usize)>,
    /// Chunks whose turn has come by their `first_stamp`, before the end of the one at hand.
    waiting: VecDeque<Batch>,
}

impl Stream {
    /// Takes up the next chunk.
    fn begin(&mut self) -> Option<u64> {
        let batch = self.waiting.pop_front()?;
        self.time = self.time.max(batch.stamps.0);
        self.at_hand = Some((batch, 0, 0));
        Some(self.time)
    }

    /// The piece at hand, up to the first stamp behind `limit`; the stream's time is that stamp then.
    fn piece(&mut self, limit: u64) -> Option<Piece<'_>> {
        let (batch, accesses, marks) = self.at_hand.as_mut()?;
        let begin = (*accesses, *marks);
        // The stamp a piece begins with has been looked at.
        let rest = batch.marks.iter().enumerate().skip(begin.1 + usize::from(begin != (0, 0)));
        (*accesses, *marks) = (batch.accesses.len(), batch.marks.len());
        for (number, (at, mark)) in rest {
            if let Mark::Stamp { stamp } = *mark {
                self.time = self.time.max(stamp);
                if self.time > limit {
                    (*accesses, *marks) = ((*at as usize).clamp(begin.0, batch.accesses.len()), number);
                    break;
                }
            }
        }
        Some(Piece { batch, accesses: begin.0..*accesses, marks: begin.1..*marks })
    }
}

impl Trace {
    /// Hands over all events, on this thread, in replay order: chunk by chunk where only one stream runs, piece by piece
    /// where several do. Decodes on `workers` threads (0: on this one). A damaged chunk is left out and reported.
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
        self.supply(chunks, workers, |supply| merge(chunks, supply, &mut consume))
    }
}

fn merge(
    chunks: &[ChunkRef],
    supply: &mut Supply<'_>,
    consume: &mut impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut numbers: FxHashMap<(ThreadId, u8), usize> = FxHashMap::default();
    let mut streams: Vec<Stream> = Vec::new();
    // Time of the next piece, stream.
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut undecoded = chunks.iter();
    loop {
        let begins = undecoded.as_slice().first().map_or(u64::MAX, |chunk| chunk.header.first_stamp);
        if next.peek().is_none_or(|&Reverse((time, _))| begins <= time) && undecoded.next().is_some() {
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
        supply.give_back(stream.at_hand.take().map(|(batch, ..)| batch));
        next.extend(stream.begin().map(|time| Reverse((time, number))));
    }
}
