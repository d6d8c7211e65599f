//! When recording is on: bursts, and the recorded stretch of time.
//!
//! The program gets no message: its threads read a word of the shared memory where they can change
//! sides.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use memlode_trace::format::off;
use memlode_trace::manifest::Burst;

use crate::output::lock;
use crate::worker::Shared;

/// The pace, as others may change it.
#[derive(Default)]
pub struct Pace {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    burst: Option<Burst>,
    /// Number of times that it was changed.
    changes: u32,
    stop: bool,
    /// True if the user has interfered.
    switched: bool,
    /// True if the user wants it to end.
    ends: bool,
}

impl Pace {
    /// Records in bursts from now on, or without a break.
    pub fn set_burst(&self, burst: Option<Burst>) {
        self.change(|state| state.burst = burst.filter(|burst| burst.on_us < burst.period_us));
    }

    /// The duty cycle.
    pub fn burst(&self) -> Option<Burst> {
        lock(&self.state).burst
    }

    /// The user has changed when recording is on.
    pub fn mark_switched(&self) {
        lock(&self.state).switched = true;
    }

    /// Returns whether that ever happened.
    pub fn is_switched(&self) -> bool {
        lock(&self.state).switched
    }

    /// The user waits for nothing any more.
    pub fn end_waiting(&self) {
        lock(&self.state).ends = true;
    }

    /// Returns whether the end of waiting was requested.
    pub fn has_waited_enough(&self) -> bool {
        lock(&self.state).ends
    }

    /// Ends the threads that keep it.
    pub fn stop(&self) {
        self.change(|state| state.stop = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        state.changes += 1;
        self.changed.notify_all();
    }

    /// Waits until a moment, or for ever; false if something else is to be done first.
    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        until: Option<Instant>,
        is_due: impl Fn(&State) -> bool,
    ) -> bool {
        while !is_due(&state) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(Duration::ZERO) => return true,
                Some(left) => match self.changed.wait_timeout(state, left) {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            };
        }
        false
    }

    /// Switches recording on and off by the duty cycle, until stopped.
    pub fn keep(&self, shared: &Shared) {
        loop {
            let state = lock(&self.state);
            if state.stop {
                return;
            }
            let now = *state;
            match now.burst {
                None => {
                    shared.switch(off::PACE, false);
                    self.wait(state, None, |state| state.changes != now.changes);
                }
                Some(burst) => {
                    drop(state);
                    self.cycle(shared, burst, now.changes);
                }
            }
        }
    }

    /// Bursts of one duty cycle, until the state has changed.
    ///
    /// A burst is in the middle of its period: a centred systematic sample does not over-represent
    /// the program's beginning or end.
    fn cycle(&self, shared: &Shared, burst: Burst, changes: u32) {
        let (on, period) = (Duration::from_micros(burst.on_us), Duration::from_micros(burst.period_us));
        let is_over = |state: &State| state.changes != changes;
        let wait = |until| self.wait(lock(&self.state), Some(until), is_over);
        shared.switch(off::PACE, true);
        let start = Instant::now() + (period - on) / 2;
        for round in 0.. {
            let begin = start + period.saturating_mul(round);
            // On a busy machine a burst comes late; half a period late it is left out rather than to have two in a row.
            if Instant::now() >= begin + period / 2 {
                continue;
            }
            if !wait(begin) {
                return;
            }
            shared.switch(off::PACE, false);
            let goes_on = wait(Instant::now() + on);
            shared.switch(off::PACE, true);
            if !goes_on {
                return;
            }
        }
    }

    /// Records from a while after now, for a while. It has to be off before, if the first is not 0.
    pub fn keep_window(&self, shared: &Shared, delay: Duration, length: Option<Duration>) {
        let begin = Instant::now().checked_add(delay);
        let wait = |until| self.wait(lock(&self.state), until, |state| state.stop);
        if !wait(begin) {
            return;
        }
        shared.switch(off::WINDOW, false);
        let Some(length) = length else { return };
        if wait(begin.and_then(|begin| begin.checked_add(length))) {
            shared.switch(off::WINDOW | off::OVER, true);
        }
    }
}
