//! A hierarchy with everything that can be known of its misses, by tag.

use crate::causes::{Cause, Eviction, LevelDetail, LineWatch};
use crate::hierarchy::{Hierarchy, Straddle};
use crate::numa::{Numa, NumaDetail};
use crate::spec::MAX_LEVELS;
use crate::store_buffer::{AliasConflict, AliasPair, StoreBuffer};
use crate::tlb::{Tlb, TlbDetail, Translation};

/// What became of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// As [`Hierarchy::access`] returns it.
    pub depth: u8,
    /// Who had the translation; the first level, without TLBs.
    pub translation: Translation,
    /// Memory answered, and it was another node's.
    pub remote: bool,
    /// A load that is held up by a store to another address.
    pub alias: Option<AliasConflict>,
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
    tlb: Option<Tlb>,
    stores: Option<StoreBuffer>,
    numa: Option<Numa>,
}

/// What a [`Detailed`] simulation has found.
pub struct Details {
    /// By tag and, innermost first, level: `levels[tag][level]`.
    pub levels: Vec<Vec<LevelDetail>>,
    /// By level: whose accesses missed lines that whose accesses had pushed out, in the order of the tags, and for each
    /// the most frequent first.
    pub evictions: Vec<Vec<Eviction>>,
    /// By tag; may end before the last tags, of which nothing was counted then.
    pub tlb: Vec<TlbDetail>,
    /// Loads that conflict with stores, in the order of the loads' tags.
    pub aliases: Vec<AliasPair>,
    /// By tag; may end before the last tags, of which nothing was counted then.
    pub numa: Vec<NumaDetail>,
}

impl Detailed {
    /// Watches a hierarchy that has not simulated anything yet.
    ///
    /// # Panics
    /// If the hierarchy looks up straddling accesses [`Straddle::Together`]; the lines of an access are
    /// told apart by the order in which they are asked for.
    pub fn new(empty: Hierarchy) -> Detailed {
        assert_eq!(empty.straddle(), Straddle::Apart, "details need lines to be asked for one by one");
        let lines = LineWatch::new(&empty);
        Detailed { lines, caches: empty, tlb: None, stores: None, numa: None }
    }

    /// With translations, for the same cores.
    pub fn with_tlb(mut self, tlb: Tlb) -> Detailed {
        self.tlb = Some(tlb);
        self
    }

    /// With store buffers, for the same cores.
    pub fn with_store_buffer(mut self, stores: StoreBuffer) -> Detailed {
        self.stores = Some(stores);
        self
    }

    /// With memory in several nodes, for the same cores.
    pub fn with_numa(mut self, numa: Numa) -> Detailed {
        self.numa = Some(numa);
        self
    }

    /// One access, as [`Hierarchy::access`].
    ///
    /// # Panics
    /// If `core` is not below the number of cores, or `tag` not below 2^31.
    #[inline]
    pub fn access(&mut self, core: usize, address: u64, bytes: u32, is_write: bool, tag: u32) -> Outcome {
        let (depth, causes) = self.lines.access(&mut self.caches, core, address, bytes, is_write, tag);
        let translation = match &mut self.tlb {
            Some(tlb) => tlb.access(core, address, bytes, tag),
            None => Translation::First,
        };
        let alias =
            self.stores.as_mut().and_then(|stores| stores.access(core, address, bytes, is_write, tag));
        let remote = match &mut self.numa {
            Some(numa) if usize::from(depth) == self.caches.levels().len() => numa.access(core, address, tag),
            _ => false,
        };
        Outcome { depth, translation, remote, alias, causes }
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
        Details {
            levels: counts.chunks(levels).map(<[_]>::to_vec).collect(),
            evictions,
            tlb: self.tlb.map(Tlb::finish).unwrap_or_default(),
            aliases: self.stores.map(StoreBuffer::finish).unwrap_or_default(),
            numa: self.numa.map(Numa::finish).unwrap_or_default(),
        }
    }
}
