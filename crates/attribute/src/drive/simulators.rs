//! Simulators of a machine by its description: the caches alone, or with all layers.

use memlode_machine::{self as machine, Machine};
use memlode_simulate::{
    Coherence, Detailed, Hierarchy, ImpossibleHierarchy, ImpossibleTlb, LevelSpec, Model, ModelLevel,
    ModelSpec, Numa, Pages, StoreBuffer, Tlb, TlbSpec,
};
use thiserror::Error;

use crate::setup::{RuleChoice, Setup};

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

/// The machine with everything in its description, for a program of at most `threads` threads.
///
/// Cores that no thread runs on are left out: a cache that is shared only with them is as good as
/// private.
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

/// The translations of the first `cores` of a machine's cores, if its description has any.
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

/// Cores that a program with this number of threads needs.
pub(crate) fn needed(machine: &Machine, setup: &Setup, threads: usize) -> u32 {
    setup.cores(machine, threads).into_iter().max().map_or(1, |last| last + 1)
}

/// Returns whether a program with this number of threads needs more than a [`Hierarchy`]. One core
/// alone needs no coherence.
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
