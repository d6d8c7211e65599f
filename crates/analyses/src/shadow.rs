//! Knowledge of memory, byte by byte: what an access with a value showed of it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Words of 8 bytes in a page.
const WORDS: usize = 512;
/// Bytes of a page.
const PAGE: u64 = 8 * WORDS as u64;

/// Some bytes of a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WordPart {
    /// The address divided by 8.
    pub word: u64,
    /// The bytes, each at its place, the lowest address in the lowest bits. The others are 0.
    pub value: u64,
    /// A bit for each byte.
    pub bytes: u8,
}

impl WordPart {
    /// Divides bytes at an address into words.
    pub fn of(address: u64, bytes: &[u8]) -> impl Iterator<Item = WordPart> {
        let first = (address % 8) as usize;
        let words = (first + bytes.len()).div_ceil(8);
        (0..words).map(move |number| {
            let mut part = WordPart { word: (address / 8).wrapping_add(number as u64), value: 0, bytes: 0 };
            for at in (8 * number).max(first)..(8 * number + 8).min(first + bytes.len()) {
                part.value |= u64::from(bytes[at - first]) << (8 * (at % 8));
                part.bytes |= 1 << (at % 8);
            }
            part
        })
    }
}

/// Some bytes of memory. The value of a byte is known; or lost, because an unknown value was
/// written; or the byte was not accessed.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Shadow {
    /// Keyed by the address divided by the size of a page.
    pages: FxHashMap<u64, Vec<Word>>,
    /// The bytes of pages that are not there are lost from one page to another, exclusive, and none was seen elsewhere.
    lost: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Word {
    value: u64,
    known: u8,
    lost: u8,
}

impl Word {
    const LOST: Word = Word { value: 0, known: 0, lost: u8::MAX };

    fn set(&mut self, value: u64, bytes: u8) {
        let mask = spread(bytes);
        self.value = self.value & !mask | value & mask;
        self.known |= bytes;
        self.lost &= !bytes;
    }

    fn lose(&mut self, bytes: u8) {
        self.known &= !bytes;
        self.lost |= bytes;
    }
}

impl Shadow {
    /// Compares with what is known. `None` if a byte differs or is lost; else the bytes of which nothing was seen, which may be
    /// none.
    pub fn compare(&self, part: WordPart) -> Option<u8> {
        let place = part.word / WORDS as u64;
        let word = match self.pages.get(&place) {
            Some(words) => words[part.word as usize % WORDS],
            None => self.unwritten(place),
        };
        let differs = (word.value ^ part.value) & spread(word.known & part.bytes) != 0;
        (!differs && word.lost & part.bytes == 0).then_some(part.bytes & !word.known)
    }

    /// Knows some bytes from now on.
    pub fn set(&mut self, part: WordPart) {
        self.word(part.word).set(part.value, part.bytes);
    }

    /// Knows bytes at an address no longer.
    pub fn lose(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let (first, last) = (address.div_ceil(PAGE), end / PAGE);
        if first >= last {
            self.lose_words(address, end);
            return;
        }
        self.lose_words(address, first * PAGE);
        self.lose_pages(first, last);
        self.lose_words(last * PAGE, end);
    }

    /// Adds the accesses of a later stretch.
    pub fn overlay(&mut self, later: Shadow) {
        later.lost.into_iter().for_each(|(from, to)| self.lose_pages(from, to));
        for (place, words) in later.pages {
            for (sum, word) in self.page(place).iter_mut().zip(words) {
                sum.lose(word.lost);
                sum.set(word.value, word.known);
            }
        }
    }

    /// Returns whether all pages have as many words as a page has, which a stranger's may not.
    pub fn is_sound(&self) -> bool {
        self.pages.values().all(|words| words.len() == WORDS)
    }

    /// Loses bytes of few pages.
    fn lose_words(&mut self, from: u64, to: u64) {
        for word in from / 8..to.div_ceil(8) {
            let (low, high) = (from.saturating_sub(8 * word), (to - 8 * word).min(8));
            self.word(word).lose(((1u16 << high) - (1u16 << low)) as u8);
        }
    }

