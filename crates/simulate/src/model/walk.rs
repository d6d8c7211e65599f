//! The path of a request through the levels, and what happens to the lines it replaces.

use super::array::{DIRTY, Left, PREFETCHED};
use super::directory::Loss;
use super::{Inclusion, Model, Sharing, Write};
use crate::lru::hierarchy::{Found, Observer};
use crate::tag::Tag;

/// An access, cut to one line of the first level.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub core: usize,
    /// First and last byte.
    pub first: u64,
    pub last: u64,
    pub is_write: bool,
    pub tag: Tag,
    /// It is not the first line of its access.
    pub goes_on: bool,
}

/// The origin of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A core, to the first level.
    Core,
    /// A prefetcher, to its own level.
    Prefetcher(usize),
}

/// The end of a request.
pub(super) struct Walked {
    pub depth: u8,
    /// A write-back level keeps the write.
    pub kept_dirty: bool,
    pub sharing: Option<Sharing>,
}

/// Level, cache and slot of a line.
type Kept = (usize, usize, usize);

/// The part of a request that is open while it goes from level to level.
struct Pending {
    /// A level inside waits for the bytes first..=last.
    need: bool,
    /// The bytes of the request are still to be written outside.
    write: bool,
    /// The core waits no longer, or never did.
    served: bool,
    first: u64,
    last: u64,
    /// The place to which the line went last.
    keeper: Option<Kept>,
}

/// The lookup of a request in one level.
struct Lookup {
    level: usize,
    cache: usize,
    line: u64,
    /// The sectors that the request wants of the line, and those of them that the cache lacks.
    wanted: u64,
    missing: u64,
    /// The line's place in the cache, if it is there.
    slot: Option<usize>,
    /// A line that is not there is put there.
    allocate: bool,
}

impl Lookup {
    fn is_hit(&self) -> bool {
        self.missing == 0
    }

    fn found(&self) -> Found {
        match self.slot {
            Some(_) if self.is_hit() => Found::Hit,
            Some(_) => Found::Part,
            None if self.allocate => Found::Miss,
            None => Found::Passed,
        }
    }
}

impl Model {
    /// Looks up level after level until one has what is needed and a level keeps what is written.
    ///
    /// `shared`: a cache off the core's way has the line, and keeps it.
    pub(super) fn walk(
        &mut self,
        request: &Request,
        origin: Origin,
        shared: bool,
        observer: &mut impl Observer,
    ) -> Walked {
        let (from, demand) = match origin {
            Origin::Core => (0, true),
            Origin::Prefetcher(level) => (level, false),
        };
        let levels = self.spec.levels.len();
        let mut walked = Walked { depth: levels as u8, kept_dirty: false, sharing: None };
        let mut pending = Pending {
            need: !request.is_write,
            write: request.is_write,
            served: !demand,
            first: request.first,
            last: request.last,
            keeper: None,
        };
        for level in from..levels {
            if !pending.need && !pending.write {
                break;
            }
            let mut lookup = self.look_up(level, request.core, &pending);
            // A cache's prefetchers see what comes from inside it.
            let ahead = self.ahead[lookup.cache].is_some();
            if ahead && (!pending.served || (!demand && level > from)) {
                let slot = lookup.slot.filter(|_| lookup.is_hit());
                self.see(level, request, pending.first, slot, !pending.served);
            }
            if !pending.served {
                self.report_lookup(&lookup, request, &mut walked, observer);
            }
            let hit = lookup.is_hit();
            let left = self.place(&mut lookup, origin, shared, &pending, observer);
            if hit {
                if !pending.served {
                    pending.served = true;
                    walked.depth = level as u8;
                }
                pending.need = false;
            } else if let Some(slot) = lookup.slot {
                pending.need = true;
                pending.keeper = Some((level, lookup.cache, slot));
            }
            if pending.write && self.keep_write(&lookup) {
                pending.write = false;
                walked.kept_dirty = true;
            }
            self.narrow(&lookup, request, &mut pending);
            if let Some(left) = left {
                self.evict(level, lookup.cache, left, observer);
            }
        }
        walked
    }

    /// Finds the line of what is pending in the core's cache of a level.
    #[inline]
    fn look_up(&self, level: usize, core: usize, pending: &Pending) -> Lookup {
        let cache = self.paths[core][level] as usize;
        let line = pending.first >> self.line_shifts[level];
        let rules = &self.spec.levels[level];
        let wanted = self.sectors(level, pending.first, pending.last);
        let array = &self.arrays[cache];
        let slot = array.find(line);
        let missing = slot.map_or(wanted, |slot| wanted & !array.sectors(slot));
        let allocate = rules.inclusion != Inclusion::Exclusive && (pending.need || rules.write_allocate);
        Lookup { level, cache, line, wanted, missing, slot, allocate }
    }

