//! Why an access missed (the three Cs), what evicted the line, and how much of each fetched line
//! was used.
//!
//! A miss of one cache is
//! - **cold** if that cache was never looked up for the line before: only fetching it earlier would
//!   help;
//! - **capacity** if a fully associative LRU cache of the same size, given the same requests,
//!   misses too: too many other lines were used in between;
//! - **conflict** otherwise: there was room, but not in the line's set.
//!
//! (Hill, "Aspects of cache memory and instruction buffer performance", 1987.) A set-associative
//! cache can also hit where the fully associative one misses, for example in loops just over its
//! size; such lines are counted as *spared*: the lines that the fully associative cache misses are
//! cold, capacity and spared. Where cores are kept coherent, a miss is **true** or **false
//! sharing** instead if the cache lost the line to another core's write, and the line is **held
//! elsewhere** if it did not, but another core has written to it since, and has it still: then it
//! comes from there, and a larger cache would not have helped.
//!
//! A *fetch* of a cache begins when the cache gets a line and ends when the line leaves. A byte of
//! the line is used by the fetch if, between the two, an access of a core that shares the cache
//! touches it, whichever level serves that access. Each fetch is charged to the tag of the access
//! that caused it, so a caller that tags accesses with their source gets, per source and level, the
//! share of the fetched bytes that was worth fetching. The tag of the access that drops the line is
//! remembered until the line is missed again: unless that miss is cold, it is charged to that tag.
//!
//! Use is kept in 64 bits a line: bytes for lines of up to 64, pairs of bytes for 128, and so on,
//! where a pair of which one byte is touched counts as used whole. Levels share records of lines
//! where they can ([`places`]).
//!
//! A [`Watcher`] keeps all of this and simulates nothing. For each access, caches call it in this
//! order:
//!
//! ```text
//!   begin     whose access it is
//!   missed    by level: a cache does not have the line, and whether a fully associative one has
//!   fetched   a cache has a line from now on, asked for or not
//!   left      a cache does not have a line any more, and by whose fault
//!   take      what the access missed for, once all of its lines are looked up
//! ```
//! Two kinds of caches do: those of [`lru`](crate::watch::lru), which are fast and know one rule,
//! and those of a machine's rules ([`model`](crate::watch::model)). Both enter uses in a record's
//! words. Each gathers them in its own way, which depends on how lines come and go.

use crate::model::Sharing;
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::tag::{LineState, Tag};
use crate::watch::misses::{Cause, CausesByLevel, Eviction, LevelDetail, evictions};
use crate::watch::pairs::Pairs;
use crate::watch::records::{OUTER, Place, Uses, places};
use crate::watch::twin::Before;

/// Keeps the state of all lines in all caches, and counts the reasons of misses by tag.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    pub levels: Vec<Level>,
    /// Indexed by level: it gets the lines that the level inside drops, and fetches none.
    pub exclusive: [bool; MAX_LEVELS],
    /// Indexed by level: true if lines come in sectors, whose bytes are counted as they come.
    pub sectored: [bool; MAX_LEVELS],
    /// Indexed by cache, counted over all levels, innermost level first.
    pub places: Vec<Place>,
    pub tables: Vec<Table>,
    /// Indexed by core: its cache at each level.
    pub paths: Vec<[u32; MAX_LEVELS]>,
    /// Core and tag of the access under way.
    pub core: usize,
    pub tag: Tag,
    causes: CausesByLevel,
    /// Indexed by tag and level.
    counts: Vec<LevelDetail>,
    /// Indexed by level: pairs of the tag that missed and the tag that had evicted the line.
    evictions: Vec<Pairs>,
}

/// The lines of a level, and the bits that stand for their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// From address to line number.
    pub line_shift: u32,
    /// Bits by byte: a bit stands for one byte, or for several in lines of more than 64.
    pub grain_shift: u32,
}

impl Level {
    fn new(spec: &LevelSpec) -> Level {
        let line_shift = spec.line_shift();
        Level { line_shift, grain_shift: line_shift.saturating_sub(6) }
    }

    /// Bits of the bytes `first..=last`, which lie in one line.
    #[inline]
    pub fn bits(&self, first: u64, last: u64) -> u64 {
        self.bits_at(first & ((1 << self.line_shift) - 1), last - first)
    }

