//! Levels of caches, private or shared, over several cores.

use std::ops::Range;

use crate::lru::cache::Cache;
use crate::lru::deferred::Waiting;
use crate::lru::residencies::Residencies;
use crate::lru::row::{DIRTY, EMPTY};
use crate::mem_ref::MemRef;
use crate::model::Sharing;
use crate::spec::{self, ImpossibleHierarchy, LevelSpec, MAX_LEVELS};
use crate::tag::Tag;
use crate::watch::touched::Touched;

/// The lookups of outer levels by an access to several lines. Either way it counts as one access
/// and at most one miss at each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Straddle {
    /// Each line is looked up in the next level on its own, and only if it missed, as hardware
    /// does.
    #[default]
    Apart,
    /// If any line missed, all of them are looked up in the next level: Cachegrind's rule.
    Together,
}

/// Counters of one level, all its caches together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounters {
    /// Reads that looked up this level.
    pub reads: u64,
    /// Writes that looked up this level.
    pub writes: u64,
    /// Reads that missed.
    pub read_misses: u64,
    /// Writes that missed.
    pub write_misses: u64,
    /// Dirty lines that went from this level to the next: its own evictions, and those of inner
    /// levels for lines it does not hold. For the outermost level, lines written to memory.
    pub write_backs: u64,
}

impl LevelCounters {
    /// Counters of each level from the number of accesses by [is write][level that served them].
    pub(crate) fn from_served(
        levels: usize,
        served: &[[u64; MAX_LEVELS + 1]; 2],
        write_backs: &[u64; MAX_LEVELS],
    ) -> Vec<LevelCounters> {
        // Of a shard alone, hits may be less than nothing: others count them.
        let sum = |served: &[u64]| served.iter().fold(0u64, |sum, &more| sum.wrapping_add(more));
        let beyond = |write: usize, level: usize| sum(&served[write][level..=levels]);
        (0..levels)
            .map(|level| LevelCounters {
                reads: beyond(0, level),
                writes: beyond(1, level),
                read_misses: beyond(0, level + 1),
                write_misses: beyond(1, level + 1),
                write_backs: write_backs[level],
            })
            .collect()
    }
}

/// A cache's result for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Everything that was requested.
    Hit,
    /// [`Model`](crate::Model) only: the line, but not all requested sectors.
    Part,
    /// No part of the line; the cache holds it from now on.
    Miss,
    /// [`Model`](crate::Model) only: nothing, and it does not keep the line either.
    Passed,
}

impl Found {
    #[inline(always)]
    fn of(hit: bool) -> Found {
        if hit { Found::Hit } else { Found::Miss }
    }
}

/// Observes a hierarchy while it simulates; the layers of this crate are observers.
///
/// `cache` counts the caches over all levels, innermost level first ([`Hierarchy::cache_of`]). For
/// one line of one access, the calls come in the order in which the levels are looked up.
pub trait Observer {
    /// An access looked up a line in a cache.
    fn asked(&mut self, level: usize, cache: usize, line: u64, found: Found);
    /// A cache dropped a line to make room; follows the `asked` that caused it. `note` is what
    /// [`Observer::note`] returned when the line came; always 0 for a [`Hierarchy`].
    fn evicted(&mut self, level: usize, cache: usize, line: u64, note: u32);
    /// [`Model`](crate::Model) only: returns the `note` that is passed back when the line that just
    /// came leaves the cache. Called after the `asked` or `entered` that reports the line.
    #[inline(always)]
    fn note(&self) -> u32 {
        0
    }
    /// [`Model`](crate::Model) only: the cache that is looked up next misses because of another
    /// core's write.
    #[inline(always)]
    fn lost(&mut self, _level: usize, _cache: usize, _line: u64, _sharing: Sharing) {}
    /// [`Model`](crate::Model) only: another core's cache has the first-level line that is looked
    /// up next, with newer bytes than the outer levels.
    #[inline(always)]
    fn held_elsewhere(&mut self, _line: u64) {}
    /// [`Model`](crate::Model) only: a cache got a line that no access requested from it.
    #[inline(always)]
    fn entered(&mut self, _level: usize, _cache: usize, _line: u64) {}
    /// [`Model`](crate::Model) only: a cache holds the line of a request that no access waits for.
    /// That counts as a use of the line.
    #[inline(always)]
    fn reused(&mut self, _level: usize, _cache: usize, _line: u64) {}
    /// [`Model`](crate::Model) only, for levels with sectors: a cache fetched this many bytes of a
    /// line that it holds.
    #[inline(always)]
    fn filled(&mut self, _level: usize, _cache: usize, _line: u64, _bytes: u64) {}
    /// [`Model`](crate::Model) only: an exclusive cache gave a line to a cache inside it.
    #[inline(always)]
    fn moved_inwards(&mut self, level: usize, cache: usize, line: u64, note: u32) {
        self.evicted(level, cache, line, note);
    }
    /// [`Model`](crate::Model) only: a cache lost a line because an inclusive one outside dropped
    /// it.
    #[inline(always)]
    fn back_invalidated(&mut self, level: usize, cache: usize, line: u64, note: u32) {
        self.evicted(level, cache, line, note);
    }
    /// [`Model`](crate::Model) only: a cache lost a line to another core's write; `tag` is that
    /// access's.
    #[inline(always)]
    fn invalidated(&mut self, level: usize, cache: usize, line: u64, note: u32, _core: u32, _tag: Tag) {
        self.evicted(level, cache, line, note);
    }
}

