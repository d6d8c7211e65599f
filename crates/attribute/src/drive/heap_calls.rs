//! The allocation calls of a trace, in replay order: the program's requests to its allocators.
//!
//! ```text
//!   marks of all threads ─► call path ─► HeapCall: made, resized, ended
//! ```
//! A block is numbered as [`ObjectRef::allocation`](crate::ObjectRef) numbers it. An allocator of
//! the program may return parts of a block that another one made: such a block records where in
//! that one it lies.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use memlode_replay::{Excerpt, Piece, PieceEnd, Replay, Replayed, Shards};
use memlode_trace::Trace;
use memlode_trace::event::{Mark, ProcessId, ThreadId};
use memlode_trace::sites::SiteId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::drive::simulation::watched;
use crate::objects::classes::Home;
use crate::objects::paths::{PathId, Paths};
use crate::objects::stacks::ThreadStack;

/// A call of an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapCall {
    /// The process that has it in memory.
    pub process: ProcessId,
    /// The thread that called.
    pub thread: ThreadId,
    /// The block that came to life.
    pub made: Option<MadeBlock>,
    /// The number of the block that ended: with one that was made, it was resized.
    pub ended: Option<u64>,
}

/// A block that came to life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeBlock {
    /// Its number among those of the process, from 0.
    pub number: u64,
    /// Address of its first byte.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of an element, if the allocator received a number of elements.
    pub array_of: Option<u64>,
    /// Its home, as in a profile's classes.
    pub home: Home,
    /// The block of which it is a part, and the offset in that block.
    pub inside: Option<(u64, u64)>,
}

