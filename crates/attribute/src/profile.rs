//! Every access through the caches, then to its cell.

mod marks;

use std::sync::Arc;

use memlode_replay::{Piece, PieceEnd, Shards, Walk};
use memlode_simulate::{
    Bounds, Fetched, Fragment, Hierarchy, LevelCounters, MAX_LEVELS, MemRef, Request, Schedules, Shape,
    Space, Strided, Tag, Tagged, touch_lines,
};
use memlode_trace::event::{Access, Batch, ProcessId, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteId, SiteTable};
use rustc_hash::FxHashMap;

use crate::counts::Counts;
use crate::engine::{Engine, NewCell};
use crate::fast_path::loops::{Advancing, room_to_show};
use crate::fast_path::single_line::{FoundCells, SiteFacts, key};
use crate::fast_path::straddling::CutAccess;
use crate::objects::Objects;
use crate::objects::classes::{Class, ClassId, Classes, Home};
use crate::past_caches::Combining;
use crate::paths::Paths;
use crate::road::{Direct, Road};
use crate::sampled::gaps::{GapWatch, counted};
use crate::sampled::sample::Gaps;
use crate::simulator::NamedPages;
use crate::stacks::ThreadStack;
use crate::stays::{LineFetch, Stays};
use crate::threads::merge::{Part, merge};

/// The accesses of one thread, at one site, to objects of one class.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// Its counts.
    pub counts: Counts,
    /// Its tag in the simulation, if one alone counted it.
    pub tag: Tag,
}

/// Everything that was counted of a trace. Ids are those of the trace's site table.
pub struct Profile {
    /// The finest counts; every table is a sum of these.
    pub cells: Vec<Cell>,
    /// Object classes, by id.
    pub classes: Vec<Class>,
    /// The call paths that classes refer to.
    pub paths: Paths,
    /// Counters of the cache levels, innermost first.
    pub levels: Vec<LevelCounters>,
    /// If the trace has gaps, what that means for these.
    pub gaps: Option<Gaps>,
    /// Indexed by site, as far as it goes: how it walked, in the chunks in which that was looked at.
    pub walks: Vec<Walk>,
    /// Translations were simulated: what accesses waited for them is among their other cycles.
    pub has_translations: bool,
    /// Accesses that the memory of another node answered; none where memory has no nodes.
    pub remote: Option<u64>,
    /// The stays of some lines in the caches; none of a sample, or of accesses that lie elsewhere.
    pub stays: Stays,
}

/// A global variable of a loaded image, at its run-time address.
#[derive(Clone, Debug)]
pub struct LoadedGlobal {
    /// Run-time address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Symbol, as in the image.
    pub symbol: String,
    /// File name of the image.
    pub image: String,
}

