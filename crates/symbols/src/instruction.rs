//! Instructions of x86-64: the memory that one reads and writes, and where it goes on.

use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register as Iced, UsedMemory,
};

/// Bytes of the longest instruction.
pub const LONGEST: usize = 15;
/// General registers.
pub const REGISTERS: usize = 16;

/// A general register by its number in debug information: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp,
/// r8 to r15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

impl Register {
    /// The stack pointer.
    pub const STACK: Register = Register(7);
    /// The one that holds a function's frame, where functions keep that: rbp.
    pub const FRAME: Register = Register(6);

    /// The register that holds a part of it, `al` in `rax`; `None` of another kind.
    pub(crate) fn of(register: Iced) -> Option<Register> {
        let number = match register.full_register() {
            Iced::RAX => 0,
            Iced::RDX => 1,
            Iced::RCX => 2,
            Iced::RBX => 3,
            Iced::RSI => 4,
            Iced::RDI => 5,
            Iced::RBP => 6,
            Iced::RSP => 7,
            Iced::R8 => 8,
            Iced::R9 => 9,
            Iced::R10 => 10,
            Iced::R11 => 11,
            Iced::R12 => 12,
            Iced::R13 => 13,
            Iced::R14 => 14,
            Iced::R15 => 15,
            _ => return None,
        };
        Some(Register(number))
    }
}

/// The values from which addresses are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneralRegisters {
    /// Indexed by the number in debug information.
    pub general: [u64; REGISTERS],
    /// Bases of the two segments that have one, where they are known.
    pub fs_base: Option<u64>,
    /// Like `fs_base`.
    pub gs_base: Option<u64>,
}

impl GeneralRegisters {
    fn value(&self, register: Iced) -> Option<u64> {
        match register {
            Iced::FS => return self.fs_base,
            Iced::GS => return self.gs_base,
            Iced::ES | Iced::CS | Iced::SS | Iced::DS => return Some(0),
            _ => {}
        }
        let whole = self.general[usize::from(Register::of(register)?.0)];
        Some(if register.is_gpr32() { whole & 0xffff_ffff } else { whole })
    }
}

/// The flow of control after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To another one.
    Jump(u64),
    /// To another one, or to the next.
    Branch(u64),
    /// To the next one, after a function.
    Call,
    /// To an unknown place.
    Ends,
}

/// An instruction at its address.
#[derive(Clone, Copy, Debug)]
pub struct Instruction(pub(crate) iced_x86::Instruction);

impl Instruction {
    /// Decodes the instruction at the beginning of `code`, which is at `address`. `None` if it is
    /// unknown.
    pub fn decode(code: &[u8], address: u64) -> Option<Instruction> {
        let code = &code[..code.len().min(LONGEST)];
        let decoded = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        (decoded.code() != Code::INVALID).then_some(Instruction(decoded))
    }

    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.0.ip()
    }

    /// The address behind it.
    pub fn next(&self) -> u64 {
        self.0.next_ip()
    }

    /// It calls a function of the program.
    pub fn is_call(&self) -> bool {
        matches!(self.0.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Returns whether processors carry it out together with the jump behind it, as one: a
    /// comparison, or an addition whose result is in a register (Intel's optimisation manual,
    /// macro-fusion).
    pub(crate) fn fuses_with(&self, jump: &Instruction) -> bool {
        use ConditionCode::{no, np, ns, o, p, s};
        let decoded = &self.0;
        let is_memory = |kind| kind == OpKind::Memory;
        let has_number = decoded.op_count() > 1 && decoded.try_immediate(1).is_ok();
        if decoded.next_ip() != jump.address()
            || !jump.0.is_jcc_short_or_near()
            || (has_number && decoded.op_kinds().any(is_memory))
        {
            return false;
        }
        let is_order = !matches!(jump.0.condition_code(), s | ns | p | np | o | no);
        match decoded.mnemonic() {
            Mnemonic::Test => true,
            Mnemonic::And => !is_memory(decoded.op0_kind()),
            Mnemonic::Cmp => is_order,
            Mnemonic::Add | Mnemonic::Sub => is_order && !is_memory(decoded.op0_kind()),
            _ => false,
        }
    }

    /// The way on from here.
    pub fn flow(&self) -> Flow {
        match self.0.flow_control() {
            FlowControl::Next | FlowControl::XbeginXabortXend => Flow::Next,
            FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
            // The kernel is a function, too.
            FlowControl::Interrupt if self.0.code() != Code::Int3 => Flow::Call,
            FlowControl::UnconditionalBranch => Flow::Jump(self.0.near_branch_target()),
            FlowControl::ConditionalBranch => Flow::Branch(self.0.near_branch_target()),
            FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception => Flow::Ends,
        }
    }
}

/// Memory that an instruction reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    memory: UsedMemory,
    /// Bytes; 0 if the instruction does not have them.
    pub bytes: u32,
    /// It is read.
    pub loads: bool,
    /// It is written.
    pub stores: bool,
}

impl Operand {
    /// The address of the first byte. `None` if it depends on vector registers.
    pub fn address(&self, registers: &GeneralRegisters) -> Option<u64> {
        self.memory.virtual_address(0, |register, _, _| registers.value(register))
    }

    /// The register that addresses are counted from.
    pub fn base(&self) -> Option<Register> {
        Register::of(self.memory.base())
    }

    /// A register that is multiplied and added.
    pub fn index(&self) -> Option<Register> {
        Register::of(self.memory.index())
    }

