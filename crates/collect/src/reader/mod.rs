//! One thread's ring, read in order by one worker at a time.
//!
//! Chunks that were handed over are copied, cleared and given back before their words are
//! interpreted, so that the program never waits for an encoder. The chunk in use is read where it
//! is: when its thread is gone, before an image goes, and now and then so that little is lost
//! should the collector be killed.

mod encoding;
mod handed_over;
mod tools;
mod unfinished;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memlode_trace::format::ring;
use memlode_trace::write::{ChunkEncoder, Form, Sieve};

pub use self::tools::{Round, Tools};
pub use self::unfinished::Ending;
use crate::ahead::Ahead;
use crate::clock;
use crate::output::{Output, count};
use crate::packing::Lane;
use crate::process::Process;
use crate::shared::Ring;

/// Words wait in an encoder no longer than this.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// Words that others wait for stay in an encoder no longer than this.
const FLUSH_LIVE_AFTER: Duration = Duration::from_millis(20);
/// Chunks read from one ring before the next one gets its turn.
const TURN: u32 = 4;

/// The extent of a run of words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A chunk that was handed over: every word counts.
    HandedOver,
    /// A chunk in use, complete up to its first zero header.
    Whole,
    /// A chunk in use; its last segment may lack words.
    CutShort,
    /// A chunk that was handed over after the code that wrote it had been abandoned: the same, and
    /// nothing will follow.
    Abandoned,
}

/// The reading end of a ring.
pub struct Reader {
    slot: u32,
    thread: u32,
    lane: Arc<Lane>,
    /// Chunks given back, by our own count, which does not depend on the shared memory.
    tail: u32,
    /// Words of chunk `tail` that were read while it was in use.
    read_ahead: usize,
    /// Nothing that is unread was begun before this stamp: there was nothing to be read.
    empty_at: u64,
    /// The last bound of the next chunk's beginning that was reported.
    bound: u64,
    encoder: ChunkEncoder,
    /// The beginning of the last segment, if it is a loop or a copy that may be under way, and when
    /// that was seen.
    held: Option<(u32, usize, Instant)>,
    /// The speed of stamps, measured since the ring was found.
    rate: clock::Rate,
    /// The words that follow those, if we are far behind.
    ahead: Ahead,
    /// Allocations since recording was switched off.
    sieve: Sieve,
    /// The oldest word in the encoder is no older than this.
    flushed: Instant,
    /// Words that were no header where one was expected.
    skipped: u64,
    /// The shared memory contradicts itself: words are dropped and counted.
    lost: bool,
}

impl Reader {
    /// A reader for a ring that was just claimed; `late` if recording had been off before.
    pub fn new(slot: u32, process: u32, thread: u32, stream: u8, form: Form, late: bool) -> Reader {
        let mut encoder = ChunkEncoder::of_form(form);
        if late {
            encoder.resume_after_off();
        }
        Reader {
            slot,
            thread,
            lane: Lane::new(process, thread, stream),
            tail: 0,
            read_ahead: 0,
            empty_at: 0,
            bound: 0,
            held: None,
            rate: clock::Rate::start(),
            ahead: Ahead::new(encoder.shared_history()),
            encoder,
            sieve: Sieve::default(),
            flushed: Instant::now(),
            skipped: 0,
            lost: false,
        }
    }

    /// Chunks handed over and not read yet; `None` if the shared memory is inconsistent.
    fn pending(&self, ring: Ring<'_>) -> Option<u32> {
        let pending = ring.head().wrapping_sub(self.tail);
        (pending <= ring::CHUNKS).then_some(pending)
    }

    /// Returns whether there is something to read.
    pub fn has_pending(&self, process: &Process) -> bool {
        self.pending(process.memory.ring(self.slot)).map_or(!self.lost, |pending| pending > 0)
    }

    /// Reads a turn's worth of chunks. True if there were any.
    pub fn read(&mut self, round: &mut Round<'_>) -> bool {
        self.read_chunks(round, TURN)
    }

    /// Reads everything up to now, the chunk in use included.
    pub fn read_all(&mut self, round: &mut Round<'_>, ending: &Ending) {
        // A thread that is still running may hand over more while we read: what counts was there before.
        self.read_chunks(round, 2 * ring::CHUNKS);
        self.read_unfinished(round, ending);
        self.sift(round);
    }

    /// Like [`Self::read_all`], if it has been a while.
    pub fn read_if_due(&mut self, round: &mut Round<'_>, now: Instant) {
        let pause = if round.output.is_live() { FLUSH_LIVE_AFTER } else { FLUSH_AFTER };
        if !round.output.discards() && now.duration_since(self.flushed) >= pause {
            self.read_unfinished(round, &Ending::Runs);
            self.sift(round);
            self.flush(round);
        }
    }

    /// Informs consumers that wait for other streams, too, how long they have to wait for this one.
    pub fn tell_bound(&mut self, round: &mut Round<'_>, now: Instant) {
        if now.duration_since(self.flushed) >= FLUSH_LIVE_AFTER {
            self.sift(round);
            self.flush(round);
        }
        let unread = || round.process.memory.ring(self.slot).stamps(self.tail).first.max(self.empty_at);
        let stamp = self.encoder.begun().or(self.sieve.begun()).unwrap_or_else(unread);
        if self.lost {
            self.lane.bound(None, round.output);
        } else if stamp > self.bound {
            self.bound = stamp;
            self.lane.bound(Some(stamp), round.output);
        }
    }

    /// From here on the thread's words are dropped. Words that were read before stay.
    fn give_up(&mut self, output: &Output, words: u64, why: &str) {
        count(&output.counters.unknown_words, words);
        if !self.lost {
            self.lost = true;
            let (thread, slot) = (self.thread, self.slot);
            output.note(format!("thread {thread} (ring {slot}) is recorded only up to a point where {why}"));
        }
    }

    /// The thread is gone: reads the rest, and returns whether its last segment lacked words.
    pub fn close(&mut self, round: &mut Round<'_>, ending: &Ending) {
        // Whoever was interrupted when the thread ended is not back.
        let interrupted = round.process.memory.ring(self.slot).is_interrupted();
        let cut_short = interrupted && matches!(ending, Ending::Whole);
        self.read_all(round, if cut_short { &Ending::CutShort } else { ending });
        if !self.lost && !round.output.discards() {
            round.process.memory.ring(self.slot).peek(self.tail, self.read_ahead, &mut round.tools.words);
            // Code that was interrupted by the handler which ended the process has done nothing after that.
            let torn = !round.tools.words.is_empty() && (!interrupted || matches!(ending, Ending::Killed));
            round.output.count_torn(torn);
        }
        self.flush(round);
        round.tools.packing.finish(&self.lane, &mut round.tools.packer, round.output);
        if round.output.is_live() {
            self.lane.bound(None, round.output);
        }
        if self.skipped > 0 {
            round.output.note(format!(
                "process {}, thread {}: {} words belong to no instrumented image that is known, or a signal handler \
                 that memlode does not know wrote over them",
                round.process.index, self.thread, self.skipped
            ));
        }
    }

    /// The ring's slot.
    pub fn slot(&self) -> u32 {
        self.slot
    }
}
