//! A thread: its next step, its requests on their way, and its clock.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::alone::Alone;
use super::ledger::Ledger;
use super::line::{Asker, Line};
use super::past::Past;
use super::{Act, Item, NEVER, Pace, Program, Step, Ticks, fixed};

/// Items, beyond a window of instructions, that are searched for a store that follows a load.
const MOST_AHEAD: u64 = 32;

/// Stands in the window and in the buffer where a release is: others see it once all stores before
/// it are seen.
const RELEASE: Step =
    Step { act: Act::Fence, line: u32::MAX, bytes: 0, instructions: 0, stores: 0, place: u32::MAX };

/// A step that marks the end of the block or variable of some bytes.
fn end_of(line: u32, bytes: u64) -> Step {
    Step { line, bytes, ..RELEASE }
}

/// Returns whether a step in the buffer is a mark and no store.
fn is_mark(step: &Step) -> bool {
    step.act == Act::Fence
}

/// A step that was issued and has not retired.
#[derive(Clone, Copy)]
struct Issued {
    number: u64,
    step: Step,
    /// When it was issued.
    at: Ticks,
    done: Ticks,
    /// The life of the line that it may wait for.
    life: Option<u32>,
}

/// Stores of a thread to some bytes.
#[derive(Clone, Copy, Default)]
struct Own {
    /// Steps that were issued and did not reach their line.
    under_way: u32,
    /// When the latest reached it.
    committed: Ticks,
}

/// A retired store that waits for its line.
#[derive(Clone, Copy)]
struct Waiting {
    at: Ticks,
    step: Step,
    /// Stores to lines of no other thread that follow it: they go to the caches in program order,
    /// too.
    behind: u64,
}

/// The next stage of a thread. Of one time, the first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Store,
    Retire,
    Issue,
}

/// An item that is to come, and whether a load in it is followed by a store to its line.
struct Ahead {
    item: Item,
    stores_soon: bool,
}

pub(crate) struct Thread {
    number: usize,
    pace: Pace,
    ahead: VecDeque<Ahead>,
    /// Instructions of the items ahead.
    looked: u64,
    has_ended: bool,
    /// Instructions before the first item that are not issued yet; 0 before it was read.
    pending: Option<u64>,
    pub clock: Ticks,
    retired: Ticks,
    committed: Ticks,
    issued: u64,
    retired_to: u64,
    window: VecDeque<Issued>,
    buffer: VecDeque<Waiting>,
    /// Places of the buffer that are taken.
    taken: u64,
    /// When the latest increment of a word is done.
    chain: FxHashMap<(u32, u64), Ticks>,
    arrivals: VecDeque<Ticks>,
    /// Stores to these bytes, on a core that forwards.
    own: FxHashMap<(u32, u64), Own>,
    alone: Alone,
    /// The life of the line that the latest store went to: a fence waited for that.
    latest: Option<u32>,
    /// For others.
    pub waited: Ticks,
    /// Releases so far, and when the latest was.
    pub releases: u64,
    pub released_at: Ticks,
    /// Steps issued.
    pub steps: u64,
    pub transfers: u64,
}

/// Data that all threads share.
pub(crate) struct Shared<'a> {
    pub lines: &'a mut [Line],
    pub ledger: &'a mut Ledger,
    pub past: &'a Past,
    pub pace: &'a Pace,
}

impl Thread {
    pub fn new(number: usize, pace: &Pace) -> Thread {
        Thread {
            number,
            pace: *pace,
            ahead: VecDeque::new(),
            looked: 0,
            has_ended: false,
            pending: None,
            clock: 0,
            retired: 0,
            committed: 0,
            issued: 0,
            retired_to: 0,
            window: VecDeque::new(),
            buffer: VecDeque::new(),
            taken: 0,
            chain: FxHashMap::default(),
            arrivals: VecDeque::with_capacity(pace.on_their_way),
            alone: Alone::default(),
            latest: None,
            own: FxHashMap::default(),
            waited: 0,
            releases: 0,
            released_at: 0,
            steps: 0,
            transfers: 0,
        }
    }

