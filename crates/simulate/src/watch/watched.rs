//! The interface of caches that are watched.

use crate::fragment::Fragment;
use crate::loops::Strided;
use crate::lru::hierarchy::LevelCounters;
use crate::mem_ref::MemRef;
use crate::model::Sharing;
use crate::spec::LevelSpec;
use crate::watch::detailed::ModelDetails;
use crate::watch::misses::{CausesByLevel, Eviction, LevelDetail};
use crate::watch::watcher::Watcher;

/// An access that the first level did not serve, and the level that did.
pub(crate) type Miss = (MemRef, u8);

/// Caches that report everything to a [`Watcher`].
///
/// They are called in the order of the accesses, from one thread.
pub(crate) trait WatchedCaches: Send {
    /// Simulates one access.
    fn access(&mut self, access: MemRef) -> Watched;
    /// Simulates accesses of one core; adds those that miss to `missed`.
    fn access_all(&mut self, accesses: &[MemRef], missed: &mut Vec<Miss>);
    /// Simulates an access in several places; returns its depth, and the address of the first place
    /// that deep.
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> (u8, u64);
    /// Simulates a core's loop of `iterations`; adds the accesses that miss.
    fn access_iterations(
        &mut self,
        core: usize,
        iterations: u64,
        strides: &[Strided],
        missed: &mut Vec<Miss>,
    );
    /// Returns the counters of each level, innermost first.
    fn counters(&self) -> Vec<LevelCounters>;
    /// Returns the shape of the first level.
    fn first_level(&self) -> &LevelSpec;
    /// Returns the shape of the last level, and how many lines it has written back to memory.
    fn last_level(&self) -> (&LevelSpec, u64);
    /// Returns the watcher of their lines.
    fn watcher(&self) -> &Watcher;
    /// Returns the results.
    fn finish(self: Box<Self>) -> Found;
}

/// The result of one access.
pub(crate) struct Watched {
    /// The depth, as [`Hierarchy::access`](crate::Hierarchy::access) returns it.
    pub depth: u8,
    /// The write of another core that the miss is due to.
    pub sharing: Option<Sharing>,
    pub causes: CausesByLevel,
}

/// All that was found of the lines of caches.
pub(crate) struct Found {
    /// Indexed by tag and, innermost first, level.
    pub counts: Vec<LevelDetail>,
    /// Indexed by level: missing tag, evicting tag, misses.
    pub evictions: Vec<Vec<Eviction>>,
    /// Findings of a machine's rules besides.
    pub model: Option<ModelDetails>,
}
