//! Streams merged as their threads ran (SPEC §4.4).
//!
//! ```text
//! stream 0  │ 10 ──────────── 40 ───── 60 ─────────│      a piece runs from one stamp to the next, or to a moment that lies
//! stream 1       │ 20 ── 30 ─────── 50 ─────│             between stamps; its time is that of its beginning
//! replay      10   20   30   40   50   60
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use memlode_trace::event::{Batch, Mark, ProcessId, SyncKind, ThreadId};
use memlode_trace::{ChunkRef, Loops, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::crew::{Begins, Chunk, Replayed, Source, Stored, Supply, supply, supply_shards};
use crate::piece::{Piece, Place};
use crate::resume::{Point, ReplayStep, Resumed};
use crate::shards::Shards;

/// The most decoded chunks of a stream that wait for the end of the current one. A chunk begins
/// where the one before ends, except for those that were cut while their thread ran: if there are
/// more, the stamps are damaged.
const MOST_WAITING: usize = 16;

/// The current chunk of a stream.
pub(crate) struct AtHand {
    /// Its number.
    pub number: usize,
    pub chunk: Chunk,
    /// The place where its next piece begins.
    pub next: Place,
    /// The next mark and the next moment to look at.
    pub marks: usize,
    pub moments: usize,
    /// Number of those moments that the next one stands for.
    pub inside: u64,
}

/// A stream with the chunks of it that are decoded.
#[derive(Default)]
pub(crate) struct Stream {
    /// Latest stamp at which it began or acquired something.
    pub since: u64,
    /// Time of its latest piece: `since`, or a moment behind that.
    pub time: u64,
    /// A stamp at which another stream learnt something that this one may have done at any time
    /// since an earlier stamp.
    pub hurries: u64,
    /// The key under which it waits for its turn.
    pub key: u64,
    pub at_hand: Option<AtHand>,
    /// Chunks that begin, by their `first_stamp`, before the end of the current one, with their
    /// numbers.
    pub waiting: VecDeque<(usize, Chunk)>,
}

impl Stream {
    /// Takes up the next chunk; returns whether there is one.
    fn begin(&mut self) -> bool {
        let Some((number, chunk)) = self.waiting.pop_front() else { return false };
        let first = chunk.batch.stamps.0;
        self.since = self.since.max(first);
        self.time = self.time.max(first);
        let next = Place::default();
        self.at_hand = Some(AtHand { number, chunk, next, marks: 0, moments: 0, inside: 0 });
        true
    }

    /// True while it must not be cut at moments.
    fn is_hurried(&self) -> bool {
        self.since < self.hurries
    }

    /// The time of its next piece.
    fn turn(&self) -> u64 {
        if self.is_hurried() { self.since } else { self.time }
    }

    /// The mark that the next piece begins with, if that is one at which the thread learnt
    /// something.
    fn learns(&self) -> Option<(ProcessId, &Mark)> {
        let AtHand { chunk, next, marks, .. } = self.at_hand.as_ref()?;
        let (_, mark) = chunk.batch.marks.get(next.marks).filter(|_| *marks > next.marks)?;
        learnt(mark).map(|_| (chunk.batch.process.unwrap_or(ProcessId(0)), mark))
    }

    /// The current piece, up to the first stamp or moment after `limit`, which becomes the stream's
    /// time. With `others`, it also ends at a stamp at which the thread acquired something that was
    /// released at an unknown time.
    fn piece(&mut self, limit: u64, others: bool, released: &mut Released) -> Option<Piece<'_>> {
        let mut hurried = self.is_hurried();
        let AtHand { chunk: Chunk { batch, dealing }, next, marks, moments, inside, .. } =
            self.at_hand.as_mut()?;
        let process = batch.process.unwrap_or(ProcessId(0));
        let begin = *next;
        let end = Place::end_of(batch);
        let mut ends = true;
        *next = end;
        loop {
            let moment = dealing.moments.get(*moments);
            if let Some(moment) = moment.filter(|moment| moment.marks as usize <= *marks) {
                let behind = match self.time > limit {
                    _ if hurried => None,
                    true => Some(*inside),
                    false => moment.first_behind(limit, *inside),
                };
                let number = behind.unwrap_or(moment.count() - 1);
                if !hurried {
                    self.time = self.time.max(moment.time_of(number));
                }
                *inside = number + 1;
                if *inside == moment.count() {
                    (*moments, *inside) = (*moments + 1, 0);
                }
                if behind.is_some() {
                    *next = Place::of(moment, number, batch);
                    ends = false;
                    break;
                }
                continue;
            }
            let Some((at, mark)) = batch.marks.get(*marks) else { break };
            let number = *marks;
            *marks += 1;
            if let Mark::Sync { kind, object, .. } = *mark
                && kind.releases()
            {
                released.insert((process, object));
            }
            let Some(stamp) = learnt(mark) else { continue };
            self.since = self.since.max(stamp);
            self.time = self.time.max(self.since);
            hurried = self.since < self.hurries;
            let turn = if hurried { self.since } else { self.time };
            if turn > limit || others && !is_released_at_a_stamp(process, mark, released) {
                let accesses = (*at as usize).clamp(begin.accesses, end.accesses);
                let loops = batch.loops.partition_point(|l| l.mark as usize <= number).max(begin.loops);
                *next = Place { accesses, marks: number, loops, iterations: 0 };
                ends = false;
                break;
            }
        }
        next.accesses = next.accesses.max(begin.accesses);
        next.marks = next.marks.max(begin.marks);
        Some(Piece::between(batch, dealing, begin, *next, ends))
    }
}

