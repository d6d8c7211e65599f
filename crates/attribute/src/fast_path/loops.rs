//! Loops that are one record, simulated by line and not by access, where that gives the same ([`Schedule`]); or left as they are to a
//! simulator that takes them.

use memlode_replay::{Dealt, LoopPart, strided};
use memlode_simulate::{MOST_STRIDES, MemRef, Periods, Request, Schedule, ShownAccess, Tag};
use memlode_trace::event::Stride;

use crate::engine::{Engine, LoopMode};
use crate::objects::Objects;
use crate::profile::{Origin, Profiler};
use crate::stacks::ThreadStack;

/// Accesses that are written out at a time.
const UNROLLED: usize = 256;

/// Lines that are shown together.
const SHOWN: usize = 256;

/// Lines that the caches are still to be shown.
struct Shown<'s> {
    requests: &'s mut [Request; SHOWN],
    count: usize,
}

/// Room for [`Shown`].
pub(crate) fn room_to_show() -> Vec<Request> {
    vec![Request::new(0, 0, false, Tag::default()); SHOWN]
}

/// Loops of fewer turns gain nothing.
const FEWEST_TURNS: u64 = 4;

/// No cell has this number.
const SEVERAL: u32 = u32::MAX;

impl<E: Engine> Profiler<E> {
    /// Turns of a loop, and its strides there.
    pub(crate) fn repeat(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        LoopPart { turns, before, dealt, .. }: LoopPart<'_>,
        strides: &[Stride],
    ) {
        if self.pass_on(origin, objects, stack, turns, strides) {
            return;
        }
        let (schedule, begins) = match dealt {
            // The loop's first turn was dealt out as accesses.
            Some(Dealt::Scheduled(schedule)) => (Some(schedule.clone()), before > 0),
            Some(Dealt::Aligned) => (None, true),
            None if self.gaps.is_none() && E::LOOPS == LoopMode::Lines => {
                strided(strides, &mut self.strided);
                (self.schedules.of(&self.strided, turns).cloned(), true)
            }
            None => (None, true),
        };
        match schedule {
            Some(schedule) => {
                self.by_line(origin, objects, stack, (turns, begins), strides, &schedule);
            }
            None => self.unroll(origin, objects, stack, turns, strides),
        }
    }

    /// Leaves the loop to a simulator that takes loops, if each of its strides is of one cell. Says whether it did.
    fn pass_on(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        turns: u64,
        strides: &[Stride],
    ) -> bool {
        if self.gaps.is_some()
            || E::LOOPS != LoopMode::Whole
            || turns < FEWEST_TURNS
            || strides.len() > MOST_STRIDES
        {
            return false;
        }
        let mut passed = std::mem::take(&mut self.strided);
        strided(strides, &mut passed);
        let is_whole = Schedule::is_possible(&passed, turns, self.schedules.shape())
            && strides.iter().zip(&mut passed).all(|(stride, passed)| {
                passed.tag = Tag::new(self.cell(origin, objects, stack, &stride.access));
                passed.address = origin.space.place(passed.address);
                self.is_of_one_cell(objects, stride, (0, turns - 1))
            });
        if is_whole {
            passed.iter().for_each(|strided| self.count_hits_of(strided.tag.number(), turns));
            self.caches.repeat(origin.core, turns, &passed);
            if self.caches.is_full() {
                self.settle();
            }
        }
        self.strided = passed;
        is_whole
    }

