//! Loops that are one record: simulated by line and not by access, where the result is the same
//! ([`Schedule`]); or passed as they are to a simulator that takes loops.

use std::ops::Range;

use memlode_replay::{Dealt, LoopPart, strided};
use memlode_simulate::{
    MOST_STRIDES, MemRef, Periods, Request, Schedule, ShownAccess, Tag, TouchedBits, touch_lines,
    touched_bits,
};
use memlode_trace::event::{Access, Stride};

use crate::count::engine::{Engine, LoopMode};
use crate::count::loop_scratch::{Advancing, SHOWN};
use crate::count::profiler::{Origin, Profiler, Stream};
use crate::objects::Objects;

/// Accesses that are written out at a time.
const UNROLLED: usize = 256;

/// Lines that the caches are still to be shown.
struct Shown<'s> {
    requests: &'s mut [Request; SHOWN],
    count: usize,
}

/// Loops of fewer iterations gain nothing.
const FEWEST_ITERATIONS: u64 = 4;

/// No cell has this number.
const SEVERAL: u32 = u32::MAX;

impl<E: Engine> Profiler<E> {
    /// Iterations of a loop, and its strides there.
    pub(crate) fn repeat(
        &mut self,
        stream: &mut Stream,
        LoopPart { iterations, before, dealt, .. }: LoopPart<'_>,
        strides: &[Stride],
    ) {
        if self.pass_on(stream, iterations, strides) {
            return;
        }
        let (schedule, begins) = match dealt {
            // The loop's first iteration was dealt out as accesses.
            Some(Dealt::Scheduled(schedule)) => (Some(schedule.clone()), before > 0),
            Some(Dealt::Aligned) => (None, true),
            None if self.gaps.is_none() && E::LOOPS == LoopMode::Lines => {
                strided(strides, &mut self.loops.strided);
                (self.loops.schedules.of(&self.loops.strided, iterations).cloned(), true)
            }
            None => (None, true),
        };
        match schedule {
            Some(schedule) => {
                self.by_line(stream, (iterations, begins), strides, &schedule);
            }
            None => self.unroll(stream, iterations, strides),
        }
    }

    /// Passes the loop to a simulator that takes loops, if each of its strides is of one cell.
    /// Returns whether it did.
    fn pass_on(&mut self, stream: &mut Stream, iterations: u64, strides: &[Stride]) -> bool {
        if self.gaps.is_some()
            || E::LOOPS != LoopMode::Whole
            || iterations < FEWEST_ITERATIONS
            || strides.len() > MOST_STRIDES
        {
            return false;
        }
        let mut passed = std::mem::take(&mut self.loops.strided);
        strided(strides, &mut passed);
        let is_whole = Schedule::is_possible(&passed, iterations, self.loops.schedules.shape())
            && strides.iter().zip(&mut passed).all(|(stride, passed)| {
                passed.tag = Tag::new(self.cell(stream, &stride.access));
                passed.address = stream.origin.space.place(passed.address);
                self.is_of_one_cell(&mut stream.objects, stride, (0, iterations - 1))
            });
        if is_whole {
            passed.iter().for_each(|strided| self.cells.count_hits(strided.tag.number(), iterations));
            self.caches.repeat(stream.origin.core, iterations, &passed);
            if self.caches.is_full() {
                self.settle();
            }
        }
        self.loops.strided = passed;
        is_whole
    }