    /// Reads the items within a window of instructions.
    pub fn look_ahead(&mut self, program: &mut dyn Program) {
        while !self.has_ended
            && (self.ahead.len() as u64) < self.pace.window + MOST_AHEAD
            && self
                .ahead
                .front()
                .is_none_or(|first| self.looked - instructions(&first.item) <= self.pace.window)
        {
            let Some(item) = program.next(self.number) else {
                self.has_ended = true;
                return;
            };
            self.looked += instructions(&item);
            if let Item::Step(step) = &item
                && step.act.writes()
            {
                self.announce(step);
            }
            self.ahead.push_back(Ahead { item, stores_soon: false });
        }
    }

    /// Loads of a line that are followed by a store to it within a window request the line as the
    /// store needs it.
    fn announce(&mut self, store: &Step) {
        let mut between = u64::from(store.instructions);
        for ahead in self.ahead.iter_mut().rev() {
            if between > self.pace.window {
                return;
            }
            match &ahead.item {
                Item::Step(step) if step.line == store.line && step.act.writes() => return,
                Item::Step(step) if step.line == store.line && step.act == Act::Load => {
                    ahead.stores_soon = true;
                }
                _ => {}
            }
            between += instructions(&ahead.item);
        }
    }

    /// Drops the items that were read ahead, which are skipped, except those that order threads;
    /// returns the number of dropped steps.
    pub fn leave_out_ahead(&mut self) -> u64 {
        let mut steps = 0;
        while let Some(Ahead { item: Item::Step(_) | Item::Work(_) | Item::Ended { .. }, .. }) =
            self.ahead.front()
        {
            steps += 1;
            self.pop();
        }
        steps
    }

    /// Skips an item that orders threads.
    pub fn pass(&mut self) {
        if let Some(Ahead { item: Item::Release, .. }) = self.pop() {
            self.releases += 1;
            self.released_at = self.released_at.max(self.time());
        }
    }

    /// The item to come.
    pub fn next_item(&self) -> Option<&Item> {
        self.ahead.front().map(|ahead| &ahead.item)
    }

    fn pop(&mut self) -> Option<Ahead> {
        let ahead = self.ahead.pop_front()?;
        self.looked -= instructions(&ahead.item);
        self.pending = None;
        Some(ahead)
    }

    fn is_idle(&self) -> bool {
        self.window.is_empty() && self.buffer.is_empty()
    }

    /// The next stage and its time. `is_free` says whether, and since when, an acquisition has what
    /// it waits for.
    pub fn next(&self, acquired: impl Fn(&[(u32, u64)]) -> Option<Ticks>) -> (Ticks, Stage) {
        let store = self.buffer.front().map_or(NEVER, |waiting| waiting.at);
        let retire = self.retires();
        let issue = self.issues(acquired);
        let mut next = (store, Stage::Store);
        for other in [(retire, Stage::Retire), (issue, Stage::Issue)] {
            if other.0 < next.0 {
                next = other;
            }
        }
        next
    }

    fn retires(&self) -> Ticks {
        let Some(first) = self.window.front() else { return NEVER };
        let waits = self.pace.forwards && first.step.act == Act::Atomic && !self.buffer.is_empty();
        match self.has_no_room(first) || waits {
            true => NEVER,
            false => first.done.max(self.retired),
        }
    }

    /// Returns whether the buffer has no room for a step and the stores before it. Neighbours in
    /// time on one line share a place.
    fn has_no_room(&self, next: &Issued) -> bool {
        let Some(last) = self.buffer.back() else { return false };
        let Step { act, line, stores, .. } = next.step;
        let shares = last.behind == 0 && stores == 0 && last.step.line == line;
        let own = matches!(act, Act::Store | Act::Increment) && !shares;
        (own || stores > 0) && self.taken + u64::from(stores) + u64::from(own) > fixed::BUFFER
    }

