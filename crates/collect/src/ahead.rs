//! Encoding by several threads, where one thread of the program writes faster than one thread
//! encodes.
//!
//! The reader of the ring copies its words into batches, each of which becomes one chunk, and any
//! thread encodes them. A batch needs only two things from its predecessors. The calls in progress
//! are added when the stream's chunks are joined in order. Words from which its addresses are
//! derived are searched in the words of the batches before it, which need not be encoded for that,
//! and are verified when the batch is joined. If they were wrong or not found, or the batch is no
//! whole chunk, it is encoded again, in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

use memlode_trace::write::{
    AddressSpace, Encoder, FULL_WORDS, Form, History, LooseChunk, Stop, Tail, Wanted,
};

use crate::output::lock;
use crate::shared::CHUNK_AND_SLACK_BYTES;

/// A batch is full with this many words; one more chunk of a ring may have been added before it
/// was.
const ENOUGH_WORDS: usize = FULL_WORDS as usize;
const MOST_WORDS: u32 = FULL_WORDS + CHUNK_AND_SLACK_BYTES as u32 / 8;

/// Batches for each encoding thread, so that one is always ready even while the reader of the ring,
/// which makes them, encodes.
const BATCHES_A_WORKER: usize = 4;

/// Knowledge of the address space of a process.
pub type Space = Arc<RwLock<AddressSpace>>;

/// Words of a stream that were handed over, chunk behind chunk of its ring.
#[derive(Default)]
pub struct Words {
    words: Vec<u64>,
    /// The end of each chunk of the ring, when it was taken and handed over.
    pieces: Vec<(usize, (u64, u64))>,
}

impl Words {
    /// Returns the place where words are to be added; [`Self::end_piece`] must be called for all of
    /// them.
    pub fn room(&mut self) -> &mut Vec<u64> {
        &mut self.words
    }

    /// The words since the last piece are one.
    pub fn end_piece(&mut self, stamps: (u64, u64)) {
        self.pieces.push((self.words.len(), stamps));
    }

    /// Returns whether they make a chunk.
    fn is_full(&self) -> bool {
        self.words.len() >= ENOUGH_WORDS
    }

    fn clear(&mut self) {
        self.words.clear();
        self.pieces.clear();
    }

    /// The pieces, and their stamps.
    pub fn pieces(&self) -> impl Iterator<Item = (&[u64], (u64, u64))> {
        let mut start = 0;
        self.pieces.iter().map(move |&(end, stamps)| {
            let piece = &self.words[start..end];
            start = end;
            (piece, stamps)
        })
    }

    /// The words that follow the last occurrence of a header. Nothing else has its value: no
    /// program accesses anchors.
    fn last_of(&self, wanted: &Wanted) -> Option<Vec<u64>> {
        let at = self.words.iter().rposition(|&word| word == wanted.header)? + 1;
        self.words.get(at..at + usize::from(wanted.words)).map(<[u64]>::to_vec)
    }
}

/// Words on their way to a chunk.
pub struct Batch {
    space: Space,
    /// `None` once it is joined.
    words: RwLock<Option<Arc<Words>>>,
    /// The one before, if it was not joined when this one was made.
    before: Mutex<Option<Arc<Batch>>>,
    /// The stream up to the last batch that is joined, or later.
    history: Arc<Mutex<History>>,
    state: Mutex<State>,
    /// Signalled when it is done.
    done: Condvar,
}

enum State {
    Waiting,
    Busy,
    /// `None` if it cannot be encoded by itself.
    Done(Option<Box<LooseChunk>>),
}

