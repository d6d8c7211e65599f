//! Rows in vectors of eight entries. Masks take the place of the tables and shuffles of
//! [`super::avx2`].

use super::{DIRTY, Moved, Row, RowOps};
use crate::lru::many_lines::{Pass, Request, Seen};
use std::arch::asm;
use std::arch::x86_64::*;

/// For up to 32 ways, where rows are no longer than in vectors of four. (Eight entries and then
/// four are no faster than three times four.)
pub fn ops(ways: usize) -> Option<RowOps<u64>> {
    let for_vectors = [of::<1>, of::<2>, of::<3>, of::<4>];
    let of = for_vectors.get(ways.checked_sub(1)? / 8)?;
    (ways.div_ceil(4).is_multiple_of(2) && is_here()).then(of)
}

/// Returns whether the processor has AVX-512 F, and BMI1, as all that have it.
pub(super) fn is_here() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("bmi1")
}

vectors!(u64, 8, avx512);

/// # Safety
/// As for [`Pass::show`], and the processor has these instructions.
#[target_feature(enable = "avx512f,bmi1")]
pub(super) unsafe fn show<R: Row>(pass: &Pass<R::Entry>, shown: &[Request], seen: &mut Seen) {
    // SAFETY: the caller's promise.
    unsafe { pass.show::<R>(shown, seen) }
}

/// # Safety
/// As for [`Pass::answer`], and the processor has these instructions.
#[target_feature(enable = "avx512f,bmi1")]
pub(super) unsafe fn answer<R: Row>(pass: &Pass<R::Entry>, requests: &[Request], seen: &mut Seen) {
    // SAFETY: the caller's promise.
    unsafe { pass.answer::<R>(requests, seen) }
}

/// For a row of `VECTORS` vectors, one bit for each entry that holds `line`, and one if that entry
/// is written. Clean and written forms are compared separately: rows are often moved again at once,
/// and that waits for this result.
///
/// # Safety
/// `row` points to 8 × `VECTORS` readable entries.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn find<const VECTORS: usize>(row: *const u64, line: u64) -> ([__m512i; VECTORS], u32, u32) {
    let clean = _mm512_set1_epi64((line << 1) as i64);
    let dirty = _mm512_set1_epi64((line << 1 | DIRTY) as i64);
    let mut entries = [_mm512_setzero_si512(); VECTORS];
    let (mut as_clean, mut as_dirty) = (0, 0);
    for (v, entries) in entries.iter_mut().enumerate() {
        // SAFETY: 8 × VECTORS entries are valid.
        *entries = unsafe { _mm512_loadu_si512(row.add(8 * v).cast()) };
        as_clean |= u32::from(_mm512_cmpeq_epi64_mask(*entries, clean)) << (8 * v);
        as_dirty |= u32::from(_mm512_cmpeq_epi64_mask(*entries, dirty)) << (8 * v);
    }
    (entries, as_clean, as_dirty)
}

/// Finds the line's place p (the last way on a miss), then writes
/// `[front, row[0], …, row[p − 1], row[p + 1], …]`.
///
/// # Safety
/// The processor has AVX-512 F and BMI1; `row` points to 8 × `VECTORS` readable and writable
/// entries, of which `ways`, at least one, are in use.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn shift<const VECTORS: usize>(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let (old, as_clean, as_dirty) = unsafe { find::<VECTORS>(row, line) };
    // SAFETY: the row has so many entries.
    let last = unsafe { *row.add(ways - 1) };
    let found = as_clean | as_dirty;
    let front = line << 1 | dirty | u64::from(as_dirty != 0);
    // Padding is EMPTY and never found, so a miss gives the last way.
    let place = found | 1 << (ways - 1);
    // Places up to p.
    let moved = place ^ place.wrapping_sub(1);
    let mut before = _mm512_set1_epi64(front as i64);
    for (v, &old) in old.iter().enumerate() {
        let new = _mm512_mask_alignr_epi64::<7>(old, (moved >> (8 * v)) as u8, old, before);
        before = old;
        // SAFETY: as the load.
        unsafe { _mm512_storeu_si512(row.add(8 * v).cast(), whole(new)) };
    }
    Moved { hit: found != 0, last }
}

/// Keeps the compiler from storing changes under a mask: a row is soon read again, and a masked
/// store is not forwarded to a later load.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn whole(mut entries: __m512i) -> __m512i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {0} */", inout(zmm_reg) entries, options(pure, nomem, nostack, preserves_flags)) };
    entries
}

/// # Safety
/// As for [`shift`].
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn mark<const VECTORS: usize>(row: *mut u64, _ways: usize, line: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, as_clean, as_dirty) = unsafe { find::<VECTORS>(row, line) };
    let found = as_clean | as_dirty;
    if found != 0 {
        // SAFETY: a bit below 8 × `VECTORS` is set.
        unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY };
    }
    found != 0
}
