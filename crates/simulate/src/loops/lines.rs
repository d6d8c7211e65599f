//! A loop's accesses through watched caches.
//!
//! ```text
//!   turn          0     1     2     3     4        an access looks for its line when it comes to it (?); what it does there is
//!   one           ?     ·     ·     ·     ?        written down when it leaves it, or when somebody asks
//!   another       ?     ?     ?     ?     ?
//! ```
//! A hit of a line that the twin of the first level knows to have been touched in this epoch asks nothing and changes nothing but when
//! the line was touched, and what was used of it. So such hits are *deferred*. Who asks are a miss, for the times of the lines in its
//! set; an outer cache that drops a line, for what was used of it; and the end of an epoch, for all. Times are those that the accesses
//! would have one by one, as far as their order goes, so whatever is written down later is as it would be.

use crate::loops::Strided;
use crate::mem_ref::MemRef;
use crate::watch::lru::WatchedLru;
use crate::watch::lru::first_level::First;
use crate::watch::watched::Miss;
use crate::watch::watcher::{Level, Watcher};

/// Lines, or turns if these go farther, between a miss and the line whose place in the index is fetched, whose record is, and for
/// which the records of lines that will have to go are.
const AHEAD: [u64; 3] = [6, 4, 2];

/// Hits of a loop that are not written down yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deferred {
    strides: Vec<Strided>,
    /// Indexed by stride, where it is, and the slot of its line if that is known.
    here: Vec<Here>,
    slots: Vec<u32>,
    /// The first level that they hit.
    first: usize,
    /// The access to come: all that is before it is done.
    turn: u64,
    stride: usize,
    /// When an access is, or would be; and the first turn that is not all before times end.
    since: Since,
    end: u64,
    /// Times of an access.
    each: u64,
}

/// The position of one of the accesses.
#[derive(Clone, Copy, Debug)]
struct Here {
    /// The first turn of those that are not written down.
    from: u64,
    /// The first turn in which it is to look for its line.
    until: u64,
}

/// No slot has this number.
const NOWHERE: u32 = u32::MAX;

/// An access, and a time that is its.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    turn: u64,
    stride: usize,
    time: u32,
}

impl Deferred {
    /// When an access is that comes at `since` or later.
    #[inline(always)]
    fn time(&self, turn: u64, stride: usize) -> u32 {
        let accesses = (turn - self.since.turn) * self.strides.len() as u64 + stride as u64;
        self.since.time + (self.each * (accesses - self.since.stride as u64)) as u32
    }

    /// The turn of a stride that comes next.
    #[inline(always)]
    fn next_of(&self, stride: usize) -> u64 {
        self.turn + u64::from(stride < self.stride)
    }

    /// All of them.
    pub fn write_down(&mut self, first: &mut First, level: &Level) {
        for stride in 0..self.here.len() {
            self.write_down_one(first, level, stride);
        }
    }

    /// All, if one of them is of a line in the set whose slots begin at `begin`.
    #[inline(always)]
    fn write_down_set(&mut self, first: &mut First, level: &Level, begin: usize) {
        let is_in = |slot: u32| slot.wrapping_sub(begin as u32) < first.stride() as u32;
        // Most often none is, and a loop without branches sees that for several at a time.
        if self.slots.iter().fold(false, |any, &slot| any | is_in(slot)) {
            self.write_down(first, level);
        }
    }

    #[inline(always)]
    fn write_down_one(&mut self, first: &mut First, level: &Level, stride: usize) {
        let (to, from, slot) = (self.next_of(stride), self.here[stride].from, self.slots[stride]);
        if from >= to || slot == NOWHERE {
            return;
        }
        let strided = &self.strides[stride];
        let used = used(strided, level, from, to - 1);
        first.add_hits(slot as usize, used, strided.is_write, self.time(to - 1, stride));
        self.here[stride].from = to;
    }

