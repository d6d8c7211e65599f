//! A loop's accesses through watched caches.
//!
//! ```text
//!   iteration     0     1     2     3     4        an access looks for its line when it comes to it (?); what it does there is
//!   one           ?     ·     ·     ·     ?        written down when it leaves it, or when somebody asks
//!   another       ?     ?     ?     ?     ?
//! ```
//! A hit of a line that was already touched in this epoch, as the twin of the first level knows,
//! changes only two things: the line's time and its used bytes. Such hits are *deferred*: they are
//! recorded when somebody needs them. A miss needs the times of the lines in its set, an outer
//! cache that drops a line needs its used bytes, and the end of an epoch needs everything. Times
//! keep the order that the accesses would have one by one, so the result is the same.

use crate::loops::Strided;
use crate::mem_ref::MemRef;
use crate::watch::lru::WatchedLru;
use crate::watch::lru::first_level::First;
use crate::watch::watched::Miss;
use crate::watch::watcher::{Level, Watcher};

/// Distance, in lines or iterations (whichever is farther), from a miss to the line for which
/// something is prefetched: its place in the index, its record, and the records of lines that will
/// have to go.
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
    iteration: u64,
    stride: usize,
    /// When an access is, or would be; and the first iteration that is not all before times end.
    since: Since,
    end: u64,
    /// Times of an access.
    each: u64,
}

/// The position of one of the accesses.
#[derive(Clone, Copy, Debug)]
struct Here {
    /// The first iteration that has not been recorded.
    from: u64,
    /// The first iteration in which it is to look for its line.
    until: u64,
}

/// No slot has this number.
const NOWHERE: u32 = u32::MAX;

/// An access, and a time that is its.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    iteration: u64,
    stride: usize,
    time: u32,
}

impl Deferred {
    /// When an access is that comes at `since` or later.
    #[inline(always)]
    fn time(&self, iteration: u64, stride: usize) -> u32 {
        let accesses = (iteration - self.since.iteration) * self.strides.len() as u64 + stride as u64;
        self.since.time + (self.each * (accesses - self.since.stride as u64)) as u32
    }

    /// The iteration of a stride that comes next.
    #[inline(always)]
    fn next_of(&self, stride: usize) -> u64 {
        self.iteration + u64::from(stride < self.stride)
    }

    /// All of them.
    pub fn write_down(&mut self, first: &mut First, level: &Level) {
        for stride in 0..self.here.len() {
            self.write_down_one(first, level, stride);
        }
    }