    /// Returns whether a stride's accesses from one iteration to another are all of the cell that
    /// one of them is of.
    fn is_of_one_cell(&self, objects: &mut Objects, stride: &Stride, (from, to): (u64, u64)) -> bool {
        let ends = [from, to].map(|iteration| stride.access_in(iteration).address);
        self.is_fixed(stride.access.site) || objects.are_one(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    /// All iterations, access by access.
    fn unroll(&mut self, stream: &mut Stream, iterations: u64, strides: &[Stride]) {
        let mut unrolled = std::mem::take(&mut self.loops.unrolled);
        for iteration in 0..iterations {
            // Accesses that have lines of several shards are not in loops that are dealt out.
            let accesses = strides.iter().map(|stride| stride.access_in(iteration));
            unrolled.extend(accesses.filter(|access| self.is_own(access.address)));
            if unrolled.len() >= UNROLLED {
                self.accesses(stream, &unrolled);
                unrolled.clear();
            }
        }
        self.accesses(stream, &unrolled);
        unrolled.clear();
        self.loops.unrolled = unrolled;
    }

    /// Shows the caches the lines of this shard that the schedule selects. The first shard counts
    /// all accesses, as hits until more is known. If the loop does not begin here, the first
    /// iteration has been done.
    fn by_line(
        &mut self,
        stream: &mut Stream,
        (iterations, begins): (u64, bool),
        strides: &[Stride],
        schedule: &Schedule,
    ) {
        let from = u64::from(!begins);
        let mut cells = std::mem::take(&mut self.loops.cells);
        cells.clear();
        for stride in strides {
            let cell = self.cell(stream, &stride.access_in(from));
            let is_one = self.is_of_one_cell(&mut stream.objects, stride, (from, iterations - 1));
            cells.push(if is_one { cell } else { SEVERAL });
            if !self.counts_for_all() {
                continue;
            }
            if is_one {
                self.cells.count_hits(cell, iterations - from);
            } else {
                for iteration in from..iterations {
                    let cell = self.cell(stream, &stride.access_in(iteration));
                    self.cells.count_hits(cell, 1);
                }
            }
            self.caches.count_hits(stride.is_write, iterations - from);
        }
        let walk = LineWalk { origin: stream.origin, begins, iterations, strides, cells: &cells, schedule };
        if !begins {
            for line in walk.first_lines(self.line_bytes) {
                let touched = || walk.touched(line, self.line_bytes, Tag::default());
                self.caches.touch_more(stream.origin.core, line, touched);
            }
        }
        self.show_loop(walk, stream);
        self.loops.cells = cells;
    }

    /// Returns whether a loop's accesses all stay in user space, and have no more bytes than a
    /// line.
    pub(crate) fn may_schedule(&mut self, strides: &[Stride], iterations: u64) -> bool {
        strided(strides, &mut self.loops.strided);
        Schedule::is_possible(&self.loops.strided, iterations, self.loops.schedules.shape())
    }

    /// Simulates a loop by its strides, each of one of the cells. Returns false if that is not
    /// possible, and accesses have to be simulated one by one.
    pub(crate) fn repeat_as(
        &mut self,
        stream: &mut Stream,
        iterations: u64,
        strides: &[Stride],
        cells: &[u32],
    ) -> bool {
        if self.gaps.is_some() || iterations < FEWEST_ITERATIONS || !self.may_schedule(strides, iterations) {
            return false;
        }
        if E::LOOPS == LoopMode::Whole {
            for (strided, &cell) in self.loops.strided.iter_mut().zip(cells) {
                (strided.tag, strided.address) = (Tag::new(cell), stream.origin.space.place(strided.address));
            }
            self.caches.repeat(stream.origin.core, iterations, &self.loops.strided);
            cells.iter().for_each(|&cell| self.cells.count_hits(cell, iterations));
            if self.caches.is_full() {
                self.settle();
            }
            return true;
        }
        if E::LOOPS != LoopMode::Lines {
            return false;
        }
        let Some(schedule) = self.loops.schedules.of(&self.loops.strided, iterations).cloned() else {
            return false;
        };
        strides.iter().for_each(|stride| self.caches.count_hits(stride.is_write, iterations));
        cells.iter().for_each(|&cell| self.cells.count_hits(cell, iterations));
        let walk =
            LineWalk { origin: stream.origin, begins: true, iterations, strides, cells, schedule: &schedule };
        self.show_loop(walk, stream);
        true
    }

    /// Shows the caches the accesses that the schedule of a loop selects.
    fn show_loop(&mut self, walk: LineWalk<'_>, stream: &mut Stream) {
        let mut room = std::mem::take(&mut self.loops.room_to_show);
        let Some((requests, _)) = room.split_first_chunk_mut() else { return };
        let shown = Shown { requests, count: 0 };
        if walk.schedule.is_of_single_lines() && !walk.cells.contains(&SEVERAL) {
            self.show_single(walk, shown);
        } else {
            self.show_any(walk, shown, stream);
        }
        self.loops.room_to_show = room;
    }

    /// Shows the accesses of a loop whose strides are each of one cell, and whose lines are entered
    /// one by one.
    #[inline(never)]
    fn show_single(&mut self, walk: LineWalk<'_>, mut shown: Shown<'_>) {
        let LineWalk { origin, strides, cells, .. } = walk;
        let request =
            |(stride, &cell): (&Stride, &u32)| Request::new(origin.core, 0, stride.is_write, Tag::new(cell));
        let mut requests = std::mem::take(&mut self.loops.requests);
        requests.extend(strides.iter().zip(cells).map(request));
        let mut advancing = std::mem::take(&mut self.loops.advancing);
        walk.each(self.line_bytes, |periods| {
            advancing.clear();
            periods.first(|ShownAccess { stride, address, .. }, advance| {
                advancing.push(Advancing { address, advance, request: requests[stride] });
            });
            for _ in 0..periods.count() {
                for part in advancing.chunks_mut(SHOWN) {
                    if shown.count + part.len() > SHOWN {
                        self.show(walk, &mut shown);
                    }
                    if self.shard.1.count() == 1 {
                        shown.add_all(part, |_| true);
                    } else {
                        let (own, owner) = (self.shard.0 as u8, self.shard.1.owner());
                        shown.add_all(part, |address| owner(address) == own);
                    }
                }
            }
        });
        self.show(walk, &mut shown);
        self.loops.advancing = advancing;
        requests.clear();
        self.loops.requests = requests;
    }

    /// Shows any loop.
    #[inline(never)]
    fn show_any(&mut self, walk: LineWalk<'_>, mut shown: Shown<'_>, stream: &mut Stream) {
        let LineWalk { origin, strides, cells, .. } = walk;
        let line_bytes = self.line_bytes;
        let mut show = |touch: ShownAccess| {
            if !self.is_own(touch.address) {
                return;
            }
            let stride = &strides[touch.stride];
            let cell = match cells[touch.stride] {
                SEVERAL => self.cell(stream, &stride.access_in(touch.iteration)),
                cell => cell,
            };
            if touch.lines > 1 || shown.count == SHOWN {
                self.show(walk, &mut shown);
            }
            if touch.lines > 1 {
                self.show_both(walk, touch.address, stride.is_write, cell);
            } else {
                shown.requests[shown.count] =
                    Request::new(origin.core, touch.address, stride.is_write, Tag::new(cell));
                shown.count += 1;
            }
        };
        walk.each(line_bytes, |periods| periods.all(&mut show));
        self.show(walk, &mut shown);
    }

    /// Shows the caches the selected accesses.
    #[inline(always)]
    fn show(&mut self, walk: LineWalk<'_>, shown: &mut Shown<'_>) {
        self.show_all(walk, &shown.requests[..shown.count]);
        shown.count = 0;
    }

    #[inline(never)]
    fn show_all(&mut self, walk: LineWalk<'_>, requests: &[Request]) {
        self.caches.show(walk.origin.core, requests, |line, bytes, tag| walk.touched(line, bytes, tag));
        if self.caches.is_full() {
            self.settle();
        }
    }

    /// An access that may be the first to both of two lines, of which this is the first one. It is
    /// counted already.
    #[inline(never)]
    fn show_both(&mut self, walk: LineWalk<'_>, address: u64, is_write: bool, cell: u32) {
        let (core, tag) = (walk.origin.core as u32, Tag::new(cell));
        let access = MemRef { address, bytes: 0, core, tag, is_write };
        self.caches.show_both(access, |line, bytes, tag| walk.touched(line, bytes, tag));
        if self.caches.is_full() {
            self.settle();
        }
    }
}

impl Shown<'_> {
    /// Adds lines that are this shard's, for which there is room, and lets all go on to the next
    /// period.
    #[inline(always)]
    fn add_all(&mut self, lines: &mut [Advancing], is_own: impl Fn(u64) -> bool) {
        let mut count = self.count;
        for line in lines {
            self.requests[count % SHOWN] = line.request.at(line.address);
            count += usize::from(is_own(line.address));
            line.address = line.address.wrapping_add_signed(line.advance);
        }
        self.count = count;
    }
}

/// A loop that is simulated by line.
#[derive(Clone, Copy)]
struct LineWalk<'l> {
    origin: Origin,
    begins: bool,
    iterations: u64,
    strides: &'l [Stride],
    /// The cell of each, or [`SEVERAL`].
    cells: &'l [u32],
    schedule: &'l Schedule,
}