/// An observer that ignores everything.
impl Observer for () {
    #[inline(always)]
    fn asked(&mut self, _level: usize, _cache: usize, _line: u64, _found: Found) {}
    #[inline(always)]
    fn evicted(&mut self, _level: usize, _cache: usize, _line: u64, _note: u32) {}
}

/// The levels of a machine. See the crate's page for what is modelled.
#[derive(Clone)]
pub struct Hierarchy {
    pub(crate) specs: Vec<LevelSpec>,
    pub(crate) caches: Vec<Cache>,
    pub(crate) paths: Vec<Path>,
    pub(crate) shifts: [u32; MAX_LEVELS],
    straddle: Straddle,
    /// Accesses by [is write][level that served them].
    pub(crate) served: [[u64; MAX_LEVELS + 1]; 2],
    pub(crate) write_backs: [u64; MAX_LEVELS],
    pub(crate) waiting: Waiting,
    /// Lines that memory has served, if first touches are counted.
    pub(crate) touched: Option<Touched>,
    /// The lines that are followed.
    pub(crate) residencies: Residencies,
}

/// Index of a core's cache at each level.
type Path = [u32; MAX_LEVELS];

impl Hierarchy {
    /// Empty caches: `levels` from the innermost on, for cores `0..cores`. Core `c` uses cache
    /// number `c / shared_by` of each level.
    pub fn new(levels: &[LevelSpec], cores: u32) -> Result<Hierarchy, ImpossibleHierarchy> {
        spec::check_all(levels, cores)?;
        let mut caches = Vec::new();
        let mut paths = vec![[0; MAX_LEVELS]; cores as usize];
        let mut shifts = [0; MAX_LEVELS];
        for (i, level) in levels.iter().enumerate() {
            let first = caches.len() as u32;
            let empty = if i == 0 { Cache::of_wide(level) } else { Cache::new(level) };
            let empty = empty.map_err(|problem| ImpossibleHierarchy::Level { level: i + 1, problem })?;
            caches.resize(caches.len() + cores.div_ceil(level.shared_by) as usize, empty);
            for (core, path) in paths.iter_mut().enumerate() {
                path[i] = first + core as u32 / level.shared_by;
            }
            shifts[i] = level.line_shift();
        }
        Ok(Hierarchy {
            specs: levels.to_vec(),
            caches,
            paths,
            shifts,
            straddle: Straddle::default(),
            served: [[0; MAX_LEVELS + 1]; 2],
            write_backs: [0; MAX_LEVELS],
            waiting: Waiting::default(),
            touched: None,
            residencies: Residencies::default(),
        })
    }

