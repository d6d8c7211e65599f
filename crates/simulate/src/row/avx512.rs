//! Rows in vectors of eight entries. Masks take the place of the tables and shuffles of [`super::avx2`].

use super::{DIRTY, Moved, RowOps};
use std::arch::asm;
use std::arch::x86_64::*;

/// For up to 32 ways, where rows are no longer than in vectors of four. (Eight entries and then four are no faster than three times four.)
pub fn ops(ways: usize) -> Option<RowOps> {
    fn of<const VECTORS: usize>() -> RowOps {
        RowOps { stride: 8 * VECTORS, to_front: shift::<VECTORS>, mark_dirty: mark::<VECTORS> }
    }
    use std::arch::is_x86_feature_detected as has;
    let for_vectors = [of::<1>, of::<2>, of::<3>, of::<4>];
    let of = for_vectors.get(ways.checked_sub(1)? / 8)?;
    let is_for_these = ways.div_ceil(4).is_multiple_of(2) && has!("avx512f") && has!("bmi1");
    is_for_these.then(of)
}

/// Row of `VECTORS` vectors, and one bit for each entry that holds `line`.
///
/// # Safety
/// `row` points to 8 × `VECTORS` readable entries.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn find<const VECTORS: usize>(row: *const u64, line: u64) -> ([__m512i; VECTORS], u32) {
    let wanted = _mm512_set1_epi64((line << 1 | DIRTY) as i64);
    let ignore = _mm512_set1_epi64(DIRTY as i64);
    let mut entries = [_mm512_setzero_si512(); VECTORS];
    let mut found = 0;
    for (v, entries) in entries.iter_mut().enumerate() {
        // SAFETY: 8 × VECTORS entries are valid.
        *entries = unsafe { _mm512_loadu_si512(row.add(8 * v).cast()) };
        let equal = _mm512_cmpeq_epi64_mask(_mm512_or_si512(*entries, ignore), wanted);
        found |= u32::from(equal) << (8 * v);
    }
    (entries, found)
}

/// Finds the line's place p (the last way on a miss), then writes `[front, row[0], …, row[p − 1], row[p + 1], …]`.
///
/// # Safety
/// The processor has AVX-512 F and BMI1; `row` points to 8 × `VECTORS` readable and writable entries, of which `ways`, at least one,
/// are in use.
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn shift<const VECTORS: usize>(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let (old, found) = unsafe { find::<VECTORS>(row, line) };
    // Padding is EMPTY and never found, so a miss gives the last way.
    let place = found | 1 << (ways - 1);
    // SAFETY: a bit below `ways` is set.
    let displaced = unsafe { *row.add(place.trailing_zeros() as usize) };
    let hit = found != 0;
    let front = if hit { displaced } else { line << 1 } | dirty;
    // Places up to p.
    let moved = place ^ place.wrapping_sub(1);
    let mut before = _mm512_set1_epi64(front as i64);
    for (v, &old) in old.iter().enumerate() {
        let new = _mm512_mask_alignr_epi64::<7>(old, (moved >> (8 * v)) as u8, old, before);
        before = old;
        // SAFETY: as the load.
        unsafe { _mm512_storeu_si512(row.add(8 * v).cast(), whole(new)) };
    }
    Moved { hit, last: displaced }
}

/// Keeps the compiler from storing under a mask what has changed: a row is soon looked at again, and such a store is not forwarded to
/// a load that follows.
#[inline]
#[target_feature(enable = "avx512f")]
fn whole(mut entries: __m512i) -> __m512i {
    // SAFETY: no instruction at all.
    unsafe { asm!("/* {0} */", inout(zmm_reg) entries, options(pure, nomem, nostack, preserves_flags)) };
    entries
}

/// # Safety
/// As for [`shift`].
#[target_feature(enable = "avx512f,bmi1")]
unsafe fn mark<const VECTORS: usize>(row: *mut u64, _ways: usize, line: u64) -> bool {
    // SAFETY: the caller's promise.
    let (_, found) = unsafe { find::<VECTORS>(row, line) };
    if found != 0 {
        // SAFETY: a bit below 8 × `VECTORS` is set.
        unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY };
    }
    found != 0
}
