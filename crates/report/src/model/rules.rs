//! The rules of a machine's caches that were simulated, and the assumptions.

use serde::{Deserialize, Serialize};

use super::Word;

/// The rules of a machine that were simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesUsed {
    /// Each level's rules, innermost first.
    pub levels: Vec<LevelRules>,
    /// `mesi`, or `none`.
    pub coherence: Word,
    /// Assumptions of the figures.
    pub assumptions: Vec<Assumption>,
}

/// The rules of a level, in the words of machine files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelRules {
    /// The level.
    pub level: String,
    /// Which line of a full set makes room: `lru`, `tree-plru`, `srrip`, `brrip`, `fifo` or `random`.
    pub replacement: Word,
    /// Its relation to the lines of the level inside it: `non-inclusive`, `inclusive` or `exclusive`.
    pub inclusion: Word,
    /// `back` or `through`.
    pub write: Word,
    /// The accesses that bring a line in: `reads-and-writes` or `reads`.
    pub allocate: Word,
    /// Bytes fetched at a time, if that is less than a line.
    pub sector_bytes: Option<u32>,
    /// Its prefetchers: `next-line`, `adjacent-line`, `stride` and `stream`.
    pub prefetch: Vec<Word>,
}

/// Something that a simulation takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Assumption {
    /// Misses do not overlap, and each costs the latency of the level that serves it.
    NoOverlap,
    /// A prefetched line arrives at once, and counts as late if it is used soon.
    PrefetchAtOnce {
        /// Accesses of each core within which a use is soon.
        late_within_accesses: u32,
    },
    /// The wait has translations.
    Translations {
        /// Cycles of a walk of the page tables.
        page_walk_cycles: u32,
        /// Cycles of a hit in a second-level TLB, if there is one.
        second_level_cycles: Option<u32>,
    },
    /// Some memory lies in pages of another size.
    PageSize {
        /// Which memory.
        memory: Pages,
        /// Bytes of its pages.
        page_bytes: u64,
    },
    /// The wait has remote memory.
    RemoteMemory {
        /// Cycles until another node's memory serves a load.
        remote_cycles: u32,
        /// Cycles until the node's own memory serves a load.
        local_cycles: u32,
        /// True if some addresses were given homes; the others follow `placement`.
        given: bool,
        /// `first-touch`, `interleave` or `node`.
        placement: Word,
        /// Which node, if all pages lie in one.
        node: Option<u32>,
    },
}

/// Memory whose pages have a size of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// Everything whose allocation was recorded.
    Heap,
    /// Stacks.
    Stack,
    /// A global variable, by its name.
    Global(String),
}
