//! The tags of one cache: which line is in which way, and its state.

use super::policy::{self, Policy};
use super::spec::ModelLevel;
use crate::lru::sets::SetIndex;

/// Written since it came in, and newer than what the levels outside have.
pub(super) const DIRTY: u8 = 1;
/// In a first-level cache under MESI: the line is in state E or M, so a write needs no request to
/// others.
pub(super) const OWNED: u8 = 2;
/// With [`OWNED`]: another cache lost the line to a write and has not fetched it since, so written
/// bytes must be recorded.
pub(super) const CONTESTED: u8 = 4;
/// Brought by a prefetcher of this cache and not used yet.
pub(super) const PREFETCHED: u8 = 8;

/// A line that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub line: u64,
    pub flags: u8,
    /// Its valid sectors; 1 where there are none.
    pub sectors: u64,
    /// The note that the observer wants back.
    pub note: u32,
}

/// One cache. A *slot* is set × ways + way.
pub(super) struct Array {
    sets: SetIndex,
    ways: usize,
    /// 2^(40 + l) / `ways`, rounded up, and 40 + l, where 2^l is not less than `ways`: see
    /// [`Array::place`].
    reciprocal: u64,
    shift: u32,
    /// Line number + 1, or 0 for an empty way: memory that was never used needs no pages.
    lines: Vec<u64>,
    flags: Vec<u8>,
    notes: Vec<u32>,
    /// Valid sectors of each line; empty where lines are whole.
    sectors: Vec<u64>,
    policy: Box<dyn Policy>,
    /// Lines that are here.
    held: usize,
    /// The slot used or filled last, and whether it was used since it was filled: no policy changes
    /// its order when the same line is used twice running.
    recent: usize,
    settled: bool,
}

impl Array {
    pub fn new(level: &ModelLevel) -> Array {
        let (sets, ways) = (level.shape.sets(), level.shape.ways as usize);
        let slots = sets as usize * ways;
        debug_assert!(slots < 1 << 40);
        let shift = 40 + ways.next_power_of_two().trailing_zeros();
        Array {
            sets: SetIndex::new(sets),
            ways,
            reciprocal: (1u64 << shift).div_ceil(ways as u64),
            shift,
            lines: vec![0; slots],
            flags: vec![0; slots],
            notes: vec![0; slots],
            sectors: vec![0; if level.sector_bytes.is_some() { slots } else { 0 }],
            policy: policy::new(level.replacement, sets as usize, ways),
            held: 0,
            recent: 0,
            settled: false,
        }
    }

    /// The slot of a line, if it is here.
    #[inline]
    pub fn find(&self, line: u64) -> Option<usize> {
        if self.lines[self.recent] == line + 1 {
            return Some(self.recent);
        }
        let start = self.sets.of(line) * self.ways;
        let way = self.lines[start..start + self.ways].iter().position(|held| *held == line + 1)?;
        Some(start + way)
    }

    /// The line in this slot, known to be `line`, was used.
    #[inline]
    pub fn used(&mut self, slot: usize) {
        if self.recent == slot && self.settled {
            return;
        }
        (self.recent, self.settled) = (slot, true);
        let (set, way) = self.place(slot);
        self.policy.hit(set, way);
    }

    /// Set and way of a slot: a division as in [`SetIndex`], exact for slots below 2^40.
    #[inline]
    fn place(&self, slot: usize) -> (usize, usize) {
        let set = ((slot as u128 * u128::from(self.reciprocal)) >> self.shift) as usize;
        (set, slot - set * self.ways)
    }

    /// Inserts a line that is not here, and returns the slot and the line that made room.
    pub fn insert(&mut self, line: u64, flags: u8, sectors: u64) -> (usize, Option<Left>) {
        let set = self.sets.of(line);
        let start = set * self.ways;
        let empty = self.lines[start..start + self.ways].iter().position(|held| *held == 0);
        let way = empty.unwrap_or_else(|| self.policy.victim(set));
        let slot = start + way;
        let left = self.take(slot);
        self.lines[slot] = line + 1;
        self.held += 1;
        self.flags[slot] = flags;
        if let Some(valid) = self.sectors.get_mut(slot) {
            *valid = sectors;
        }
        self.policy.filled(set, way);
        (self.recent, self.settled) = (slot, false);
        (slot, left)
    }

    /// Empties a slot.
    pub fn take(&mut self, slot: usize) -> Option<Left> {
        let left = self.peek(slot)?;
        self.lines[slot] = 0;
        self.held -= 1;
        Some(left)
    }

    /// Returns the line in a slot.
    pub fn peek(&self, slot: usize) -> Option<Left> {
        let line = self.lines[slot].checked_sub(1)?;
        Some(Left { line, flags: self.flags[slot], sectors: self.sectors(slot), note: self.notes[slot] })
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    #[inline]
    pub fn flags(&mut self, slot: usize) -> &mut u8 {
        &mut self.flags[slot]
    }

    /// Sets the note that the observer wants back when a line leaves.
    #[inline]
    pub fn set_note(&mut self, slot: usize, note: u32) {
        self.notes[slot] = note;
    }

    /// Valid sectors of the line in a slot.
    #[inline]
    pub fn sectors(&self, slot: usize) -> u64 {
        self.sectors.get(slot).copied().unwrap_or(1)
    }

    /// Makes sectors valid.
    pub fn add_sectors(&mut self, slot: usize, sectors: u64) {
        if let Some(valid) = self.sectors.get_mut(slot) {
            *valid |= sectors;
        }
    }

    /// Lines that are here, with their flags.
    pub fn lines_mut(&mut self) -> impl Iterator<Item = (u64, &mut u8)> + '_ {
        let held = self.lines.iter().zip(&mut self.flags);
        held.filter_map(|(line, flags)| Some((line.checked_sub(1)?, flags)))
    }

    /// Lines that are here, with their flags, in the order of their slots.
    pub fn lines(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        let held = self.lines.iter().zip(&self.flags);
        held.filter_map(|(line, flags)| Some((line.checked_sub(1)?, *flags)))
    }
}
