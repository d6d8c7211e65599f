//! Stands between a profiler and its caches, and records the answers.

use std::ops::Range;

use crossbeam_channel::{Receiver, Sender};
use memlode_replay::Piece;
use memlode_simulate::{
    Cause, Detailed, Hierarchy, LevelCounters, LevelSpec, MAX_LEVELS, MemRef, Space, Tag,
};
use memlode_trace::event::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

use crate::count::engine::{Engine, LoopMode, NO_PLACE, NewBlock, NewCell, NewSync, NoLane};
use crate::drive::annotate::coming::ComingValues;
use crate::drive::annotate::paths::TagMeanings;
use crate::drive::annotate::{
    AnnotatedAccesses, BlockEvent, Cells, EventCell, EventObject, Extras, Life, Options, ROWS, Sent,
    SyncEvent, Traffic, Why,
};
use crate::objects::WithinObject;
use crate::objects::classes::{ClassId, Classes, Home};
use crate::objects::paths::{PathId, Paths};

/// Caches that give every fact about a single access.
pub(super) trait Answers: Engine {
    /// True if they know why it missed.
    const KNOWS_WHY: bool;

    /// Like [`Engine::access`], at once.
    fn answer(&mut self, access: MemRef) -> (u8, Option<Why>);

    /// Number of the levels, and bytes of a line of the last one.
    fn shape(&self) -> (usize, u32);

    /// Lines that the last level has written back to memory so far.
    fn written_back(&self) -> u64;
}

impl Answers for Hierarchy {
    const KNOWS_WHY: bool = false;

    #[inline(always)]
    fn answer(&mut self, access: MemRef) -> (u8, Option<Why>) {
        (Hierarchy::access(self, access), None)
    }

    fn shape(&self) -> (usize, u32) {
        let levels = self.levels();
        (levels.len(), levels.last().map_or(0, |last| last.line_bytes))
    }

    fn written_back(&self) -> u64 {
        Hierarchy::written_back(self)
    }
}

impl Answers for Detailed {
    const KNOWS_WHY: bool = true;

    #[inline(always)]
    fn answer(&mut self, access: MemRef) -> (u8, Option<Why>) {
        let outcome = Detailed::access(self, access);
        let mut causes: [Option<Cause>; MAX_LEVELS] = [None; MAX_LEVELS];
        for (place, cause) in causes.iter_mut().zip(outcome.causes()) {
            *place = Some(cause);
        }
        let (translation, remote) = (outcome.translation, outcome.remote);
        (outcome.depth, Some(Why { causes, translation, alias: outcome.alias.is_some(), remote }))
    }

    fn shape(&self) -> (usize, u32) {
        (self.levels(), self.last_level().line_bytes)
    }

    fn written_back(&self) -> u64 {
        Detailed::written_back(self)
    }
}

/// A simulator whose answers become rows.
pub(super) struct Recorder<S> {
    caches: S,
    sender: Sender<Sent>,
    /// Batches whose memory can be reused.
    spares: Receiver<AnnotatedAccesses>,
    events: AnnotatedAccesses,
    news: Cells,
    /// Objects already described.
    objects: FxHashMap<ClassId, u32>,
    /// The meanings of tags; of a cell each, and none here, unless paths are wanted.
    meanings: TagMeanings,
    extras: Extras,
    /// Number of the levels, and bytes of a line of the last one.
    shape: (usize, u32),
    /// The place of the next access in its object.
    place: WithinObject,
    /// The current thread.
    thread: ThreadId,
    /// A bit for each level that is wanted.
    wanted: u32,
    only: Option<ThreadId>,
    /// True if the current thread is wanted.
    is_on: bool,
    /// True if blocks of memory are wanted.
    takes_blocks: bool,
    /// The current process.
    space: Space,
    process: ProcessId,
    time: u64,
    sequence: u64,
    /// Rows still wanted.
    left: u64,
    /// The numbers of the wanted accesses.
    stretch: Range<u64>,
    /// Values that the accesses of the current piece moved, if they are wanted.
    values: Option<ComingValues>,
}

