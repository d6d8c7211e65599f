//! Bursts: recording is on for a while, then off, again and again.
//!
//! The program needs not be told: its threads look at a word of the shared memory where they can change sides. A thread
//! takes up recording at the next such place, and leaves it when its chunk is full.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use memlode_trace::format::off;
use memlode_trace::manifest::Burst;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::worker::Shared;

/// Switches recording on and off until `stop` becomes readable. It has to be off before.
///
/// A burst is in the middle of its period: a systematic sample that is centred takes the program's beginning and end
/// neither for more nor for less than they are.
pub fn keep(shared: &Shared, burst: Burst, stop: &OwnedFd) {
    let (on, period) = (Duration::from_micros(burst.on_us), Duration::from_micros(burst.period_us));
    let start = Instant::now() + (period - on) / 2;
    for round in 0.. {
        let begin = start + period.saturating_mul(round);
        // On a busy machine a burst comes late; half a period late it is left out rather than to have two in a row.
        if Instant::now() >= begin + period / 2 {
            continue;
        }
        if !wait_until(begin, stop) {
            return;
        }
        shared.switch(off::PACE, false);
        let goes_on = wait_until(Instant::now() + on, stop);
        shared.switch(off::PACE, true);
        if !goes_on {
            return;
        }
    }
}

/// False if `stop` became readable first.
fn wait_until(when: Instant, stop: &OwnedFd) -> bool {
    loop {
        let left = when.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        let left = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        let mut polled = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
        if rustix::event::poll(&mut polled, Some(&left)).is_ok_and(|ready| ready > 0) {
            return false;
        }
    }
}
