//! From a machine's description to what simulates it: the caches alone, or with everything that watches them.

use std::fmt;

use memlode_machine::{self as machine, Machine};
use memlode_simulate::{
    Coherence, Detailed, Hierarchy, ImpossibleHierarchy, ImpossibleTlb, LevelSpec, Model, ModelLevel,
    ModelSpec, Numa, StoreBuffer, Tlb, TlbSpec,
};
pub use memlode_simulate::{Homes, Pages, Placement};
use thiserror::Error;

use crate::objects::classes::Home;

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
    let shapes: Vec<LevelSpec> = machine.levels.iter().map(shape).collect();
    Ok(Hierarchy::new(&shapes, cores)?.with_first_touches())
}

fn shape(level: &machine::Level) -> LevelSpec {
    let machine::Level { bytes, ways, line_bytes, shared_by, .. } = *level;
    LevelSpec { bytes, ways, line_bytes, shared_by }
}

/// The setup of a detailed simulation.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its rules: its own, or those of [`Hierarchy`] for all levels.
    pub rules: RuleChoice,
    /// The sizes of pages, in every process.
    pub pages: Pages,
    /// And those of some memory by its name, before ranges of addresses; of several that name it the last one counts.
    pub named: Vec<NamedPages>,
    /// Thread *t* runs on the *t*-th of these cores, modulo their number; if there are none, on core *t*.
    pub cores: Vec<u32>,
    /// Which memory pages lie in, in every process.
    pub homes: Homes,
}

/// Pages of memory that has a name.
#[derive(Clone, Debug)]
pub struct NamedPages {
    /// The memory.
    pub memory: NamedMemory,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// Memory by its name.
#[derive(Clone, Debug)]
pub enum NamedMemory {
    /// Everything whose allocation was recorded.
    Heap,
    /// Stack variables, and what else lies in stack frames.
    Stack,
    /// Objects of these homes.
    Objects(Vec<Home>),
    /// Global variables.
    Global {
        /// Their name.
        name: String,
        /// The source's spelling of a symbol: either of them may be the name.
        written: fn(&str) -> String,
    },
}

impl NamedMemory {
    /// Returns whether objects that live there are meant.
    pub fn has(&self, home: &Home) -> bool {
        match (self, home) {
            (NamedMemory::Heap, Home::Heap { .. }) | (NamedMemory::Stack, Home::Stack { .. }) => true,
            (NamedMemory::Objects(homes), home) => homes.contains(home),
            (NamedMemory::Global { name, written }, Home::Global { symbol, .. }) => {
                symbol == name || written(symbol) == *name
            }
            _ => false,
        }
    }
}

impl fmt::Display for NamedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NamedMemory::Heap => "heap",
            NamedMemory::Stack => "stack",
            NamedMemory::Objects(_) => "objects",
            NamedMemory::Global { name, .. } => name,
        })
    }
}

/// Which rules of caches are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleChoice {
    /// Those that the machine's description gives.
    #[default]
    Machine,
    /// Exact LRU, non-inclusive, write-back, write-allocate; no prefetchers, no coherence.
    Lru,
}

impl Setup {
    /// The machine as it is described, with its ordinary pages, each near whoever touches it first.
    pub fn of(machine: &Machine) -> Setup {
        let pages = Pages::of(machine.page_bytes);
        Setup {
            rules: RuleChoice::Machine,
            pages,
            named: Vec::new(),
            cores: Vec::new(),
            homes: Homes::default(),
        }
    }
}

impl Setup {
    /// The cores that a program of so many threads runs on: thread *t* on the *t*-th, modulo their number.
    pub fn cores(&self, machine: &Machine, threads: usize) -> Vec<u32> {
        if self.cores.is_empty() {
            return (0..machine.cores.min(threads.max(1) as u32)).collect();
        }
        self.cores.clone()
    }
}