/// Feeds batches through a cache hierarchy and counts by thread, site and object class.
///
/// Batches of one stream must come in order; how threads are interleaved decides what a shared cache sees.
/// Thread *t* runs on core *t* modulo the number of cores, unless told otherwise. Processes have address spaces of their own: their
/// lines differ even where their addresses do not.
///
/// Over a gap in the trace caches keep what they held: of what the program used in the meantime nothing is known. Counts
/// behind a gap are therefore estimates ("stitched" samples: Kessler, Hill and Wood, "A comparison of trace-sampling
/// techniques for multi-megabyte caches", IEEE Transactions on Computers 43(6), 1994), and [`Gaps::bounds`] says between
/// which numbers the truth lies.
///
/// Several profilers may each have one shard of the same trace ([`Shards`]): see [`Profiler::finish_all`].
pub struct Profiler<E = Hierarchy> {
    pub(crate) sites: Vec<Site>,
    /// The names that came last, if it is told.
    names: Option<Arc<SiteTable>>,
    pub(crate) facts: Vec<SiteFacts>,
    pub(crate) caches: E,
    pub(crate) line_bytes: u32,
    /// Which shard of the trace is its own, and how they are told apart.
    pub(crate) shard: (usize, Shards),
    pub(crate) classes: Classes,
    paths: Paths,
    /// `None` while in use.
    processes: FxHashMap<ProcessId, Option<Objects>>,
    /// Keyed by thread and stream: a signal handler has a stack of its own. `None` while in use.
    stacks: FxHashMap<(ThreadId, u8), Option<ThreadStack>>,
    /// Indexed by function: the class of its frames, once it was asked for.
    pub(crate) frames: Vec<Option<ClassId>>,
    pub(crate) cells: Vec<(ThreadId, SiteId, ClassId)>,
    /// Indexed by cell: accesses that the first level answered, or that wait. Of one shard alone it may be less than nothing: what misses may
    /// have been counted by another.
    pub(crate) hits: Vec<u64>,
    /// Indexed by cell: those answered by the levels after it, and behind memory's first touches of lines.
    deeper: Vec<[u64; MAX_LEVELS + 1]>,
    pub(crate) index: FxHashMap<(ThreadId, SiteId, ClassId), u32>,
    pub(crate) found: FoundCells,
    /// Accesses that have lines of another shard, too: what is known here of how deep they went.
    pub(crate) cut: Vec<CutAccess>,
    /// Schedules of loops that came before.
    pub(crate) schedules: Schedules,
    /// The cell of each stride of the loop at hand, and what a line of it asks for.
    pub(crate) cells_of_loop: Vec<u32>,
    pub(crate) requests_of_loop: Vec<Request>,
    pub(crate) advancing: Vec<Advancing>,
    pub(crate) room_to_show: Vec<Request>,
    /// Some of its accesses, and all of them as the simulator takes them.
    pub(crate) unrolled: Vec<Access>,
    pub(crate) strided: Vec<Strided>,
    pub(crate) gaps: Option<GapWatch>,
    /// The cores that threads run on.
    cores: Vec<u32>,
    named_pages: Vec<NamedPages>,
    /// Levels of cache.
    pub(crate) levels: usize,
    /// The lines that are being written past them.
    pub(crate) combining: Combining,
    /// Indexed by site: how it walked.
    walks: Vec<Walk>,
    /// Fetches of lines that are followed.
    fetches: Vec<LineFetch>,
}

/// The source of the accesses at hand.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub thread: ThreadId,
    pub process: ProcessId,
    pub core: usize,
    /// The process's place beside the addresses of others.
    pub space: Space,
}

impl<E: Engine> Profiler<E> {
    /// Counts nothing yet.
    pub fn new(sites: &[Site], caches: E) -> Profiler<E> {
        Profiler::of_shard(sites, caches, 0, Shards::one())
    }

    /// The same for one shard of a trace.
    pub fn of_shard(sites: &[Site], caches: E, shard: usize, shards: Shards) -> Profiler<E> {
        let cores = (0..caches.cores()).collect();
        let mut profiler = Profiler {
            sites: Vec::new(),
            names: None,
            facts: Vec::new(),
            line_bytes: caches.first_level().line_bytes,
            shard: (shard, shards),
            classes: Classes::default(),
            paths: Paths::default(),
            processes: FxHashMap::default(),
            stacks: FxHashMap::default(),
            frames: Vec::new(),
            cells: Vec::new(),
            hits: Vec::new(),
            deeper: Vec::new(),
            index: FxHashMap::default(),
            found: FoundCells::default(),
            cut: Vec::new(),
            schedules: Schedules::new(Shape::of(caches.first_level())),
            cells_of_loop: Vec::new(),
            requests_of_loop: Vec::new(),
            advancing: Vec::new(),
            room_to_show: room_to_show(),
            unrolled: Vec::new(),
            strided: Vec::new(),
            gaps: None,
            cores,
            named_pages: Vec::new(),
            levels: caches.counters().len(),
            combining: Combining::new(Shape::of(caches.first_level())),
            walks: Vec::new(),
            fetches: Vec::new(),
            caches,
        };
        profiler.know(sites);
        profiler
    }

    /// All sites there are; those that were known before come first.
    pub fn know(&mut self, sites: &[Site]) {
        let new = &sites[self.sites.len()..];
        self.facts.extend(new.iter().map(SiteFacts::new));
        self.sites.extend_from_slice(new);
    }

    /// The same, and where functions are called: objects whose allocations were called for at two lines are two.
    pub fn know_names(&mut self, names: Arc<SiteTable>) {
        self.know(names.sites());
        self.names = Some(names);
    }

    /// Thread *t* runs on the *t*-th of these cores, modulo their number, which is not 0.
    pub fn with_cores(self, cores: Vec<u32>) -> Profiler<E> {
        Profiler { cores, ..self }
    }

