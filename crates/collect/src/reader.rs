//! One thread's ring, read in order by one worker at a time.
//!
//! Chunks that were handed over are copied, cleared and given back before their words are
//! interpreted, so that the program never waits for an encoder. The chunk in use is read where it
//! is: when its thread is gone, before an image goes, and now and then so that little is lost
//! should the collector be killed.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memlode_trace::format::{ring, stream};
use memlode_trace::write::{ChunkEncoder, Form, Packer, Sieve, Stop, Tail};

use crate::ahead::{Ahead, Batch, Batches, OwnEncoder};
use crate::clock;
use crate::output::{Output, count};
use crate::packing::{Lane, Packing};
use crate::process::Process;
use crate::promises::{PLAUSIBLE, done_in, since};
use crate::shared::{CHUNK_AND_SLACK_BYTES, Ring, Stamps};

/// Words wait in an encoder no longer than this.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// The same where others wait for them.
const FLUSH_LIVE_AFTER: Duration = Duration::from_millis(20);
/// Chunks read from one ring before the next one gets its turn.
const TURN: u32 = 4;

/// The tools of a worker.
pub struct Tools {
    words: Vec<u64>,
    packer: Packer,
    packing: Arc<Packing>,
    encoder: OwnEncoder,
    batches: Arc<Batches>,
    /// Rings that had something to read in the round before this one, for any reader.
    busy_rings: usize,
    busy_rings_so_far: usize,
}

impl Tools {
    /// Tools of a thread that shares its work with others.
    pub fn new(packing: Arc<Packing>, batches: Arc<Batches>) -> Tools {
        Tools {
            words: Vec::new(),
            packer: Packer::new(),
            packing,
            encoder: OwnEncoder::default(),
            batches,
            busy_rings: 0,
            busy_rings_so_far: 0,
        }
    }

    /// Counts a ring that has something to read, or that another worker reads.
    pub fn count_busy_ring(&mut self) {
        self.busy_rings_so_far += 1;
    }

    /// All rings were looked at.
    pub fn end_round(&mut self) {
        self.busy_rings = std::mem::take(&mut self.busy_rings_so_far);
    }

    /// Packs a chunk if one waits, or encodes a batch of words.
    pub fn help_one(&mut self, output: &Output) -> bool {
        self.packing.pack_one(&mut self.packer, output) || self.batches.encode_one(&mut self.encoder)
    }
}

