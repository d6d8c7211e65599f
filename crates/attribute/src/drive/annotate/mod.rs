//! Every access with its result, in replay order.
//!
//! ```text
//!   thread of its own                                     the caller
//!   Source ─► Profiler ──► Recorder ──► Events ─(bounded)─► Annotations: next(), and what the numbers refer to
//! ```
//! A batch consists of columns of numbers. All accesses of a thread at a site to objects of one
//! class, a *cell*, have the same names. A row holds the number of its cell, and a cell is
//! described once. So names cost nothing per row, and a caller who needs them looks each up once.

mod coming;
mod no_caches;
mod paths;
mod recorder;
mod resumed;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use memlode_replay::{Piece, Replay, ReplayStep, Replayed};
use memlode_simulate::{Cause, Translation};
use memlode_trace::KeptTables;
use memlode_trace::event::{ProcessId, SyncKind, ThreadId, Values};
use memlode_trace::sites::{FunctionId, LocationId, SiteId, TypeId};

pub use self::paths::PathStep;
use crate::count::profiler::Profiler;
use crate::drive::annotate::no_caches::NoCaches;
use crate::drive::annotate::recorder::{Answers, Recorder};
use crate::drive::annotate::resumed::Resumed;
use crate::drive::simulation::{Known, Simulation};
use crate::drive::simulators::{ImpossibleMachine, caches, detailed};
use crate::drive::source::Source;
use crate::drive::times::Times;
pub use crate::objects::WithinObject;
use crate::objects::classes::Home;
use crate::setup::Setup;

/// The most rows of a batch, and the most blocks.
pub const ROWS: usize = 1 << 16;

/// Batches that may wait for the caller.
const WAITING: usize = 3;

/// Which accesses are returned, and which of their facts. All accesses are simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Finds the causes of misses, too, with this setup of the machine.
    pub causes: Option<Setup>,
    /// Accesses of this thread only.
    pub thread: Option<ThreadId>,
    /// Accesses that these levels served only: bit *i* is level *i*, innermost first, memory last.
    pub levels: u32,
    /// The most accesses that are returned.
    pub limit: u64,
    /// Blocks of memory that begin and end, too. A batch may then have these alone, and no rows.
    pub blocks: bool,
    /// Facts about each access besides.
    pub extras: Extras,
    /// Simulate no caches: the first level serves every access. Not with [`Options::causes`].
    pub without_caches: bool,
    /// Only accesses with these numbers ([`AnnotatedAccesses::sequence`]) and the blocks between
    /// them are handed over. The replay ends behind them.
    pub stretch: Range<u64>,
    /// Without caches: tables of what comes before a stretch are read from here, and those that are
    /// missing are kept here.
    pub tables: Option<Arc<dyn KeptTables>>,
}

/// Facts about accesses that take time to find, and are returned on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The call path of each access ([`AnnotatedAccesses::path`]).
    pub paths: bool,
    /// The place of each access in its object ([`AnnotatedAccesses::place`]).
    pub places: bool,
    /// Operations that order threads ([`AnnotatedAccesses::syncs`]).
    pub syncs: bool,
    /// Values that accesses loaded and stored, if the program was built to record them
    /// ([`AnnotatedAccesses::values`]).
    pub values: bool,
    /// Bytes that go to and from memory ([`AnnotatedAccesses::traffic`]).
    pub traffic: bool,
}

impl Extras {
    /// Returns the facts of either.
    pub fn and(self, other: Extras) -> Extras {
        Extras {
            paths: self.paths || other.paths,
            places: self.places || other.places,
            syncs: self.syncs || other.syncs,
            values: self.values || other.values,
            traffic: self.traffic || other.traffic,
        }
    }
}

impl Default for Options {
    /// All accesses, with the level that served them, and no blocks.
    fn default() -> Options {
        Options {
            causes: None,
            thread: None,
            levels: u32::MAX,
            limit: u64::MAX,
            blocks: false,
            extras: Extras::default(),
            without_caches: false,
            stretch: 0..u64::MAX,
            tables: None,
        }
    }
}

