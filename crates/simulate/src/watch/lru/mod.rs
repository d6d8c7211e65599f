//! Watched caches with one rule: each level replaces the least recently used line, and keeps what
//! it is looked up for.
//!
//! They are the caches of a [`Hierarchy`], with records of lines instead of lines: each miss leads
//! to the records of the lines that come and go, and these records hold the lines' state in all
//! caches.
//!
//! A use is entered with the innermost level of a record alone, and passed to the next level when
//! that level misses the line ([`Uses::PassedOn`]). Uses of the first level stay with its slots
//! ([`First`]) until they are needed.

mod ahead;
pub mod first_level;
mod late_twin;
mod outer_level;
mod uses;

use crate::fragment::Fragment;
use crate::loops::{Deferred, Strided};
use crate::lru::hierarchy::{Hierarchy, LevelCounters};
use crate::mem_ref::MemRef;
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::tag::LineState;
use crate::watch::lru::first_level::{First, Hits};
use crate::watch::lru::outer_level::Outer;
use crate::watch::misses::CausesByLevel;
use crate::watch::records::{Place, Uses};
use crate::watch::twin::{Before, Twin};
use crate::watch::watched::{Found, Miss, Watched, WatchedCaches};
use crate::watch::watcher::{Level, Watcher};

/// Caches of a [`Hierarchy`]'s shape that report every line to a [`Watcher`].
#[derive(Clone, Debug)]
pub(crate) struct WatchedLru {
    specs: Vec<LevelSpec>,
    pub(crate) watcher: Watcher,
    /// The caches of the first level, then those of the others.
    pub(crate) firsts: Vec<First>,
    caches: Vec<Layer>,
    /// Indexed by table: the cache of the first level that shares it.
    first_of: Vec<Option<usize>>,
    /// Indexed by core: its caches behind the first level.
    outer: Vec<Vec<Reach>>,
    /// Accesses by [is write][level that served them].
    pub(crate) served: [[u64; MAX_LEVELS + 1]; 2],
    write_backs: [u64; MAX_LEVELS],
    /// Table and record of the line at the level that was looked up last.
    at: (usize, At),
    /// Hits of the current loop that are not recorded yet, if there is a loop.
    pub(crate) deferred: Deferred,
}

/// State of one cache.
#[derive(Clone, Debug)]
struct Layer {
    cache: Outer,
    twin: Twin,
}

/// The way from a line of the first level to an outer cache.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Lines of the first level in one, as a power of two.
    shift: u32,
    /// In [`WatchedLru::caches`].
    cache: usize,
    table: usize,
}

impl WatchedLru {
    /// Empty caches of a hierarchy's shape.
    pub fn new(hierarchy: &Hierarchy) -> WatchedLru {
        let specs = hierarchy.levels();
        let cores = hierarchy.cores();
        let cache_of = |core, level| hierarchy.cache_of(core, level);
        let watcher = Watcher::new(specs, cores, cache_of, Uses::PassedOn);
        let Watcher { places, tables, paths, .. } = &watcher;
        let of_first = cores.div_ceil(specs[0].shared_by) as usize;
        let mut caches = Vec::with_capacity(places.len());
        for spec in &specs[1..] {
            let lines = (spec.bytes / u64::from(spec.line_bytes)) as u32;
            let count = cores.div_ceil(spec.shared_by) as usize;
            for place in &places[of_first + caches.len()..][..count] {
                caches.push(Layer { cache: Outer::new(spec), twin: Twin::new(lines, place.word) });
            }
        }
        let sharing = |table| places[..of_first].iter().position(|place| place.table == table);
        let inner = specs[0].line_shift();
        let reach = |(spec, number): (&LevelSpec, &u32)| {
            let cache = *number as usize;
            let (shift, table) = (spec.line_shift() - inner, places[cache].table);
            Reach { shift, cache: cache - of_first, table }
        };
        WatchedLru {
            specs: specs.to_vec(),
            firsts: places[..of_first].iter().map(|place| First::new(&specs[0], *place)).collect(),
            caches,
            first_of: (0..tables.len()).map(sharing).collect(),
            outer: paths.iter().map(|path| specs.iter().zip(path).skip(1).map(reach).collect()).collect(),
            served: [[0; MAX_LEVELS + 1]; 2],
            write_backs: [0; MAX_LEVELS],
            at: (0, 0),
            deferred: Deferred::default(),
            watcher,
        }
    }

    /// Simulates one access; returns its depth and its causes.
    #[inline]
    pub fn access_one(&mut self, access: MemRef) -> (u8, CausesByLevel) {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        self.watcher.has_room(tag);
        if bytes == 0 {
            return (0, [None; MAX_LEVELS]);
        }
        self.watcher.begin(access.core(), tag);
        let last = access.last();
        let depth = match self.watcher.line(last) == self.watcher.line(address) {
            true => self.touch_first(address, last, is_write),
            false => self.touch_several(address, last, is_write),
        };
        (depth, self.count_answer(is_write, depth))
    }

