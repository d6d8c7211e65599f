//! Recording switched on and off by the user, while the program runs.

use std::sync::Arc;

use memlode_trace::format::off;
use memlode_trace::manifest::Burst;

use crate::Stats;
use crate::pace::Pace;
use crate::worker::Shared;

/// Switches the recording of a [`crate::Collector`], from any thread.
#[derive(Clone)]
pub struct Switch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pace: Arc<Pace>,
}

impl Switch {
    /// Stops recording, or goes on.
    pub fn record(&self, on: bool) {
        if on == self.is_stopped() {
            self.pace.mark_switched();
        }
        self.shared.switch(off::USER, !on);
    }

    /// Stops if recording goes on, and goes on if it was stopped.
    pub fn toggle(&self) {
        self.record(self.is_stopped());
    }

    /// Returns whether the user has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.shared.reasons() & off::USER != 0
    }

    /// Records in bursts from now on, or without a break.
    pub fn set_burst(&self, burst: Option<Burst>) {
        let before = self.burst();
        self.pace.set_burst(burst);
        if self.burst() != before {
            self.pace.mark_switched();
        }
    }

    /// The duty cycle.
    pub fn burst(&self) -> Option<Burst> {
        self.pace.burst()
    }

    /// The reasons why nothing is recorded at the moment, in words. Empty if recording is on, as
    /// far as the collector decides.
    pub fn why_off(&self) -> Vec<&'static str> {
        let reasons = [
            (off::USER, "stopped by the user"),
            (off::WINDOW, "the --delay/--for window is not open"),
            (off::PACE, "between two bursts"),
        ];
        let now = self.shared.reasons();
        reasons.iter().filter(|(reason, _)| now & reason != 0).map(|(_, text)| *text).collect()
    }

    /// Why nothing will be recorded although the user wants it, as a sentence.
    pub fn obstacle(&self) -> Option<String> {
        if let Some(failure) = self.shared.output.failure() {
            return Some(failure);
        }
        let reasons = self.shared.reasons();
        let why = match () {
            _ if reasons & off::OVER != 0 => "the time of --for or the accesses of --stop-after are over",
            _ if reasons & off::WINDOW != 0 => "the time of --delay is not over; then it will",
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// The regions to which recording is restricted; if there are none, it is unrestricted.
    pub fn regions(&self) -> &[String] {
        self.shared.regions()
    }

    /// The kernel's ids of the processes that are recorded.
    pub fn pids(&self) -> Vec<u32> {
        self.shared.processes().iter().map(|process| process.pid.as_raw_pid() as u32).collect()
    }

    /// Makes [`crate::Collector::finish`] wait for no more descendants of the command.
    pub fn end_waiting(&self) {
        self.pace.end_waiting();
    }

    /// Totals so far.
    pub fn stats(&self) -> Stats {
        crate::stats(&self.shared)
    }
}