/// Accesses, one a row. All columns are equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotatedAccesses {
    /// Number of the access among all of the trace in replay order, from 0. A range of several
    /// lines is an access for each.
    pub sequence: Vec<u64>,
    /// Time stamp counter: the latest stamp of the access's stream up to it (SPEC §4.4).
    pub stamp: Vec<u64>,
    /// First byte.
    pub address: Vec<u64>,
    /// Bytes touched.
    pub bytes: Vec<u32>,
    /// Index into [`Cells::cells`]: the thread, the site and the object.
    pub cell: Vec<u32>,
    /// The level that served it, innermost 0; memory is the number of levels.
    pub level: Vec<u8>,
    /// The call path of its thread, if requested: 0 if it is unknown, or a number of
    /// [`Cells::paths`].
    pub path: Vec<u32>,
    /// Why it missed, if requested.
    pub why: Vec<Why>,
    /// Its place in its object, if requested.
    pub place: Vec<WithinObject>,
    /// Its bytes between the caches and memory, if requested.
    pub traffic: Vec<Traffic>,
    /// Operations that ordered threads meanwhile, in order, if requested; not a column.
    pub syncs: Vec<SyncEvent>,
    /// Blocks of memory that began or ended meanwhile, in order, if requested; not a column.
    pub blocks: Vec<BlockEvent>,
    /// Values that rows loaded and stored, by row, if requested; not a column. Not every row has
    /// one.
    pub values: Values,
}

/// Bytes that an access moved between the caches and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of the line that memory served. An access that straddles two lines counts one.
    pub fetched: u32,
    /// Bytes of written lines that left the last level for it, or that it stored past the caches.
    pub written: u32,
}

/// A block of memory that begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// The row before which it happens.
    pub row: u32,
    /// Its process.
    pub process: ProcessId,
    /// First byte.
    pub address: u64,
    /// Its beginning or its end.
    pub life: Life,
}

/// An operation that orders threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncEvent {
    /// The row before which it stands.
    pub row: u32,
    /// Its thread.
    pub thread: ThreadId,
    /// Its kind.
    pub kind: SyncKind,
    /// The address of the object that orders threads, which each process has for itself.
    pub address: u64,
    /// The class of that object: index into [`Cells::objects`].
    pub object: u32,
}

/// The beginning or the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The object begins: the old values of its bytes are gone.
    Begins {
        /// Size.
        bytes: u64,
        /// Index into [`Cells::objects`].
        object: u32,
    },
    /// It ends.
    Ends,
}

/// Why an access missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// Indexed by level; `None` if the level served the access or was not looked up.
    pub causes: [Option<Cause>; memlode_simulate::MAX_LEVELS],
    /// The level that had the translation.
    pub translation: Translation,
    /// A load that agrees in the low 12 bits with a store in flight to another address.
    pub alias: bool,
    /// Another NUMA node's memory served it.
    pub remote: bool,
}

impl Why {
    /// The answer for a store past the caches: no cache was looked up, and its translation is not
    /// simulated.
    const PAST_CACHES: Why = Why {
        causes: [None; memlode_simulate::MAX_LEVELS],
        translation: Translation::First,
        alias: false,
        remote: false,
    };
}

impl AnnotatedAccesses {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.address.len()
    }

    /// Empties it, with room for a batch.
    fn make_room(&mut self, causes: bool, extras: Extras) {
        fn empty<T>(column: &mut Vec<T>, room: usize) {
            column.clear();
            column.reserve_exact(room);
        }
        let AnnotatedAccesses {
            sequence,
            stamp,
            address,
            bytes,
            cell,
            level,
            path,
            place,
            why,
            traffic,
            blocks,
            syncs,
            values,
        } = self;
        blocks.clear();
        syncs.clear();
        values.clear();
        empty(sequence, ROWS);
        empty(stamp, ROWS);
        empty(address, ROWS);
        empty(bytes, ROWS);
        empty(cell, ROWS);
        empty(level, ROWS);
        empty(path, if extras.paths { ROWS } else { 0 });
        empty(place, if extras.places { ROWS } else { 0 });
        empty(why, if causes { ROWS } else { 0 });
        empty(traffic, if extras.traffic { ROWS } else { 0 });
    }
}

