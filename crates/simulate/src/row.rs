//! One set as a row of entries, most recently used first.
//!
//! ```text
//!   bit 63 ……………………………… 1   0
//!      | line number        | dirty |        unused ways hold EMPTY and stand behind the used ones
//! ```
//!
//! A touch moves its entry to the front. The position of an entry is its LRU rank, so there are no
//! counters or stamps to keep, and the way to evict is always the last. A miss is the same move with the
//! last entry falling out, which lets hit and miss share one branch-free body in the vector form.

/// An unused way. Its line number, 2^63 − 1, belongs to no address: lines have at least 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX - 1;

/// The entry was written since it came in.
pub(crate) const DIRTY: u64 = 1;

/// Result of a move to the front.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    /// The line was there.
    pub hit: bool,
    /// On a miss, the entry that fell out; may be [`EMPTY`].
    pub last: u64,
}

/// The operations on a row of a given number of ways, and how far apart rows lie.
///
/// They are chosen once per cache. A call through a pointer to a small leaf function costs less here than
/// compiling everything around it for each width and each instruction set.
#[derive(Clone, Copy)]
pub(crate) struct RowOps {
    /// Entries from one row to the next; entries from `ways` on are [`EMPTY`].
    pub stride: usize,
    /// `(row, ways, line, dirty)`: moves `line` to the front of the row and marks it dirty if `dirty` is
    /// [`DIRTY`] rather than 0.
    pub to_front: unsafe fn(*mut u64, usize, u64, u64) -> Moved,
    /// `(row, ways, line)`: marks `line` dirty where it stands; false if it is not in the row.
    pub mark_dirty: unsafe fn(*mut u64, usize, u64) -> bool,
}

impl RowOps {
    /// The fastest operations for this many ways on this processor.
    pub fn new(ways: usize) -> RowOps {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = avx2::ops(ways) {
            return ops;
        }
        RowOps::plain(ways)
    }

    /// Plain Rust for every processor and any number of ways.
    fn plain(ways: usize) -> RowOps {
        RowOps { stride: ways, to_front, mark_dirty }
    }
}

/// # Safety
/// `row` points to `ways` entries, at least one, readable and writable.
unsafe fn to_front(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved {
    // SAFETY: the caller's promise.
    let row = unsafe { std::slice::from_raw_parts_mut(row, ways) };
    let key = line << 1;
    let mut carry = key | dirty;
    for way in 0..ways {
        let here = std::mem::replace(&mut row[way], carry);
        if here | DIRTY == key | DIRTY {
            row[0] |= here;
            return Moved { hit: true, last: EMPTY };
        }
        carry = here;
    }
    Moved { hit: false, last: carry }
}

/// # Safety
/// As for [`to_front`].
unsafe fn mark_dirty(row: *mut u64, ways: usize, line: u64) -> bool {
    // SAFETY: the caller's promise.
    let row = unsafe { std::slice::from_raw_parts_mut(row, ways) };
    let entry = row.iter_mut().find(|entry| **entry >> 1 == line);
    entry.map(|entry| *entry |= DIRTY).is_some()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{DIRTY, Moved, RowOps};
    use std::arch::x86_64::*;

    /// Four entries at a time, for up to 32 ways.
    pub fn ops(ways: usize) -> Option<RowOps> {
        fn of<const VECTORS: usize>() -> RowOps {
            RowOps { stride: 4 * VECTORS, to_front: shift::<VECTORS>, mark_dirty: mark::<VECTORS> }
        }
        if !std::arch::is_x86_feature_detected!("avx2") {
            return None;
        }
        let for_vectors = [of::<1>, of::<2>, of::<3>, of::<4>, of::<5>, of::<6>, of::<7>, of::<8>];
        for_vectors.get(ways.checked_sub(1)? / 4).map(|of| of())
    }

    /// Row of `VECTORS` vectors, and one bit for each entry that holds `line`.
    ///
    /// # Safety
    /// `row` points to 4 × `VECTORS` readable entries.
    #[inline]
    #[target_feature(enable = "avx2")]
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

    /// `KEEP[32 - 1 - p + i]` is all ones for entries i > p, which a move to the front from p leaves alone.
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
    /// The processor has AVX2; `row` points to 4 × `VECTORS` readable and writable entries, of which `ways`,
    /// at least one, are in use.
    #[target_feature(enable = "avx2")]
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
    #[target_feature(enable = "avx2")]
    unsafe fn mark<const VECTORS: usize>(row: *mut u64, _ways: usize, line: u64) -> bool {
        // SAFETY: the caller's promise.
        let (_, found) = unsafe { find::<VECTORS>(row, line) };
        if found != 0 {
            // SAFETY: a bit below 4 × VECTORS is set.
            unsafe { *row.add(found.trailing_zeros() as usize) |= DIRTY };
        }
        found != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The vector form does exactly what the plain form does, for every width it handles.
        #[cfg(target_arch = "x86_64")]
        #[test]
        fn vectors_move_like_plain_code(
            ways in 1usize..=32,
            trace in prop::collection::vec((0u64..50, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let Some(vectors) = avx2::ops(ways) else { return Ok(()) };
            let plain = RowOps::plain(ways);
            let (mut a, mut b) = ([EMPTY; 32], [EMPTY; 32]);
            for (line, high, dirty) in trace {
                let line = if high { (1 << 62) - 1 - line } else { line };
                let dirty = u64::from(dirty);
                // SAFETY: both rows have room for the widest stride.
                let (moved_a, moved_b) = unsafe {
                    (
                        (plain.to_front)(a.as_mut_ptr(), ways, line, dirty),
                        (vectors.to_front)(b.as_mut_ptr(), ways, line, dirty),
                    )
                };
                prop_assert_eq!((moved_a.hit, a), (moved_b.hit, b));
                prop_assert!(moved_a.hit || moved_a.last == moved_b.last);
                let other = line ^ 1;
                // SAFETY: as above.
                let (marked_a, marked_b) = unsafe {
                    (
                        (plain.mark_dirty)(a.as_mut_ptr(), ways, other),
                        (vectors.mark_dirty)(b.as_mut_ptr(), ways, other),
                    )
                };
                prop_assert_eq!((marked_a, a), (marked_b, b));
                prop_assert!(b[ways..].iter().all(|entry| *entry == EMPTY));
            }
        }
    }
}
