//! The hot loop: every access through the caches, then to its cell.

use memlode_simulate::{Bounds, Hierarchy, LevelCounters, touch_lines};
use memlode_trace::Piece;
use memlode_trace::event::{Access, Batch, Mark, ProcessId, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{Kind, Site, SiteId};
use rustc_hash::FxHashMap;

use crate::classes::{Class, ClassId, Classes, Home};
use crate::counts::Counts;
use crate::objects::{Objects, Slot};
use crate::paths::Paths;
use crate::sample::{Gaps, RunCounts, Runs};
use crate::stacks::ThreadStack;

/// The accesses of one thread, at one site, to objects of one class.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// What was counted.
    pub counts: Counts,
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
}

/// A global variable of a loaded image, at its run-time address.
#[derive(Clone, Debug)]
pub struct Global {
    /// Run-time address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Symbol, as in the image.
    pub symbol: String,
    /// File name of the image.
    pub image: String,
}

/// What the loop needs of a site, in one place.
#[derive(Clone, Copy)]
struct SiteFacts {
    is_write: bool,
    /// Where the object is known to be without looking at the address.
    on_stack: bool,
}

/// The cell that a site used last, and when it may be used again without looking.
#[derive(Clone, Copy)]
struct Shortcut {
    process: u32,
    thread: ThreadId,
    slot: Slot,
    /// The class that the cell is for: the slot may have gone to a block of another one.
    class: ClassId,
    cell: u32,
}

/// Feeds batches through a cache hierarchy and counts by thread, site and object class.
///
/// Batches of one stream must come in order; how threads are interleaved decides what a shared cache sees.
/// Thread *t* runs on core *t* modulo the number of cores. Processes have address spaces of their own: their
/// lines differ even where their addresses do not.
///
/// Over a gap in the trace caches keep what they held: of what the program used in the meantime nothing is known. Counts
/// behind a gap are therefore estimates ("stitched" samples: Kessler, Hill and Wood, "A comparison of trace-sampling
/// techniques for multi-megabyte caches", IEEE Transactions on Computers 43(6), 1994), and [`Gaps::bounds`] says between
/// which numbers the truth lies.
pub struct Profiler<'t> {
    sites: &'t [Site],
    facts: Vec<SiteFacts>,
    caches: Hierarchy,
    line_bytes: u32,
    classes: Classes,
    paths: Paths,
    /// `None` while in use.
    processes: FxHashMap<ProcessId, Option<Objects>>,
    /// By thread and stream: a signal handler has a stack of its own. `None` while in use.
    stacks: FxHashMap<(ThreadId, u8), Option<ThreadStack>>,
    shortcuts: Vec<Shortcut>,
    cells: Vec<Cell>,
    index: FxHashMap<(ThreadId, SiteId, ClassId), u32>,
    gaps: Option<GapWatch>,
}

/// What is kept of a trace with gaps besides.
struct GapWatch {
    numbers: Runs,
    /// The run that each stream's chunk at hand belongs to.
    at_hand: FxHashMap<(ThreadId, u8), usize>,
    runs: Vec<RunCounts>,
    bounds: Bounds,
}