/// The machine with all that its description tells of, for a program of at most `threads` threads.
///
/// Cores behind the last that a thread runs on are left out: a cache that is shared with them alone is as good as private.
pub fn detailed(machine: &Machine, setup: &Setup, threads: usize) -> Result<Detailed, ImpossibleMachine> {
    let cores = needed(machine, setup, threads);
    let mut detailed = match has_rules(machine, setup, threads) {
        true => Detailed::of_model(Model::new(&model_spec(machine, cores))?),
        false => Detailed::new(caches(machine, cores)?),
    };
    if let Some(tlb) = translations(machine, setup, cores)? {
        detailed = detailed.with_tlb(tlb);
    }
    if let Some(flight) = machine.in_flight {
        detailed = detailed.with_store_buffer(StoreBuffer::new(flight.stores, flight.instructions, cores));
    }
    if machine.nodes > 1 {
        let (nodes, page_bytes) = (machine.nodes, setup.pages.page_bytes);
        let farther = machine.remote_latency_cycles - machine.memory_latency_cycles;
        let numa = Numa::new(nodes, machine.cores / nodes, page_bytes, &setup.homes);
        detailed = detailed.with_numa(numa.with_farther_cycles(farther));
    }
    Ok(detailed)
}

/// The translations of the first `cores` of a machine's cores, if its description tells of any.
fn translations(machine: &Machine, setup: &Setup, cores: u32) -> Result<Option<Tlb>, ImpossibleTlb> {
    if machine.tlbs.is_empty() {
        return Ok(None);
    }
    let spec = |tlb: &machine::TlbArray| TlbSpec {
        level: tlb.level,
        entries: tlb.entries,
        ways: tlb.ways,
        page_bytes: tlb.page_bytes.clone(),
        latency_cycles: tlb.latency_cycles,
    };
    let specs: Vec<TlbSpec> = machine.tlbs.iter().map(spec).collect();
    let of_tags = setup.named.iter().map(|named| named.page_bytes).collect();
    let pages = Pages { of_tags, ..setup.pages.clone() };
    Tlb::new(&specs, machine.page_walk_cycles, &pages, cores).map(Some)
}

/// The machine's caches and translations, empty, for the first `cores` of its cores.
pub(crate) fn timed_caches(
    machine: &Machine,
    setup: &Setup,
    cores: u32,
) -> Result<(Hierarchy, Option<Tlb>), ImpossibleMachine> {
    Ok((caches(machine, cores)?, translations(machine, setup, cores)?))
}

/// Cores that a program of so many threads needs.
pub(crate) fn needed(machine: &Machine, setup: &Setup, threads: usize) -> u32 {
    setup.cores(machine, threads).into_iter().max().map_or(1, |last| last + 1)
}

/// Returns whether a program of so many threads meets anything that a [`Hierarchy`] has not. One core alone needs no coherence.
pub(crate) fn has_rules(machine: &Machine, setup: &Setup, threads: usize) -> bool {
    if setup.rules == RuleChoice::Lru {
        return false;
    }
    let spec = model_spec(machine, needed(machine, setup, threads));
    spec.levels.iter().any(|level| *level != ModelLevel::from(level.shape))
        || (spec.coherence == Coherence::Mesi
            && spec.levels.iter().any(|level| level.shape.shared_by < spec.cores))
}

/// The first `cores` of a machine's cores with the rules of their caches.
pub fn model_spec(machine: &Machine, cores: u32) -> ModelSpec {
    let level = |level: &machine::Level| ModelLevel {
        shape: shape(level),
        replacement: level.rules.replacement,
        inclusion: level.rules.inclusion,
        write: level.rules.write,
        write_allocate: level.rules.allocate == machine::Allocate::ReadsAndWrites,
        sector_bytes: level.rules.sector_bytes,
        prefetch: level.rules.prefetch.clone(),
    };
    ModelSpec {
        levels: machine.levels.iter().map(level).collect(),
        cores,
        coherence: machine.coherence,
        page_bytes: machine.page_bytes,
        // One a cycle, from memory: the worst case, and few programs do as many.
        fill_accesses: machine.memory_latency_cycles,
    }
}
