//! The general simulator.

mod array;
mod coherence;
mod directory;
mod fetch;
mod policy;
mod prefetch;
mod spec;
mod walk;

use std::collections::VecDeque;
use std::ops::Range;

use self::array::{Array, CONTESTED, DIRTY, OWNED};
use self::directory::Directory;
use self::fetch::Wanted;
use self::prefetch::Ahead;
use self::walk::{Origin, Request};
use crate::lru::hierarchy::{Found, LevelCounters, Observer};
use crate::mem_ref::MemRef;
use crate::spec::{ImpossibleHierarchy, LevelSpec, MAX_LEVELS, shard_bits};
use crate::tag::Tag;

pub use spec::{Coherence, Inclusion, ModelLevel, ModelSpec, Prefetch, Replacement, Write};

/// The result of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The deepest level that had to be looked up, as
    /// [`Hierarchy::access`](crate::Hierarchy::access) returns it.
    pub depth: u8,
    /// The line, or its newest bytes, came from a cache of another core.
    pub transfer: bool,
    /// Another core's write caused the miss, at the innermost level where that is so. If there are
    /// several lines, the first that was truly shared, else the first.
    pub sharing: Option<Sharing>,
}

/// Why a line was gone: another core wrote to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The access touches bytes that were written since: the cores exchange data. Else they only
    /// use the same line (false sharing).
    pub is_true: bool,
    /// The core whose write took the line.
    pub by_core: u32,
    /// The tag of that write.
    pub by_tag: Tag,
}

/// Traffic of one level besides demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTraffic {
    /// Writes that went on to the next level, through this one or past it.
    pub passed_writes: u64,
    /// Lines that left because an outer inclusive level dropped them.
    pub back_invalidations: u64,
    /// Lines that left because another core wrote to them.
    pub invalidations: u64,
}

/// Messages that keep caches the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoherenceCounters {
    /// Writes that hit the first level but needed ownership.
    pub upgrades: u64,
    /// Accesses' lines that came from another core's cache.
    pub transfers: u64,
    /// Accesses that missed because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Accesses that missed because of another core's write of other bytes of the line.
    pub false_sharing: u64,
}

/// Counts of the prefetches of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchCounters {
    /// Lines fetched ahead.
    pub issued: u64,
    /// Prefetched lines that a core or an inner prefetcher requested before they left.
    pub useful: u64,
    /// Useful lines that were requested before they had come ([`ModelSpec::fill_accesses`]).
    pub late: u64,
    /// Lines that left unused.
    pub useless: u64,
    /// Demand misses of lines that a prefetch had evicted; about the last 4,096 such lines are
    /// remembered.
    pub pollution: u64,
}

