//! Chunks between the encoder and the destination, packed by any free thread.
//!
//! A ring can be read by one thread at a time only, and packing takes half as long as encoding; so
//! the reader leaves that to others. The chunks of a stream stay in order, because one thread at a
//! time has its lane.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use memlode_trace::write::{FullChunk, Packer};

use crate::output::{Output, lock};

/// The most chunks that wait, each of a few megabytes: a thread that adds another one packs first.
const MOST_WAITING: usize = 8;

/// The chunks of all streams that wait to be packed.
#[derive(Default)]
pub struct Packing {
    /// Lanes with chunks that no thread is busy with.
    lanes: Mutex<VecDeque<Arc<Lane>>>,
    waiting: AtomicUsize,
}

/// The chunks of one stream.
pub struct Lane {
    process: u32,
    thread: u32,
    stream: u8,
    chunks: Mutex<Chunks>,
    /// Signalled when no thread is busy with it any more.
    put_back: Condvar,
}

#[derive(Default)]
struct Chunks {
    waiting: VecDeque<FullChunk>,
    state: State,
}

/// The state of a lane.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nowhere: it has no chunks.
    #[default]
    Empty,
    /// Among the lanes that have chunks.
    InLine,
    /// A thread packs one of its chunks.
    Busy,
}

impl Lane {
    /// The lane of a stream, empty.
    pub fn new(process: u32, thread: u32, stream: u8) -> Arc<Lane> {
        Arc::new(Lane { process, thread, stream, chunks: Mutex::default(), put_back: Condvar::new() })
    }
}

impl Lane {
    /// Sets the earliest time at which the stream's next chunk begins.
    pub fn bound(&self, stamp: Option<u64>, output: &Output) {
        output.bound(self.process, self.thread, self.stream, stamp);
    }
}

/// A lane that a thread is busy with. It goes back in line if it has more chunks, even if the
/// thread fails.
struct Turn<'a> {
    packing: &'a Packing,
    lane: &'a Arc<Lane>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut chunks = lock(&self.lane.chunks);
        chunks.state = if chunks.waiting.is_empty() { State::Empty } else { State::InLine };
        if chunks.state == State::InLine {
            lock(&self.packing.lanes).push_back(self.lane.clone());
        }
        self.lane.put_back.notify_all();
    }
}

impl Packing {
    /// Adds a chunk behind those of its stream.
    pub fn add(&self, lane: &Arc<Lane>, chunk: FullChunk, packer: &mut Packer, output: &Output) {
        if output.is_live() {
            // It is to be there before what is told of the next one.
            return output.append(lane.process, lane.thread, lane.stream, chunk.pack(packer));
        }
        let mut chunks = lock(&lane.chunks);
        chunks.waiting.push_back(chunk);
        if chunks.state == State::Empty {
            chunks.state = State::InLine;
            lock(&self.lanes).push_back(lane.clone());
        }
        drop(chunks);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            self.pack_one(packer, output);
        }
    }

    /// Returns how many wait to be packed.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Packs a chunk and writes it. False if all chunks are busy or there is none.
    pub fn pack_one(&self, packer: &mut Packer, output: &Output) -> bool {
        let Some(lane) = lock(&self.lanes).pop_front() else { return false };
        let turn = Turn { packing: self, lane: &lane };
        let chunk = {
            let mut chunks = lock(&lane.chunks);
            chunks.state = State::Busy;
            chunks.waiting.pop_front()
        };
        if let Some(chunk) = chunk {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            output.append(lane.process, lane.thread, lane.stream, chunk.pack(packer));
        }
        drop(turn);
        true
    }

    /// Returns when every chunk of a stream is written.
    pub fn finish(&self, lane: &Lane, packer: &mut Packer, output: &Output) {
        loop {
            let chunks = lock(&lane.chunks);
            match chunks.state {
                State::Empty => return,
                State::InLine => {
                    drop(chunks);
                    self.pack_one(packer, output);
                }
                State::Busy => {
                    let busy = |chunks: &mut Chunks| chunks.state == State::Busy;
                    drop(lane.put_back.wait_while(chunks, busy).unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }
}
