//! A first pass over a trace: the lines that several threads use and at least one writes, and the
//! operations that order threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use memlode_trace::event::{Access, Batch, Mark, ProcessId, Stride, SyncKind, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteId, SiteKind, SiteTable};
use memlode_trace::{Decoder, Loops, Trace};
use rustc_hash::FxHashMap;

use super::eras::{Eras, Families, begins_era, era};
use super::iterations::{is_in_vain, is_learnt_by, is_release_of};
use super::lines::Lines;
use super::relocation::{Placed, Relocation};

/// Bits for accesses of a thread to a line.
const READ: u8 = 1;
const WRITTEN: u8 = 2;
/// The same, while its process had no other thread.
const ALONE: u32 = 2;
/// The bit of sites of waiting loops.
const LOOKS: u8 = 16;

/// Lines whose latest use is counted without a table: a power of two.
const RECENT: usize = 1 << 13;

/// Something that orders threads. A program may have one for each access, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncEvent {
    pub stamp: u64,
    pub object: u64,
    /// See [`SyncEvent::look`]; the last number if there is none.
    look: u64,
    /// See [`SyncEvent::site`]; the last number if there is none.
    site: u32,
    pub kind: SyncKind,
    /// It is of an atomic read-modify-write.
    pub is_update: bool,
}

impl SyncEvent {
    /// Makes an event that a library causes.
    pub fn new(stamp: u64, kind: SyncKind, object: u64) -> SyncEvent {
        SyncEvent { stamp, object, look: u64::MAX, site: u32::MAX, kind, is_update: false }
    }

    /// Marks the last look of a waiting loop by the time of the look in vain before it; that is 0 if
    /// there was none.
    pub fn with_look(self, look: Option<u64>) -> SyncEvent {
        SyncEvent { look: look.unwrap_or(u64::MAX), ..self }
    }

    /// Marks an atomic read-modify-write.
    pub fn updating(self, is_update: bool) -> SyncEvent {
        SyncEvent { is_update, ..self }
    }

    /// Adds the site of the access that causes it.
    pub fn with_site(self, site: Option<SiteId>) -> SyncEvent {
        SyncEvent { site: site.map_or(u32::MAX, |site| site.0), ..self }
    }

    /// Returns the time of the look in vain before it, if it is the last look of a waiting loop; that
    /// is 0 if there was none.
    pub fn look(&self) -> Option<u64> {
        (self.look != u64::MAX).then_some(self.look)
    }

    /// Returns the site of the access that causes it; `None` if a library does.
    pub fn site(&self) -> Option<SiteId> {
        (self.site != u32::MAX).then_some(SiteId(self.site))
    }
}

/// Facts about a thread.
#[derive(Default)]
pub(super) struct ThreadFacts {
    pub thread: Option<ThreadId>,
    pub process: Option<ProcessId>,
    /// True if it is the first of its process.
    pub is_first: bool,
    /// Its chunks, by their place in [`Trace::chunks`].
    pub chunks: Vec<usize>,
    /// When its first chunk began.
    pub began: u64,
    /// The longest time between two stamps of it.
    pub longest: u64,
    /// Return-address slot of its first call.
    pub frame: Option<u64>,
    /// The lowest and the highest of these slots.
    pub frames: Option<(u64, u64)>,
    pub events: Vec<SyncEvent>,
    /// It accessed memory before the first of them.
    pub acts_first: bool,
    /// First and last address of each block, and its allocation.
    pub blocks: Vec<(u64, u64, SiteId)>,
    pub lines: FxHashMap<u64, LineUse>,
    /// Indexed by site, of the first thread of a process: true if it ran while there were others.
    pub beside: Vec<bool>,
}

/// Uses of a line by a thread.
#[derive(Clone, Copy, Default)]
pub(super) struct LineUse {
    times: u64,
    eras: Eras,
    does: u8,
}

