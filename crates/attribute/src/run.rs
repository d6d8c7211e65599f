//! From a trace and a machine to a profile.

use std::ops::ControlFlow;
use std::path::Path;

use memlode_machine::Machine;
use memlode_replay::{Piece, Replayed, Shards};
use memlode_simulate::{ImpossibleHierarchy, Shape};
use memlode_trace::Trace;

use crate::detail::DetailedProfile;
use crate::engine::{Engine, TakesFragments};
use crate::map::AddressMap;
use crate::mapped::Mapped;
use crate::profile::{LoadedGlobal, Profile, Profiler};
use crate::road::{Direct, Road};
use crate::simulator::{ImpossibleMachine, Setup, caches, detailed, has_rules};
use crate::source::{Known, Source};
use crate::threads::beside_caches::Apart;
use crate::threads::division;
use crate::threads::outer_levels::Outwards;

/// One of so many lines is followed at first: enough stays of a small program, and soon fewer of a large one.
const FOLLOWED_ONE_OF: u64 = 8;

/// Cycles until each level answers, innermost first, memory last.
pub fn latencies(machine: &Machine) -> Vec<u32> {
    machine.levels.iter().map(|level| level.latency_cycles).chain([machine.memory_latency_cycles]).collect()
}

/// Replays a whole trace through a machine's caches.
///
/// Decodes on `threads` threads and simulates on as many of them as make the trace fastest and the shape of the caches allows, one if it
/// has gaps: the result is the same, to the digit, for any number. Where one of several threads simulates, the outer levels have another
/// one to themselves ([`Outwards`]). `watch` is told after each chunk how many are done, and may stop the run. Chunks that cannot be decoded are left out and listed in the second result. A trace that is still written
/// is replayed until it is complete.
pub fn profile_trace(
    source: &Source,
    machine: &Machine,
    threads: usize,
    mut watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Result<(Profile, Replayed), ImpossibleHierarchy> {
    let gaps = source.may_have_gaps();
    let empty = caches(machine, machine.cores)?;
    let empty = if gaps { empty } else { empty.with_stays(FOLLOWED_ONE_OF) };
    let at_most = |count| Shards::new(count, empty.shard_bits(), Shape::of(&empty.levels()[0]));
    let shards = match gaps {
        true => Shards::one(),
        false => at_most(division::shards(source, &empty, threads, at_most(threads).count())),
    };
    if threads > 1 && shards.count() == 1 && !gaps {
        let mut profiler = Profiler::new(&[], Outwards::new(empty));
        let replayed = observe_all(source, &mut profiler, &mut Direct, threads - 1, watch);
        return Ok((profiler.finish(), replayed));
    }
    let new = |shard| Profiler::of_shard(&[], empty.clone(), shard, shards.clone());
    let mut profilers: Vec<Profiler> = (0..shards.count()).map(new).collect();
    if gaps {
        profilers[0].watch_gaps(Some(empty.clone()));
    }
    drop(empty);
    let mut done = 0;
    let mut chunk_done = |piece: &Piece<'_>| watched(piece, &mut done, &mut watch);
    // The first shard's consumer tells how far all are: none is more than a few chunks from it.
    let mut watches = std::iter::once(Some(&mut chunk_done as &mut (dyn FnMut(&Piece<'_>) -> _ + Send)));
    let consumers = profilers.iter_mut().map(|profiler| {
        let (mut known, mut watch) = (Known::default(), watches.next().flatten());
        move |piece: &Piece<'_>| {
            known.follow(source, profiler);
            profiler.observe_piece(piece);
            watch.as_mut().map_or(ControlFlow::Continue(()), |watch| watch(piece))
        }
    });
    let mut consumers: Vec<_> = consumers.collect();
    let helpers = threads.saturating_sub(shards.count());
    let replayed = match &mut consumers[..] {
        [consume] if gaps => source.interleave(helpers, consume),
        _ => source.interleave_shards(&shards, helpers, consumers),
    };
    Ok((Profiler::finish_all(profilers), replayed))
}

/// [`profile_trace`] with accesses where a map puts the bytes of their objects ([`AddressMap`]). One thread resolves them and has the
/// first level, as objects come and go in replay order; the outer levels have another one, and the others decode. The accesses of a trace
/// that is still written stay where they are.
pub fn profile_mapped(
    source: &Source,
    machine: &Machine,
    map: &dyn AddressMap,
    threads: usize,
    watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Result<(Profile, Replayed), ImpossibleHierarchy> {
    let empty = caches(machine, machine.cores)?;
    let helpers = threads.saturating_sub(1);
    if threads > 1 && !source.may_have_gaps() {
        let mut profiler = Profiler::new(&[], Outwards::new(empty));
        let replayed = observe_mapped(source, &mut profiler, Some(map), helpers, watch);
        return Ok((profiler.finish(), replayed));
    }
    let mut profiler = Profiler::new(&[], empty);
    if source.may_have_gaps() {
        profiler.watch_gaps(None);
    }
    let replayed = observe_mapped(source, &mut profiler, Some(map), helpers, watch);
    Ok((profiler.finish(), replayed))
}

/// The same with everything that can be found of the misses. One thread simulates the caches: the fully associative ones that tell
/// capacity from conflict have one set. If there are no gaps, another has all that comes before them ([`Apart`]). The others decode.
pub fn profile_in_detail(
    source: &Source,
    machine: &Machine,
    setup: &Setup,
    threads: usize,
    watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Result<(DetailedProfile, Replayed), ImpossibleMachine> {
    profile_mapped_in_detail(source, machine, setup, None, threads, watch)
}

/// The same with accesses where a map puts the bytes of their objects, if there is one, as [`profile_mapped`] does.
pub fn profile_mapped_in_detail(
    source: &Source,
    machine: &Machine,
    setup: &Setup,
    map: Option<&dyn AddressMap>,
    threads: usize,
    watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Result<(DetailedProfile, Replayed), ImpossibleMachine> {
    // As many as there are cores, if nobody knows: the caches of a core that runs nothing change nothing.
    let most = source.threads().unwrap_or(machine.cores as usize);
    let simulator = detailed(machine, setup, most)?;
    // Behind a gap, what was counted before is looked at.
    let (mut profile, simulator, replayed) = if threads > 1 && !source.may_have_gaps() {
        let mut profiler = prepared(Apart::new(simulator), machine, setup, most);
        let replayed = observe_mapped(source, &mut profiler, map, threads - 2, watch);
        let (profile, simulator) = profiler.finish_with_caches();
        (profile, simulator.into_whole(), replayed)
    } else {
        let mut profiler = prepared(simulator, machine, setup, most);
        if source.may_have_gaps() {
            let least = source.threads().unwrap_or(1);
            let is_certain = map.is_none() && !has_rules(machine, setup, least);
            let certain = is_certain.then(|| caches(machine, machine.cores));
            profiler.watch_gaps(certain.transpose()?);
        }
        let replayed = observe_mapped(source, &mut profiler, map, threads.saturating_sub(1), watch);
        let (profile, simulator) = profiler.finish_with_caches();
        (profile, simulator, replayed)
    };
    let mut details = simulator.finish();
    profile.remote = (machine.nodes > 1).then(|| details.numa.iter().map(|found| found.remote).sum());
    let threads = source.look(|trace| trace.threads().len());
    match (has_rules(machine, setup, threads), &mut profile.gaps) {
        (false, _) => details.model = None,
        (true, Some(gaps)) => gaps.bounds = None,
        (true, None) => {}
    }
    let setup = Setup { cores: setup.cores(machine, threads), ..setup.clone() };
    Ok((DetailedProfile { profile, details, setup }, replayed))
}

/// A profiler that is set up, for a program of so many threads.
pub(crate) fn prepared<E: Engine>(
    simulator: E,
    machine: &Machine,
    setup: &Setup,
    threads: usize,
) -> Profiler<E> {
    Profiler::new(&[], simulator)
        .with_cores(setup.cores(machine, threads))
        .with_named_pages(setup.named.clone())
}

/// The road through a map, if there is one and the trace is complete.
fn edited<'m>(source: &Source, map: Option<&'m dyn AddressMap>) -> Option<Mapped<'m>> {
    let (map, Source::Stored(trace)) = (map?, source) else { return None };
    Some(Mapped::new(map, trace.sites().types().iter().map(|ty| ty.bytes).collect()))
}

/// [`observe_all`] by the road through a map, if there is one.
fn observe_mapped<E: TakesFragments + Send>(
    source: &Source,
    profiler: &mut Profiler<E>,
    map: Option<&dyn AddressMap>,
    helpers: usize,
    watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Replayed {
    match edited(source, map) {
        None => observe_all(source, profiler, &mut Direct, helpers, watch),
        Some(mut road) => observe_all(source, profiler, &mut road, helpers, watch),
    }
}

/// Has a profiler see the whole trace by a road, which `helpers` threads help to decode.
pub(crate) fn observe_all<E: Engine + Send>(
    source: &Source,
    profiler: &mut Profiler<E>,
    road: &mut (impl Road<E> + Send),
    helpers: usize,
    mut watch: impl FnMut(usize) -> ControlFlow<()> + Send,
) -> Replayed {
    let (mut known, mut done) = (Known::default(), 0);
    let consume = |piece: &Piece<'_>| {
        known.follow(source, profiler);
        profiler.observe_piece_by(road, piece);
        watched(piece, &mut done, &mut watch)
    };
    match source.may_have_gaps() {
        true => source.interleave(helpers, consume),
        false => source.interleave_shards(&Shards::one(), helpers, vec![consume]),
    }
}

/// Tells `watch` when a piece is the last of its chunk.
pub(crate) fn watched(
    piece: &Piece<'_>,
    done: &mut usize,
    watch: &mut impl FnMut(usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if !piece.is_last() {
        return ControlFlow::Continue(());
    }
    *done += 1;
    watch(*done)
}

/// Makes the globals of a trace's images from `first` on known; says how many images there are.
pub(crate) fn add_globals<E: Engine>(trace: &Trace, first: usize, profiler: &mut Profiler<E>) -> usize {
    for image in &trace.images()[first..] {
        let Some(module) = trace.modules().get(image.module.0 as usize) else { continue };
        let name = Path::new(&module.path).file_name().unwrap_or_default().to_string_lossy();
        let globals = module.globals.iter().map(|global| LoadedGlobal {
            address: global.address.wrapping_add(image.load_bias),
            bytes: global.bytes,
            symbol: global.name.clone(),
            image: name.to_string(),
        });
        profiler.add_globals(image.process, globals);
    }
    trace.images().len()
}