/// Caches of any kind: everything that [`Hierarchy`](crate::Hierarchy) leaves out, at the cost of
/// speed.
///
/// # Levels
///
/// Levels are looked up from the innermost on. Each level has its own rules:
///
/// - **Replacement**: [`Replacement`], one file each in `policy/`.
/// - **Inclusion**: [`Inclusion`]. What an inclusive level drops leaves the caches inside it at the
///   same time; dirty copies go to the next level with it. An exclusive level is filled by
///   evictions only.
/// - **Writes**: a write goes from level to level until a write-back level holds its line. A level
///   that misses the line fetches it, or is bypassed ([`ModelLevel::write_allocate`]). Once a level
///   has served the access, what goes further is no demand: it does not add to the access's depth.
/// - **Sectors**: a level with sectors fetches those that are touched and missing, and what lies
///   between them. A missing sector of a line that is there is a miss that evicts nothing.
///
/// - **Prefetch**: [`Prefetch`], one file each in `prefetch/`. After an access, the lines that its
///   level's prefetchers want and the level lacks are fetched in the order in which they were
///   requested. A prefetch is no demand, but the outer levels are looked up as for any request, and
///   their prefetchers see it.
///
/// # Coherence
///
/// With [`Coherence::Mesi`] a write leaves no copy in a cache that the writing core does not use,
/// at whatever level; a read takes exclusive ownership from there, and a dirty copy is written to
/// the nearest level outside that holds the line. Ownership (E or M) is kept in the first-level
/// caches and granted when no other core's cache holds the line: the directory knows every
/// eviction. A dirty copy that a write takes moves to the writer without a write-back, and nothing
/// that several cores have is dirty in one of them. As in the Illinois protocol (Papamarcos and
/// Patel, ISCA 1984), a core gets the line from another core's cache if its own caches do not have
/// it ([`Answer::transfer`]).
///
/// A miss is a *coherence miss* if the cache lost the line to another core's write and has not had
/// it since. It is **true** sharing if the access touches a byte that a core not using this cache
/// wrote since then, and **false** sharing otherwise: the rule of Torrellas, Lam and Hennessy (IEEE
/// Transactions on Computers, 1994). It looks at the missing access only, so it calls false what
/// Dubois et al. (ISCA 1993) call essential when a later access, before the line leaves again,
/// reads a new value.
pub struct Model {
    spec: ModelSpec,
    arrays: Vec<Array>,
    /// Indexed by core: its cache at each level, counted over all levels, innermost first.
    paths: Vec<[u32; MAX_LEVELS]>,
    /// Indexed by cache: the first core that uses it.
    first_core: Vec<usize>,
    /// Indexed by cache.
    level_of: Vec<u8>,
    line_shifts: [u32; MAX_LEVELS],
    unit_shifts: [u32; MAX_LEVELS],
    /// Accesses by [is write][level that served them].
    served: [[u64; MAX_LEVELS + 1]; 2],
    write_backs: [u64; MAX_LEVELS],
    traffic: [LevelTraffic; MAX_LEVELS],
    /// Accesses so far.
    clock: u64,
    /// The core of the last one, whether each core has made any, and how many have.
    last_core: usize,
    ran: Vec<bool>,
    busy: u64,
    /// Indexed by cache: its prefetchers, if it has any.
    ahead: Vec<Option<Box<Ahead>>>,
    prefetch: [PrefetchCounters; MAX_LEVELS],
    /// Lines to be fetched ahead; empty between accesses.
    wanted: VecDeque<Wanted>,
    /// Lines that prefetchers propose; empty between uses.
    lines: Vec<u64>,
    /// Private caches of different cores are kept the same.
    coherent: bool,
    /// The directory, made when a second core runs: a single core owns everything, and asks no
    /// other.
    directory: Option<Directory>,
    coherence: CoherenceCounters,
    /// Caches off a core's way; empty between uses.
    off_way: Vec<usize>,
}

impl Model {
    /// Empty caches.
    pub fn new(spec: &ModelSpec) -> Result<Model, ImpossibleHierarchy> {
        spec.check()?;
        let cores = spec.cores as usize;
        let mut arrays = Vec::new();
        let mut first_core = Vec::new();
        let mut level_of = Vec::new();
        let mut ahead = Vec::new();
        let mut paths = vec![[0; MAX_LEVELS]; cores];
        let (mut line_shifts, mut unit_shifts) = ([0; MAX_LEVELS], [0; MAX_LEVELS]);
        for (i, level) in spec.levels.iter().enumerate() {
            let shared_by = level.shape.shared_by as usize;
            let first = arrays.len();
            arrays.extend((0..cores.div_ceil(shared_by)).map(|_| Array::new(level)));
            ahead.extend((first..arrays.len()).map(|_| fetch::ahead(spec, level)));
            level_of.resize(arrays.len(), i as u8);
            first_core.extend((0..cores).step_by(shared_by));
            for (core, path) in paths.iter_mut().enumerate() {
                path[i] = (first + core / shared_by) as u32;
            }
            line_shifts[i] = level.shape.line_shift();
            unit_shifts[i] = level.unit_bytes().trailing_zeros();
        }
        let coherent = spec.coherence == Coherence::Mesi && Directory::of(spec, &paths).is_some();
        Ok(Model {
            spec: spec.clone(),
            arrays,
            paths,
            first_core,
            level_of,
            line_shifts,
            unit_shifts,
            served: [[0; MAX_LEVELS + 1]; 2],
            write_backs: [0; MAX_LEVELS],
            traffic: [LevelTraffic::default(); MAX_LEVELS],
            clock: 0,
            last_core: usize::MAX,
            ran: vec![false; cores],
            busy: 0,
            ahead,
            prefetch: [PrefetchCounters::default(); MAX_LEVELS],
            wanted: VecDeque::new(),
            lines: Vec::new(),
            coherent,
            directory: None,
            coherence: CoherenceCounters::default(),
            off_way: Vec::new(),
        })
    }