/// Returns the allocation calls of a complete trace, in replay order, up to a number of chunks.
/// `workers` threads help to decode.
pub fn heap_calls(
    trace: &Trace,
    chunks: usize,
    workers: usize,
    mut each: impl FnMut(HeapCall) -> ControlFlow<()> + Send,
) -> Replayed {
    let mut calls = Calls::new(trace);
    let mut done = 0;
    let consume = |piece: &Piece<'_>| {
        calls.piece(piece, &mut each)?;
        watched(piece, &mut done, &mut |done| match done >= chunks {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    trace.interleave_shards(&Shards::one(), workers, vec![consume])
}

/// Returns the allocation calls up to the end of an excerpt of a trace, in replay order.
pub fn heap_calls_in(trace: &Trace, excerpt: &Excerpt) -> Vec<HeapCall> {
    let mut calls = CallCollector::new(trace, usize::MAX);
    excerpt.pieces().for_each(|piece| calls.piece(&piece));
    calls.found().unwrap_or_default()
}

/// Returns the blocks of each process that accesses of some sites use, by number, in the order of
/// their first use. It reads up to a number of chunks, which `workers` threads help to decode.
pub fn first_uses(
    trace: &Trace,
    chunks: usize,
    workers: usize,
    wanted: impl Fn(SiteId) -> bool + Sync,
) -> FxHashMap<ProcessId, Vec<u64>> {
    let mut calls = Calls::new(trace);
    let mut used: FxHashMap<ProcessId, Uses> = FxHashMap::default();
    let mut done = 0;
    let consume = |piece: &Piece<'_>| {
        let Some(process) = piece.batch.process else { return ControlFlow::Continue(()) };
        for (events, end) in piece.runs() {
            let mut marks = events.marks.iter().peekable();
            for (number, access) in (events.before..).zip(events.accesses) {
                while let Some((_, mark)) = marks.next_if(|(at, _)| *at as usize <= number) {
                    calls.allocate(process, mark);
                }
                if wanted(access.site) {
                    used.entry(process).or_default().note(&calls, process, access.address);
                }
            }
            marks.for_each(|(_, mark)| calls.allocate(process, mark));
            if let Some(PieceEnd::Loop(part)) = end {
                let strides = part.strides();
                let strides: Vec<_> = strides.iter().filter(|stride| wanted(stride.access.site)).collect();
                let iterations = if strides.is_empty() { 0 } else { part.iterations };
                for iteration in 0..iterations {
                    for stride in &strides {
                        let address = stride.access_in(iteration).address;
                        used.entry(process).or_default().note(&calls, process, address);
                    }
                }
            }
        }
        watched(piece, &mut done, &mut |done| match done >= chunks {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    trace.interleave_shards(&Shards::one(), workers, vec![consume]);
    used.into_iter().map(|(process, uses)| (process, uses.order)).collect()
}

/// Blocks in the order of their first uses.
#[derive(Default)]
struct Uses {
    order: Vec<u64>,
    known: FxHashSet<u64>,
    /// The block that was used last: its first and last address.
    last: Option<(u64, u64)>,
}

impl Uses {
    fn note(&mut self, calls: &Calls<'_>, process: ProcessId, address: u64) {
        if self.last.is_some_and(|(first, last)| (first..=last).contains(&address)) {
            return;
        }
        let Some(blocks) = calls.processes.get(&process) else { return };
        let Some((&base, block)) = blocks.live.range(..=address).next_back() else { return };
        if address - base >= block.bytes {
            return;
        }
        self.last = Some((base, base + (block.bytes - 1)));
        if self.known.insert(block.number) {
            self.order.push(block.number);
        }
    }
}

/// Collects the allocation calls of a trace that is replayed for another purpose.
pub struct CallCollector<'t> {
    calls: Calls<'t>,
    /// The calls so far; none once there are too many.
    found: Option<Vec<HeapCall>>,
    most: usize,
}

impl<'t> CallCollector<'t> {
    /// The collector of a complete trace, which keeps no calls if there are more than `most`.
    pub fn new(trace: &'t Trace, most: usize) -> CallCollector<'t> {
        CallCollector { calls: Calls::new(trace), found: Some(Vec::new()), most }
    }

    /// Collects the calls of the next piece.
    pub fn piece(&mut self, piece: &Piece<'_>) {
        let Some(found) = &mut self.found else { return };
        let _ = self.calls.piece(piece, &mut |call| {
            found.push(call);
            ControlFlow::Continue(())
        });
        self.found.take_if(|found| found.len() > self.most);
    }

    /// The calls, in replay order, if there are not too many.
    pub fn found(self) -> Option<Vec<HeapCall>> {
        self.found
    }
}

/// Facts that are known while a trace goes by.
struct Calls<'t> {
    trace: &'t Trace,
    stacks: FxHashMap<(ThreadId, u8), ThreadStack>,
    paths: Paths,
    processes: FxHashMap<ProcessId, Blocks>,
}

/// The live blocks of a process.
#[derive(Default)]
struct Blocks {
    /// The number of blocks made.
    made: u64,
    /// Keyed by base.
    live: BTreeMap<u64, LiveBlock>,
}

/// A live block.
struct LiveBlock {
    number: u64,
    bytes: u64,
    /// The block that it is a part of, and where in that it begins.
    inside: Option<(u64, u64)>,
}

impl Blocks {
    /// The live block that holds all of these bytes, and where in it they lie.
    fn around(&self, base: u64, bytes: u64) -> Option<(u64, u64)> {
        let (&start, block) = self.live.range(..=base).next_back()?;
        let end = base.checked_add(bytes)?;
        let offset = base - start;
        (end <= start.checked_add(block.bytes)?).then(|| match block.inside {
            Some((outer, at)) => (outer, at + offset),
            None => (block.number, offset),
        })
    }

    fn make(&mut self, base: u64, bytes: u64) -> (u64, Option<(u64, u64)>) {
        let number = self.made;
        self.made += 1;
        let inside = self.around(base, bytes);
        if inside.is_none() {
            // What lay here ended unseen.
            let gone: Vec<u64> =
                self.live.range(base..base.saturating_add(bytes)).map(|(&at, _)| at).collect();
            for at in gone {
                self.live.remove(&at);
            }
        }
        self.live.insert(base, LiveBlock { number, bytes, inside });
        (number, inside)
    }

    /// Ends a block; if another one begins at the same place inside it, the outer one.
    fn end(&mut self, base: u64) -> Option<u64> {
        let LiveBlock { number, inside, .. } = self.live.remove(&base)?;
        match inside {
            Some((outer, 0)) => Some(outer),
            _ => Some(number),
        }
    }
}

/// A block that a mark makes: its allocation, base and size, and bytes of an element of an array.
type Made = (SiteId, u64, u64, Option<u64>);

/// Returns the block that a mark makes, and the base of the one that it ends.
fn allocation(mark: &Mark) -> (Option<Made>, Option<u64>) {
    let (made, ended) = match *mark {
        Mark::Alloc { site, base, count, element_bytes } => {
            let array_of = (count > 1).then_some(element_bytes);
            (Some((site, base, count.saturating_mul(element_bytes), array_of)), None)
        }
        Mark::Realloc { site, base, bytes, old } => {
            let ended = (old != 0 && (base != 0 || bytes == 0)).then_some(old);
            (Some((site, base, bytes, None)), ended)
        }
        Mark::Free { base, .. } | Mark::Unmap { base, .. } => (None, Some(base)),
        _ => (None, None),
    };
    (made.filter(|&(_, base, ..)| base != 0), ended.filter(|&base| base != 0))
}

impl<'t> Calls<'t> {
    fn new(trace: &'t Trace) -> Calls<'t> {
        Calls {
            trace,
            stacks: FxHashMap::default(),
            paths: Paths::default(),
            processes: FxHashMap::default(),
        }
    }

    fn piece(
        &mut self,
        piece: &Piece<'_>,
        each: &mut impl FnMut(HeapCall) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let batch = piece.batch;
        let (Some(process), Some(thread)) = (batch.process, batch.thread) else {
            return ControlFlow::Continue(());
        };
        let stack = self.stacks.entry((thread, batch.stream)).or_default();
        if piece.is_first() {
            stack.begin(batch);
        }
        for (_, mark) in &batch.marks[piece.places().1] {
            match *mark {
                Mark::Enter { function, frame, caller } => stack.enter(function, frame, caller),
                Mark::Exit { function } => stack.exit(function),
                Mark::Resume { function, frame } => stack.resume(function, frame),
                _ => {}
            }
            let (made, ended) = allocation(mark);
            let blocks = self.processes.entry(process).or_default();
            let ended = ended.and_then(|base| blocks.end(base));
            let made = made.map(|(site, base, bytes, array_of)| {
                let (number, inside) = blocks.make(base, bytes);
                let home = home(self.trace, &mut self.paths, stack, site);
                MadeBlock { number, base, bytes, array_of, home, inside }
            });
            if made.is_some() || ended.is_some() {
                each(HeapCall { process, thread, made, ended })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Follows a mark of any caller.
    fn allocate(&mut self, process: ProcessId, mark: &Mark) {
        let (made, ended) = allocation(mark);
        if made.is_none() && ended.is_none() {
            return;
        }
        let blocks = self.processes.entry(process).or_default();
        if let Some(base) = ended {
            blocks.end(base);
        }
        if let Some((_, base, bytes, _)) = made {
            blocks.make(base, bytes);
        }
    }
}

/// The home of a block, as [`crate::Profiler`] finds it.
fn home(trace: &Trace, paths: &mut Paths, stack: &mut ThreadStack, site: SiteId) -> Home {
    let path = match stack.dormant {
        true => paths.enter(PathId::ROOT, trace.sites().site(site).function, None),
        false => stack.path(paths, Some(trace.sites())),
    };
    Home::Heap { site, path, dormant: stack.dormant }
}
