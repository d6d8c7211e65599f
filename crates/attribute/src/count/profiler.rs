//! Every access through the caches, then to its cell.

use std::sync::Arc;

use memlode_replay::{Piece, PieceEnd, Shards, Walk};
use memlode_simulate::{
    Bounds, Fetched, Fragment, Hierarchy, MemRef, Shape, Space, Tag, Tagged, touch_lines,
};
use memlode_trace::event::{Access, Batch, ProcessId, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{FunctionId, Site, SiteId, SiteTable};
use rustc_hash::FxHashMap;

use crate::count::cells::{CellCounts, key};
use crate::count::contexts::{Context, Contexts};
use crate::count::engine::{Engine, NewCell};
use crate::count::gaps::{GapWatch, counted};
use crate::count::loop_scratch::LoopScratch;
use crate::count::merge::{Part, merge};
use crate::count::past_caches::Combining;
use crate::count::past_log::PastLog;
use crate::count::route::{Direct, Route};
use crate::count::single_line::SiteFacts;
use crate::count::straddling::CutAccess;
use crate::counts::Counts;
use crate::objects::classes::{ClassId, Classes, Home};
use crate::objects::paths::Paths;
use crate::objects::stacks::ThreadStack;
use crate::objects::{Objects, WithinObject};
use crate::profile::{Cell, Profile};
use crate::residencies::{LineFetch, Residencies};
#[cfg(doc)]
use crate::sampled::sample::Gaps;
use crate::setup::NamedPages;

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
/// Batches of one stream must come in order; the interleaving of threads decides what a shared
/// cache sees. Thread *t* runs on core *t* modulo the number of cores, unless cores are given.
/// Processes have address spaces of their own: their lines differ even where their addresses do
/// not.
///
/// Over a gap in the trace, caches keep their contents, because the accesses in the gap are
/// unknown. Counts behind a gap are therefore estimates ("stitched" samples: Kessler, Hill and
/// Wood, "A comparison of trace-sampling techniques for multi-megabyte caches", IEEE Transactions
/// on Computers 43(6), 1994), and [`Gaps::bounds`] gives the bounds of the true number.
///
/// Several profilers may each have one shard of the same trace ([`Shards`]): see
/// [`Profiler::finish_all`].
pub struct Profiler<E = Hierarchy> {
    pub(crate) caches: E,
    /// Levels of cache.
    pub(crate) levels: usize,
    pub(crate) line_bytes: u32,
    /// The profiler's own shard, and the division into shards.
    pub(crate) shard: (usize, Shards),
    /// The cores that threads run on.
    cores: Vec<u32>,
    pub(crate) sites: KnownSites,
    pub(crate) memory: Memory,
    pub(crate) cells: CellCounts,
    pub(crate) contexts: Contexts,
    pub(crate) loops: LoopScratch,
    /// `None` while in use.
    pub(crate) processes: FxHashMap<ProcessId, Option<Objects>>,
    /// Keyed by thread and stream: a signal handler has a stack of its own. `None` while in use.
    pub(crate) stacks: FxHashMap<(ThreadId, u8), Option<ThreadStack>>,
    /// A log of what happens to blocks, if it is wanted.
    pub(crate) log: Option<PastLog>,
    /// Accesses that have lines of another shard, too, and their depths as far as they are known
    /// here.
    pub(crate) cut: Vec<CutAccess>,
    /// Lines that are being written past the caches.
    pub(crate) combining: Combining,
    pub(crate) gaps: Option<GapWatch>,
    /// Indexed by site: how it walked.
    walks: Vec<Walk>,
    /// Fetches of lines that are followed.
    fetches: Vec<LineFetch>,
}

/// The trace's sites, as far as they are known.
#[derive(Default)]
pub(crate) struct KnownSites {
    pub all: Vec<Site>,
    /// Indexed by site.
    pub facts: Vec<SiteFacts>,
    /// The latest names, if the trace has them.
    pub names: Option<Arc<SiteTable>>,
}

/// The classes of objects, in all processes.
#[derive(Default)]
pub(crate) struct Memory {
    pub classes: Classes,
    pub paths: Paths,
    /// Indexed by function: the class of its frames, once it was looked up.
    pub frames: Vec<Option<ClassId>>,
    named_pages: Vec<NamedPages>,
}

/// The source of the current accesses.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub thread: ThreadId,
    /// The context by which cells are distinguished.
    pub context: Context,
    pub process: ProcessId,
    pub core: usize,
    /// The process's place beside the addresses of others.
    pub space: Space,
}

/// The current stream of a thread, and what its events are resolved by.
pub(crate) struct Stream {
    pub origin: Origin,
    /// The objects of its process.
    pub objects: Objects,
    /// The functions that it is in.
    pub stack: ThreadStack,
}

