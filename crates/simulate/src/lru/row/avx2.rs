//! Rows in vectors of four entries.

use super::{DIRTY, Moved, Row, RowOps};
use crate::lru::many_lines::{Pass, Request, Seen};
use std::arch::x86_64::*;

/// Four entries at a time, for up to 32 ways.
pub fn ops(ways: usize) -> Option<RowOps<u64>> {
    if !is_here() {
        return None;
    }
    let for_vectors = [of::<1>, of::<2>, of::<3>, of::<4>, of::<5>, of::<6>, of::<7>, of::<8>];
    for_vectors.get(ways.checked_sub(1)? / 4).map(|of| of())
}

/// Returns whether the processor has AVX2, and BMI1 and BMI2, which all processors with AVX2 have.
pub(super) fn is_here() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2")
}

vectors!(u64, 4, avx2);

/// # Safety
/// As for [`Pass::show`], and the processor has these instructions.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn show<R: Row>(pass: &Pass<R::Entry>, shown: &[Request], seen: &mut Seen) {
    // SAFETY: the caller's promise.
    unsafe { pass.show::<R>(shown, seen) }
}

/// # Safety
/// As for [`Pass::answer`], and the processor has these instructions.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn answer<R: Row>(pass: &Pass<R::Entry>, requests: &[Request], seen: &mut Seen) {
    // SAFETY: the caller's promise.
    unsafe { pass.answer::<R>(requests, seen) }
}

/// Row of `VECTORS` vectors, and one bit for each entry that holds `line`.
///
/// # Safety
/// `row` points to 4 × `VECTORS` readable entries.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn find<const VECTORS: usize>(row: *const u64, line: u64) -> ([__m256i; VECTORS], u32) {
    let wanted = _mm256_set1_epi64x((line << 1 | DIRTY) as i64);
    let ignore = _mm256_set1_epi64x(DIRTY as i64);
    let mut entries = [_mm256_setzero_si256(); VECTORS];
    let mut found = 0u32;
    for (v, entries) in entries.iter_mut().enumerate() {
        // SAFETY: 4 × VECTORS entries are valid.
        *entries = unsafe { _mm256_loadu_si256(row.add(4 * v).cast()) };
        let equal = _mm256_cmpeq_epi64(_mm256_or_si256(*entries, ignore), wanted);
        found |= (_mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32) << (4 * v);
    }
    (entries, found)
}

/// `KEEP[32 - 1 - p + i]` is all ones for entries i > p, which a move to the front from p leaves
/// alone.
static KEEP: [i64; 64] = {
    let mut keep = [0; 64];
    let mut i = 32;
    while i < 64 {
        keep[i] = -1;
        i += 1;
    }
    keep
};

/// Finds the line's place p (the last way on a miss), then writes
/// `[front, row[0], …, row[p − 1], row[p + 1], …]` with one pass of permute and blend.
///
/// # Safety
/// The processor has AVX2, BMI1 and BMI2; `row` points to 4 × `VECTORS` readable and writable
/// entries, of which `ways`, at least one, are in use.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn shift<const VECTORS: usize>(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let (old, found) = unsafe { find::<VECTORS>(row, line) };
    // Padding is EMPTY and never found, so a miss gives the last way.
    let place = (found | 1 << (ways - 1)).trailing_zeros() as usize;
    let hit = found != 0;
    // SAFETY: place < ways.
    let displaced = unsafe { *row.add(place) };
    let front = if hit { displaced } else { line << 1 } | dirty;
    let mut carry = _mm256_set1_epi64x(front as i64);
    for (v, &old) in old.iter().enumerate() {
        let rotated = _mm256_permute4x64_epi64::<0b10_01_00_11>(old);
        let shifted = _mm256_blend_epi32::<0b0000_0011>(rotated, carry);
        carry = rotated;
        // SAFETY: the index is between 0 and 31 + 28, as place < 32; the stores are as the loads.
        unsafe {
            let keep = _mm256_loadu_si256(KEEP.as_ptr().add(31 - place + 4 * v).cast());
            _mm256_storeu_si256(row.add(4 * v).cast(), _mm256_blendv_epi8(shifted, old, keep));
        }
    }
    Moved { hit, last: displaced }
}

/// # Safety
/// As for [`shift`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn mark<const VECTORS: usize>(row: *mut u64, _ways: usize, line: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, found) = unsafe { find::<VECTORS>(row, line) };
    if found != 0 {
        // SAFETY: a bit below 4 × VECTORS is set.
        unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY };
    }
    found != 0
}
