//! Words to varints: the inverse of what `crate::words` does.

use crate::bytes::zigzag;

/// Longest varint, and room to write one.
pub(super) const VARINT_BYTES: usize = 10;
pub(super) const VARINT_ROOM: usize = 16;

/// Appends the differences to the previous values, which become these. The caller has made room.
///
/// How long a varint is cannot be guessed in irregular streams, so nothing but its extremes is a branch.
#[inline(always)]
pub(super) fn put_words(out: &mut [u8], mut end: usize, operands: &[u64], last: &mut [u64]) -> usize {
    for (&word, last) in operands.iter().zip(last) {
        let value = zigzag(word.wrapping_sub(*last) as i64);
        *last = word;
        let room: &mut [u8; VARINT_ROOM] =
            out[end..].first_chunk_mut().expect("room that was made beforehand");
        end += put_branchless(room, value);
    }
    end
}

/// A varint of up to 8 bytes is put into place at once.
#[inline(always)]
fn put_branchless(room: &mut [u8; VARINT_ROOM], value: u64) -> usize {
    if value < 1 << 14 {
        let long = u64::from(value >= 1 << 7);
        let bytes = (value & 0x7f) | long << 7 | (value >> 7) << 8;
        room[..2].copy_from_slice(&(bytes as u16).to_le_bytes());
        return 1 + long as usize;
    }
    if value >= 1 << 56 {
        return put_long(room, value);
    }
    let x = (value & 0x0000_0000_0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x0fff_c000_0fff_c000) << 2;
    let x = (x & 0x007f_007f_007f_007f) | (x & 0x3f80_3f80_3f80_3f80) << 1;
    let last_byte = (63 - x.leading_zeros()) & !7;
    let more = 0x8080_8080_8080_8080 & ((1 << last_byte) - 1);
    room[..8].copy_from_slice(&(x | more).to_le_bytes());
    last_byte as usize / 8 + 1
}

#[cold]
fn put_long(room: &mut [u8; VARINT_ROOM], mut value: u64) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        room[length] = value as u8 | 0x80;
        length += 1;
        value >>= 7;
    }
    room[length] = value as u8;
    length + 1
}
