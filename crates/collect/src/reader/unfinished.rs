//! The chunk that a thread has in use, read where it is.

use std::ops::Range;
use std::time::Instant;

use memlode_trace::format::ring;

use super::tools::Round;
use super::{Extent, Reader};
use crate::clock;
use crate::output::count;
use crate::promises::{PLAUSIBLE, done_in, since};
use crate::shared::Stamps;

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

impl Reader {
    /// Reads the written part of the chunk that was not handed over.
    pub(super) fn read_unfinished(&mut self, round: &mut Round<'_>, ending: &Ending) {
        let ring = round.process.memory.ring(self.slot);
        if self.lost
            || round.output.discards()
            || round.output.has_failed()
            || self.pending(ring) == Some(ring::CHUNKS)
        {
            return;
        }
        self.settle(round);
        // Before the look: what is not seen comes later.
        let now = clock::stamp();
        let settled = ring.settled(self.tail);
        let mut words = std::mem::take(&mut round.tools.words);
        ring.peek(self.tail, self.read_ahead, &mut words);
        if words.is_empty() {
            self.empty_at = now;
            round.tools.words = words;
            return;
        }
        let first = ring.stamps(self.tail).first.max(self.empty_at);
        let stamps = Stamps { first, last: clock::stamp() };
        let extent = if matches!(ending, Ending::Whole) { Extent::Whole } else { Extent::CutShort };
        // It may have been handed over, and another one begun.
        let begun = ring.is_dormant(self.tail);
        let end = ring.end(self.tail).filter(|end| end.bytes > 0);
        self.turn(end.map_or(begun, |end| end.dormant), round);
        self.sift(round);
        let settled = (settled / 8).saturating_sub(self.read_ahead).min(words.len());
        let mut consumed = self.encode(&words[..settled], Extent::Whole, stamps, round);
        if consumed == settled {
            consumed += self.encode(&words[settled..], extent, stamps, round);
        }
        consumed += self.last(&mut words[consumed..], consumed, stamps, ending, round);
        count(&round.output.counters.words, consumed as u64);
        self.read_ahead += consumed;
        if words[consumed..].iter().all(|&word| word == 0) {
            self.empty_at = now;
        }
        round.tools.words = words;
    }

    /// Takes the rest of a chunk in use, which begins with a segment that may not be whole, or may
    /// not have been done. Returns how many of its words count.
    fn last(
        &mut self,
        words: &mut [u64],
        at: usize,
        stamps: Stamps,
        ending: &Ending,
        round: &mut Round<'_>,
    ) -> usize {
        let promise = round.process.space().promise(words);
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
            true => self.encode(words, Extent::Whole, stamps, round),
            false => self.shorten(words, stamps, round),
        }
    }

    /// Shortens a loop or a copy that did not come to its end to its first access. Returns how many
    /// words of it there are, none if the words begin with something else.
    pub(super) fn shorten(&mut self, words: &mut [u64], stamps: Stamps, round: &mut Round<'_>) -> usize {
        if round.process.space().promise(words).is_none() {
            return 0;
        }
        round.process.space().shorten(words);
        count(&round.output.counters.unfinished, 1);
        self.encode(words, Extent::Whole, stamps, round)
    }
}
