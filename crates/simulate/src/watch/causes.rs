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

use crate::fragment::Fragment;
use crate::loops::Deferred;
use crate::lru::hierarchy::{Hierarchy, LevelCounters};
use crate::mem_ref::MemRef;
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::tag::{LineState, Tag};
use crate::watch::first_level::{First, Hits};
use crate::watch::misses::{Cause, CausesByLevel, Eviction, LevelDetail, evictions};
use crate::watch::outer_level::Outer;
use crate::watch::pairs::Pairs;
use crate::watch::records::{OUTER, Place, places};
use crate::watch::twin::{Before, Twin};

/// Caches as a [`Hierarchy`] has them, of which every line is watched.
///
/// They are not that hierarchy's: where each miss leads to the records of the lines that come and go, what these say of the caches
/// need not be found out twice.
#[derive(Clone, Debug)]
pub(crate) struct LineWatch {
    specs: Vec<LevelSpec>,
    pub(crate) levels: Vec<Level>,
    /// The caches of the first level, then those of the others.
    pub(crate) firsts: Vec<First>,
    caches: Vec<Layer>,
    /// By cache of all levels.
    pub(crate) places: Vec<Place>,
    pub(crate) tables: Vec<Table>,
    /// By table: the cache of the first level that shares it.
    first_of: Vec<Option<usize>>,
    /// By core: its cache at each level.
    pub(crate) paths: Vec<[u32; MAX_LEVELS]>,
    /// By core: its caches behind the first level.
    outer: Vec<Vec<Reach>>,
    /// As of a hierarchy.
    pub(crate) answered: [[u64; MAX_LEVELS + 1]; 2],
    write_backs: [u64; MAX_LEVELS],
    /// By tag and level.
    counts: Vec<LevelDetail>,
    /// By level: who missed for whose sake.
    evictions: Vec<Pairs>,
    now: Now,
    /// Table and record of the line at the level asked last.
    at: (usize, At),
    /// Of the loop at hand, if there is one.
    pub(crate) deferred: Deferred,
}

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
    cache: Outer,
    twin: Twin,
}

/// How to get from a line of the first level to an outer cache.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Lines of the first level in one, as a power of two.
    shift: u32,
    /// In [`LineWatch::caches`].
    cache: usize,
    table: usize,
}

/// The access under way.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    core: usize,
    tag: Tag,
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
        self.bits_at(first & ((1 << self.line_shift) - 1), last - first)
    }

    /// Bits of the byte `offset` of a line and those `after` it, which lie in the line as well.
    #[inline(always)]
    pub fn bits_at(&self, offset: u64, after: u64) -> u64 {
        let (first, last) = (offset >> self.grain_shift, (offset + after) >> self.grain_shift);
        (u64::MAX >> (63 - (last - first))) << first
    }

    pub fn used_bytes(&self, used: u64) -> u64 {
        u64::from(used.count_ones()) << self.grain_shift
    }
}

impl LineWatch {
    /// Empty caches of a hierarchy's shape.
    pub fn new(hierarchy: &Hierarchy) -> LineWatch {
        let specs = hierarchy.levels();
        let cores = hierarchy.cores();
        let (places, strides) = places(specs, cores);
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
        let first_of = (0..strides.len()).map(sharing).collect();
        let firsts: Vec<First> =
            places[..of_first].iter().map(|place| First::new(&specs[0], *place)).collect();
        let path = |core| {
            let mut path = [0; MAX_LEVELS];
            (0..specs.len()).for_each(|level| path[level] = hierarchy.cache_of(core, level) as u32);
            path
        };
        let paths: Vec<_> = (0..cores as usize).map(path).collect();
        let inner = specs[0].line_shift();
        let reach = |(spec, number): (&LevelSpec, &u32)| {
            let cache = *number as usize;
            let (shift, table) = (spec.line_shift() - inner, places[cache].table);
            Reach { shift, cache: cache - of_first, table }
        };
        let outer = paths.iter().map(|path| specs.iter().zip(path).skip(1).map(reach).collect()).collect();
        LineWatch {
            specs: specs.to_vec(),
            levels: specs.iter().map(Level::new).collect(),
            firsts,
            caches,
            places,
            tables: strides.into_iter().map(Table::new).collect(),
            first_of,
            paths,
            outer,
            answered: [[0; MAX_LEVELS + 1]; 2],
            write_backs: [0; MAX_LEVELS],
            counts: Vec::new(),
            evictions: vec![Pairs::default(); specs.len()],
            now: Now::default(),
            at: (0, 0),
            deferred: Deferred::default(),
        }
    }

