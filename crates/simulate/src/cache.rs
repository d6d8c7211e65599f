//! One set-associative cache with exact least-recently-used replacement.

use crate::pass::{self, Pass, Request, Seen};
use crate::row::{DIRTY, EMPTY, Moved, RowOps};
use crate::sets::SetIndex;
use crate::spec::{LevelSpec, Problem};

/// What a touch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The line was in the cache.
    pub hit: bool,
    /// The line that made room, if one had to.
    pub evicted: Option<Evicted>,
}

/// A line that left a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Its line number.
    pub line: u64,
    /// It was written while it was here.
    pub dirty: bool,
}

/// The rows' memory, aligned so that an 8-way row is one line of the machine we run on.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u64; 8]);

/// Where the rows of a cache with a power of two of sets are, by value.
pub(crate) struct Rows {
    first: *mut u64,
    /// Of a line number, the bits that are its set's number.
    mask: u64,
    stride: usize,
}

impl Rows {
    /// Whether the line is the most recent one of its set, and an access to it changes nothing: it is a read, or the line was
    /// written before.
    ///
    /// # Safety
    /// The cache is there, and nothing refers to its rows.
    #[inline(always)]
    pub unsafe fn is_front(&self, line: u64, is_write: bool) -> bool {
        let dirty = u64::from(is_write);
        // SAFETY: as promised; the set has a row, of at least one entry.
        let front = unsafe { *self.front(line) };
        // To a read it is the same whether the entry is dirty.
        front ^ (line << 1 | dirty) <= DIRTY ^ dirty
    }

    /// [`Cache::touch_front`].
    ///
    /// # Safety
    /// As of [`Rows::is_front`].
    #[inline(always)]
    pub unsafe fn touch_front(&self, line: u64, is_write: bool) -> bool {
        // SAFETY: as promised; the set has a row.
        unsafe { touch_front(self.front(line), line, is_write) }
    }

    /// Whether the line is the second of its set; it is the first then. Two lines of a set that are used in turn are common, and to
    /// move the whole row for them is more than this.
    ///
    /// # Safety
    /// As of [`Rows::is_front`].
    #[inline(always)]
    pub unsafe fn swap_front(&self, line: u64, is_write: bool) -> bool {
        // SAFETY: as promised; the set has a row, of at least two entries.
        let [first, second] = unsafe { &mut *self.front(line).cast::<[u64; 2]>() };
        if *second >> 1 != line {
            return false;
        }
        (*first, *second) = (*second | u64::from(is_write), *first);
        true
    }

    /// The first entry of the line's row.
    #[inline(always)]
    fn front(&self, line: u64) -> *mut u64 {
        self.first.wrapping_add((line & self.mask) as usize * self.stride)
    }
}

/// # Safety
/// `row` points to a row, which has at least one entry, and nothing else refers to it.
#[inline(always)]
unsafe fn touch_front(row: *mut u64, line: u64, is_write: bool) -> bool {
    // SAFETY: as promised.
    let front = unsafe { &mut *row };
    if *front >> 1 != line {
        return false;
    }
    // Stores only when the mark changes: a row that was just stored to in part stalls a vector load.
    if is_write && *front & DIRTY == 0 {
        *front |= DIRTY;
    }
    true
}

/// One cache. Addressed by *line numbers* (address divided by the line size).
#[derive(Clone)]
pub struct Cache {
    blocks: Vec<Block>,
    sets: SetIndex,
    ways: usize,
    ops: RowOps,
}

impl Cache {
    /// An empty cache of the given shape (`shared_by` plays no part).
    pub fn new(spec: &LevelSpec) -> Result<Cache, Problem> {
        spec.check()?;
        let ways = spec.ways as usize;
        let ops = RowOps::new(ways);
        let entries = spec.sets() as usize * ops.stride;
        let blocks = vec![Block([EMPTY; 8]); entries.div_ceil(8)];
        Ok(Cache { blocks, sets: SetIndex::new(spec.sets()), ways, ops })
    }

