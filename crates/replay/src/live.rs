//! A trace that is replayed while it is written, and need not be kept.
//!
//! ```text
//!  collector ── bytes of files, or chunks ──► LiveStore ─► chunks, by when they began ─► LiveTrace ─► decoded, merged, as from a directory
//!     └─ "no chunk of this stream that you do not have yet begins before t" ─► horizon: what began before it has its turn
//! ```
//! If nothing is kept, the words of chunks are not coded for a file, and chunks are not packed.
//!
//! Replay order is that of a stored trace, so results are the same. A chunk that begins before its
//! stream's horizon is replayed as early as still possible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memlode_trace::event::{Batch, ThreadId};
use memlode_trace::format::ChunkHeader;
use memlode_trace::write::{Form, Payload, Store, TraceFile};
use memlode_trace::{ChunkRef, Decoder, Error, GrowingTrace, Loops, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::crew::{Begins, Replayed, Source};
use crate::order::{interleave, interleave_shards};
use crate::piece::Piece;
use crate::shards::Shards;

/// Bytes of waiting chunks from which on the writer has to wait, too.
const MOST_BYTES: usize = 256 << 20;
/// Time that a writer sleeps before it looks again whether there is room.
const GLANCE: Duration = Duration::from_millis(1);

/// Makes both ends. The trace is also written to `kept`, if there is one.
pub fn live(name: &Path, kept: Option<Box<dyn Store>>) -> (LiveStore, LiveTrace) {
    let state = State {
        trace: GrowingTrace::new(name),
        bounds: FxHashMap::default(),
        streams: FxHashSet::default(),
        all_known: 0,
        early: BinaryHeap::new(),
        ready: FxHashMap::default(),
        bytes: 0,
        over: false,
        deserted: false,
    };
    let shared = Arc::new(Live { state: Mutex::new(state), moved: Condvar::new(), news: AtomicU64::new(0) });
    (LiveStore { shared: shared.clone(), kept }, LiveTrace { shared })
}

/// The writer's end.
pub struct LiveStore {
    shared: Arc<Live>,
    kept: Option<Box<dyn Store>>,
}

/// The reader's end.
pub struct LiveTrace {
    shared: Arc<Live>,
}

struct Live {
    state: Mutex<State>,
    moved: Condvar,
    /// Number of times that names or images were added.
    news: AtomicU64,
}

struct State {
    /// The trace as far as it is known. Its chunks are those whose turn has come.
    trace: GrowingTrace,
    /// Keyed by thread and stream, when their next chunk may begin.
    bounds: FxHashMap<(ThreadId, u8), u64>,
    /// All that were ever in `bounds`.
    streams: FxHashSet<(ThreadId, u8)>,
    /// When a chunk of a stream that is not in `bounds` may begin.
    all_known: u64,
    /// Chunks before which others may come.
    early: BinaryHeap<Reverse<Early>>,
    /// Payloads of chunks whose turn has come, by number.
    ready: FxHashMap<usize, Payload>,
    /// Bytes of all payloads.
    bytes: usize,
    /// Nothing more comes.
    over: bool,
    /// The reader is gone.
    deserted: bool,
}

/// A chunk in replay order.
struct Early {
    key: (u64, ThreadId, u32),
    chunk: ChunkRef,
    payload: Payload,
}

impl PartialEq for Early {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Early {}

impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Early {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// No chunk that is not here yet begins before.
    fn horizon(&self) -> u64 {
        if self.over {
            return u64::MAX;
        }
        self.bounds.values().copied().min().unwrap_or(u64::MAX).min(self.all_known)
    }

    /// Releases the chunks that no other chunk can precede; returns the earliest time at which the
    /// next one can begin.
    fn release(&mut self) -> u64 {
        let horizon = self.horizon();
        while let Some(Reverse(first)) = self.early.peek() {
            if first.key.0 >= horizon && !self.over {
                return horizon;
            }
            let Some(Reverse(Early { chunk, payload, .. })) = self.early.pop() else { break };
            self.ready.insert(self.trace.chunks().len(), payload);
            self.trace.push(chunk);
        }
        horizon
    }

    /// No further chunk of a stream begins before a stamp.
    fn not_before(&mut self, thread: ThreadId, stream: u8, stamp: u64) {
        self.streams.insert((thread, stream));
        let bound = self.bounds.entry((thread, stream)).or_default();
        *bound = stamp.max(*bound);
    }

    fn chunk(&mut self, header: ChunkHeader, payload: Payload) {
        let chunk = self.trace.arrives(header, payload.bytes());
        let thread = chunk.thread;
        self.not_before(thread, header.stream, header.first_stamp);
        self.bytes += payload.bytes();
        let key = (header.first_stamp, thread, header.sequence);
        self.early.push(Reverse(Early { key, chunk, payload }));
    }
}

impl LiveStore {
    /// Returns the state that both ends share, unless the other end is gone and the trace is kept.
    fn state(&self) -> Result<Option<MutexGuard<'_, State>>, Error> {
        let state = self.shared.lock();
        if !state.deserted {
            return Ok(Some(state));
        }
        if self.kept.is_some() {
            return Ok(None);
        }
        let (address, what) = ("the simulation".to_owned(), "it ended early".to_owned());
        Err(Error::Remote { address, what })
    }

    fn chunk(&self, header: ChunkHeader, payload: Payload) -> Result<(), Error> {
        let Some(mut state) = self.state()? else { return Ok(()) };
        state.chunk(header, payload);
        // While there is work for the reader. If it waits for something, it may be for what comes through here.
        while state.bytes > MOST_BYTES && !state.ready.is_empty() && !state.deserted {
            let waited = self.shared.moved.wait_timeout(state, GLANCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.release();
        Ok(())
    }
}

impl Store for LiveStore {
    fn append(&mut self, file: TraceFile, at: u64, bytes: &[u8]) -> Result<(), Error> {
        if let Some(kept) = &mut self.kept {
            kept.append(file, at, bytes)?;
        }
        let Some(mut state) = self.state()? else { return Ok(()) };
        match file {
            TraceFile::Events => {
                state.trace.events(bytes);
                self.shared.news.fetch_add(1, Ordering::Release);
            }
            TraceFile::Thread { .. } => {
                drop(state);
                if let Some((header, payload)) = bytes.split_first_chunk() {
                    self.chunk(ChunkHeader::from_bytes(header), Payload::Packed(payload.to_vec()))?;
                }
            }
            TraceFile::Index | TraceFile::Manifest | TraceFile::Module(_) => {}
        }
        Ok(())
    }

    fn put(&mut self, file: TraceFile, bytes: &[u8]) -> Result<(), Error> {
        if let Some(kept) = &mut self.kept {
            kept.put(file, bytes)?;
        }
        let mut state = self.shared.lock();
        match file {
            TraceFile::Manifest => {
                state.trace.manifest(bytes)?;
            }
            TraceFile::Module(_) => {
                state.trace.module(bytes);
                self.shared.news.fetch_add(1, Ordering::Release);
            }
            TraceFile::Events | TraceFile::Index | TraceFile::Thread { .. } => {}
        }
        Ok(())
    }

    fn close(&mut self, file: TraceFile) {
        if let Some(kept) = &mut self.kept {
            kept.close(file);
        }
    }

    fn form(&self) -> Form {
        if self.kept.is_some() { Form::Coded } else { Form::Plain }
    }

    fn replay(&mut self, header: ChunkHeader, before: Vec<u8>, words: Vec<u64>) -> Result<(), Error> {
        self.chunk(header, Payload::Plain { before, words })
    }

    fn wants_bounds(&self) -> bool {
        true
    }

    fn bound(&mut self, process: u32, thread: u32, stream: u8, stamp: Option<u64>) {
        let mut state = self.shared.lock();
        let thread = state.trace.thread(process, thread);
        match stamp {
            Some(stamp) => state.not_before(thread, stream, stamp),
            None => _ = state.bounds.remove(&(thread, stream)),
        }
    }

    fn all_known(&mut self, stamp: u64) {
        let mut state = self.shared.lock();
        state.all_known = stamp.max(state.all_known);
        state.release();
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.kept.as_mut().map_or(Ok(()), |kept| kept.finish())
    }
}

/// Finishes it or gives it up: nothing more comes.
impl Drop for LiveStore {
    fn drop(&mut self) {
        self.shared.lock().over = true;
    }
}

impl Source for Live {
    fn begins(&self, number: usize) -> Begins {
        let mut state = self.lock();
        if number >= state.trace.chunks().len() {
            let horizon = state.release();
            if number >= state.trace.chunks().len() {
                return if state.over { Begins::Never } else { Begins::NotBefore(horizon) };
            }
        }
        Begins::At(state.trace.chunks()[number].stamps().0)
    }

    fn chunk(&self, number: usize) -> ChunkRef {
        self.lock().trace.chunks()[number]
    }

    fn is_alone(&self, number: usize) -> bool {
        let state = self.lock();
        let known = if state.over { u64::MAX } else { state.all_known };
        state.streams.len() == 1 && state.trace.chunks()[number].stamps().1 < known
    }

    fn decode(&self, number: usize, decoder: &mut Decoder, batch: &mut Batch) -> Result<(), Error> {
        let (chunk, payload, meanings) = {
            let mut state = self.lock();
            let payload = state.ready.remove(&number).unwrap_or(Payload::Packed(Vec::new()));
            state.bytes -= payload.bytes();
            (state.trace.chunks()[number], payload, state.trace.meanings())
        };
        self.moved.notify_all();
        decoder.arrived(&chunk, payload, &meanings, batch)
    }
}

impl LiveTrace {
    /// Like [`Replay::interleave`](crate::Replay::interleave), until the writer's end is gone.
    pub fn interleave(
        &self,
        workers: usize,
        mut consume: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Replayed {
        interleave(&*self.shared, workers, &mut consume)
    }

    /// Like [`Replay::interleave_shards`](crate::Replay::interleave_shards), until the writer's end
    /// is gone.
    pub fn interleave_shards<C>(&self, shards: &Shards, workers: usize, consumers: Vec<C>) -> Replayed
    where
        C: FnMut(&Piece<'_>) -> ControlFlow<()> + Send,
    {
        interleave_shards(&*self.shared, shards, workers, consumers)
    }

    /// Decodes some of the first chunks, without removing them, as [`Trace::decode_kept`] does: up
    /// to `most`. Waits until there are `enough`, or for at most `patience` since the first one.
    pub fn preview(
        &self,
        enough: usize,
        patience: Duration,
        most: usize,
        mut see: impl FnMut(&ChunkRef, &Batch),
    ) {
        let mut state = self.shared.lock();
        let mut first_seen = None;
        loop {
            state.release();
            let count = state.trace.chunks().len();
            let waited = (count > 0).then(|| first_seen.get_or_insert_with(Instant::now).elapsed());
            if count >= enough || state.over || waited.is_some_and(|waited| waited >= patience) {
                break;
            }
            let glance = self.shared.moved.wait_timeout(state, GLANCE);
            state = glance.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = state.trace.chunks().len();
        let chunks: Vec<_> = (count.saturating_sub(most)..count)
            .filter_map(|number| Some((state.trace.chunks()[number], state.ready.get(&number)?.clone())))
            .collect();
        let meanings = state.trace.meanings();
        drop(state);
        let (mut decoder, mut batch) = (Decoder::new(Loops::Kept), Batch::default());
        for (chunk, payload) in chunks {
            if decoder.arrived(&chunk, payload, &meanings, &mut batch).is_ok() {
                see(&chunk, &batch);
            }
        }
    }

    /// Takes nothing more, so that the writer need not wait: a trace that is kept is completed,
    /// another one is not.
    pub fn desert(&self) {
        self.shared.lock().deserted = true;
        self.shared.moved.notify_all();
    }

    /// Changes when names or images come in. They are there before the events that need them.
    pub fn news(&self) -> u64 {
        self.shared.news.load(Ordering::Acquire)
    }

    /// Reads what is known so far. The writer waits meanwhile.
    pub fn look<T>(&self, at: impl FnOnce(&Trace) -> T) -> T {
        at(self.shared.lock().trace.trace())
    }

    /// Takes the finished trace, all of whose chunks have been decoded, and leaves an empty one.
    pub fn take_trace(&self) -> Trace {
        self.shared.lock().trace.take()
    }
}

impl Drop for LiveTrace {
    fn drop(&mut self) {
        self.desert();
    }
}
