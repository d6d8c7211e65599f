//! Why an access missed: the three Cs.
//!
//! A miss of one cache is
//! - **cold** if the line was never in that cache before: only fetching it earlier would help;
//! - **capacity** if a fully associative LRU cache of the same size, given the same requests, misses too:
//!   too many other lines were used in between;
//! - **conflict** otherwise: there was room, but not in the line's set.
//!
//! (Hill, "Aspects of cache memory and instruction buffer performance", 1987.) A set-associative cache can
//! also hit where the fully associative one misses, for example in loops just over its size; such lines are
//! counted as *spared*: the lines that the fully associative cache misses are cold, capacity and spared.

use rustc_hash::FxHashSet;

use crate::full::FullyAssociative;
use crate::hierarchy::{Hierarchy, Observer};
use crate::spec::MAX_LEVELS;

/// Why a cache missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The line was never in this cache before.
    Cold,
    /// Too many other lines were used since.
    Capacity,
    /// Too many other lines of the same set were used since.
    Conflict,
}

/// Misses of one level by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCounters {
    /// Misses of lines never held before.
    pub cold: u64,
    /// Misses that full associativity would not have avoided.
    pub capacity: u64,
    /// Misses that full associativity would have avoided.
    pub conflict: u64,
    /// Lines found although a fully associative cache would have lost them: not misses, and counted per
    /// line, not per access.
    pub spared: u64,
}

/// How deep an access went, and why it missed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misses {
    /// As [`Hierarchy::access`] returns it.
    pub depth: u8,
    causes: [Option<Cause>; MAX_LEVELS],
}

impl Misses {
    /// The causes at the levels that missed, innermost first. Where an access touches several lines, the
    /// cause at a level is that of the first line missing there.
    pub fn causes(&self) -> impl Iterator<Item = Cause> + '_ {
        self.causes.iter().map_while(|cause| *cause)
    }
}

/// Finds the cause of every miss of a [`Hierarchy`].
#[derive(Clone, Debug)]
pub struct Causes {
    levels: usize,
    /// By cache.
    full: Vec<FullyAssociative>,
    /// By cache: which of `seen` holds the lines it ever had. A cache whose requests all come from one inner
    /// cache, line for line, has had exactly the inner one's lines, and shares its set.
    seen_by: Vec<usize>,
    seen: Vec<FxHashSet<u64>>,
    counters: [CauseCounters; MAX_LEVELS],
    /// Of the access under way: the cause at each level, and what it added to `seen`.
    causes: [Option<Cause>; MAX_LEVELS],
    fresh: Vec<(usize, u64)>,
}

impl Causes {
    /// Watches a hierarchy from its beginning: it must not have simulated anything yet.
    pub fn new(hierarchy: &Hierarchy) -> Causes {
        let specs = hierarchy.levels();
        let cores = hierarchy.cores();
        let mut full = Vec::new();
        let mut seen_by: Vec<usize> = Vec::new();
        let mut sets = 0;
        for (level, spec) in specs.iter().enumerate() {
            for first_core in (0..cores).step_by(spec.shared_by as usize) {
                full.push(FullyAssociative::new(spec.bytes / u64::from(spec.line_bytes)));
                let users = spec.shared_by.min(cores - first_core);
                let inner = level.checked_sub(1).map(|inner| &specs[inner]);
                let same = inner.is_some_and(|i| i.line_bytes == spec.line_bytes && users <= i.shared_by);
                seen_by.push(if same {
                    seen_by[hierarchy.cache_of(first_core as usize, level - 1)]
                } else {
                    sets += 1;
                    sets - 1
                });
            }
        }
        Causes {
            levels: specs.len(),
            full,
            seen_by,
            seen: vec![FxHashSet::default(); sets],
            counters: [CauseCounters::default(); MAX_LEVELS],
            causes: [None; MAX_LEVELS],
            fresh: Vec::new(),
        }
    }

    /// One access of the hierarchy given to [`Causes::new`], as [`Hierarchy::access`].
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
    ) -> Misses {
        let depth = hierarchy.access_observed(core, address, bytes, is_write, self);
        if depth == 0 {
            return Misses { depth, causes: [None; MAX_LEVELS] };
        }
        self.fresh.clear();
        let causes = std::mem::replace(&mut self.causes, [None; MAX_LEVELS]);
        for (counters, cause) in self.counters.iter_mut().zip(causes) {
            match cause {
                Some(Cause::Cold) => counters.cold += 1,
                Some(Cause::Capacity) => counters.capacity += 1,
                Some(Cause::Conflict) => counters.conflict += 1,
                None => break,
            }
        }
        Misses { depth, causes }
    }

    /// Counters of each level, innermost first; cold + capacity + conflict are the level's misses.
    pub fn counters(&self) -> &[CauseCounters] {
        &self.counters[..self.levels]
    }

    fn is_cold(&mut self, cache: usize, line: u64) -> bool {
        let set = self.seen_by[cache];
        if self.seen[set].insert(line) {
            self.fresh.push((set, line));
            return true;
        }
        // An inner cache that shares the set may have added it a moment ago.
        self.fresh.contains(&(set, line))
    }
}

impl Observer for Causes {
    #[inline]
    fn asked(&mut self, level: usize, cache: usize, line: u64, hit: bool) {
        let found = self.full[cache].touch(line);
        if hit {
            self.counters[level].spared += u64::from(!found);
            return;
        }
        let cold = self.is_cold(cache, line);
        let cause = if cold {
            Cause::Cold
        } else if found {
            Cause::Conflict
        } else {
            Cause::Capacity
        };
        self.causes[level].get_or_insert(cause);
    }

    #[inline]
    fn evicted(&mut self, _level: usize, _cache: usize, _line: u64) {}
}