impl<'t> Profiler<'t> {
    /// Counts nothing yet.
    pub fn new(sites: &'t [Site], caches: Hierarchy) -> Profiler<'t> {
        let facts = |site: &Site| SiteFacts {
            is_write: matches!(site.kind, Kind::Store | Kind::Update),
            on_stack: site.flags & flag::STACK != 0,
        };
        let never = Shortcut {
            process: u32::MAX,
            thread: ThreadId(u32::MAX),
            slot: Slot::NOWHERE,
            class: ClassId::UNKNOWN,
            cell: 0,
        };
        Profiler {
            sites,
            facts: sites.iter().map(facts).collect(),
            line_bytes: caches.line_bytes(),
            caches,
            classes: Classes::default(),
            paths: Paths::default(),
            processes: FxHashMap::default(),
            stacks: FxHashMap::default(),
            shortcuts: vec![never; sites.len()],
            cells: Vec::new(),
            index: FxHashMap::default(),
            gaps: None,
        }
    }

    /// To be called first if the trace has gaps.
    pub fn watch_gaps(&mut self) {
        let bounds = Bounds::new(self.caches.clone());
        self.gaps = Some(GapWatch {
            numbers: Runs::default(),
            at_hand: FxHashMap::default(),
            runs: Vec::new(),
            bounds,
        });
    }

    /// Makes the globals of an image of `process` known.
    pub fn add_globals(&mut self, process: ProcessId, globals: impl IntoIterator<Item = Global>) {
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
        let batch = piece.batch;
        let (Some(process), Some(thread)) = (batch.process, batch.thread) else { return };
        // Taken out for the duration, so that the loop below borrows each part of `self` on its own.
        let mut objects = self.processes.get_mut(&process).and_then(Option::take).unwrap_or_default();
        let stack = (thread, batch.stream);
        let mut stack_here = self.stacks.get_mut(&stack).and_then(Option::take).unwrap_or_default();
        if piece.is_first() {
            stack_here.begin(batch, &mut self.paths);
        }
        let before = self.gaps.is_some().then(|| counted(&self.caches));
        let run = self.gaps.as_mut().map_or(0, |gaps| gaps.run_of(thread, piece));
        let accesses = piece.accesses();
        let mut done = 0;
        for (at, mark) in piece.marks() {
            let at = at.max(done);
            self.accesses(process, thread, &objects, &stack_here, &accesses[done..at]);
            done = at;
            self.mark(mark, &mut objects, &mut stack_here);
        }
        self.accesses(process, thread, &objects, &stack_here, &accesses[done..]);
        if let (Some(gaps), Some(before)) = (&mut self.gaps, before) {
            gaps.runs[run].add(counted(&self.caches), before);
        }
        self.processes.insert(process, Some(objects));
        self.stacks.insert(stack, Some(stack_here));
    }

    /// The counts.
    pub fn finish(self) -> Profile {
        let uses = self
            .cells
            .iter()
            .map(|cell| (cell.class, self.sites[cell.site.0 as usize].ty, cell.counts.accesses()));
        Profile {
            classes: self.classes.into_vec(uses),
            cells: self.cells,
            paths: self.paths,
            levels: self.caches.counters(),
            gaps: self.gaps.map(|gaps| Gaps { runs: gaps.runs, bounds: gaps.bounds.misses() }),
        }
    }

    fn accesses(
        &mut self,
        process: ProcessId,
        thread: ThreadId,
        objects: &Objects,
        stack: &ThreadStack,
        accesses: &[Access],
    ) {
        let core = thread.0 as usize % self.caches.cores() as usize;
        // User addresses have 47 or 48 bits; the process takes the ones above.
        let space = u64::from(process.0) << 48;
        let line_bytes = u64::from(self.line_bytes);
        for access in accesses {
            let site = access.site.0 as usize;
            let is_write = self.facts[site].is_write;
            let shortcut = self.shortcuts[site];
            let known = shortcut.thread == thread
                && shortcut.process == process.0
                && (self.facts[site].on_stack
                    || objects.holds(shortcut.slot, shortcut.class, access.address));
            let cell = if known { shortcut.cell } else { self.cell(process, thread, objects, stack, access) };
            let counts = &mut self.cells[cell as usize].counts;
            let address = access.address ^ space;
            let mut touch = |address, bytes| {
                counts.add(self.caches.access(core, address, bytes, is_write), is_write);
                if let Some(gaps) = &mut self.gaps {
                    gaps.bounds.access(core, address, bytes, is_write);
                }
            };
            if u64::from(access.bytes) <= line_bytes {
                touch(address, access.bytes);
            } else {
                for (address, bytes) in touch_lines(address, u64::from(access.bytes), self.line_bytes) {
                    touch(address, bytes);
                }
            }
        }
    }

    /// Finds the cell of an access and leaves the way to it in the site's shortcut.
    #[cold]
    #[inline(never)]
    fn cell(
        &mut self,
        process: ProcessId,
        thread: ThreadId,
        objects: &Objects,
        stack: &ThreadStack,
        access: &Access,
    ) -> u32 {
        let site = &self.sites[access.site.0 as usize];
        let (slot, class) = if site.flags & flag::STACK != 0 {
            let home = Home::Stack { function: site.function, variable: site.variable };
            (Slot::NOWHERE, self.classes.of(home))
        } else if let Some(slot) = objects.find(access.address) {
            (slot, objects.class(slot))
        } else if let Some(function) = stack.frame_of(access.address) {
            (Slot::NOWHERE, self.classes.of(Home::Stack { function, variable: None }))
        } else {
            (Slot::NOWHERE, ClassId::UNKNOWN)
        };
        let key = (thread, access.site, class);
        let cell = *self.index.entry(key).or_insert_with(|| {
            self.cells.push(Cell { thread, site: access.site, class, counts: Counts::default() });
            (self.cells.len() - 1) as u32
        });
        self.shortcuts[access.site.0 as usize] = Shortcut { process: process.0, thread, slot, class, cell };
        cell
    }

    fn mark(&mut self, mark: &Mark, objects: &mut Objects, stack: &mut ThreadStack) {
        match *mark {
            Mark::Enter { function, frame } => stack.enter(function, frame, &mut self.paths),
            Mark::Exit { function } => stack.exit(function),
            Mark::Resume { function, frame } => stack.resume(function, frame, &mut self.paths),
            Mark::Alloc { site, base, count, element_bytes } => {
                self.alloc(site, base, count.saturating_mul(element_bytes), objects, stack);
            }
            Mark::Realloc { site, base, bytes, old } => {
                if old != 0 && (base != 0 || bytes == 0) {
                    objects.free(old);
                }
                self.alloc(site, base, bytes, objects, stack);
            }
            Mark::Free { base, .. } => {
                objects.free(base);
            }
            Mark::Unmap { base, bytes, .. } => objects.unmap(base, bytes),
            Mark::Stamp { .. } => {}
        }
    }

    fn alloc(&mut self, site: SiteId, base: u64, bytes: u64, objects: &mut Objects, stack: &ThreadStack) {
        if base == 0 {
            return; // The allocator had nothing to give.
        }
        let class = self.classes.of_heap(site, stack.path(), self.sites[site.0 as usize].ty);
        self.classes.count(class, bytes);
        objects.insert(base, bytes, class);
    }
}

impl GapWatch {
    /// The run that a piece belongs to.
    fn run_of(&mut self, thread: ThreadId, piece: &Piece<'_>) -> usize {
        let Batch { stream, stamps, after_gap, .. } = *piece.batch;
        if !piece.is_first() {
            return self.at_hand.get(&(thread, stream)).copied().unwrap_or(0);
        }
        let (run, begins) = self.numbers.next(thread, stream, stamps, after_gap);
        if begins {
            self.bounds.forget();
        }
        self.runs.resize(self.runs.len().max(run + 1), RunCounts::default());
        self.at_hand.insert((thread, stream), run);
        run
    }
}

/// Accesses and misses so far.
fn counted(caches: &Hierarchy) -> RunCounts {
    let levels = caches.counters();
    let accesses = levels.first().map_or(0, |level| level.reads + level.writes);
    let mut counts = RunCounts { accesses, ..RunCounts::default() };
    for (sum, level) in counts.misses.iter_mut().zip(levels) {
        *sum = level.read_misses + level.write_misses;
    }
    counts
}
