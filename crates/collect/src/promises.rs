//! Bounds of the work that a program can have done in a loop or a copy that it had begun.

use std::time::Duration;

use memlode_trace::write::Promise;

use crate::clock;

/// More accesses, or bytes, than any machine makes in a nanosecond.
const MOST_ACCESSES_A_NANOSECOND: u64 = 16;
const MOST_BYTES_A_NANOSECOND: u64 = 512;

/// A loop or a copy whose end was not recorded is believed up to this size.
pub const PLAUSIBLE: Promise = Promise { accesses: 1 << 32, bytes: 1 << 36 };

/// Returns the most that a processor may have done in a time.
pub fn done_in(time: Duration) -> Promise {
    let nanoseconds = time.as_nanos() as u64;
    Promise {
        accesses: nanoseconds.saturating_mul(MOST_ACCESSES_A_NANOSECOND),
        bytes: nanoseconds.saturating_mul(MOST_BYTES_A_NANOSECOND),
    }
}

/// Returns the time since a stamp.
pub fn since(stamp: u64, rate: &clock::Rate) -> Duration {
    let ticks = clock::stamp().saturating_sub(stamp);
    let Some(rate) = rate.ticks_per_second() else { return Duration::MAX };
    Duration::try_from_secs_f64(ticks as f64 / rate as f64).unwrap_or(Duration::MAX)
}