    /// The simulator is told which cells touch such memory.
    pub fn with_named_pages(self, named_pages: Vec<NamedPages>) -> Profiler<E> {
        Profiler { named_pages, ..self }
    }

    /// To be called first if the trace has gaps. `certain` are the caches, still empty, if exact LRU ones are simulated: what those
    /// held behind a gap can be bounded.
    pub fn watch_gaps(&mut self, certain: Option<Hierarchy>) {
        let levels = self.caches.counters().len();
        self.gaps = Some(GapWatch::new(levels, certain.map(Bounds::new)));
    }

    /// Makes the globals of an image of `process` known.
    pub fn add_globals(&mut self, process: ProcessId, globals: impl IntoIterator<Item = LoadedGlobal>) {
        let objects = self.processes.entry(process).or_default().get_or_insert_default();
        for global in globals {
            let class = self.classes.of(Home::Global { symbol: global.symbol, image: global.image });
            self.classes.count(class, global.bytes);
            objects.insert_global(global.address, global.bytes, class);
        }
    }

    /// One chunk of one thread.
    pub fn observe(&mut self, batch: &Batch) {
        self.observe_piece(&Piece::whole(batch));
    }

    /// A piece of a chunk. The pieces of a chunk come in order; those of other streams may come between them.
    pub fn observe_piece(&mut self, piece: &Piece<'_>) {
        self.observe_piece_by(&mut Direct, piece);
    }

    /// The same by another road.
    #[inline(always)]
    pub(crate) fn observe_piece_by(&mut self, road: &mut impl Road<E>, piece: &Piece<'_>) {
        let batch = piece.batch;
        let (Some(process), Some(thread)) = (batch.process, batch.thread) else { return };
        // Taken out for the duration, so that the loop below borrows each part of `self` on its own.
        let mut objects = self.processes.get_mut(&process).and_then(Option::take).unwrap_or_default();
        let stack = (thread, batch.stream);
        let mut stack_here = self.stacks.get_mut(&stack).and_then(Option::take).unwrap_or_default();
        let looks_itself = road.begins(piece);
        if piece.is_first() {
            stack_here.begin(batch);
            if !looks_itself {
                self.walked(&piece.dealing.walks);
            }
        }
        // While recording is off, there are no accesses.
        let gaps = self.gaps.as_mut().filter(|_| !batch.dormant);
        let run = gaps.map(|gaps| gaps.run_of(thread, piece));
        let run = run.map(|run| {
            self.turn_to(run);
            (run, counted(&self.caches))
        });
        let origin = Origin {
            thread,
            process,
            core: self.cores[thread.0 as usize % self.cores.len()] as usize,
            space: Space::of(process.0),
        };
        for (events, stop) in piece.runs() {
            road.events(self, origin, &mut objects, &mut stack_here, events);
            match stop {
                Some(PieceEnd::Loop(part)) => {
                    road.repeat(self, origin, &mut objects, &mut stack_here, part, &part.strides());
                }
                Some(PieceEnd::Half(half)) => self.half(origin, &mut objects, &stack_here, half, piece),
                None => {}
            }
        }
        self.label_stays(origin.space, &objects);
        self.settle();
        if looks_itself {
            let mut walks = Vec::new();
            road.ends(piece, &mut walks);
            self.walked(&walks);
        }
        if let (Some(gaps), Some((run, before))) = (&mut self.gaps, run) {
            gaps.add(run, counted(&self.caches), before);
        }
        self.processes.insert(process, Some(objects));
        self.stacks.insert(stack, Some(stack_here));
        // Of a chunk's cuts the other shards are told when it is over.
        if piece.is_last() && !self.cut.is_empty() {
            self.join();
        }
    }

    /// Says of the lines that came meanwhile, and are followed, which blocks they have.
    #[inline]
    pub(crate) fn label_stays(&mut self, space: Space, objects: &Objects) {
        let Profiler { caches, fetches, cells, line_bytes, .. } = self;
        let unit = u64::from(line_bytes.div_ceil(64));
        caches.label_stays(|Fetched { line, touched, tag }| {
            let Some(Tagged::Place(cell)) = tag.map(Tag::stands_for) else { return 0 };
            if touched.asked == 0 {
                return 0;
            }
            let address = space.place(line + u64::from(touched.asked.trailing_zeros()) * unit);
            let Some(slot) = objects.find(address) else { return 0 };
            let (base, bytes) = objects.block(slot);
            let (class, site) = (objects.class(slot), cells[cell as usize].1);
            fetches.push(LineFetch { base: space.place(base), bytes, class, site, offset: address - base });
            fetches.len() as u32
        });
    }

