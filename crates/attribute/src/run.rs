//! From an opened trace and a machine to a profile.

use std::ops::ControlFlow;
use std::path::Path;

use memlode_machine::Machine;
use memlode_simulate::ImpossibleHierarchy;
use memlode_trace::{ChunkRef, LiveTrace, Piece, Replayed, Shards, Trace};

use crate::detail::DetailedProfile;
use crate::profile::{Global, Profile, Profiler};
use crate::simulator::{ImpossibleMachine, Setup, Simulator, caches, detailed};

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Chunks done.
    pub chunks: usize,
    /// Chunks there are.
    pub of: usize,
}

/// Cycles until each level answers, innermost first, memory last.
pub fn latencies(machine: &Machine) -> Vec<u32> {
    machine.levels.iter().map(|level| level.latency_cycles).chain([machine.memory_latency_cycles]).collect()
}

/// Replays a whole trace through a machine's caches.
///
/// Simulates on up to `threads` threads, as many as the shape of the caches allows: the result is the same, to the digit, for
/// any number. A trace with gaps is simulated on one, and decoded on the others. `watch` is told after each chunk and may
/// stop the run. Chunks that cannot be decoded are left out and listed in the second result.
pub fn profile_trace(
    trace: &Trace,
    machine: &Machine,
    threads: usize,
    mut watch: impl FnMut(Progress) -> ControlFlow<()> + Send,
) -> Result<(Profile, Replayed), ImpossibleHierarchy> {
    let empty = caches(machine, machine.cores)?;
    let sites = trace.sites().sites();
    let mut progress = Progress { chunks: 0, of: trace.chunks().len() };
    let mut chunk_done = move |piece: &Piece<'_>| {
        if !piece.is_last() {
            return ControlFlow::Continue(());
        }
        progress.chunks += 1;
        watch(progress)
    };
    if trace.chunks().iter().any(ChunkRef::is_after_gap) {
        let mut profiler = Profiler::new(sites, empty);
        profiler.watch_gaps();
        add_globals(trace, 0, &mut profiler);
        let replayed = trace.interleave(threads.saturating_sub(1), |piece| {
            profiler.observe_piece(piece);
            chunk_done(piece)
        });
        return Ok((profiler.finish(), replayed));
    }
    let shards = Shards::new(threads, empty.shard_bits(), empty.line_bytes());
    let mut profilers: Vec<Profiler> = (0..shards.count())
        .map(|shard| {
            let mut profiler = Profiler::of_shard(sites, empty.clone(), shard, shards.clone());
            add_globals(trace, 0, &mut profiler);
            profiler
        })
        .collect();
    drop(empty);
    // The first shard's consumer tells how far all are: none is more than a few chunks from it.
    let mut watches = std::iter::once(Some(&mut chunk_done as &mut (dyn FnMut(&Piece<'_>) -> _ + Send)));
    let consumers = profilers.iter_mut().map(|profiler| {
        let mut watch = watches.next().flatten();
        move |piece: &Piece<'_>| {
            profiler.observe_piece(piece);
            watch.as_mut().map_or(ControlFlow::Continue(()), |watch| watch(piece))
        }
    });
    let replayed = trace.interleave_shards(&shards, consumers.collect());
    Ok((Profiler::finish_all(profilers), replayed))
}

/// The same for a trace that is still written, until it is complete. `gaps` says whether it may have gaps, which takes one
/// thread and a bit longer.
pub fn profile_live(
    live: &LiveTrace,
    machine: &Machine,
    threads: usize,
    gaps: bool,
) -> Result<(Profile, Replayed), ImpossibleHierarchy> {
    let empty = caches(machine, machine.cores)?;
    let shards = match gaps {
        true => Shards::one(),
        false => Shards::new(threads, empty.shard_bits(), empty.line_bytes()),
    };
    let new = |shard| Profiler::of_shard(&[], empty.clone(), shard, shards.clone());
    let mut profilers: Vec<Profiler> = (0..shards.count()).map(new).collect();
    if gaps {
        profilers[0].watch_gaps();
    }
    let consumers = profilers.iter_mut().map(|profiler| {
        let (mut news, mut images) = (0, 0);
        move |piece: &Piece<'_>| {
            let latest = live.news();
            if latest != news {
                news = latest;
                live.look(|trace| {
                    profiler.know(trace.sites().sites());
                    images = add_globals(trace, images, profiler);
                });
            }
            profiler.observe_piece(piece);
            ControlFlow::Continue(())
        }
    });
    let mut consumers: Vec<_> = consumers.collect();
    let replayed = match &mut consumers[..] {
        [consume] if gaps => live.interleave(threads.saturating_sub(1), consume),
        _ => live.interleave_shards(&shards, consumers),
    };
    Ok((Profiler::finish_all(profilers), replayed))
}

/// The same with everything that can be found of the misses. One thread simulates: the fully associative caches that tell
/// capacity from conflict have one set. The others decode.
pub fn profile_in_detail(
    trace: &Trace,
    machine: &Machine,
    setup: &Setup,
    threads: usize,
    mut watch: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<(DetailedProfile, Replayed), ImpossibleMachine> {
    let simulator = detailed(machine, setup, trace.threads().len(), trace.processes().len())?;
    let cores = setup.cores(machine, trace.threads().len());
    let mut profiler = Profiler::new(trace.sites().sites(), simulator).with_cores(cores.clone());
    if trace.chunks().iter().any(ChunkRef::is_after_gap) {
        profiler.watch_gaps();
    }
    add_globals(trace, 0, &mut profiler);
    let mut progress = Progress { chunks: 0, of: trace.chunks().len() };
    let replayed = trace.interleave(threads.saturating_sub(1), |piece| {
        profiler.observe_piece(piece);
        if !piece.is_last() {
            return ControlFlow::Continue(());
        }
        progress.chunks += 1;
        watch(progress)
    });
    let (mut profile, simulator) = profiler.finish_with_caches();
    let details = simulator.finish();
    let farther = u64::from(machine.remote_latency_cycles - machine.memory_latency_cycles);
    for cell in &mut profile.cells {
        let tag = cell.tag as usize;
        let translations = details.tlb.get(tag).map_or(0, |tlb| tlb.cycles);
        let remote = details.numa.get(tag).map_or(0, |numa| numa.remote);
        cell.counts.other_cycles = translations + remote * farther;
    }
    Ok((DetailedProfile { profile, details, setup: Setup { cores, ..setup.clone() } }, replayed))
}

/// Makes the globals of a trace's images from `first` on known; says how many images there are.
pub(crate) fn add_globals<S: Simulator>(trace: &Trace, first: usize, profiler: &mut Profiler<S>) -> usize {
    for image in &trace.images()[first..] {
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
    trace.images().len()
}
