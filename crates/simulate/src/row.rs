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

/// A way to carry out the move.
///
/// # Safety
/// `row` must point to `stride` readable and writable entries, and `1 <= ways <= stride`; entries from
/// `ways` on are [`EMPTY`]. The processor must have what the implementor needs.
pub(crate) trait Rows {
    /// Moves `line` to the front of the row and marks it dirty if `dirty` is [`DIRTY`] rather than 0.
    unsafe fn to_front(row: *mut u64, stride: usize, ways: usize, line: u64, dirty: u64) -> Moved;
}

/// Plain Rust for every processor and any number of ways.
pub(crate) struct Portable;

impl Rows for Portable {
    #[inline(always)]
    unsafe fn to_front(row: *mut u64, _stride: usize, ways: usize, line: u64, dirty: u64) -> Moved {
        // SAFETY: `ways` entries are valid by the trait's contract.
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
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;

/// Whether [`Avx2`] may be used.
pub(crate) fn have_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{DIRTY, Moved, Portable, Rows};
    use std::arch::x86_64::*;

    /// Four entries at a time; rows of more than 32 ways fall back on [`Portable`].
    pub(crate) struct Avx2;

    impl Rows for Avx2 {
        #[inline(always)]
        unsafe fn to_front(row: *mut u64, stride: usize, ways: usize, line: u64, dirty: u64) -> Moved {
            // SAFETY: the trait's contract is handed on; `stride` is 4 × the vectors chosen.
            unsafe {
                match stride {
                    4 => shift::<1>(row, ways, line, dirty),
                    8 => shift::<2>(row, ways, line, dirty),
                    12 => shift::<3>(row, ways, line, dirty),
                    16 => shift::<4>(row, ways, line, dirty),
                    20 => shift::<5>(row, ways, line, dirty),
                    24 => shift::<6>(row, ways, line, dirty),
                    28 => shift::<7>(row, ways, line, dirty),
                    32 => shift::<8>(row, ways, line, dirty),
                    _ => Portable::to_front(row, stride, ways, line, dirty),
                }
            }
        }
    }

    /// Finds the line's place p (the last way on a miss), then writes
    /// `[front, row[0], …, row[p − 1], row[p + 1], …]` with one pass of permute and blend.
    ///
    /// # Safety
    /// As for [`Rows::to_front`], with a stride of 4 × `VECTORS`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn shift<const VECTORS: usize>(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved {
        let key = line << 1;
        let wanted = _mm256_set1_epi64x((key | DIRTY) as i64);
        let ignore = _mm256_set1_epi64x(DIRTY as i64);
        let mut old = [_mm256_setzero_si256(); VECTORS];
        let mut hits = 0u32;
        for (v, old) in old.iter_mut().enumerate() {
            // SAFETY: 4 × VECTORS entries are valid.
            *old = unsafe { _mm256_loadu_si256(row.add(4 * v).cast()) };
            let equal = _mm256_cmpeq_epi64(_mm256_or_si256(*old, ignore), wanted);
            hits |= (_mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32) << (4 * v);
        }
        let hit = hits != 0;
        let place = (hits.trailing_zeros() as usize).min(ways - 1);
        // SAFETY: place < ways.
        let displaced = unsafe { *row.add(place) };
        let front = if hit { displaced } else { key } | dirty;

        let place = _mm256_set1_epi64x(place as i64);
        let mut carry = _mm256_set1_epi64x(front as i64);
        for (v, &old) in old.iter().enumerate() {
            let rotated = _mm256_permute4x64_epi64::<0b10_01_00_11>(old);
            let shifted = _mm256_blend_epi32::<0b0000_0011>(rotated, carry);
            carry = rotated;
            let lane = 4 * v as i64;
            let lanes = _mm256_setr_epi64x(lane, lane + 1, lane + 2, lane + 3);
            let keep = _mm256_cmpgt_epi64(lanes, place);
            // SAFETY: as for the loads.
            unsafe { _mm256_storeu_si256(row.add(4 * v).cast(), _mm256_blendv_epi8(shifted, old, keep)) };
        }
        Moved { hit, last: displaced }
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
            prop_assume!(have_avx2());
            let stride = ways.next_multiple_of(4);
            let mut plain = [EMPTY; 32];
            let mut vector = [EMPTY; 32];
            for (line, high, dirty) in trace {
                let line = if high { (1 << 62) - 1 - line } else { line };
                let dirty = u64::from(dirty);
                // SAFETY: both rows have room for `stride` entries; AVX2 was asked for.
                let (a, b) = unsafe {
                    (
                        Portable::to_front(plain.as_mut_ptr(), stride, ways, line, dirty),
                        Avx2::to_front(vector.as_mut_ptr(), stride, ways, line, dirty),
                    )
                };
                prop_assert_eq!((a.hit, plain), (b.hit, vector));
                prop_assert!(a.hit || a.last == b.last);
                prop_assert!(plain[ways..].iter().all(|entry| *entry == EMPTY));
            }
        }
    }
}
