//! Decoding on several threads, events in order.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::decode::Decoder;
use crate::error::Error;
use crate::event::Batch;
use crate::index::ChunkRef;
use crate::read::Trace;

/// Decoded chunks that may wait for the consumer, per worker: enough to ride out an uneven chunk, little memory.
const WAITING: usize = 3;

/// How a replay went.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Chunks handed to the consumer.
    pub chunks: usize,
    /// Chunks that could not be decoded and were left out.
    pub damaged: Vec<(ChunkRef, Error)>,
    /// Whether the consumer stopped it.
    pub stopped: bool,
}

impl Trace {
    /// Decodes all chunks on `workers` threads (0: on this one) and hands them over whole, on this thread, in the order
    /// in which they began. A damaged chunk is left out and reported. [`Trace::interleave`] is finer.
    pub fn replay(&self, workers: usize, consume: impl FnMut(&Batch) -> ControlFlow<()>) -> Replayed {
        self.replay_chunks(self.chunks(), workers, consume)
    }

    /// The same for some chunks, in their given order.
    pub fn replay_chunks(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        mut consume: impl FnMut(&Batch) -> ControlFlow<()>,
    ) -> Replayed {
        self.supply(chunks, workers, |supply| {
            for _ in chunks {
                if let Some(batch) = supply.next() {
                    consume(&batch)?;
                    supply.give_back(Some(batch));
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// Lets `consume` have the chunks, decoded on `workers` threads.
    pub(crate) fn supply(
        &self,
        chunks: &[ChunkRef],
        workers: usize,
        consume: impl FnOnce(&mut Supply<'_>) -> ControlFlow<()>,
    ) -> Replayed {
        let queue = Queue { state: Mutex::default(), moved: Condvar::new(), window: workers * WAITING };
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| queue.work(self, chunks));
            }
            // Also when the consumer panics: the workers must not wait for it for ever.
            let _closing = Closing(&queue);
            let here = Here { trace: self, decoder: Decoder::new(), packed: Vec::new(), spare: Vec::new() };
            let from = if workers == 0 { From::Here(here) } else { From::Workers(&queue) };
            let mut supply = Supply { left: chunks, from, replayed: Replayed::default() };
            let flow = consume(&mut supply);
            Replayed { stopped: flow.is_break(), ..supply.replayed }
        })
    }
}

/// Decoded chunks, one after the other.
pub(crate) struct Supply<'a> {
    left: &'a [ChunkRef],
    from: From<'a>,
    replayed: Replayed,
}

enum From<'a> {
    Here(Here<'a>),
    Workers(&'a Queue),
}

/// Decodes on the consumer's thread.
struct Here<'a> {
    trace: &'a Trace,
    decoder: Decoder,
    packed: Vec<u8>,
    spare: Vec<Batch>,
}

impl Supply<'_> {
    /// The next chunk; `None` if it is damaged, or there is none left.
    pub fn next(&mut self) -> Option<Batch> {
        let (chunk, left) = self.left.split_first()?;
        self.left = left;
        let (batch, result) = match &mut self.from {
            From::Workers(queue) => queue.take(),
            From::Here(here) => {
                let mut batch = here.spare.pop().unwrap_or_default();
                let result = here.trace.decode_with(&mut here.decoder, &mut here.packed, chunk, &mut batch);
                (batch, result)
            }
        };
        match result {
            Ok(()) => {
                self.replayed.chunks += 1;
                Some(batch)
            }
            Err(error) => {
                self.replayed.damaged.push((*chunk, error));
                None
            }
        }
    }

    /// Takes back a chunk that is done with, for its memory.
    pub fn give_back(&mut self, batch: Option<Batch>) {
        match &mut self.from {
            From::Workers(queue) => queue.lock().spare.extend(batch),
            From::Here(here) => here.spare.extend(batch),
        }
    }
}

/// Between the workers, which decode out of order, and the consumer, which takes in order.
struct Queue {
    state: Mutex<State>,
    /// A result is ready, there is room again, or it is over.
    moved: Condvar,
    /// Most chunks in work or waiting.
    window: usize,
}

type Decoded = (Batch, Result<(), Error>);

#[derive(Default)]
struct State {
    /// Chunks the consumer has taken.
    taken: usize,
    /// The chunks after those; `None` while a worker is at it.
    results: VecDeque<Option<Decoded>>,
    /// Batches whose memory can be used again.
    spare: Vec<Batch>,
    closed: bool,
}

/// Ends the workers when dropped.
struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.moved.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.moved.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker: decodes chunk after chunk.
    fn work(&self, trace: &Trace, chunks: &[ChunkRef]) {
        let (mut decoder, mut packed) = (Decoder::new(), Vec::new());
        while let Some((number, mut batch)) = self.claim(chunks.len()) {
            let on_panic = Closing(self);
            let result = trace.decode_with(&mut decoder, &mut packed, &chunks[number], &mut batch);
            std::mem::forget(on_panic);
            let mut state = self.lock();
            let place = number - state.taken;
            state.results[place] = Some((batch, result));
            drop(state);
            self.moved.notify_all();
        }
    }

    /// The next chunk to decode, and a batch for it.
    fn claim(&self, chunks: usize) -> Option<(usize, Batch)> {
        let mut state = self.lock();
        loop {
            let number = state.taken + state.results.len();
            if state.closed || number == chunks {
                return None;
            }
            if state.results.len() < self.window {
                state.results.push_back(None);
                return Some((number, state.spare.pop().unwrap_or_default()));
            }
            state = self.wait(state);
        }
    }

    /// The next chunk in order.
    fn take(&self) -> Decoded {
        let mut state = self.lock();
        loop {
            if let Some(result) = state.results.front_mut().and_then(Option::take) {
                state.results.pop_front();
                state.taken += 1;
                drop(state);
                self.moved.notify_all();
                return result;
            }
            assert!(!state.closed, "a decoding thread panicked");
            state = self.wait(state);
        }
    }
}
