//! What a profiler sends accesses to: the caches alone, or with everything that watches them.

use memlode_machine::Machine;
use memlode_simulate::{
    Detailed, Hierarchy, ImpossibleHierarchy, ImpossibleTlb, LevelSpec, Numa, Pages, StoreBuffer, Tlb,
    TlbSpec,
};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::SiteId;
use thiserror::Error;

use crate::classes::{ClassId, Classes};
use crate::paths::Paths;

/// Misses that wait at most: enough to fetch their rows together, few enough to stay in a cache themselves.
const MOST_WAITING: usize = 256;

/// A simulation of caches that a profiler drives.
pub trait Simulator {
    /// One access for a cell; says how many levels missed ([`Hierarchy::access`]), or that [`Simulator::settle`] will, under
    /// `tag`, which is below 2^31.
    fn access(
        &mut self,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        cell: u32,
        tag: u32,
    ) -> Option<u8>;

    /// Whether so much waits to be settled that it is time to.
    fn is_full(&self) -> bool;

    /// Answers what waits: tells each tag how many levels missed.
    fn settle(&mut self, told: impl FnMut(u32, u8));

    /// The caches.
    fn caches(&self) -> &Hierarchy;

    /// The caches, if accesses that are known to hit need only be counted there.
    fn counting(&mut self) -> Option<&mut Hierarchy>;

    /// Who the accesses of the next cell are, before the first of them; cells are numbered from 0.
    fn met(&mut self, _met: Met<'_>) {}

    /// The stream at hand met a time stamp.
    fn stamp(&mut self, _stamp: u64) {}
}

/// A cell that a profiler has not met before.
pub struct Met<'p> {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// What classes are.
    pub classes: &'p Classes,
    /// The call paths that they refer to.
    pub paths: &'p Paths,
}

impl Simulator for Hierarchy {
    #[inline(always)]
    fn access(
        &mut self,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        _cell: u32,
        tag: u32,
    ) -> Option<u8> {
        self.access_later(core, address, bytes, is_write, tag).then_some(0)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting() >= MOST_WAITING
    }

    fn settle(&mut self, told: impl FnMut(u32, u8)) {
        Hierarchy::settle(self, told);
    }

    fn caches(&self) -> &Hierarchy {
        self
    }

    fn counting(&mut self) -> Option<&mut Hierarchy> {
        Some(self)
    }
}

impl Simulator for Detailed {
    #[inline(always)]
    fn access(
        &mut self,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        cell: u32,
        _tag: u32,
    ) -> Option<u8> {
        Some(Detailed::access(self, core, address, bytes, is_write, cell).depth)
    }

    fn is_full(&self) -> bool {
        false
    }

    fn settle(&mut self, _told: impl FnMut(u32, u8)) {}

    fn caches(&self) -> &Hierarchy {
        Detailed::caches(self)
    }

    /// They may be hits of other bytes of a line, and meet other stores in flight.
    fn counting(&mut self) -> Option<&mut Hierarchy> {
        None
    }
}

/// Why a machine cannot be simulated.
#[derive(Debug, Error)]
pub enum ImpossibleMachine {
    /// Its caches.
    #[error(transparent)]
    Caches(#[from] ImpossibleHierarchy),
    /// Its translations.
    #[error(transparent)]
    Tlb(#[from] ImpossibleTlb),
}

/// The machine's caches, empty, for the first `cores` of its cores.
pub fn caches(machine: &Machine, cores: u32) -> Result<Hierarchy, ImpossibleHierarchy> {
    let spec = |level: &memlode_machine::Level| LevelSpec {
        bytes: level.bytes,
        ways: level.ways,
        line_bytes: level.line_bytes,
        shared_by: level.shared_by,
    };
    let specs: Vec<LevelSpec> = machine.levels.iter().map(spec).collect();
    Hierarchy::new(&specs, cores)
}

/// The machine with all that its description tells of, with pages of `page_bytes`, for a program of `threads` threads.
///
/// Thread *t* runs on core *t*, as long as there are cores. Cores that no thread runs on are left out: a cache that is
/// shared with them alone is as good as private.
pub fn detailed(machine: &Machine, page_bytes: u64, threads: usize) -> Result<Detailed, ImpossibleMachine> {
    let cores = machine.cores.min(threads.max(1) as u32);
    let mut detailed = Detailed::new(caches(machine, cores)?);
    if !machine.tlbs.is_empty() {
        let spec = |tlb: &memlode_machine::Tlb| TlbSpec {
            level: tlb.level,
            entries: tlb.entries,
            ways: tlb.ways,
            page_bytes: tlb.page_bytes.clone(),
            latency_cycles: tlb.latency_cycles,
        };
        let specs: Vec<TlbSpec> = machine.tlbs.iter().map(spec).collect();
        let pages = Pages::of(page_bytes);
        detailed = detailed.with_tlb(Tlb::new(&specs, machine.page_walk_cycles, &pages, cores)?);
    }
    if let Some(flight) = machine.in_flight {
        detailed = detailed.with_store_buffer(StoreBuffer::new(flight.stores, flight.instructions, cores));
    }
    if machine.nodes > 1 {
        detailed = detailed.with_numa(Numa::new(machine.cores / machine.nodes, page_bytes));
    }
    Ok(detailed)
}
