//! A call that is repeated at other places of the stack, and timed.

use std::arch::global_asm;
use std::sync::Arc;
use std::time::Duration;

use super::tracee::{Registers, Tracee};
use crate::Error;
use crate::process::{AddressLayout, Launch, StopFlag};
use crate::stats::quantile;

// Position-independent, and copied into the program. `rbx` points to a `Block`: it and r12 to r15 survive calls.
//
//   for each sample: chain of multiplications, the calls, the chain again; the clock is read before, between and after
global_asm!(
    ".pushsection .text.memlode_repeat,\"ax\",@progbits",
    ".globl memlode_repeat",
    ".globl memlode_repeat_end",
    ".hidden memlode_repeat",
    ".hidden memlode_repeat_end",
    "memlode_repeat:",
    "  lea r13, [rbx + 256]",
    "  mov r12, [rbx + 8]",
    "2:",
    "  mov rsp, [rbx + 24]",
    "  call 5f",
    "  call 4f",
    "  call 5f",
    "  mov r14, [rbx + 16]",
    "3:",
    "  mov rsp, [rbx + 24]",
    "  movups xmm0, [rbx + 96]",
    "  movups xmm1, [rbx + 112]",
    "  movups xmm2, [rbx + 128]",
    "  movups xmm3, [rbx + 144]",
    "  movups xmm4, [rbx + 160]",
    "  movups xmm5, [rbx + 176]",
    "  movups xmm6, [rbx + 192]",
    "  movups xmm7, [rbx + 208]",
    "  mov rdi, [rbx + 32]",
    "  mov rsi, [rbx + 40]",
    "  mov rdx, [rbx + 48]",
    "  mov rcx, [rbx + 56]",
    "  mov r8, [rbx + 64]",
    "  mov r9, [rbx + 72]",
    "  mov rax, [rbx + 80]",
    "  call [rbx]",
    "  dec r14",
    "  jnz 3b",
    "  mov rsp, [rbx + 24]",
    "  call 5f",
    "  call 4f",
    "  call 5f",
    "  dec r12",
    "  jnz 2b",
    "  int3",
    // A chain of multiplications, each waiting for the one before.
    "4:",
    "  mov rcx, 3000",
    "  mov rax, 3",
    "6:",
    "  imul rax, rax",
    "  dec rcx",
    "  jnz 6b",
    "  ret",
    // Writes down the time.
    "5:",
    "  lfence",
    "  rdtsc",
    "  lfence",
    "  shl rdx, 32",
    "  or rax, rdx",
    "  mov [r13], rax",
    "  add r13, 8",
    "  ret",
    "memlode_repeat_end:",
    ".popsection",
);

unsafe extern "C" {
    static memlode_repeat: u8;
    static memlode_repeat_end: u8;
}

/// The 256 bytes that the instructions above read. Behind them they write four times for each sample.
#[repr(C)]
struct Block {
    function: u64,
    samples: u64,
    calls: u64,
    stack: u64,
    /// rdi, rsi, rdx, rcx, r8, r9, rax.
    general: [u64; 7],
    unused: u64,
    vectors: [u32; 32],
    end: [u64; 4],
}
const _: () = assert!(size_of::<Block>() == 256);

impl Block {
    fn bytes(&self) -> &[u8] {
        // SAFETY: numbers without gaps between them, as long as `self`.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Block>()) }
    }
}

/// Samples of one timing, of which a low quantile counts.
const SAMPLES: usize = 5;
/// The quantile that stands for them: bursts of other programs only ever add.
const QUANTILE: f64 = 0.25;
/// Ticks of one sample: short enough that most see no interruption, and long enough for the clock.
const TICKS: f64 = 50_000.0;
const MOST_CALLS: f64 = 100_000.0;
/// Bytes below the stack where the program was stopped: calls that are repeated leave the frames above it alone.
const BELOW: u64 = 64 << 10;
/// Bytes above the return address that are copied: arguments on the stack.
const ARGUMENTS: usize = 256;
const DATA: u64 = 4096;

/// A function of a program, stopped where it is first called.
pub struct Repeated {
    pub(super) tracee: Tracee,
    function: u64,
    pub(super) entry: Registers,
    block: Block,
    arguments: [u8; ARGUMENTS],
    /// A page in the program with our instructions, and one for the data of these.
    pub(super) code: u64,
    pub(super) data: u64,
    calls: u64,
}

/// The times of a call.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Steps of a chain of multiplications that took as long: some three or four cycles each, at any clock frequency.
    pub steps: f64,
    /// Ticks of the time-stamp counter.
    pub ticks: f64,
}