    /// Adds what was seen of how sites walk.
    fn walked(&mut self, walks: &[(SiteId, Walk)]) {
        for (site, walk) in walks {
            let place = site.0 as usize;
            if self.walks.len() <= place {
                self.walks.resize(place + 1, Walk::default());
            }
            self.walks[place].add(*walk);
        }
    }

    /// The counts.
    pub fn finish(self) -> Profile {
        Profiler::finish_all(vec![self])
    }

    /// The counts, and what counted them.
    pub fn finish_with_caches(self) -> (Profile, E) {
        let (part, caches) = self.part();
        (merge(vec![part]), caches)
    }

    /// The counts of the shards of one trace, at least one, as one profiler would give them.
    ///
    /// # Panics
    /// If there is none.
    pub fn finish_all(shards: Vec<Profiler<E>>) -> Profile {
        merge(shards.into_iter().map(|shard| shard.part().0).collect())
    }

    fn part(mut self) -> (Part, E) {
        self.join();
        (0..self.facts.len() as u32).for_each(|site| self.count_hits(SiteId(site)));
        let Profiler { caches, hits, deeper, .. } = &mut self;
        caches.finish(|tag, depth, times| count_late(hits, deeper, tag.index(), depth, times));
        let gaps = self.gaps.take().map(|gaps| gaps.finish(|cell| self.counts_of(cell)));
        let cells = (0u32..).zip(&self.cells).map(|(tag, &(thread, site, class))| {
            let counts = self.counts_of(tag);
            Cell { thread, site, class, counts, tag: Tag::new(tag) }
        });
        let cells = cells.collect();
        let part = Part {
            has_translations: self.caches.has_translations(),
            sites: self.sites,
            cells,
            classes: self.classes,
            paths: self.paths,
            write_backs: self.caches.counters().iter().map(|level| level.write_backs).collect(),
            gaps,
            walks: self.walks,
            stays: Stays::new(self.caches.stays(), self.fetches, self.caches.followed_levels()),
        };
        (part, self.caches)
    }

    /// Returns what a cell has done.
    fn counts_of(&self, cell: u32) -> Counts {
        let number = cell as usize;
        let is_write = self.facts[self.cells[number].1.0 as usize].is_write;
        let mut counts =
            Counts { other_cycles: self.caches.other_cycles(Tag::new(cell)), ..Counts::default() };
        counts.add(0, is_write, self.hits[number]);
        let deeper = &self.deeper[number];
        counts.first_touches = deeper[self.levels];
        counts.add(self.levels as u8, is_write, counts.first_touches);
        for (depth, &n) in (1u8..).zip(&deeper[..self.levels]) {
            counts.add(depth, is_write, n);
        }
        counts
    }

    /// Accesses are of that run from now on. Nothing waits to be settled.
    fn turn_to(&mut self, run: usize) {
        if let Some(mut gaps) = self.gaps.take_if(|gaps| gaps.ledger.is_elsewhere(run)) {
            gaps.ledger.turn_to(run, |cell| self.counts_of(cell));
            self.gaps = Some(gaps);
        }
    }

    #[inline(always)]
    pub(crate) fn access(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        access: &Access,
    ) {
        if access.bytes <= self.line_bytes {
            let cell = self.cell(origin, objects, stack, access);
            self.touch(origin, cell, access);
            return;
        }
        // A range may go over several objects. Each of its lines counts.
        for (address, bytes) in touch_lines(access.address, u64::from(access.bytes), self.line_bytes) {
            let access = Access { address, bytes, ..*access };
            let cell = self.cell(origin, objects, stack, &access);
            self.touch(origin, cell, &access);
        }
    }

