//! One core, and the thread that runs on it.

use std::collections::VecDeque;

use super::branches::Branches;
use super::lines::{LevelTimes, Lines};
use super::prefetch::{SiteStep, Walks};
use super::stores::{Held, StoreBuffer};
use super::translations::Translations;
use super::wrong_path::{EarlyDispatch, WrongPaths};
use super::{Charged, Stall, TICKS, TimeSpec, ticks};
use crate::core_parts::tlb::Translation;

/// An access's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Writes past the caches: its lines go to memory.
    StorePast,
    /// Reads and writes in one step, or exchanges: waits for all before it.
    Atomic,
    /// Requests its line, and does not wait for it.
    Prefetch,
}

/// A load that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedFeed {
    /// Number of its site.
    pub site: u32,
    /// Executions of the site since, less than [`KEPT_LOADS`].
    pub back: u8,
}

/// Groups of loads. All groups are waited for, and of each the load that was executed last.
pub type FeedGroups = Box<[Box<[TimedFeed]>]>;

/// Loads of a site that are kept.
pub const KEPT_LOADS: usize = 4;

/// The facts of a site.
#[derive(Clone, Debug)]
pub struct TimedSite {
    /// Its number.
    pub number: u32,
    /// Effect of its accesses.
    pub act: Act,
    /// Set if a full fence stands beside it.
    pub is_fenced: bool,
    /// Instructions up to an access since the one before, its own included, and behind it, in parts
    /// of an instruction ([`TICKS`]).
    pub before: u64,
    /// Parts of instructions behind the access that are not counted with the next one.
    pub after: u64,
    /// The loads on which its address depends.
    pub address: FeedGroups,
    /// The loads whose values it stores.
    pub data: FeedGroups,
    /// The loads on which the branches behind it depend. `None` if they are not known; then the
    /// last load is taken.
    pub branches: Option<FeedGroups>,
}

/// A line of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedLine {
    /// The first of the access's bytes in it.
    pub address: u64,
    /// The level that serves it: 0 is the innermost; the number of levels is memory.
    pub level: u8,
}

/// One access, as the model sees it.
#[derive(Clone, Copy, Debug)]
pub struct TimedAccess<'a> {
    /// Its site.
    pub site: &'a TimedSite,
    /// First byte.
    pub address: u64,
    /// Bytes, at least 1.
    pub bytes: u32,
    /// Its lines, in ascending order, at least one.
    pub lines: &'a [TimedLine],
    /// The level that translated its pages.
    pub translation: Translation,
    /// Ticks of its translation alone.
    pub translation_ticks: u64,
}

/// A load that was executed.
#[derive(Clone, Copy, Default)]
struct Loaded {
    /// Its number among the accesses, from 1; 0 stands for no access.
    number: u64,
    /// Time at which it was done.
    done: u64,
    /// Time at which it was done on a wrong path.
    early: Option<u64>,
}

/// The state of a site in this thread.
#[derive(Clone, Copy, Default)]
struct SiteState {
    /// Its last loads, a ring.
    loads: [Loaded; KEPT_LOADS],
    /// The place of the last one.
    last: usize,
    step: SiteStep,
}

impl SiteState {
    fn push(&mut self, load: Loaded) {
        self.last = (self.last + 1) % KEPT_LOADS;
        self.loads[self.last] = load;
    }

    fn back(&self, loads: u8) -> Loaded {
        self.loads[(self.last + KEPT_LOADS - usize::from(loads)) % KEPT_LOADS]
    }
}

/// One core, and the thread that runs on it.
pub struct CoreTime {
    levels: Vec<LevelTimes>,
    instruction: u64,
    window_parts: u64,
    atomic: u64,
    fence: u64,
    mispredict: u64,
    line_shift: u32,
    page_shift: u32,
    /// Accesses so far, and parts of instructions.
    number: u64,
    parts: u64,
    /// Parts behind the last access.
    after: u64,
    /// Time at which the next instruction can be dispatched, apart from the window.
    front: u64,
    committed: u64,
    /// Parts of instructions up to an access, and its commit time: the accesses in the window.
    window: VecDeque<(u64, u64)>,
    /// Commit time of the access that left the window last.
    window_free: u64,
    /// Time at which the last load is done.
    loaded: u64,
    /// Time at which it is known which code comes behind the last access.
    decided: u64,
    branches: Branches,
    wrong_paths: WrongPaths,
    sites: Vec<SiteState>,
    stores: StoreBuffer,
    translations: Translations,
    lines: Lines,
    walks: Walks,
}