    /// Bits of the byte at `offset` of a line and the `after` bytes behind it, all in the line.
    #[inline(always)]
    pub fn bits_at(&self, offset: u64, after: u64) -> u64 {
        let (first, last) = (offset >> self.grain_shift, (offset + after) >> self.grain_shift);
        (u64::MAX >> (63 - (last - first))) << first
    }

    fn used_bytes(&self, used: u64) -> u64 {
        u64::from(used.count_ones()) << self.grain_shift
    }

    /// Iterations bits of a first-level line at an address into bits of this level's line around
    /// it.
    #[inline(always)]
    pub fn widen(&self, inner: &Level, address: u64, used: u64) -> u64 {
        match self.line_shift == inner.line_shift {
            true => used,
            false => self.widen_longer(inner, address, used),
        }
    }

    /// Moves the bits to their place in the line if this level's lines are longer.
    #[inline(never)]
    fn widen_longer(&self, inner: &Level, address: u64, used: u64) -> u64 {
        let grain = 1 << inner.grain_shift;
        let set = (0..64).filter(|bit| used >> bit & 1 != 0).map(|bit| address + bit * grain);
        set.fold(0, |bits, first| bits | self.bits(first, first + (grain - 1)))
    }
}

impl Watcher {
    /// Watches empty caches of these shapes; `cache_of` numbers them by core and level, over all
    /// levels.
    pub fn new(
        specs: &[LevelSpec],
        cores: u32,
        cache_of: impl Fn(usize, usize) -> usize,
        uses: Uses,
    ) -> Watcher {
        let (places, strides) = places(specs, cores, uses);
        let path = |core| {
            let mut path = [0; MAX_LEVELS];
            (0..specs.len()).for_each(|level| path[level] = cache_of(core, level) as u32);
            path
        };
        Watcher {
            levels: specs.iter().map(Level::new).collect(),
            exclusive: [false; MAX_LEVELS],
            sectored: [false; MAX_LEVELS],
            places,
            tables: strides.into_iter().map(Table::new).collect(),
            paths: (0..cores as usize).map(path).collect(),
            core: 0,
            tag: Tag::default(),
            causes: [None; MAX_LEVELS],
            counts: Vec::new(),
            evictions: vec![Pairs::default(); specs.len()],
        }
    }

