//! Objects that came and went while recording was off.
//!
//! A program that makes and ends objects all the time would fill a sample with them: most are gone
//! before recording is on again, so no recorded access meets them. So words of a dormant stretch
//! wait here. If an object ends in the stretch and thread in which it was made, both of its
//! segments are dropped.
//!
//! ```text
//! alloc a   alloc b   free a   free x   realloc b → c      what happened
//!           (b)                free x   realloc 0 → c      what is kept: x was made earlier
//! ```

use rustc_hash::FxHashMap;

use super::AddressSpace;
use crate::table::Op;

/// Words that wait at most: 65,000 objects or so.
const MOST_WORDS: usize = 256 << 10;

/// The words of one thread's dormant stretch.
#[derive(Default)]
pub struct Sieve {
    /// Segments, their headers first.
    words: Vec<u64>,
    segments: Vec<Waiting>,
    /// Keyed by address: the segment that made the object there, which has not ended.
    made: FxHashMap<u64, u32>,
    dropped: usize,
    stamps: Option<(u64, u64)>,
    /// Keyed by header: the number of words that follow, and their meaning.
    shapes: FxHashMap<u64, (usize, Act)>,
    /// Generation of the address space that `shapes` is of.
    generation: u64,
}

/// A segment that waits.
struct Waiting {
    /// Its beginning in `words`.
    at: u32,
    /// Its words, the header included.
    words: u32,
    /// Index of the word with the new address of an object that was made of an older one.
    remakes: Option<usize>,
    is_of_use: bool,
}

/// The action of a segment; numbers are words behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Makes an object, its address in this word.
    Make(usize),
    /// Makes one of another: new address, bytes, old address.
    Remake(usize),
    End(usize),
    /// Neither, or more than that.
    Other,
}

impl Sieve {
    /// Takes up whole segments. Returns how many words that were: fewer than all where one is not
    /// known, or lacks words.
    pub fn add(&mut self, words: &[u64], stamps: (u64, u64), space: &AddressSpace) -> usize {
        if self.generation != space.generation() {
            self.shapes.clear();
            self.generation = space.generation();
        }
        let mut at = 0;
        while let Some(&header) = words.get(at) {
            let Some((count, act)) = self.shape(header, space) else { break };
            let Some(segment) = words.get(at..at + 1 + count) else { break };
            self.put(segment, act);
            at += segment.len();
        }
        if at > 0 {
            let (first, last) = self.stamps.unwrap_or(stamps);
            self.stamps = Some((first, last.max(stamps.1)));
        }
        at
    }

    /// The earliest time at which any of the waiting words could be written.
    pub fn begun(&self) -> Option<u64> {
        self.stamps.map(|stamps| stamps.0)
    }

    /// Returns whether the waiting words must be taken for lack of room, although objects that end
    /// later have to be kept then, too.
    pub fn is_full(&mut self) -> bool {
        if self.words.len() < MOST_WORDS {
            return false;
        }
        if self.dropped > self.words.len() / 2 {
            self.squeeze();
        }
        self.words.len() >= MOST_WORDS
    }

    /// Returns the remaining words, and when they were written; the sieve is empty then.
    pub fn take(&mut self) -> Option<(Vec<u64>, (u64, u64))> {
        let stamps = self.stamps.take()?;
        self.squeeze();
        self.made.clear();
        self.segments.clear();
        Some((std::mem::take(&mut self.words), stamps))
    }

    fn shape(&mut self, header: u64, space: &AddressSpace) -> Option<(usize, Act)> {
        if let Some(&shape) = self.shapes.get(&header) {
            return Some(shape);
        }
        let resolved = space.resolve(header)?;
        let at = resolved.module.segment(resolved.anchor)?;
        let segment = resolved.module.segment_of(at);
        let ops = &resolved.module.tables[at.0].ops[segment.ops.start as usize..segment.ops.end as usize];
        let act = match ops {
            [Op::Stamp { .. }, Op::Alloc { first, .. } | Op::AllocArray { first, .. }] => {
                Act::Make(usize::from(*first))
            }
            [Op::Stamp { .. }, Op::Realloc { first, .. }] => Act::Remake(usize::from(*first)),
            [Op::Stamp { .. }, Op::Free { first, .. }] => Act::End(usize::from(*first)),
            _ => Act::Other,
        };
        let shape = (usize::from(segment.words), act);
        self.shapes.insert(header, shape);
        Some(shape)
    }