/// The time at which the thread acquired something, if it did at a mark. A release orders the
/// acquisition that follows it.
fn learnt(mark: &Mark) -> Option<u64> {
    match *mark {
        Mark::Sync { kind, .. } if kind.releases() => None,
        _ => mark.stamp(),
    }
}

/// Objects by which something was released so far.
pub(crate) type Released = FxHashSet<(ProcessId, u64)>;

/// Returns whether all that a thread learnt at a mark was released in front of a stamp, and not by
/// the end of a thread: then moments, which lie between stamps, do not come behind it.
fn is_released_at_a_stamp(process: ProcessId, mark: &Mark, released: &Released) -> bool {
    matches!(*mark, Mark::Sync { kind, object, .. }
        if kind != SyncKind::Join && released.contains(&(process, object)))
}

/// Replays a trace.
pub trait Replay {
    /// Decodes all chunks, with `workers` threads to help, and hands them over whole, on this
    /// thread, in the order in which they began. A damaged chunk is left out and reported.
    /// [`Replay::interleave`] is finer.
    fn replay(&self, workers: usize, consume: impl FnMut(&Batch) -> ControlFlow<()>) -> Replayed;

    /// The same for some chunks, in their given order.
    fn replay_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        consume: impl FnMut(&Batch) -> ControlFlow<()>,
    ) -> Replayed;

    /// Hands over all events, on this thread, in replay order: chunk by chunk where only one stream
    /// runs, piece by piece where several do. `workers` threads help to decode. A damaged chunk is
    /// left out and reported.
    fn interleave(&self, workers: usize, consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>) -> Replayed;

    /// Like [`Replay::interleave`], from a point on, and with the points in front of chunks of these
    /// numbers, which ascend: each step is a piece or such a point. A trace that lacks chunks has no
    /// points behind the first of these.
    fn resume(
        &self,
        workers: usize,
        from: Option<&Point>,
        points: &[usize],
        consume: impl FnMut(ReplayStep<'_, '_>) -> ControlFlow<()>,
    ) -> Replayed;

    /// Like [`Replay::interleave`], for some of the chunks, which are in the order of
    /// [`Trace::chunks`].
    fn interleave_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed;

    /// Passes each shard's events to its consumer, as [`Replay::interleave`] does, but loops stay
    /// one record. Each consumer runs on its own thread, the first on this one, and decodes;
    /// `workers` threads help to decode.
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
        supply(&Stored::new(self, chunks), workers, Loops::Unrolled, |supply| {
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
        interleave(&Stored::new(self, chunks), workers, &mut consume)
    }

    fn resume(
        &self,
        workers: usize,
        from: Option<&Point>,
        points: &[usize],
        mut consume: impl FnMut(ReplayStep<'_, '_>) -> ControlFlow<()>,
    ) -> Replayed {
        let all = Stored::new(self, self.chunks());
        let Some(from) = from else {
            return supply(&all, workers, Loops::Unrolled, |supply| {
                merge(supply, &mut Resumed::from_start(points), &mut consume)
            });
        };
        let chunks = from.chunks(self.chunks());
        supply(&all.of(&chunks), workers, Loops::Unrolled, |supply| {
            merge(supply, &mut Resumed::at(from, points), &mut consume)
        })
    }

    fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
    {
        interleave_shards(&Stored::new(self, self.chunks()), shards, workers, consumers)
    }
}

