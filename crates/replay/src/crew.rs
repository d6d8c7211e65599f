//! Decoding on several threads, events in order.
//!
//! ```text
//!   chunks    0    1    2    3    4 …       claimed by whichever thread has nothing better to do, decoded, and dealt out
//!   shard 0   ■    ■    ■    □              taken in order by the consumer of the shard
//!   shard 1   ■    ■    □    □
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memlode_trace::event::Batch;
use memlode_trace::{ChunkRef, Decoder, Error, Loops, Trace, UnrecordedId};

use crate::moments::{Moment, moments};
use crate::shards::{Dealer, Dealing, Shards};
use crate::walks::Walks;

/// Decoded chunks that may wait for a consumer, per thread: enough to ride out an uneven chunk,
/// little memory.
const WAITING: usize = 3;

/// Time to wait for something that may come at any time.
const GLANCE: Duration = Duration::from_millis(1);

/// When a chunk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// At this stamp.
    At(u64),
    /// It is not there yet, and not before this stamp.
    NotBefore(u64),
    /// There is none.
    Never,
}

/// Chunks by number, in replay order.
pub(crate) trait Source: Sync {
    /// Returns when a chunk begins. It is the first that is not decoded yet, or an earlier one.
    fn begins(&self, number: usize) -> Begins;

    /// A chunk of which [`Source::begins`] said that it is there.
    fn chunk(&self, number: usize) -> ChunkRef;

    /// Returns whether no other stream can have run while a chunk was written. False is always
    /// safe.
    fn is_alone(&self, number: usize) -> bool;

    /// Decodes a chunk that is there. Called once for each, in order.
    fn decode(&self, number: usize, decoder: &mut Decoder, batch: &mut Batch) -> Result<(), Error>;
}

/// A decoded chunk, or a shard's part of one.
#[derive(Default)]
pub(crate) struct Chunk {
    pub batch: Batch,
    pub dealing: Dealing,
}

/// Chunks of a trace that is complete, in their given order.
pub(crate) struct Stored<'a> {
    trace: &'a Trace,
    chunks: &'a [ChunkRef],
    /// All are of one stream.
    is_alone: bool,
}

impl<'a> Stored<'a> {
    pub fn new(trace: &'a Trace, chunks: &'a [ChunkRef]) -> Stored<'a> {
        let stream = |chunk: &ChunkRef| (chunk.thread, chunk.stream());
        let is_alone = chunks.iter().all(|chunk| stream(chunk) == stream(&chunks[0]));
        Stored { trace, chunks, is_alone }
    }

    /// Some chunks of it, in another order.
    pub fn of<'c>(self, chunks: &'c [ChunkRef]) -> Stored<'c>
    where
        'a: 'c,
    {
        Stored { chunks, ..self }
    }
}

impl Source for Stored<'_> {
    fn begins(&self, number: usize) -> Begins {
        self.chunks.get(number).map_or(Begins::Never, |chunk| Begins::At(chunk.stamps().0))
    }

    fn chunk(&self, number: usize) -> ChunkRef {
        self.chunks[number]
    }

    fn is_alone(&self, _: usize) -> bool {
        self.is_alone
    }

    fn decode(&self, number: usize, decoder: &mut Decoder, batch: &mut Batch) -> Result<(), Error> {
        decoder.stored(self.trace, &self.chunks[number], batch)
    }
}

/// The outcome of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Chunks handed to the consumer.
    pub chunks: usize,
    /// Chunks that could not be decoded and were left out.
    pub damaged: Vec<(ChunkRef, Error)>,
    /// True if the consumer stopped it.
    pub stopped: bool,
    /// Executions of places that are not recorded, in these chunks.
    pub unrecorded: BTreeMap<UnrecordedId, u64>,
}

/// Lets `consume` have the chunks, which `workers` threads help to decode.
pub(crate) fn supply(
    source: &dyn Source,
    workers: usize,
    loops: Loops,
    consume: impl FnOnce(&mut Supply<'_>) -> ControlFlow<()>,
) -> Replayed {
    let crew = Crew::new(source, Shards::one(), loops, 1 + workers);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| crew.help());
        }
        crew.consume(0, consume)
    })
}

