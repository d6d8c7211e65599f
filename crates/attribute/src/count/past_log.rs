//! Blocks that began and ended in a part of a replay, and the calls in progress at its end, written
//! down: who wants a later part need not look for them.

use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::{FunctionId, LocationId, SiteId, SiteTable, TypeId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::count::engine::Engine;
use crate::count::profiler::Profiler;
use crate::objects::classes::{ClassId, Classes, Home};
use crate::objects::paths::{PathId, Paths};
use crate::objects::stacks::{SavedStack, ThreadStack};

/// Everything that a log says of a part of a replay.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Logged {
    /// Classes of blocks that no log before this one has.
    classes: Vec<HeapClass>,
    events: Vec<BlockLogged>,
    /// Thread and stream of each stack at its end.
    stacks: Vec<(u32, u8, SavedStack)>,
}

/// A class of blocks.
#[derive(Debug, Serialize, Deserialize)]
struct HeapClass {
    site: u32,
    dormant: bool,
    element: Option<u32>,
    /// Functions on the stack, the outermost first, and where each was called.
    path: Vec<(u32, Option<u32>)>,
}

/// A change of blocks. Each address is its distance from the one before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum BlockLogged {
    Begins { process: u32, distance: i64, bytes: u64, class: u32 },
    Ends { process: u32, distance: i64 },
    Unmapped { process: u32, distance: i64, bytes: u64 },
}

/// Writes down what happens to blocks.
#[derive(Default)]
pub(crate) struct PastLog {
    events: Vec<BlockLogged>,
    address: u64,
    /// The classes of all logs so far, and how many of them are in a log.
    classes: Vec<ClassId>,
    numbers: FxHashMap<ClassId, u32>,
    described: usize,
}

impl PastLog {
    /// A block begins.
    pub fn begins(&mut self, process: ProcessId, base: u64, bytes: u64, class: ClassId) {
        let (process, distance, class) = (process.0, self.go(base), self.number(class));
        self.events.push(BlockLogged::Begins { process, distance, bytes, class });
    }

    /// A block ends.
    pub fn ends(&mut self, process: ProcessId, base: u64) {
        let (process, distance) = (process.0, self.go(base));
        self.events.push(BlockLogged::Ends { process, distance });
    }

    /// Pages are unmapped.
    pub fn unmapped(&mut self, process: ProcessId, base: u64, bytes: u64) {
        let (process, distance) = (process.0, self.go(base));
        self.events.push(BlockLogged::Unmapped { process, distance, bytes });
    }

    fn go(&mut self, address: u64) -> i64 {
        let before = std::mem::replace(&mut self.address, address);
        address.wrapping_sub(before) as i64
    }

    fn number(&mut self, class: ClassId) -> u32 {
        let next = self.classes.len() as u32;
        let number = *self.numbers.entry(class).or_insert(next);
        if number == next {
            self.classes.push(class);
        }
        number
    }

    /// The changes since the last call, and the classes that are new in them.
    fn take(&mut self, classes: &Classes, paths: &Paths) -> (Vec<HeapClass>, Vec<BlockLogged>) {
        let new = self.classes[self.described..].iter();
        let new = new.filter_map(|class| HeapClass::of(*class, classes, paths)).collect();
        self.described = self.classes.len();
        self.address = 0;
        (new, std::mem::take(&mut self.events))
    }
}

impl HeapClass {
    fn of(class: ClassId, classes: &Classes, paths: &Paths) -> Option<HeapClass> {
        let (&Home::Heap { site, path, dormant }, element) = classes.home(class) else { return None };
        let steps = paths.steps(path).map(|(function, call)| (function.0, call.map(|call| call.0)));
        let mut path: Vec<_> = steps.collect();
        path.reverse();
        Some(HeapClass { site: site.0, dormant, element: element.map(|element| element.0), path })
    }

    fn fits(&self, names: &SiteTable) -> bool {
        let is_of = |number: u32, all: usize| (number as usize) < all;
        is_of(self.site, names.sites().len())
            && self.element.is_none_or(|element| is_of(element, names.types().len()))
            && self.path.iter().all(|&(function, call)| {
                is_of(function, names.functions().len())
                    && call.is_none_or(|call| is_of(call, names.locations().len()))
            })
    }
}

impl Logged {
    /// Returns whether it speaks of what these names have, after logs with this number of classes.
    pub fn fits(&self, names: &SiteTable, classes: usize) -> bool {
        let classes = classes + self.classes.len();
        let is_known = |event: &BlockLogged| match event {
            BlockLogged::Begins { class, .. } => (*class as usize) < classes,
            BlockLogged::Ends { .. } | BlockLogged::Unmapped { .. } => true,
        };
        self.classes.iter().all(|class| class.fits(names))
            && self.events.iter().all(is_known)
            && self.stacks.iter().all(|(_, _, stack)| stack.fits(names.functions().len()))
    }
}

impl<E: Engine> Profiler<E> {
    /// Writes down from here on what happens to blocks.
    pub(crate) fn begin_log(&mut self) {
        self.log = Some(PastLog::default());
    }

    /// Number of classes in the logs so far.
    pub(crate) fn logged_classes(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.described)
    }

    /// Everything that happened since the log began, or since this was called before.
    pub(crate) fn logged(&mut self) -> Logged {
        let (classes, paths) = (&self.memory.classes, &self.memory.paths);
        let (classes, events) = self.log.as_mut().map(|log| log.take(classes, paths)).unwrap_or_default();
        let stacks = self
            .stacks
            .iter()
            .filter_map(|((thread, stream), stack)| Some((thread.0, *stream, stack.as_ref()?.saved())));
        let mut stacks: Vec<_> = stacks.collect();
        stacks.sort_by_key(|(thread, stream, _)| (*thread, *stream));
        Logged { classes, events, stacks }
    }

    /// Goes on to the end of a part that was written down, and that fits.
    pub(crate) fn follow_log(&mut self, logged: &Logged) {
        for class in &logged.classes {
            let step = |path: PathId, &(function, call): &(u32, Option<u32>)| {
                self.memory.paths.enter(path, FunctionId(function), call.map(LocationId))
            };
            let path = class.path.iter().fold(PathId::ROOT, step);
            let element = class.element.map(TypeId);
            let class = self.memory.classes.of_heap(SiteId(class.site), path, class.dormant, element);
            if let Some(log) = &mut self.log {
                log.number(class);
                log.described = log.classes.len();
            }
        }
        let mut address = 0u64;
        for event in &logged.events {
            let (BlockLogged::Begins { process, distance, .. }
            | BlockLogged::Ends { process, distance }
            | BlockLogged::Unmapped { process, distance, .. }) = *event;
            address = address.wrapping_add_signed(distance);
            let objects = self.processes.entry(ProcessId(process)).or_default().get_or_insert_default();
            match *event {
                BlockLogged::Begins { bytes, class, .. } => {
                    let class = self.log.as_ref().and_then(|log| log.classes.get(class as usize));
                    let Some(&class) = class else { continue };
                    let before = self.memory.classes.count(class, bytes);
                    let slot = objects.insert(address, bytes, class);
                    if let Some(slot) = slot.filter(|_| self.caches.takes_places()) {
                        objects.set_order(slot, before);
                    }
                }
                BlockLogged::Ends { .. } => _ = objects.free(address),
                BlockLogged::Unmapped { bytes, .. } => objects.unmap(address, bytes),
            }
        }
        for (thread, stream, stack) in &logged.stacks {
            self.stacks.insert((ThreadId(*thread), *stream), Some(ThreadStack::of(stack)));
        }
    }
}
