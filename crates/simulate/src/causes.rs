//! Why an access missed (the three Cs), what evicted the line, and how much of each fetched line was used.
//!
//! A miss of one cache is
//! - **cold** if the line was never asked of that cache before: only fetching it earlier would help;
//! - **capacity** if a fully associative LRU cache of the same size, given the same requests, misses too:
//!   too many other lines were used in between;
//! - **conflict** otherwise: there was room, but not in the line's set.
//!
//! (Hill, "Aspects of cache memory and instruction buffer performance", 1987.) A set-associative cache can
//! also hit where the fully associative one misses, for example in loops just over its size; such lines are
//! counted as *spared*: the lines that the fully associative cache misses are cold, capacity and spared.
//!
//! A *fetch* of a cache begins when the cache misses a line and ends when the cache drops it. A byte of the
//! line is used by the fetch if, between the two, an access of a core that shares the cache touches it,
//! whichever level answers that access. Each fetch is charged to the tag of the access that caused it, so
//! a caller that tags accesses with their source gets, per source and level, the share of the fetched bytes
//! that was worth fetching. The tag of the access that drops the line is remembered until the line is missed again: it
//! is what that miss, unless it is cold, is due to.
//!
//! Use is kept in 64 bits a line: bytes for lines of up to 64, pairs of bytes for 128, and so on, where a
//! pair of which one byte is touched counts as used whole. Levels share records of lines where they can ([`places`]).
//!
//! A use is entered with the innermost level of a record alone, and handed outwards when that level misses the line: an
//! outer level fetches a line only when the inner ones miss it, so whatever an inner level has seen since its last fetch,
//! the outer one has had the line for. What the first level sees stays with its slots ([`First`]) until somebody asks.

use std::collections::VecDeque;

use crate::first::{Dropped, First, Hits};
use crate::hierarchy::{Found, Hierarchy, Observer};
use crate::misses::{Cause, CausesByLevel, Eviction, LevelDetail, evictions};
use crate::pairs::Pairs;
use crate::places::{OUTER, Place, places};
use crate::residents::Residents;
use crate::row::EMPTY;
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::twin::{Before, Twin};

/// Set in a line's tag while the cache holds it: then the tag is that of the fetch, else of the eviction.
pub(crate) const HELD: u32 = 1 << 31;

/// Observes every line of a [`Hierarchy`].
#[derive(Clone, Debug)]
pub(crate) struct LineWatch {
    pub(crate) levels: Vec<Level>,
    /// The caches of the first level, instead of the hierarchy's; then what is kept of those of the other levels.
    pub(crate) firsts: Vec<First>,
    caches: Vec<Layer>,
    /// By cache of all levels.
    pub(crate) places: Vec<Place>,
    pub(crate) tables: Vec<Table>,
    /// By core: its cache at each level.
    pub(crate) paths: Vec<[u32; MAX_LEVELS]>,
    /// By tag and level.
    counts: Vec<LevelDetail>,
    /// By level: who missed for whose sake.
    evictions: Vec<Pairs>,
    now: Now,
    /// What the first level drops.
    dropped: Dropped,
    /// Table and record of the line at the level asked last.
    at: (usize, At),
    /// Lines that have gone and are yet to be counted, the first the oldest: meanwhile their records come near.
    gone: VecDeque<Gone>,
}

/// A line that a cache dropped.
#[derive(Clone, Copy, Debug)]
struct Gone {
    level: usize,
    cache: usize,
    record: At,
    /// Tag of the access that dropped it.
    by: u32,
}

/// Most lines that are yet to be counted.
const MOST_GONE: usize = 8;

/// The lines of a level, and the bits that stand for their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// From address to line number.
    pub line_shift: u32,
    /// From byte to bit: a bit stands for one byte, or more in lines of more than 64.
    pub grain_shift: u32,
}

/// What is kept of one cache.
#[derive(Clone, Debug)]
struct Layer {
    twin: Twin,
    residents: Residents,
}

/// The access under way.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    core: usize,
    tag: u32,
    causes: CausesByLevel,
}

impl Level {
    pub fn new(spec: &LevelSpec) -> Level {
        let line_shift = spec.line_shift();
        Level { line_shift, grain_shift: line_shift.saturating_sub(6) }
    }

    /// Bits of the bytes `first..=last`, which lie in one line.
    #[inline]
    pub fn bits(&self, first: u64, last: u64) -> u64 {
        let bit = |address: u64| (address & ((1 << self.line_shift) - 1)) >> self.grain_shift;
        (u64::MAX >> (63 - (bit(last) - bit(first)))) << bit(first)
    }