    fn put(&mut self, segment: &[u64], act: Act) {
        let operand = |number: usize| segment[1 + number];
        match act {
            Act::Other => _ = self.keep(segment, None),
            Act::Make(word) => {
                // An allocation that failed makes nothing.
                if operand(word) != 0 {
                    let number = self.keep(segment, None);
                    self.made.insert(operand(word), number);
                }
            }
            Act::End(word) => {
                if !self.end(operand(word)) {
                    self.keep(segment, None);
                }
            }
            Act::Remake(first) => {
                let (new, bytes, old) = (operand(first), operand(first + 1), operand(first + 2));
                if new == 0 && bytes != 0 {
                    return; // it failed, and the old object lives on
                }
                let ended = old != 0 && self.end(old);
                if new == 0 && (ended || old == 0) {
                    return;
                }
                let number = self.keep(segment, Some(first));
                if ended {
                    // What the trace knows has nothing at the old address, or it has been ended.
                    let at = self.segments[number as usize].at as usize;
                    self.words[at + 1 + first + 2] = 0;
                }
                if new != 0 {
                    self.made.insert(new, number);
                }
            }
        }
    }

    fn keep(&mut self, segment: &[u64], remakes: Option<usize>) -> u32 {
        let number = self.segments.len() as u32;
        let (at, words) = (self.words.len() as u32, segment.len() as u32);
        self.segments.push(Waiting { at, words, remakes, is_of_use: true });
        self.words.extend_from_slice(segment);
        number
    }

    /// An object ends. Returns whether it was made here: then only the older object that it was
    /// made of must be kept.
    fn end(&mut self, base: u64) -> bool {
        let Some(number) = self.made.remove(&base) else { return false };
        let segment = &mut self.segments[number as usize];
        let operands = &mut self.words[segment.at as usize + 1..];
        if let Some(first) = segment.remakes
            && operands[first + 2] != 0
        {
            // To no bytes: that ends the old one and makes none.
            operands[first..first + 2].fill(0);
            return true;
        }
        segment.is_of_use = false;
        self.dropped += segment.words as usize;
        true
    }