impl<S: Answers> Recorder<S> {
    pub fn new(
        caches: S,
        options: &Options,
        sender: Sender<Sent>,
        spares: Receiver<AnnotatedAccesses>,
    ) -> Recorder<S> {
        let mut events = AnnotatedAccesses::default();
        events.make_room(S::KNOWS_WHY, options.extras);
        let shape = caches.shape();
        Recorder {
            caches,
            shape,
            sender,
            spares,
            events,
            news: Cells::default(),
            objects: FxHashMap::default(),
            meanings: TagMeanings::default(),
            extras: options.extras,
            place: WithinObject::default(),
            thread: ThreadId(0),
            wanted: options.levels,
            only: options.thread,
            is_on: false,
            takes_blocks: options.blocks,
            space: Space::default(),
            process: ProcessId(0),
            time: 0,
            sequence: 0,
            left: options.limit,
            stretch: options.stretch.clone(),
            values: options.extras.values.then(ComingValues::default),
        }
    }

    /// Begins events of this thread, from this time on.
    pub fn begin(&mut self, thread: ThreadId, process: ProcessId, time: u64) {
        self.is_on = self.left > 0 && self.only.is_none_or(|only| only == thread);
        self.space = Space::of(process.0);
        (self.process, self.thread) = (process, thread);
        self.time = time;
    }

    /// Goes to the access with a number.
    pub fn go_to(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The number of the next access.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Counts accesses that come next, if all of them are in front of the wanted ones; returns whether
    /// they are, and need not come.
    pub fn passes(&mut self, accesses: u64) -> bool {
        let end = self.sequence.saturating_add(accesses);
        // Blocks behind the last one may be wanted.
        let are_before = end < self.stretch.start;
        if are_before {
            self.sequence = end;
        }
        are_before
    }

    /// Takes the values of the piece whose accesses come next.
    pub fn expect_values(&mut self, piece: &Piece<'_>) {
        if let Some(values) = &mut self.values {
            values.take(piece);
        }
    }

    /// The time in the current stream.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns whether no more accesses are wanted.
    pub fn is_done(&self) -> bool {
        self.left == 0 || self.sequence >= self.stretch.end
    }

    /// Hands over the rows so far.
    pub fn send(&mut self) {
        if self.events.rows() == 0 && self.events.blocks.is_empty() && self.events.syncs.is_empty() {
            return;
        }
        let mut fresh = self.spares.try_recv().unwrap_or_default();
        fresh.make_room(S::KNOWS_WHY, self.extras);
        let events = std::mem::replace(&mut self.events, fresh);
        let news = std::mem::take(&mut self.news);
        if self.sender.send(Sent { events, news }).is_err() {
            // Whoever took them is gone.
            (self.left, self.is_on) = (0, false);
        }
    }

    /// Makes a row of an access, if it is wanted.
    #[inline(always)]
    fn write_down(&mut self, access: MemRef, level: u8, why: Option<Why>, traffic: Option<Traffic>) {
        let sequence = self.sequence;
        self.sequence += 1;
        if self.is_on && self.wanted >> level & 1 != 0 && self.stretch.contains(&sequence) {
            let rows = &mut self.events;
            rows.sequence.push(sequence);
            rows.stamp.push(self.time);
            rows.address.push(self.space.place(access.address));
            rows.bytes.push(access.bytes);
            let mut cell = access.tag.number();
            if self.extras.paths {
                let path;
                (cell, path) = self.meanings.of(cell);
                rows.path.push(path);
            }
            if self.extras.places {
                rows.place.push(self.place);
            }
            rows.cell.push(cell);
            rows.level.push(level);
            rows.why.extend(why);
            rows.traffic.extend(traffic);
            if let Some(value) = self.values.as_ref().and_then(ComingValues::now) {
                let row = rows.rows() as u32 - 1;
                rows.values.push(row, |bytes| bytes.extend_from_slice(value));
            }
            self.left -= 1;
            if self.events.rows() >= ROWS || self.left == 0 {
                self.filled();
            }
        }
    }

    /// The number of a class of objects, which is described if it is new.
    fn object(&mut self, class: ClassId, classes: &Classes, paths: &Paths) -> u32 {
        let next = self.objects.len() as u32;
        let news = &mut self.news;
        *self.objects.entry(class).or_insert_with(|| {
            let (home, element) = classes.home(class);
            let (home, path) = match *home {
                Home::Heap { site, path, dormant } => {
                    let home = Home::Heap { site, path: PathId::ROOT, dormant };
                    (home, paths.steps(path).collect())
                }
                _ => (home.clone(), Vec::new()),
            };
            news.objects.push(EventObject { home, path, element });
            next
        })
    }

    /// Returns whether blocks that begin and end now are wanted: in front of a row of the stretch.
    fn wants_blocks(&self) -> bool {
        self.takes_blocks && self.left > 0 && self.stretch.contains(&self.sequence)
    }

    fn block(&mut self, address: u64, life: Life) {
        let row = self.events.rows() as u32;
        self.events.blocks.push(BlockEvent { row, process: self.process, address, life });
        // A program may allocate for long without a wanted access.
        if self.events.blocks.len() >= ROWS {
            self.send();
        }
    }

    /// Bytes of an access that this level served; `before` it, that many lines had been written
    /// back.
    fn traffic(&self, level: u8, before: u64) -> Traffic {
        let (levels, line_bytes) = self.shape;
        let fetched = if usize::from(level) == levels { line_bytes } else { 0 };
        Traffic { fetched, written: (self.caches.written_back() - before) as u32 * line_bytes }
    }

    #[cold]
    fn filled(&mut self) {
        self.is_on = self.left > 0;
        if self.events.rows() >= ROWS {
            self.send();
        }
    }
}

impl<S: Answers> Engine for Recorder<S> {
    const LOOPS: LoopMode = LoopMode::Unrolled;
    type Lane<'e>
        = NoLane
    where
        S: 'e;