    pub fn used_bytes(&self, used: u64) -> u64 {
        u64::from(used.count_ones()) << self.grain_shift
    }
}

impl LineWatch {
    /// Watches a hierarchy from its beginning: it must not have simulated anything yet.
    pub fn new(hierarchy: &Hierarchy) -> LineWatch {
        let specs = hierarchy.levels();
        let cores = hierarchy.cores();
        let (places, strides) = places(specs, cores);
        let firsts = cores.div_ceil(specs[0].shared_by) as usize;
        let mut caches = Vec::with_capacity(places.len());
        for spec in &specs[1..] {
            let lines = (spec.bytes / u64::from(spec.line_bytes)) as u32;
            let count = cores.div_ceil(spec.shared_by) as usize;
            for place in &places[firsts + caches.len()..][..count] {
                let (twin, residents) = (Twin::new(lines, place.word), Residents::new(spec));
                caches.push(Layer { twin, residents });
            }
        }
        let firsts = places[..firsts].iter().map(|place| First::new(&specs[0], *place));
        let path = |core| {
            let mut path = [0; MAX_LEVELS];
            (0..specs.len()).for_each(|level| path[level] = hierarchy.cache_of(core, level) as u32);
            path
        };
        LineWatch {
            levels: specs.iter().map(Level::new).collect(),
            firsts: firsts.collect(),
            caches,
            places,
            tables: strides.into_iter().map(Table::new).collect(),
            paths: (0..cores as usize).map(path).collect(),
            counts: Vec::new(),
            evictions: vec![Pairs::default(); specs.len()],
            now: Now::default(),
            dropped: Dropped { entry: EMPTY, record: 0, used: 0 },
            at: (0, 0),
            gone: VecDeque::with_capacity(MOST_GONE),
        }
    }

    /// One access; says its depth and its causes.
    #[inline]
    pub fn access(
        &mut self,
        hierarchy: &mut Hierarchy,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        tag: u32,
    ) -> (u8, CausesByLevel) {
        self.has_room(tag);
        if bytes == 0 {
            return (0, [None; MAX_LEVELS]);
        }
        (self.now.core, self.now.tag) = (core, tag);
        let last = address.saturating_add(u64::from(bytes) - 1);
        let shift = self.levels[0].line_shift;
        let depth = match last >> shift == address >> shift {
            true => self.touch_first(hierarchy, address, last, is_write),
            false => self.touch_several(hierarchy, address, last, is_write),
        };
        (depth, self.answered(hierarchy, is_write, depth))
    }

    /// [`Self::access`] to a line that the first level is known not to have; says its depth.
    #[inline]
    pub fn access_missing(
        &mut self,
        hierarchy: &mut Hierarchy,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        tag: u32,
    ) -> u8 {
        self.has_room(tag);
        (self.now.core, self.now.tag) = (core, tag);
        let used = self.levels[0].bits(address, address + u64::from(bytes - 1));
        let depth = self.miss_first(hierarchy, self.line(address), used, is_write);
        self.answered(hierarchy, is_write, depth);
        depth
    }

    /// Counts the access under way and its causes.
    #[inline(always)]
    fn answered(&mut self, hierarchy: &mut Hierarchy, is_write: bool, depth: u8) -> CausesByLevel {
        hierarchy.answered[usize::from(is_write)][usize::from(depth)] += 1;
        if depth == 0 {
            return [None; MAX_LEVELS];
        }
        let causes = std::mem::replace(&mut self.now.causes, [None; MAX_LEVELS]);
        let first = self.now.tag as usize * self.levels.len();
        for (counts, cause) in self.counts[first..first + self.levels.len()].iter_mut().zip(causes) {
            let Some(cause) = cause else { break };
            counts.count(cause);
        }
        causes
    }