impl<E: Engine> Profiler<E> {
    /// Counts nothing yet.
    pub fn new(sites: &[Site], caches: E) -> Profiler<E> {
        Profiler::of_shard(sites, caches, 0, Shards::one())
    }

    /// The same for one shard of a trace.
    pub fn of_shard(sites: &[Site], caches: E, shard: usize, shards: Shards) -> Profiler<E> {
        let first_level = Shape::of(caches.first_level());
        let mut profiler = Profiler {
            levels: caches.counters().len(),
            line_bytes: caches.first_level().line_bytes,
            shard: (shard, shards),
            cores: (0..caches.cores()).collect(),
            sites: KnownSites::default(),
            memory: Memory::default(),
            cells: CellCounts::default(),
            contexts: Contexts::default(),
            loops: LoopScratch::new(first_level),
            processes: FxHashMap::default(),
            stacks: FxHashMap::default(),
            log: None,
            cut: Vec::new(),
            combining: Combining::new(first_level),
            gaps: None,
            walks: Vec::new(),
            fetches: Vec::new(),
            caches,
        };
        profiler.know(sites);
        profiler
    }

    /// Adds sites; those that were known before come first.
    pub fn know(&mut self, sites: &[Site]) {
        let new = &sites[self.sites.all.len()..];
        self.sites.facts.extend(new.iter().map(SiteFacts::new));
        self.sites.all.extend_from_slice(new);
    }

    /// Learns all sites, and where functions are called: blocks allocated from two lines are then
    /// of two classes.
    pub fn know_names(&mut self, names: Arc<SiteTable>) {
        self.know(names.sites());
        self.sites.names = Some(names);
    }

    /// Thread *t* runs on the *t*-th of these cores, modulo their number, which is not 0.
    pub fn with_cores(self, cores: Vec<u32>) -> Profiler<E> {
        Profiler { cores, ..self }
    }

    /// Sets the named pages, and passes to the simulator which cells touch them.
    pub fn with_named_pages(mut self, named_pages: Vec<NamedPages>) -> Profiler<E> {
        self.memory.named_pages = named_pages;
        self
    }

    /// Distinguishes accesses on different call paths: each path has its own cells.
    pub fn by_path(mut self) -> Profiler<E> {
        self.contexts.has_paths = true;
        self
    }

    /// Prepares for a trace with gaps; to be called first. `certain` are the caches, still empty,
    /// if they are exact LRU ones: then misses behind a gap can be bounded.
    pub fn watch_gaps(&mut self, certain: Option<Hierarchy>) {
        let levels = self.caches.counters().len();
        self.gaps = Some(GapWatch::new(levels, certain.map(Bounds::new)));
    }

    /// Makes the globals of an image of `process` known.
    pub fn add_globals(&mut self, process: ProcessId, globals: impl IntoIterator<Item = LoadedGlobal>) {
        let objects = self.processes.entry(process).or_default().get_or_insert_default();
        for global in globals {
            let class = self.memory.classes.of(Home::Global { symbol: global.symbol, image: global.image });
            self.memory.classes.count(class, global.bytes);
            objects.insert_global(global.address, global.bytes, class);
        }
    }

    /// One chunk of one thread.
    pub fn observe(&mut self, batch: &Batch) {
        self.observe_piece(&Piece::whole(batch));
    }

    /// Simulates a piece of a chunk. The pieces of a chunk come in order; those of other streams
    /// may come between them.
    pub fn observe_piece(&mut self, piece: &Piece<'_>) {
        self.observe_piece_by(&mut Direct, piece);
    }

