//! One set-associative cache with exact least-recently-used replacement.

use crate::lru::array::Array;
use crate::lru::many_lines::{Request, Seen};
use crate::lru::residencies::MARK;
use crate::lru::row::{DIRTY, EMPTY, Moved};
use crate::lru::sets::SetIndex;
use crate::spec::{LevelSpec, Problem};

/// The result of a touch.
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

/// The rows of a cache with wide entries and a power of two of sets, by value.
pub(crate) struct Rows {
    first: *mut u64,
    /// The bits of a line number that are its set's number.
    mask: u64,
    stride: usize,
}

impl Rows {
    /// Returns whether the line is the most recent one of its set, and an access to it changes
    /// nothing: it is a read, or the line was written before.
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

    /// Returns whether the line was the second of its set, and makes it the first. Two lines of a
    /// set that are used alternately are common, and swapping them costs less than moving the whole
    /// row.
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

/// One cache. Addressed by *line numbers* (address divided by the line size), which are below 2^62,
/// as lines have at least 4 bytes.
#[derive(Clone)]
pub struct Cache {
    array: Form,
}

#[derive(Clone)]
enum Form {
    Wide(Array<u64>),
    /// Until a line comes that has no narrow entry.
    Narrow(Array<u32>),
}

impl Cache {
    /// An empty cache of the given shape (`shared_by` plays no part).
    pub fn new(spec: &LevelSpec) -> Result<Cache, Problem> {
        spec.check()?;
        Ok(Cache { array: Form::Narrow(Array::new(SetIndex::new(spec.sets()), spec.ways as usize)) })
    }

    /// The same for a small cache that is looked up often: the work for each access does not depend
    /// on the size of entries.
    pub(crate) fn of_wide(spec: &LevelSpec) -> Result<Cache, Problem> {
        spec.check()?;
        Ok(Cache { array: Form::Wide(Array::new(SetIndex::new(spec.sets()), spec.ways as usize)) })
    }

    /// Looks the line up, brings it in if it is missing, and makes it the most recent of its set.
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

    /// Returns whether the cache holds the line, changing nothing.
    pub fn holds(&self, line: u64) -> bool {
        self.set_of(line).any(|held| held.line == line)
    }

    /// Marks a line as written, without making it recent; returns whether it was here.
    #[inline]
    pub fn mark_dirty(&mut self, line: u64) -> bool {
        match &mut self.array {
            Form::Wide(array) => array.mark_dirty(line),
            Form::Narrow(array) => array.has_entry(line) && array.mark_dirty(line),
        }
    }

    /// Lines of the set that `line` belongs to, most recent first, with their dirty marks.
    pub fn set_of(&self, line: u64) -> impl Iterator<Item = Evicted> + '_ {
        let (wide, narrow) = match &self.array {
            Form::Wide(array) => (Some(array.set_of(line)), None),
            Form::Narrow(array) => (None, Some(array.set_of(line))),
        };
        let lines = wide.into_iter().flatten().chain(narrow.into_iter().flatten());
        lines.map(|(line, dirty)| Evicted { line, dirty })
    }

    /// The hit path: true if the line is known to be the most recent of its set.
    #[inline(always)]
    pub(crate) fn touch_front(&mut self, line: u64, is_write: bool) -> bool {
        match &mut self.array {
            // SAFETY: nothing else refers to the row.
            Form::Wide(array) => unsafe { touch_front(array.row_start(line).0, line, is_write) },
            Form::Narrow(_) => false,
        }
    }

    /// The general path. `dirty` is [`DIRTY`] or 0; the last entry is as that of a wide row.
    #[inline(always)]
    pub(crate) fn move_to_front(&mut self, line: u64, dirty: u64) -> Moved {
        self.make_room(line);
        match &mut self.array {
            Form::Wide(array) => array.move_to_front(line, dirty),
            Form::Narrow(array) => array.move_to_front(line, dirty),
        }
    }

    /// The rows, for many lookups of their fronts. They belong to this cache, and must not be used
    /// after it. `None` if the number of sets is no power of two, or entries are narrow.
    pub(crate) fn rows(&mut self) -> Option<Rows> {
        let Form::Wide(array) = &mut self.array else { return None };
        let mask = array.sets().mask()?;
        Some(Rows { first: array.first(), mask, stride: array.stride() })
    }

    /// [`Cache::holds`] for a cache that is looked up often.
    #[inline(always)]
    pub(crate) fn has(&self, line: u64) -> bool {
        match &self.array {
            Form::Wide(array) => array.row_of(line).iter().any(|&entry| entry >> 1 == line),
            Form::Narrow(_) => self.holds(line),
        }
    }

    /// Marks the most recent line of its set as one that is followed, or no more ([`MARK`]). Only
    /// of wide entries.
    pub(crate) fn mark_front(&mut self, line: u64, is_marked: bool) {
        if let Form::Wide(array) = &mut self.array {
            let (row, _) = array.row_start(line);
            // SAFETY: nothing else refers to the row, which has an entry.
            let front = unsafe { &mut *row };
            *front = *front & !(MARK << 1) | if is_marked { MARK << 1 } else { 0 };
        }
    }

    /// Takes the mark from lines that are not to keep it. Only of wide entries.
    pub(crate) fn unmark(&mut self, keeps: impl Fn(u64) -> bool) {
        if let Form::Wide(array) = &mut self.array {
            for entry in array.entries_mut().iter_mut().filter(|entry| **entry != EMPTY) {
                let line = (*entry >> 1) & !MARK;
                if *entry & MARK << 1 != 0 && !keeps(line) {
                    *entry &= !(MARK << 1);
                }
            }
        }
    }

    /// Prefetches the line's row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, line: u64) {
        match &self.array {
            Form::Wide(array) => array.prefetch(line),
            Form::Narrow(array) => array.prefetch(line),
        }
    }

    /// Shows lines ([`Pass::show`](crate::lru::many_lines::Pass::show)).
    pub(crate) fn show(&mut self, shift: u32, shown: &[Request], seen: &mut Seen) {
        self.make_room_for(shift, shown);
        match &mut self.array {
            Form::Wide(array) => array.show(shift, shown, seen),
            Form::Narrow(array) => array.show(shift, shown, seen),
        }
    }

    /// Serves requests ([`Pass::answer`](crate::lru::many_lines::Pass::answer)).
    pub(crate) fn answer(&mut self, shift: u32, requests: &[Request], seen: &mut Seen) {
        self.make_room_for(shift, requests);
        match &mut self.array {
            Form::Wide(array) => array.answer(shift, requests, seen),
            Form::Narrow(array) => array.answer(shift, requests, seen),
        }
    }

    /// Makes entries wide if a line needs it.
    #[inline(always)]
    fn make_room(&mut self, line: u64) {
        if let Form::Narrow(array) = &self.array
            && !array.has_entry(line)
        {
            self.widen();
        }
    }

    /// The same for many lines.
    fn make_room_for(&mut self, shift: u32, requests: &[Request]) {
        if let Form::Narrow(array) = &self.array
            && !requests.iter().all(|request| array.has_entry(request.address >> shift))
        {
            self.widen();
        }
    }

    #[cold]
    #[inline(never)]
    fn widen(&mut self) {
        if let Form::Narrow(array) = &self.array {
            self.array = Form::Wide(array.to_entries());
        }
    }
}