    /// Returns whether a stride's accesses from one turn to another are all of the cell that one of them is of.
    fn is_of_one_cell(&self, objects: &mut Objects, stride: &Stride, (from, to): (u64, u64)) -> bool {
        let ends = [from, to].map(|turn| stride.access_in(turn).address);
        self.is_fixed(stride.access.site) || objects.are_one(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    /// All turns, access by access.
    fn unroll(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        turns: u64,
        strides: &[Stride],
    ) {
        let mut unrolled = std::mem::take(&mut self.unrolled);
        for turn in 0..turns {
            // Accesses that have lines of several shards are not in loops that are dealt out.
            let accesses = strides.iter().map(|stride| stride.access_in(turn));
            unrolled.extend(accesses.filter(|access| self.is_own(access.address)));
            if unrolled.len() >= UNROLLED {
                self.accesses(origin, objects, stack, &unrolled);
                unrolled.clear();
            }
        }
        self.accesses(origin, objects, stack, &unrolled);
        unrolled.clear();
        self.unrolled = unrolled;
    }

    /// Shows the caches what the schedule says, of the lines of this shard; the first shard counts all accesses, as hits as long as
    /// nothing else is known. The first turn is done if the loop does not begin here.
    fn by_line(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        (turns, begins): (u64, bool),
        strides: &[Stride],
        schedule: &Schedule,
    ) {
        let from = u64::from(!begins);
        let mut cells = std::mem::take(&mut self.cells_of_loop);
        cells.clear();
        for stride in strides {
            let cell = self.cell(origin, objects, stack, &stride.access_in(from));
            let is_one = self.is_of_one_cell(objects, stride, (from, turns - 1));
            cells.push(if is_one { cell } else { SEVERAL });
            if !self.counts_for_all() {
                continue;
            }
            if is_one {
                self.count_hits_of(cell, turns - from);
            } else {
                for turn in from..turns {
                    let cell = self.cell(origin, objects, stack, &stride.access_in(turn));
                    self.count_hits_of(cell, 1);
                }
            }
            self.caches.count_hits(stride.is_write, turns - from);
        }
        self.show_loop(LineWalk { origin, begins, turns, strides, schedule }, &cells, objects, stack);
        self.cells_of_loop = cells;
    }

    /// Returns whether a loop's accesses all stay in user space, and have no more bytes than a line.
    pub(crate) fn may_schedule(&mut self, strides: &[Stride], turns: u64) -> bool {
        strided(strides, &mut self.strided);
        Schedule::is_possible(&self.strided, turns, self.schedules.shape())
    }

    /// A loop that goes where its strides say, each of which is of one of the cells. Says whether it could do better than access by access,
    /// and has.
    pub(crate) fn repeat_as(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        turns: u64,
        strides: &[Stride],
        cells: &[u32],
    ) -> bool {
        if self.gaps.is_some() || turns < FEWEST_TURNS || !self.may_schedule(strides, turns) {
            return false;
        }
        if E::LOOPS == LoopMode::Whole {
            for (strided, &cell) in self.strided.iter_mut().zip(cells) {
                (strided.tag, strided.address) = (Tag::new(cell), origin.space.place(strided.address));
            }
            self.caches.repeat(origin.core, turns, &self.strided);
            cells.iter().for_each(|&cell| self.count_hits_of(cell, turns));
            if self.caches.is_full() {
                self.settle();
            }
            return true;
        }
        if E::LOOPS != LoopMode::Lines {
            return false;
        }
        let Some(schedule) = self.schedules.of(&self.strided, turns).cloned() else { return false };
        strides.iter().for_each(|stride| self.caches.count_hits(stride.is_write, turns));
        cells.iter().for_each(|&cell| self.count_hits_of(cell, turns));
        let walk = LineWalk { origin, begins: true, turns, strides, schedule: &schedule };
        self.show_loop(walk, cells, objects, stack);
        true
    }

    /// Shows the caches what the schedule of a loop says.
    fn show_loop(
        &mut self,
        walk: LineWalk<'_>,
        cells: &[u32],
        objects: &mut Objects,
        stack: &mut ThreadStack,
    ) {
        let schedule = walk.schedule;
        let mut room = std::mem::take(&mut self.room_to_show);
        let Some((requests, _)) = room.split_first_chunk_mut() else { return };
        let shown = Shown { requests, count: 0 };
        if schedule.is_of_single_lines() && !cells.contains(&SEVERAL) {
            self.show_single(walk, cells, shown);
        } else {
            self.show_any(walk, cells, shown, objects, stack);
        }
        self.room_to_show = room;
    }

    /// Shows a loop each of whose strides is of one cell, and whose lines are entered one by one.
    #[inline(never)]
    fn show_single(&mut self, walk: LineWalk<'_>, cells: &[u32], mut shown: Shown<'_>) {
        let LineWalk { origin, strides, .. } = walk;
        let request =
            |(stride, &cell): (&Stride, &u32)| Request::new(origin.core, 0, stride.is_write, Tag::new(cell));
        let mut requests = std::mem::take(&mut self.requests_of_loop);
        requests.extend(strides.iter().zip(cells).map(request));
        let mut advancing = std::mem::take(&mut self.advancing);
        walk.each(self.line_bytes, |periods| {
            advancing.clear();
            periods.first(|ShownAccess { stride, address, .. }, advance| {
                advancing.push(Advancing { address, advance, request: requests[stride] });
            });
            for _ in 0..periods.count() {
                for part in advancing.chunks_mut(SHOWN) {
                    if shown.count + part.len() > SHOWN {
                        self.show(origin, &mut shown);
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
        self.show(origin, &mut shown);
        self.advancing = advancing;
        requests.clear();
        self.requests_of_loop = requests;
    }

    /// Shows any loop.
    #[inline(never)]
    fn show_any(
        &mut self,
        walk: LineWalk<'_>,
        cells: &[u32],
        mut shown: Shown<'_>,
        objects: &mut Objects,
        stack: &mut ThreadStack,
    ) {
        let LineWalk { origin, strides, .. } = walk;
        let line_bytes = self.line_bytes;
        let mut show = |touch: ShownAccess| {
            if !self.is_own(touch.address) {
                return;
            }
            let stride = &strides[touch.stride];
            let cell = match cells[touch.stride] {
                SEVERAL => self.cell(origin, objects, stack, &stride.access_in(touch.turn)),
                cell => cell,
            };
            if touch.lines > 1 || shown.count == SHOWN {
                self.show(origin, &mut shown);
            }
            if touch.lines > 1 {
                self.show_both(origin, touch.address, stride.is_write, cell);
            } else {
                shown.requests[shown.count] =
                    Request::new(origin.core, touch.address, stride.is_write, Tag::new(cell));
                shown.count += 1;
            }
        };
        walk.each(line_bytes, |periods| periods.all(&mut show));
        self.show(origin, &mut shown);
    }

    #[inline(always)]
    fn count_hits_of(&mut self, cell: u32, accesses: u64) {
        let hits = &mut self.hits[cell as usize];
        *hits = hits.wrapping_add(accesses);
    }

    /// Shows the caches what is to be shown.
    #[inline(always)]
    fn show(&mut self, origin: Origin, shown: &mut Shown<'_>) {
        self.show_all(origin, &shown.requests[..shown.count]);
        shown.count = 0;
    }

    #[inline(never)]
    fn show_all(&mut self, origin: Origin, requests: &[Request]) {
        self.caches.show(origin.core, requests);
        if self.caches.is_full() {
            self.settle();
        }
    }

    /// An access that may be the first to both of two lines, of which this is the first one. It is counted already.
    #[inline(never)]
    fn show_both(&mut self, origin: Origin, address: u64, is_write: bool, cell: u32) {
        self.caches.show_both(MemRef {
            address,
            bytes: 0,
            core: origin.core as u32,
            tag: Tag::new(cell),
            is_write,
        });
        if self.caches.is_full() {
            self.settle();
        }
    }
}

impl Shown<'_> {
    /// Adds lines that are this shard's, for which there is room, and lets all go on to the next period.
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

/// A line that a loop asks for in each of some periods. The address that changes is apart from the request, which is copied whole.
#[derive(Clone, Copy)]
pub(crate) struct Advancing {
    address: u64,
    advance: i64,
    /// For address 0.
    request: Request,
}

/// A loop that is simulated by line.
#[derive(Clone, Copy)]
struct LineWalk<'l> {
    origin: Origin,
    begins: bool,
    turns: u64,
    strides: &'l [Stride],
    schedule: &'l Schedule,
}

impl LineWalk<'_> {
    /// [`Schedule::walk`] through the lines of the process.
    #[inline(always)]
    fn each(self, line_bytes: u32, each: impl FnMut(Periods<'_>)) {
        let LineWalk { origin, begins, turns, strides, schedule } = self;
        let mask = !(u64::from(line_bytes) - 1);
        let line_of = |stride: usize| origin.space.place(strides[stride].access.address) & mask;
        schedule.walk(begins, turns, line_of, each);
    }
}
