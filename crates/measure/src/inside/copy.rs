//! A copy between two pages of a program that stands still: whether loads from one wait for stores to the other.

use std::arch::global_asm;

use super::call::Repeated;
use super::tracee::Registers;
use crate::Error;

/// Place of the instructions: behind those that repeat calls, on the same page.
const CODE: u64 = 2048;
/// Words of one copy: half a page, so that the other half is for the control.
const STEPS: u64 = 240;
const PAGE: usize = 4096;
const HALF: u64 = 2048;

// Position-independent, and copied into the program. `rbx` points to: from, to, passes, and where the least ticks go.
global_asm!(
    ".pushsection .text.memlode_copy,\"ax\",@progbits",
    ".globl memlode_copy",
    ".globl memlode_copy_end",
    ".hidden memlode_copy",
    ".hidden memlode_copy_end",
    "memlode_copy:",
    "  mov r12, [rbx + 16]",
    "  mov r13, -1",
    "2:",
    "  mov rsi, [rbx]",
    "  mov rdi, [rbx + 8]",
    "  mov ecx, {steps}",
    "  lfence",
    "  rdtsc",
    "  lfence",
    "  shl rdx, 32",
    "  or rax, rdx",
    "  mov r14, rax",
    "3:",
    "  mov rax, [rsi]",
    "  mov [rdi], rax",
    "  add rsi, 8",
    "  add rdi, 8",
    "  dec ecx",
    "  jnz 3b",
    "  lfence",
    "  rdtsc",
    "  lfence",
    "  shl rdx, 32",
    "  or rax, rdx",
    "  sub rax, r14",
    "  cmp rax, r13",
    "  cmovb r13, rax",
    "  dec r12",
    "  jnz 2b",
    "  mov [rbx + 24], r13",
    "  int3",
    "memlode_copy_end:",
    ".popsection",
    steps = const STEPS,
);

unsafe extern "C" {
    static memlode_copy: u8;
    static memlode_copy_end: u8;
}

impl Repeated {
    /// Ticks of a word of a copy from one page of the program to another, stores one word ahead of loads: between places
    /// that agree in their low 12 bits, and for control between halves of the pages that do not. The page that is written
    /// is put back.
    ///
    /// # Errors
    /// If the program cannot be controlled, or a page cannot be read or written.
    pub fn copy_between(&mut self, from: u64, to: u64, passes: u64) -> Result<(f64, f64), Error> {
        // SAFETY: the two symbols enclose instructions of this program.
        let instructions = unsafe {
            let first = &raw const memlode_copy;
            let bytes = (&raw const memlode_copy_end).offset_from(first);
            std::slice::from_raw_parts(first, bytes.unsigned_abs())
        };
        let code = self.code + CODE;
        self.tracee.write(code, instructions)?;
        let mut before = vec![0; PAGE];
        self.tracee.read(to, &mut before)?;
        let mut copy = |to: u64| -> Result<f64, Error> {
            let words: Vec<u8> = [from, to, passes, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
            self.tracee.write(self.data, &words)?;
            let registers = Registers { rip: code, rbx: self.data, orig_rax: u64::MAX, ..self.entry };
            self.tracee.set_registers(&registers)?;
            self.tracee.resume(None)?;
            let mut ticks = [0; 8];
            self.tracee.read(self.data + 24, &mut ticks)?;
            Ok(u64::from_ne_bytes(ticks) as f64 / STEPS as f64)
        };
        let agreeing = copy(to + 8);
        let control = copy(to + HALF + 8);
        self.tracee.write(to, &before)?;
        Ok((agreeing?, control?))
    }
}
