//! One builder for all replays of a trace on a machine.
//!
//! ```text
//!   Simulation::of(&source, &machine).threads(n).under(map)
//!      ├─ count    counts by cell, in exact LRU caches
//!      ├─ causes   the same by the machine's rules, and why lines missed
//!      ├─ within   counts of a window                  (window.rs)
//!      ├─ time     when accesses commit                (timed.rs)
//!      └─ rows     every access, batch by batch        (annotate/)
//! ```

use std::ops::ControlFlow;
use std::path::Path;

use memlode_machine::Machine;
use memlode_replay::{Piece, Replayed, Shards};
use memlode_simulate::{Hierarchy, Shape};
use memlode_trace::Trace;

use crate::count::engine::{Engine, TakesFragments};
use crate::count::map::AddressMap;
use crate::count::mapped::Mapped;
use crate::count::profiler::{LoadedGlobal, Profiler};
use crate::count::route::{Direct, Route};
use crate::drive::simulators::{ImpossibleMachine, caches, detailed, has_rules};
use crate::drive::source::Source;
use crate::drive::threads::beside_caches::ThreadedDetailed;
use crate::drive::threads::division;
use crate::drive::threads::outer_levels::ThreadedOuterLevels;
use crate::profile::{DetailedProfile, Profile};
use crate::setup::Setup;

/// One line in this many is followed at first: enough residencies of a small program, and soon
/// fewer of a large one.
const FOLLOWED_ONE_OF: u64 = 8;

/// A replay of a whole trace through a machine's caches; by default on one thread, with objects
/// where they were.
///
/// Each method that starts it takes a `watch`, which receives the number of finished chunks after
/// each chunk, and may stop the replay. Chunks that cannot be decoded are left out and listed in
/// [`Replayed`]. A trace that is still being written is replayed until it is complete.
#[derive(Clone, Copy)]
pub struct Simulation<'a> {
    pub(crate) source: &'a Source,
    pub(crate) machine: &'a Machine,
    pub(crate) threads: usize,
    map: Option<&'a dyn AddressMap>,
    by_path: bool,
    beside: Option<&'a (dyn Fn(&Piece<'_>) + Sync)>,
}