    /// The same by another route.
    #[inline(always)]
    pub(crate) fn observe_piece_by(&mut self, route: &mut impl Route<E>, piece: &Piece<'_>) {
        let batch = piece.batch;
        let (Some(process), Some(thread)) = (batch.process, batch.thread) else { return };
        // Taken out for the duration, so that the loop below borrows each part of `self` on its own.
        let key = (thread, batch.stream);
        let origin = Origin {
            thread,
            context: Context(thread.0),
            process,
            core: self.cores[thread.0 as usize % self.cores.len()] as usize,
            space: Space::of(process.0),
        };
        let mut stream = Stream {
            origin,
            objects: self.processes.get_mut(&process).and_then(Option::take).unwrap_or_default(),
            stack: self.stacks.get_mut(&key).and_then(Option::take).unwrap_or_default(),
        };
        let looks_itself = route.begins(piece);
        if piece.is_first() {
            stream.stack.begin(batch);
            if !looks_itself {
                self.walked(&piece.dealing.walks);
            }
        }
        self.follow_path(&mut stream);
        // While recording is off, there are no accesses.
        let gaps = self.gaps.as_mut().filter(|_| !batch.dormant);
        let run = gaps.map(|gaps| gaps.run_of(thread, piece));
        let run = run.map(|run| {
            self.begin_run(run);
            (run, counted(&self.caches))
        });
        for (events, stop) in piece.runs() {
            route.events(self, &mut stream, events);
            match stop {
                Some(PieceEnd::Loop(part)) => route.repeat(self, &mut stream, part, &part.strides()),
                Some(PieceEnd::Half(half)) => self.half(&mut stream, half, piece),
                None => {}
            }
        }
        self.label_residencies(&stream);
        self.settle();
        if looks_itself {
            let mut walks = Vec::new();
            route.ends(piece, &mut walks);
            self.walked(&walks);
        }
        if let (Some(gaps), Some((run, before))) = (&mut self.gaps, run) {
            gaps.add(run, counted(&self.caches), before);
        }
        self.processes.insert(process, Some(stream.objects));
        self.stacks.insert(key, Some(stream.stack));
        // Of a chunk's cuts the other shards are told when it is over.
        if piece.is_last() && !self.cut.is_empty() {
            self.join();
        }
    }

    /// Labels the followed lines that came meanwhile with their blocks.
    #[inline]
    pub(crate) fn label_residencies(&mut self, stream: &Stream) {
        let Profiler { caches, fetches, cells, line_bytes, .. } = self;
        let Stream { origin: Origin { space, .. }, objects, .. } = stream;
        let unit = u64::from(line_bytes.div_ceil(64));
        caches.label_residencies(|Fetched { line, touched, tag }| {
            let Some(Tagged::Place(cell)) = tag.map(Tag::stands_for) else { return 0 };
            if touched.asked == 0 {
                return 0;
            }
            let address = space.place(line + u64::from(touched.asked.trailing_zeros()) * unit);
            let Some(slot) = objects.find(address) else { return 0 };
            let (base, bytes) = objects.block(slot);
            let (class, site) = (objects.class(slot), cells.keys[cell as usize].1);
            fetches.push(LineFetch { base: space.place(base), bytes, class, site, offset: address - base });
            fetches.len() as u32
        });
    }

    /// Adds the walks of sites.
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