    #[inline(always)]
    pub(crate) fn touch(&mut self, origin: Origin, cell: u32, access: &Access) {
        let SiteFacts { is_write, is_past_caches, .. } = self.facts[access.site.0 as usize];
        // Behind the last address there is nothing, least of all another process.
        let bytes = u64::from(access.bytes).min((!access.address).saturating_add(1)) as u32;
        let access = MemRef {
            address: origin.space.place(access.address),
            bytes,
            core: origin.core as u32,
            tag: Tag::new(cell),
            is_write,
        };
        if is_past_caches {
            self.store_past_caches(cell, access, &[Fragment { address: access.address, bytes, is_write }]);
            return;
        }
        match self.caches.access(access) {
            Some(depth) => self.count(cell, depth),
            None => {
                self.count(cell, 0);
                if self.caches.is_full() {
                    self.settle();
                }
            }
        }
        if let Some(GapWatch { bounds, ledger, .. }) = &mut self.gaps {
            ledger.touch(cell);
            if let Some(bounds) = bounds {
                bounds.access(access);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, cell: u32, depth: u8) {
        match depth {
            0 => {
                // Below zero in between, where another shard counts what missed here as hits of a loop.
                let hits = &mut self.hits[cell as usize];
                *hits = hits.wrapping_add(1);
            }
            _ => self.deeper[cell as usize][usize::from(depth) - 1] += 1,
        }
    }

    /// Has the accesses that wait answered, and counts them.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        let Profiler { caches, hits, deeper, cut, .. } = self;
        caches.settle(|tag, depth, times| match tag.stands_for() {
            Tagged::Place(cell) => count_late(hits, deeper, cell as usize, depth, times),
            Tagged::Part(number) => cut[number as usize].depth = depth,
        });
    }

    /// Returns whether all objects of a site are of one class.
    pub(crate) fn is_fixed(&self, site: SiteId) -> bool {
        self.facts[site.0 as usize].is_fixed
    }

    /// The cell of an access.
    #[inline(always)]
    pub(crate) fn cell(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        access: &Access,
    ) -> u32 {
        let facts = &self.facts[access.site.0 as usize];
        let class = match facts.is_fixed {
            true => Some(facts.class()),
            false => objects.class_at(access.address),
        };
        match class {
            Some(class) if facts.key == key(origin.thread, class) => facts.cell,
            _ => self.find_cell(origin.thread, class, stack, access),
        }
    }

    /// Finds the cell of an access, whose class may be known, and leaves it with the site.
    #[cold]
    #[inline(never)]
    fn find_cell(
        &mut self,
        thread: ThreadId,
        class: Option<ClassId>,
        stack: &ThreadStack,
        access: &Access,
    ) -> u32 {
        let site = &self.sites[access.site.0 as usize];
        let facts = &mut self.facts[access.site.0 as usize];
        let class = if site.flags & flag::STACK != 0 {
            let home = Home::Stack { function: site.function, variable: site.variable };
            facts.is_fixed = true;
            self.classes.of(home)
        } else if let Some(class) = class {
            class
        } else if let Some(function) = stack.frame_of(access.address) {
            let number = function.0 as usize;
            if self.frames.len() <= number {
                self.frames.resize(number + 1, None);
            }
            let home = Home::Stack { function, variable: None };
            *self.frames[number].get_or_insert_with(|| self.classes.of(home))
        } else {
            ClassId::UNKNOWN
        };
        if facts.key == key(thread, class) {
            return facts.cell;
        }
        let cell = (thread, access.site, class);
        let number = *self.index.entry(cell).or_insert_with(|| {
            let (classes, paths) = (&self.classes, &self.paths);
            self.caches.introduce(NewCell { thread, site: access.site, class, classes, paths });
            let number = self.cells.len() as u32;
            let home = classes.home(class).0;
            if let Some(pages) = self.named_pages.iter().rfind(|pages| pages.memory.has(home)) {
                self.caches.set_pages_of(Tag::new(number), pages.page_bytes);
            }
            self.cells.push(cell);
            self.hits.push(0);
            self.deeper.push([0; MAX_LEVELS + 1]);
            number
        });
        self.count_hits(access.site);
        let facts = &mut self.facts[access.site.0 as usize];
        if !facts.is_past_caches {
            facts.remember(thread, class, number);
        }
        number
    }
}

/// Counts accesses of a cell that were counted as hits when they came.
#[inline(always)]
fn count_late(hits: &mut [u64], deeper: &mut [[u64; MAX_LEVELS + 1]], cell: usize, depth: u8, times: u64) {
    if depth > 0 {
        // Another shard may have counted them.
        hits[cell] = hits[cell].wrapping_sub(times);
        deeper[cell][usize::from(depth) - 1] += times;
    }
}
