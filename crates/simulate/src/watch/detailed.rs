//! A hierarchy with all facts about its misses, by tag.

use crate::core_parts::numa::{Numa, NumaDetail};
use crate::core_parts::store_buffer::{AliasConflict, AliasPair, StoreBuffer};
use crate::core_parts::tlb::{Tlb, TlbDetail, Translation};
use crate::lru::hierarchy::{Hierarchy, LevelCounters, Straddle};
use crate::mem_ref::MemRef;
use crate::model::{CoherenceCounters, LevelTraffic, Model, PrefetchCounters, Sharing};
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::tag::Tag;
use crate::watch::batch::Requests;
use crate::watch::lru::WatchedLru;
use crate::watch::misses::{Cause, Eviction, LevelDetail};
use crate::watch::model::{SharedLine, WatchedModel};
use crate::watch::watched::{Found, Miss, Watched, WatchedCaches};

/// The outcome of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The depth, as [`Hierarchy::access`] returns it.
    pub depth: u8,
    /// The level that had the translation; the first one, without TLBs.
    pub translation: Translation,
    /// Memory of another node served the access.
    pub remote: bool,
    /// A load that is held up by a store to another address.
    pub alias: Option<AliasConflict>,
    /// The write of another core that a miss is due to.
    pub sharing: Option<Sharing>,
    causes: [Option<Cause>; MAX_LEVELS],
}

impl Outcome {
    /// The causes at the levels that missed, innermost first. If an access touches several lines,
    /// the cause at a level is that of the first missing line.
    pub fn causes(&self) -> impl Iterator<Item = Cause> + '_ {
        self.causes.iter().map_while(|cause| *cause)
    }
}

/// The caches of a [`Hierarchy`] or of a [`Model`], watched. Results are kept by [`Tag`] of the
/// accesses, and their memory grows with the highest one.
pub struct Detailed {
    pub(crate) near: CoreSide,
    pub(crate) far: CacheSide,
    pub(crate) waiting: Requests,
}

/// The parts of a core that accesses meet. They are independent of [`CacheSide`], so the two can be
/// driven separately.
#[derive(Default)]
pub struct CoreSide {
    pub(crate) tlb: Option<Tlb>,
    pub(crate) stores: Option<StoreBuffer>,
}

/// The parts beyond a core: caches, and memory.
pub struct CacheSide {
    pub(crate) caches: Box<dyn WatchedCaches>,
    pub(crate) levels: usize,
    pub(crate) numa: Option<Numa>,
    /// Misses of the current accesses.
    pub(crate) missed: Vec<Miss>,
}

/// Further results of a [`Detailed`] simulation of a [`Model`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDetails {
    /// Misses because of another core's write, in the order of the tags.
    pub sharing: Vec<SharedLine>,
    /// Messages of coherence.
    pub coherence: CoherenceCounters,
    /// Indexed by level: traffic besides demand.
    pub traffic: Vec<LevelTraffic>,
    /// Indexed by level: counts of the prefetchers.
    pub prefetch: Vec<PrefetchCounters>,
}

/// Findings of a [`Detailed`] simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Indexed by tag and, innermost first, level: `levels[tag][level]`.
    pub levels: Vec<Vec<LevelDetail>>,
    /// Indexed by level: missing tag, evicting tag, misses; in the order of missing tags, and for
    /// each the most frequent first.
    pub evictions: Vec<Vec<Eviction>>,
    /// Indexed by tag; may end before the last tags, whose counts are then zero.
    pub tlb: Vec<TlbDetail>,
    /// Loads that conflict with stores, in the order of the loads' tags.
    pub aliases: Vec<AliasPair>,
    /// Indexed by tag; may end before the last tags, whose counts are then zero.
    pub numa: Vec<NumaDetail>,
    /// If a [`Model`] was simulated.
    pub model: Option<ModelDetails>,
}

impl Detailed {
    /// Watches caches of a hierarchy's shape, from their beginning.
    ///
    /// # Panics
    /// If the hierarchy looks up straddling accesses [`Straddle::Together`]; the lines of an access
    /// are identified by the order in which they are looked up.
    pub fn new(empty: Hierarchy) -> Detailed {
        assert_eq!(empty.straddle(), Straddle::Apart, "details need lines to be asked for one by one");
        let levels = empty.levels().len();
        Detailed::of_caches(Box::new(WatchedLru::new(&empty)), levels)
    }

