//! Time that accesses take, by a model of the core ([`memlode_simulate::Timed`]).

use std::ops::ControlFlow;

use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_simulate::{
    Act, Asked, Charged, FeedGroups, KEPT_LOADS, LevelCounters, LevelSpec, MemRef, TICKS, Tag, TimeSpec,
    Timed, TimedFeed, TimedSite,
};
use memlode_trace::event::SyncKind;
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteId, SiteKind, SiteTable};
use memlode_trace::work;

use crate::count::engine::{Engine, Lane, LoopMode, MOST_WAITING, NewCell, NewSync};
use crate::count::route::Direct;
use crate::drive::simulation::{Simulation, prepared};
use crate::drive::simulators::{ImpossibleMachine, needed, timed_caches};
use crate::objects::classes::Home;
use crate::profile::TimedProfile;
use crate::setup::Setup;

impl Simulation<'_> {
    /// Times every access of a trace without gaps. One thread simulates, the others decode.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn time(
        self,
        setup: &Setup,
        watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Result<(TimedProfile, Replayed), ImpossibleMachine> {
        let Simulation { source, machine, threads, .. } = self;
        let most = self.most_threads();
        let (caches, tlb) = timed_caches(machine, setup, needed(machine, setup, most))?;
        let sites = source.look(|trace| timed_sites(trace.sites()));
        let engine = Timekeeper {
            timed: Timed::new(time_spec(machine, setup), caches, tlb),
            sites,
            cells: Vec::new(),
            charged: Vec::new(),
            missed: Vec::new(),
            lock_calls: 0,
        };
        let mut profiler = prepared(engine, machine, setup, most);
        let replayed = self.observe(&mut profiler, &mut Direct, threads - 1, watch);
        let (profile, engine) = profiler.finish_with_caches();
        let threads = source.look(|trace| trace.threads().len());
        let mut committed = engine.timed.committed();
        committed.resize(threads, 0);
        let setup = Setup { cores: setup.cores(machine, threads), ..setup.clone() };
        let (charged, lock_calls) = (engine.charged, engine.lock_calls);
        Ok((TimedProfile { profile, charged, threads: committed, lock_calls, setup }, replayed))
    }
}

/// Returns the constants that the model takes of a machine.
pub fn time_spec(machine: &Machine, setup: &Setup) -> TimeSpec {
    let costs = &machine.costs;
    let second = machine.tlbs.iter().filter(|tlb| tlb.level == 2).map(|tlb| tlb.latency_cycles).min();
    TimeSpec {
        latencies: machine.latencies().into_iter().map(f64::from).collect(),
        instruction: costs.instruction_cycles.value,
        overlap_l2: costs.overlap_l2.value,
        overlap_memory: costs.overlap_memory.value,
        read_line: costs.read_line_cycles.value,
        write_line: costs.write_line_cycles.value,
        window: costs.window_instructions.value,
        stores: machine.flight().stores as usize,
        walk: machine.page_walk_cycles.into(),
        overlap_walk: costs.overlap_walk.value,
        second_tlb: second.unwrap_or(0).into(),
        atomic: costs.atomic_cycles.value,
        fence: costs.fence_cycles.value,
        mispredict: costs.mispredict_cycles.value,
        line_bytes: machine.levels[0].line_bytes,
        page_bytes: setup.pages.page_bytes,
    }
}

/// Returns the facts that the model needs of each site.
fn timed_sites(names: &SiteTable) -> Vec<TimedSite> {
    let site = |(number, site): (u32, &Site)| {
        let work = names.work(SiteId(number));
        let parts = |instructions: f32| (f64::from(instructions) * TICKS as f64).round() as u64;
        let groups = |feeds: &work::Feeds| -> FeedGroups {
            let feed = |feed: &work::Feed| TimedFeed { site: feed.site.0, back: feed.back };
            feeds.iter().map(|group| group.iter().map(feed).collect()).collect()
        };
        let feeds = |feeds: Option<&work::Feeds>| feeds.map(groups).unwrap_or_default();
        TimedSite {
            number,
            act: match site.kind {
                SiteKind::Update => Act::Atomic,
                // An exchange, on the processors that there are.
                SiteKind::Store if site.flags & flag::ATOMIC != 0 && site.flags & flag::SEQUENTIAL != 0 => {
                    Act::Atomic
                }
                SiteKind::Store if site.is_past_caches() => Act::StorePast,
                SiteKind::Store => Act::Store,
                _ if site.is_prefetch() => Act::Prefetch,
                _ => Act::Load,
            },
            is_fenced: site.flags & flag::FENCED != 0,
            before: parts(work.map_or(UNKNOWN_INSTRUCTIONS, |work| work.before)),
            after: parts(work.map_or(0.0, |work| work.after)),
            address: feeds(work.map(|work| &work.address)),
            data: feeds(work.map(|work| &work.data)),
            branches: work.and_then(|work| work.branches.as_ref()).map(groups),
        }
    };
    (0..).zip(names.sites()).map(site).collect()
}

