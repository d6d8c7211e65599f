//! A window of a trace: only its accesses count, but all accesses go through the caches.
//!
//! ```text
//!  replay order  ─ 0 ────── from ───────────── to ──────►
//!  caches          warmed    warmed, counted    (the end, if accesses are counted)
//! ```
//! A simulator of its own stands between the profiler and its caches: it sees each access, numbered
//! as annotated rows are ([`crate::drive::annotate`]), and keeps the counts of those inside by
//! cell.

use std::ops::{ControlFlow, Range};

use memlode_replay::{Piece, Replayed};
use memlode_simulate::{Hierarchy, LevelCounters, LevelSpec, MemRef, Touched, touch_lines};
use memlode_trace::Clock;

use crate::count::engine::{Engine, LoopMode, NoLane};
use crate::count::profiler::Profiler;
use crate::counts::Counts;
use crate::drive::simulation::{Known, Simulation, watched};
use crate::drive::simulators::{ImpossibleMachine, caches};
use crate::drive::times::Times;
use crate::profile::Profile;

/// Which accesses count.
#[derive(Clone, Debug)]
pub enum Window {
    /// Accesses by their number in replay order, from 0.
    Accesses(Range<u64>),
    /// Accesses by the time in nanoseconds of their thread's latest time stamp.
    Nanoseconds(Range<u64>, Clock),
}

impl Simulation<'_> {
    /// Counts the accesses in a window of a trace without gaps. One thread simulates, access by
    /// access; the others decode.
    ///
    /// # Errors
    /// That the machine's caches cannot be simulated.
    pub fn within(
        self,
        window: Window,
        mut watch: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(Profile, Replayed), ImpossibleMachine> {
        let Simulation { source, machine, threads, .. } = self;
        let mut profiler = Profiler::new(&[], Windowed::new(caches(machine, machine.cores)?, window));
        let (mut known, mut times, mut done) = (Known::default(), Times::default(), 0);
        let replayed = source.interleave(threads - 1, |piece: &Piece<'_>| {
            known.follow(source, &mut profiler);
            let Some(time) = times.at(piece) else { return ControlFlow::Continue(()) };
            profiler.caches.begin(*time);
            profiler.observe_piece(piece);
            *time = profiler.caches.time;
            match profiler.caches.is_over() {
                true => ControlFlow::Break(()),
                false => watched(piece, &mut done, &mut watch),
            }
        });
        let (mut profile, windowed) = profiler.finish_with_caches();
        let (counts, write_backs) = windowed.finish();
        for cell in &mut profile.cells {
            cell.counts = counts.get(cell.tag.index()).copied().unwrap_or_default();
        }
        profile.cells.retain(|cell| cell.counts.accesses() > 0);
        profile.recount(&write_backs);
        Ok((profile, replayed))
    }
}

/// Caches that count the accesses in the window.
struct Windowed {
    caches: Hierarchy,
    /// Lines that memory has served.
    touched: Touched,
    window: Window,
    /// Number of the next access.
    sequence: u64,
    /// The access before which the next one of a window of accesses begins or ends.
    next_end: u64,
    /// Time stamp of the current stream.
    time: u64,
    is_inside: bool,
    /// Indexed by cell.
    counts: Vec<Counts>,
    /// Indexed by level: write-backs when the window was entered.
    write_backs: Vec<u64>,
    write_backs_before: Vec<u64>,
}

impl Windowed {
    fn new(caches: Hierarchy, window: Window) -> Windowed {
        let none = vec![0; caches.counters().len()];
        let next_end = match &window {
            Window::Accesses(range) => range.start,
            Window::Nanoseconds(..) => u64::MAX,
        };
        Windowed {
            touched: Touched::new(caches.line_bytes()),
            caches,
            window,
            sequence: 0,
            next_end,
            time: 0,
            is_inside: false,
            counts: Vec::new(),
            write_backs: none.clone(),
            write_backs_before: none,
        }
    }

    /// Switches to another stream, at this time.
    fn begin(&mut self, time: u64) {
        self.time = time;
        if let Window::Nanoseconds(range, clock) = &self.window {
            let is_inside = range.contains(&clock.ns(time));
            self.iteration(is_inside);
        }
    }

    /// Returns whether nothing more will count.
    fn is_over(&self) -> bool {
        matches!(&self.window, Window::Accesses(range) if self.sequence >= range.end)
    }

    /// Enters the window, or leaves it.
    fn iteration(&mut self, is_inside: bool) {
        if is_inside == self.is_inside {
            return;
        }
        self.is_inside = is_inside;
        let now = self.caches.counters().into_iter().map(|level| level.write_backs);
        let pairs = self.write_backs.iter_mut().zip(&mut self.write_backs_before);
        for ((sum, before), now) in pairs.zip(now) {
            match is_inside {
                true => *before = now,
                false => *sum += now - *before,
            }
        }
    }

    /// A window of accesses begins or ends here.
    #[cold]
    fn iteration_at_end(&mut self) {
        if let Window::Accesses(range) = &self.window {
            let is_inside = range.contains(&self.sequence);
            self.next_end = if is_inside { range.end } else { u64::MAX };
            self.iteration(is_inside);
        }
    }

    /// The next access comes.
    #[inline(always)]
    fn comes(&mut self) {
        if self.sequence == self.next_end {
            self.iteration_at_end();
        }
        self.sequence += 1;
    }

    /// Counts an access, if it is inside.
    fn add(&mut self, access: MemRef, depth: u8, is_first: bool) {
        if self.is_inside {
            let cell = access.tag.index();
            if cell >= self.counts.len() {
                self.counts.resize(cell + 1, Counts::default());
            }
            self.counts[cell].add(depth, access.is_write, 1);
            self.counts[cell].first_touches += u64::from(is_first);
        }
    }

    /// The counts by cell, and the write-backs of each level.
    fn finish(mut self) -> (Vec<Counts>, Vec<u64>) {
        self.iteration(false);
        (self.counts, self.write_backs)
    }
}

impl Engine for Windowed {
    const LOOPS: LoopMode = LoopMode::Unrolled;
    type Lane<'e> = NoLane;

    fn lane(&mut self, _core: usize) -> Option<NoLane> {
        None
    }

    fn store_past(&mut self, access: MemRef, depth: u8, _begun: u32) {
        self.comes();
        self.add(access, depth, false);
    }

    fn access(&mut self, access: MemRef) -> Option<u8> {
        self.comes();
        let depth = Hierarchy::access(&mut self.caches, access);
        let mut is_first = false;
        if usize::from(depth) == self.caches.levels().len() {
            for (address, _) in touch_lines(access.address, access.bytes.into(), self.caches.line_bytes()) {
                is_first |= self.touched.is_first(address);
            }
        }
        self.add(access, depth, is_first);
        Some(depth)
    }

    fn counters(&self) -> Vec<LevelCounters> {
        self.caches.counters()
    }

    fn first_level(&self) -> &LevelSpec {
        Engine::first_level(&self.caches)
    }

    fn cores(&self) -> u32 {
        Engine::cores(&self.caches)
    }

    fn stamp(&mut self, stamp: u64) {
        self.begin(self.time.max(stamp));
    }
}