    fn issues(&self, acquired: impl Fn(&[(u32, u64)]) -> Option<Ticks>) -> Ticks {
        let Some(Ahead { item, .. }) = self.ahead.front() else { return NEVER };
        if self.window.front().is_some_and(|first| self.issued >= first.number + self.pace.window) {
            return NEVER;
        }
        match item {
            Item::Work(_) => self.clock,
            Item::Step(step) => match (self.pending_of(step), step.act) {
                (0, Act::Increment) => {
                    let chain = self.chain.get(&(step.line, step.bytes)).copied().unwrap_or(0);
                    chain.max(self.clock)
                }
                (0, Act::Fence) if !self.is_idle() => NEVER,
                _ => self.clock,
            },
            Item::Release | Item::Ended { .. } => self.clock,
            Item::Acquire(others) if self.is_idle() => match acquired(others) {
                Some(at) => self.clock.max(self.retired).max(self.committed).max(at),
                None => NEVER,
            },
            Item::NotBefore(at) if self.is_idle() => {
                self.clock.max(self.retired).max(self.committed).max(*at)
            }
            Item::Acquire(_) | Item::NotBefore(_) => NEVER,
        }
    }

    fn pending_of(&self, step: &Step) -> u64 {
        let all = u64::from(step.instructions.saturating_sub(step.act.instructions()));
        self.pending.unwrap_or(all)
    }

    /// Issues as much as there is room for.
    pub fn issue(&mut self, t: Ticks, shared: &mut Shared<'_>) {
        let busy = self.clock.max(self.retired).max(self.committed);
        let Some(Ahead { item, .. }) = self.ahead.front() else { return };
        let step = match *item {
            Item::Work(all) => {
                let pending = self.pending.unwrap_or(all.into());
                if self.execute(pending, shared.pace) {
                    self.alone.work(all.into(), shared.pace);
                    self.pop();
                }
                return;
            }
            Item::Release => return self.mark(RELEASE, t),
            Item::Ended { line, bytes } => return self.mark(end_of(line, bytes), t),
            Item::Acquire(_) | Item::NotBefore(_) => {
                self.alone.drain();
                self.waited += t - busy;
                self.clock = t;
                self.retired = t;
                self.pop();
                return;
            }
            Item::Step(step) => step,
        };
        let pending = self.pending_of(&step);
        if pending > 0 {
            self.execute(pending, shared.pace);
            return;
        }
        let Some(ahead) = self.pop() else { return };
        self.alone.step(&step, shared.pace);
        self.steps += 1;
        self.clock = self.clock.max(t);
        self.begin(&step, ahead.stores_soon, shared);
    }

    /// Makes a step visible to others once all stores before it are.
    fn mark(&mut self, step: Step, t: Ticks) {
        self.window.push_back(Issued { number: self.issued, step, at: t, done: t, life: None });
        self.pop();
    }

    /// Executes instructions without accesses, up to the window's end; returns whether that was all
    /// of them.
    fn execute(&mut self, pending: u64, pace: &Pace) -> bool {
        let room = self.window.front().map(|first| first.number + self.pace.window - self.issued);
        let now = room.map_or(pending, |room| room.min(pending));
        self.issued += now;
        self.clock += now as Ticks * pace.instruction;
        self.pending = Some(pending - now);
        now == pending
    }