    /// One access. Its tag is given back with the misses that it causes elsewhere.
    ///
    /// Several lines, zero bytes and the end of the address space are as for
    /// [`Hierarchy::access`](crate::Hierarchy::access).
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> Answer {
        self.access_observed(access, &mut ())
    }

    /// [`Model::access`], watched.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    #[inline(always)]
    pub fn access_observed(&mut self, access: MemRef, observer: &mut impl Observer) -> Answer {
        if access.bytes == 0 {
            return Answer::default();
        }
        self.begin(access.core());
        let outcome = self.access_part(access, access.last(), false, observer);
        self.count_answer(access.is_write, outcome)
    }

    /// An access comes.
    #[inline(always)]
    pub(crate) fn begin(&mut self, core: usize) {
        self.clock += 1;
        if core != self.last_core {
            self.iteration(core);
        }
    }

    /// Simulates the bytes of an access up to `last`, which lie side by side; if it `goes_on`,
    /// others of them came before.
    #[inline(always)]
    pub(crate) fn access_part(
        &mut self,
        access: MemRef,
        last: u64,
        goes_on: bool,
        observer: &mut impl Observer,
    ) -> Answer {
        let MemRef { address, tag, is_write, .. } = access;
        let core = access.core();
        let shift = self.line_shifts[0];
        let (mut line, last_line) = (address >> shift, last >> shift);
        let request =
            |first, last| Request { core, first, last, is_write, tag, goes_on: goes_on || first != address };
        let mut outcome = if line == last_line {
            self.access_line(request(address, last), observer)
        } else {
            self.access_line(request(address, (line << shift) | ((1 << shift) - 1)), observer)
        };
        while line != last_line {
            line += 1;
            let piece = request(line << shift, last.min((line << shift) | ((1 << shift) - 1)));
            outcome.add(self.access_line(piece, observer));
        }
        outcome
    }

    /// Counts an access with this outcome.
    #[inline(always)]
    pub(crate) fn count_answer(&mut self, is_write: bool, outcome: Answer) -> Answer {
        self.served[usize::from(is_write)][usize::from(outcome.depth)] += 1;
        if let Some(sharing) = outcome.sharing {
            let counter = if sharing.is_true {
                &mut self.coherence.true_sharing
            } else {
                &mut self.coherence.false_sharing
            };
            *counter += 1;
        }
        outcome
    }

    /// Demand at each level, innermost first, counted as
    /// [`Hierarchy::counters`](crate::Hierarchy::counters) has it.
    pub fn counters(&self) -> Vec<LevelCounters> {
        LevelCounters::from_served(self.spec.levels.len(), &self.served, &self.write_backs)
    }

    /// Returns how many lines the last level has written back to memory.
    pub fn written_back(&self) -> u64 {
        self.write_backs[self.spec.levels.len() - 1]
    }

    /// Returns the traffic of each level besides demand, innermost first.
    pub fn traffic(&self) -> &[LevelTraffic] {
        &self.traffic[..self.spec.levels.len()]
    }

    /// Returns the counts of coherence; all zero without it.
    pub fn coherence(&self) -> CoherenceCounters {
        self.coherence
    }

    /// Returns the counts of each level's prefetchers, innermost first.
    pub fn prefetch(&self) -> &[PrefetchCounters] {
        &self.prefetch[..self.spec.levels.len()]
    }

    /// Returns the specification of the model.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Number of the cache that a core uses at a level, counted over all levels, innermost level
    /// first.
    ///
    /// # Panics
    /// If there is no such core or level.
    pub fn cache_of(&self, core: usize, level: usize) -> usize {
        self.paths[core][..self.spec.levels.len()][level] as usize
    }