    fn lane(&mut self, _core: usize) -> Option<NoLane> {
        None
    }

    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Option<u8> {
        let before = if self.extras.traffic { self.caches.written_back() } else { 0 };
        let (level, why) = self.caches.answer(access);
        let traffic = self.extras.traffic.then(|| self.traffic(level, before));
        self.write_down(access, level, why, traffic);
        Some(level)
    }

    fn store_past(&mut self, access: MemRef, level: u8, _begun: u32) {
        let traffic = Traffic { fetched: 0, written: access.bytes };
        let why = S::KNOWS_WHY.then_some(Why::PAST_CACHES);
        self.write_down(access, level, why, self.extras.traffic.then_some(traffic));
    }

    fn counters(&self) -> Vec<LevelCounters> {
        self.caches.counters()
    }

    fn first_level(&self) -> &LevelSpec {
        self.caches.first_level()
    }

    fn cores(&self) -> u32 {
        self.caches.cores()
    }

    fn introduce(&mut self, cell: NewCell<'_>) {
        let object = self.object(cell.class, cell.classes, cell.paths);
        let known = EventCell { thread: cell.thread, site: cell.site, object };
        match self.extras.paths {
            true => self.meanings.introduce(known, cell.path, cell.paths, &mut self.news),
            false => self.news.cells.push(known),
        }
    }

    fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        self.caches.set_pages_of(tag, page_bytes);
    }

    fn begun(&mut self, block: NewBlock<'_>) {
        if self.wants_blocks() {
            let object = self.object(block.class, block.classes, block.paths);
            self.block(block.address, Life::Begins { bytes: block.bytes, object });
        }
    }

    fn ended(&mut self, address: u64) {
        if self.wants_blocks() {
            self.block(address, Life::Ends);
        }
    }

    #[inline(always)]
    fn takes_places(&self) -> bool {
        self.extras.places
    }

    fn at(&mut self, place: Option<WithinObject>) {
        self.place = place.unwrap_or_default();
    }

    fn takes_syncs(&self) -> bool {
        self.extras.syncs && self.is_on && self.stretch.contains(&self.sequence)
    }

    fn synced(&mut self, sync: NewSync<'_>) {
        let object = self.object(sync.class, sync.classes, sync.paths);
        let (row, thread, address) = (self.events.rows() as u32, self.thread, self.space.place(sync.address));
        self.events.syncs.push(SyncEvent { row, thread, kind: sync.kind, address, object });
        if self.events.syncs.len() >= ROWS {
            self.send();
        }
    }

    #[inline(always)]
    fn comes(&mut self, place: usize, bytes: u32) {
        if let Some(values) = &mut self.values {
            // What is several rows has no value as a whole.
            let is_one = bytes <= self.caches.first_level().line_bytes;
            values.come(if is_one { place } else { NO_PLACE });
        }
    }

    fn stamp(&mut self, stamp: u64) {
        self.time = self.time.max(stamp);
    }
}