    /// Frees the room of dropped segments.
    fn squeeze(&mut self) {
        let words = std::mem::take(&mut self.words);
        let segments = std::mem::take(&mut self.segments);
        self.dropped = 0;
        let mut numbers = vec![u32::MAX; segments.len()];
        for (number, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.is_of_use) {
            numbers[number] =
                self.keep(&words[segment.at as usize..][..segment.words as usize], segment.remakes);
        }
        self.made.values_mut().for_each(|number| *number = numbers[*number as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKE: u64 = 0x10;
    const REMAKE: u64 = 0x20;
    const END: u64 = 0x30;
    const OTHER: u64 = 0x40;

    /// Returns the remaining segments, each without its stamp.
    fn left(segments: &[&[u64]]) -> Vec<Vec<u64>> {
        let mut sieve = Sieve::default();
        let acts = [
            (MAKE, 3, Act::Make(1)),
            (REMAKE, 4, Act::Remake(1)),
            (END, 2, Act::End(1)),
            (OTHER, 3, Act::Other),
        ];
        sieve.shapes.extend(acts.map(|(header, words, act)| (header, (words, act))));
        let mut words = Vec::new();
        for segment in segments {
            words.extend([segment[0], 1]);
            words.extend(&segment[1..]);
        }
        let space = AddressSpace::default();
        assert_eq!(sieve.add(&words, (5, 6), &space), words.len());
        let (words, stamps) = sieve.take().unwrap();
        assert_eq!(stamps, (5, 6));
        assert!(sieve.take().is_none());
        let mut left = Vec::new();
        let mut rest = &words[..];
        while let [header, ..] = rest {
            let (segment, after) = rest.split_at(1 + acts.iter().find(|act| act.0 == *header).unwrap().1);
            left.push([&[segment[0]], &segment[2..]].concat());
            rest = after;
        }
        left
    }

    #[test]
    fn what_comes_and_goes_leaves_nothing() {
        assert_eq!(left(&[&[MAKE, 100, 8], &[MAKE, 200, 8], &[END, 100], &[END, 200]]), [[0; 0]; 0]);
        // The second at the same address stays.
        assert_eq!(left(&[&[MAKE, 100, 8], &[END, 100], &[MAKE, 100, 16]]), [[MAKE, 100, 16]]);
    }

    #[test]
    fn the_end_of_what_was_made_before_stays() {
        let all: [&[u64]; 4] = [&[END, 300], &[MAKE, 300, 8], &[OTHER, 300, 8], &[END, 300]];
        assert_eq!(left(&all), [&[END, 300][..], &[OTHER, 300, 8]]);
    }

    #[test]
    fn a_block_that_grows_is_made_once() {
        let grown: [&[u64]; 3] = [&[MAKE, 100, 8], &[REMAKE, 200, 16, 100], &[REMAKE, 200, 32, 200]];
        assert_eq!(left(&grown), [[REMAKE, 200, 32, 0]]);
        let gone: [&[u64]; 4] = [grown[0], grown[1], grown[2], &[END, 200]];
        assert_eq!(left(&gone), [[0; 0]; 0]);
        // Of one that was made before, the end is told.
        let old: [&[u64]; 2] = [&[REMAKE, 200, 16, 100], &[END, 200]];
        assert_eq!(left(&old), [[REMAKE, 0, 0, 100]]);
        let old: [&[u64]; 3] = [&[REMAKE, 200, 16, 100], &[REMAKE, 300, 32, 200], &[END, 300]];
        assert_eq!(left(&old), [[REMAKE, 0, 0, 100]]);
    }

    #[test]
    fn another_image_changes_nothing_about_what_waits() {
        let mut sieve = Sieve::default();
        sieve.shapes.insert(REMAKE, (4, Act::Remake(1)));
        sieve.add(&[REMAKE, 1, 200, 16, 100], (1, 2), &AddressSpace::default());
        sieve.shapes.clear();
        sieve.shapes.insert(END, (2, Act::End(1)));
        sieve.add(&[END, 1, 200], (3, 4), &AddressSpace::default());
        assert_eq!(sieve.take().unwrap(), (vec![REMAKE, 1, 0, 0, 100], (1, 4)));
    }

    #[test]
    fn what_failed_says_nothing() {
        let failed: [&[u64]; 4] = [&[MAKE, 0, 8], &[MAKE, 100, 8], &[REMAKE, 0, 16, 100], &[REMAKE, 0, 0, 0]];
        assert_eq!(left(&failed), [[MAKE, 100, 8]]);
        // As `free` does it.
        assert_eq!(left(&[&[MAKE, 100, 8], &[REMAKE, 0, 0, 100]]), [[0; 0]; 0]);
        assert_eq!(left(&[&[REMAKE, 0, 0, 100]]), [[REMAKE, 0, 0, 100]]);
    }

    #[test]
    fn words_that_are_no_segment_are_left_to_others() {
        let mut sieve = Sieve::default();
        sieve.shapes.insert(MAKE, (3, Act::Make(1)));
        let space = AddressSpace::default();
        assert_eq!(sieve.add(&[MAKE, 1, 100, 8, 77], (1, 2), &space), 4);
        assert_eq!(sieve.add(&[MAKE, 1, 100], (1, 2), &space), 0);
    }

    #[test]
    fn room_is_used_again_as_long_as_objects_go() {
        let mut sieve = Sieve::default();
        sieve.shapes.extend([(MAKE, (3, Act::Make(1))), (END, (2, Act::End(1)))]);
        let space = AddressSpace::default();
        sieve.add(&[MAKE, 1, 8, 8], (1, 2), &space);
        for _ in 0..MOST_WORDS {
            sieve.add(&[MAKE, 1, 100, 8, END, 1, 100], (1, 2), &space);
            assert!(!sieve.is_full());
        }
        assert_eq!(sieve.take().unwrap().0, [MAKE, 1, 8, 8]);
        for base in 1..MOST_WORDS as u64 / 4 {
            sieve.add(&[MAKE, 1, base, 8], (1, 2), &space);
            assert!(!sieve.is_full());
        }
        sieve.add(&[MAKE, 1, 1 << 40, 8], (1, 2), &space);
        assert!(sieve.is_full());
    }
}
