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

use crate::pass::{Pass, Request, Seen};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// An unused way. Its line number, 2^63 − 1, belongs to no address: lines have at least 4 bytes.
pub(crate) const EMPTY: u64 = u64::MAX - 1;

/// The entry was written since it came in.
pub(crate) const DIRTY: u64 = 1;

/// Result of a move to the front.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    /// The line was there.
    pub hit: bool,
    /// On a miss, the entry that fell out; may be [`EMPTY`]. On a hit, whatever is soon at hand.
    pub last: u64,
}

/// Rows of one width, moved with the instructions of one processor.
pub(crate) trait Row {
    /// Entries from one row of so many ways to the next, at least two; those from `ways` on are [`EMPTY`].
    fn stride(ways: usize) -> usize;

    /// Moves `line` to the front of the row and marks it dirty if `dirty` is [`DIRTY`] rather than 0.
    ///
    /// # Safety
    /// `row` points to a row of `ways` ways, readable and writable, and the processor has the instructions.
    unsafe fn to_front(row: *mut u64, ways: usize, line: u64, dirty: u64) -> Moved;

    /// Marks `line` dirty where it stands; false if it is not in the row.
    ///
    /// # Safety
    /// As of [`Row::to_front`].
    unsafe fn mark_dirty(row: *mut u64, ways: usize, line: u64) -> bool;
}

/// What is done with rows of a given number of ways, one by one or in a pass over many ([`crate::pass`]).
///
/// It is chosen once per cache. A call through a pointer costs less here than compiling everything around it for each width and
/// each instruction set; where many rows are moved in a row, it is one call for all of them.
#[derive(Clone, Copy)]
pub(crate) struct RowOps {
    /// [`Row::stride`].
    pub stride: usize,
    /// [`Row::to_front`].
    pub to_front: unsafe fn(*mut u64, usize, u64, u64) -> Moved,
    /// [`Row::mark_dirty`].
    pub mark_dirty: unsafe fn(*mut u64, usize, u64) -> bool,
    /// [`Pass::show`].
    pub show: unsafe fn(&Pass, &[Request], &mut Seen),
    /// [`Pass::answer`].
    pub answer: unsafe fn(&Pass, &[Request], &mut Seen),
}

impl RowOps {
    /// The fastest operations for this many ways on this processor.
    pub fn new(ways: usize) -> RowOps {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = avx512::ops(ways).or_else(|| avx2::ops(ways)) {
            return ops;
        }
        RowOps::plain(ways)
    }

    /// Plain Rust for every processor and any number of ways.
    fn plain(ways: usize) -> RowOps {
        RowOps {
            stride: Plain::stride(ways),
            to_front: Plain::to_front,
            mark_dirty: Plain::mark_dirty,
            show: Pass::show::<Plain>,
            answer: Pass::answer::<Plain>,
        }
    }
}

/// Rows in plain Rust.
struct Plain;

impl Row for Plain {
    fn stride(ways: usize) -> usize {
        ways.max(2)
    }

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

    unsafe fn mark_dirty(row: *mut u64, ways: usize, line: u64) -> bool {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(row, ways) };
        let entry = row.iter_mut().find(|entry| **entry >> 1 == line);
        entry.map(|entry| *entry |= DIRTY).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The vector forms do exactly what the plain form does, for every width they handle.
        #[cfg(target_arch = "x86_64")]
        #[test]
        fn vectors_move_like_plain_code(
            ways in 1usize..=32,
            trace in prop::collection::vec((0u64..50, any::<bool>(), any::<bool>()), 1..300),
        ) {
            for vectors in [avx2::ops(ways), avx512::ops(ways)].into_iter().flatten() {
                moves_like_plain_code(&vectors, ways, &trace)?;
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn moves_like_plain_code(
        vectors: &RowOps,
        ways: usize,
        trace: &[(u64, bool, bool)],
    ) -> Result<(), TestCaseError> {
        let plain = RowOps::plain(ways);
        let (mut a, mut b) = ([EMPTY; 32], [EMPTY; 32]);
        for &(line, high, dirty) in trace {
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
        Ok(())
    }
}
