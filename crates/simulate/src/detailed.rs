//! A hierarchy with everything that can be known of its misses, by tag.

use crate::causes::{Cause, Eviction, LevelDetail, LineWatch};
use crate::hierarchy::{Hierarchy, Straddle};
use crate::spec::MAX_LEVELS;

/// What became of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// As [`Hierarchy::access`] returns it.
    pub depth: u8,
    causes: [Option<Cause>; MAX_LEVELS],
}

impl Outcome {
    /// The causes at the levels that missed, innermost first. Where an access touches several lines, the
    /// cause at a level is that of the first line missing there.
    pub fn causes(&self) -> impl Iterator<Item = Cause> + '_ {
        self.causes.iter().map_while(|cause| *cause)
    }
}

/// Drives a [`Hierarchy`] and what watches it.
///
/// Every access carries a *tag*, a small number that says for the caller where the access comes from; counts are kept by
/// tag, and memory for them grows with the highest one. Tags are below 2^31.
#[derive(Clone)]
pub struct Detailed {
    caches: Hierarchy,
    lines: LineWatch,
}

/// What a [`Detailed`] simulation has found.
pub struct Details {
    /// By tag and, innermost first, level: `levels[tag][level]`.
    pub levels: Vec<Vec<LevelDetail>>,
    /// By level: whose accesses missed lines that whose accesses had pushed out, in the order of the tags, and for each
    /// the most frequent first.
    pub evictions: Vec<Vec<Eviction>>,
}

impl Detailed {
    /// Watches a hierarchy that has not simulated anything yet.
    ///
    /// # Panics
    /// If the hierarchy looks up straddling accesses [`Straddle::Together`]; the lines of an access are
    /// told apart by the order in which they are asked for.
    pub fn new(empty: Hierarchy) -> Detailed {
        assert_eq!(empty.straddle(), Straddle::Apart, "details need lines to be asked for one by one");
        Detailed { lines: LineWatch::new(&empty), caches: empty }
    }

    /// One access, as [`Hierarchy::access`].
    ///
    /// # Panics
    /// If `core` is not below the number of cores, or `tag` not below 2^31.
    #[inline]
    pub fn access(&mut self, core: usize, address: u64, bytes: u32, is_write: bool, tag: u32) -> Outcome {
        let (depth, causes) = self.lines.access(&mut self.caches, core, address, bytes, is_write, tag);
        Outcome { depth, causes }
    }

    /// The hierarchy, for its counters.
    pub fn caches(&self) -> &Hierarchy {
        &self.caches
    }

    /// Bytes of memory that follow the number of distinct lines; the rest follows the shape of the hierarchy and the tags.
    pub fn bytes_of_lines(&self) -> usize {
        self.lines.bytes()
    }

    /// What was found.
    pub fn finish(self) -> Details {
        let levels = self.caches.levels().len();
        let (counts, evictions) = self.lines.finish();
        Details { levels: counts.chunks(levels).map(<[_]>::to_vec).collect(), evictions }
    }
}