    /// A step is issued.
    fn begin(&mut self, step: &Step, stores_soon: bool, shared: &mut Shared<'_>) {
        let t = self.clock;
        let own = step.act.instructions();
        let done = match step.act {
            Act::Fence => {
                let idle = t.max(self.retired);
                if let Some(life) = self.latest {
                    shared.ledger.hold(life);
                    shared.ledger.let_go(life, (self.committed - idle).max(0));
                }
                self.clock = idle.max(self.committed) + self.pace.fence;
                self.retired = self.retired.max(self.clock);
                self.issued += 1;
                return;
            }
            Act::Load if self.takes_own(step, t) => t,
            Act::Increment if self.takes_own(step, t) => {
                let is_here = shared.lines[step.line as usize].is_writable(self.number, t);
                let at_least = if is_here { 0 } else { fixed::INCREMENT_OF_FORWARDED };
                let takes = self.pace.increment.max(at_least);
                self.chain.insert((step.line, step.bytes), t + takes);
                t + takes
            }
            Act::Load => self.request(step, stores_soon, t, shared),
            Act::Increment => {
                let arrival = self.request(step, true, t, shared);
                let at_least = if arrival > t { fixed::INCREMENT_OF_ARRIVED } else { 0 };
                let takes = self.pace.increment.max(at_least);
                self.chain.insert((step.line, step.bytes), arrival + takes);
                arrival + takes
            }
            Act::Atomic => self.request(step, true, t, shared),
            Act::Store => t,
        };
        let line = &mut shared.lines[step.line as usize];
        if matches!(step.act, Act::Load | Act::Increment) {
            line.read(self.number, step, shared.past, shared.ledger);
        }
        let life = line.life(self.number).filter(|_| done > t);
        if let Some(life) = life {
            shared.ledger.hold(life);
        }
        if self.pace.forwards && matches!(step.act, Act::Store | Act::Increment) {
            self.own.entry((step.line, step.bytes)).or_default().under_way += 1;
        }
        self.window.push_back(Issued { number: self.issued, step: *step, at: t, done, life });
        self.issued += u64::from(own);
        self.clock += Ticks::from(own) * shared.pace.instruction;
    }

    /// Returns whether the buffer has no room for the oldest step of the window.
    fn is_held_up(&self) -> bool {
        self.window.front().is_some_and(|first| self.has_no_room(first))
    }

    /// Returns whether the value of an own store to the same bytes can be forwarded, although the
    /// line may be elsewhere.
    fn takes_own(&self, step: &Step, t: Ticks) -> bool {
        let own = self.own.get(&(step.line, step.bytes));
        own.is_some_and(|own| own.under_way > 0 || t < own.committed + fixed::AT_HAND)
    }

    /// The `steps` request their lines again, as a step before them had to.
    fn ask_again(&mut self, steps: &[Step], t: Ticks, shared: &mut Shared<'_>) {
        for step in steps {
            self.request(step, true, t, shared);
        }
    }

    fn request(&mut self, step: &Step, write: bool, t: Ticks, shared: &mut Shared<'_>) -> Ticks {
        let line = &mut shared.lines[step.line as usize];
        let asker = Asker { thread: self.number, arrivals: &mut self.arrivals, past: shared.past };
        let (at, comes) = line.request(asker, write, t, step, shared.pace, shared.ledger);
        self.transfers += u64::from(comes);
        at
    }

    /// The oldest step retires.
    pub fn retire(&mut self, t: Ticks, shared: &mut Shared<'_>) {
        let Some(Issued { number, step, at, done, life }) = self.window.pop_front() else { return };
        let earliest = self.retired + (number - self.retired_to) as Ticks * fixed::RETIRE;
        let mut t = t.max(earliest);
        if let Some(life) = life {
            // What was not issued by then could not have retired anyway.
            shared.ledger.let_go(life, (done - earliest.max(at)).max(0));
        }
        self.retired_to = number;
        // If none waits before them, they are gone.
        if let Some(last) = self.buffer.back_mut() {
            last.behind += u64::from(step.stores);
            self.taken += u64::from(step.stores);
        }
        match step.act {
            Act::Atomic => {
                let has = self.request(&step, true, t, shared);
                if self.pace.forwards && has > t {
                    let behind = self.window.iter().take(self.pace.on_their_way).map(|issued| issued.step);
                    let behind: Vec<Step> = behind.filter(|step| step.act == Act::Atomic).collect();
                    self.ask_again(&behind, t, shared);
                }
                let line = &mut shared.lines[step.line as usize];
                if has > t
                    && let Some(life) = line.life(self.number)
                {
                    shared.ledger.hold(life);
                    shared.ledger.let_go(life, has - t);
                }
                line.write(self.number, &step, shared.past, shared.ledger);
                t = has + self.pace.atomic;
            }
            Act::Store | Act::Increment | Act::Fence => {
                self.buffer.push_back(Waiting { at: t, step, behind: 0 });
                self.taken += 1;
            }
            Act::Load => {}
        }
        self.retired = t;
        if self.issued >= number + self.pace.window {
            self.clock = self.clock.max(t);
        }
    }

