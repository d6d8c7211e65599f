//! The speed of the processor just now.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Multiplications of one calibration: some 0.3 ms.
const STEPS: u64 = 250_000;

/// Nanoseconds of a fixed chain of multiplications, each waiting for the one before, on the
/// processor that runs this thread. They take a fixed number of cycles and touch no memory, so the
/// result is inverse to the clock frequency. The time of other threads is not included, as far as
/// the kernel knows.
pub fn calibrate() -> f64 {
    let once = || {
        let before = thread_nanoseconds();
        let mut product = 3u64;
        for _ in 0..STEPS {
            product = std::hint::black_box(product.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
        std::hint::black_box(product);
        thread_nanoseconds() - before
    };
    once().min(once())
}

fn thread_nanoseconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Numbers of the processors that this thread may run on.
pub fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Keeps this thread, and programs that it starts, on one processor; on all it had before when dropped.
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// On this processor; where it was if the system forbids it.
    pub fn to(cpu: usize) -> Pinned {
        let before = sched_getaffinity(None).ok();
        let mut one = CpuSet::new();
        one.set(cpu);
        let pinned = before.is_some() && sched_setaffinity(None, &one).is_ok();
        Pinned { before: before.filter(|_| pinned) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}