    /// One access; says its depth and its causes.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> (u8, CausesByLevel) {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        self.has_room(tag);
        if bytes == 0 {
            return (0, [None; MAX_LEVELS]);
        }
        self.begin(access.core(), tag);
        let last = access.last();
        let shift = self.levels[0].line_shift;
        let depth = match last >> shift == address >> shift {
            true => self.touch_first(address, last, is_write),
            false => self.touch_several(address, last, is_write),
        };
        (depth, self.count_answer(is_write, depth))
    }

    /// [`Self::access`] of one whose bytes are those of fragments, in this order; says its depth, and the first of them that deep.
    pub fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> (u8, u64, CausesByLevel) {
        self.has_room(access.tag);
        self.begin(access.core(), access.tag);
        let (mut depth, mut deepest) = (0, fragments.first().map_or(0, |first| first.address));
        for fragment in fragments {
            let here = self.touch_several(fragment.address, fragment.last(), fragment.is_write);
            if here > depth {
                (depth, deepest) = (here, fragment.address);
            }
        }
        (depth, deepest, self.count_answer(access.is_write, depth))
    }

    /// [`Self::access`] to a line that the first level is known not to have; says its depth.
    #[inline]
    pub fn access_missing(&mut self, access: MemRef) -> u8 {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        self.has_room(tag);
        self.begin(access.core(), tag);
        let used = self.levels[0].bits(address, address + u64::from(bytes - 1));
        let depth = self.miss_first(self.line(address), used, is_write);
        self.count_answer(is_write, depth);
        depth
    }

    /// An access is under way.
    #[inline(always)]
    pub fn begin(&mut self, core: usize, tag: Tag) {
        (self.now.core, self.now.tag) = (core, tag);
    }

    /// It hits a line of the first level that a fully associative one would have lost.
    pub fn count_spared(&mut self) {
        self.counts[self.now.tag.index() * self.levels.len()].spared += 1;
    }

    /// Counts the access under way and its causes.
    #[inline(always)]
    pub fn count_answer(&mut self, is_write: bool, depth: u8) -> CausesByLevel {
        self.answered[usize::from(is_write)][usize::from(depth)] += 1;
        if depth == 0 {
            return [None; MAX_LEVELS];
        }
        let causes = std::mem::replace(&mut self.now.causes, [None; MAX_LEVELS]);
        let first = self.now.tag.index() * self.levels.len();
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

    /// The levels' shapes, innermost first.
    pub fn specs(&self) -> &[LevelSpec] {
        &self.specs
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.paths.len() as u32
    }

    /// Counters of each level, innermost first.
    pub fn counters(&self) -> Vec<LevelCounters> {
        LevelCounters::from_answers(self.levels.len(), &self.answered, &self.write_backs)
    }

    /// By tag and, innermost first, level.
    pub fn finish(mut self) -> (Vec<LevelDetail>, Vec<Vec<Eviction>>) {
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
                        if let Some(tag) = LineState::of(record[word]).fetched_by() {
                            let counts = &mut self.counts[tag.index() * levels + level];
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
    pub fn has_room(&mut self, tag: Tag) {
        if (tag.index() + 1) * self.levels.len() > self.counts.len() {
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
    fn make_room(&mut self, tag: Tag) {
        assert!(tag.number() < Tag::LIMIT, "tags have numbers below {}, not {tag:?}", Tag::LIMIT);
        self.counts.resize((tag.index() + 1) * self.levels.len(), LevelDetail::default());
    }

    /// An access to several lines of the first level.
    #[cold]
    fn touch_several(&mut self, first: u64, last: u64, is_write: bool) -> u8 {
        let shift = self.levels[0].line_shift;
        let part = |line: u64| (first.max(line << shift), last.min((line << shift) + ((1 << shift) - 1)));
        let lines = (first >> shift..=last >> shift).map(part);
        let depths = lines.map(|(first, last)| self.touch_first(first, last, is_write));
        depths.max().unwrap_or(0)
    }

    /// An access to one line.
    #[inline(always)]
    fn touch_first(&mut self, first: u64, last: u64, is_write: bool) -> u8 {
        let used = self.levels[0].bits(first, last);
        let line = first >> self.levels[0].line_shift;
        let cache = &mut self.firsts[self.paths[self.now.core][0] as usize];
        let Some(slot) = cache.find(line) else {
            return self.miss_first(line, used, is_write);
        };
        if cache.hit(&mut self.tables[cache.place.table], slot, used, is_write) {
            self.count_spared();
        }
        0
    }

    /// The first level does not have the line; says how many levels do not.
    #[inline(never)]
    pub fn miss_first(&mut self, line: u64, used: u64, is_write: bool) -> u8 {
        let path = self.paths[self.now.core];
        let number = path[0] as usize;
        let place = self.places[number];
        let table = &mut self.tables[place.table];
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
        let address = line << self.levels[0].line_shift;
        let levels = self.levels.len();
        let depth = (1..levels).find(|level| self.ask(*level, path[*level] as usize, address));
        // Only now: it is of the fetches that have just begun.
        self.firsts[number].add_used(slot, used);
        depth.unwrap_or(levels) as u8
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

    /// An outer cache is asked for the line at hand; says whether it has it.
    #[inline]
    fn ask(&mut self, level: usize, number: usize, address: u64) -> bool {
        let place = self.places[number];
        let line = address >> self.levels[level].line_shift;
        if self.at.0 != place.table {
            self.go_out(place.table, line);
        }
        let record = self.at.1;
        let is_here = LineState::of(*self.tables[place.table].word(record, place.word)).is_held();
        if !is_here && self.first_of[place.table].is_none() {
            self.enter_used_of(level, number, line); // What was used before this fetch is not of it.
        }
        let Layer { cache, twin } = &mut self.caches[number - self.firsts.len()];
        let before = twin.touch(&mut self.tables[place.table], record);
        if is_here {
            cache.touch(line, record);
            if before != Before::Held {
                self.counts[self.now.tag.index() * self.levels.len() + level].spared += 1;
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

    /// A cache has the line at hand from now on.
    #[inline(always)]
    fn miss(&mut self, level: usize, place: Place, before: Before) {
        let table = &mut self.tables[place.table];
        let word = table.word(self.at.1, place.word);
        let by = LineState::of(*word).whose();
        LineState::held(self.now.tag).put(word);
        let used = std::mem::take(table.word(self.at.1, place.word + 1));
        if place.has_next {
            *table.word(self.at.1, place.word + 3) |= used;
        }
        let cause = match before {
            Before::Never => Cause::Cold,
            Before::Lost => Cause::Capacity,
            Before::Held => Cause::Conflict,
        };
        if let Some(by) = by.filter(|_| before != Before::Never) {
            self.evictions[level].add(self.now.tag, by);
        }
        self.now.causes[level].get_or_insert(cause);
    }

    /// An outer cache drops a line.
    #[inline]
    fn drop_outer(&mut self, level: usize, number: usize, record: At) {
        let place = self.places[number];
        let table = &mut self.tables[place.table];
        let line = table.key(record);
        match self.first_of[place.table] {
            None => _ = self.enter_used_of(level, number, line),
            Some(first) => {
                if LineState::of(*table.word(record, place.first_word)).is_held()
                    && let Some((record, used)) = self.take_used(first, line)
                {
                    self.enter_used(first, line, record, used);
                }
            }
        }
        let is_written = LineState::of(*self.tables[place.table].word(record, place.word)).is_written();
        self.leave(level, place, record, is_written);
    }

    /// The end of a fetch.
    #[inline]
    fn leave(&mut self, level: usize, place: Place, record: At, is_written: bool) {
        let table = &mut self.tables[place.table];
        let state = table.word(record, place.word);
        let fetched_by = LineState::of(*state).whose();
        LineState::left(Some(self.now.tag)).put(state);
        let uses = (place.first_word..=place.word).step_by(2);
        let used = uses.fold(0, |used, word| used | *table.word(record, word + 1));
        if let Some(tag) = fetched_by {
            let counts = &mut self.counts[tag.index() * self.levels.len() + level];
            counts.evicted_lines += 1;
            counts.evicted_used_bytes += self.levels[level].used_bytes(used);
        }
        if is_written {
            self.write_back(level, place.table, record);
        }
    }

    /// Hands a written line that left a level to the nearest outer one that holds it, else to memory.
    #[inline(never)]
    fn write_back(&mut self, level: usize, mut table: usize, mut record: At) {
        self.write_backs[level] += 1;
        for outer in level + 1..self.levels.len() {
            let place = self.places[self.paths[self.now.core][outer] as usize];
            if place.table != table {
                let link = *self.tables[table].word(record, OUTER) as u32;
                // What was here has been asked for outside, so it is known there.
                debug_assert!(link != 0, "a line came without asking the outer level");
                (table, record) = (place.table, link.wrapping_sub(1));
            }
            let state = self.tables[table].word(record, place.word);
            if LineState::of(*state).is_held() {
                LineState::write(state);
                return;
            }
            self.write_backs[outer] += 1;
        }
    }

    /// Asks the processor we run on for the rows of a core's outer caches that have to do with a line.
    #[inline(always)]
    pub fn prefetch_rows(&self, core: usize, line: u64) {
        for reach in &self.outer[core] {
            self.caches[reach.cache].cache.prefetch(line >> reach.shift);
        }
    }

    /// And for the records of the lines that would go if the line came.
    #[inline(always)]
    pub fn prefetch_oldest(&self, core: usize, line: u64) {
        for reach in &self.outer[core] {
            if let Some(oldest) = self.caches[reach.cache].cache.oldest(line >> reach.shift) {
                self.tables[reach.table].prefetch(oldest);
            }
        }
    }
}