    /// Records the deferred hits of all accesses, if one of them is to a line in the set whose
    /// slots begin at `begin`.
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
        self.since = Since { iteration: self.iteration, stride: self.stride, time: first.now() };
        let accesses = u64::from(first.end() - first.now()) / self.each + self.stride as u64;
        self.end = self.iteration + accesses / self.strides.len() as u64;
    }

    /// The line in a slot, or every line, has changed: accesses to it look it up again.
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
    /// Simulates as many iterations of a core's loop; adds the accesses that miss.
    pub(crate) fn iterations(
        &mut self,
        core: usize,
        iterations: u64,
        strides: &[Strided],
        missed: &mut Vec<Miss>,
    ) {
        let most = strides.iter().map(|stride| stride.tag).max().unwrap_or_default();
        self.watcher.has_room(most);
        let shift = self.watcher.levels[0].line_shift;
        let deferred = &mut self.deferred;
        deferred.first = self.watcher.paths[core][0] as usize;
        deferred.strides.extend_from_slice(strides);
        deferred.here.resize(strides.len(), Here { from: 0, until: 0 });
        deferred.slots.resize(strides.len(), NOWHERE);
        (deferred.iteration, deferred.stride) = (0, 0);
        // An access to two lines touches one after the other.
        deferred.each = if strides.iter().all(|stride| stride.is_aligned(1 << shift)) { 1 } else { 2 };
        deferred.begin_time(&self.firsts[deferred.first]);
        for stride in strides {
            // Those that are no such hits are taken off again.
            self.served[usize::from(stride.is_write)][0] += iterations;
        }
        Walk { caches: self, core, shift, missed }.all(iterations);
        self.deferred.strides.clear();
        self.deferred.here.clear();
        self.deferred.slots.clear();
    }

    /// Returns the bytes of a first level's line that were used since the last call, and the line's
    /// record.
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
    fn all(&mut self, iterations: u64) {
        self.keep_time();
        let line_bytes = 1 << self.shift;
        // One of them comes to another line in each iteration.
        let is_restless = self.caches.deferred.strides.iter().any(|stride| stride.length() >= line_bytes);
        let mut iteration = 0;
        loop {
            let deferred = &self.caches.deferred;
            let next = match is_restless {
                true => iterations.min(iteration),
                false => deferred.here.iter().map(|here| here.until).fold(iterations, u64::min),
            };
            let end = deferred.end;
            if end < iterations && end <= next {
                self.come_to(end, 0);
                self.renew();
            } else if next == iterations {
                break;
            } else {
                for stride in 0..self.caches.deferred.here.len() {
                    if self.caches.deferred.here[stride].until <= next {
                        self.look(next, stride);
                    }
                }
                iteration = next + 1;
            }
        }
        self.come_to(iterations, 0);
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

    /// Moves to an access: every access before it was a deferred hit, or is done.
    #[inline(always)]
    fn come_to(&mut self, iteration: u64, stride: usize) {
        let deferred = &mut self.caches.deferred;
        (deferred.iteration, deferred.stride) = (iteration, stride);
        let time = deferred.time(iteration, stride);
        self.first_mut().set_now(time);
    }

    /// An access comes to another line, or has to ask for its own.
    fn look(&mut self, iteration: u64, stride: usize) {
        let WatchedLru { deferred, firsts, watcher: Watcher { levels, .. }, .. } = &mut *self.caches;
        let first = &mut firsts[deferred.first];
        (deferred.iteration, deferred.stride) = (iteration, stride);
        deferred.write_down_one(first, &levels[0], stride);
        let strided = &deferred.strides[stride];
        let address = strided.address_in(iteration);
        // Of no bytes, it is in no line.
        let stays = if strided.bytes > 0 { strided.stays(iteration, 1 << self.shift) } else { 0 };
        let until = iteration.saturating_add(stays.max(1));
        deferred.slots[stride] = NOWHERE;
        if stays == 0 {
            deferred.here[stride] = Here { from: iteration + 1, until };
            self.ask(address, None);
            return;
        }
        let line = address >> self.shift;
        let found = first.find(line);
        if let Some(slot) = found
            && first.is_calm(slot, line)
        {
            deferred.here[stride] = Here { from: iteration, until };
            deferred.slots[stride] = slot as u32;
            return;
        }
        deferred.here[stride] = Here { from: iteration + 1, until };
        let again = self.ask(address, Some(found));
        let slot = self.first().latest_of(line);
        match again {
            true => self.caches.deferred.here[stride].until = iteration + 1,
            false => self.caches.deferred.slots[stride] = slot as u32,
        }
    }

    /// Simulates the current access, which is more than a hit, and returns the place of its line if
    /// it is to one alone. Also returns whether the lines of all accesses have to be looked up
    /// again.
    fn ask(&mut self, address: u64, found: Option<Option<usize>>) -> bool {
        let Deferred { iteration, stride, ref strides, .. } = self.caches.deferred;
        let strided = strides[stride];
        let Strided { bytes, is_write, tag, .. } = strided;
        let access = MemRef { address, bytes, core: self.core as u32, tag, is_write };
        self.come_to(iteration, stride);
        self.caches.served[usize::from(is_write)][0] -= 1;
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
            let time = self.caches.deferred.time(iteration, stride);
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
        (self.caches.deferred.iteration, self.caches.deferred.stride) = (iteration, stride + 1);
        self.keep_time()
    }

    /// Simulates the current access to bytes of one line, whose slot was found or not. Returns the
    /// number of levels that do not have the line.
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

    /// Ends the epoch if there is no time for this iteration and one more. Returns whether lines
    /// have to be looked up again.
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

    /// Prefetches records that the current access may need in later iterations.
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

/// The bits that an access uses in these iterations, in all of which it is in one line.
#[inline(always)]
fn used(strided: &Strided, level: &Level, from: u64, to: u64) -> u64 {
    let after = u64::from(strided.bytes - 1);
    let (first, last) = (strided.address_in(from), strided.address_in(to));
    if from == to || strided.length() <= u64::from(strided.bytes) {
        return level.bits(first.min(last), first.max(last) + after);
    }
    if level.grain_shift == 0 {
        let one = level.bits(first.min(last), first.min(last) + after);
        return (0..=to - from).fold(0, |used, iteration| used | one << (strided.length() * iteration));
    }
    (from..=to).fold(0, |used, iteration| {
        let first = strided.address_in(iteration);
        used | level.bits(first, first + after)
    })
}
