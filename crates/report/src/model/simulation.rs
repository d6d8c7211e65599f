//! Results of a detailed simulation: why accesses missed, and how many of the fetched bytes were
//! used.

use serde::{Deserialize, Serialize};

use super::{Access, Object, Report, RulesUsed, Word};

/// A report whose rows have the causes of their misses, and further results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// The report. The rows of `lines`, `fields`, `types` and `objects`, and `total`, have details.
    pub report: Report,
    /// Loads that a store to another address may hold up, the most frequent first.
    pub aliases: Vec<Alias>,
    /// The rules that were simulated, and the assumptions.
    pub rules: RulesUsed,
    /// Messages of coherence; `None` if it was not simulated.
    pub coherence: Option<CoherenceNumbers>,
    /// Events of the levels besides demand; empty if none of their rules were simulated.
    pub besides: Vec<LevelBesides>,
    /// Misses because of other cores' writes, the most frequent first.
    pub sharing: Vec<Sharing>,
}

/// Details of some accesses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detail {
    /// Why they missed: cache levels, innermost first.
    pub causes: Vec<LevelCauses>,
    /// Their translations; `None` if the machine's description has no TLBs.
    pub translation: Option<Translation>,
    /// Loads that agreed with a store in flight in the low 12 bits of another address; `None` if
    /// the machine's description has no limits of stores in flight.
    pub alias_conflicts: Option<u64>,
    /// Accesses by the node whose memory served them; `None` if there is one node.
    pub memory: Option<Memory>,
}

/// Misses of one level.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelCauses {
    /// The level.
    pub level: String,
    /// Misses of lines that the cache had never been looked up for.
    pub cold: u64,
    /// Misses that a fully associative cache of the same size would also have.
    pub capacity: u64,
    /// Misses that it would not have.
    pub conflict: u64,
    /// Misses of lines that another core had written to and held, and had not taken from the cache.
    pub held_elsewhere: u64,
    /// Misses because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Misses because of another core's write of other bytes of the line.
    pub false_sharing: u64,
    /// Lines that these accesses' writes took from the level's caches of other cores.
    pub invalidations: u64,
    /// Bytes of the lines fetched.
    pub fetched_bytes: u64,
    /// Bytes of them that were not used before the line was dropped.
    pub unused_bytes: u64,
    /// Accesses that evicted the missing lines, the most frequent first, up to ten.
    pub evicted_by: Vec<Evictor>,
}

impl LevelCauses {
    /// All of them.
    pub fn misses(&self) -> u64 {
        let alone = self.cold + self.capacity + self.conflict;
        alone + self.held_elsewhere + self.true_sharing + self.false_sharing
    }

    /// Adds the counts of other accesses, except the evictors of their lines.
    pub fn add(&mut self, other: &LevelCauses) {
        let sums = [
            (&mut self.cold, other.cold),
            (&mut self.capacity, other.capacity),
            (&mut self.conflict, other.conflict),
            (&mut self.held_elsewhere, other.held_elsewhere),
            (&mut self.true_sharing, other.true_sharing),
            (&mut self.false_sharing, other.false_sharing),
            (&mut self.invalidations, other.invalidations),
            (&mut self.fetched_bytes, other.fetched_bytes),
            (&mut self.unused_bytes, other.unused_bytes),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// Accesses that evicted lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evictor {
    /// Index of its row in the same table; `None` for what has no row there.
    pub row: Option<usize>,
    /// Misses of such lines.
    pub misses: u64,
}

/// Translations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Translation {
    /// Accesses whose translation the second level had.
    pub second_level_hits: u64,
    /// Accesses that walked the page tables.
    pub walks: u64,
    /// Cycles beyond those of first-level translations, which are part of `stall_cycles`.
    pub cycles: u64,
    /// Bytes of the pages visited, once for each visit.
    pub visited_bytes: u64,
    /// Bytes of them, in 64ths of pages, that were not used during the visit.
    pub unused_bytes: u64,
}

/// Accesses that memory served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Accesses served by the core's own node.
    pub local: u64,
    /// Accesses served by another node.
    pub remote: u64,
}

/// Loads that a store to another address may hold up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Alias {
    /// The loads.
    pub load: Access,
    /// The stores.
    pub store: Access,
    /// Number of loads.
    pub conflicts: u64,
    /// The least distance from a store to its load, in accesses of the thread.
    pub least_accesses: u32,
}

/// Messages that keep caches the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoherenceNumbers {
    /// Writes that found their line but needed ownership.
    pub upgrades: u64,
    /// Lines that came from another core's cache.
    pub transfers: u64,
    /// Accesses that missed because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Accesses that missed because of another core's write of other bytes of the line.
    pub false_sharing: u64,
}

/// Events of a level besides demand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelBesides {
    /// The level.
    pub level: String,
    /// Writes that went on to the next level, through this one or past it.
    pub passed_writes: u64,
    /// Lines that left because an inclusive level outside dropped them.
    pub back_invalidations: u64,
    /// Lines that left because another core wrote to them.
    pub invalidations: u64,
    /// Counts of its prefetchers; `None` if it has none.
    pub prefetch: Option<PrefetchNumbers>,
}

/// Counts of prefetches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrefetchNumbers {
    /// Lines fetched ahead.
    pub issued: u64,
    /// Prefetched lines that were requested before they left.
    pub useful: u64,
    /// Useful lines that were requested before they can have come.
    pub late: u64,
    /// Lines that left unused.
    pub useless: u64,
    /// Misses of lines that a prefetch had evicted.
    pub pollution: u64,
}

/// Misses of some data because of other cores' writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sharing {
    /// `false`: other bytes of the line were written; `true`: the same bytes.
    pub kind: Word,
    /// The accesses that missed.
    pub missed: Side,
    /// The writes before.
    pub written: Side,
    /// Misses of the first cache that had lost the line.
    pub misses: u64,
    /// Different lines.
    pub lines: usize,
}

/// Data, the line that touches it, and the threads that do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Data and line.
    #[serde(flatten)]
    pub access: Access,
    /// The home of the objects, and their allocation.
    pub object: Object,
    /// Threads, as numbered in the table of threads.
    pub threads: Vec<u32>,
}