    /// Reports to the observer a lookup that the core waits for, and of a line lost to another core.
    #[inline]
    fn report_lookup(
        &mut self,
        lookup: &Lookup,
        request: &Request,
        walked: &mut Walked,
        observer: &mut impl Observer,
    ) {
        let Lookup { level, cache, line, .. } = *lookup;
        if !lookup.is_hit()
            && let Some(sharing) = self.lost(cache, request)
        {
            observer.lost(level, cache, line, sharing);
            walked.sharing.get_or_insert(sharing);
        }
        observer.asked(level, cache, line, lookup.found());
    }

    /// Brings the line into the cache, or out of an exclusive one, as the level's rules want it, and
    /// returns the line that made room. `lookup.slot` is the line's place afterwards.
    #[inline]
    fn place(
        &mut self,
        lookup: &mut Lookup,
        origin: Origin,
        shared: bool,
        pending: &Pending,
        observer: &mut impl Observer,
    ) -> Option<Left> {
        let Lookup { level, cache, line, wanted, missing, slot, allocate } = *lookup;
        let exclusive = self.spec.levels[level].inclusion == Inclusion::Exclusive;
        match slot {
            Some(found) if exclusive && pending.need => {
                // What several cores have is not newer than outside.
                let keeper = pending.keeper.map(|keeper| (keeper, !shared));
                self.move_inwards(level, cache, found, keeper, observer);
                lookup.slot = None;
                None
            }
            Some(found) => {
                let array = &mut self.arrays[cache];
                array.used(found);
                array.add_sectors(found, missing);
                if pending.served {
                    observer.reused(level, cache, line);
                }
                self.fill(level, cache, line, missing, observer);
                None
            }
            None if allocate => {
                let flags = if origin == Origin::Prefetcher(level) { PREFETCHED } else { 0 };
                let (new, left) = self.arrays[cache].insert(line, flags, wanted);
                if flags != 0 {
                    self.sent_for(cache, line, new, left);
                }
                lookup.slot = Some(new);
                self.enters(cache, pending.first);
                if pending.served {
                    observer.entered(level, cache, line);
                }
                self.arrays[cache].set_note(new, observer.note());
                self.fill(level, cache, line, wanted, observer);
                left
            }
            None => None,
        }
    }

    /// Keeps a write in the line's place if the level writes back, else lets it pass.
    #[inline]
    fn keep_write(&mut self, lookup: &Lookup) -> bool {
        match lookup.slot {
            Some(slot) if self.spec.levels[lookup.level].write == Write::Back => {
                *self.arrays[lookup.cache].flags(slot) |= DIRTY;
                true
            }
            _ => {
                self.traffic[lookup.level].passed_writes += 1;
                false
            }
        }
    }

    /// Sets the bytes that the next level is asked for.
    #[inline]
    fn narrow(&self, lookup: &Lookup, request: &Request, pending: &mut Pending) {
        let (mut first, mut last) = (request.first, request.last);
        if pending.need {
            (first, last) = self.range(lookup.level, lookup.line, lookup.missing);
        }
        if pending.write {
            (first, last) = (first.min(request.first), last.max(request.last));
        }
        (pending.first, pending.last) = (first, last);
    }

    /// Sectors of a line that a cache holds were fetched.
    #[inline]
    fn fill(&self, level: usize, cache: usize, line: u64, sectors: u64, observer: &mut impl Observer) {
        if self.spec.levels[level].sector_bytes.is_some() && sectors != 0 {
            observer.filled(level, cache, line, u64::from(sectors.count_ones()) << self.unit_shifts[level]);
        }
    }

    /// A line found in an exclusive level goes to the cache that waits for it, dirty or else
    /// written back.
    fn move_inwards(
        &mut self,
        level: usize,
        cache: usize,
        slot: usize,
        keeper: Option<(Kept, bool)>,
        observer: &mut impl Observer,
    ) {
        let Some(left) = self.arrays[cache].take(slot) else { return };
        self.leaves(level, cache, left);
        observer.moved_inwards(level, cache, left.line, left.note);
        let mut dirty = left.flags & DIRTY != 0;
        if let Some(((inner, cache, slot), may_be_dirty)) = keeper {
            let array = &mut self.arrays[cache];
            array.add_sectors(slot, left.sectors);
            if dirty && may_be_dirty && self.spec.levels[inner].write == Write::Back {
                *array.flags(slot) |= DIRTY;
                dirty = false;
            }
        }
        if dirty {
            self.write_back(level, cache, left);
        }
    }

    /// A line made room.
    fn evict(&mut self, level: usize, cache: usize, mut left: Left, observer: &mut impl Observer) {
        self.leaves(level, cache, left);
        observer.evicted(level, cache, left.line, left.note);
        if self.spec.levels[level].inclusion == Inclusion::Inclusive {
            left.flags |= self.back_invalidate(level, cache, left.line, observer);
        }
        let outer = level + 1;
        if self.spec.levels.get(outer).is_some_and(|outer| outer.inclusion == Inclusion::Exclusive) {
            self.install(level, cache, left, observer);
        } else if left.flags & DIRTY != 0 {
            self.write_back(level, cache, left);
        }
    }