impl LineWalk<'_> {
    /// [`Schedule::walk`] through the lines of the process.
    #[inline(always)]
    fn each(self, line_bytes: u32, each: impl FnMut(Periods<'_>)) {
        let LineWalk { origin, begins, iterations, strides, schedule, .. } = self;
        let mask = !(u64::from(line_bytes) - 1);
        let line_of = |stride: usize| origin.space.place(strides[stride].access.address) & mask;
        schedule.walk(begins, iterations, line_of, each);
    }

    /// The bits of a line that any access of the loop touches, since all accesses after the one
    /// that enters the line may hit; and the bits of the access with a tag that enters it, if it
    /// touches no other line.
    fn touched(self, line: u64, line_bytes: u32, tag: Tag) -> TouchedBits {
        let LineWalk { origin, iterations, strides, cells, .. } = self;
        let mut all = 0;
        // Whether the cell is not surely the tag's, and the iteration, the less the better; and the bits of the access.
        let mut asked: Option<((bool, u64), u64)> = None;
        for (stride, &cell) in strides.iter().zip(cells) {
            let first = origin.space.place(stride.access.address);
            let bytes = stride.access.bytes.max(1);
            let iterations = iterations_that_touch(
                stride.step as i64,
                iterations,
                first,
                (line, line_bytes.into()),
                bytes.into(),
            );
            let touch = |iteration: u64| {
                let address = origin.space.place(stride.access_in(iteration).address);
                touched_bits(line, line_bytes, address, bytes.into())
            };
            let is_own = cell == tag.number();
            let rank = (!is_own, iterations.start);
            if !iterations.is_empty()
                && (is_own || cell == SEVERAL)
                && asked.is_none_or(|(best, _)| rank < best)
            {
                let bits = touch(iterations.start);
                let is_whole = bits.count_ones() * line_bytes.div_ceil(64) >= bytes;
                asked = Some((rank, if is_whole { bits } else { 0 }));
            }
            all |= match (stride.step as i64).unsigned_abs() <= bytes.into() {
                // Without gaps: all between the lowest and the highest byte.
                true if !iterations.is_empty() => {
                    let ends = [iterations.start, iterations.end - 1]
                        .map(|iteration| stride.access_in(iteration).address);
                    let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
                    touched_bits(line, line_bytes, origin.space.place(low), high - low + u64::from(bytes))
                }
                _ => iterations.fold(0, |bits, iteration| bits | touch(iteration)),
            };
        }
        TouchedBits { all, asked: asked.map_or(0, |(_, bits)| bits) }
    }

    /// The lines of the loop's first iteration, by their addresses.
    fn first_lines(self, line_bytes: u32) -> impl Iterator<Item = u64> {
        let touch = move |stride: &Stride| {
            let Access { address, bytes, .. } = stride.access;
            touch_lines(self.origin.space.place(address), bytes.into(), line_bytes)
        };
        self.strides.iter().flat_map(touch).map(move |(address, _)| address & !(u64::from(line_bytes) - 1))
    }
}

/// The iterations in which accesses that begin at `first` and go a step each time touch a line.
fn iterations_that_touch(
    step: i64,
    iterations: u64,
    first: u64,
    (line, line_bytes): (u64, u64),
    bytes: u64,
) -> Range<u64> {
    // From the access's first byte to the line's ends: the access touches it if it begins between them. All are in one half of the
    // addresses, so differences are right as they wrap.
    let least = line.wrapping_sub(bytes - 1).wrapping_sub(first) as i64;
    let most = line.wrapping_add(line_bytes - 1).wrapping_sub(first) as i64;
    let is_there = least <= 0 && 0 <= most;
    let (from, to) = match step {
        // One that goes so far comes back never.
        0 | i64::MIN => (0, i64::from(is_there)),
        step if step > 0 => (-(-least).div_euclid(step), most.div_euclid(step) + 1),
        step => (-most.div_euclid(-step), (-least).div_euclid(-step) + 1),
    };
    let within = |iteration: i64| iteration.max(0).unsigned_abs().min(iterations);
    within(from)..within(to)
}