    fn lose_pages(&mut self, mut from: u64, mut to: u64) {
        if to.saturating_sub(from) > self.pages.len() as u64 {
            self.pages.retain(|place, _| !(from..to).contains(place));
        } else {
            (from..to).for_each(|place| _ = self.pages.remove(&place));
        }
        while let Some((&start, &end)) = self.lost.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            self.lost.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.lost.insert(from, to);
    }

    /// Returns a word of a page that is not there.
    fn unwritten(&self, place: u64) -> Word {
        let lost = self.lost.range(..=place).next_back().is_some_and(|(_, end)| place < *end);
        if lost { Word::LOST } else { Word::default() }
    }

    fn word(&mut self, word: u64) -> &mut Word {
        &mut self.page(word / WORDS as u64)[word as usize % WORDS]
    }

    fn page(&mut self, place: u64) -> &mut [Word] {
        let unwritten = self.unwritten(place);
        self.pages.entry(place).or_insert_with(|| vec![unwritten; WORDS])
    }
}

/// Returns the bits of some bytes of a word.
fn spread(bytes: u8) -> u64 {
    const MASKS: [u64; 256] = {
        let mut masks = [0; 256];
        let mut bytes = 0;
        while bytes < 256 {
            let mut byte = 0;
            while byte < 8 {
                masks[bytes] |= if bytes >> byte & 1 == 1 { 0xff << (8 * byte) } else { 0 };
                byte += 1;
            }
            bytes += 1;
        }
        masks
    };
    MASKS[usize::from(bytes)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A byte of memory in the naive model: `None` if it is lost.
    type Naive = std::collections::BTreeMap<u64, Option<u8>>;

    #[derive(Clone, Debug)]
    enum Act {
        Set(u64, Vec<u8>),
        Lose(u64, u64),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let set =
            (0u64..9000, prop::collection::vec(0u8..2, 1..40)).prop_map(|(at, bytes)| Act::Set(at, bytes));
        let lose =
            (0u64..9000, prop_oneof![0u64..40, 4000u64..9000]).prop_map(|(at, bytes)| Act::Lose(at, bytes));
        prop::collection::vec(prop_oneof![4 => set, 1 => lose], 1..60)
    }

    fn act(shadow: &mut Shadow, act: &Act) {
        match act {
            Act::Set(at, bytes) => WordPart::of(*at, bytes).for_each(|part| shadow.set(part)),
            Act::Lose(at, bytes) => shadow.lose(*at, *bytes),
        }
    }

    fn act_naively(memory: &mut Naive, act: &Act) {
        match act {
            Act::Set(at, bytes) => memory.extend((*at..).zip(bytes.iter().map(|&byte| Some(byte)))),
            Act::Lose(at, bytes) => memory.extend((*at..at + bytes).map(|at| (at, None))),
        }
    }

    proptest! {
        #[test]
        fn bytes_are_known_as_a_list_of_bytes_knows_them(before in acts(), after in acts(), at in 0u64..9000, bytes in prop::collection::vec(0u8..2, 1..40)) {
            let (mut shadow, mut later, mut memory) = (Shadow::default(), Shadow::default(), Naive::default());
            before.iter().for_each(|step| act(&mut shadow, step));
            after.iter().for_each(|step| act(&mut later, step));
            before.iter().chain(&after).for_each(|step| act_naively(&mut memory, step));
            shadow.overlay(later);
            let parts: Vec<WordPart> = WordPart::of(at, &bytes).collect();
            let expected = (at..).zip(&bytes).all(|(at, byte)| memory.get(&at).is_none_or(|known| *known == Some(*byte)));
            let unseen = (at..).take(bytes.len()).filter(|at| !memory.contains_key(at)).count() as u32;
            let found: Option<u32> = parts.iter().map(|&part| shadow.compare(part).map(u8::count_ones)).sum();
            prop_assert_eq!(found, expected.then_some(unseen));
        }
    }
}