    /// Returns the counts, and the engine that made them.
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
        (0..self.sites.facts.len() as u32).for_each(|site| self.count_hits(SiteId(site)));
        let Profiler { caches, cells, .. } = &mut self;
        caches.finish(|tag, depth, times| cells.count_late(tag.index(), depth, times));
        let gaps = self.gaps.take().map(|gaps| gaps.finish(|cell| self.counts_of(cell)));
        let cells = (0u32..).zip(&self.cells.keys).map(|(tag, &(context, site, class))| {
            let (counts, (thread, path)) = (self.counts_of(tag), self.contexts.meaning(context));
            Cell { thread, site, class, path, counts, tag: Tag::new(tag) }
        });
        let cells = cells.collect();
        let part = Part {
            has_translations: self.caches.has_translations(),
            sites: self.sites.all,
            cells,
            classes: self.memory.classes,
            paths: self.memory.paths,
            write_backs: self.caches.counters().iter().map(|level| level.write_backs).collect(),
            gaps,
            walks: self.walks,
            residencies: Residencies::new(
                self.caches.residencies(),
                self.fetches,
                self.caches.followed_levels(),
            ),
        };
        (part, self.caches)
    }

    /// Returns the counts of a cell.
    fn counts_of(&self, cell: u32) -> Counts {
        let site = self.cells.keys[cell as usize].1;
        let is_write = self.sites.facts[site.0 as usize].is_write;
        let other_cycles = self.caches.other_cycles(Tag::new(cell));
        Counts { other_cycles, ..self.cells.counts(cell, is_write, self.levels) }
    }

    /// Accesses are of that run from now on. Nothing waits to be settled.
    fn begin_run(&mut self, run: usize) {
        if let Some(mut gaps) = self.gaps.take_if(|gaps| gaps.ledger.is_elsewhere(run)) {
            gaps.ledger.iteration_to(run, |cell| self.counts_of(cell));
            self.gaps = Some(gaps);
        }
    }

    #[inline(always)]
    pub(crate) fn access(&mut self, stream: &mut Stream, access: &Access) {
        if access.bytes <= self.line_bytes {
            self.tell_place(stream, access.address);
            let cell = self.cell(stream, access);
            self.touch(stream.origin, cell, access);
            return;
        }
        // A range may go over several objects. Each of its lines counts.
        for (address, bytes) in touch_lines(access.address, u64::from(access.bytes), self.line_bytes) {
            let access = Access { address, bytes, ..*access };
            self.tell_place(stream, address);
            let cell = self.cell(stream, &access);
            self.touch(stream.origin, cell, &access);
        }
    }

    /// Reports to the caches where in its object the next access lies, if they take places.
    #[inline(always)]
    fn tell_place(&mut self, stream: &Stream, address: u64) {
        if self.caches.takes_places() {
            let place = stream.objects.find(address).map(|slot| {
                let (base, bytes) = stream.objects.block(slot);
                WithinObject { offset: address.wrapping_sub(base), bytes, block: stream.objects.order(slot) }
            });
            self.caches.at(place);
        }
    }

    #[inline(always)]
    pub(crate) fn touch(&mut self, origin: Origin, cell: u32, access: &Access) {
        let SiteFacts { is_write, is_past_caches, .. } = self.sites.facts[access.site.0 as usize];
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
            Some(depth) => self.cells.count(cell, depth),
            None => {
                self.cells.count(cell, 0);
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

    /// Counts the accesses that wait, at the level that serves them.
    #[inline(never)]
    pub(crate) fn settle(&mut self) {
        let Profiler { caches, cells, cut, .. } = self;
        caches.settle(|tag, depth, times| match tag.stands_for() {
            Tagged::Place(cell) => cells.count_late(cell as usize, depth, times),
            Tagged::Part(number) => cut[number as usize].depth = depth,
        });
    }

    /// Returns whether all objects of a site are of one class.
    pub(crate) fn is_fixed(&self, site: SiteId) -> bool {
        self.sites.facts[site.0 as usize].is_fixed
    }

    /// Returns the cell of an access.
    #[inline(always)]
    pub(crate) fn cell(&mut self, stream: &mut Stream, access: &Access) -> u32 {
        let facts = &self.sites.facts[access.site.0 as usize];
        let class = match facts.is_fixed {
            true => Some(facts.class()),
            false => stream.objects.class_at(access.address),
        };
        match class {
            Some(class) => self.cell_of(stream, class, access),
            None => self.find_cell(stream.origin.context, None, &stream.stack, access),
        }
    }

    /// The cell of an access to an object of a class.
    pub(crate) fn cell_of(&mut self, stream: &Stream, class: ClassId, access: &Access) -> u32 {
        let facts = &self.sites.facts[access.site.0 as usize];
        match facts.key == key(stream.origin.context, class) {
            true => facts.cell,
            false => self.find_cell(stream.origin.context, Some(class), &stream.stack, access),
        }
    }

    /// Finds the cell of an access, whose class may be known, and remembers it for the site.
    #[cold]
    #[inline(never)]
    fn find_cell(
        &mut self,
        context: Context,
        class: Option<ClassId>,
        stack: &ThreadStack,
        access: &Access,
    ) -> u32 {
        let site = &self.sites.all[access.site.0 as usize];
        let facts = &mut self.sites.facts[access.site.0 as usize];
        let class = if site.flags & flag::STACK != 0 {
            facts.is_fixed = true;
            self.memory.classes.of(Home::Stack { function: site.function, variable: site.variable })
        } else if let Some(class) = class {
            class
        } else if let Some(function) = stack.frame_of(access.address) {
            self.memory.class_of_frames(function)
        } else {
            ClassId::UNKNOWN
        };
        if facts.key == key(context, class) {
            return facts.cell;
        }
        let cell = (context, access.site, class);
        let known = self.cells.index.get(&cell).copied();
        let number = known.unwrap_or_else(|| self.add_cell(cell));
        self.count_hits(access.site);
        let facts = &mut self.sites.facts[access.site.0 as usize];
        if !facts.is_past_caches {
            facts.remember(context, class, number);
        }
        number
    }

    /// Adds a cell, and introduces it to the simulator.
    fn add_cell(&mut self, cell: (Context, SiteId, ClassId)) -> u32 {
        let number = self.cells.add(cell);
        let ((context, site, class), Memory { classes, paths, named_pages, .. }) = (cell, &self.memory);
        let (thread, path) = self.contexts.meaning(context);
        self.caches.introduce(NewCell { thread, path, site, class, classes, paths });
        let home = classes.home(class).0;
        if let Some(pages) = named_pages.iter().rfind(|pages| pages.memory.has(home)) {
            self.caches.set_pages_of(Tag::new(number), pages.page_bytes);
        }
        number
    }
}

impl Memory {
    /// Returns the class of a function's frames.
    pub(crate) fn class_of_frames(&mut self, function: FunctionId) -> ClassId {
        let number = function.0 as usize;
        if self.frames.len() <= number {
            self.frames.resize(number + 1, None);
        }
        let home = Home::Stack { function, variable: None };
        *self.frames[number].get_or_insert_with(|| self.classes.of(home))
    }
}
