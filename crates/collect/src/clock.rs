//! The processor's time stamp counter, the same one the traced threads read.

use std::time::Instant;

/// Now.
pub fn stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let stamp;
        // SAFETY: reading the virtual counter has no side effect.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) stamp, options(nomem, nostack)) };
        stamp
    }
}

/// The speed of the counter, by the system's clock.
pub struct Rate {
    stamp: u64,
    at: Instant,
}

impl Rate {
    /// Begins to measure.
    pub fn start() -> Rate {
        Rate { stamp: stamp(), at: Instant::now() }
    }

    /// Ticks a second since then; `None` if no time has passed.
    pub fn ticks_per_second(&self) -> Option<u64> {
        let (ticks, seconds) = (stamp().checked_sub(self.stamp)?, self.at.elapsed().as_secs_f64());
        (seconds > 0.0).then(|| (ticks as f64 / seconds).round() as u64).filter(|ticks| *ticks > 0)
    }
}

/// Makes every running thread of the machine pass a memory barrier.
pub fn everyone_passes_a_barrier() {
    // Without the system call (Linux before 4.3) words may be read early; that is what the encoder's checks are for.
    let _ = rustix::thread::membarrier(rustix::thread::MembarrierCommand::Global);
}