/// Gives each consumer its shard of the chunks, on its own thread, the first on this one. All of
/// them decode, and `workers` more threads.
pub(crate) fn supply_shards<C>(
    source: &dyn Source,
    shards: &Shards,
    workers: usize,
    consumers: Vec<C>,
) -> Replayed
where
    C: FnOnce(&mut Supply<'_>) -> ControlFlow<()> + Send,
{
    assert_eq!(shards.count(), consumers.len(), "a consumer for each shard");
    let crew = Crew::new(source, shards.clone(), Loops::Kept, consumers.len() + workers);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| crew.help());
        }
        let mut consumers = consumers.into_iter().enumerate();
        let first = consumers.next();
        for (shard, consume) in consumers {
            let crew = &crew;
            scope.spawn(move || crew.consume(shard, consume));
        }
        first.map(|(shard, consume)| crew.consume(shard, consume)).unwrap_or_default()
    })
}

/// Decoded chunks of a shard, one after the other.
pub(crate) struct Supply<'a> {
    crew: &'a Crew<'a>,
    hand: Hand,
    shard: usize,
    next: usize,
    replayed: Replayed,
}

impl Supply<'_> {
    /// Number of chunks that were taken or left out.
    pub fn taken(&self) -> usize {
        self.next
    }

    /// The outcome so far.
    pub fn replayed(&mut self) -> &mut Replayed {
        &mut self.replayed
    }

    /// The next chunk; `None` if it is damaged, or there is none left.
    pub fn next(&mut self) -> Option<Chunk> {
        let number = self.next;
        self.next += 1;
        match self.crew.take(&mut self.hand, self.shard, number)? {
            Ok(chunk) => {
                self.replayed.chunks += 1;
                for &(places, times) in &chunk.dealing.unrecorded {
                    let sum = self.replayed.unrecorded.entry(places).or_default();
                    *sum = sum.saturating_add(times);
                }
                Some(chunk)
            }
            Err(error) => {
                self.replayed.damaged.push((self.crew.source.chunk(number), error));
                None
            }
        }
    }

    /// When the next chunk begins. Waits until it is there, or certain to begin after `time`.
    pub fn begins(&self, time: Option<u64>) -> Begins {
        loop {
            match self.crew.source.begins(self.next) {
                Begins::NotBefore(stamp) if time.is_none_or(|time| stamp <= time) => {}
                begins => return begins,
            }
            let state = self.crew.lock();
            if state.stopped || state.panicked {
                return Begins::Never;
            }
            drop(self.crew.wait(state));
        }
    }

    /// Takes back a chunk, to reuse its memory.
    pub fn give_back(&mut self, chunk: Chunk) {
        if let Some(cuts) = &chunk.dealing.cuts {
            cuts.finish();
        }
        self.crew.lock().spare.push(chunk);
    }
}

/// The tools that a thread decodes with.
struct Hand {
    decoder: Decoder,
    whole: Batch,
    dealer: Dealer,
    walks: Walks,
    moments: Vec<Moment>,
}

/// Threads that decode chunks, and deal them out.
struct Crew<'a> {
    source: &'a dyn Source,
    shards: Shards,
    loops: Loops,
    /// Most chunks in work or waiting.
    window: usize,
    state: Mutex<State>,
    /// A chunk is ready, there is room again, or it is over.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// Chunks that every shard has taken.
    taken: usize,
    /// The chunks after those; `None` while a thread decodes one.
    chunks: VecDeque<Option<Dealt>>,
    /// Chunks whose memory can be reused.
    spare: Vec<Chunk>,
    /// A consumer has stopped.
    stopped: bool,
    /// A thread has panicked.
    panicked: bool,
}

/// A decoded chunk.
struct Dealt {
    /// Indexed by shard; `None` when taken.
    parts: Vec<Option<Result<Chunk, Error>>>,
    left: usize,
}

/// Informs the other threads when a thread panics.
struct OnPanic<'a>(&'a Crew<'a>);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().panicked = true;
            self.0.moved.notify_all();
        }
    }
}

