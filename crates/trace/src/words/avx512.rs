//! Eight words at a time. A head ends in as many ones as its tail has bytes. The ones of eight
//! heads are the mask of the bytes that compression to tails keeps, and that expansion fills.

use super::{WORDS, WordRoom};
use std::arch::x86_64::*;

/// Returns whether the processor has the instructions used here: Intel since Ice Lake, AMD since
/// Zen 4.
#[inline]
pub fn is_here() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512vbmi2") && has!("popcnt")
}

/// Reads words as long as there are eight heads, and 64 bytes of tails and what follows them.
/// Returns the number of words, and how many bytes of tails they take.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi2,popcnt")]
pub fn read(heads: &[u8], tails: &[u8], out: &mut [u64]) -> (usize, usize) {
    let ones = _mm512_set1_epi64(1);
    let (mut words, mut left) = (0, tails);
    for (out, heads) in out.as_chunks_mut::<WORDS>().0.iter_mut().zip(heads.as_chunks::<WORDS>().0) {
        let Some(bytes) = left.first_chunk::<64>() else { break };
        let heads = u64::from_le_bytes(*heads);
        let kept = trailing_ones(heads);
        // SAFETY: 64 bytes are readable.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let tail = _mm512_maskz_expand_epi8(kept, bytes);
        let head = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(heads as i64));
        let kept_of_each = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(kept as i64));
        // 64 less the leading zeros of 2^length − 1 is the length.
        let shift = _mm512_sub_epi64(_mm512_set1_epi64(65), _mm512_lzcnt_epi64(kept_of_each));
        let both = _mm512_or_si512(_mm512_slli_epi64::<8>(tail), head);
        let is_whole = _mm512_cmpeq_epi64_mask(head, _mm512_set1_epi64(0xff));
        let value = _mm512_mask_mov_epi64(_mm512_srlv_epi64(both, shift), is_whole, tail);
        let sign = _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(value, ones));
        let word = _mm512_xor_si512(_mm512_srli_epi64::<1>(value), sign);
        // SAFETY: eight words are writable.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), word) };
        words += WORDS;
        left = &left[kept.count_ones() as usize..];
    }
    (words, tails.len() - left.len())
}

/// Returns the ones that each byte ends with.
fn trailing_ones(bytes: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // Each byte plus one, without a carry to the next.
    let next = ((bytes & LOW) + (!LOW >> 7)) ^ (bytes & !LOW);
    bytes & !next
}

/// Writes differences as long as there are eight, and returns their number.
///
/// # Panics
/// If there is no room for them, and for 64 bytes behind the tails.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi2,popcnt")]
pub fn write(differences: &[u64], room: &mut WordRoom) -> usize {
    let (of_eight, _) = differences.as_chunks::<WORDS>();
    let heads = room.heads[room.words..].as_chunks_mut::<WORDS>().0;
    let ones = _mm512_set1_epi64(1);
    for (differences, heads) in of_eight.iter().zip(&mut heads[..of_eight.len()]) {
        // SAFETY: eight words are readable.
        let difference = unsafe { _mm512_loadu_si512(differences.as_ptr().cast()) };
        let sign = _mm512_srai_epi64::<63>(difference);
        let value = _mm512_xor_si512(_mm512_slli_epi64::<1>(difference), sign);
        let highest =
            _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_lzcnt_epi64(_mm512_or_si512(value, ones)));
        // A seventh of the highest bit: 37 / 256 is near enough for 63 and less. Nine bytes are eight.
        let seventh = _mm512_srli_epi64::<8>(_mm512_mullo_epi16(highest, _mm512_set1_epi64(37)));
        let length = _mm512_min_epi64(seventh, _mm512_set1_epi64(8));
        let kept = _mm512_sub_epi64(_mm512_sllv_epi64(ones, length), ones);
        let low = _mm512_sllv_epi64(value, _mm512_add_epi64(length, ones));
        let in_head =
            _mm512_max_epi64(_mm512_sub_epi64(_mm512_set1_epi64(7), length), _mm512_setzero_si512());
        let tail = _mm512_srlv_epi64(value, in_head);
        let head = bytes_of(_mm512_or_si512(low, kept));
        *heads = head.to_le_bytes();
        let kept = bytes_of(kept);
        let bytes: &mut [u8; 64] =
            room.tails[room.end..].first_chunk_mut().expect("room that was made beforehand");
        // SAFETY: 64 bytes are writable.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(kept, tail)) };
        room.end += kept.count_ones() as usize;
    }
    let words = WORDS * of_eight.len();
    room.words += words;
    words
}

/// The lowest byte of each.
#[target_feature(enable = "avx512f")]
fn bytes_of(words: __m512i) -> u64 {
    _mm_cvtsi128_si64(_mm512_cvtepi64_epi8(words)) as u64
}
