//! The time that a thread would take if no line ever moved.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Act, Pace, Step, Ticks, fixed};

/// Like a thread among others, with the same stages. A stage depends on no other thread, so program
/// order is enough.
#[derive(Default)]
pub(crate) struct Alone {
    clock: Ticks,
    retired: Ticks,
    issued: u64,
    retired_to: u64,
    /// Steps in the window.
    window: VecDeque<Begun>,
    /// When the latest increment of a word is done.
    chain: FxHashMap<(u32, u64), Ticks>,
}

/// A step that was issued.
#[derive(Clone, Copy)]
struct Begun {
    number: u64,
    /// When it leaves the window, unless that is full: then issue goes on when it has retired.
    leaves: Ticks,
    retires: Ticks,
}

impl Alone {
    /// Instructions that touch nothing.
    pub fn work(&mut self, mut instructions: u64, pace: &Pace) {
        while instructions > 0 {
            self.leave();
            let room = self.window.front().map(|first| first.number + pace.window - self.issued);
            let now = room.map_or(instructions, |room| room.min(instructions));
            self.issue(now, pace);
            instructions -= now;
        }
    }

    /// Removes everything that has left the window by now.
    fn leave(&mut self) {
        while self.window.front().is_some_and(|first| first.leaves <= self.clock) {
            self.window.pop_front();
        }
    }

    /// Issues instructions at once, and if the window is full then, waits.
    fn issue(&mut self, instructions: u64, pace: &Pace) {
        self.leave();
        self.issued += instructions;
        self.clock += instructions as Ticks * pace.instruction;
        while let Some(first) = self.window.front()
            && first.number + pace.window <= self.issued
        {
            self.clock = self.clock.max(first.retires);
            self.window.pop_front();
        }
    }

    pub fn step(&mut self, step: &Step, pace: &Pace) {
        let own = step.act.instructions();
        self.work(step.instructions.saturating_sub(own).into(), pace);
        if step.act == Act::Fence {
            self.drain();
            self.clock += pace.fence;
            self.retired = self.retired.max(self.clock);
            self.issued += 1;
            return;
        }
        let mut done = self.clock;
        if step.act == Act::Increment {
            let chain = self.chain.entry((step.line, step.bytes)).or_default();
            self.clock = self.clock.max(*chain);
            done = self.clock + pace.increment;
            *chain = done;
        }
        let leaves = done.max(self.retired);
        let spacing = (self.issued - self.retired_to) as Ticks * fixed::RETIRE;
        self.retired = leaves.max(self.retired + spacing);
        if step.act == Act::Atomic {
            self.retired += pace.atomic;
        }
        self.retired_to = self.issued;
        self.window.push_back(Begun { number: self.issued, leaves, retires: self.retired });
        self.issue(own.into(), pace);
    }

    /// Finishes everything that has begun, before what follows.
    pub fn drain(&mut self) {
        self.clock = self.clock.max(self.retired);
        self.window.clear();
    }

    pub fn time(&self) -> Ticks {
        self.clock.max(self.retired)
    }
}