    /// An exclusive level gets a line that the level inside it evicted.
    fn install(&mut self, level: usize, cache: usize, left: Left, observer: &mut impl Observer) {
        let outer = level + 1;
        let outer_cache = self.paths[self.first_core[cache]][outer] as usize;
        let mut dirty = left.flags & DIRTY;
        self.write_backs[level] += u64::from(dirty != 0);
        let through = dirty != 0 && self.spec.levels[outer].write == Write::Through;
        if through {
            dirty = 0;
        }
        let array = &mut self.arrays[outer_cache];
        if let Some(slot) = array.find(left.line) {
            // Another inner cache had evicted its copy.
            array.add_sectors(slot, left.sectors);
            *array.flags(slot) |= dirty;
        } else {
            let (slot, out) = array.insert(left.line, dirty, left.sectors);
            self.enters(outer_cache, left.line << self.line_shifts[outer]);
            observer.entered(outer, outer_cache, left.line);
            self.arrays[outer_cache].set_note(slot, observer.note());
            if let Some(out) = out {
                self.evict(outer, outer_cache, out, observer);
            }
        }
        if through {
            self.write_back(outer, outer_cache, left);
        }
    }

    /// Writes a dirty line of a cache to the nearest outer write-back level that holds it, else to
    /// memory.
    pub(super) fn write_back(&mut self, level: usize, cache: usize, left: Left) {
        let core = self.first_core[cache];
        let address = left.line << self.line_shifts[level];
        self.write_backs[level] += 1;
        for outer in level + 1..self.spec.levels.len() {
            let sectors = self.spread(level, left, outer);
            let array = &mut self.arrays[self.paths[core][outer] as usize];
            if let Some(slot) = array.find(address >> self.line_shifts[outer])
                && self.spec.levels[outer].write == Write::Back
            {
                array.add_sectors(slot, sectors);
                *array.flags(slot) |= DIRTY;
                return;
            }
            self.write_backs[outer] += 1;
        }
    }

    /// An inclusive cache dropped a line: the caches inside it drop it, too. Returns [`DIRTY`] if
    /// one of them had newer bytes, else 0.
    fn back_invalidate(&mut self, level: usize, cache: usize, line: u64, observer: &mut impl Observer) -> u8 {
        let cores = self.first_core[cache]..self.paths.len();
        let users = self.spec.levels[level].shape.shared_by as usize;
        let (first, last) = self.range(level, line, u64::MAX);
        let mut dirty = 0;
        for inner in 0..level {
            let step = self.spec.levels[inner].shape.shared_by as usize;
            let shift = self.line_shifts[inner];
            for core in cores.clone().take(users).step_by(step) {
                let inner_cache = self.paths[core][inner] as usize;
                if self.arrays[inner_cache].is_empty() {
                    continue;
                }
                for inner_line in first >> shift..=last >> shift {
                    let Some(slot) = self.arrays[inner_cache].find(inner_line) else { continue };
                    let Some(left) = self.arrays[inner_cache].take(slot) else { continue };
                    self.leaves(inner, inner_cache, left);
                    observer.back_invalidated(inner, inner_cache, inner_line, left.note);
                    self.traffic[inner].back_invalidations += 1;
                    if left.flags & DIRTY != 0 {
                        self.write_backs[inner] += 1;
                        dirty = DIRTY;
                    }
                }
            }
        }
        dirty
    }

    /// Returns the write to which a miss of the request in this cache is due.
    fn lost(&mut self, cache: usize, request: &Request) -> Option<Sharing> {
        let directory = self.directory.as_mut().filter(|directory| directory.tracks(cache))?;
        let loss: Loss = directory.take_loss(cache, request.first)?;
        let is_true = directory.touches_written(&loss, request.first, request.last);
        Some(Sharing { is_true, by_core: loss.by_core, by_tag: loss.by_tag })
    }

    /// A bit for each sector of a level that the bytes `first..=last`, of one line, lie in; 1 for
    /// whole lines.
    #[inline]
    pub(super) fn sectors(&self, level: usize, first: u64, last: u64) -> u64 {
        let in_line = (1 << self.line_shifts[level]) - 1;
        let sector = |address: u64| (address & in_line) >> self.unit_shifts[level];
        (u64::MAX >> (63 - (sector(last) - sector(first)))) << sector(first)
    }

    /// First and last byte of the given sectors of a line.
    pub(super) fn range(&self, level: usize, line: u64, sectors: u64) -> (u64, u64) {
        let (line_shift, unit_shift) = (self.line_shifts[level], self.unit_shifts[level]);
        let start = line << line_shift;
        let count = 1 << (line_shift - unit_shift);
        let low = u64::from(sectors.trailing_zeros());
        let high = u64::from(63 - sectors.leading_zeros()).min(count - 1);
        (start + (low << unit_shift), start + (high << unit_shift) + ((1 << unit_shift) - 1))
    }

    /// The valid sectors of a line as sectors of an outer level.
    fn spread(&self, level: usize, left: Left, outer: usize) -> u64 {
        let set = (0..64).filter(|sector| left.sectors >> sector & 1 != 0);
        set.fold(0, |sectors, sector| {
            let (first, last) = self.range(level, left.line, 1 << sector);
            sectors | self.sectors(outer, first, last)
        })
    }
}