pub(crate) fn interleave(
    source: &dyn Source,
    workers: usize,
    consume: &mut impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> Replayed {
    supply(source, workers, Loops::Unrolled, |supply| merge_pieces(supply, consume))
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
    let merging = |mut consume: C| move |supply: &mut Supply<'_>| merge_pieces(supply, &mut consume);
    supply_shards(source, shards, workers, consumers.into_iter().map(merging).collect())
}

fn merge_pieces(
    supply: &mut Supply<'_>,
    consume: &mut impl FnMut(&Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let only_pieces = &mut |step: ReplayStep<'_, '_>| match step {
        ReplayStep::Piece(piece) => consume(piece),
        ReplayStep::Point(_) => ControlFlow::Continue(()),
    };
    merge(supply, &mut Resumed::from_start(&[]), only_pieces)
}

fn merge(
    supply: &mut Supply<'_>,
    resumed: &mut Resumed<'_>,
    consume: &mut impl FnMut(ReplayStep<'_, '_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut state = resumed.begin(supply);
    loop {
        if resumed.is_at_point(supply) {
            consume(ReplayStep::Point(&resumed.point(supply, &state)))?;
        }
        let State { numbers, turns, released } = &mut state;
        let time = turns.first();
        let begins = supply.begins(time);
        if let Begins::At(stamp) = begins
            && time.is_none_or(|time| stamp <= time)
        {
            let Some(chunk) = supply.next() else { continue };
            let identity = (chunk.batch.thread.unwrap_or(ThreadId(0)), chunk.batch.stream);
            let number = *numbers.entry(identity).or_insert_with(|| {
                turns.streams.push(Stream::default());
                turns.streams.len() - 1
            });
            let stream = &mut turns.streams[number];
            stream.waiting.push_back((resumed.taken(supply) - 1, chunk));
            if stream.waiting.len() > MOST_WAITING {
                // No recording has such stamps. Its memory is bounded, its order is not to be known.
                while stream.waiting.len() > MOST_WAITING / 2 {
                    let Some(piece) = stream.piece(u64::MAX, false, released) else { break };
                    consume(ReplayStep::Piece(&piece))?;
                    if let Some(AtHand { chunk, .. }) = stream.at_hand.take() {
                        supply.give_back(chunk);
                    }
                    stream.begin();
                }
                if stream.at_hand.is_some() {
                    turns.wait(number);
                }
            } else if stream.at_hand.is_none() && stream.begin() {
                turns.wait(number);
            }
            continue;
        }
        let Some(number) = turns.next() else { return ControlFlow::Continue(()) };
        if let Some((process, mark)) = turns.streams[number].learns()
            && !is_released_at_a_stamp(process, mark, released)
            && turns.hurry_others(number)
        {
            turns.wait(number);
            continue;
        }
        let begins = match begins {
            Begins::At(stamp) | Begins::NotBefore(stamp) => stamp,
            Begins::Never => u64::MAX,
        };
        let others = turns.first();
        let limit = others.map_or(begins, |time| time.min(begins));
        let stream = &mut turns.streams[number];
        let Some(piece) = stream.piece(limit, others.is_some(), released) else { continue };
        let ends = piece.is_last();
        // A chunk may begin with a stamp.
        if ends || !piece.is_empty() {
            consume(ReplayStep::Piece(&piece))?;
        }
        if !ends {
            turns.wait(number);
            continue;
        }
        if let Some(AtHand { chunk, .. }) = stream.at_hand.take() {
            supply.give_back(chunk);
        }
        if stream.begin() {
            turns.wait(number);
        }
    }
}

/// Streams, as far as they are replayed.
#[derive(Default)]
pub(crate) struct State {
    /// The number of each stream.
    pub numbers: FxHashMap<(ThreadId, u8), usize>,
    pub turns: Turns,
    pub released: Released,
}

/// Streams, and which of them has its turn when.
#[derive(Default)]
pub(crate) struct Turns {
    pub streams: Vec<Stream>,
    /// Time, stream. Where that is not the stream's key, it waits under another.
    pub next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Turns {
    /// The time of the next turn.
    fn first(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, number))) = self.next.peek() {
            if self.streams[number].key == time {
                return Some(time);
            }
            self.next.pop();
        }
        None
    }

    /// The stream that has its turn.
    fn next(&mut self) -> Option<usize> {
        self.first()?;
        let Reverse((_, number)) = self.next.pop()?;
        self.streams[number].key = u64::MAX;
        Some(number)
    }

    /// A stream with a current chunk waits for its turn.
    fn wait(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let turn = stream.turn();
        if stream.key != turn {
            stream.key = turn;
            self.next.push(Reverse((turn, number)));
        }
    }

    /// A stream acquired something whose time of release is unknown: the others first go on to
    /// where they next acquire something, unless that is known to be later. Returns whether any of
    /// them has to.
    fn hurry_others(&mut self, number: usize) -> bool {
        let learnt = self.streams[number].since;
        let waiting: Vec<usize> = self.next.iter().map(|&Reverse((_, other))| other).collect();
        let mut any = false;
        for other in waiting {
            let stream = &mut self.streams[other];
            if other != number && stream.since < learnt && stream.hurries < learnt {
                stream.hurries = learnt;
                any = true;
                self.wait(other);
            }
        }
        any
    }
}