    /// Times begin anew with the access to come; all that was done is written down.
    fn begin_time(&mut self, first: &First) {
        self.since = Since { turn: self.turn, stride: self.stride, time: first.now() };
        let accesses = u64::from(first.end() - first.now()) / self.each + self.stride as u64;
        self.end = self.turn + accesses / self.strides.len() as u64;
    }

    /// The line in a slot, or those in all, are not what they were: they are looked for when they are accessed next.
    #[inline(always)]
    fn look_again(&mut self, slot: Option<usize>) {
        let is_gone = |here: u32| here != NOWHERE && slot.is_none_or(|slot| here == slot as u32);
        if self.slots.iter().fold(false, |any, &here| any | is_gone(here)) {
            for stride in 0..self.slots.len() {
                if is_gone(self.slots[stride]) {
                    self.slots[stride] = NOWHERE;
                    self.here[stride].until = self.next_of(stride);
                }
            }
        }
    }
}

/// A loop on its way.
struct Walk<'w> {
    caches: &'w mut WatchedLru,
    core: usize,
    /// From address to line of the first level.
    shift: u32,
    missed: &'w mut Vec<Miss>,
}

impl WatchedLru {
    /// Simulates as many turns of a core's loop; adds the accesses that miss.
    pub(crate) fn turns(&mut self, core: usize, turns: u64, strides: &[Strided], missed: &mut Vec<Miss>) {
        let most = strides.iter().map(|stride| stride.tag).max().unwrap_or_default();
        self.watcher.has_room(most);
        let shift = self.watcher.levels[0].line_shift;
        let deferred = &mut self.deferred;
        deferred.first = self.watcher.paths[core][0] as usize;
        deferred.strides.extend_from_slice(strides);
        deferred.here.resize(strides.len(), Here { from: 0, until: 0 });
        deferred.slots.resize(strides.len(), NOWHERE);
        (deferred.turn, deferred.stride) = (0, 0);
        // An access to two lines touches one after the other.
        deferred.each = if strides.iter().all(|stride| stride.is_aligned(1 << shift)) { 1 } else { 2 };
        deferred.begin_time(&self.firsts[deferred.first]);
        for stride in strides {
            // Those that are no such hits are taken off again.
            self.answered[usize::from(stride.is_write)][0] += turns;
        }
        Walk { caches: self, core, shift, missed }.all(turns);
        self.deferred.strides.clear();
        self.deferred.here.clear();
        self.deferred.slots.clear();
    }

    /// Returns what was used of a line of a first level since that was asked last, and its record.
    #[inline]
    pub(crate) fn take_used(&mut self, first: usize, line: u64) -> Option<(u32, u64)> {
        if !self.deferred.here.is_empty() && self.deferred.first == first {
            self.write_down();
        }
        self.firsts[first].take_used(line)
    }

    #[inline(never)]
    fn write_down(&mut self) {
        self.deferred.write_down(&mut self.firsts[self.deferred.first], &self.watcher.levels[0]);
    }
}

