//! The words of a chunk (SPEC §4.3). Each has a head of one byte, with the length of its tail,
//! which stands elsewhere.
//!
//! Lengths vary without a pattern that a branch predictor could learn, so neither way has a branch
//! on them. Heads and tails are stored separately: each list has symbols of one kind, so an entropy
//! coder makes it small.

use crate::bytes::{unzigzag, zigzag};

#[cfg(target_arch = "x86_64")]
mod avx512;

/// Words that are read or written at once, where the processor can.
#[cfg(target_arch = "x86_64")]
const WORDS: usize = 8;

/// Bytes that a tail has at most; as many must follow the last one for it to be read, and are
/// written at a time.
pub(crate) const TAIL_BYTES: usize = 8;

/// Head and tail together, the head lowest, are the number `(2 * value + 1) * 2^length - 1`,
/// `length` being the bytes of the tail. By these bytes: the bits of head and tail.
const BITS: [u64; TAIL_BYTES] =
    [0xff, 0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff, 0xffff_ffff_ffff, 0xff_ffff_ffff_ffff, u64::MAX];

/// Reads as many words as there are heads, and returns how many bytes of `tails` they take. `None`
/// if there are not that many, with [`TAIL_BYTES`] behind them.
pub(crate) fn read_words(heads: &[u8], tails: &[u8], out: &mut [u64]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if avx512::is_here() {
        // SAFETY: the processor has the instructions.
        let (words, bytes) = unsafe { avx512::read(heads, tails, out) };
        return Some(bytes + read_each(&heads[words..], &tails[bytes..], &mut out[words..])?);
    }
    read_each(heads, tails, out)
}

/// One by one.
fn read_each(heads: &[u8], tails: &[u8], out: &mut [u64]) -> Option<usize> {
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

/// Bits of a value that are in the head, by the bytes of the tail; it has a one for each of these
/// bytes and a zero besides.
const HEAD_BITS: [u8; TAIL_BYTES + 1] = [7, 6, 5, 4, 3, 2, 1, 0, 0];

/// Bytes of a value's tail, by the highest bit that is set in it.
const TAILS: [u8; 64] = {
    let mut tails = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        tails[bit] = if bit < 56 { bit as u8 / 7 } else { 8 };
        bit += 1;
    }
    tails
};

/// Memory for as many words as will come.
pub(crate) struct WordRoom<'a> {
    pub heads: &'a mut [u8],
    pub tails: &'a mut [u8],
    /// Heads so far.
    pub words: usize,
    /// Bytes of tails so far.
    pub end: usize,
}

impl WordRoom<'_> {
    /// Adds words: their differences from the last ones.
    ///
    /// # Panics
    /// If there is no room for them, and for [`TAIL_BYTES`] each.
    pub fn put(&mut self, differences: &[u64]) {
        let mut left = differences;
        #[cfg(target_arch = "x86_64")]
        if avx512::is_here() {
            // SAFETY: the processor has the instructions.
            left = &left[unsafe { avx512::write(left, self) }..];
        }
        self.put_each(left);
    }

    /// One by one.
    fn put_each(&mut self, differences: &[u64]) {
        for &difference in differences {
            let value = zigzag(difference as i64);
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

/// The differences to the previous values, which become these.
#[inline(always)]
pub(crate) fn subtract(operands: &[u64], last: &mut [u64], differences: &mut [u64]) {
    for ((&word, last), difference) in operands.iter().zip(last).zip(differences) {
        *difference = word.wrapping_sub(*last);
        *last = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Heads and tails of words, written by `put`.
    fn written(words: &[u64], put: impl Fn(&mut WordRoom, &[u64])) -> (Vec<u8>, Vec<u8>) {
        let (mut heads, mut tails) = (vec![0; words.len()], vec![0; (words.len() + 1) * TAIL_BYTES]);
        let mut room = WordRoom { heads: &mut heads, tails: &mut tails, words: 0, end: 0 };
        put(&mut room, words);
        assert_eq!(room.words, words.len());
        let end = room.end;
        tails.truncate(end);
        (heads, tails)
    }

    proptest! {
        /// Several at a time or one by one.
        #[test]
        fn words_of_all_lengths_survive(words in prop::collection::vec((any::<i64>(), 0..64u32), 0..70)) {
            let words: Vec<u64> = words.into_iter().map(|(word, shift)| (word >> shift) as u64).collect();
            let (heads, mut tails) = written(&words, |room, words| room.put(words));
            prop_assert_eq!(&written(&words, |room, words| room.put_each(words)), &(heads.clone(), tails.clone()));
            let end = tails.len();
            tails.extend([0xee; TAIL_BYTES]);
            for read in [read_words, read_each] {
                let mut found = vec![0; words.len()];
                prop_assert_eq!(read(&heads, &tails, &mut found), Some(end));
                prop_assert_eq!(&found, &words);
            }
        }

        /// Any heads and tails are read alike, including those that we never write.
        #[test]
        fn any_bytes_are_read_alike(
            (heads, tails) in (prop::collection::vec(any::<u8>(), 0..70), prop::collection::vec(any::<u8>(), 0..300)),
        ) {
            let (mut found, mut expected) = (vec![0; heads.len()], vec![0; heads.len()]);
            let bytes = read_each(&heads, &tails, &mut expected);
            prop_assert_eq!(read_words(&heads, &tails, &mut found), bytes);
            prop_assert!(bytes.is_none() || found == expected);
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
            let (heads, tails) = written(&[word as u64], |room, words| room.put(words));
            assert_eq!((heads[0], &tails[..]), (head, tail), "{word}");
        }
    }

    #[test]
    fn tails_that_are_missing_are_missed() {
        assert_eq!(read_words(&[1], &[0; 8], &mut [0]), Some(1));
        assert_eq!(read_words(&[1], &[0; 7], &mut [0]), None);
        assert_eq!(read_words(&[0xff, 1], &[0; 15], &mut [0; 2]), None);
    }
}
