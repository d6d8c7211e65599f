//! A first level that is watched, and its fully associative twin.
//!
//! Most accesses find their line here, and only make it the most recent one. So a line stays in its
//! slot, and a hit records its time and the bytes that it used:
//!
//! ```text
//!   slot     line, written │ bytes used │ time of the last touch │ time that the twin knows of │ record
//!   twin     by time: whose touch it was, and one bit if it is that line's last one as far as the twin knows
//! ```
//! A set drops the line with the lowest time. The twin learns of a line's first touch in an
//! *epoch*, and of its last one when the line is dropped or the epoch ends. An epoch ends before
//! more lines have been touched in it than the twin holds. So the least recent line of the twin,
//! the one it loses, was never touched in the current epoch, and the twin knows the last touches of
//! all earlier epochs. A line that was touched in this epoch is still in the twin, so hits of it
//! need no lookup there.

use crate::lru::row::{DIRTY, EMPTY};
use crate::lru::sets::SetIndex;
use crate::spec::LevelSpec;
use crate::table::{At, Table};
use crate::watch::lru::late_twin::LateTwin;
use crate::watch::records::Place;
use crate::watch::twin::{Before, LOST};

/// The lines of a first level.
#[derive(Clone, Debug)]
pub(crate) struct First {
    pub place: Place,
    sets: SetIndex,
    /// Slots from one set to the next: its ways and, up to a multiple of [`BLOCK`], slots where no
    /// line may be.
    stride: usize,
    /// Indexed by set: the slot that was touched last.
    latest: Vec<u32>,
    slots: Vec<Slot>,
    /// Indexed by slot: the low half of the line, so that a set is compared in one go.
    prints: Vec<u32>,
    twin: LateTwin,
}

/// Slots that are compared together.
const BLOCK: usize = 8;

/// Later than any time.
const NO_WAY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The line, and whether it was written; [`EMPTY`] without one.
    entry: u64,
    used: u64,
    /// When it was touched last; 0 if never, and [`NO_WAY`] where no line may be.
    touched: u32,
    /// The time of its last touch that the twin knows.
    told: u32,
    record: At,
}

/// A line that was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped {
    pub line: u64,
    pub is_written: bool,
    pub record: At,
    /// Bytes of the line that were used since the last call for them.
    pub used: u64,
}

/// The part of a first level that hits need that ask nothing, by value, so that the compiler keeps
/// it in registers.
pub(crate) struct Hits<'f> {
    latest: &'f mut [u32],
    slots: &'f mut [Slot],
    prints: &'f [u32],
    mask: u64,
    stride: usize,
    epoch: u32,
    now: u32,
    end: u32,
    now_after: &'f mut u32,
}

/// The result of [`Hits::hit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    /// All that is to be done.
    Done,
    /// Nothing: the line is not there.
    Missing,
    /// Nothing: more than a hit needs is to be done.
    Other,
}

impl Hits<'_> {
    /// An access to a line.
    #[inline(always)]
    pub fn hit(&mut self, line: u64, used: u64, is_write: bool) -> Hit {
        let set = (line & self.mask) as usize;
        let mut slot = self.latest[set] as usize;
        if self.slots[slot].entry >> 1 != line {
            let Some(other) = slot_of(self.prints, self.slots, set * self.stride, self.stride, line) else {
                return Hit::Missing;
            };
            slot = other;
            self.latest[set] = slot as u32;
        }
        let here = &mut self.slots[slot];
        if here.touched < self.epoch || self.now >= self.end {
            return Hit::Other;
        }
        here.entry |= u64::from(is_write);
        here.used |= used;
        here.touched = self.now;
        self.now += 1;
        Hit::Done
    }
}

impl Drop for Hits<'_> {
    fn drop(&mut self) {
        *self.now_after = self.now;
    }
}

/// The slot of a set that has the line.
#[inline(always)]
fn slot_of(prints: &[u32], slots: &[Slot], first: usize, stride: usize, line: u64) -> Option<usize> {
    let set = prints[first..first + stride].as_chunks().0;
    for (number, prints) in set.iter().enumerate() {
        let mut alike = equal(prints, line as u32);
        while alike != 0 {
            let slot = first + BLOCK * number + alike.trailing_zeros() as usize;
            if slots[slot].entry >> 1 == line {
                return Some(slot);
            }
            alike &= alike - 1;
        }
    }
    None
}