/// The result of the look.
pub(super) struct Survey {
    pub threads: Vec<ThreadFacts>,
    pub size: Lines,
    /// Lines, of which several threads use each and one writes it, and their numbers.
    pub lines: FxHashMap<u64, u32>,
    /// Accesses to these lines.
    pub accesses: u64,
}

/// Looks at all threads of processes that have several. None if there are none.
pub(super) fn survey(
    trace: &Trace,
    lines: Lines,
    moved: Option<&dyn Relocation>,
    workers: usize,
) -> Option<Survey> {
    let mut threads = threads_of(trace);
    if threads.is_empty() {
        return None;
    }
    let does: Vec<u8> = trace.sites().sites().iter().map(does_of).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let jobs: Vec<Mutex<Option<ThreadFacts>>> =
        threads.drain(..).map(|facts| Mutex::new(Some(facts))).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return };
            let Some(facts) = job.lock().unwrap_or_else(PoisonError::into_inner).take() else { continue };
            let looked = Look::at(trace, lines, moved, &does, facts);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, looked));
        }
    };
    std::thread::scope(|scope| {
        (1..workers.min(jobs.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|&(number, _)| number);
    let mut threads: Vec<ThreadFacts> = done.into_iter().map(|(_, facts)| facts).collect();
    let (contended, accesses) = contended(&mut threads);
    Some(Survey { threads, size: lines, lines: contended, accesses })
}

/// The threads of processes in which several recorded something.
fn threads_of(trace: &Trace) -> Vec<ThreadFacts> {
    let mut threads: Vec<ThreadFacts> = trace.threads().iter().map(|_| ThreadFacts::default()).collect();
    for (number, chunk) in trace.chunks().iter().enumerate().filter(|(_, chunk)| !chunk.is_dormant()) {
        let facts = &mut threads[chunk.thread.0 as usize];
        (facts.thread, facts.process) = (Some(chunk.thread), Some(chunk.process));
        let (from, to) = chunk.stamps();
        facts.began = if facts.chunks.is_empty() { from } else { facts.began.min(from) };
        facts.longest = facts.longest.max(to.saturating_sub(from));
        facts.chunks.push(number);
    }
    threads.retain(|facts| !facts.chunks.is_empty());
    for facts in &mut threads {
        facts.chunks.sort_by_key(|&number| trace.chunks()[number].sequence());
    }
    let mut several: FxHashMap<ProcessId, usize> = FxHashMap::default();
    for process in threads.iter().filter_map(|facts| facts.process) {
        *several.entry(process).or_default() += 1;
    }
    threads.retain(|facts| facts.process.is_some_and(|process| several[&process] > 1));
    threads.sort_by_key(|facts| (facts.process, facts.thread));
    for number in 0..threads.len() {
        threads[number].is_first = number == 0 || threads[number - 1].process != threads[number].process;
    }
    threads
}

/// Looks at one thread.
struct Look<'t> {
    sites: &'t SiteTable,
    /// Indexed by site: the uses it makes of lines.
    does: &'t [u8],
    placed: Placed<'t>,
    facts: ThreadFacts,
    process: ProcessId,
    lines: Lines,
    /// It accessed memory in a chunk or a loop before.
    has_acted: bool,
    /// Object and time of its latest look in vain.
    in_vain: (u64, u64),
    /// Threads that it made and that it did not join yet.
    others: u64,
    /// Threads that it made and joined so far, as an era.
    era: u32,
    /// Lines and their uses.
    recent: Vec<(u64, LineUse)>,
}

impl<'t> Look<'t> {
    fn at(
        trace: &'t Trace,
        lines: Lines,
        moved: Option<&'t dyn Relocation>,
        does: &'t [u8],
        facts: ThreadFacts,
    ) -> ThreadFacts {
        let (Some(process), Some(thread)) = (facts.process, facts.thread) else { return facts };
        let recent = vec![(u64::MAX, LineUse::default()); RECENT];
        let placed = Placed::new(moved, process, thread);
        let sites = trace.sites();
        let beside = if facts.is_first { vec![false; does.len()] } else { Vec::new() };
        let facts = ThreadFacts { beside, ..facts };
        let mut look = Look {
            sites,
            does,
            placed,
            facts,
            process,
            lines,
            has_acted: false,
            in_vain: (0, 0),
            others: 0,
            era: 0,
            recent,
        };
        let (mut decoder, mut batch) = (Decoder::new(Loops::Kept), Batch::default());
        for number in std::mem::take(&mut look.facts.chunks) {
            let is_sound = decoder.stored(trace, &trace.chunks()[number], &mut batch).is_ok();
            if is_sound {
                look.facts.chunks.push(number);
                look.chunk(&batch);
            }
        }
        for slot in 0..RECENT {
            look.evict(slot);
        }
        look.facts
    }

    fn chunk(&mut self, batch: &Batch) {
        batch.stack.iter().for_each(|frame| self.frame(frame.address));
        let (mut done, mut loops) = (0, batch.loops.iter().peekable());
        for (number, (at, mark)) in batch.marks.iter().enumerate() {
            while let Some(next) = loops.next_if(|next| next.mark as usize <= number) {
                self.accesses(batch, done..next.access as usize);
                done = next.access as usize;
                let strides = next.strides.start as usize..next.strides.end as usize;
                batch.strides[strides].iter().for_each(|stride| self.stride(stride, next.iterations));
                self.has_acted = true;
            }
            self.accesses(batch, done..*at as usize);
            done = *at as usize;
            let look = done.checked_sub(1).filter(|&look| is_learnt_by(batch, number, look));
            let look = look.or_else(|| is_release_of(batch, number, done).then_some(done));
            if look.is_none_or(|look| !is_in_vain(self.sites, batch, look)) {
                self.mark(mark, batch, done);
            } else if let Mark::Sync { object, stamp, .. } = *mark {
                self.in_vain = (object, stamp);
            }
        }
        for next in loops {
            let strides = next.strides.start as usize..next.strides.end as usize;
            batch.strides[strides].iter().for_each(|stride| self.stride(stride, next.iterations));
        }
        self.accesses(batch, done..batch.accesses.len());
        self.has_acted |= !batch.accesses.is_empty() || !batch.loops.is_empty();
    }

    fn mark(&mut self, mark: &Mark, batch: &Batch, at: usize) {
        match *mark {
            Mark::Enter { frame, .. } | Mark::Resume { frame, .. } => {
                self.frame(frame);
            }
            Mark::Alloc { site, base, count, element_bytes } => {
                self.block(site, base, count.saturating_mul(element_bytes));
            }
            Mark::Realloc { site, base, bytes, .. } => self.block(site, base, bytes),
            Mark::Sync { kind, object, stamp } => {
                let beside = if kind.releases() { Some(at) } else { at.checked_sub(1) };
                let beside = beside.and_then(|at| batch.accesses.get(at));
                let is_update = matches!(kind, SyncKind::Acquire | SyncKind::Release)
                    && beside.is_some_and(|access| {
                        access.address == object && self.sites.site(access.site).kind == SiteKind::Update
                    });
                self.era += u32::from(begins_era(kind));
                match kind {
                    SyncKind::Create => self.others += 1,
                    SyncKind::Join => self.others = self.others.saturating_sub(1),
                    _ => {}
                }
                self.facts.acts_first |= self.facts.events.is_empty() && (at > 0 || self.has_acted);
                let looks = |access: &Access| {
                    access.address == object && self.does[access.site.0 as usize] & LOOKS != 0
                };
                let in_vain = if self.in_vain.0 == object { self.in_vain.1 } else { 0 };
                let look = (kind == SyncKind::Acquire && beside.is_some_and(looks)).then_some(in_vain);
                if look.is_some() {
                    self.in_vain = (0, 0);
                }
                let site = beside.filter(|access| access.address == object).map(|access| access.site);
                let site = site.filter(|_| matches!(kind, SyncKind::Acquire | SyncKind::Release));
                let event = SyncEvent::new(stamp, kind, object).with_look(look).with_site(site);
                self.facts.events.push(event.updating(is_update));
            }
            _ => {}
        }
    }

    fn frame(&mut self, slot: u64) {
        self.facts.frame.get_or_insert(slot);
        let (low, high) = self.facts.frames.get_or_insert((slot, slot));
        (*low, *high) = (slot.min(*low), slot.max(*high));
    }

    fn block(&mut self, site: SiteId, base: u64, bytes: u64) {
        if let (true, Some(last)) = (base != 0 && bytes != 0, base.checked_add(bytes.max(1) - 1)) {
            self.facts.blocks.push((base, last, site));
        }
    }

    fn accesses(&mut self, batch: &Batch, range: Range<usize>) {
        let (are_moved, era) = (self.placed.are_moved(), era(self.era));
        if self.facts.is_first && self.others > 0 {
            let sites = batch.accesses[range.clone()].iter().map(|access| access.site.0 as usize);
            sites.for_each(|site| self.facts.beside[site] = true);
        }
        // Nearly all are to a line that was used not long ago.
        for at in range {
            let access = &batch.accesses[at];
            if self.does[access.site.0 as usize] & LOOKS != 0 && is_in_vain(self.sites, batch, at) {
                continue;
            }
            if are_moved {
                self.access(access);
                continue;
            }
            let does = self.does(access.site);
            let line = self.line_of(access.address);
            let recent = &mut self.recent[line as usize % RECENT];
            let fits = self.lines.offset(access.address) + u64::from(access.bytes) <= self.lines.bytes;
            if fits && recent.0 == line {
                recent.1.does |= does;
                recent.1.eras |= era;
                recent.1.times += 1;
            } else {
                self.bytes(access.address, access.bytes, does);
            }
        }
    }

    /// Returns the number of an address's line.
    fn line_of(&self, address: u64) -> u64 {
        self.lines.number(self.process, address)
    }

    #[inline]
    fn access(&mut self, access: &Access) {
        let does = self.does(access.site);
        if self.placed.moves(access.address, access.bytes) {
            for number in 0..self.placed.pieces.len() {
                let piece = self.placed.pieces[number];
                self.bytes(piece.address, piece.bytes, if piece.is_link { does_as_read(does) } else { does });
            }
            return;
        }
        self.bytes(access.address, access.bytes, does);
    }

    #[inline]
    fn bytes(&mut self, address: u64, bytes: u32, does: u8) {
        let last = address.saturating_add(u64::from(bytes) - 1);
        for line in self.line_of(address)..=self.line_of(last) {
            self.touch(line, does, 1);
        }
    }

    /// Returns the uses that a site makes of lines, now.
    #[inline]
    fn does(&self, site: SiteId) -> u8 {
        let does = self.does[site.0 as usize] & (READ | WRITTEN);
        if self.facts.is_first && self.others == 0 { does << ALONE } else { does }
    }

    fn stride(&mut self, stride: &Stride, iterations: u64) {
        let does = self.does(stride.access.site);
        if self.facts.is_first && self.others > 0 {
            self.facts.beside[stride.access.site.0 as usize] = true;
        }
        let step = stride.step as i64;
        let reach = u64::from(stride.access.bytes) - 1;
        let last = stride.access_in(iterations.saturating_sub(1)).address;
        let (low, high) = (stride.access.address.min(last), stride.access.address.max(last));
        if self.placed.touches(low, high.saturating_add(reach)) {
            (0..iterations).for_each(|iteration| self.access(&stride.access_in(iteration)));
            return;
        }
        if step.unsigned_abs() <= self.lines.bytes && iterations > 0 {
            let lines = self.line_of(low)..=self.line_of(high.saturating_add(reach));
            let each = iterations.div_ceil(lines.clone().count().max(1) as u64);
            lines.for_each(|line| self.touch(line, does, each));
            return;
        }
        for iteration in 0..iterations {
            let at = stride.access_in(iteration).address;
            for line in self.line_of(at)..=self.line_of(at.saturating_add(reach)) {
                self.touch(line, does, 1);
            }
        }
    }

    #[inline]
    fn touch(&mut self, line: u64, does: u8, times: u64) {
        let slot = line as usize % RECENT;
        if self.recent[slot].0 != line {
            self.evict(slot);
            self.recent[slot] = (line, LineUse::default());
        }
        let recent = &mut self.recent[slot].1;
        recent.does |= does;
        recent.eras |= era(self.era);
        recent.times += times;
    }

    fn evict(&mut self, slot: usize) {
        let (line, used) = self.recent[slot];
        if used.times > 0 {
            let known = self.facts.lines.entry(line).or_default();
            known.does |= used.does;
            known.eras |= used.eras;
            known.times += used.times;
        }
    }
}

/// Returns the uses that a site makes of lines, and whether it is in a waiting loop.
fn does_of(site: &Site) -> u8 {
    let does = match site.kind {
        SiteKind::Load => READ,
        SiteKind::Store => WRITTEN,
        _ => READ | WRITTEN,
    };
    if site.flags & flag::POLL != 0 { does | LOOKS } else { does }
}

/// Returns the uses of a line where a link is read, in a process with other threads or without.
fn does_as_read(does: u8) -> u8 {
    if does & (READ | WRITTEN) != 0 { READ } else { READ << ALONE }
}

/// The threads that use a line.
#[derive(Default)]
struct Users {
    times: u64,
    /// The first one.
    first: Option<(u32, Eras)>,
    /// Another one, with which the first hands the line over.
    has_second: bool,
    are_sharing: bool,
    are_writing: bool,
}

impl Users {
    fn add(&mut self, families: &Families, user: (u32, Eras)) {
        let Some(first) = self.first else {
            self.first = Some(user);
            return;
        };
        // Of three, those that were made may use it side by side.
        self.are_sharing |= self.has_second || !families.hand_over(first, user);
        self.has_second = true;
    }
}

/// Threads of each process, and how many of them have a recorded creation.
fn made(threads: &[ThreadFacts]) -> FxHashMap<Option<ProcessId>, (usize, usize)> {
    let mut made: FxHashMap<Option<ProcessId>, (usize, usize)> = FxHashMap::default();
    for facts in threads {
        let of_process = made.entry(facts.process).or_default();
        of_process.0 += 1;
        of_process.1 += facts.events.iter().filter(|event| event.kind == SyncKind::Create).count();
    }
    made
}

/// The lines that several threads use and one writes, numbered by address, and the accesses to
/// them.
fn contended(threads: &mut [ThreadFacts]) -> (FxHashMap<u64, u32>, u64) {
    // What is done alone does not count, if it is known when that is: if all other threads were seen to be made.
    let made = made(threads);
    for facts in &mut *threads {
        let (count, created) = made[&facts.process];
        if created + 1 < count {
            facts.beside.fill(true);
        }
    }
    let families = Families::of(threads);
    let mut users: FxHashMap<u64, Users> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let (count, created) = made[&facts.process];
        let knows_alone = created + 1 >= count;
        for (line, LineUse { does, times, eras }) in std::mem::take(&mut facts.lines) {
            let does = if knows_alone { does & (READ | WRITTEN) } else { does | does >> ALONE };
            if does == 0 {
                continue;
            }
            let of_line = users.entry(line).or_default();
            of_line.are_writing |= does & WRITTEN != 0;
            of_line.times += times;
            of_line.add(&families, (number, eras));
        }
    }
    let shared = users.into_iter().filter(|(_, users)| users.are_sharing && users.are_writing);
    let (mut lines, mut accesses) = (Vec::new(), 0);
    for (line, users) in shared {
        lines.push(line);
        accesses += users.times;
    }
    lines.sort_unstable();
    (lines.into_iter().zip(0..).collect(), accesses)
}