impl<'a> Crew<'a> {
    fn new(source: &'a dyn Source, shards: Shards, loops: Loops, threads: usize) -> Self {
        let window = threads * WAITING;
        Crew { source, shards, loops, window, state: Mutex::default(), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        // A source that grows does not tell when.
        let waited = self.moved.wait_timeout(state, GLANCE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn hand(&self) -> Hand {
        let (decoder, dealer) = (Decoder::new(self.loops), self.shards.dealer());
        Hand { decoder, whole: Batch::default(), dealer, walks: Walks::default(), moments: Vec::new() }
    }

    /// A thread that consumes a shard.
    fn consume(&self, shard: usize, consume: impl FnOnce(&mut Supply<'_>) -> ControlFlow<()>) -> Replayed {
        let _on_panic = OnPanic(self);
        let mut supply =
            Supply { crew: self, hand: self.hand(), shard, next: 0, replayed: Replayed::default() };
        let stopped = consume(&mut supply).is_break();
        // Helpers end when nothing is left to do; those of a run that was stopped must be told.
        if stopped {
            self.lock().stopped = true;
            self.moved.notify_all();
        }
        Replayed { stopped, ..supply.replayed }
    }

    /// A thread that only decodes.
    fn help(&self) {
        let _on_panic = OnPanic(self);
        let mut hand = self.hand();
        let mut state = self.lock();
        while !state.stopped
            && !state.panicked
            && self.source.begins(state.taken + state.chunks.len()) != Begins::Never
        {
            state = match self.claim(state) {
                Ok(number) => self.decode(&mut hand, number),
                Err(state) => self.wait(state),
            };
        }
    }

    /// A chunk for a shard, `None` when all is over. Decodes rather than waits.
    fn take(&self, hand: &mut Hand, shard: usize, number: usize) -> Option<Result<Chunk, Error>> {
        let mut state = self.lock();
        loop {
            assert!(!state.panicked, "a decoding thread panicked");
            if state.stopped || self.source.begins(number) == Begins::Never {
                return None;
            }
            let place = number - state.taken;
            if let Some(Some(dealt)) = state.chunks.get_mut(place) {
                let part = dealt.parts[shard].take();
                dealt.left -= 1;
                while state.chunks.front().is_some_and(|front| front.as_ref().is_some_and(|d| d.left == 0)) {
                    state.chunks.pop_front();
                    state.taken += 1;
                }
                drop(state);
                self.moved.notify_all();
                return part;
            }
            state = match self.claim(state) {
                Ok(number) => self.decode(hand, number),
                Err(state) => self.wait(state),
            };
        }
    }

    /// The next chunk to decode, unless enough are waiting or all are decoded.
    fn claim<'s>(&self, mut state: MutexGuard<'s, State>) -> Result<usize, MutexGuard<'s, State>> {
        let number = state.taken + state.chunks.len();
        if state.chunks.len() == self.window || !matches!(self.source.begins(number), Begins::At(_)) {
            return Err(state);
        }
        state.chunks.push_back(None);
        Ok(number)
    }

    /// Decodes a claimed chunk and leaves it for the consumers.
    fn decode(&self, hand: &mut Hand, number: usize) -> MutexGuard<'_, State> {
        let Hand { decoder, whole, dealer, walks, moments: found } = hand;
        let count = self.shards.count();
        let mut parts: Vec<Chunk> = {
            let spare = &mut self.lock().spare;
            (0..count).map(|_| spare.pop().unwrap_or_default()).collect()
        };
        let into = if count == 1 { &mut parts[0].batch } else { &mut *whole };
        let parts = match self.source.decode(number, decoder, into) {
            Ok(()) => {
                // They are told to the first shard.
                let decoded = if count == 1 { &parts[0].batch } else { &*whole };
                let seen = walks.of(decoded);
                let beside = decoded.unrecorded.clone();
                found.clear();
                if self.source.chunk(number).tells_releases() && !self.source.is_alone(number) {
                    moments(decoded, found);
                }
                if count > 1 {
                    self.shards.deal_out(whole, found, &mut parts, dealer);
                } else {
                    parts[0].dealing.moments.clone_from(found);
                }
                for part in &mut parts {
                    part.dealing.walks.clear();
                    part.dealing.unrecorded.clear();
                }
                parts[0].dealing.walks = seen;
                parts[0].dealing.unrecorded = beside;
                parts.into_iter().map(|part| Some(Ok(part))).collect()
            }
            // The first shard's consumer is told.
            Err(error) => {
                let mut results: Vec<Option<Result<Chunk, Error>>> = Vec::new();
                results.push(Some(Err(error)));
                results.resize_with(count, || None);
                results
            }
        };
        let mut state = self.lock();
        let place = number - state.taken;
        state.chunks[place] = Some(Dealt { parts, left: count });
        self.moved.notify_all();
        state
    }
}