impl Batch {
    /// Its words, if it is not joined.
    pub fn words(&self) -> Option<Arc<Words>> {
        self.words.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn before(&self) -> Option<Arc<Batch>> {
        lock(&self.before).clone()
    }

    /// The last words of a segment before this batch; may be mistaken.
    fn look_back(&self, wanted: &Wanted) -> Option<Vec<u64>> {
        let mut before = self.before();
        while let Some(batch) = before {
            // What is joined is in the history, which is looked at afterwards.
            let Some(words) = batch.words() else { break };
            if let Some(found) = words.last_of(wanted) {
                return Some(found);
            }
            before = batch.before();
        }
        lock(&self.history).words_of(wanted).map(<[u64]>::to_vec)
    }

    fn encode(&self, encoder: &mut Encoder) -> Option<LooseChunk> {
        let words = self.words()?;
        let mut is_whole = true;
        for (piece, stamps) in words.pieces() {
            let space = self.space.read().unwrap_or_else(PoisonError::into_inner);
            let look_back = &mut |wanted: &Wanted| self.look_back(wanted);
            let appended = encoder.append(piece, Tail::HandedOver, stamps, &space, look_back);
            is_whole = appended.stop == Stop::End;
            if !is_whole {
                encoder.gap();
                break;
            }
        }
        encoder.finish().filter(|_| is_whole)
    }

    /// Encodes it if no thread has begun to.
    fn try_encode(&self, own: &mut OwnEncoder) {
        {
            let mut state = lock(&self.state);
            if !matches!(*state, State::Waiting) {
                return;
            }
            *state = State::Busy;
        }
        // Whatever happens, nobody is to wait for it for ever.
        let mut done = Finish { batch: self, chunk: None };
        done.chunk = self.encode(own.of(&self.space));
    }

    /// Waits until it is encoded. Returns `None` if no chunk came of it.
    pub fn chunk(&self) -> Option<LooseChunk> {
        let busy = |state: &mut State| !matches!(state, State::Done(_));
        let mut state = self.done.wait_while(lock(&self.state), busy).unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Done(chunk) => chunk.take().map(|chunk| *chunk),
            State::Waiting | State::Busy => None,
        }
    }

    fn is_done(&self) -> bool {
        matches!(*lock(&self.state), State::Done(_))
    }
}

struct Finish<'a> {
    batch: &'a Batch,
    chunk: Option<LooseChunk>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        *lock(&self.batch.state) = State::Done(self.chunk.take().map(Box::new));
        self.batch.done.notify_all();
    }
}

/// The encoder of one who encodes batches; knows the segments of one process.
#[derive(Default)]
pub struct OwnEncoder(Option<(Space, Encoder)>);

impl OwnEncoder {
    fn of(&mut self, space: &Space) -> &mut Encoder {
        if self.0.as_ref().is_none_or(|(own, _)| !Arc::ptr_eq(own, space)) {
            self.0 = None;
        }
        // Where chunks are replayed at once, there are no batches.
        let encoder = || Encoder::new(MOST_WORDS + 1, Form::Coded);
        &mut self.0.get_or_insert_with(|| (space.clone(), encoder())).1
    }
}

/// The batches of all streams that wait to be encoded.
pub struct Batches {
    waiting: Mutex<VecDeque<Arc<Batch>>>,
    /// Batches that are not joined, and how many there may be.
    flying: AtomicUsize,
    most_flying: usize,
    /// Memory to be used again.
    spare: Mutex<Vec<Words>>,
}

impl Batches {
    /// Batches for `workers` encoding threads.
    pub fn new(workers: usize) -> Batches {
        let most_flying = if workers > 1 { BATCHES_A_WORKER * workers } else { 0 };
        Batches {
            waiting: Mutex::default(),
            flying: AtomicUsize::new(0),
            most_flying,
            spare: Mutex::default(),
        }
    }

    /// Returns whether every thread that encodes has a ring of its own to read: batches would be
    /// copied for nothing.
    pub fn has_work_for_all(&self, busy_rings: usize) -> bool {
        busy_rings * BATCHES_A_WORKER >= self.most_flying
    }

    /// Returns whether another batch may be made.
    fn has_room(&self) -> bool {
        self.flying.load(Ordering::Relaxed) < self.most_flying
    }

    /// Returns whether there are batches that are not joined.
    pub fn are_flying(&self) -> bool {
        self.flying.load(Ordering::Relaxed) > 0
    }

    /// Returns how many wait to be encoded.
    pub fn waiting(&self) -> usize {
        if self.are_flying() { lock(&self.waiting).len() } else { 0 }
    }

