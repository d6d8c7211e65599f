//! The threads of a trace as a program for [`memlode_simulate::side_by_side`]: accesses to lines of
//! several threads, and operations that order threads; everything else counts as instructions.

use std::collections::VecDeque;

use memlode_simulate::side_by_side::{Act, CYCLE, Item, Program, Step, Ticks};
use memlode_trace::event::{Access, Batch, Mark, ProcessId, SyncKind, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{SiteId, SiteKind, SiteTable};
use memlode_trace::{Decoder, Loops, Trace};
use rustc_hash::FxHashMap;

use super::contended::Contended;
use super::iterations::{is_in_vain, is_learnt_by, is_release_of};
use super::lines::Lines;
use super::members::is_borrowed;
use super::order::{Orders, Waits};
use super::places::Places;
use super::relocation::{Placed, Relocation};
use super::survey::Survey;

/// Parts of an instruction in which they are counted.
const PARTS: u64 = 16;
/// Instructions of an access where the compiler gave no number.
const UNKNOWN: f32 = 3.0;
/// A load and a store of the same bytes are one increment if no more instructions lie between.
const INCREMENT: u32 = 8;
/// The most instructions that are passed on at a time.
const MOST_WORK: u64 = 1 << 20;
/// Bytes of the units in which a stack is divided.
const WORD: u64 = 8;

/// Facts about a site.
#[derive(Clone, Copy)]
struct SiteFacts {
    act: Act,
    /// Parts of instructions from the access before, its own included.
    before: u64,
    /// Instructions behind it up to the segment's end.
    after: u64,
    /// A full fence stands beside the access.
    is_fenced: bool,
    /// It is of a waiting loop.
    looks: bool,
    /// The object is found by the address.
    is_borrowed: bool,
    /// The function that has the variable on its stack, counted from 1; 0 of all others.
    frame: u32,
}

/// The time of stamps, where threads go on when they did.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    pub began: u64,
    pub cycles_per_tick: f64,
}

impl Recorded {
    fn at(self, stamp: u64) -> Ticks {
        let cycles = stamp.saturating_sub(self.began) as f64 * self.cycles_per_tick;
        (cycles * CYCLE as f64) as Ticks
    }
}

/// All threads.
pub(super) struct Threads<'t> {
    trace: &'t Trace,
    contended: Contended<'t>,
    sites: Vec<SiteFacts>,
    cursors: Vec<Cursor<'t>>,
    makers: &'t [Option<(u32, u64)>],
    recorded: Option<Recorded>,
}

/// One thread.
struct Cursor<'t> {
    chunks: std::slice::Iter<'t, usize>,
    process: ProcessId,
    lines: Lines,
    placed: Placed<'t>,
    places: Places,
    decoder: Decoder,
    batch: Batch,
    at: At,
    /// Keyed by line and word: the function that had it on the stack last.
    frames: FxHashMap<(u32, u16), u32>,
    waits: std::iter::Peekable<std::slice::Iter<'t, (u64, Waits)>>,
    acquired: u64,
    /// Parts of instructions that were not passed on yet.
    parts: u64,
    /// Stores among those, to lines that no other thread uses.
    stores: u64,
    /// A load that a store to the same bytes may follow.
    load: Option<Step>,
    /// True if a store to a shared line was passed on since the last fence.
    has_stored: bool,
    out: VecDeque<Item>,
    has_ended: bool,
    /// Steps are counted and not passed on.
    is_quiet: bool,
    skipped: u64,
}

/// A place in a batch.
#[derive(Clone, Copy, Default)]
struct At {
    access: usize,
    mark: usize,
    next_loop: usize,
    iteration: u64,
}

