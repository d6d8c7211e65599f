//! The loops that are timed. Each returns nanoseconds of this thread's processor time, or of the
//! clock, for one step.
//!
//! Short pieces of about a millisecond are timed, and a low quantile counts, because any
//! disturbance makes a piece longer.

use std::arch::asm;

use rustix::time::{ClockId, clock_gettime};

use crate::stats::quantile;

use super::memory::Buffer;

/// Pieces that one sample is the low quantile of.
const PIECES: usize = 5;

/// Which piece counts, from the fastest (0) to the slowest (1).
const LOW: f64 = 0.2;

/// Nanoseconds of a step: the low quantile over pieces of `steps` steps each.
fn sample(steps: u64, mut piece: impl FnMut()) -> f64 {
    let mut times = [0.0; PIECES];
    for time in &mut times {
        let before = thread_nanoseconds();
        piece();
        *time = (thread_nanoseconds() - before) / steps as f64;
    }
    quantile(&times, LOW)
}

fn thread_nanoseconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds of a cycle, from a chain of multiplications: 3 cycles each on every core of Intel's and AMD's since 2008
/// (Agner Fog, Instruction tables). A chain of additions would not do: newer cores renames some of them away.
pub fn cycle() -> f64 {
    const LOOPS: u64 = 3_000;
    const CHAIN: u64 = 100;
    let mut product = 3_u64;
    let step = sample(LOOPS * CHAIN, || {
        for _ in 0..LOOPS {
            // SAFETY: arithmetic on one register.
            unsafe {
                asm!(".rept 100", "imul {p}, {p}", ".endr", p = inout(reg) product, options(nomem, nostack));
            }
        }
    });
    step / 3.0
}

/// Nanoseconds from one increment of a word in memory to the next, as compilers make of a counter. Some cores that rename
/// memory take several times as long for it as for an addition of a constant.
pub fn increment() -> f64 {
    const LOOPS: u64 = 2_000;
    let mut word = 0_u64;
    sample(LOOPS * 100, || {
        for _ in 0..LOOPS {
            // SAFETY: the address is that of a word of this function.
            unsafe {
                asm!(".rept 100", "inc qword ptr [{p}]", ".endr", p = in(reg) &raw mut word, options(nostack));
            }
        }
    })
}

/// A chain of pointers that is followed a few thousand steps at a time.
pub struct Chase<'a> {
    at: *const *const u8,
    /// The buffer that the chain is in.
    _buffer: &'a Buffer,
}

impl<'a> Chase<'a> {
    /// From the pointer that [`Buffer::chain`] returned for this buffer.
    ///
    /// # Safety
    /// The chain has not been overwritten, and is not while the chase lives, except with the values it has.
    pub unsafe fn new(buffer: &'a Buffer, first: *const *const u8) -> Chase<'a> {
        Chase { at: first, _buffer: buffer }
    }

    /// Follows `steps` pointers.
    pub fn walk(&mut self, steps: u64) {
        for _ in 0..steps {
            // SAFETY: every place of the chain holds a pointer to another place of it.
            self.at = unsafe { self.at.read_volatile() }.cast();
        }
    }

    /// The place that comes next.
    pub fn at(&self) -> *const *const u8 {
        self.at
    }

    /// Nanoseconds of a step.
    pub fn step(&mut self, steps: u64) -> f64 {
        sample(steps, || self.walk(steps))
    }
}

/// Nanoseconds of independent loads; `next` gives the offset of each in the buffer, a multiple of
/// 8.
pub fn gather(buffer: &Buffer, steps: u64, mut next: impl FnMut() -> usize) -> f64 {
    let mut sum = 0_u64;
    let step = sample(steps, || {
        for _ in 0..steps {
            let offset = next();
            assert!(offset + 8 <= buffer.bytes() && offset.is_multiple_of(8), "a place of the buffer");
            // SAFETY: within the buffer and aligned, as was just checked.
            sum ^= unsafe { buffer.start().add(offset).cast::<u64>().read_volatile() };
        }
    });
    std::hint::black_box(sum);
    step
}

/// Offsets of lines of the first `bytes` bytes, a power of two, by chance.
pub fn any_line(bytes: usize) -> impl FnMut() -> usize {
    assert!(bytes.is_power_of_two() && bytes >= 64, "the low bits of a number choose");
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) as usize & (bytes - 64)
    }
}

/// Reads a word of each line, from front to back, to fill the caches.
pub fn read_through(buffer: &Buffer) {
    for offset in (0..buffer.bytes()).step_by(64) {
        // SAFETY: within the buffer.
        unsafe { buffer.start().add(offset).read_volatile() };
    }
}

/// Lines of one sweep.
const SWEEP_LINES: usize = 1 << 14;

/// The place where a sweep goes on: a megabyte behind the last one, so that no line is still in a cache.
#[derive(Default)]
pub struct Sweep {
    at: usize,
}

impl Sweep {
    fn next(&mut self, buffer: &Buffer) -> *mut u8 {
        let bytes = SWEEP_LINES * 64;
        let start = self.at;
        self.at = if start + 2 * bytes <= buffer.bytes() { start + bytes } else { 0 };
        // SAFETY: `start + bytes` is at most the buffer's length.
        unsafe { buffer.start().add(start) }
    }

    /// Nanoseconds of a line that is read, from front to back.
    pub fn read_line(&mut self, buffer: &Buffer) -> f64 {
        let mut sum = 0;
        let step = sample(SWEEP_LINES as u64, || {
            let start = self.next(buffer).cast::<u64>();
            for word in 0..SWEEP_LINES * 8 {
                // SAFETY: the sweep is within the buffer.
                sum ^= unsafe { start.add(word).read_volatile() };
            }
        });
        std::hint::black_box(sum);
        step
    }

    /// Nanoseconds of a line that is written, from front to back.
    pub fn write_line(&mut self, buffer: &Buffer) -> f64 {
        sample(SWEEP_LINES as u64, || {
            let start = self.next(buffer).cast::<u64>();
            for word in 0..SWEEP_LINES * 8 {
                // SAFETY: the sweep is within the buffer.
                unsafe { start.add(word).write_volatile(word as u64) };
            }
        })
    }
}

/// Instructions between two loads that [`pair`] is made for.
pub const GAPS: [u32; 16] = [16, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 1024];

/// Nanoseconds of two loads that each wait for their own chain only, with a number of instructions
/// behind each; one of [`GAPS`].
pub fn pair(gap: u32, one: &mut Chase, other: &mut Chase, steps: u64) -> f64 {
    let once = match gap {
        16 => once::<16>,
        32 => once::<32>,
        48 => once::<48>,
        64 => once::<64>,
        96 => once::<96>,
        128 => once::<128>,
        160 => once::<160>,
        192 => once::<192>,
        224 => once::<224>,
        256 => once::<256>,
        320 => once::<320>,
        384 => once::<384>,
        448 => once::<448>,
        512 => once::<512>,
        640 => once::<640>,
        _ => once::<1024>,
    };
    sample(steps, || {
        for _ in 0..steps {
            once(&mut one.at, &mut other.at);
        }
    })
}

fn once<const GAP: u32>(one: &mut *const *const u8, other: &mut *const *const u8) {
    // SAFETY: both are places of chains, which hold pointers to other places of them.
    unsafe {
        asm!(
            "mov {one}, [{one}]",
            ".rept {gap}", "nop", ".endr",
            "mov {other}, [{other}]",
            ".rept {gap}", "nop", ".endr",
            one = inout(reg) *one,
            other = inout(reg) *other,
            gap = const GAP,
            options(nostack, readonly),
        );
    }
}
