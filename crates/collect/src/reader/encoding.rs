//! Words become the chunks of a trace.

use std::time::Instant;

use memlode_trace::write::{Stop, Tail};

use super::tools::Round;
use super::{Extent, Reader};
use crate::output::count;
use crate::shared::Stamps;

impl Reader {
    /// Begins a time in which recording was on, or off.
    pub(super) fn turn(&mut self, dormant: bool, round: &mut Round<'_>) {
        if dormant != self.encoder.is_dormant() {
            self.sift(round);
            self.flush(round);
            self.encoder.set_dormant(dormant);
        }
    }

    /// Passes the remaining allocations of a stretch without recording to the encoder.
    pub(super) fn sift(&mut self, round: &mut Round<'_>) {
        if let Some((words, (first, last))) = self.sieve.take() {
            self.encode(&words, Extent::HandedOver, Stamps { first, last }, round);
        }
    }

    /// Hands words to the encoder; returns how many were used.
    ///
    /// Encodes words. If a header is expected and none is found, words are skipped up to the next
    /// one: a word that is the address of an anchor can be nothing else, since no program accesses
    /// anchors.
    pub(super) fn encode(
        &mut self,
        words: &[u64],
        extent: Extent,
        stamps: Stamps,
        round: &mut Round<'_>,
    ) -> usize {
        let tail = match extent {
            Extent::HandedOver | Extent::Whole => Tail::HandedOver,
            Extent::CutShort | Extent::Abandoned => Tail::Open,
        };
        let finished = extent == Extent::HandedOver;
        let mut at = 0;
        loop {
            let (appended, generation) = {
                let space = round.process.space();
                let appended = self.encoder.append(&words[at..], tail, (stamps.first, stamps.last), &space);
                (appended, space.generation())
            };
            at += appended.consumed;
            match appended.stop {
                Stop::Full => self.finish_chunk(round),
                Stop::End | Stop::Unwritten => return at,
                Stop::Torn | Stop::Promise | Stop::Unknown { header: 0 } if !finished => return at,
                Stop::Orphan { words } => {
                    count(&round.output.counters.unknown_words, words as u64);
                    self.skipped += words as u64;
                    at += words;
                }
                Stop::Unknown { header }
                    if header != 0 && round.process.find_image_of(header, generation, round.output) => {}
                Stop::Torn | Stop::Promise | Stop::Unknown { .. } => {
                    let rest = &words[at..];
                    // Zeros at the end of an unfinished chunk were never written.
                    let written = match finished {
                        true => rest.len(),
                        false => rest.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1),
                    };
                    let skipped = round.process.find_header(&rest[1..]).map_or(written, |next| next + 1);
                    count(&round.output.counters.unknown_words, skipped as u64);
                    self.skipped += skipped as u64;
                    at += skipped;
                    self.finish_chunk(round);
                    self.encoder.gap();
                }
            }
        }
    }

    /// Writes out all words that were read.
    pub fn flush(&mut self, round: &mut Round<'_>) {
        self.settle(round);
        self.finish_chunk(round);
    }

    /// Writes out the encoder's last chunk.
    pub(super) fn finish_chunk(&mut self, round: &mut Round<'_>) {
        if let Some(chunk) = self.encoder.finish() {
            round.tools.packing.add(&self.lane, chunk, &mut round.tools.packer, round.output);
        }
        self.flushed = Instant::now();
    }
}