    /// Line of the first level.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.levels[0].line_shift
    }

    /// A core's first level, and the records of its lines.
    #[inline(always)]
    pub fn first_of(&self, core: usize) -> (&First, &Table) {
        let first = &self.firsts[self.paths[core][0] as usize];
        (first, &self.tables[first.place.table])
    }

    /// By tag and, innermost first, level.
    pub fn finish(mut self) -> (Vec<LevelDetail>, Vec<Vec<Eviction>>) {
        self.count_all_gone();
        for cache in 0..self.firsts.len() {
            for (line, record, used) in self.firsts[cache].take_all_used() {
                self.enter_used(cache, line, record, used);
            }
        }
        let levels = self.levels.len();
        let mut seen = Vec::new();
        for cores in &self.paths {
            for (level, cache) in cores[..levels].iter().enumerate() {
                if !seen.contains(cache) {
                    seen.push(*cache);
                    let Place { table, word, first_word, .. } = self.places[*cache as usize];
                    for record in self.tables[table].records() {
                        let tag = (record[word] >> 32) as u32;
                        if tag & HELD != 0 {
                            let counts = &mut self.counts[(tag & !HELD) as usize * levels + level];
                            counts.resident_lines += 1;
                            let used =
                                (first_word..=word).step_by(2).fold(0, |used, word| used | record[word + 1]);
                            counts.resident_used_bytes += self.levels[level].used_bytes(used);
                        }
                    }
                }
            }
        }
        for (counts, level) in self.counts.iter_mut().zip(self.levels.iter().cycle()) {
            counts.fetched_bytes = counts.lines() << level.line_shift;
        }
        (self.counts, evictions(&self.evictions))
    }

    /// Bytes of memory that grow with the number of distinct lines.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }

    /// There is room to count what is found of a tag.
    #[inline(always)]
    pub fn has_room(&mut self, tag: u32) {
        if (tag as usize + 1) * self.levels.len() > self.counts.len() {
            self.make_room(tag);
        }
    }

    /// A core's first level, for many hits in a row, and the shape of its lines; `None` if its number of sets is no power of two.
    #[inline]
    pub fn hits(&mut self, core: usize) -> Option<(Hits<'_>, Level)> {
        let first = self.paths.get(core)?[0] as usize;
        Some((self.firsts[first].hits()?, self.levels[0].clone()))
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, tag: u32) {
        assert!(tag < HELD, "a tag is below 2^31, not {tag}");
        self.counts.resize((tag as usize + 1) * self.levels.len(), LevelDetail::default());
    }

    /// An access to several lines of the first level.
    #[cold]
    fn touch_several(&mut self, hierarchy: &mut Hierarchy, first: u64, last: u64, is_write: bool) -> u8 {
        let shift = self.levels[0].line_shift;
        let part = |line: u64| (first.max(line << shift), last.min((line << shift) + ((1 << shift) - 1)));
        let lines = (first >> shift..=last >> shift).map(part);
        let depths = lines.map(|(first, last)| self.touch_first(hierarchy, first, last, is_write));
        depths.max().unwrap_or(0)
    }

    /// An access to one line.
    #[inline(always)]
    fn touch_first(&mut self, hierarchy: &mut Hierarchy, first: u64, last: u64, is_write: bool) -> u8 {
        let used = self.levels[0].bits(first, last);
        let line = first >> self.levels[0].line_shift;
        let cache = &mut self.firsts[self.paths[self.now.core][0] as usize];
        let Some(slot) = cache.find(line) else {
            return self.miss_first(hierarchy, line, used, is_write);
        };
        if cache.hit(&mut self.tables[cache.place.table], slot, used, is_write) {
            self.counts[self.now.tag as usize * self.levels.len()].spared += 1;
        }
        0
    }

    /// The first level does not have the line.
    #[inline(never)]
    fn miss_first(&mut self, hierarchy: &mut Hierarchy, line: u64, used: u64, is_write: bool) -> u8 {
        let number = self.paths[self.now.core][0] as usize;
        let address = line << self.levels[0].line_shift;
        self.prefetch_outer_sets(address);
        let place = self.places[number];
        let table = &mut self.tables[place.table];
        let record = table.find(line);
        if !self.gone.is_empty() {
            self.count_some_gone(record);
        }
        let cache = &mut self.firsts[number];
        let table = &mut self.tables[place.table];
        let (slot, dropped) = cache.drop_one(table, line);
        let before = cache.fill(table, slot, line, record, is_write);
        self.dropped = dropped;
        self.at = (place.table, record);
        self.miss(0, place, before);
        let depth = hierarchy.outwards(self.now.core, address, dropped.entry, self);
        // Only now: it is of the fetches that have just begun.
        self.firsts[number].add_used(slot, used);
        depth
    }

    /// Before a record changes, what waits for it must have been counted; else one line at a time is.
    #[inline(never)]
    fn count_some_gone(&mut self, record: At) {
        if self.gone.iter().any(|gone| gone.record == record) {
            self.count_all_gone();
        } else if let Some(oldest) = self.gone.pop_front() {
            self.count_gone(oldest);
        }
    }

    fn count_all_gone(&mut self) {
        while let Some(oldest) = self.gone.pop_front() {
            self.count_gone(oldest);
        }
    }

    /// The end of a fetch.
    fn count_gone(&mut self, gone: Gone) {
        let Place { table, word, first_word, .. } = self.places[gone.cache];
        let table = &mut self.tables[table];
        let state = table.word(gone.record, word);
        let fetched_by = (*state >> 32) as u32 & !HELD;
        *state = u64::from(*state as u32) | u64::from(gone.by) << 32;
        let uses = (first_word..=word).step_by(2);
        let used = uses.fold(0, |used, word| used | *table.word(gone.record, word + 1));
        let counts = &mut self.counts[fetched_by as usize * self.levels.len() + gone.level];
        counts.evicted_lines += 1;
        counts.evicted_used_bytes += self.levels[gone.level].used_bytes(used);
    }

    /// From the line's record at the level inside to that of this level, where they are not the same.
    #[inline(never)]
    fn go_out(&mut self, table: usize, line: u64) {
        let (inner, record) = self.at;
        let outer = *self.tables[inner].word(record, OUTER) as u32;
        self.at = if outer != 0 {
            (table, outer - 1)
        } else {
            let outer = self.tables[table].find(line);
            *self.tables[inner].word(record, OUTER) = u64::from(outer) + 1;
            (table, outer)
        };
    }

    /// The outer levels are asked next, and their sets are seldom near.
    #[inline]
    fn prefetch_outer_sets(&self, address: u64) {
        for (level, cache) in self.levels.iter().zip(&self.paths[self.now.core]).skip(1) {
            self.caches[*cache as usize - self.firsts.len()].residents.prefetch(address >> level.line_shift);
        }
    }

    /// An outer cache was asked for the line at hand.
    #[inline]
    fn touch(&mut self, level: usize, cache: usize, line: u64, hit: bool) {
        let place = self.places[cache];
        if !hit && self.tables.len() > 1 {
            self.enter_used_of(level, cache, line); // What was used before this fetch is not of it.
        }
        let layer = &mut self.caches[cache - self.firsts.len()];
        let before = layer.twin.touch(&mut self.tables[place.table], self.at.1);
        if !hit {
            layer.residents.enter(line, self.at.1);
            self.miss(level, place, before);
        } else if before != Before::Held {
            self.counts[self.now.tag as usize * self.levels.len() + level].spared += 1;
        }
    }

    fn miss(&mut self, level: usize, place: Place, before: Before) {
        let table = &mut self.tables[place.table];
        let word = table.word(self.at.1, place.word);
        let by = (*word >> 32) as u32;
        *word = u64::from(*word as u32) | u64::from(self.now.tag | HELD) << 32;
        let used = std::mem::take(table.word(self.at.1, place.word + 1));
        if place.has_next {
            *table.word(self.at.1, place.word + 3) |= used;
        }
        let cause = match before {
            Before::Never => Cause::Cold,
            Before::Lost => Cause::Capacity,
            Before::Held => Cause::Conflict,
        };
        if before != Before::Never {
            self.evictions[level].add(self.now.tag, by);
        }
        self.now.causes[level].get_or_insert(cause);
    }
}

impl Observer for LineWatch {
    #[inline(always)]
    fn asked(&mut self, level: usize, cache: usize, line: u64, found: Found) {
        debug_assert!(level > 0, "the first level is ours");
        let table = self.places[cache].table;
        if self.at.0 != table {
            self.go_out(table, line);
        }
        self.touch(level, cache, line, found == Found::Hit);
    }

    fn evicted(&mut self, level: usize, cache: usize, line: u64, _note: u32) {
        let by = self.now.tag;
        if level == 0 {
            let Dropped { record, used, .. } = self.dropped;
            self.enter_used(cache, line, record, used);
            return self.count_gone(Gone { level, cache, record, by });
        }
        let record = self.caches[cache - self.firsts.len()].residents.leave(line);
        let gone = Gone { level, cache, record, by };
        // Uses reach the records of lines of the first level at any time; those of outer records, from several inner ones.
        if self.enter_used_of(level, cache, line) || self.tables.len() > 1 {
            return self.count_gone(gone);
        }
        self.tables[0].prefetch(record);
        if self.gone.len() == MOST_GONE
            && let Some(oldest) = self.gone.pop_front()
        {
            self.count_gone(oldest);
        }
        self.gone.push_back(gone);
    }
}