/// One bit for each number that is this one.
#[inline(always)]
fn equal(numbers: &[u32; BLOCK], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: every x86-64 processor has SSE2; eight numbers are two vectors, wherever they begin.
        unsafe {
            let (vectors, wanted) = (numbers.as_ptr().cast(), _mm_set1_epi32(wanted as i32));
            let low = _mm_cmpeq_epi32(_mm_loadu_si128(vectors), wanted);
            let high = _mm_cmpeq_epi32(_mm_loadu_si128(vectors.add(1)), wanted);
            let both = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128())) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let bits = numbers.iter().zip(0..).map(|(number, bit)| u32::from(*number == wanted) << bit);
        bits.fold(0, |equal, bit| equal | bit)
    }
}

impl First {
    /// For many hits, if the number of sets is a power of two.
    #[inline]
    pub fn hits(&mut self) -> Option<Hits<'_>> {
        let LateTwin { epoch, now, ref records, .. } = self.twin;
        Some(Hits {
            mask: self.sets.mask()?,
            stride: self.stride,
            epoch,
            now,
            end: records.len() as u32,
            latest: &mut self.latest,
            slots: &mut self.slots,
            prints: &self.prints,
            now_after: &mut self.twin.now,
        })
    }

    /// Empty.
    pub fn new(spec: &LevelSpec, place: Place) -> First {
        let (sets, ways) = (spec.sets() as usize, spec.ways as usize);
        let lines = sets * ways;
        let stride = ways.next_multiple_of(BLOCK);
        let slot = |number: usize| {
            let touched = if number % stride < ways { 0 } else { NO_WAY };
            Slot { entry: EMPTY, used: 0, touched, told: 0, record: 0 }
        };
        // So many that numbering anew costs little.
        let times = (16 * lines).max(1 << 12);
        let start = LOST + 1 + spec.ways;
        let twin = LateTwin {
            capacity: lines as u32,
            held: 0,
            word: place.word,
            records: vec![0; times],
            is_last: vec![0; times / 64 + 1],
            begin: start,
            epoch: start,
            lines: 0,
            now: start,
            start,
        };
        First {
            place,
            sets: SetIndex::new(spec.sets()),
            stride,
            latest: (0..sets).map(|set| (set * stride) as u32).collect(),
            slots: (0..sets * stride).map(slot).collect(),
            prints: vec![0; sets * stride],
            twin,
        }
    }

    /// Returns where a line is.
    #[inline(always)]
    pub fn find(&mut self, line: u64) -> Option<usize> {
        let set = self.sets.of(line);
        let latest = self.latest[set] as usize;
        if self.slots[latest].entry >> 1 == line {
            return Some(latest);
        }
        let slot = slot_of(&self.prints, &self.slots, set * self.stride, self.stride, line)?;
        self.latest[set] = slot as u32;
        Some(slot)
    }

    /// Returns whether a line is here.
    #[inline(always)]
    pub fn holds(&self, line: u64) -> bool {
        let set = self.sets.of(line);
        self.slots[self.latest[set] as usize].entry >> 1 == line
            || slot_of(&self.prints, &self.slots, set * self.stride, self.stride, line).is_some()
    }

    /// A hit; returns whether the twin has lost the line.
    #[inline(always)]
    pub fn hit(&mut self, table: &mut Table, slot: usize, used: u64, is_write: bool) -> bool {
        let here = &mut self.slots[slot];
        here.entry |= u64::from(is_write);
        here.used |= used;
        if here.touched < self.twin.epoch || self.twin.is_late() {
            return self.first_of_epoch(table, slot);
        }
        here.touched = self.twin.now;
        self.twin.now += 1;
        false
    }

    #[inline(never)]
    fn first_of_epoch(&mut self, table: &mut Table, slot: usize) -> bool {
        self.make_time(table);
        let here = &mut self.slots[slot];
        (here.touched, here.told) = (self.twin.now, self.twin.now);
        self.twin.touch(table, here.record) != Before::Held
    }

    /// A miss: makes room in the line's set; returns the slot, and the line that was dropped for
    /// it.
    pub fn drop_one(&mut self, table: &mut Table, line: u64) -> (usize, Option<Dropped>) {
        self.make_time(table);
        let set = self.sets.of(line);
        let slot = self.oldest_of(set * self.stride);
        self.latest[set] = slot as u32;
        let Slot { entry, used, touched, told, record } = self.slots[slot];
        if entry == EMPTY {
            return (slot, None);
        }
        if touched != told {
            self.twin.correct(table, record, told, touched);
        }
        (slot, Some(Dropped { line: entry >> 1, is_written: entry & DIRTY != 0, record, used }))
    }

    /// The slot of a set that was touched longest ago: unused ones are older than all others.
    #[inline(always)]
    fn oldest_of(&self, first: usize) -> usize {
        let (mut slot, mut oldest) = (first, NO_WAY);
        for (number, here) in (first..).zip(&self.slots[first..first + self.stride]) {
            let is_older = here.touched < oldest;
            slot = if is_older { number } else { slot };
            oldest = if is_older { here.touched } else { oldest };
        }
        slot
    }

    /// Puts the missed line into the slot; returns the line's state in the twin. None of its bytes
    /// are used yet.
    pub fn fill(&mut self, table: &mut Table, slot: usize, line: u64, record: At, is_write: bool) -> Before {
        let now = self.twin.now;
        let entry = line << 1 | if is_write { DIRTY } else { 0 };
        self.prints[slot] = line as u32;
        self.slots[slot] = Slot { entry, used: 0, touched: now, told: now, record };
        self.twin.touch(table, record)
    }

    /// Returns whether a slot has a line, and hits of it ask nothing: it was touched in this epoch.
    #[inline(always)]
    pub fn is_calm(&self, slot: usize, line: u64) -> bool {
        let here = &self.slots[slot];
        here.entry >> 1 == line && here.touched >= self.twin.epoch
    }

    /// The slot of a set that was touched last, where a line of the set is that has just come in.
    #[inline(always)]
    pub fn latest_of(&self, line: u64) -> usize {
        self.latest[self.sets.of(line)] as usize
    }

    /// The first slot of a line's set.
    #[inline(always)]
    pub fn begin_of(&self, line: u64) -> usize {
        self.sets.of(line) * self.stride
    }

    /// Slots from one set to the next.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns whether a line that comes in now ends the epoch.
    #[inline(always)]
    pub fn is_at_end(&self) -> bool {
        self.twin.lines >= self.twin.capacity || self.twin.is_late()
    }

    /// Records deferred hits: the bytes that they used, and the time of the last one.
    #[inline(always)]
    pub fn add_hits(&mut self, slot: usize, used: u64, is_write: bool, time: u32) {
        let here = &mut self.slots[slot];
        here.entry |= u64::from(is_write);
        here.used |= used;
        here.touched = here.touched.max(time);
    }

    /// The time of the next touch.
    #[inline(always)]
    pub fn now(&self) -> u32 {
        self.twin.now
    }

    /// Advances the time by a number of deferred hits, up to the [end](First::end).
    #[inline(always)]
    pub fn set_now(&mut self, now: u32) {
        debug_assert!((self.twin.now..=self.end()).contains(&now));
        self.twin.now = now;
    }

    /// When times are used up.
    #[inline(always)]
    pub fn end(&self) -> u32 {
        self.twin.records.len() as u32
    }

    /// Ends the epoch, and numbers touches anew.
    pub fn renew(&mut self, table: &mut Table) {
        self.twin.now = self.end();
        self.make_time(table);
    }

    /// Bytes of the line in a slot are used.
    pub fn add_used(&mut self, slot: usize, used: u64) {
        self.slots[slot].used |= used;
    }

    /// Returns the bytes of a line that were used since the last call for them, and the line's
    /// record.
    pub fn take_used(&mut self, line: u64) -> Option<(At, u64)> {
        let first = self.sets.of(line) * self.stride;
        let slot = slot_of(&self.prints, &self.slots, first, self.stride, line)?;
        let here = &mut self.slots[slot];
        Some((here.record, std::mem::take(&mut here.used)))
    }

    /// The same of all lines.
    pub fn take_all_used(&mut self) -> Vec<(u64, At, u64)> {
        let all = self.slots.iter_mut().filter(|slot| slot.entry != EMPTY);
        all.map(|slot| (slot.entry >> 1, slot.record, std::mem::take(&mut slot.used))).collect()
    }

    /// Ends the epoch if it has as many lines as it may have, and renumbers touches if it is time
    /// to. Called before a touch.
    fn make_time(&mut self, table: &mut Table) {
        if !self.is_at_end() {
            self.twin.lines += 1;
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.touched != slot.told && slot.entry != EMPTY) {
            self.twin.correct(table, slot.record, slot.told, slot.touched);
            slot.told = slot.touched;
        }
        if self.twin.is_late() {
            self.renumber(table);
        }
        (self.twin.epoch, self.twin.lines) = (self.twin.now, 1);
    }

    #[cold]
    #[inline(never)]
    fn renumber(&mut self, table: &mut Table) {
        self.twin.renumber(table);
        for set in self.slots.chunks_mut(self.stride) {
            let mut lost: Vec<&mut Slot> = Vec::new();
            for slot in set.iter_mut().filter(|slot| slot.entry != EMPTY) {
                let time = self.twin.last_touch(table, slot.record);
                match time < self.twin.start {
                    true => lost.push(slot),
                    false => (slot.touched, slot.told) = (time, time),
                }
            }
            // Of these the set alone knows the order.
            lost.sort_unstable_by_key(|slot| slot.touched);
            for (time, slot) in (LOST + 1..).zip(lost) {
                (slot.touched, slot.told) = (time, time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Touches a line in a list, the most recent last; returns whether the line was in it, and the
    /// line that was dropped.
    fn touch_list(list: &mut Vec<u64>, most: usize, line: u64) -> (bool, Option<u64>) {
        let place = list.iter().rposition(|held| *held == line);
        if let Some(place) = place {
            list.remove(place);
        }
        list.push(line);
        (place.is_some(), (list.len() > most).then(|| list.remove(0)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Long enough to number anew several times.
        #[test]
        fn equals_lists(sets in 1usize..9, ways in 1usize..12, lines in 1u64..150, calm in 0u64..200, seed in any::<u64>()) {
            let spec = LevelSpec { bytes: (64 * sets * ways) as u64, ways: ways as u32, line_bytes: 64, shared_by: 1 };
            let place = Place { table: 0, word: 1, first_word: 1, has_next: false };
            let (mut table, mut first) = (Table::new(3), First::new(&spec, place));
            let mut lists = vec![Vec::new(); sets];
            let mut twin = Vec::new();
            let mut seen = std::collections::HashMap::new();
            let (mut random, mut center) = (seed | 1, 0);
            for number in 0..120_000u64 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Mostly a few lines, now and then others.
                center = if (random >> 20) % (calm + 1) == 0 { random >> 33 } else { center };
                let line = (center + ((random >> 40) & 7)) % lines;
                let (hit, dropped) = touch_list(&mut lists[line as usize % sets], ways, line);
                let (held, _) = touch_list(&mut twin, sets * ways, line);
                let used = 1 << (number % 64);
                let quick = number % 3 != 0 && first.hits().is_some_and(|mut hits| hits.hit(line, used, false) == Hit::Done);
                if quick {
                    prop_assert!(hit && held, "what asks nothing is in both");
                } else if let Some(slot) = first.find(line) {
                    prop_assert!(hit);
                    prop_assert_eq!(first.hit(&mut table, slot, used, false), !held);
                } else {
                    prop_assert!(!hit);
                    let record = table.find(line);
                    let (slot, gone) = first.drop_one(&mut table, line);
                    prop_assert_eq!(gone.map(|gone| gone.line), dropped);
                    if let Some(gone) = gone {
                        prop_assert_eq!(table.key(gone.record), gone.line);
                        prop_assert_eq!(Some(gone.used), seen.insert(gone.line, 0));
                    }
                    let before = first.fill(&mut table, slot, line, record, false);
                    first.add_used(slot, used);
                    let expected = match (seen.contains_key(&line), held) {
                        (false, _) => Before::Never,
                        (true, false) => Before::Lost,
                        (true, true) => Before::Held,
                    };
                    prop_assert_eq!(before, expected);
                }
                *seen.entry(line).or_default() |= used;
            }
        }
    }
}