    /// The oldest store of the buffer requests its line, or writes to it.
    pub fn store(&mut self, t: Ticks, shared: &mut Shared<'_>) {
        let Some(&Waiting { step, .. }) = self.buffer.front() else { return };
        let asked = if is_mark(&step) { t } else { self.request(&step, true, t, shared) };
        if self.pace.forwards && asked > t {
            let behind = self.buffer.iter().skip(1).take(self.pace.on_their_way).map(|waiting| waiting.step);
            let behind: Vec<Step> = behind.filter(|step| !is_mark(step)).collect();
            self.ask_again(&behind, t, shared);
        }
        let at = asked.max(self.committed);
        self.committed = at;
        if at > t {
            if let Some(first) = self.buffer.front_mut() {
                first.at = at;
            }
            return;
        }
        let held_up = self.is_held_up();
        if let Some(gone) = self.buffer.pop_front() {
            self.taken -= 1 + gone.behind;
            if let Some(next) = self.buffer.front_mut().filter(|_| self.pace.forwards) {
                let is_other = gone.behind > 0 || next.step.line != gone.step.line;
                let stores = gone.behind + u64::from(is_other);
                // Stores never come faster than they go, so none is held up where no line is away.
                next.at = next.at.max(t + stores as Ticks * fixed::COMMIT.min(self.pace.instruction));
            }
        }
        if step == RELEASE {
            self.releases += 1;
            self.released_at = t;
            return;
        }
        if is_mark(&step) {
            shared.lines[step.line as usize].end(step.bytes);
            return;
        }
        if let Some(own) = self.own.get_mut(&(step.line, step.bytes)) {
            *own = Own { under_way: own.under_way - 1, committed: t };
        }
        shared.lines[step.line as usize].write(self.number, &step, shared.past, shared.ledger);
        let life = shared.lines[step.line as usize].life(self.number);
        if let Some(life) = life {
            shared.ledger.hold(life);
        }
        if let Some(before) = std::mem::replace(&mut self.latest, life) {
            shared.ledger.let_go(before, 0);
        }
        // A full buffer held retirement up.
        if self.retired < t && held_up && !self.is_held_up() {
            if let Some(life) = shared.lines[step.line as usize].life(self.number) {
                shared.ledger.hold(life);
                shared.ledger.let_go(life, t - self.retired);
            }
            self.retired = t;
        }
    }

    /// It has ended.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        if let Some(life) = self.latest.take() {
            ledger.let_go(life, 0);
        }
    }

    /// Returns whether it has done all that it does.
    pub fn is_done(&self) -> bool {
        self.has_ended && self.ahead.is_empty() && self.is_idle()
    }

    /// When it is done with everything so far.
    pub fn time(&self) -> Ticks {
        self.clock.max(self.retired).max(self.committed)
    }

    /// Returns the time lost to transfers so far: the thread's time without waits for other
    /// threads, less that of a thread whose lines never move.
    pub fn lost(&self) -> Ticks {
        self.clock.max(self.retired) - self.waited - self.alone.time()
    }

    /// Returns the time it would have taken if no line had moved.
    pub fn alone(&self) -> Ticks {
        self.alone.time()
    }
}

fn instructions(item: &Item) -> u64 {
    match item {
        Item::Step(step) => step.instructions.into(),
        Item::Work(instructions) => u64::from(*instructions),
        _ => 0,
    }
}