/// Waits of an access, by [`Stall`].
type Way = [u64; 10];

impl CoreTime {
    /// A core on which nothing has run.
    pub fn new(spec: &TimeSpec) -> CoreTime {
        let last = spec.latencies.len() - 1;
        let level = |(number, &latency): (usize, &f64)| {
            // A walk from front to back is never slower than misses that do not wait for each other.
            let is_near = number == 1 && last > 1;
            let overlap = if is_near { spec.overlap_l2 } else { spec.overlap_memory };
            let read = spec.read_line.min(latency / overlap);
            let read = if is_near { read.min(NEAR_LINE) } else { read };
            let write = read * spec.write_line / spec.read_line;
            let ahead = ((latency / read).ceil() as u64).clamp(1, MOST_AHEAD);
            LevelTimes { latency: ticks(latency), line: [ticks(read), ticks(write)], is_near, ahead }
        };
        CoreTime {
            levels: spec.latencies.iter().enumerate().map(level).collect(),
            instruction: ticks(spec.instruction),
            window_parts: ticks(spec.window),
            atomic: ticks(spec.atomic),
            fence: ticks(spec.fence),
            mispredict: ticks(spec.mispredict),
            line_shift: spec.line_bytes.trailing_zeros(),
            page_shift: spec.page_bytes.trailing_zeros(),
            number: 0,
            parts: 0,
            after: 0,
            front: 0,
            committed: 0,
            window: VecDeque::new(),
            window_free: 0,
            loaded: 0,
            decided: 0,
            branches: Branches::new(),
            wrong_paths: WrongPaths::new(ticks(spec.instruction), ticks(spec.window)),
            sites: Vec::new(),
            stores: StoreBuffer::new(spec.stores, TICKS),
            translations: Translations::new(spec),
            lines: Lines::new(
                spec.overlap_memory.round() as usize,
                ticks(spec.latencies[1] / spec.overlap_l2),
            ),
            walks: Walks::new(spec.line_bytes.trailing_zeros(), spec.page_bytes.trailing_zeros()),
        }
    }

    /// Returns the commit time of the last access, in ticks.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Executes an access; returns its charge.
    pub fn access(&mut self, access: &TimedAccess<'_>) -> Charged {
        let site = access.site;
        self.number += 1;
        let parts = self.after + site.before;
        self.after = site.after;
        self.parts += parts;
        while let Some(&(parts, committed)) = self.window.front() {
            if parts + self.window_parts > self.parts {
                break;
            }
            self.window_free = committed;
            self.window.pop_front();
        }
        let mut way = Way::default();
        let free = self.front + parts * self.instruction / TICKS;
        let mut dispatched = free.max(self.window_free);
        way[Stall::Window as usize] = dispatched - free;
        if let Some(expected) = self.branches.goes_wrong(site.number) {
            let begins = dispatched.max(self.decided + self.mispredict);
            way[Stall::Branch as usize] = begins - dispatched;
            let place = (self.parts, self.number);
            self.wrong_paths.begin(place, dispatched, self.decided, self.branches.path(expected));
            dispatched = begins;
        }
        self.front = dispatched;
        let early = self.wrong_paths.dispatched(self.parts, site.number);
        let early = early.and_then(|early| self.issued_early(access, early));
        let ready = self.fed(&site.address).max(dispatched);
        way[Stall::Chain as usize] = ready - dispatched;
        // The page is translated when the access is issued again.
        let issued = if early.is_some() { ready } else { self.translated(access, ready) };
        way[Stall::Walk as usize] = issued - ready;
        let mut charged = Charged::default();
        let done = match site.act {
            Act::Load => self.load(access, issued, early, &mut way, &mut charged),
            Act::Store | Act::StorePast => self.store(access, issued, &mut way),
            Act::Atomic => self.atomic(access, issued, &mut way),
            Act::Prefetch => self.prefetch(access, issued, &mut way),
        };
        let done = if site.is_fenced { self.fenced(done, &mut way) } else { done };
        // Whatever waits for nothing takes as long as a load that the first level answers, and commits in its turn.
        let before = (self.committed + parts / COMMIT_WIDTH).max(free + self.levels[0].latency);
        charged.instructions = before - self.committed;
        self.committed = before.max(done);
        self.window.push_back((self.parts, self.committed));
        self.decided = match &site.branches {
            Some(feeds) => self.fed(feeds).max(dispatched),
            None => self.loaded,
        };
        let mut left = self.committed - before;
        for stall in Stall::TAKEN {
            let taken = left.min(way[stall as usize]);
            charged.stalls[stall as usize] = taken;
            left -= taken;
        }
        charged.stalls[Stall::Latency as usize] = left;
        charged
    }