/// The accesses of one thread, at one site, to objects of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventCell {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// Index into [`Cells::objects`].
    pub object: u32,
}

/// A class of objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventObject {
    /// The home of its objects. The path of a heap object is spelled out in `path`; in here it is
    /// the root, as each replay numbers paths anew.
    pub home: Home,
    /// Functions on the stack at the allocation, the innermost first, and where the next one called
    /// each.
    pub path: Vec<(FunctionId, Option<LocationId>)>,
    /// Element type, if the allocation names one.
    pub element: Option<TypeId>,
}

/// The tables that the numbers in [`AnnotatedAccesses`] refer to. They grow as batches are taken,
/// and only at the end.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The cells, which [`AnnotatedAccesses::cell`] numbers.
    pub cells: Vec<EventCell>,
    /// The objects, which [`EventCell::object`] numbers.
    pub objects: Vec<EventObject>,
    /// The call paths, which [`AnnotatedAccesses::path`] numbers from 1: each comes after its
    /// callers' paths.
    pub paths: Vec<PathStep>,
}

/// A message from the simulating thread.
struct Sent {
    events: AnnotatedAccesses,
    /// Cells and objects that no batch before this one had.
    news: Cells,
}

/// A trace being replayed on a thread of its own, batch by batch. Dropping it ends the replay.
pub struct Annotations {
    batches: Option<Receiver<Sent>>,
    spares: Sender<AnnotatedAccesses>,
    worker: Option<JoinHandle<Replayed>>,
    chunks: Arc<AtomicUsize>,
    cells: Cells,
}

/// The result of waiting for a batch.
pub enum Next {
    /// A batch.
    Batch(Box<AnnotatedAccesses>),
    /// There is no batch yet.
    Later,
    /// There are no more batches.
    End,
}

impl Simulation<'_> {
    /// Simulates each access, on a thread beside the caller, and decodes on this many more.
    ///
    /// The simulation is that of [`Simulation::count`], or with [`Options::causes`] that of
    /// [`Simulation::causes`], to the digit.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn rows(self, options: Options) -> Result<Annotations, ImpossibleMachine> {
        let Simulation { source, machine, threads: workers, .. } = self;
        match &options.causes {
            None if options.without_caches => {
                let none = NoCaches::of(&caches(machine, machine.cores)?);
                Ok(start(source.clone(), none, None, options, workers))
            }
            None => Ok(start(source.clone(), caches(machine, machine.cores)?, None, options, workers)),
            Some(setup) => {
                let threads = self.most_threads();
                let cores = Some(setup.cores(machine, threads));
                Ok(start(source.clone(), detailed(machine, setup, threads)?, cores, options, workers))
            }
        }
    }
}