    fn fresh(&self) -> Words {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Keeps memory for reuse, unless it is still in use.
    fn keep(&self, words: Arc<Words>) {
        let mut spare = lock(&self.spare);
        if let Some(mut words) = Arc::into_inner(words)
            && spare.len() < self.most_flying
        {
            words.clear();
            spare.push(words);
        }
    }

    /// Encodes a batch. False if none waits.
    pub fn encode_one(&self, own: &mut OwnEncoder) -> bool {
        let next = lock(&self.waiting).pop_front();
        // Some are encoded by the one who needed them at once, and still in line.
        next.is_some_and(|batch| {
            batch.try_encode(own);
            true
        })
    }
}

/// The batches of one stream.
pub struct Ahead {
    history: Arc<Mutex<History>>,
    open: Option<Words>,
    flying: VecDeque<Arc<Batch>>,
    /// Chunks of the ring until batches are made again: the last one was encoded in vain.
    rest: u32,
}

/// Chunks of a ring that are encoded in order after a batch was encoded in vain.
const REST: u32 = 1024;

impl Ahead {
    /// No batches of a stream yet.
    pub fn new(history: Arc<Mutex<History>>) -> Ahead {
        Ahead { history, open: None, flying: VecDeque::new(), rest: 0 }
    }

    /// Returns whether the next words of the stream belong in a batch.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the batch that is being filled has words.
    pub fn is_begun(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.words.is_empty())
    }

    /// Begins a batch if the reader of the ring is far behind; returns whether it did.
    pub fn begin(&mut self, is_behind: bool, batches: &Batches) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
        } else if is_behind && batches.has_room() {
            self.open = Some(batches.fresh());
        }
        self.is_open()
    }

    /// The batch that is being filled.
    pub fn open(&mut self) -> &mut Words {
        self.open.get_or_insert_default()
    }

    /// Returns whether it takes no more.
    pub fn is_full(&self) -> bool {
        self.open.as_ref().is_some_and(Words::is_full)
    }

    /// Releases the full batch for encoding by any thread, and begins another one.
    pub fn submit(&mut self, space: &Space, batches: &Batches) {
        let fresh = batches.fresh();
        let Some(words) = self.open.replace(fresh) else { return };
        let batch = Arc::new(Batch {
            space: space.clone(),
            words: RwLock::new(Some(Arc::new(words))),
            before: Mutex::new(self.flying.back().cloned()),
            history: self.history.clone(),
            state: Mutex::new(State::Waiting),
            done: Condvar::new(),
        });
        self.flying.push_back(batch.clone());
        batches.flying.fetch_add(1, Ordering::Relaxed);
        lock(&batches.waiting).push_back(batch);
    }

    /// Returns whether enough batches wait to be encoded or joined, some of them of this stream.
    pub fn is_crowded(&self, batches: &Batches) -> bool {
        !self.flying.is_empty() && !batches.has_room()
    }

    /// Takes the first batch that is to be joined, if it is encoded; [`Self::joined`] is to follow.
    pub fn next_done(&mut self) -> Option<Arc<Batch>> {
        self.flying.pop_front_if(|batch| batch.is_done())
    }

    /// Takes the first batch that is to be joined, and encodes it unless another thread does.
    pub fn next(&mut self, own: &mut OwnEncoder) -> Option<Arc<Batch>> {
        let batch = self.flying.pop_front()?;
        batch.try_encode(own);
        Some(batch)
    }

    /// The history has the batch now. If it was encoded in vain, there will be none for a while.
    pub fn joined(&mut self, batch: &Batch, in_vain: bool, batches: &Batches) {
        if in_vain {
            self.rest = REST;
        }
        let words = batch.words.write().unwrap_or_else(PoisonError::into_inner).take();
        lock(&batch.before).take();
        batches.flying.fetch_sub(1, Ordering::Relaxed);
        if let Some(words) = words {
            batches.keep(words);
        }
    }

    /// The words that were to be a batch.
    pub fn close(&mut self) -> Option<Words> {
        self.open.take()
    }
}