    /// Number of caches over all levels.
    pub fn caches(&self) -> usize {
        self.arrays.len()
    }

    /// The lines that a cache holds, in no particular order.
    ///
    /// # Panics
    /// If there is no such cache.
    pub fn held(&self, cache: usize) -> impl Iterator<Item = Held> + '_ {
        let lines = self.arrays[cache].lines();
        let all_owned = self.coherent && self.directory.is_none() && self.level_of[cache] == 0;
        let owned = move |flags| all_owned || flags & OWNED != 0;
        lines.map(move |(line, flags)| Held { line, dirty: flags & DIRTY != 0, owned: owned(flags) })
    }

    /// Like [`Hierarchy::shard_bits`](crate::Hierarchy::shard_bits): all of the model's rules are
    /// kept per set or per line, except those of prefetchers. With any of them there are no shard
    /// bits.
    pub fn shard_bits(&self) -> Range<u32> {
        if self.spec.levels.iter().any(|level| !level.prefetch.is_empty()) {
            return 0..0;
        }
        let shapes: Vec<LevelSpec> = self.spec.levels.iter().map(|level| level.shape).collect();
        shard_bits(&shapes)
    }

    /// Another core than before makes an access.
    #[inline(never)]
    fn iteration(&mut self, core: usize) {
        self.last_core = core;
        self.busy += u64::from(!std::mem::replace(&mut self.ran[core], true));
        if self.coherent && self.busy > 1 && self.directory.is_none() {
            self.meet();
        }
    }

    /// One access within one line of the first level.
    #[inline]
    fn access_line(&mut self, request: Request, observer: &mut impl Observer) -> Answer {
        let cache = self.paths[request.core][0] as usize;
        let line = request.first >> self.line_shifts[0];
        let wanted = self.sectors(0, request.first, request.last);
        let array = &mut self.arrays[cache];
        if let Some(slot) = array.find(line)
            && wanted & !array.sectors(slot) == 0
        {
            let flags = array.flags(slot);
            let may_write = *flags & (OWNED | CONTESTED) == OWNED || self.directory.is_none();
            if !request.is_write || (may_write && self.spec.levels[0].write == Write::Back) {
                *flags |= if request.is_write { DIRTY } else { 0 };
                array.used(slot);
                observer.asked(0, cache, line, Found::Hit);
                if self.ahead[cache].is_some() {
                    self.see_hit(cache, &request, slot);
                    self.fetch_ahead(observer);
                }
                return Answer::default();
            }
        }
        self.access_slowly(request, observer)
    }

    #[inline(never)]
    fn access_slowly(&mut self, request: Request, observer: &mut impl Observer) -> Answer {
        let claimed = self.claim(&request, observer);
        if claimed.dirty {
            observer.held_elsewhere(request.first >> self.line_shifts[0]);
        }
        let walked = self.walk(&request, Origin::Core, claimed.shared && !request.is_write, observer);
        if claimed.dirty && request.is_write && !walked.kept_dirty {
            // Nobody inside keeps the other core's bytes.
            self.write_backs[self.spec.levels.len() - 1] += 1;
        }
        self.own(&request, claimed);
        self.fetch_ahead(observer);
        let from_memory = usize::from(walked.depth) == self.spec.levels.len();
        let transfer = claimed.dirty || (claimed.shared && from_memory);
        self.coherence.transfers += u64::from(transfer);
        Answer { depth: walked.depth, transfer, sharing: walked.sharing }
    }
}

/// A line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its line number.
    pub line: u64,
    /// Its bytes are newer than those of the outer levels.
    pub dirty: bool,
    /// In the first level under MESI: no cache off this one's way has it (state E or M).
    pub owned: bool,
}

impl Answer {
    /// The next line of the same access.
    pub(crate) fn add(&mut self, next: Answer) {
        self.depth = self.depth.max(next.depth);
        self.transfer |= next.transfer;
        let better = match (self.sharing, next.sharing) {
            (None, _) => true,
            (Some(have), Some(next)) => next.is_true && !have.is_true,
            (Some(_), None) => false,
        };
        if better {
            self.sharing = next.sharing;
        }
    }
}
