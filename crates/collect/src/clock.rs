//! The processor's time stamp counter, the same one the traced threads read.

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

/// Makes every running thread of the machine pass a memory barrier.
pub fn everyone_passes_a_barrier() {
    // Without the system call (Linux before 4.3) words may be read early; that is what the encoder's checks are for.
    let _ = rustix::thread::membarrier(rustix::thread::MembarrierCommand::Global);
}