    /// Simulates an access to a line that the first level is known not to have; returns its depth.
    #[inline]
    pub fn access_missing(&mut self, access: MemRef) -> u8 {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        self.watcher.has_room(tag);
        self.watcher.begin(access.core(), tag);
        let used = self.watcher.levels[0].bits(address, address + u64::from(bytes - 1));
        let depth = self.miss_first(self.watcher.line(address), used, is_write);
        self.count_answer(is_write, depth);
        depth
    }

    /// Counts the access under way, and its causes if it missed.
    #[inline(always)]
    pub fn count_answer(&mut self, is_write: bool, depth: u8) -> CausesByLevel {
        self.served[usize::from(is_write)][usize::from(depth)] += 1;
        if depth == 0 { [None; MAX_LEVELS] } else { self.watcher.take() }
    }

    /// Returns a core's first level, and the records of its lines.
    #[inline(always)]
    pub fn first_of(&self, core: usize) -> (&First, &Table) {
        let first = &self.firsts[self.watcher.paths[core][0] as usize];
        (first, &self.watcher.tables[first.place.table])
    }

    /// Returns a core's first level, for many hits in a row, and the shape of its lines; `None` if
    /// its number of sets is no power of two.
    #[inline]
    pub fn hits(&mut self, core: usize) -> Option<(Hits<'_>, Level)> {
        let first = self.watcher.paths.get(core)?[0] as usize;
        Some((self.firsts[first].hits()?, self.watcher.levels[0].clone()))
    }

    /// Touches several lines of the first level; returns how many levels do not have one of them.
    #[cold]
    fn touch_several(&mut self, first: u64, last: u64, is_write: bool) -> u8 {
        let shift = self.watcher.levels[0].line_shift;
        let part = |line: u64| (first.max(line << shift), last.min((line << shift) + ((1 << shift) - 1)));
        let lines = (first >> shift..=last >> shift).map(part);
        let depths = lines.map(|(first, last)| self.touch_first(first, last, is_write));
        depths.max().unwrap_or(0)
    }

    /// Touches one line; returns how many levels do not have it.
    #[inline(always)]
    fn touch_first(&mut self, first: u64, last: u64, is_write: bool) -> u8 {
        let used = self.watcher.levels[0].bits(first, last);
        let line = first >> self.watcher.levels[0].line_shift;
        let cache = &mut self.firsts[self.watcher.paths[self.watcher.core][0] as usize];
        let Some(slot) = cache.find(line) else {
            return self.miss_first(line, used, is_write);
        };
        if cache.hit(&mut self.watcher.tables[cache.place.table], slot, used, is_write) {
            self.watcher.spared(0);
        }
        0
    }

    /// Fetches a line that the first level does not have; returns how many levels do not.
    #[inline(never)]
    pub fn miss_first(&mut self, line: u64, used: u64, is_write: bool) -> u8 {
        let path = self.watcher.paths[self.watcher.core];
        let number = path[0] as usize;
        let place = self.watcher.places[number];
        let table = &mut self.watcher.tables[place.table];
        let record = table.find(line);
        let cache = &mut self.firsts[number];
        let (slot, dropped) = cache.drop_one(table, line);
        let before = cache.fill(table, slot, line, record, is_write);
        self.at = (place.table, record);
        self.miss(0, place, before);
        if let Some(dropped) = dropped {
            self.enter_used(number, dropped.line, dropped.record, dropped.used);
            self.leave(0, place, dropped.record, dropped.is_written);
        }
        let address = line << self.watcher.levels[0].line_shift;
        let levels = self.watcher.levels.len();
        let depth = (1..levels).find(|level| self.ask(*level, path[*level] as usize, address));
        // Only now: it is of the fetches that have just begun.
        self.firsts[number].add_used(slot, used);
        depth.unwrap_or(levels) as u8
    }

    /// Goes from the line's record at the inner level to its record at this level, if these are two
    /// records.
    #[inline(never)]
    fn go_out(&mut self, table: usize, line: u64) {
        self.at = (table, self.watcher.outside(self.at.0, self.at.1, table, line));
    }

    /// Looks up the current line in an outer cache; returns whether it is there.
    #[inline]
    fn ask(&mut self, level: usize, number: usize, address: u64) -> bool {
        let place = self.watcher.places[number];
        let line = address >> self.watcher.levels[level].line_shift;
        if self.at.0 != place.table {
            self.go_out(place.table, line);
        }
        let record = self.at.1;
        let is_here = self.watcher.state(place, record).is_held();
        if !is_here && self.first_of[place.table].is_none() {
            self.enter_used_of(level, number, line); // What was used before this fetch is not of it.
        }
        let Layer { cache, twin } = &mut self.caches[number - self.firsts.len()];
        let before = twin.touch(&mut self.watcher.tables[place.table], record);
        if is_here {
            cache.touch(line, record);
            if before != Before::Held {
                self.watcher.spared(level);
            }
            return true;
        }
        let dropped = cache.enter(line, record);
        self.miss(level, place, before);
        if let Some(dropped) = dropped {
            self.drop_outer(level, number, dropped);
        }
        false
    }

