//! Rows in vectors of sixteen narrow entries, like those of eight wide ones in [`super::avx512`].

use super::avx512::{self, whole};
use super::{DIRTY, Entry, Moved, Row, RowOps};
use std::arch::x86_64::*;

/// For up to 32 ways, where rows are no longer than in vectors of eight.
pub fn ops(ways: usize) -> Option<RowOps<u32>> {
    let for_vectors = [of::<1>, of::<2>];
    let of = for_vectors.get(ways.checked_sub(1)? / 16)?;
    (ways.div_ceil(8).is_multiple_of(2) && avx512::is_here()).then(of)
}

vectors!(u32, 16, avx512);

/// Row of `VECTORS` vectors, one bit for each entry that has the tag, and one if that is written.
///
/// # Safety
/// `row` points to 16 × `VECTORS` readable entries.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn find<const VECTORS: usize>(row: *const u32, tag: u64) -> ([__m512i; VECTORS], u32, u32) {
    let clean = _mm512_set1_epi32(u32::new(tag, 0) as i32);
    let dirty = _mm512_set1_epi32(u32::new(tag, DIRTY) as i32);
    let mut entries = [_mm512_setzero_si512(); VECTORS];
    let (mut as_clean, mut as_dirty) = (0, 0);
    for (v, entries) in entries.iter_mut().enumerate() {
        // SAFETY: 16 × VECTORS entries are valid.
        *entries = unsafe { _mm512_loadu_si512(row.add(16 * v).cast()) };
        as_clean |= u32::from(_mm512_cmpeq_epi32_mask(*entries, clean)) << (16 * v);
        as_dirty |= u32::from(_mm512_cmpeq_epi32_mask(*entries, dirty)) << (16 * v);
    }
    (entries, as_clean, as_dirty)
}

/// Finds the place p of the line with the tag (the last way on a miss), then writes
/// `[front, row[0], …, row[p − 1], row[p + 1], …]`.
///
/// # Safety
/// The processor has AVX-512 F and BMI1; `row` points to 16 × `VECTORS` readable and writable
/// entries, of which `ways`, at least one, are in use.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn shift<const VECTORS: usize>(row: *mut u32, ways: usize, tag: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let (old, as_clean, as_dirty) = unsafe { find::<VECTORS>(row, tag) };
    // SAFETY: the row has so many entries.
    let last = unsafe { *row.add(ways - 1) };
    let found = as_clean | as_dirty;
    let front = u32::new(tag, dirty | u64::from(as_dirty != 0));
    // Padding is EMPTY and never found, so a miss gives the last way.
    let place = found | 1 << (ways - 1);
    // Places up to p.
    let moved = place ^ place.wrapping_sub(1);
    let mut before = _mm512_set1_epi32(front as i32);
    for (v, &old) in old.iter().enumerate() {
        let new = _mm512_mask_alignr_epi32::<15>(old, (moved >> (16 * v)) as u16, old, before);
        before = old;
        // SAFETY: as the load.
        unsafe { _mm512_storeu_si512(row.add(16 * v).cast(), whole(new)) };
    }
    Moved { hit: found != 0, last: last.bits() }
}

/// # Safety
/// As for [`shift`].
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn mark<const VECTORS: usize>(row: *mut u32, _ways: usize, tag: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, as_clean, as_dirty) = unsafe { find::<VECTORS>(row, tag) };
    let found = as_clean | as_dirty;
    if found != 0 {
        // SAFETY: a bit below 16 × `VECTORS` is set.
        unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY as u32 };
    }
    found != 0
}
