//! From an opened trace and a machine to a profile.

use std::ops::ControlFlow;
use std::path::Path;

use memlode_machine::Machine;
use memlode_simulate::{Hierarchy, ImpossibleHierarchy, LevelSpec};
use memlode_trace::{ChunkRef, Replayed, Trace};

use crate::profile::{Global, Profile, Profiler};

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Chunks done.
    pub chunks: usize,
    /// Chunks there are.
    pub of: usize,
    /// Accesses done.
    pub accesses: u64,
}

/// Cycles until each level answers, innermost first, memory last.
pub fn latencies(machine: &Machine) -> Vec<u32> {
    machine.levels.iter().map(|level| level.latency_cycles).chain([machine.memory_latency_cycles]).collect()
}

/// The machine's caches, empty.
pub fn caches(machine: &Machine) -> Result<Hierarchy, ImpossibleHierarchy> {
    let specs: Vec<LevelSpec> = machine
        .levels
        .iter()
        .map(|level| LevelSpec {
            bytes: level.bytes,
            ways: level.ways,
            line_bytes: level.line_bytes,
            shared_by: level.shared_by,
        })
        .collect();
    Hierarchy::new(&specs, machine.cores)
}

/// Replays a whole trace through a machine's caches.
///
/// Chunks are decoded on `workers` threads and simulated on this one. `watch` is told after each chunk and may stop the
/// run. Chunks that cannot be decoded are left out and listed in the second result.
pub fn profile_trace(
    trace: &Trace,
    machine: &Machine,
    workers: usize,
    mut watch: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<(Profile, Replayed), ImpossibleHierarchy> {
    let mut profiler = Profiler::new(trace.sites().sites(), caches(machine)?);
    if trace.chunks().iter().any(ChunkRef::is_after_gap) {
        profiler.watch_gaps();
    }
    for image in trace.images() {
        let Some(module) = trace.modules().get(image.module.0 as usize) else { continue };
        let name = Path::new(&module.path).file_name().unwrap_or_default().to_string_lossy();
        let globals = module.globals.iter().map(|global| Global {
            address: global.address.wrapping_add(image.load_bias),
            bytes: global.bytes,
            symbol: global.name.clone(),
            image: name.to_string(),
        });
        profiler.add_globals(image.process, globals);
    }
    let mut progress = Progress { chunks: 0, of: trace.chunks().len(), accesses: 0 };
    let replayed = trace.interleave(workers, |piece| {
        profiler.observe_piece(piece);
        progress.accesses += piece.accesses().len() as u64;
        if !piece.is_last() {
            return ControlFlow::Continue(());
        }
        progress.chunks += 1;
        watch(progress)
    });
    Ok((profiler.finish(), replayed))
}