    /// The same hierarchy, but [`Hierarchy::settle`] reports first touches of lines separately.
    pub fn with_first_touches(mut self) -> Hierarchy {
        self.touched = Some(Touched::new(self.line_bytes()));
        self
    }

    /// The same hierarchy, empty, that follows the lines of accesses whose results come later
    /// ([`Hierarchy::residencies`]): one line in `one_of`, and fewer when there are too many
    /// residencies. It does so if all levels have lines of one size and the first has a power of
    /// two of sets, and takes no other accesses then.
    pub fn with_residencies(mut self, one_of: u64) -> Hierarchy {
        // Lines of 4 bytes have no bit to spare for the mark.
        let is_even = self.shifts[0] > 2
            && self.shifts[..self.specs.len()].iter().all(|shift| *shift == self.shifts[0]);
        if is_even && self.caches[0].rows().is_some() {
            self.residencies.begin(one_of);
        }
        self
    }

    /// The same hierarchy with another rule for accesses that straddle lines.
    pub fn with_straddle(mut self, straddle: Straddle) -> Hierarchy {
        self.straddle = straddle;
        self
    }

    /// Simulates one access. Returns the deepest level that had to be looked up: 0 when the first
    /// level held every line, 1 when the second level was needed, …, the number of levels when
    /// memory was.
    ///
    /// An access of several lines touches them in ascending order and counts once. A long range is
    /// better cut by [`touch_lines`](crate::touch_lines) into one access per line. Nothing is
    /// touched or counted for zero bytes, and a range that would run past the last address is cut
    /// there.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> u8 {
        self.access_observed(access, &mut ())
    }

    /// [`Hierarchy::access`], watched.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline]
    pub fn access_observed(&mut self, access: MemRef, observer: &mut impl Observer) -> u8 {
        let MemRef { address, bytes, is_write, .. } = access;
        let (core, last) = (access.core(), access.last());
        let shift = self.shifts[0];
        let line = address >> shift;
        if bytes == 0 {
            return 0;
        }
        let depth = if last >> shift != line {
            self.access_lines(core, address, last, is_write, observer)
        } else {
            let cache = self.paths[core][0] as usize;
            if self.caches[cache].touch_front(line, is_write) {
                observer.asked(0, cache, line, Found::Hit);
                0
            } else {
                self.walk(core, address, is_write, observer)
            }
        };
        self.served[usize::from(is_write)][usize::from(depth)] += 1;
        depth
    }

    /// [`Hierarchy::access`] for an access that no program makes, such as a walk of the page
    /// tables. It is not counted.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    pub(crate) fn access_uncounted(&mut self, access: MemRef) -> u8 {
        let depth = self.access(access);
        self.served[usize::from(access.is_write)][usize::from(depth)] -= 1;
        depth
    }

    /// Counts accesses as hits of the first level. Those that wait for [`Hierarchy::settle`] are
    /// counted as hits, too, until it corrects that.
    pub fn hit_again(&mut self, is_write: bool, accesses: u64) {
        let hits = &mut self.served[usize::from(is_write)][0];
        *hits = hits.wrapping_add(accesses);
    }

    /// The rule for accesses that straddle lines.
    pub fn straddle(&self) -> Straddle {
        self.straddle
    }

    /// Counters of each level, innermost first, while nothing waits.
    pub fn counters(&self) -> Vec<LevelCounters> {
        LevelCounters::from_served(self.specs.len(), &self.served, &self.write_backs)
    }

    /// Lines that the last level has written back to memory, while nothing waits.
    #[inline(always)]
    pub fn written_back(&self) -> u64 {
        self.write_backs[self.specs.len() - 1]
    }

    /// The levels' shapes, innermost first.
    pub fn levels(&self) -> &[LevelSpec] {
        &self.specs
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.paths.len() as u32
    }

    /// Number of the cache that a core uses at a level, counted over all levels, innermost level
    /// first.
    ///
    /// # Panics
    /// If there is no such core or level.
    pub fn cache_of(&self, core: usize, level: usize) -> usize {
        self.paths[core][..self.specs.len()][level] as usize
    }

    /// Number of caches over all levels.
    pub fn caches(&self) -> usize {
        self.caches.len()
    }

    /// Bytes of a line of the first level.
    pub fn line_bytes(&self) -> u32 {
        self.specs[0].line_bytes
    }

    /// The address bits that take part in choosing the set at every level: lines that differ in
    /// them never meet in any set. Empty when the levels have no such bit in common.
    pub fn shard_bits(&self) -> Range<u32> {
        spec::shard_bits(&self.specs)
    }

    /// Looks up one line, from the first level on until a level has it.
    #[inline]
    fn walk(&mut self, core: usize, address: u64, is_write: bool, observer: &mut impl Observer) -> u8 {
        let cache = self.paths[core][0] as usize;
        let line = address >> self.shifts[0];
        let moved = self.caches[cache].move_to_front(line, u64::from(is_write));
        observer.asked(0, cache, line, Found::of(moved.hit));
        if moved.hit { 0 } else { self.look_up_outer(core, address, moved.last, observer) }
    }

    /// The rest of a walk, after the first level missed and dropped the entry `dropped`.
    #[inline(never)]
    pub(crate) fn look_up_outer(
        &mut self,
        core: usize,
        address: u64,
        mut dropped: u64,
        observer: &mut impl Observer,
    ) -> u8 {
        let levels = self.specs.len();
        for level in 1..=levels {
            if level + 1 < levels {
                let next = &self.caches[self.paths[core][level + 1] as usize];
                next.prefetch(address >> self.shifts[level + 1]);
            }
            if dropped != EMPTY {
                observer.evicted(level - 1, self.paths[core][level - 1] as usize, dropped >> 1, 0);
            }
            // EMPTY is never dirty.
            if dropped & DIRTY != 0 {
                self.write_back(core, level - 1, (dropped >> 1) << self.shifts[level - 1]);
            }
            if level == levels {
                break;
            }
            let cache = self.paths[core][level] as usize;
            let line = address >> self.shifts[level];
            // Only the first level keeps the write; what it hands outwards later makes outer copies dirty.
            let moved = self.caches[cache].move_to_front(line, 0);
            observer.asked(level, cache, line, Found::of(moved.hit));
            if moved.hit {
                return level as u8;
            }
            dropped = moved.last;
        }
        levels as u8
    }

    /// Writes a dirty line that left `level` to the nearest outer level that holds it, else to
    /// memory.
    fn write_back(&mut self, core: usize, level: usize, address: u64) {
        self.write_backs[level] += 1;
        for outer in level + 1..self.specs.len() {
            let cache = &mut self.caches[self.paths[core][outer] as usize];
            if cache.mark_dirty(address >> self.shifts[outer]) {
                return;
            }
            self.write_backs[outer] += 1;
        }
    }

    /// An access that touches the bytes `first..=last` in several lines of the first level.
    #[cold]
    fn access_lines(
        &mut self,
        core: usize,
        first: u64,
        last: u64,
        is_write: bool,
        observer: &mut impl Observer,
    ) -> u8 {
        match self.straddle {
            Straddle::Apart => {
                let shift = self.shifts[0];
                let lines = first >> shift..=last >> shift;
                lines.map(|line| self.walk(core, line << shift, is_write, observer)).max().unwrap_or(0)
            }
            Straddle::Together => self.walk_together(core, first, last, is_write, observer),
        }
    }

    fn walk_together(
        &mut self,
        core: usize,
        first: u64,
        last: u64,
        is_write: bool,
        observer: &mut impl Observer,
    ) -> u8 {
        for level in 0..self.specs.len() {
            let shift = self.shifts[level];
            let cache = self.paths[core][level] as usize;
            let mut hit = true;
            for line in first >> shift..=last >> shift {
                let touch = self.caches[cache].touch(line, is_write && level == 0);
                observer.asked(level, cache, line, Found::of(touch.hit));
                hit &= touch.hit;
                if let Some(evicted) = touch.evicted {
                    observer.evicted(level, cache, evicted.line, 0);
                    if evicted.dirty {
                        self.write_back(core, level, evicted.line << shift);
                    }
                }
            }
            if hit {
                return level as u8;
            }
        }
        self.specs.len() as u8
    }
}