fn start<S: Answers + Send + 'static>(
    source: Source,
    simulator: S,
    cores: Option<Vec<u32>>,
    options: Options,
    workers: usize,
) -> Annotations {
    let (sender, batches) = bounded(WAITING);
    let (spares, spare) = bounded(WAITING + 1);
    let chunks = Arc::new(AtomicUsize::new(0));
    let done = chunks.clone();
    let worker = std::thread::spawn(move || {
        let named = options.causes.as_ref().map_or(Vec::new(), |setup| setup.named.clone());
        let recorder = Recorder::new(simulator, &options, sender, spare);
        let mut profiler = Profiler::new(&[], recorder).with_named_pages(named);
        if options.extras.paths {
            profiler = profiler.by_path();
        }
        if let Some(cores) = cores {
            profiler = profiler.with_cores(cores);
        }
        let mut known = Known::default();
        let mut times = Times::default();
        if let Source::Stored(_) = source {
            // Blocks are looked for among globals.
            known.follow(&source, &mut profiler);
        }
        let mut follow = |profiler: &mut Profiler<Recorder<S>>, times: &mut Times, piece: &Piece<'_>| {
            known.follow(&source, profiler);
            let batch = piece.batch;
            let (Some(thread), Some(process)) = (batch.thread, batch.process) else {
                return ControlFlow::Continue(());
            };
            let Some(time) = times.at(piece) else { return ControlFlow::Continue(()) };
            profiler.caches.begin(thread, process, *time);
            if options.without_caches && profiler.caches.passes(profiler.count_of(piece)) {
                profiler.pass(piece);
            } else {
                profiler.caches.expect_values(piece);
                profiler.observe_piece(piece);
            }
            *time = profiler.caches.time();
            done.fetch_add(usize::from(piece.is_last()), Ordering::Relaxed);
            if profiler.caches.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let replayed = match &source {
            Source::Stored(trace) if options.without_caches => {
                let mut resumed = Resumed::of(options.tables, trace, profiler.line_bytes);
                let from = resumed.begin(trace, options.stretch.start, &mut profiler, &mut times);
                if let Some((point, sequence)) = &from {
                    profiler.caches.go_to(*sequence);
                    done.store(point.taken(), Ordering::Relaxed);
                }
                let (from, points) = (from.map(|(point, _)| point), resumed.points().to_vec());
                trace.resume(workers, from.as_ref(), &points, |step| match step {
                    ReplayStep::Piece(piece) => follow(&mut profiler, &mut times, piece),
                    ReplayStep::Point(point) => {
                        let sequence = profiler.caches.sequence();
                        resumed.keep(point, sequence, &mut profiler, &times);
                        ControlFlow::Continue(())
                    }
                })
            }
            _ => source.interleave(workers, |piece| follow(&mut profiler, &mut times, piece)),
        };
        profiler.caches.send();
        replayed
    });
    Annotations { batches: Some(batches), spares, worker: Some(worker), chunks, cells: Cells::default() }
}

impl Annotations {
    /// Returns the cells of the batches taken so far.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Chunks of the trace that have been simulated.
    pub fn chunks(&self) -> usize {
        self.chunks.load(Ordering::Relaxed)
    }

    /// The next batch, once it is there; `None` at the end. It has rows, or blocks if these were
    /// requested.
    pub fn next_batch(&mut self) -> Option<AnnotatedAccesses> {
        let sent = self.batches.as_ref()?.recv().ok()?;
        Some(self.take(sent))
    }

    /// The same, but waits no longer than `time`.
    pub fn next_within(&mut self, time: Duration) -> Next {
        let Some(batches) = &self.batches else { return Next::End };
        match batches.recv_timeout(time) {
            Ok(sent) => Next::Batch(Box::new(self.take(sent))),
            Err(RecvTimeoutError::Timeout) => Next::Later,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Takes back a batch, to reuse its memory.
    pub fn give_back(&self, events: AnnotatedAccesses) {
        // Enough are there, or nobody needs one any more.
        let _ = self.spares.try_send(events);
    }

    fn take(&mut self, sent: Sent) -> AnnotatedAccesses {
        self.cells.cells.extend(sent.news.cells);
        self.cells.objects.extend(sent.news.objects);
        self.cells.paths.extend(sent.news.paths);
        sent.events
    }

    /// Ends the replay, and returns its result as far as it went.
    pub fn finish(mut self) -> Replayed {
        self.stop().unwrap_or_default()
    }

    fn stop(&mut self) -> Option<Replayed> {
        // The worker notices that nobody takes its batches.
        self.batches = None;
        match self.worker.take()?.join() {
            Ok(replayed) => Some(replayed),
            Err(_) if std::thread::panicking() => None,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Annotations {
    fn drop(&mut self) {
        self.stop();
    }
}