impl<'a> Simulation<'a> {
    /// The replay of a trace on a machine.
    pub fn of(source: &'a Source, machine: &'a Machine) -> Simulation<'a> {
        Simulation { source, machine, threads: 1, map: None, by_path: false, beside: None }
    }

    /// Uses this many threads, at least one: the figures are the same for any number.
    pub fn threads(self, threads: usize) -> Simulation<'a> {
        Simulation { threads: threads.max(1), ..self }
    }

    /// Distinguishes accesses on different call paths, if true: each path has cells of its own.
    /// Only [`Simulation::count`] does that.
    pub fn by_path(self, by_path: bool) -> Simulation<'a> {
        Simulation { by_path, ..self }
    }

    /// Moves the bytes of objects by a map, if there is one. Only [`Simulation::count`] and
    /// [`Simulation::causes`] do that. The accesses of a trace that is still being written stay
    /// where they are.
    pub fn under(self, map: Option<&'a dyn AddressMap>) -> Simulation<'a> {
        Simulation { map, ..self }
    }

    /// Passes each piece of the trace to something else as well, in their order and before it is
    /// simulated, so that the trace is decoded once for both: with all of its marks, and the accesses
    /// that one of several threads simulates. Only [`Simulation::count`] and [`Simulation::causes`] do
    /// that.
    pub fn beside(self, beside: &'a (dyn Fn(&Piece<'_>) + Sync)) -> Simulation<'a> {
        Simulation { beside: Some(beside), ..self }
    }

    /// Counts the levels that served each access, by the rules of exact LRU caches.
    ///
    /// Decodes on all threads, and simulates on as many of them as is fastest and the shape of the
    /// caches allows. One thread simulates if the trace has gaps or objects are moved, since
    /// objects come and go in replay order. Then the outer levels have another thread, if there is
    /// one ([`ThreadedOuterLevels`]).
    ///
    /// # Errors
    /// That the machine's caches cannot be simulated.
    pub fn count(
        self,
        mut watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Result<(Profile, Replayed), ImpossibleMachine> {
        let Simulation { source, machine, threads, map, .. } = self;
        let (gaps, mut empty) = (source.may_have_gaps(), caches(machine, machine.cores)?);
        if !gaps && map.is_none() {
            empty = empty.with_residencies(FOLLOWED_ONE_OF);
        }
        let is_excerpt = matches!(source, Source::Excerpt { .. });
        let shards = match gaps || map.is_some() || is_excerpt {
            true => Shards::one(),
            false => {
                let at_most = |count| Shards::new(count, empty.shard_bits(), Shape::of(&empty.levels()[0]));
                at_most(division::shards(source, &empty, threads, at_most(threads).count()))
            }
        };
        if shards.count() > 1 {
            return Ok(self.count_shards(&empty, &shards, watch));
        }
        if threads > 1 && !gaps {
            let mut profiler = self.profiler(ThreadedOuterLevels::new(empty));
            let replayed = self.observe_under_map(&mut profiler, threads - 1, watch);
            return Ok((profiler.finish(), replayed));
        }
        let certain = (gaps && map.is_none()).then(|| empty.clone());
        let mut profiler = self.profiler(empty);
        if gaps {
            profiler.watch_gaps(certain);
        }
        let replayed = self.observe_under_map(&mut profiler, threads - 1, &mut watch);
        Ok((profiler.finish(), replayed))
    }

    /// Returns a profiler with these caches.
    fn profiler<E: Engine>(self, caches: E) -> Profiler<E> {
        let profiler = Profiler::new(&[], caches);
        if self.by_path { profiler.by_path() } else { profiler }
    }

    /// Counts several shards of the caches' sets, each on a thread of its own.
    fn count_shards(
        self,
        empty: &Hierarchy,
        shards: &Shards,
        mut watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> (Profile, Replayed) {
        let new = |shard| {
            let profiler = Profiler::of_shard(&[], empty.clone(), shard, shards.clone());
            if self.by_path { profiler.by_path() } else { profiler }
        };
        let mut profilers: Vec<Profiler> = (0..shards.count()).map(new).collect();
        let mut done = 0;
        let mut chunk_done = |piece: &Piece<'_>| watched(piece, &mut done, &mut watch);
        // The first shard's consumer tells how far all are: none is more than a few chunks from it.
        let mut watches = std::iter::once(Some(&mut chunk_done as &mut (dyn FnMut(&Piece<'_>) -> _ + Send)));
        let consumers = profilers.iter_mut().map(|profiler| {
            let (mut known, mut watch) = (Known::default(), watches.next().flatten());
            move |piece: &Piece<'_>| {
                known.follow(self.source, profiler);
                if let (Some(beside), Some(_)) = (self.beside, &watch) {
                    beside(piece);
                }
                profiler.observe_piece(piece);
                watch.as_mut().map_or(ControlFlow::Continue(()), |watch| watch(piece))
            }
        });
        let consumers: Vec<_> = consumers.collect();
        let helpers = self.threads.saturating_sub(shards.count());
        let replayed = self.source.interleave_shards(shards, helpers, consumers);
        (Profiler::finish_all(profilers), replayed)
    }

    /// Counts by the machine's own rules, and finds why accesses missed.
    ///
    /// One thread simulates the caches: the fully associative ones, by which capacity misses and
    /// conflicts are distinguished, have one set. If there are no gaps, another thread does
    /// everything before the caches ([`ThreadedDetailed`]). The others decode.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn causes(
        self,
        setup: &Setup,
        watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Result<(DetailedProfile, Replayed), ImpossibleMachine> {
        let Simulation { source, machine, threads, map, .. } = self;
        let most = self.most_threads();
        let simulator = detailed(machine, setup, most)?;
        // Behind a gap, what was counted before is looked at.
        let (mut profile, simulator, replayed) = if threads > 1 && !source.may_have_gaps() {
            let mut profiler = prepared(ThreadedDetailed::new(simulator), machine, setup, most);
            let replayed = self.observe_under_map(&mut profiler, threads - 2, watch);
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
            let replayed = self.observe_under_map(&mut profiler, threads - 1, watch);
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

    /// Returns the number of the program's threads, or of cores while it is unknown: the caches of
    /// an idle core change nothing.
    pub(crate) fn most_threads(self) -> usize {
        self.source.threads().unwrap_or(self.machine.cores as usize)
    }

    /// Passes the whole trace to a profiler by the route through the map, if there is one and the
    /// trace is complete.
    fn observe_under_map<E: TakesFragments + Send>(
        self,
        profiler: &mut Profiler<E>,
        helpers: usize,
        watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Replayed {
        match (self.map, self.source) {
            (Some(map), Source::Stored(trace) | Source::Excerpt { trace, .. }) => {
                let type_bytes = trace.sites().types().iter().map(|ty| ty.bytes).collect();
                let mut mapped = Mapped::new(map, type_bytes);
                if matches!(self.source, Source::Excerpt { .. }) {
                    mapped = mapped.examining_all();
                }
                self.observe(profiler, &mut mapped, helpers, watch)
            }
            _ => self.observe(profiler, &mut Direct, helpers, watch),
        }
    }

    /// Passes the whole trace to a profiler by a route, which `helpers` threads help to decode.
    pub(crate) fn observe<E: Engine + Send>(
        self,
        profiler: &mut Profiler<E>,
        route: &mut (impl Route<E> + Send),
        helpers: usize,
        mut watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Replayed {
        let (mut known, mut done) = (Known::default(), 0);
        let consume = |piece: &Piece<'_>| {
            known.follow(self.source, profiler);
            if let Some(beside) = self.beside {
                beside(piece);
            }
            profiler.observe_piece_by(route, piece);
            watched(piece, &mut done, &mut watch)
        };
        match self.source.may_have_gaps() {
            true => self.source.interleave(helpers, consume),
            false => self.source.interleave_shards(&Shards::one(), helpers, vec![consume]),
        }
    }
}

/// Makes a profiler that is set up, for a program of this many threads.
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

/// Calls `watch` when a piece is the last of its chunk.
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

/// A profiler's knowledge of a source's names and images.
#[derive(Default)]
pub(crate) struct Known {
    news: u64,
    images: usize,
}

impl Known {
    /// Passes new names and globals to a profiler. To be called before each piece.
    #[inline]
    pub fn follow<E: Engine>(&mut self, source: &Source, profiler: &mut Profiler<E>) {
        let latest = source.news();
        if latest != self.news {
            self.news = latest;
            source.look(|trace| {
                profiler.know_names(trace.sites_kept());
                self.images = add_globals(trace, self.images, profiler);
            });
        }
    }
}

/// Adds the globals of a trace's images from number `first` on; returns the number of images.
fn add_globals<E: Engine>(trace: &Trace, first: usize, profiler: &mut Profiler<E>) -> usize {
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
