//! Chunks that a thread handed over: copied, cleared and given back first, then encoded, by this
//! worker or in batches by others.

use memlode_trace::format::{ring, stream};

use super::tools::Round;
use super::{Extent, Reader};
use crate::ahead::Batch;
use crate::output::count;
use crate::shared::{CHUNK_AND_SLACK_BYTES, Stamps};

/// The use of a chunk's words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its length is no length of a chunk.
    Impossible,
    /// The shared memory contradicted itself before.
    Unknown,
    /// The trace cannot be written.
    Unwritten,
    /// No words are wanted.
    Discarded,
    /// They are in the open batch.
    Batched,
    /// They are in the worker's tools.
    Copied,
}

/// A chunk that was taken out of its ring.
struct Taken {
    fate: Fate,
    stamps: Stamps,
    /// Its first words, which were read while it was in use.
    ahead: usize,
    /// The words behind those.
    amount: u64,
    /// Its writer was abandoned.
    cut_short: bool,
    /// Recording was off in it.
    dormant: bool,
    /// Recording was switched off behind it.
    gap: bool,
}

impl Reader {
    /// Reads at most `most` chunks that were handed over. True if there were any.
    pub(super) fn read_chunks(&mut self, round: &mut Round<'_>, most: u32) -> bool {
        let mut some = false;
        self.join_done(round);
        for _ in 0..most {
            let pending = match self.pending(round.process.memory.ring(self.slot)) {
                Some(0) => break,
                Some(pending) => pending,
                None => {
                    self.give_up(round.output, 0, "its ring's counters contradict each other");
                    return false;
                }
            };
            some = true;
            let taken = self.take(pending, round);
            count(&round.output.counters.words, taken.amount);
            match taken.fate {
                Fate::Impossible => {
                    self.give_up(round.output, taken.amount, "a chunk's length is impossible");
                }
                Fate::Unknown => count(&round.output.counters.unknown_words, taken.amount),
                Fate::Unwritten => count(&round.output.counters.unwritten_words, taken.amount),
                Fate::Discarded => {}
                Fate::Batched => {
                    self.ahead.open().end_piece((taken.stamps.first, taken.stamps.last));
                    self.submit(round);
                }
                Fate::Copied => self.interpret(&taken, round),
            }
            if taken.gap {
                self.flush(round);
                self.encoder.resume_after_off();
            }
        }
        some
    }

    /// Takes the oldest chunk out of the ring and gives it back to the program, before its words are
    /// looked at.
    fn take(&mut self, pending: u32, round: &mut Round<'_>) -> Taken {
        let ring = round.process.memory.ring(self.slot);
        let chunk = self.tail;
        let Stamps { first, last } = ring.stamps(chunk);
        let end = ring.end(chunk).filter(|end| end.bytes / 8 >= self.read_ahead);
        let bytes = end.map_or(CHUNK_AND_SLACK_BYTES, |end| end.bytes);
        let fate = match end {
            None => Fate::Impossible,
            Some(_) if self.lost => Fate::Unknown,
            Some(_) if round.output.has_failed() => Fate::Unwritten,
            Some(_) if round.output.discards() => Fate::Discarded,
            Some(end) => {
                let is_plain = !end.cut_short && !end.dormant && self.read_ahead == 0;
                match is_plain && self.is_in_batch(pending, round) {
                    true => Fate::Batched,
                    false => Fate::Copied,
                }
            }
        };
        match fate {
            Fate::Batched => ring.take(chunk, bytes, self.ahead.open().room()),
            Fate::Copied => {
                round.tools.words.clear();
                ring.take(chunk, bytes, &mut round.tools.words);
            }
            _ => ring.clear(chunk, bytes),
        }
        ring.release(chunk, pending - 1);
        self.tail = self.tail.wrapping_add(1);
        let ahead = std::mem::take(&mut self.read_ahead);
        Taken {
            fate,
            stamps: Stamps { first: first.max(self.empty_at), last },
            ahead,
            amount: (bytes / 8).saturating_sub(ahead) as u64,
            cut_short: end.is_some_and(|end| end.cut_short),
            dormant: end.is_some_and(|end| end.dormant),
            gap: end.is_some_and(|end| end.gap),
        }
    }