impl Repeated {
    /// Runs a program until it calls the function that begins where `find` says; `name` is its
    /// name, for errors.
    ///
    /// # Errors
    /// If it does not come there, or the system does not allow control of it.
    pub fn start(
        launch: &Launch,
        layout: AddressLayout,
        name: &str,
        find: impl FnOnce(&Tracee) -> Result<u64, Error>,
        stop: &Arc<StopFlag>,
        longest: Duration,
    ) -> Result<Repeated, Error> {
        let mut tracee = Tracee::start(launch, layout, stop, longest)?;
        let function = find(&tracee)?;
        let entry = tracee.run_to(function, name)?;
        let vectors = tracee.vectors()?;
        let anywhere = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let mut map = |protection: i32| {
            tracee.system_call(libc::SYS_mmap, [0, DATA, protection as u64, anywhere, u64::MAX, 0])
        };
        let code = map(libc::PROT_READ | libc::PROT_EXEC)?;
        let data = map(libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the two symbols enclose instructions of this program.
        let instructions = unsafe {
            let first = &raw const memlode_repeat;
            let bytes = (&raw const memlode_repeat_end).offset_from(first);
            std::slice::from_raw_parts(first, bytes.unsigned_abs())
        };
        tracee.write(code, instructions)?;
        let mut arguments = [0; ARGUMENTS];
        tracee.read_some(entry.rsp + 8, &mut arguments);
        let mut xmm = [0; 32];
        xmm.copy_from_slice(&vectors.xmm_space[..32]);
        let general = [entry.rdi, entry.rsi, entry.rdx, entry.rcx, entry.r8, entry.r9, entry.rax];
        let block =
            Block { function, samples: 0, calls: 1, stack: 0, general, unused: 0, vectors: xmm, end: [0; 4] };
        let mut repeated = Repeated { tracee, function, entry, block, arguments, code, data, calls: 1 };
        repeated.time(0)?;
        let once = repeated.time(0)?;
        repeated.calls = (TICKS / once.ticks).clamp(1.0, MOST_CALLS) as u64;
        Ok(repeated)
    }

    /// Calls it with a stack that begins `shift` bytes (a multiple of 16) further down than where the program did.
    ///
    /// # Errors
    /// If the program does not survive that.
    pub fn time(&mut self, shift: u64) -> Result<Timing, Error> {
        self.block.samples = SAMPLES as u64;
        self.block.calls = self.calls;
        self.block.stack = self.place(shift)? + 8;
        self.tracee.write(self.data, self.block.bytes())?;
        let registers = Registers {
            rip: self.code,
            rbx: self.data,
            rsp: self.block.stack,
            orig_rax: u64::MAX,
            ..self.entry
        };
        self.tracee.set_registers(&registers)?;
        self.tracee.resume(None)?;
        let mut bytes = [0; SAMPLES * 32];
        self.tracee.read(self.data + size_of::<Block>() as u64, &mut bytes)?;
        let word = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default());
        let (mut steps, mut ticks) = (Vec::new(), Vec::new());
        for sample in 0..SAMPLES {
            // Stamps: around the first chain, before the calls (the same one), after them, and after the second chain.
            let stamp = |at: usize| word(4 * sample + at) as f64;
            let (before, call, after) = (stamp(1) - stamp(0), stamp(2) - stamp(1), stamp(3) - stamp(2));
            ticks.push(call / self.calls as f64);
            steps.push(6000.0 * call / self.calls as f64 / (before + after).max(1.0));
        }
        Ok(Timing { steps: quantile(&steps, QUANTILE), ticks: quantile(&ticks, QUANTILE) })
    }

    /// Puts the program where the function begins, with the stack moved, so that it can be looked at step by step. Where it
    /// returns to, and the stack pointer at its beginning.
    ///
    /// # Errors
    /// If the program cannot be controlled.
    pub fn rewind(&mut self, shift: u64) -> Result<(u64, u64), Error> {
        let stack = self.place(shift)?;
        // It returns to a place that nothing else comes to.
        self.tracee.write(stack, &self.code.to_ne_bytes())?;
        let registers = Registers { rip: self.function, rsp: stack, orig_rax: u64::MAX, ..self.entry };
        self.tracee.set_registers(&registers)?;
        Ok((self.code, stack))
    }

    /// The program.
    pub fn tracee(&mut self) -> &mut Tracee {
        &mut self.tracee
    }

    /// The stack pointer at the function's beginning, with the arguments that lie on the stack above it.
    fn place(&self, shift: u64) -> Result<u64, Error> {
        let stack = self.entry.rsp - BELOW - shift;
        self.tracee.write(stack + 8, &self.arguments).map_err(|_| {
            Error::Usage(format!(
                "{} KiB below where the function is called there is no more stack, as in a coroutine; it cannot be \
                 measured there",
                (BELOW + shift) >> 10
            ))
        })?;
        Ok(stack)
    }
}
