//! How many bytes of each fetched line are used before it is evicted.
//!
//! A *fetch* of a cache begins when the cache misses a line and ends when the cache drops it. A byte of the
//! line is used by the fetch if, between the two, an access of a core that shares the cache touches it,
//! whichever level answers that access. Each fetch is charged to the tag of the access that caused it, so
//! a caller that tags accesses with their source gets, per source and level, the share of the fetched bytes
//! that was worth fetching.
//!
//! Use is kept in 64 bits a line: bytes for lines of up to 64, pairs of bytes for 128, and so on, where a
//! pair of which one byte is touched counts as used whole.

use rustc_hash::FxHashMap;

use crate::hierarchy::{Hierarchy, Observer, Straddle};
use crate::spec::LevelSpec;

/// What the fetches of one level caused by one tag were worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Lines fetched and since evicted.
    pub evicted_lines: u64,
    /// Bytes of those that were used.
    pub evicted_used_bytes: u64,
    /// Lines fetched and not evicted: they might yet be used more.
    pub resident_lines: u64,
    /// Bytes of those used so far.
    pub resident_used_bytes: u64,
}

/// Watches the use of fetched lines in a [`Hierarchy`].
#[derive(Clone, Debug)]
pub struct LineUse {
    levels: Vec<Level>,
    /// By core: its cache at each level.
    paths: Vec<Vec<usize>>,
    /// By cache: the lines it holds.
    held: Vec<FxHashMap<u64, Fetch>>,
    /// Uses not yet entered in `held`, of the last line that was asked for.
    pending: Pending,
    /// The access under way.
    now: Access,
}

#[derive(Clone, Debug)]
struct Level {
    /// From address to line number.
    line_shift: u32,
    /// From byte to bit: a bit stands for one byte, or more in lines of more than 64.
    grain_shift: u32,
    /// By tag, of lines that were evicted.
    usage: FxHashMap<u32, Usage>,
}

#[derive(Clone, Copy, Debug)]
struct Fetch {
    tag: u32,
    used: u64,
}

/// Kept until another line is asked for: nothing can enter or leave a cache in between, so runs of
/// accesses to one line cost one entry.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    core: usize,
    /// Line of the first level.
    line: u64,
    /// Bits as in the first level.
    used: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Access {
    core: usize,
    first: u64,
    last: u64,
    tag: u32,
}

impl Level {
    fn new(spec: &LevelSpec) -> Level {
        let line_shift = spec.line_shift();
        Level { line_shift, grain_shift: line_shift.saturating_sub(6), usage: FxHashMap::default() }
    }

    /// Bits of the bytes `first..=last`, which lie in one line.
    #[inline]
    fn bits(&self, first: u64, last: u64) -> u64 {
        let bit = |address: u64| (address & ((1 << self.line_shift) - 1)) >> self.grain_shift;
        (u64::MAX >> (63 - (bit(last) - bit(first)))) << bit(first)
    }

    fn used_bytes(&self, used: u64) -> u64 {
        u64::from(used.count_ones()) << self.grain_shift
    }
}

impl LineUse {
    /// Watches a hierarchy from its beginning: it must not have simulated anything yet.
    ///
    /// # Panics
    /// If the hierarchy looks up straddling accesses [`Straddle::Together`]; the lines of an access are
    /// told apart by the order in which they are asked for.
    pub fn new(hierarchy: &Hierarchy) -> LineUse {
        assert_eq!(hierarchy.straddle(), Straddle::Apart, "line use needs lines to be asked for one by one");
        let levels = hierarchy.levels();
        let path = |core| (0..levels.len()).map(|level| hierarchy.cache_of(core, level)).collect();
        LineUse {
            levels: levels.iter().map(Level::new).collect(),
            paths: (0..hierarchy.cores() as usize).map(path).collect(),
            held: vec![FxHashMap::default(); hierarchy.caches()],
            pending: Pending::default(),
            now: Access::default(),
        }
    }

    /// One access of the hierarchy given to [`LineUse::new`], as [`Hierarchy::access`]; fetches that it
    /// causes are charged to `tag`.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline]
    pub fn access(
        &mut self,
        hierarchy: &mut Hierarchy,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        tag: u32,
    ) -> u8 {
        // The last byte matters only when there is one.
        let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
        self.now = Access { core, first: address, last, tag };
        hierarchy.access_observed(core, address, bytes, is_write, self)
    }

    /// Use by tag of the lines a level fetched, 0 being the innermost, in the order of the tags.
    ///
    /// # Panics
    /// If there is no such level.
    pub fn usage(&mut self, level: usize) -> Vec<(u32, Usage)> {
        self.settle();
        let mut usage = self.levels[level].usage.clone();
        let mut caches: Vec<usize> = self.paths.iter().map(|path| path[level]).collect();
        caches.dedup();
        for fetch in caches.iter().flat_map(|cache| self.held[*cache].values()) {
            let usage = usage.entry(fetch.tag).or_default();
            usage.resident_lines += 1;
            usage.resident_used_bytes += self.levels[level].used_bytes(fetch.used);
        }
        let mut usage: Vec<(u32, Usage)> = usage.into_iter().collect();
        usage.sort_unstable_by_key(|(tag, _)| *tag);
        usage
    }

    /// Enters the pending uses with every cache of their core that holds the line.
    fn settle(&mut self) {
        let Pending { core, line, used } = self.pending;
        if used == 0 {
            return;
        }
        self.pending.used = 0;
        let inner = &self.levels[0];
        for (level, cache) in self.levels.iter().zip(&self.paths[core]) {
            let address = line << inner.line_shift;
            if let Some(fetch) = self.held[*cache].get_mut(&(address >> level.line_shift)) {
                fetch.used |= if level.line_shift == inner.line_shift {
                    used
                } else {
                    widen(inner, level, address, used)
                };
            }
        }
    }
}

/// Bits of a first-level line as bits of the longer line around it.
fn widen(inner: &Level, outer: &Level, address: u64, used: u64) -> u64 {
    let grain = 1 << inner.grain_shift;
    let set = (0..64).filter(|bit| used >> bit & 1 != 0).map(|bit| address + bit * grain);
    set.fold(0, |bits, first| bits | outer.bits(first, first + (grain - 1)))
}

impl Observer for LineUse {
    #[inline]
    fn asked(&mut self, level: usize, cache: usize, line: u64, hit: bool) {
        if level == 0 {
            let Access { core, first, last, .. } = self.now;
            if self.pending.line != line || self.pending.core != core {
                self.settle();
                self.pending = Pending { core, line, used: 0 };
            }
            let inner = &self.levels[0];
            let start = line << inner.line_shift;
            let end = start + ((1 << inner.line_shift) - 1);
            self.pending.used |= inner.bits(first.max(start), last.min(end));
        }
        if !hit {
            self.held[cache].insert(line, Fetch { tag: self.now.tag, used: 0 });
        }
    }

    #[inline]
    fn evicted(&mut self, level: usize, cache: usize, line: u64) {
        let Some(fetch) = self.held[cache].remove(&line) else { return };
        let level = &mut self.levels[level];
        let bytes = level.used_bytes(fetch.used);
        let usage = level.usage.entry(fetch.tag).or_default();
        usage.evicted_lines += 1;
        usage.evicted_used_bytes += bytes;
    }
}