    /// Watches a model that has not simulated anything yet.
    pub fn of_model(empty: Model) -> Detailed {
        let levels = empty.spec().levels.len();
        Detailed::of_caches(Box::new(WatchedModel::new(empty)), levels)
    }

    fn of_caches(caches: Box<dyn WatchedCaches>, levels: usize) -> Detailed {
        let far = CacheSide { caches, levels, numa: None, missed: Vec::new() };
        Detailed { near: CoreSide::default(), far, waiting: Requests::default() }
    }

    /// Both halves, to be driven separately. No access may wait.
    pub fn split(self) -> (CoreSide, CacheSide) {
        debug_assert!(self.waiting.is_empty(), "what waits is for both");
        (self.near, self.far)
    }

    /// Joins the two halves of [`Detailed::split`], which have seen the same accesses.
    pub fn join(near: CoreSide, far: CacheSide) -> Detailed {
        Detailed { near, far, waiting: Requests::default() }
    }

    /// With translations, for the same cores.
    pub fn with_tlb(mut self, tlb: Tlb) -> Detailed {
        self.near.tlb = Some(tlb);
        self
    }

    /// With store buffers, for the same cores.
    pub fn with_store_buffer(mut self, stores: StoreBuffer) -> Detailed {
        self.near.stores = Some(stores);
        self
    }

    /// With memory in several nodes, for the same cores.
    pub fn with_numa(mut self, numa: Numa) -> Detailed {
        self.far.numa = Some(numa);
        self
    }

    /// Like [`Tlb::set_pages_of`], if there are translations.
    pub fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        self.near.set_pages_of(tag, page_bytes);
    }

    /// One access, as [`Hierarchy::access`] or [`Model::access`].
    ///
    /// # Panics
    /// If its core is not below the number of cores, or the number of its tag not below
    /// [`Tag::LIMIT`].
    #[inline]
    pub fn access(&mut self, access: MemRef) -> Outcome {
        let Watched { depth, sharing, causes } = self.far.caches.access(access);
        let translation = match &mut self.near.tlb {
            Some(tlb) => tlb.access(access),
            None => Translation::First,
        };
        let alias = self.near.stores.as_mut().and_then(|stores| stores.access(access));
        let remote = match &mut self.far.numa {
            Some(numa) if usize::from(depth) == self.far.levels => numa.access(access),
            _ => false,
        };
        Outcome { depth, translation, remote, alias, sharing, causes }
    }

    /// Cycles that a tag's settled accesses waited for translations and for memory of other nodes,
    /// besides those of the levels.
    pub fn other_cycles(&self, tag: Tag) -> u64 {
        let translations = self.near.tlb.as_ref().map_or(0, |tlb| tlb.cycles(tag));
        translations + self.far.numa.as_ref().map_or(0, |numa| numa.cycles(tag))
    }

    /// Returns whether translations are simulated.
    pub fn has_translations(&self) -> bool {
        self.near.tlb.is_some()
    }

    /// Counters of each level, innermost first.
    pub fn counters(&self) -> Vec<LevelCounters> {
        self.far.caches.counters()
    }

    /// The shape of the first level.
    pub fn first_level(&self) -> &LevelSpec {
        self.far.caches.first_level()
    }

    /// Number of the levels.
    pub fn levels(&self) -> usize {
        self.far.levels
    }

    /// The shape of the last level.
    pub fn last_level(&self) -> &LevelSpec {
        self.far.caches.last_level().0
    }

    /// Lines that the last level has written back to memory.
    pub fn written_back(&self) -> u64 {
        self.far.caches.last_level().1
    }

    /// Number of cores.
    pub fn cores(&self) -> u32 {
        self.far.caches.watcher().paths.len() as u32
    }

    /// Bytes of memory that follow the number of distinct lines; the rest follows the shape of the
    /// hierarchy and the tags.
    pub fn bytes_of_lines(&self) -> usize {
        self.far.caches.watcher().bytes()
    }

    /// Returns the results.
    pub fn finish(mut self) -> Details {
        self.settle(|_, _| {});
        let Found { counts, evictions, model } = self.far.caches.finish();
        Details {
            model,
            levels: counts.chunks(self.far.levels).map(<[_]>::to_vec).collect(),
            evictions,
            tlb: self.near.tlb.map(Tlb::finish).unwrap_or_default(),
            aliases: self.near.stores.map(StoreBuffer::finish).unwrap_or_default(),
            numa: self.far.numa.map(Numa::finish).unwrap_or_default(),
        }
    }
}