    /// Returns the time at which the loads of all groups are done.
    #[inline]
    fn fed(&self, feeds: &FeedGroups) -> u64 {
        feeds.iter().filter_map(|group| self.latest(group)).map(|load| load.done).max().unwrap_or(0)
    }

    /// Returns the load of a group that was executed last.
    #[inline]
    fn latest(&self, group: &[TimedFeed]) -> Option<Loaded> {
        let load = |feed: &TimedFeed| Some(self.sites.get(feed.site as usize)?.back(feed.back));
        group.iter().filter_map(load).max_by_key(|load| load.number)
    }

    /// Returns when an access was issued on a wrong path, if it was.
    fn issued_early(&mut self, access: &TimedAccess<'_>, early: EarlyDispatch) -> Option<u64> {
        let mut ready = early.time;
        for group in &access.site.address {
            if let Some(load) = self.latest(group) {
                // Behind the branch, only what the wrong path had as well is known to it.
                ready = ready.max(if load.number > early.number { load.early? } else { load.done });
            }
        }
        // A walk that ends later goes on, and the access that is issued for good waits for what is left of it.
        let least = ready + access.translation_ticks;
        (least < early.known).then(|| self.translated(access, ready)).filter(|issued| *issued < early.known)
    }

    /// Returns when the pages of an access that is ready at a time are translated.
    #[inline]
    fn translated(&mut self, access: &TimedAccess<'_>, ready: u64) -> u64 {
        let page = access.address >> self.page_shift;
        self.translations.translated(page, access.translation, ready, access.translation_ticks)
    }

    fn site(&mut self, site: u32) -> &mut SiteState {
        let site = site as usize;
        if self.sites.len() <= site {
            self.sites.resize(site + 1, SiteState::default());
        }
        &mut self.sites[site]
    }

    fn load(
        &mut self,
        access: &TimedAccess<'_>,
        issued: u64,
        early: Option<u64>,
        way: &mut Way,
        charged: &mut Charged,
    ) -> u64 {
        self.site(access.site.number).step.goes(access.address);
        let begins = match self.stores.held(access.address, access.bytes, issued) {
            Held::Nothing => None,
            Held::All(complete) => {
                charged.forwarded = 1;
                Some(issued.max(complete))
            }
            Held::Some(leaves) => {
                charged.blocked = 1;
                Some(issued.max(leaves))
            }
        };
        let (done, early) = match (begins, early) {
            (Some(begins), _) => {
                way[Stall::Forwarding as usize] = begins - issued;
                (begins + self.levels[0].latency, early.map(|early| early + self.levels[0].latency))
            }
            (None, Some(early)) => {
                let there = self.lines(access, early, true, Some(way));
                (there.max(issued + self.levels[0].latency), Some(there))
            }
            (None, None) => (self.lines(access, issued, false, Some(way)), None),
        };
        let load = Loaded { number: self.number, done, early };
        self.site(access.site.number).push(load);
        self.loaded = done;
        done
    }

    /// A store is done when it has its data and a place in the buffer.
    fn store(&mut self, access: &TimedAccess<'_>, issued: u64, way: &mut Way) -> u64 {
        self.site(access.site.number).step.goes(access.address);
        let complete = self.fed(&access.site.data).max(issued);
        way[Stall::Chain as usize] += complete - issued;
        let done = complete.max(self.stores.room());
        way[Stall::Stores as usize] = done - complete;
        let arrives = match access.site.act {
            Act::StorePast => self.lines_past(access, issued),
            _ => self.lines(access, issued, false, None),
        };
        let committed = self.committed.max(done);
        self.stores.push(access.address, access.bytes, complete, committed, arrives);
        done
    }

    /// An atomic update begins when everything before it is done, and has written when it is.
    fn atomic(&mut self, access: &TimedAccess<'_>, issued: u64, way: &mut Way) -> u64 {
        let complete = self.fed(&access.site.data).max(issued);
        way[Stall::Chain as usize] += complete - issued;
        let begins = complete.max(self.committed).max(self.stores.drained());
        way[Stall::Order as usize] = begins - complete + self.atomic;
        let done = self.lines(access, begins, false, Some(way)) + self.atomic;
        self.front = self.front.max(done);
        let load = Loaded { number: self.number, done, early: None };
        self.site(access.site.number).push(load);
        self.loaded = done;
        done
    }