    /// Encodes the words of a chunk that were copied into the worker's tools.
    fn interpret(&mut self, taken: &Taken, round: &mut Round<'_>) {
        self.settle(round);
        let Taken { stamps, ahead, .. } = *taken;
        let mut words = std::mem::take(&mut round.tools.words);
        let extent = if taken.cut_short { Extent::Abandoned } else { Extent::HandedOver };
        if extent == Extent::Abandoned {
            // The last words of a segment that is whole may be zeros by rights.
            words.resize(words.len() + stream::MAX_SEGMENT_WORDS as usize + 1, 0);
        }
        self.turn(taken.dormant, round);
        let mut consumed = 0;
        if self.encoder.is_dormant() && extent == Extent::HandedOver {
            let space = round.process.space();
            consumed = self.sieve.add(&words[ahead..], (stamps.first, stamps.last), &space);
            drop(space);
            if self.sieve.is_full() || ahead + consumed < words.len() {
                self.sift(round);
            }
        }
        let rest = &words[ahead + consumed..];
        if !rest.is_empty() {
            consumed += self.encode(rest, extent, stamps, round);
        }
        if extent == Extent::Abandoned {
            consumed += self.shorten(&mut words[ahead + consumed..], stamps, round);
        }
        let torn = words[ahead + consumed..].iter().any(|&word| word != 0);
        round.output.count_torn(torn);
        round.tools.words = words;
    }

    /// Returns whether a chunk that was handed over goes into a batch.
    fn is_in_batch(&mut self, pending: u32, round: &mut Round<'_>) -> bool {
        let all_are_busy = round.tools.batches.has_work_for_all(round.tools.busy_rings);
        if self.ahead.is_open() {
            if !all_are_busy || self.ahead.is_begun() {
                return true;
            }
            self.settle(round);
        }
        let is_behind = pending >= ring::CHUNKS / 2 && !all_are_busy;
        let is_behind = is_behind && !round.output.is_live() && !self.encoder.is_dormant();
        let begins = self.ahead.begin(is_behind, &round.tools.batches);
        if begins {
            self.finish_chunk(round);
        }
        begins
    }

    /// Passes the batch on if it is full.
    fn submit(&mut self, round: &mut Round<'_>) {
        if !self.ahead.is_full() {
            return;
        }
        self.ahead.submit(round.process.shared_space(), &round.tools.batches);
        while self.ahead.is_crowded(&round.tools.batches) {
            if round.tools.batches.encode_one(&mut round.tools.encoder) {
                self.join_done(round);
            } else if let Some(batch) = self.ahead.next(&mut round.tools.encoder) {
                self.join(&batch, round);
            }
        }
    }

    /// Joins the batches that are encoded.
    pub(super) fn join_done(&mut self, round: &mut Round<'_>) {
        while let Some(batch) = self.ahead.next_done() {
            self.join(&batch, round);
        }
    }

    /// The stream's next words are those of a batch.
    fn join(&mut self, batch: &Batch, round: &mut Round<'_>) {
        let chunk = batch.chunk().and_then(|chunk| self.encoder.join(chunk));
        let in_vain = chunk.is_none();
        match chunk {
            Some(chunk) => round.tools.packing.add(&self.lane, chunk, &mut round.tools.packer, round.output),
            None => {
                let words = batch.words();
                for (words, (first, last)) in words.iter().flat_map(|words| words.pieces()) {
                    self.encode(words, Extent::HandedOver, Stamps { first, last }, round);
                }
                self.finish_chunk(round);
            }
        }
        self.ahead.joined(batch, in_vain, &round.tools.batches);
    }

    /// Nothing is ahead of the encoder any more.
    pub(super) fn settle(&mut self, round: &mut Round<'_>) {
        while let Some(batch) = self.ahead.next(&mut round.tools.encoder) {
            self.join(&batch, round);
        }
        if let Some(open) = self.ahead.close() {
            for (words, (first, last)) in open.pieces() {
                self.encode(words, Extent::HandedOver, Stamps { first, last }, round);
            }
        }
    }
}