    /// Returns whether addresses depend on other registers than the general ones.
    pub fn is_vector(&self) -> bool {
        self.memory.index() != Iced::None && self.index().is_none()
    }

    /// Lies in a segment of the thread's own.
    pub fn is_thread_local(&self) -> bool {
        matches!(self.memory.segment(), Iced::FS | Iced::GS)
    }

    /// The number that the index is multiplied with.
    pub fn scale(&self) -> u32 {
        self.memory.scale()
    }

    /// The number that is added. Without a base it is the address, also for addresses relative to
    /// the instruction.
    pub fn displacement(&self) -> u64 {
        self.memory.displacement()
    }
}

/// Finds the operands of instructions; one serves for many.
pub struct Operands(InstructionInfoFactory);

impl Default for Operands {
    fn default() -> Operands {
        Operands(InstructionInfoFactory::new())
    }
}

impl Operands {
    /// Memory that an instruction reads or writes, implied operands too.
    pub fn of(&mut self, instruction: &Instruction) -> impl Iterator<Item = Operand> + '_ {
        let one = |memory: &UsedMemory| {
            let (loads, stores) = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                OpAccess::None | OpAccess::NoMemAccess => return None,
            };
            Some(Operand { memory: *memory, bytes: memory.memory_size().size() as u32, loads, stores })
        };
        self.0.info(&instruction.0).used_memory().iter().filter_map(one)
    }

    /// General registers that an instruction changes.
    pub fn written(&mut self, instruction: &Instruction) -> impl Iterator<Item = Register> + '_ {
        let is_written = |access| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let registers = self.0.info(&instruction.0).used_registers().iter();
        registers
            .filter(move |used| is_written(used.access()))
            .filter_map(|used| Register::of(used.register()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: &[u8]) -> Instruction {
        Instruction::decode(code, 0x1000).expect("an instruction")
    }

    #[test]
    fn operands_and_their_addresses() {
        let mut registers = GeneralRegisters { fs_base: Some(0x7000), ..GeneralRegisters::default() };
        registers.general[5] = 0x100;
        registers.general[0] = 0xffff_ffff_0000_0002;
        // mov rax, [rdi + rax * 8 + 16]; the same with 32-bit registers; add [rip + 0x10], eax; mov rax, fs:[0x28]
        for (code, address, bytes, loads, stores) in [
            (&[0x48, 0x8b, 0x44, 0xc7, 0x10][..], 0xffff_fff8_0000_0120, 8, true, false),
            (&[0x67, 0x48, 0x8b, 0x44, 0xc7, 0x10], 0x120, 8, true, false),
            (&[0x01, 0x05, 0x10, 0, 0, 0], 0x1016, 4, true, true),
            (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], 0x7028, 8, true, false),
        ] {
            let mut operands = Operands::default();
            let found: Vec<Operand> = operands.of(&decoded(code)).collect();
            let [operand] = found[..] else { panic!("{found:?}") };
            assert_eq!(operand.address(&registers), Some(address), "{code:x?}");
            assert_eq!((operand.bytes, operand.loads, operand.stores), (bytes, loads, stores), "{code:x?}");
        }
    }

    #[test]
    fn comparisons_and_jumps_that_are_one() {
        let fused = |code: &[u8], jump: &[u8]| {
            let first = decoded(code);
            first.fuses_with(&Instruction::decode(jump, first.next()).expect("a jump"))
        };
        let (jne, js, loops, jmp) = (&[0x75, 0][..], &[0x78, 0][..], &[0xe2, 0][..], &[0xeb, 0][..]);
        // cmp [rdi], eax; cmp eax, [rdi]; cmp [rdi], 7; test [rdi], eax; add eax, [rdi];
        // add [rdi], eax; mov eax, [rdi]; cmp eax, 7
        for (code, with) in [
            (&[0x39, 0x07][..], [true, false]),
            (&[0x3b, 0x07], [true, false]),
            (&[0x83, 0x3f, 0x07], [false, false]),
            (&[0x85, 0x07], [true, true]),
            (&[0x03, 0x07], [true, false]),
            (&[0x01, 0x07], [false, false]),
            (&[0x8b, 0x07], [false, false]),
            (&[0x83, 0xf8, 0x07], [true, false]),
        ] {
            assert_eq!([fused(code, jne), fused(code, js)], with, "{code:x?}");
            assert!(!fused(code, loops) && !fused(code, jmp), "{code:x?}");
        }
        assert!(!decoded(&[0x39, 0x07]).fuses_with(&decoded(jne)), "one that lies elsewhere");
    }

    #[test]
    fn the_way_on() {
        // ret, je +2, jmp -2, call, jmp rax, syscall, int3
        for (code, flow) in [
            (&[0xc3][..], Flow::Ends),
            (&[0x74, 2], Flow::Branch(0x1004)),
            (&[0xeb, 0xfe], Flow::Jump(0x1000)),
            (&[0xe8, 0, 0, 0, 0], Flow::Call),
            (&[0xff, 0xe0], Flow::Ends),
            (&[0x0f, 0x05], Flow::Call),
            (&[0xcc], Flow::Ends),
            (&[0x90], Flow::Next),
        ] {
            assert_eq!(decoded(code).flow(), flow, "{code:x?}");
        }
        assert!(Instruction::decode(&[0x48], 0).is_none() && Instruction::decode(&[], 0).is_none());
    }
}