    /// A prefetch is done when it has a port and a fill buffer, without which no line can be
    /// requested. The first load that needs the line waits until it is there.
    fn prefetch(&mut self, access: &TimedAccess<'_>, issued: u64, way: &mut Way) -> u64 {
        let mut asked = issued;
        for line in access.lines.iter().filter(|line| line.level > 0) {
            let number = line.address >> self.line_shift;
            if self.lines.take(number).is_none() {
                let level = self.levels[usize::from(line.level).min(self.levels.len() - 1)];
                asked = asked.max(self.lines.ask(number, issued, &level, false, false).start);
            }
        }
        way[Stall::Buffers as usize] = asked - issued;
        asked + self.levels[0].latency
    }

    /// A fence beside an access: later accesses wait until all stores have left.
    fn fenced(&mut self, done: u64, way: &mut Way) -> u64 {
        let after = done.max(self.committed).max(self.stores.drained()) + self.fence;
        way[Stall::Order as usize] += after - done;
        self.front = self.front.max(after);
        after
    }

    /// Begins to write lines past the caches: those lines of the access that are not for the
    /// innermost level. Returns when memory takes them. Nothing is read for them, so each takes as
    /// much of the bandwidth as a line that is read.
    fn lines_past(&mut self, access: &TimedAccess<'_>, time: u64) -> u64 {
        let begun = access.lines.iter().filter(|line| line.level > 0);
        let memory = self.levels[self.levels.len() - 1];
        begun.map(|_| self.lines.send(time, &memory)).max().unwrap_or(time)
    }

    /// Requests the lines of an access at a time; returns when they are there.
    fn lines(
        &mut self,
        access: &TimedAccess<'_>,
        time: u64,
        is_early: bool,
        mut way: Option<&mut Way>,
    ) -> u64 {
        let is_write = way.is_none();
        let mut done = time;
        for line in access.lines {
            let number = line.address >> self.line_shift;
            let first = self.levels[0].latency;
            if line.level == 0 {
                done = done.max(self.lines.arrival(number, time).max(time) + first);
                continue;
            }
            let level = self.levels[usize::from(line.level).min(self.levels.len() - 1)];
            let arrives = match self.lines.take(number) {
                Some(arrives) => {
                    if let Some(way) = &mut way {
                        let waits = arrives.saturating_sub(time);
                        way[Stall::Bandwidth as usize] = way[Stall::Bandwidth as usize].max(waits);
                    }
                    arrives.max(time) + first
                }
                None => {
                    let request = self.lines.ask(number, time, &level, is_write, is_early);
                    if let Some(way) = &mut way {
                        let (buffers, bandwidth) = (Stall::Buffers as usize, Stall::Bandwidth as usize);
                        way[buffers] = way[buffers].max(request.start - time);
                        way[bandwidth] = way[bandwidth].max(request.departs - request.start);
                    }
                    request.arrives
                }
            };
            done = done.max(arrives);
            self.fetch_ahead(access, line.address, time, &level, is_write);
        }
        done
    }

    /// Fetches lines that are likely to be needed next, of the level that had the line needed now.
    fn fetch_ahead(
        &mut self,
        access: &TimedAccess<'_>,
        address: u64,
        time: u64,
        level: &LevelTimes,
        is_write: bool,
    ) {
        let (line_bytes, line_shift, page_shift) = (1 << self.line_shift, self.line_shift, self.page_shift);
        let step = &mut self.site(access.site.number).step;
        let ahead = match step.is_stream() {
            true => Some(step.ahead(level.ahead, line_bytes, page_shift)),
            false => self.walks.goes(address, level.ahead),
        };
        let Some(ahead) = ahead else { return };
        for count in 0..ahead.count as i64 {
            let next = ahead.next.wrapping_add((ahead.step * count) as u64);
            self.lines.fetch(next >> line_shift, time, level, is_write);
        }
    }
}

/// Instructions that commit in a cycle, once what they waited for is there: eight in the Golden
/// Cove core (Intel's optimization manual) and in AMD's family 19h, and assumed for all.
/// Instructions in the shadow of a wait are charged this, as a timer sees them there.
const COMMIT_WIDTH: u64 = 8;

/// Cycles from one line to the next that the second level hands over ahead.
const NEAR_LINE: f64 = 2.0;

/// Lines that are fetched ahead at most.
const MOST_AHEAD: u64 = 96;
