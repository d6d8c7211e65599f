//! Rows in vectors of eight narrow entries.

use super::{DIRTY, Entry, Moved, Row, RowOps, avx2};
use std::arch::x86_64::*;

/// Eight entries at a time, for up to 32 ways.
pub fn ops(ways: usize) -> Option<RowOps<u32>> {
    if !avx2::is_here() {
        return None;
    }
    let for_vectors = [of::<1>, of::<2>, of::<3>, of::<4>];
    for_vectors.get(ways.checked_sub(1)? / 8).map(|of| of())
}

vectors!(u32, 8, avx2);

/// Row of `VECTORS` vectors, and one bit for each entry that has the tag.
///
/// # Safety
/// `row` points to 8 × `VECTORS` readable entries.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn find<const VECTORS: usize>(row: *const u32, tag: u64) -> ([__m256i; VECTORS], u32) {
    let ignore = _mm256_set1_epi32(DIRTY as i32);
    let wanted = _mm256_set1_epi32(u32::new(tag, DIRTY) as i32);
    let mut entries = [_mm256_setzero_si256(); VECTORS];
    let mut found = 0u32;
    for (v, entries) in entries.iter_mut().enumerate() {
        // SAFETY: 8 × VECTORS entries are valid.
        *entries = unsafe { _mm256_loadu_si256(row.add(8 * v).cast()) };
        let equal = _mm256_cmpeq_epi32(_mm256_or_si256(*entries, ignore), wanted);
        found |= (_mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32) << (8 * v);
    }
    (entries, found)
}

/// `KEEP[32 - 1 - p + i]` is all ones for entries i > p, which a move to the front from p leaves
/// alone.
static KEEP: [i32; 64] = {
    let mut keep = [0; 64];
    let mut i = 32;
    while i < 64 {
        keep[i] = -1;
        i += 1;
    }
    keep
};

/// Finds the place p of the line with the tag (the last way on a miss), then writes
/// `[front, row[0], …, row[p − 1], row[p + 1], …]` with one pass of permute and blend.
///
/// # Safety
/// The processor has AVX2, BMI1 and BMI2; `row` points to 8 × `VECTORS` readable and writable
/// entries, of which `ways`, at least one, are in use.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn shift<const VECTORS: usize>(row: *mut u32, ways: usize, tag: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let (old, found) = unsafe { find::<VECTORS>(row, tag) };
    // Padding is EMPTY and never found, so a miss gives the last way.
    let place = (found | 1 << (ways - 1)).trailing_zeros() as usize;
    let hit = found != 0;
    // SAFETY: place < ways.
    let displaced = unsafe { *row.add(place) };
    let front = if hit { displaced } else { u32::new(tag, 0) } | dirty as u32;
    let mut carry = _mm256_set1_epi32(front as i32);
    let last_first = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    for (v, &old) in old.iter().enumerate() {
        let rotated = _mm256_permutevar8x32_epi32(old, last_first);
        let shifted = _mm256_blend_epi32::<0b0000_0001>(rotated, carry);
        carry = rotated;
        // SAFETY: the index is between 0 and 31 + 24, as place < 32; the stores are as the loads.
        unsafe {
            let keep = _mm256_loadu_si256(KEEP.as_ptr().add(31 - place + 8 * v).cast());
            _mm256_storeu_si256(row.add(8 * v).cast(), _mm256_blendv_epi8(shifted, old, keep));
        }
    }
    Moved { hit, last: displaced.bits() }
}

/// # Safety
/// As for [`shift`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn mark<const VECTORS: usize>(row: *mut u32, _ways: usize, tag: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, found) = unsafe { find::<VECTORS>(row, tag) };
    if found != 0 {
        // SAFETY: a bit below 8 × VECTORS is set.
        unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY as u32 };
    }
    found != 0
}
