//! The words of a chunk (SPEC §4.3): of each a head of one byte, which says how many bytes of its tail stand elsewhere.
//!
//! Lengths vary without a pattern that a branch predictor could learn, so neither way has a branch on them. Heads and tails
//! apart, each of the two has symbols of one kind, which is what makes them small behind an entropy coder.

use crate::bytes::{unzigzag, zigzag};

/// Bytes that a tail has at most; as many must follow the last one for it to be read, and are written at a time.
pub(crate) const TAIL_BYTES: usize = 8;

/// Head and tail together, the head lowest, are the number `(2 * value + 1) * 2^length - 1`, `length` being the bytes of the tail.
/// By these bytes: the bits of head and tail.
const BITS: [u64; TAIL_BYTES] =
    [0xff, 0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff, 0xffff_ffff_ffff, 0xff_ffff_ffff_ffff, u64::MAX];

/// Reads as many words as there are heads, and says how many bytes of `tails` they take. `None` if there are not so many and
/// [`TAIL_BYTES`] behind them.
pub(crate) fn read_words(heads: &[u8], tails: &[u8], out: &mut [u64]) -> Option<usize> {
    let mut left = tails;
    for (word, &head) in out.iter_mut().zip(heads) {
        let head = u64::from(head);
        let length = head.trailing_ones() as usize;
        let tail = u64::from_le_bytes(*left.first_chunk()?);
        let value = match BITS.get(length) {
            Some(bits) => ((tail << 8 | head) & bits) >> (length + 1),
            None => {
                std::hint::cold_path();
                tail
            }
        };
        *word = unzigzag(value) as u64;
        left = &left[length..];
    }
    Some(tails.len() - left.len())
}

/// By the bytes of the tail: bits of the value that are in the head, which it has besides a one for each of these bytes and a zero.
const HEAD_BITS: [u8; TAIL_BYTES + 1] = [7, 6, 5, 4, 3, 2, 1, 0, 0];

/// By the highest bit that is set in a value: bytes of its tail.
const TAILS: [u8; 64] = {
    let mut tails = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        tails[bit] = if bit < 56 { bit as u8 / 7 } else { 8 };
        bit += 1;
    }
    tails
};

/// Where words are written: memory for as many as will come.
pub(crate) struct WordRoom<'a> {
    pub heads: &'a mut [u8],
    pub tails: &'a mut [u8],
    /// Heads so far.
    pub words: usize,
    /// Bytes of tails so far.
    pub end: usize,
}

impl WordRoom<'_> {
    /// Adds the differences to the previous values, which become these.
    ///
    /// # Panics
    /// If there is no room for them, and for [`TAIL_BYTES`] each.
    #[inline(always)]
    pub fn put(&mut self, operands: &[u64], last: &mut [u64]) {
        for (&word, last) in operands.iter().zip(last) {
            let value = zigzag(word.wrapping_sub(*last) as i64);
            *last = word;
            let length = TAILS[(value | 1).ilog2() as usize] as usize;
            // Of eight bytes of tail, the head has no bit of the value: all of its bits say so.
            self.heads[self.words] = (value << (length + 1)) as u8 | ((1u32 << length) - 1) as u8;
            self.words += 1;
            let tail = value >> HEAD_BITS[length];
            let room: &mut [u8; TAIL_BYTES] =
                self.tails[self.end..].first_chunk_mut().expect("room that was made beforehand");
            *room = tail.to_le_bytes();
            self.end += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_of_all_lengths_survive(words in prop::collection::vec((any::<i64>(), 0..64u32), 0..20)) {
            let words: Vec<u64> = words.into_iter().map(|(word, shift)| (word >> shift) as u64).collect();
            let (mut heads, mut tails) = (vec![0; words.len()], vec![0; words.len() * TAIL_BYTES + TAIL_BYTES]);
            let mut room = WordRoom { heads: &mut heads, tails: &mut tails, words: 0, end: 0 };
            words.iter().for_each(|&word| room.put(&[word], &mut [0]));
            let end = room.end;
            let mut found = vec![0; words.len()];
            prop_assert_eq!(read_words(&heads, &tails[..end + TAIL_BYTES], &mut found), Some(end));
            prop_assert_eq!(found, words);
        }
    }

    #[test]
    fn as_the_specification_says() {
        for (word, head, tail) in [
            (0, 0b0, &[][..]),
            (-1, 0b10, &[]),
            (63, 0b1111_1100, &[]),
            (64, 0b0000_0001, &[0b10]),
            (0x1234, 0b1010_0001, &[0x91]),
            (i64::MIN, 0xff, &[0xff; 8]),
        ] {
            let (mut heads, mut tails) = ([0; 1], [0; 16]);
            let mut room = WordRoom { heads: &mut heads, tails: &mut tails, words: 0, end: 0 };
            room.put(&[word as u64], &mut [0]);
            let end = room.end;
            assert_eq!((heads[0], &tails[..end]), (head, tail), "{word}");
        }
    }

    #[test]
    fn tails_that_are_missing_are_missed() {
        assert_eq!(read_words(&[1], &[0; 8], &mut [0]), Some(1));
        assert_eq!(read_words(&[1], &[0; 7], &mut [0]), None);
        assert_eq!(read_words(&[0xff, 1], &[0; 15], &mut [0; 2]), None);
    }
}