impl<'t> Threads<'t> {
    pub fn new(
        trace: &'t Trace,
        survey: &'t Survey,
        orders: &'t Orders,
        recorded: Option<Recorded>,
        moved: Option<&'t dyn Relocation>,
    ) -> Threads<'t> {
        let sites = trace.sites();
        let count = sites.sites().len() as u32;
        let is_moved = moved.is_some();
        let facts = (0..count).map(|site| facts_of(sites, SiteId(site), is_moved)).collect();
        let cursors = survey.threads.iter().enumerate().map(|(number, facts)| {
            let mut out = VecDeque::new();
            if let Some(start) = orders.starts[number] {
                out.push_back(Item::Acquire(vec![start]));
            }
            let (process, thread) =
                (facts.process.unwrap_or(ProcessId(0)), facts.thread.unwrap_or(ThreadId(0)));
            Cursor {
                chunks: facts.chunks.iter(),
                process,
                lines: survey.size,
                placed: Placed::new(moved, process, thread),
                places: Places::new(number as u32, survey.threads.len() as u32, count),
                decoder: Decoder::new(Loops::Kept),
                batch: Batch::default(),
                at: At::default(),
                frames: FxHashMap::default(),
                waits: orders.waits[number].iter().peekable(),
                acquired: 0,
                parts: 0,
                stores: 0,
                load: None,
                has_stored: false,
                out,
                has_ended: false,
                is_quiet: false,
                skipped: 0,
            }
        });
        Threads {
            trace,
            contended: Contended::new(&survey.lines),
            sites: facts,
            cursors: cursors.collect(),
            makers: &orders.starts,
            recorded,
        }
    }
}

fn facts_of(sites: &SiteTable, id: SiteId, is_moved: bool) -> SiteFacts {
    let site = sites.site(id);
    let act = match site.kind {
        SiteKind::Update => Act::Atomic,
        // An exchange, on the processors that there are.
        SiteKind::Store if site.flags & flag::ATOMIC != 0 && site.flags & flag::SEQUENTIAL != 0 => {
            Act::Atomic
        }
        SiteKind::Store => Act::Store,
        _ => Act::Load,
    };
    let (before, after) = sites.work(id).map_or((UNKNOWN, 0.0), |work| (work.before, work.after));
    let parts = |instructions: f32| (f64::from(instructions) * PARTS as f64).round() as u64;
    let is_fenced = site.flags & flag::FENCED != 0;
    let holds = site.location.and_then(|at| sites.inline_chain(at).last()).map_or(0, |at| at.function.0 + 1);
    let frame = if site.flags & flag::STACK != 0 { holds } else { 0 };
    let looks = site.flags & flag::POLL != 0;
    let is_borrowed = !is_moved && frame == 0 && is_borrowed(sites, site);
    SiteFacts { act, before: parts(before), after: parts(after), is_fenced, looks, is_borrowed, frame }
}

impl Threads<'_> {
    /// The places that were given out, by thread.
    pub fn places(&self) -> Vec<&Places> {
        self.cursors.iter().map(|cursor| &cursor.places).collect()
    }
}

impl Program for Threads<'_> {
    fn threads(&self) -> usize {
        self.cursors.len()
    }

    fn maker(&self, thread: usize) -> Option<(u32, u64)> {
        self.makers[thread]
    }

    fn next(&mut self, thread: usize) -> Option<Item> {
        let around = Around {
            trace: self.trace,
            contended: &self.contended,
            sites: &self.sites,
            recorded: self.recorded,
        };
        let cursor = &mut self.cursors[thread];
        while cursor.out.is_empty() {
            if !cursor.advance(&around, u64::MAX) {
                return None;
            }
        }
        cursor.out.pop_front()
    }

    fn skip(&mut self, thread: usize, most: u64) -> u64 {
        let around = Around {
            trace: self.trace,
            contended: &self.contended,
            sites: &self.sites,
            recorded: self.recorded,
        };
        let cursor = &mut self.cursors[thread];
        if most == 0 || !cursor.out.is_empty() {
            return 0;
        }
        (cursor.is_quiet, cursor.skipped) = (true, 0);
        while cursor.skipped < most && cursor.out.is_empty() && cursor.advance(&around, most) {}
        cursor.is_quiet = false;
        (cursor.parts, cursor.stores, cursor.load) = (0, 0, None);
        cursor.skipped
    }
}

/// Data that all cursors look at.
struct Around<'a> {
    trace: &'a Trace,
    contended: &'a Contended<'a>,
    sites: &'a [SiteFacts],
    recorded: Option<Recorded>,
}

