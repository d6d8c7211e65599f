//! One set as a row of entries, most recently used first.
//!
//! ```text
//!   bit 63 or 31 …………………… 1   0
//!      | tag                | dirty |        unused ways hold EMPTY and stand behind the used ones
//! ```
//!
//! The tag identifies a line in its set: in a wide entry it is the line's number, in a narrow one
//! that number divided by the number of sets, less one. Narrow rows are half as long, which matters
//! where rows do not fit into the caches of the host. With 1024 sets of 64 bytes they have tags for
//! all addresses of a program (47 bits) except the lowest 64 KiB, which systems leave unmapped.
//!
//! A touch moves its entry to the front. The position of an entry is its LRU rank, so there are no
//! counters or stamps to keep, and the way to evict is always the last. A miss is the same move
//! with the last entry falling out, which lets hit and miss share one branch-free body in the
//! vector form.

use std::marker::PhantomData;

use crate::lru::many_lines::{Pass, Request, Seen};
use crate::lru::sets::Sets;

/// Defines `Vectors<N>`, rows of N vectors of some entries each, moved by the functions `shift` and
/// `mark` beside it, and `of`, their operations. It is a macro since those functions are compiled for
/// a processor's features, which no type parameter carries.
#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($entry:ty, $entries:literal, $passes:ident) => {
        /// Rows of `VECTORS` vectors.
        struct Vectors<const VECTORS: usize>;

        impl<const VECTORS: usize> Row for Vectors<VECTORS> {
            type Entry = $entry;

            #[inline(always)]
            fn stride(_ways: usize) -> usize {
                $entries * VECTORS
            }

            #[inline(always)]
            unsafe fn to_front(row: *mut $entry, ways: usize, tag: u64, dirty: u64) -> Moved {
                // SAFETY: the caller's promise.
                unsafe { shift::<VECTORS>(row, ways, tag, dirty) }
            }

            #[inline(always)]
            unsafe fn mark_dirty(row: *mut $entry, ways: usize, tag: u64) -> bool {
                // SAFETY: the caller's promise.
                unsafe { mark::<VECTORS>(row, ways, tag) }
            }
        }

        fn of<const VECTORS: usize>() -> RowOps<$entry> {
            RowOps {
                stride: Vectors::<VECTORS>::stride(0),
                to_front: shift::<VECTORS>,
                mark_dirty: mark::<VECTORS>,
                show: super::$passes::show::<Vectors<VECTORS>>,
                answer: super::$passes::answer::<Vectors<VECTORS>>,
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_narrow;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_narrow;

/// An unused way, if wide. Its line number, 2^63 − 1, belongs to no address: lines have at least 4
/// bytes.
pub(crate) const EMPTY: u64 = u64::MAX - 1;

/// The entry was written since it came in.
pub(crate) const DIRTY: u64 = 1;

/// A way of a set.
pub(crate) trait Entry: Copy + Eq + 'static {
    /// An unused one.
    const EMPTY: Self;
    /// A tag, and [`DIRTY`] or 0.
    fn new(tag: u64, dirty: u64) -> Self;

    /// Tag and mark, as of a wide entry.
    fn bits(self) -> u64;

    /// The set of a line, and its tag.
    fn split(line: u64, sets: impl Sets) -> (usize, u64);

    /// The line that has this tag in a set.
    fn join(set: usize, tag: u64, sets: impl Sets) -> u64;

    /// Returns whether a line has a tag in a cache with this number of sets.
    fn has_tag(line: u64, sets: u64) -> bool;

    /// The fastest operations for this many ways on this processor.
    fn ops(ways: usize) -> RowOps<Self>;
}

/// A wide entry.
impl Entry for u64 {
    const EMPTY: u64 = EMPTY;

    #[inline(always)]
    fn new(tag: u64, dirty: u64) -> u64 {
        tag << 1 | dirty
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn split(line: u64, sets: impl Sets) -> (usize, u64) {
        (sets.split(line).0, line)
    }

    #[inline(always)]
    fn join(_set: usize, tag: u64, _sets: impl Sets) -> u64 {
        tag
    }

    #[inline(always)]
    fn has_tag(_line: u64, _sets: u64) -> bool {
        true
    }

    fn ops(ways: usize) -> RowOps<u64> {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = avx512::ops(ways).or_else(|| avx2::ops(ways)) {
            return ops;
        }
        RowOps::plain(ways)
    }
}

/// A narrow entry.
impl Entry for u32 {
    const EMPTY: u32 = u32::MAX - 1;

    #[inline(always)]
    fn new(tag: u64, dirty: u64) -> u32 {
        (tag << 1 | dirty) as u32
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        self.into()
    }

    #[inline(always)]
    fn split(line: u64, sets: impl Sets) -> (usize, u64) {
        let (set, quotient) = sets.split(line);
        (set, quotient.wrapping_sub(1))
    }

    #[inline(always)]
    fn join(set: usize, tag: u64, sets: impl Sets) -> u64 {
        sets.join(set, tag + 1)
    }

    #[inline(always)]
    fn has_tag(line: u64, sets: u64) -> bool {
        // The first tag is that of the second line of a set.
        line.wrapping_sub(sets) < u64::from(u32::EMPTY >> 1).saturating_mul(sets)
    }

    fn ops(ways: usize) -> RowOps<u32> {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = avx512_narrow::ops(ways).or_else(|| avx2_narrow::ops(ways)) {
            return ops;
        }
        RowOps::plain(ways)
    }
}

/// Result of a move to the front.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    /// The line was there.
    pub hit: bool,
    /// On a miss, the [bits](Entry::bits) of the entry that was evicted, perhaps those of
    /// [`Entry::EMPTY`]. On a hit, the bits of any entry.
    pub last: u64,
}

/// Rows of one width, moved with the instructions of one processor.
pub(crate) trait Row {
    /// The type of their entries.
    type Entry: Entry;

    /// Entries from one row to the next, at least two; those from `ways` on are [`Entry::EMPTY`].
    fn stride(ways: usize) -> usize;

    /// Moves the line with a tag to the front of the row and marks it dirty if `dirty` is [`DIRTY`]
    /// rather than 0.
    ///
    /// # Safety
    /// `row` points to a row of `ways` ways, readable and writable, and the processor has the
    /// instructions.
    unsafe fn to_front(row: *mut Self::Entry, ways: usize, tag: u64, dirty: u64) -> Moved;

    /// Marks the line with a tag dirty where it stands; false if it is not in the row.
    ///
    /// # Safety
    /// As of [`Row::to_front`].
    unsafe fn mark_dirty(row: *mut Self::Entry, ways: usize, tag: u64) -> bool;
}

/// Operations on rows of a given number of ways, one by one or in a pass over many
/// ([`crate::lru::many_lines`]).
///
/// They are chosen once per cache. A call through a pointer costs less here than compiling
/// everything around it for each width and each instruction set. A pass over many rows is one call.
#[derive(Clone, Copy)]
pub(crate) struct RowOps<E: Entry> {
    /// [`Row::stride`].
    pub stride: usize,
    /// [`Row::to_front`].
    pub to_front: unsafe fn(*mut E, usize, u64, u64) -> Moved,
    /// [`Row::mark_dirty`].
    pub mark_dirty: unsafe fn(*mut E, usize, u64) -> bool,
    /// [`Pass::show`].
    pub show: unsafe fn(&Pass<E>, &[Request], &mut Seen),
    /// [`Pass::answer`].
    pub answer: unsafe fn(&Pass<E>, &[Request], &mut Seen),
}

impl<E: Entry> RowOps<E> {
    /// Plain Rust for every processor and any number of ways.
    fn plain(ways: usize) -> RowOps<E> {
        RowOps {
            stride: Plain::<E>::stride(ways),
            to_front: Plain::to_front,
            mark_dirty: Plain::mark_dirty,
            show: Pass::show::<Plain<E>>,
            answer: Pass::answer::<Plain<E>>,
        }
    }
}

/// Rows in plain Rust.
struct Plain<E>(PhantomData<E>);

impl<E: Entry> Row for Plain<E> {
    type Entry = E;

    fn stride(ways: usize) -> usize {
        ways.max(2)
    }

    unsafe fn to_front(row: *mut E, ways: usize, tag: u64, dirty: u64) -> Moved {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(row, ways) };
        let mut carry = E::new(tag, dirty);
        for way in 0..ways {
            let here = std::mem::replace(&mut row[way], carry);
            if here.bits() >> 1 == tag {
                row[0] = E::new(tag, dirty | here.bits() & DIRTY);
                return Moved { hit: true, last: E::EMPTY.bits() };
            }
            carry = here;
        }
        Moved { hit: false, last: carry.bits() }
    }

    unsafe fn mark_dirty(row: *mut E, ways: usize, tag: u64) -> bool {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(row, ways) };
        let entry = row.iter_mut().find(|entry| entry.bits() >> 1 == tag);
        entry.map(|entry| *entry = E::new(tag, DIRTY)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Vector forms equal the plain form for every width they handle.
        #[cfg(target_arch = "x86_64")]
        #[test]
        fn vectors_move_like_plain_code(
            ways in 1usize..=32,
            trace in prop::collection::vec((0u64..50, any::<bool>(), any::<bool>()), 1..300),
        ) {
            for vectors in [avx2::ops(ways), avx512::ops(ways)].into_iter().flatten() {
                moves_like_plain_code(&vectors, ways, (1 << 62) - 1, &trace)?;
            }
            for vectors in [avx2_narrow::ops(ways), avx512_narrow::ops(ways)].into_iter().flatten() {
                moves_like_plain_code(&vectors, ways, u64::from(u32::EMPTY >> 1) - 2, &trace)?;
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn moves_like_plain_code<E: Entry + std::fmt::Debug>(
        vectors: &RowOps<E>,
        ways: usize,
        highest: u64,
        trace: &[(u64, bool, bool)],
    ) -> Result<(), TestCaseError> {
        let plain = RowOps::<E>::plain(ways);
        let (mut a, mut b) = ([E::EMPTY; 32], [E::EMPTY; 32]);
        for &(tag, high, dirty) in trace {
            let tag = if high { highest - tag } else { tag };
            let dirty = u64::from(dirty);
            // SAFETY: both rows have room for the widest stride.
            let (moved_a, moved_b) = unsafe {
                (
                    (plain.to_front)(a.as_mut_ptr(), ways, tag, dirty),
                    (vectors.to_front)(b.as_mut_ptr(), ways, tag, dirty),
                )
            };
            prop_assert_eq!((moved_a.hit, a), (moved_b.hit, b));
            prop_assert!(moved_a.hit || moved_a.last == moved_b.last);
            let largest = E::new(u64::MAX, DIRTY).bits();
            prop_assert!(moved_a.last <= largest && moved_b.last <= largest);
            let other = tag ^ 1;
            // SAFETY: as above.
            let (marked_a, marked_b) = unsafe {
                (
                    (plain.mark_dirty)(a.as_mut_ptr(), ways, other),
                    (vectors.mark_dirty)(b.as_mut_ptr(), ways, other),
                )
            };
            prop_assert_eq!((marked_a, a), (marked_b, b));
            prop_assert!(b[ways..].iter().all(|entry| *entry == E::EMPTY));
        }
        Ok(())
    }
}
