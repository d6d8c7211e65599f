//! The rows of a cache.

use crate::lru::many_lines::{self, Pass, Request, Seen};
use crate::lru::row::{EMPTY, Entry, Moved, RowOps};
use crate::lru::sets::SetIndex;

/// The rows' memory, aligned so that a row of eight wide entries, or of sixteen narrow ones, is one
/// line of the machine we run on.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u64; 8]);

/// Rows of entries of one kind, for lines that have such entries ([`Array::has_entry`]).
#[derive(Clone)]
pub(crate) struct Array<E: Entry> {
    blocks: Vec<Block>,
    sets: SetIndex,
    ways: usize,
    ops: RowOps<E>,
}

impl<E: Entry> Array<E> {
    /// Without lines.
    pub fn new(sets: SetIndex, ways: usize) -> Array<E> {
        let ops = E::ops(ways);
        let bytes = sets.count() as usize * ops.stride * size_of::<E>();
        let blocks = vec![Block([0; 8]); bytes.div_ceil(size_of::<Block>())];
        let mut empty = Array { blocks, sets, ways, ops };
        empty.entries_mut().fill(E::EMPTY);
        empty
    }

    /// The same lines in entries of another kind, which they must have.
    pub fn to_entries<F: Entry>(&self) -> Array<F> {
        let mut other = Array::<F>::new(self.sets, self.ways);
        let (from, to) = (self.ops.stride, other.ops.stride);
        let rows = self.entries().chunks_exact(from).zip(other.entries_mut().chunks_exact_mut(to));
        for (set, (row, copy)) in rows.take(self.sets.count() as usize).enumerate() {
            for (entry, copy) in row.iter().zip(copy).take_while(|(entry, _)| **entry != E::EMPTY) {
                let line = E::join(set, entry.bits() >> 1, self.sets);
                *copy = F::new(F::split(line, self.sets).1, entry.bits() & 1);
            }
        }
        other
    }

    /// The sets.
    pub fn sets(&self) -> SetIndex {
        self.sets
    }

    /// Returns whether the line has an entry of this kind.
    #[inline(always)]
    pub fn has_entry(&self, line: u64) -> bool {
        E::has_tag(line, self.sets.count())
    }

    /// Entries from one row to the next.
    pub fn stride(&self) -> usize {
        self.ops.stride
    }

    /// The first entry of the first row.
    #[inline(always)]
    pub fn first(&mut self) -> *mut E {
        self.blocks.as_mut_ptr().cast()
    }

    /// The row of the line's set, and the line's tag. `stride` entries are within `blocks`, because
    /// the set is below the number of sets for which `new` made room.
    #[inline(always)]
    pub fn row_start(&mut self, line: u64) -> (*mut E, u64) {
        let (set, tag) = E::split(line, self.sets);
        (self.first().wrapping_add(set * self.ops.stride), tag)
    }

    /// Makes the line the most recent one of its set. On a miss, the last entry is as that of a
    /// wide row.
    #[inline(always)]
    pub fn move_to_front(&mut self, line: u64, dirty: u64) -> Moved {
        let (row, tag) = self.row_start(line);
        // SAFETY: `row_start` gives a whole row.
        let moved = unsafe { (self.ops.to_front)(row, self.ways, tag, dirty) };
        let last = match moved.last == E::EMPTY.bits() {
            true => EMPTY,
            false => E::join(E::split(line, self.sets).0, moved.last >> 1, self.sets) << 1 | moved.last & 1,
        };
        Moved { last, ..moved }
    }

    /// Marks a line as written, without making it recent; returns whether it was here.
    #[inline]
    pub fn mark_dirty(&mut self, line: u64) -> bool {
        let (row, tag) = self.row_start(line);
        // SAFETY: `row_start` gives a whole row.
        unsafe { (self.ops.mark_dirty)(row, self.ways, tag) }
    }

    /// The row of a line's set.
    #[inline(always)]
    pub fn row_of(&self, line: u64) -> &[E] {
        let (set, _) = E::split(line, self.sets);
        let row = self.blocks.as_ptr().cast::<E>().wrapping_add(set * self.ops.stride);
        // SAFETY: the set is below the number of sets, for which `new` made room; a row has as many entries as ways, or more.
        unsafe { std::slice::from_raw_parts(row, self.ways) }
    }

    /// The lines of a line's set, most recent first, and whether they were written.
    pub fn set_of(&self, line: u64) -> impl Iterator<Item = (u64, bool)> + '_ {
        let (set, _) = E::split(line, self.sets);
        let lines =
            self.row_of(line).iter().take_while(|entry| **entry != E::EMPTY).map(|entry| entry.bits());
        lines.map(move |bits| (E::join(set, bits >> 1, self.sets), bits & 1 != 0))
    }

    /// Prefetches the line's row.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        let (set, _) = E::split(line, self.sets);
        let row = self.blocks.as_ptr().cast::<E>().wrapping_add(set * self.ops.stride);
        many_lines::prefetch(row, self.ops.stride * size_of::<E>());
    }

    /// Shows lines ([`Pass::show`]).
    pub fn show(&mut self, shift: u32, shown: &[Request], seen: &mut Seen) {
        let show = self.ops.show;
        // SAFETY: the rows are as the operations were chosen for, and borrowed.
        unsafe { show(&self.pass(shift), shown, seen) }
    }

    /// Serves requests ([`Pass::answer`]).
    pub fn answer(&mut self, shift: u32, requests: &[Request], seen: &mut Seen) {
        let answer = self.ops.answer;
        // SAFETY: as above.
        unsafe { answer(&self.pass(shift), requests, seen) }
    }

    fn pass(&mut self, shift: u32) -> Pass<E> {
        Pass { rows: self.first(), sets: self.sets, ways: self.ways, shift }
    }

    fn entries(&self) -> &[E] {
        // SAFETY: a block is words without padding, any part of which is an entry.
        unsafe { self.blocks.align_to().1 }
    }

    /// All entries, of rows and between them.
    pub fn entries_mut(&mut self) -> &mut [E] {
        // SAFETY: as above; any entry may stand in them.
        unsafe { self.blocks.align_to_mut().1 }
    }
}