    /// Makes room for the counts of a tag.
    #[inline(always)]
    pub fn has_room(&mut self, tag: Tag) {
        if (tag.index() + 1) * self.levels.len() > self.counts.len() {
            self.make_room(tag);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, tag: Tag) {
        assert!(tag.number() < Tag::LIMIT, "tags have numbers below {}, not {tag:?}", Tag::LIMIT);
        self.counts.resize((tag.index() + 1) * self.levels.len(), LevelDetail::default());
    }

    /// Begins an access of a core. There is room for its tag.
    #[inline(always)]
    pub fn begin(&mut self, core: usize, tag: Tag) {
        (self.core, self.tag) = (core, tag);
    }

    /// Records that a cache misses a line, or a part of it, and the reason: it was lost to another
    /// core; another core `is_held` to have it; or else the state of the line in the fully
    /// associative cache, and the tag that evicted it.
    #[inline(always)]
    pub fn missed(
        &mut self,
        level: usize,
        lost: Option<Sharing>,
        is_held: bool,
        before: Before,
        left_by: Option<Tag>,
    ) {
        let (cause, by) = match (lost, before) {
            (Some(Sharing { is_true: true, by_tag, .. }), _) => (Cause::TrueSharing, Some(by_tag)),
            (Some(Sharing { by_tag, .. }), _) => (Cause::FalseSharing, Some(by_tag)),
            (None, _) if is_held => (Cause::HeldElsewhere, None),
            (None, Before::Never) => (Cause::Cold, None),
            (None, Before::Lost) => (Cause::Capacity, left_by),
            (None, Before::Held) => (Cause::Conflict, left_by),
        };
        if let Some(by) = by {
            self.evictions[level].add(self.tag, by);
        }
        self.causes[level].get_or_insert(cause);
    }

    /// Counts a hit where a fully associative cache would have missed.
    #[inline]
    pub fn spared(&mut self, level: usize) {
        self.count(self.tag, level).spared += 1;
    }

    /// Begins a fetch: a cache has a line from now on. Returns the tag that had evicted it.
    #[inline(always)]
    pub fn fetched(&mut self, place: Place, at: At) -> Option<Tag> {
        let table = &mut self.tables[place.table];
        let word = table.word(at, place.word);
        let left_by = LineState::of(*word).whose();
        LineState::held(self.tag).put(word);
        let used = std::mem::take(table.word(at, place.word + 1));
        if place.has_next {
            *table.word(at, place.word + 3) |= used;
        }
        left_by
    }

    /// Ends a fetch, if there is one: a cache does not have the line any more, because of accesses
    /// with the tag `by`, if there is one.
    #[inline(always)]
    pub fn left(&mut self, level: usize, place: Place, at: At, by: Option<Tag>) {
        let table = &mut self.tables[place.table];
        let word = table.word(at, place.word);
        let fetched_by = LineState::of(*word).fetched_by();
        LineState::left(by).put(word);
        // Of an exclusive level nothing is read: what it drops was not looked at for long, and a store waits for nobody.
        if let Some(tag) = fetched_by.filter(|_| !self.exclusive[level]) {
            let uses = (place.first_word..=place.word).step_by(2);
            let used = uses.fold(0, |used, word| used | table.get(at, word + 1));
            let counts = &mut self.counts[tag.index() * self.levels.len() + level];
            counts.evicted_lines += 1;
            counts.evicted_used_bytes += self.levels[level].used_bytes(used);
        }
    }

    /// Ends an access that missed: counts its causes, and returns them.
    #[inline(always)]
    pub fn take(&mut self) -> CausesByLevel {
        let causes = std::mem::replace(&mut self.causes, [None; MAX_LEVELS]);
        let first = self.tag.index() * self.levels.len();
        for (counts, cause) in self.counts[first..first + self.levels.len()].iter_mut().zip(causes) {
            let Some(cause) = cause else { break };
            counts.count(cause);
        }
        causes
    }

    /// Returns the counts of a tag at a level. There must be room for the tag.
    #[inline]
    pub fn count(&mut self, tag: Tag, level: usize) -> &mut LevelDetail {
        &mut self.counts[tag.index() * self.levels.len() + level]
    }

    /// Returns the state of a line in a cache.
    #[inline(always)]
    pub fn state(&self, place: Place, at: At) -> LineState {
        LineState::of(self.tables[place.table].get(at, place.word))
    }

    /// Returns the record of a line in the table of a cache further out, from its record in the
    /// table `inner`.
    #[inline]
    pub fn outside(&mut self, inner: usize, record: At, outer: usize, line: u64) -> At {
        if inner == outer {
            return record;
        }
        match self.known_outside(inner, record) {
            Some(at) => at,
            None => {
                let at = self.tables[outer].find(line);
                *self.tables[inner].word(record, OUTER) = u64::from(at) + 1;
                at
            }
        }
    }

    /// Returns the outer table's record of a line from its record in the table `inner`, if the line
    /// was ever looked up there.
    #[inline]
    pub fn known_outside(&self, inner: usize, record: At) -> Option<At> {
        (self.tables[inner].get(record, OUTER) as At).checked_sub(1)
    }

    /// Returns the line of the first level at an address.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.levels[0].line_shift
    }

    /// Returns the records of the lines of a core's first level.
    #[inline(always)]
    pub fn innermost(&self, core: usize) -> &Table {
        &self.tables[self.places[self.paths[core][0] as usize].table]
    }

    /// Returns the bytes of memory that grow with the number of distinct lines.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }

    /// Enters all uses, and returns the counts by tag and level (innermost first), and the
    /// evictions by level.
    pub fn finish(mut self) -> (Vec<LevelDetail>, Vec<Vec<Eviction>>) {
        let levels = self.levels.len();
        for (cache, place) in self.places.iter().enumerate() {
            let is_at = |level: &usize| self.paths.iter().any(|path| path[*level] as usize == cache);
            let Some(level) = (0..levels).find(is_at).filter(|level| !self.exclusive[*level]) else {
                continue;
            };
            for record in self.tables[place.table].records() {
                if let Some(tag) = LineState::of(record[place.word]).fetched_by() {
                    let uses = (place.first_word..=place.word).step_by(2);
                    let used = uses.fold(0, |used, word| used | record[word + 1]);
                    let counts = &mut self.counts[tag.index() * levels + level];
                    counts.resident_lines += 1;
                    counts.resident_used_bytes += self.levels[level].used_bytes(used);
                }
            }
        }
        for (counts, level) in self.counts.iter_mut().zip((0..levels).cycle()) {
            if !self.sectored[level] {
                counts.fetched_bytes = counts.lines() << self.levels[level].line_shift;
            }
        }
        (self.counts, evictions(&self.evictions))
    }
}