    /// Looks the line up, brings it in if it is missing, and makes it the most recent of its set.
    ///
    /// Line numbers are below 2^62, as lines have at least 4 bytes.
    #[inline]
    pub fn touch(&mut self, line: u64, is_write: bool) -> Touch {
        if self.touch_front(line, is_write) {
            return Touch { hit: true, evicted: None };
        }
        let moved = self.move_to_front(line, u64::from(is_write));
        let evicted = (!moved.hit && moved.last != EMPTY)
            .then_some(Evicted { line: moved.last >> 1, dirty: moved.last & DIRTY != 0 });
        Touch { hit: moved.hit, evicted }
    }

    /// Whether the cache holds the line, changing nothing.
    pub fn holds(&self, line: u64) -> bool {
        self.row(line).iter().any(|entry| entry >> 1 == line)
    }

    /// Marks a line that is here as written without making it recent; says whether it was here.
    #[inline]
    pub fn mark_dirty(&mut self, line: u64) -> bool {
        let row = self.row_start(line);
        // SAFETY: `row_start` gives a whole row.
        unsafe { (self.ops.mark_dirty)(row, self.ways, line) }
    }

    /// Lines of the set that `line` belongs to, most recent first, with their dirty marks.
    pub fn set_of(&self, line: u64) -> impl Iterator<Item = Evicted> + '_ {
        let row = self.row(line).iter().take_while(|entry| **entry != EMPTY);
        row.map(|entry| Evicted { line: entry >> 1, dirty: entry & DIRTY != 0 })
    }

    /// The hit path: true if the line is already the most recent of its set.
    #[inline(always)]
    pub(crate) fn touch_front(&mut self, line: u64, is_write: bool) -> bool {
        // SAFETY: nothing else refers to the row.
        unsafe { touch_front(self.row_start(line), line, is_write) }
    }

    /// The general path. `dirty` is [`DIRTY`] or 0.
    #[inline(always)]
    pub(crate) fn move_to_front(&mut self, line: u64, dirty: u64) -> Moved {
        let row = self.row_start(line);
        // SAFETY: `row_start` gives a whole row.
        unsafe { (self.ops.to_front)(row, self.ways, line, dirty) }
    }

    /// The rows, to be asked for their fronts many times. They are this cache's, and to be used only while it is there. `None` if the
    /// number of sets is no power of two.
    pub(crate) fn rows(&mut self) -> Option<Rows> {
        let mask = self.sets.mask()?;
        Some(Rows { first: self.blocks.as_mut_ptr().cast(), mask, stride: self.ops.stride })
    }

    /// The first entry of the line's row. `stride` entries are within `blocks`, because the set is below
    /// the number of sets for which `new` made room.
    #[inline(always)]
    fn row_start(&mut self, line: u64) -> *mut u64 {
        // SAFETY: as said; `Block` is eight `u64` without padding.
        unsafe { self.blocks.as_mut_ptr().cast::<u64>().add(self.sets.of(line) * self.ops.stride) }
    }

    /// Asks the processor we run on for the line's row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, line: u64) {
        let row = self.blocks.as_ptr().cast::<u64>().wrapping_add(self.sets.of(line) * self.ops.stride);
        pass::prefetch(row);
    }

    /// Shows lines ([`Pass::show`]).
    pub(crate) fn show(&mut self, shift: u32, shown: &[Request], seen: &mut Seen) {
        let show = self.ops.show;
        // SAFETY: the rows are as the operations were chosen for, and borrowed.
        unsafe { show(&self.pass(shift), shown, seen) }
    }

    /// Answers requests ([`Pass::answer`]).
    pub(crate) fn answer(&mut self, shift: u32, requests: &[Request], seen: &mut Seen) {
        let answer = self.ops.answer;
        // SAFETY: as above.
        unsafe { answer(&self.pass(shift), requests, seen) }
    }

    fn pass(&mut self, shift: u32) -> Pass {
        let rows = self.blocks.as_mut_ptr().cast();
        Pass { rows, sets: self.sets, ways: self.ways, shift }
    }

    fn row(&self, line: u64) -> &[u64] {
        let start = self.sets.of(line) * self.ops.stride;
        // SAFETY: `Block` is eight `u64` without padding.
        let entries =
            unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast::<u64>(), self.blocks.len() * 8) };
        &entries[start..start + self.ways]
    }
}