impl Walk<'_> {
    fn all(&mut self, turns: u64) {
        self.keep_time();
        let line_bytes = 1 << self.shift;
        // One of them comes to another line in each turn.
        let is_restless = self.caches.deferred.strides.iter().any(|stride| stride.length() >= line_bytes);
        let mut turn = 0;
        loop {
            let deferred = &self.caches.deferred;
            let next = match is_restless {
                true => turns.min(turn),
                false => deferred.here.iter().map(|here| here.until).fold(turns, u64::min),
            };
            let end = deferred.end;
            if end < turns && end <= next {
                self.come_to(end, 0);
                self.renew();
            } else if next == turns {
                break;
            } else {
                for stride in 0..self.caches.deferred.here.len() {
                    if self.caches.deferred.here[stride].until <= next {
                        self.look(next, stride);
                    }
                }
                turn = next + 1;
            }
        }
        self.come_to(turns, 0);
        self.caches.write_down();
    }

    #[inline(always)]
    fn first(&self) -> &First {
        &self.caches.firsts[self.caches.deferred.first]
    }

    #[inline(always)]
    fn first_mut(&mut self) -> &mut First {
        &mut self.caches.firsts[self.caches.deferred.first]
    }

    /// All that is before an access was a hit that asks nothing, or is done.
    #[inline(always)]
    fn come_to(&mut self, turn: u64, stride: usize) {
        let deferred = &mut self.caches.deferred;
        (deferred.turn, deferred.stride) = (turn, stride);
        let time = deferred.time(turn, stride);
        self.first_mut().set_now(time);
    }

    /// An access comes to another line, or has to ask for its own.
    fn look(&mut self, turn: u64, stride: usize) {
        let WatchedLru { deferred, firsts, watcher: Watcher { levels, .. }, .. } = &mut *self.caches;
        let first = &mut firsts[deferred.first];
        (deferred.turn, deferred.stride) = (turn, stride);
        deferred.write_down_one(first, &levels[0], stride);
        let strided = &deferred.strides[stride];
        let address = strided.address_in(turn);
        // Of no bytes, it is in no line.
        let stays = if strided.bytes > 0 { strided.stays(turn, 1 << self.shift) } else { 0 };
        let until = turn.saturating_add(stays.max(1));
        deferred.slots[stride] = NOWHERE;
        if stays == 0 {
            deferred.here[stride] = Here { from: turn + 1, until };
            self.ask(address, None);
            return;
        }
        let line = address >> self.shift;
        let found = first.find(line);
        if let Some(slot) = found
            && first.is_calm(slot, line)
        {
            deferred.here[stride] = Here { from: turn, until };
            deferred.slots[stride] = slot as u32;
            return;
        }
        deferred.here[stride] = Here { from: turn + 1, until };
        let again = self.ask(address, Some(found));
        let slot = self.first().latest_of(line);
        match again {
            true => self.caches.deferred.here[stride].until = turn + 1,
            false => self.caches.deferred.slots[stride] = slot as u32,
        }
    }

    /// The access at hand is more than a hit; where its line is, if it is to one alone. Says whether the lines of all have to be looked for
    /// again.
    fn ask(&mut self, address: u64, found: Option<Option<usize>>) -> bool {
        let Deferred { turn, stride, ref strides, .. } = self.caches.deferred;
        let strided = strides[stride];
        let Strided { bytes, is_write, tag, .. } = strided;
        let access = MemRef { address, bytes, core: self.core as u32, tag, is_write };
        self.come_to(turn, stride);
        self.caches.answered[usize::from(is_write)][0] -= 1;
        let last = address.wrapping_add(u64::from(bytes).wrapping_sub(1));
        let lines = (address >> self.shift, last >> self.shift);
        let depth = if let Some(found) = found {
            self.caches.watcher.begin(self.core, tag);
            let depth = self.touch(address, last, is_write, found);
            self.caches.count_answer(is_write, depth);
            depth
        } else if bytes > 0 && lines.0 + 1 == lines.1 {
            self.caches.watcher.begin(self.core, tag);
            let between = lines.1 << self.shift;
            let found = self.first_mut().find(lines.0);
            let one = self.touch(address, between - 1, is_write, found);
            let time = self.caches.deferred.time(turn, stride);
            self.first_mut().set_now(time + 1);
            let found = self.first_mut().find(lines.1);
            let other = self.touch(between, last, is_write, found);
            self.caches.count_answer(is_write, one.max(other));
            one.max(other)
        } else {
            self.caches.write_down();
            let depth = self.caches.access_one(access).0;
            let WatchedLru { deferred, firsts, .. } = &mut *self.caches;
            deferred.stride += 1;
            deferred.look_again(None);
            deferred.begin_time(&firsts[deferred.first]);
            depth
        };
        if depth > 0 {
            self.missed.push((access, depth));
            self.look_ahead(address, &strided);
        }
        (self.caches.deferred.turn, self.caches.deferred.stride) = (turn, stride + 1);
        self.keep_time()
    }

    /// Bytes of a line, whose slot was found or not, by the access at hand; says how many levels do not have it.
    #[inline(always)]
    fn touch(&mut self, first: u64, last: u64, is_write: bool, found: Option<usize>) -> u8 {
        let line = first >> self.shift;
        let WatchedLru { deferred, firsts, watcher: Watcher { levels, tables, .. }, .. } = &mut *self.caches;
        let (cache, level) = (&mut firsts[deferred.first], &levels[0]);
        let used = level.bits(first, last);
        if let Some(slot) = found
            && cache.is_calm(slot, line)
        {
            cache.add_hits(slot, used, is_write, cache.now());
            return 0;
        }
        let is_at_end = cache.is_at_end();
        match found {
            _ if is_at_end => deferred.write_down(cache, level),
            None => deferred.write_down_set(cache, level, cache.begin_of(line)),
            Some(_) => {}
        }
        let depth = match found {
            Some(slot) => {
                if cache.hit(&mut tables[cache.place.table], slot, used, is_write) {
                    self.caches.watcher.spared(0);
                }
                0
            }
            None => self.caches.miss_first(line, used, is_write),
        };
        if is_at_end {
            // All are of the epoch before.
            self.caches.deferred.look_again(None);
        } else if found.is_none() {
            let slot = self.first().latest_of(line);
            self.caches.deferred.look_again(Some(slot));
        }
        depth
    }

    /// Sees to it that there is time for this turn and one more; says whether lines have to be looked for again.
    fn keep_time(&mut self) -> bool {
        let deferred = &self.caches.deferred;
        let most = 2 * deferred.each as usize * deferred.strides.len();
        let is_late = ((self.first().end() - self.first().now()) as usize) < most;
        if is_late {
            self.renew();
        }
        is_late
    }

    /// Ends the epoch, and numbers times anew.
    #[cold]
    #[inline(never)]
    fn renew(&mut self) {
        self.caches.write_down();
        let WatchedLru { deferred, firsts, watcher: Watcher { tables, .. }, .. } = &mut *self.caches;
        let first = &mut firsts[deferred.first];
        first.renew(&mut tables[first.place.table]);
        deferred.begin_time(first);
        deferred.look_again(None);
    }

    /// Asks the processor we run on for records that the access at hand may need in turns to come.
    #[inline(always)]
    fn look_ahead(&self, address: u64, strided: &Strided) {
        let line_bytes = 1 << self.shift;
        let step = strided.step as i64;
        let each = if strided.length() < line_bytes { step.signum() * line_bytes as i64 } else { step };
        let line = |times: u64| address.wrapping_add((each as u64).wrapping_mul(times)) >> self.shift;
        let table = &self.caches.watcher.tables[self.first().place.table];
        let [index, record, oldest] = AHEAD.map(line);
        table.prefetch_index(index);
        table.prefetch_record(record);
        self.caches.prefetch_rows(self.core, record);
        self.caches.prefetch_oldest(self.core, oldest);
    }
}

/// Bits of what an access uses in these turns, in all of which it is in one line.
#[inline(always)]
fn used(strided: &Strided, level: &Level, from: u64, to: u64) -> u64 {
    let after = u64::from(strided.bytes - 1);
    let (first, last) = (strided.address_in(from), strided.address_in(to));
    if from == to || strided.length() <= u64::from(strided.bytes) {
        return level.bits(first.min(last), first.max(last) + after);
    }
    if level.grain_shift == 0 {
        let one = level.bits(first.min(last), first.min(last) + after);
        return (0..=to - from).fold(0, |used, turn| used | one << (strided.length() * turn));
    }
    (from..=to).fold(0, |used, turn| {
        let first = strided.address_in(turn);
        used | level.bits(first, first + after)
    })
}