// The model keeps as many loads of a site as a trace tells apart.
const _: () = assert!((work::Feed::MOST_BACK as usize) < KEPT_LOADS);

/// Instructions up to an access of which nothing is known.
const UNKNOWN_INSTRUCTIONS: f32 = 4.0;

/// An [`Engine`] that times each access when it comes.
struct Timekeeper {
    timed: Timed,
    /// Facts of sites, by number.
    sites: Vec<TimedSite>,
    /// Facts of cells, by tag.
    cells: Vec<CellFacts>,
    charged: Vec<Charged>,
    /// Accesses that the first level did not serve and that are not reported yet, with their
    /// depths.
    missed: Vec<(Tag, u8)>,
    /// Calls so far that took a lock or gave one back.
    lock_calls: u64,
}

/// Meaning of a tag.
#[derive(Clone, Copy)]
struct CellFacts {
    site: u32,
    thread: u32,
    /// Its objects are memory that the program got while it was recorded.
    is_fresh: bool,
}

impl Timekeeper {
    #[inline]
    fn time(&mut self, access: MemRef) -> u8 {
        let tag = access.tag.index();
        let facts = self.cells[tag];
        let site = &self.sites[facts.site as usize];
        let (depth, charged) = self.timed.access(facts.thread as usize, access, site, facts.is_fresh);
        self.charged[tag] += &charged;
        depth
    }
}

impl Engine for Timekeeper {
    const LOOPS: LoopMode = LoopMode::Unrolled;
    type Lane<'e> = TimedLane<'e>;

    fn access(&mut self, access: MemRef) -> Option<u8> {
        Some(self.time(access))
    }

    fn store_past(&mut self, access: MemRef, _depth: u8, begun: u32) {
        let tag = access.tag.index();
        let facts = self.cells[tag];
        let site = &self.sites[facts.site as usize];
        self.charged[tag] += &self.timed.store_past(facts.thread as usize, access, site, begun);
    }

    fn lane(&mut self, _core: usize) -> Option<TimedLane<'_>> {
        Some(TimedLane(self))
    }

    fn is_full(&self) -> bool {
        self.missed.len() >= MOST_WAITING
    }

    fn settle(&mut self, mut told: impl FnMut(Tag, u8, u64)) {
        self.missed.drain(..).for_each(|(tag, depth)| told(tag, depth, 1));
    }

    fn finish(&mut self, told: impl FnMut(Tag, u8, u64)) {
        self.settle(told);
    }

    fn counters(&self) -> Vec<LevelCounters> {
        self.timed.counters()
    }

    fn first_level(&self) -> &LevelSpec {
        self.timed.first_level()
    }

    fn cores(&self) -> u32 {
        self.timed.cores()
    }

    fn introduce(&mut self, cell: NewCell<'_>) {
        let is_fresh = *cell.classes.home(cell.class).0 != Home::Unknown;
        self.cells.push(CellFacts { site: cell.site.0, thread: cell.thread.0, is_fresh });
        self.charged.push(Charged::default());
    }

    fn takes_syncs(&self) -> bool {
        true
    }

    fn synced(&mut self, sync: NewSync<'_>) {
        self.lock_calls += u64::from(matches!(sync.kind, SyncKind::Lock | SyncKind::Unlock));
    }

    fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        self.timed.set_pages_of(tag, page_bytes);
    }
}

/// Times accesses of one core, many in a row.
struct TimedLane<'e>(&'e mut Timekeeper);

impl Lane for TimedLane<'_> {
    #[inline]
    fn access(&mut self, access: MemRef) -> Asked {
        // What has several lines, or no byte, goes the long way.
        let last = access.address.wrapping_add(u64::from(access.bytes.wrapping_sub(1)));
        let line = u64::from(self.0.timed.first_level().line_bytes);
        if access.address / line != last / line {
            return Asked::Several;
        }
        match self.0.time(access) {
            0 => Asked::Hit,
            depth => {
                self.0.missed.push((access.tag, depth));
                Asked::Waits
            }
        }
    }

    fn count_hits(&mut self, _is_write: bool, _accesses: u64) {}

    fn is_full(&self) -> bool {
        Engine::is_full(self.0)
    }
}