/// The way to read the unfinished chunk of a ring.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The thread ended by itself, or ran the program's exit handlers: all it wrote is there.
    Whole,
    /// The thread still runs: its last segment may lack words, and a loop may be under way.
    Runs,
    /// The thread was cut short: its last segment may lack words.
    CutShort,
    /// Its process was killed: moreover, a loop or a copy that it began last did not come to its
    /// end, for all we know.
    Killed,
    /// The anchors in these ranges are about to lose their meaning: their images are gone, and with
    /// them all code that could add the words its last segment lacks.
    Replaced(Vec<Range<u64>>),
}

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
    pub fn read(&mut self, process: &Process, output: &Output, tools: &mut Tools) -> bool {
        self.read_chunks(process, output, tools, TURN)
    }

    /// Reads everything up to now, the chunk in use included.
    pub fn read_all(&mut self, process: &Process, output: &Output, tools: &mut Tools, ending: &Ending) {
        // A thread that is still running may hand over more while we read: what counts was there before.
        self.read_chunks(process, output, tools, 2 * ring::CHUNKS);
        self.read_unfinished(process, output, tools, ending);
        self.sift(process, output, tools);
    }

    /// Like [`Self::read_all`], if it has been a while.
    pub fn read_if_due(&mut self, process: &Process, output: &Output, tools: &mut Tools, now: Instant) {
        let pause = if output.is_live() { FLUSH_LIVE_AFTER } else { FLUSH_AFTER };
        if !output.discards() && now.duration_since(self.flushed) >= pause {
            self.read_unfinished(process, output, tools, &Ending::Runs);
            self.sift(process, output, tools);
            self.flush(process, output, tools);
        }
    }

    /// Informs consumers that wait for other streams, too, how long they have to wait for this one.
    pub fn tell_bound(&mut self, process: &Process, output: &Output, tools: &mut Tools, now: Instant) {
        if now.duration_since(self.flushed) >= FLUSH_LIVE_AFTER {
            self.sift(process, output, tools);
            self.flush(process, output, tools);
        }
        let unread = || process.memory.ring(self.slot).stamps(self.tail).first.max(self.empty_at);
        let stamp = self.encoder.begun().or(self.sieve.begun()).unwrap_or_else(unread);
        if self.lost {
            self.lane.bound(None, output);
        } else if stamp > self.bound {
            self.bound = stamp;
            self.lane.bound(Some(stamp), output);
        }
    }

    fn read_chunks(&mut self, process: &Process, output: &Output, tools: &mut Tools, most: u32) -> bool {
        let ring = process.memory.ring(self.slot);
        let mut some = false;
        self.join_done(process, output, tools);
        for _ in 0..most {
            let pending = match self.pending(ring) {
                Some(0) => break,
                Some(pending) => pending,
                None => {
                    self.give_up(output, 0, "its ring's counters contradict each other");
                    return false;
                }
            };
            some = true;
            let chunk = self.tail;
            let Stamps { first, last } = ring.stamps(chunk);
            let stamps = Stamps { first: first.max(self.empty_at), last };
            let end = ring.end(chunk).filter(|end| end.bytes / 8 >= self.read_ahead);
            let bytes = end.map_or(CHUNK_AND_SLACK_BYTES, |end| end.bytes);
            let failed = output.has_failed();
            let unread = end.is_some() && !self.lost && !failed && !output.discards();
            let is_plain = end.is_some_and(|end| !end.cut_short && !end.dormant) && self.read_ahead == 0;
            let in_batch = unread && is_plain && self.is_in_batch(pending, process, output, tools);
            if in_batch {
                ring.take(chunk, bytes, self.ahead.open().room());
            } else if unread {
                tools.words.clear();
                ring.take(chunk, bytes, &mut tools.words);
            } else {
                ring.clear(chunk, bytes);
            }
            ring.release(chunk, pending - 1);
            self.tail = self.tail.wrapping_add(1);
            let ahead = std::mem::take(&mut self.read_ahead);
            let amount = (bytes / 8).saturating_sub(ahead) as u64;
            count(&output.counters.words, amount);
            if end.is_none() {
                self.give_up(output, amount, "a chunk's length is impossible");
            } else if self.lost {
                count(&output.counters.unknown_words, amount);
            } else if failed {
                count(&output.counters.unwritten_words, amount);
            } else if in_batch {
                self.ahead.open().end_piece((stamps.first, stamps.last));
                self.submit(process, output, tools);
            } else if unread {
                self.settle(process, output, tools);
                let mut words = std::mem::take(&mut tools.words);
                let extent = match end.is_some_and(|end| end.cut_short) {
                    true => Extent::Abandoned,
                    false => Extent::HandedOver,
                };
                if extent == Extent::Abandoned {
                    // The last words of a segment that is whole may be zeros by rights.
                    words.resize(words.len() + stream::MAX_SEGMENT_WORDS as usize + 1, 0);
                }
                self.turn(end.is_some_and(|end| end.dormant), process, output, tools);
                let mut consumed = 0;
                if self.encoder.is_dormant() && extent == Extent::HandedOver {
                    consumed = self.sieve.add(&words[ahead..], (stamps.first, stamps.last), &process.space());
                    if self.sieve.is_full() || ahead + consumed < words.len() {
                        self.sift(process, output, tools);
                    }
                }
                let rest = &words[ahead + consumed..];
                if !rest.is_empty() {
                    consumed += self.encode(rest, extent, stamps, process, output, tools);
                }
                if extent == Extent::Abandoned {
                    let rest = &mut words[ahead + consumed..];
                    consumed += self.shorten(rest, stamps, process, output, tools);
                }
                let torn = words[ahead + consumed..].iter().any(|&word| word != 0);
                output.count_torn(torn);
                tools.words = words;
            }
            if end.is_some_and(|end| end.gap) {
                self.flush(process, output, tools);
                self.encoder.resume_after_off();
            }
        }
        some
    }

    /// Returns whether a chunk that was handed over goes into a batch.
    fn is_in_batch(&mut self, pending: u32, process: &Process, output: &Output, tools: &mut Tools) -> bool {
        let all_are_busy = tools.batches.has_work_for_all(tools.busy_rings);
        if self.ahead.is_open() {
            if !all_are_busy || self.ahead.is_begun() {
                return true;
            }
            self.settle(process, output, tools);
        }
        let is_behind = pending >= ring::CHUNKS / 2 && !all_are_busy;
        let is_behind = is_behind && !output.is_live() && !self.encoder.is_dormant();
        let begins = self.ahead.begin(is_behind, &tools.batches);
        if begins {
            self.finish_chunk(output, tools);
        }
        begins
    }

    /// Passes the batch on if it is full.
    fn submit(&mut self, process: &Process, output: &Output, tools: &mut Tools) {
        if !self.ahead.is_full() {
            return;
        }
        self.ahead.submit(process.shared_space(), &tools.batches);
        while self.ahead.is_crowded(&tools.batches) {
            if tools.batches.encode_one(&mut tools.encoder) {
                self.join_done(process, output, tools);
            } else if let Some(batch) = self.ahead.next(&mut tools.encoder) {
                self.join(&batch, process, output, tools);
            }
        }
    }

    /// Joins the batches that are encoded.
    fn join_done(&mut self, process: &Process, output: &Output, tools: &mut Tools) {
        while let Some(batch) = self.ahead.next_done() {
            self.join(&batch, process, output, tools);
        }
    }

    /// The stream's next words are those of a batch.
    fn join(&mut self, batch: &Batch, process: &Process, output: &Output, tools: &mut Tools) {
        let chunk = batch.chunk().and_then(|chunk| self.encoder.join(chunk));
        let in_vain = chunk.is_none();
        match chunk {
            Some(chunk) => tools.packing.add(&self.lane, chunk, &mut tools.packer, output),
            None => {
                let words = batch.words();
                for (words, (first, last)) in words.iter().flat_map(|words| words.pieces()) {
                    self.encode(words, Extent::HandedOver, Stamps { first, last }, process, output, tools);
                }
                self.finish_chunk(output, tools);
            }
        }
        self.ahead.joined(batch, in_vain, &tools.batches);
    }

    /// Nothing is ahead of the encoder any more.
    fn settle(&mut self, process: &Process, output: &Output, tools: &mut Tools) {
        while let Some(batch) = self.ahead.next(&mut tools.encoder) {
            self.join(&batch, process, output, tools);
        }
        if let Some(open) = self.ahead.close() {
            for (words, (first, last)) in open.pieces() {
                self.encode(words, Extent::HandedOver, Stamps { first, last }, process, output, tools);
            }
        }
    }

    /// Reads the written part of the chunk that was not handed over.
    fn read_unfinished(&mut self, process: &Process, output: &Output, tools: &mut Tools, ending: &Ending) {
        let ring = process.memory.ring(self.slot);
        if self.lost || output.discards() || output.has_failed() || self.pending(ring) == Some(ring::CHUNKS) {
            return;
        }
        self.settle(process, output, tools);
        // Before the look: what is not seen comes later.
        let now = clock::stamp();
        let settled = ring.settled(self.tail);
        let mut words = std::mem::take(&mut tools.words);
        ring.peek(self.tail, self.read_ahead, &mut words);
        if words.is_empty() {
            self.empty_at = now;
            tools.words = words;
            return;
        }
        let first = ring.stamps(self.tail).first.max(self.empty_at);
        let stamps = Stamps { first, last: clock::stamp() };
        let extent = if matches!(ending, Ending::Whole) { Extent::Whole } else { Extent::CutShort };
        // It may have been handed over, and another one begun.
        let begun = ring.is_dormant(self.tail);
        let end = ring.end(self.tail).filter(|end| end.bytes > 0);
        self.turn(end.map_or(begun, |end| end.dormant), process, output, tools);
        self.sift(process, output, tools);
        let settled = (settled / 8).saturating_sub(self.read_ahead).min(words.len());
        let mut consumed = self.encode(&words[..settled], Extent::Whole, stamps, process, output, tools);
        if consumed == settled {
            consumed += self.encode(&words[settled..], extent, stamps, process, output, tools);
        }
        consumed += self.last(&mut words[consumed..], consumed, stamps, ending, process, output, tools);
        count(&output.counters.words, consumed as u64);
        self.read_ahead += consumed;
        if words[consumed..].iter().all(|&word| word == 0) {
            self.empty_at = now;
        }
        tools.words = words;
    }

    /// Takes the rest of a chunk in use, which begins with a segment that may not be whole, or may
    /// not have been done. Returns how many of its words count.
    #[expect(clippy::too_many_arguments, reason = "five of them are what every step of reading needs")]
    fn last(
        &mut self,
        words: &mut [u64],
        at: usize,
        stamps: Stamps,
        ending: &Ending,
        process: &Process,
        output: &Output,
        tools: &mut Tools,
    ) -> usize {
        let promise = process.space().promise(words);
        let is_plausible = promise.is_none_or(|promise| promise.is_within(PLAUSIBLE));
        let is_believed = match (ending, promise) {
            (Ending::Whole, _) => return 0,
            (Ending::Replaced(ranges), _) => {
                let header = words.first().copied().unwrap_or(0);
                if !ranges.iter().any(|range| range.contains(&header)) {
                    return 0;
                }
                is_plausible
            }
            (_, None) => return 0,
            (Ending::Runs, Some(promise)) => {
                let position = (self.tail, self.read_ahead + at);
                let since = match self.held {
                    Some((tail, at, since)) if (tail, at) == position => since,
                    _ => Instant::now(),
                };
                self.held = Some((position.0, position.1, since));
                // Later, then: it is under way, or what it says will never be done.
                if !promise.is_within(done_in(since.elapsed())) {
                    return 0;
                }
                true
            }
            // It was under way: so much time had not passed.
            (Ending::CutShort, Some(promise)) => {
                is_plausible && promise.is_within(done_in(since(stamps.first, &self.rate)))
            }
            (Ending::Killed, _) => false,
        };
        match is_believed {
            true => self.encode(words, Extent::Whole, stamps, process, output, tools),
            false => self.shorten(words, stamps, process, output, tools),
        }
    }

    /// Shortens a loop or a copy that did not come to its end to its first access. Returns how many
    /// words of it there are, none if the words begin with something else.
    fn shorten(
        &mut self,
        words: &mut [u64],
        stamps: Stamps,
        process: &Process,
        output: &Output,
        tools: &mut Tools,
    ) -> usize {
        if process.space().promise(words).is_none() {
            return 0;
        }
        process.space().shorten(words);
        count(&output.counters.unfinished, 1);
        self.encode(words, Extent::Whole, stamps, process, output, tools)
    }

    /// Begins a time in which recording was on, or off.
    fn turn(&mut self, dormant: bool, process: &Process, output: &Output, tools: &mut Tools) {
        if dormant != self.encoder.is_dormant() {
            self.sift(process, output, tools);
            self.flush(process, output, tools);
            self.encoder.set_dormant(dormant);
        }
    }

    /// Passes the remaining allocations of a stretch without recording to the encoder.
    fn sift(&mut self, process: &Process, output: &Output, tools: &mut Tools) {
        if let Some((words, (first, last))) = self.sieve.take() {
            self.encode(&words, Extent::HandedOver, Stamps { first, last }, process, output, tools);
        }
    }

    /// Hands words to the encoder; returns how many were used.
    ///
    /// Encodes words. If a header is expected and none is found, words are skipped up to the next
    /// one: a word that is the address of an anchor can be nothing else, since no program accesses
    /// anchors.
    fn encode(
        &mut self,
        words: &[u64],
        extent: Extent,
        stamps: Stamps,
        process: &Process,
        output: &Output,
        tools: &mut Tools,
    ) -> usize {
        let tail = match extent {
            Extent::HandedOver | Extent::Whole => Tail::HandedOver,
            Extent::CutShort | Extent::Abandoned => Tail::Open,
        };
        let finished = extent == Extent::HandedOver;
        let mut at = 0;
        loop {
            let (appended, generation) = {
                let space = process.space();
                let appended = self.encoder.append(&words[at..], tail, (stamps.first, stamps.last), &space);
                (appended, space.generation())
            };
            at += appended.consumed;
            match appended.stop {
                Stop::Full => self.finish_chunk(output, tools),
                Stop::End | Stop::Unwritten => return at,
                Stop::Torn | Stop::Promise | Stop::Unknown { header: 0 } if !finished => return at,
                Stop::Orphan { words } => {
                    count(&output.counters.unknown_words, words as u64);
                    self.skipped += words as u64;
                    at += words;
                }
                Stop::Unknown { header }
                    if header != 0 && process.find_image_of(header, generation, output) => {}
                Stop::Torn | Stop::Promise | Stop::Unknown { .. } => {
                    let rest = &words[at..];
                    // Zeros at the end of an unfinished chunk were never written.
                    let written = match finished {
                        true => rest.len(),
                        false => rest.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1),
                    };
                    let skipped = process.find_header(&rest[1..]).map_or(written, |next| next + 1);
                    count(&output.counters.unknown_words, skipped as u64);
                    self.skipped += skipped as u64;
                    at += skipped;
                    self.finish_chunk(output, tools);
                    self.encoder.gap();
                }
            }
        }
    }

    /// Writes out all words that were read.
    pub fn flush(&mut self, process: &Process, output: &Output, tools: &mut Tools) {
        self.settle(process, output, tools);
        self.finish_chunk(output, tools);
    }

    /// Writes out the encoder's last chunk.
    fn finish_chunk(&mut self, output: &Output, tools: &mut Tools) {
        if let Some(chunk) = self.encoder.finish() {
            tools.packing.add(&self.lane, chunk, &mut tools.packer, output);
        }
        self.flushed = Instant::now();
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
    pub fn close(&mut self, process: &Process, output: &Output, tools: &mut Tools, ending: &Ending) {
        // Whoever was interrupted when the thread ended is not back.
        let interrupted = process.memory.ring(self.slot).is_interrupted();
        let cut_short = interrupted && matches!(ending, Ending::Whole);
        self.read_all(process, output, tools, if cut_short { &Ending::CutShort } else { ending });
        if !self.lost && !output.discards() {
            process.memory.ring(self.slot).peek(self.tail, self.read_ahead, &mut tools.words);
            // Code that was interrupted by the handler which ended the process has done nothing after that.
            let torn = !tools.words.is_empty() && (!interrupted || matches!(ending, Ending::Killed));
            output.count_torn(torn);
        }
        self.flush(process, output, tools);
        tools.packing.finish(&self.lane, &mut tools.packer, output);
        if output.is_live() {
            self.lane.bound(None, output);
        }
        if self.skipped > 0 {
            output.note(format!(
                "process {}, thread {}: {} words belong to no instrumented image that is known, or a signal handler \
                 that memlode does not know wrote over them",
                process.index, self.thread, self.skipped
            ));
        }
    }

    /// The ring's slot.
    pub fn slot(&self) -> u32 {
        self.slot
    }
}