    /// Fetches the current line into a cache that misses it.
    #[inline(always)]
    fn miss(&mut self, level: usize, place: Place, before: Before) {
        let left_by = self.watcher.fetched(place, self.at.1);
        self.watcher.missed(level, None, false, before, left_by);
    }

    /// Drops a line of an outer cache.
    #[inline]
    fn drop_outer(&mut self, level: usize, number: usize, record: At) {
        let place = self.watcher.places[number];
        let line = self.watcher.tables[place.table].key(record);
        match self.first_of[place.table] {
            None => _ = self.enter_used_of(level, number, line),
            Some(first) => {
                if LineState::of(self.watcher.tables[place.table].get(record, place.first_word)).is_held()
                    && let Some((record, used)) = self.take_used(first, line)
                {
                    self.enter_used(first, line, record, used);
                }
            }
        }
        let is_written = self.watcher.state(place, record).is_written();
        self.leave(level, place, record, is_written);
    }

    /// Ends a fetch, to make room.
    #[inline]
    fn leave(&mut self, level: usize, place: Place, record: At, is_written: bool) {
        self.watcher.left(level, place, record, Some(self.watcher.tag));
        if is_written {
            self.write_back(level, place.table, record);
        }
    }

    /// Writes a dirty line that left a level to the nearest outer one that holds it, else to
    /// memory.
    #[inline(never)]
    fn write_back(&mut self, level: usize, mut table: usize, mut record: At) {
        self.write_backs[level] += 1;
        for outer in level + 1..self.watcher.levels.len() {
            let place = self.watcher.places[self.watcher.paths[self.watcher.core][outer] as usize];
            if place.table != table {
                let outside = self.watcher.known_outside(table, record);
                // What was here has been asked for outside, so it is known there.
                debug_assert!(outside.is_some(), "a line came without asking the outer level");
                (table, record) = (place.table, outside.unwrap_or(At::MAX));
            }
            let state = self.watcher.tables[table].word(record, place.word);
            if LineState::of(*state).is_held() {
                LineState::write(state);
                return;
            }
            self.write_backs[outer] += 1;
        }
    }

    /// Prefetches the rows of a core's outer caches that a line needs.
    #[inline(always)]
    pub fn prefetch_rows(&self, core: usize, line: u64) {
        for reach in &self.outer[core] {
            self.caches[reach.cache].cache.prefetch(line >> reach.shift);
        }
    }

    /// Prefetches the records of the lines that would be evicted if the line came.
    #[inline(always)]
    pub fn prefetch_oldest(&self, core: usize, line: u64) {
        for reach in &self.outer[core] {
            if let Some(oldest) = self.caches[reach.cache].cache.oldest(line >> reach.shift) {
                self.watcher.tables[reach.table].prefetch(oldest);
            }
        }
    }
}

impl WatchedCaches for WatchedLru {
    fn access(&mut self, access: MemRef) -> Watched {
        let (depth, causes) = self.access_one(access);
        Watched { depth, sharing: None, causes }
    }

    fn access_all(&mut self, accesses: &[MemRef], missed: &mut Vec<Miss>) {
        self.all(accesses, missed);
    }

    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> (u8, u64) {
        self.watcher.has_room(access.tag);
        self.watcher.begin(access.core(), access.tag);
        let (mut depth, mut deepest) = (0, fragments.first().map_or(0, |first| first.address));
        for fragment in fragments {
            let here = self.touch_several(fragment.address, fragment.last(), fragment.is_write);
            if here > depth {
                (depth, deepest) = (here, fragment.address);
            }
        }
        self.count_answer(access.is_write, depth);
        (depth, deepest)
    }

    fn access_iterations(
        &mut self,
        core: usize,
        iterations: u64,
        strides: &[Strided],
        missed: &mut Vec<Miss>,
    ) {
        self.iterations(core, iterations, strides, missed);
    }

    fn counters(&self) -> Vec<LevelCounters> {
        LevelCounters::from_served(self.specs.len(), &self.served, &self.write_backs)
    }

    fn first_level(&self) -> &LevelSpec {
        &self.specs[0]
    }

    fn last_level(&self) -> (&LevelSpec, u64) {
        let last = self.specs.len() - 1;
        (&self.specs[last], self.write_backs[last])
    }

    fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    fn finish(mut self: Box<Self>) -> Found {
        for cache in 0..self.firsts.len() {
            for (line, record, used) in self.firsts[cache].take_all_used() {
                self.enter_used(cache, line, record, used);
            }
        }
        let (counts, evictions) = self.watcher.finish();
        Found { counts, evictions, model: None }
    }
}
