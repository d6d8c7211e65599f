//! The words of chunks of versions 1 and 2: varints, one behind the other.

use crate::bytes::unzigzag;

/// Reads as many signed varints as `out` has room for; returns how many bytes they take, `None` if
/// bytes are missing or a varint has more than 64 bits.
pub(crate) fn read_varints(bytes: &[u8], out: &mut [u64]) -> Option<usize> {
    let mut words = Words { bytes, at: 0 };
    for word in out {
        *word = unzigzag(words.next()?) as u64;
    }
    Some(words.at)
}

/// The word stream from a position on.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    /// The next varint, unless there is none or it has more than 64 bits.
    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte < 0x80 {
            return Some(byte.into());
        }
        self.rest(byte)
    }

    /// A varint of several bytes. Lengths vary without a pattern a branch predictor could learn, so
    /// up to eight bytes are taken at once: find the last byte, then close the gaps that the flag
    /// bits leave.
    #[inline(always)]
    fn rest(&mut self, first: u8) -> Option<u64> {
        if let Some(eight) = self.bytes.get(self.at - 1..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            let ends = !eight & 0x8080_8080_8080_8080;
            if ends != 0 {
                let through_last = ends ^ (ends - 1);
                let x = eight & through_last & 0x7f7f_7f7f_7f7f_7f7f;
                let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
                let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
                let x = (x & 0x0000_0000_0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4;
                self.at += ends.trailing_zeros() as usize / 8;
                return Some(x);
            }
        }
        self.bytewise(first)
    }

    #[cold]
    fn bytewise(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..70).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_of_all_lengths_are_read(values in prop::collection::vec((any::<i64>(), 0..64u32), 0..20)) {
            let mut bytes = Vec::new();
            let values: Vec<i64> = values.into_iter().map(|(value, shift)| value >> shift).collect();
            values.iter().for_each(|&value| crate::bytes::put_svarint(&mut bytes, value));
            let mut words = vec![0; values.len()];
            prop_assert_eq!(read_varints(&bytes, &mut words), Some(bytes.len()));
            prop_assert!(values.iter().zip(&words).all(|(&value, &word)| value as u64 == word));
            words.push(0);
            prop_assert_eq!(read_varints(&bytes, &mut words), None);
        }
    }
}