impl Cursor<'_> {
    /// Reads the next item; false at the end.
    fn advance(&mut self, around: &Around<'_>, most: u64) -> bool {
        let At { access, mark, next_loop, .. } = self.at;
        if let Some(next) = self.batch.loops.get(next_loop)
            && next.access as usize <= access
            && next.mark as usize <= mark
        {
            self.repeat(around, most);
        } else if let Some(&(at, next)) = self.batch.marks.get(mark)
            && at as usize <= access
        {
            self.at.mark += 1;
            let is_its = is_release_of(&self.batch, mark, access);
            let is_last = self.batch.marks.get(mark + 1).is_none_or(|(at, _)| *at as usize > access);
            if is_its && is_in_vain(around.trace.sites(), &self.batch, access) {
                return true;
            }
            if is_its
                && is_last
                && self.batch.loops.get(next_loop).is_none_or(|next| next.access as usize > access)
            {
                // Others see the release when they see what it wrote.
                let written = self.batch.accesses[access];
                self.look(around, access, &written);
            }
            self.mark(around, &next);
        } else if !self.pass_by(around) {
            let Some(&next) = self.batch.accesses.get(access) else {
                return self.next_chunk(around);
            };
            self.look(around, access, &next);
        }
        true
    }

    /// Counts the instructions of consecutive accesses to lines of this thread alone, which are
    /// most. Returns whether there were any.
    fn pass_by(&mut self, around: &Around<'_>) -> bool {
        if self.placed.are_moved() {
            return false;
        }
        let from = self.at.access;
        let mark = self.batch.marks.get(self.at.mark).map_or(usize::MAX, |mark| mark.0 as usize);
        let repeat = self.batch.loops.get(self.at.next_loop).map_or(usize::MAX, |next| next.access as usize);
        let to = self.batch.accesses.len().min(mark).min(repeat).max(from);
        let (mut parts, mut stores) = (self.parts, self.stores);
        let concerns = |access: &Access| {
            let facts = &around.sites[access.site.0 as usize];
            let last = access.address.saturating_add(u64::from(access.bytes) - 1);
            let (first, last) = (self.line_of(access.address), self.line_of(last));
            if facts.is_fenced
                || facts.looks
                || parts > MOST_WORK * PARTS
                || around.contended.may_have(first)
                || (last != first && (first + 1..=last).any(|line| around.contended.may_have(line)))
            {
                return true;
            }
            parts += facts.before + facts.after;
            stores += u64::from(facts.act.writes());
            false
        };
        let accesses = &self.batch.accesses[from..to];
        self.at.access += accesses.iter().position(concerns).unwrap_or(accesses.len());
        (self.parts, self.stores) = (parts, stores);
        self.at.access > from
    }

    /// Reads the next access, unless it is a look in vain; and before it, what the look learnt.
    fn look(&mut self, around: &Around<'_>, at: usize, access: &Access) {
        self.at.access += 1;
        let mark = self.at.mark;
        let learns = is_learnt_by(&self.batch, mark, at);
        self.at.mark += usize::from(learns);
        if is_in_vain(around.trace.sites(), &self.batch, at) {
            return;
        }
        if learns {
            let learnt = self.batch.marks[mark].1;
            self.mark(around, &learnt);
        }
        self.access(around, access);
    }

    fn next_chunk(&mut self, around: &Around<'_>) -> bool {
        self.at = At::default();
        self.batch.clear();
        let Some(&number) = self.chunks.next() else {
            if self.has_ended {
                return false;
            }
            self.has_ended = true;
            self.tell_rest();
            self.out.push_back(Item::Release);
            return true;
        };
        let chunk = &around.trace.chunks()[number];
        if self.decoder.stored(around.trace, chunk, &mut self.batch).is_err() {
            self.batch.clear();
        }
        self.not_before(around, chunk.stamps().0);
        true
    }

    fn not_before(&mut self, around: &Around<'_>, stamp: u64) {
        if let Some(recorded) = around.recorded {
            self.tell_rest();
            self.out.push_back(Item::NotBefore(recorded.at(stamp)));
        }
    }

    fn mark(&mut self, around: &Around<'_>, mark: &Mark) {
        // Locks and all that waits have an atomic operation or more inside; an atomic access is one itself.
        if let Mark::Sync { kind, .. } = mark
            && !matches!(kind, SyncKind::Acquire | SyncKind::Release)
        {
            self.fence();
        }
        match *mark {
            Mark::Sync { kind, stamp, .. } if kind.releases() => {
                self.tell_rest();
                self.out.push_back(Item::Release);
                self.not_before(around, stamp);
            }
            Mark::Sync { stamp, .. } => {
                let number = self.acquired;
                self.acquired += 1;
                if let Some((_, waits)) = self.waits.next_if(|(waiting, _)| *waiting == number) {
                    self.tell_rest();
                    self.out.push_back(Item::Acquire(waits.clone()));
                }
                self.not_before(around, stamp);
            }
            Mark::Stamp { stamp } => self.not_before(around, stamp),
            Mark::Alloc { base, count, element_bytes, .. } => {
                self.begin_block(around, base, count.saturating_mul(element_bytes));
            }
            Mark::Realloc { base, bytes, old, .. } if base != old => self.begin_block(around, base, bytes),
            _ => {}
        }
    }

    /// Returns the number of an address's line.
    fn line_of(&self, address: u64) -> u64 {
        self.lines.number(self.process, address)
    }

    /// A block begins: the earlier block there has ended.
    fn begin_block(&mut self, around: &Around<'_>, base: u64, bytes: u64) {
        let Some(last) = bytes.checked_sub(1).and_then(|more| base.checked_add(more)) else { return };
        if base == 0 || self.is_quiet || self.placed.touches(base, last) {
            return;
        }
        let (first_line, last_line) = (self.line_of(base), self.line_of(last));
        for &line in around.contended.between(first_line, last_line) {
            let from = if line == first_line { self.lines.offset(base) } else { 0 };
            let to = if line == last_line { self.lines.offset(last) } else { self.lines.bytes - 1 };
            if let Some(line) = around.contended.number(line) {
                self.tell_load();
                self.out.push_back(Item::Ended { line, bytes: self.lines.bits(from, to + 1) });
            }
        }
    }

    /// A function accesses a variable of its frame: if another's lay there, that has ended.
    fn in_frame(&mut self, function: u32, line: u32, first: u64, end: u64) {
        for word in first / WORD..=(end - 1) / WORD {
            let before = self.frames.insert((line, word as u16), function);
            if before.is_some_and(|before| before != function) && !self.is_quiet {
                self.tell_load();
                let bytes = self.lines.bits(word * WORD, (word + 1) * WORD);
                self.out.push_back(Item::Ended { line, bytes });
            }
        }
    }

    /// Passes on the instructions before something that orders threads.
    fn tell_rest(&mut self) {
        self.tell_load();
        let instructions = self.instructions();
        if instructions > 0 && !self.is_quiet {
            self.out.push_back(Item::Work(instructions));
        }
    }

    /// Whole instructions that were not passed on yet; the remaining parts are kept.
    fn instructions(&mut self) -> u32 {
        let whole = self.parts / PARTS;
        self.parts %= PARTS;
        whole.min(u32::MAX.into()) as u32
    }

    /// Stores to this thread's own lines that were not passed on yet.
    fn private_stores(&mut self) -> u32 {
        std::mem::take(&mut self.stores).min(u32::MAX.into()) as u32
    }

    fn tell_load(&mut self) {
        if let Some(load) = self.load.take() {
            self.tell(load);
        }
    }

    fn tell(&mut self, step: Step) {
        match self.is_quiet {
            true => self.skipped += 1,
            false => self.out.push_back(Item::Step(step)),
        }
    }

    /// Reads an iteration of a loop that is one record, or all remaining ones if no other thread
    /// uses its lines.
    fn repeat(&mut self, around: &Around<'_>, most: u64) {
        let number = self.at.next_loop;
        let (iterations, range) = {
            let next = &self.batch.loops[number];
            (next.iterations, next.strides.start as usize..next.strides.end as usize)
        };
        let left = iterations - self.at.iteration;
        if self.at.iteration == 0 && !self.is_shared(around, range.clone(), iterations) {
            let facts =
                self.batch.strides[range].iter().map(|stride| around.sites[stride.access.site.0 as usize]);
            let (parts, stores) = facts.fold((0u64, 0u64), |(parts, stores), facts| {
                (parts + facts.before + facts.after, stores + u64::from(facts.act.writes()))
            });
            self.parts = self.parts.saturating_add(parts.saturating_mul(iterations));
            self.stores = self.stores.saturating_add(stores.saturating_mul(iterations));
            self.end_loop();
            return;
        }
        if left == 0 {
            self.end_loop();
            return;
        }
        let before = self.skipped;
        for at in range {
            let access = self.batch.strides[at].access_in(self.at.iteration);
            self.access(around, &access);
        }
        self.at.iteration += 1;
        let each = self.skipped - before;
        if self.is_quiet && each > 0 {
            // The iterations that follow are like this one.
            let more = (most.saturating_sub(self.skipped) / each).min(left - 1);
            self.at.iteration += more;
            self.skipped += more * each;
        }
    }

    fn end_loop(&mut self) {
        self.at.next_loop += 1;
        self.at.iteration = 0;
        if self.parts > MOST_WORK * PARTS {
            self.tell_rest();
        }
    }

    fn is_shared(&self, around: &Around<'_>, strides: std::ops::Range<usize>, iterations: u64) -> bool {
        self.batch.strides[strides].iter().any(|stride| {
            let last = stride.access_in(iterations.saturating_sub(1)).address;
            let (low, high) = (stride.access.address.min(last), stride.access.address.max(last));
            let high = high.saturating_add(u64::from(stride.access.bytes) - 1);
            self.placed.touches(low, high) || around.contended.any(self.line_of(low), self.line_of(high))
        })
    }

    #[inline]
    fn access(&mut self, around: &Around<'_>, access: &Access) {
        let facts = around.sites[access.site.0 as usize];
        self.parts += facts.before;
        if self.placed.moves(access.address, access.bytes) {
            for number in 0..self.placed.pieces.len() {
                let piece = self.placed.pieces[number];
                let act = if piece.is_link { Act::Load } else { facts.act };
                self.bytes(around, &Access { address: piece.address, bytes: piece.bytes, ..*access }, act);
            }
        } else {
            self.bytes(around, access, facts.act);
        }
        self.parts += facts.after;
        if facts.is_fenced {
            self.fence();
        }
        if self.parts > MOST_WORK * PARTS {
            self.tell_rest();
        }
    }

    #[inline]
    fn bytes(&mut self, around: &Around<'_>, access: &Access, act: Act) {
        let last = access.address.saturating_add(u64::from(access.bytes) - 1);
        for line in self.line_of(access.address)..=self.line_of(last) {
            match around.contended.number(line) {
                Some(number) => self.step(around, access, act, (line, number)),
                None => self.stores += u64::from(act.writes()),
            }
        }
    }

    /// A fence makes stores to shared lines wait until the lines have come. Its other costs are the
    /// same with and without such stores, so a fence without one before it is left out.
    fn fence(&mut self) {
        self.tell_load();
        if std::mem::take(&mut self.has_stored) {
            let instructions = self.instructions().max(Act::Fence.instructions());
            let (stores, place) = (self.private_stores(), self.places.of(SiteId(0)));
            self.tell(Step { act: Act::Fence, line: 0, bytes: 0, instructions, stores, place });
        }
    }

    /// An access to a line that others use.
    fn step(&mut self, around: &Around<'_>, access: &Access, act: Act, (line, number): (u64, u32)) {
        let start = line * self.lines.bytes;
        let address = self.line_of(access.address) * self.lines.bytes + self.lines.offset(access.address);
        let first = address.max(start) - start;
        let end = (address.saturating_add(access.bytes.into()) - start).min(self.lines.bytes);
        let bytes = self.lines.bits(first, end);
        let function = around.sites[access.site.0 as usize].frame;
        if function != 0 {
            self.in_frame(function, number, first, end);
        }
        let instructions = self.instructions().max(act.instructions());
        let place = match around.sites[access.site.0 as usize].is_borrowed {
            true => self.places.at(access.site, access.address + start.saturating_sub(address)),
            false => self.places.of(access.site),
        };
        self.has_stored |= act.writes();
        let stores = self.private_stores();
        let step = Step { act, line: number, bytes, instructions, stores, place };
        match (self.load, act) {
            (Some(load), Act::Store)
                if load.line == number && load.bytes == bytes && instructions <= INCREMENT =>
            {
                self.load = None;
                let instructions = load.instructions.saturating_add(instructions);
                let instructions = instructions.max(Act::Increment.instructions());
                let stores = load.stores.saturating_add(stores);
                self.tell(Step { act: Act::Increment, instructions, stores, ..step });
            }
            (_, Act::Load) => {
                self.tell_load();
                self.load = Some(step);
            }
            _ => {
                self.tell_load();
                self.tell(step);
            }
        }
    }
}
