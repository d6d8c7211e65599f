//! Calls that led to a place in a program, by a copy of the stack and the program's unwind tables: no
//! frame pointer is needed.
//!
//! framehop follows the rules that nearly all code has, and keeps them. Rules with expressions
//! (handlers of signals, realigned stacks, the stubs of calls into libraries) are evaluated here:
//! framehop follows a jump in an expression without an end, and reads no memory for it. Where no
//! table describes the code, nothing is guessed.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, ModuleSectionInfo, Unwinder};
use gimli::{
    CfaRule, EhFrame, Encoding, EvaluationResult, RegisterRule, UnwindExpression, UnwindTableRow, Value,
    X86_64,
};
use object::Object;

use crate::Error;
use crate::debug::Slice;
use crate::program::{MOST_BYTES, Segments};
use crate::unwind::{Bytes, FrameTables};

/// Frames that are no larger are followed.
const MOST_FRAME: i64 = 1 << 30;
/// Operations of an expression that are carried out.
const MOST_OPERATIONS: u32 = 1000;
/// Addresses whose kinds of rules are kept, at most.
const MOST_KNOWN: usize = 1 << 20;

/// A copy of the upper part of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub struct StackBytes<'a> {
    /// The address of the first byte.
    pub from: u64,
    /// The bytes that lie there and behind.
    pub bytes: &'a [u8],
}

impl StackBytes<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.from)?).ok()?;
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }
}

/// The registers that a function's frame is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRegisters {
    /// The instruction, or the one behind a call: an address of the process.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// rbp.
    pub frame: u64,
    /// The instruction is the next to be run: it is the innermost, or a signal came. Else a call stands in front of it.
    pub is_next: bool,
}

impl FrameRegisters {
    /// An address of the instruction that the program is at, or of the call that it is in.
    pub fn place(&self) -> u64 {
        if self.is_next { self.instruction } else { self.instruction.wrapping_sub(1) }
    }
}

/// The frame that called another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameCaller {
    /// The place behind the call, and the registers that its function had.
    At(FrameRegisters),
    /// There is none: the thread began here.
    None,
    /// It lies deeper than the copy of the stack reaches.
    BelowCopy,
    /// The tables do not say it.
    Unknown,
}

/// The sections that framehop asks for.
struct Sections<'a>(&'a FrameTables);

impl ModuleSectionInfo<Slice> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        let bases = &self.0.bases;
        let from = match name {
            b".text" => bases.eh_frame.text,
            b".eh_frame" => bases.eh_frame.section,
            b".eh_frame_hdr" => bases.eh_frame_hdr.section,
            _ => None,
        };
        // Of a range it wants the beginning alone.
        from.map(|from| from..from)
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Slice> {
        match name {
            b".eh_frame" => Some(self.0.tables.clone()),
            b".eh_frame_hdr" => Some(self.0.index.clone()),
            _ => None,
        }
    }
}

/// The way in which a frame is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    Plain,
    Expressions,
    /// Expressions, which lead to where a signal came.
    Signal,
    Ends,
    Unknown,
}

/// Follows calls through the code of a file.
pub struct CallStack {
    tables: FrameTables,
    segments: Segments,
    build_id: Option<Vec<u8>>,
    unwinder: UnwinderX86_64<Slice>,
    cache: CacheX86_64,
    known: HashMap<u64, Rules>,
}

impl CallStack {
    /// Reads the tables of a file. `None`: it has none.
    ///
    /// # Errors
    /// If it cannot be read, or is no program.
    pub fn read(path: &Path) -> Result<Option<CallStack>, Error> {
        let bytes = memlode_files::read_stored(path, MOST_BYTES)
            .map_err(|source| Error::Io { path: path.to_owned(), source })?;
        CallStack::parse(bytes, path)
    }

    /// Reads the tables of a file's bytes; the path is for errors only. `None`: it has none.
    ///
    /// # Errors
    /// If they are no program.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<Option<CallStack>, Error> {
        let bytes: Arc<[u8]> = bytes.into();
        let image = object::File::parse(&*bytes)
            .map_err(|why| Error::NotProgram { path: path.to_owned(), what: why.to_string() })?;
        let Some(tables) = FrameTables::of(&bytes, &image) else { return Ok(None) };
        // Addresses are those of the file: what holds for one process holds for all.
        let module = Module::new(String::new(), 0..u64::from(u32::MAX), 0, Sections(&tables));
        let mut unwinder = UnwinderX86_64::new();
        unwinder.add_module(module);
        let build_id = image.build_id().ok().flatten().map(<[u8]>::to_vec);
        let segments = Segments::of(&image);
        let (cache, known) = (CacheX86_64::new(), HashMap::new());
        Ok(Some(CallStack { tables, segments, build_id, unwinder, cache, known }))
    }

    /// The number that the file's link gave it, if it did.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Returns whether most of the file's functions keep the address of their frame in rbp. `None`: none has a frame.
    pub fn keeps_frame_pointers(&self) -> Option<bool> {
        self.tables.keeps_frame_pointers()
    }

    /// The frame that called the one of `registers`, whose [`FrameRegisters::place`] is the file's byte at `offset`.
    pub fn caller(&mut self, registers: FrameRegisters, offset: u64, stack: StackBytes<'_>) -> FrameCaller {
        let at = self.segments.address_of(offset).filter(|at| *at < u64::from(u32::MAX) - 1);
        // Nobody's stack lies at the ends of the address space.
        let is_sound = |stack: u64| (1 << 12..1 << 56).contains(&stack);
        let Some(at) = at.filter(|_| is_sound(registers.stack)) else { return FrameCaller::Unknown };
        let caller = match self.rules_of(at) {
            Rules::Plain => self.plain(registers, at, stack),
            Rules::Expressions | Rules::Signal => self.evaluated(registers, at, stack),
            Rules::Ends => FrameCaller::None,
            Rules::Unknown => FrameCaller::Unknown,
        };
        match caller {
            FrameCaller::At(FrameRegisters { instruction: 0, .. }) => FrameCaller::None,
            // Each frame takes room, so that there is an end.
            FrameCaller::At(found) if found.stack <= registers.stack => FrameCaller::Unknown,
            caller => caller,
        }
    }

    fn rules_of(&mut self, at: u64) -> Rules {
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let found = self.tables.rules(at, |_, common, row| match rules(row) {
            Rules::Plain | Rules::Expressions if common.is_signal_trampoline() => Rules::Signal,
            kind => kind,
        });
        let found = found.unwrap_or(Rules::Unknown);
        if self.known.len() < MOST_KNOWN {
            self.known.insert(at, found);
        }
        found
    }

    fn plain(&mut self, registers: FrameRegisters, at: u64, stack: StackBytes<'_>) -> FrameCaller {
        let address = match registers.is_next {
            true => Some(FrameAddress::from_instruction_pointer(at)),
            false => FrameAddress::from_return_address(at + 1),
        };
        let Some(address) = address else { return FrameCaller::Unknown };
        let mut found = UnwindRegsX86_64::new(registers.instruction, registers.stack, registers.frame);
        let mut is_below = false;
        let mut read = |address: u64| {
            let word = stack.word(address);
            is_below |= word.is_none();
            word.ok_or(())
        };
        match self.unwinder.unwind_frame(address, &mut found, &mut self.cache, &mut read) {
            Ok(Some(instruction)) => {
                let (stack, frame) = (found.sp(), found.bp());
                FrameCaller::At(FrameRegisters { instruction, stack, frame, is_next: false })
            }
            Ok(None) => FrameCaller::None,
            Err(_) if is_below => FrameCaller::BelowCopy,
            Err(_) => FrameCaller::Unknown,
        }
    }

    fn evaluated(&self, registers: FrameRegisters, at: u64, stack: StackBytes<'_>) -> FrameCaller {
        let caller = self.tables.rules(at, |tables, common, row| {
            let frame = Evaluated { tables, encoding: common.encoding(), registers, stack, at };
            let canonical = frame.canonical(row.cfa())?;
            let instruction = frame.register(row.register(X86_64::RA), canonical, None)?;
            let own = Some(registers.frame);
            let frame = frame.register(row.register(X86_64::RBP), canonical, own)?;
            let is_next = common.is_signal_trampoline();
            Some(FrameRegisters { instruction, stack: canonical, frame, is_next })
        });
        caller.flatten().map_or(FrameCaller::Unknown, FrameCaller::At)
    }
}

/// The kind of rules. Plain ones are those for which framehop needs no more than a register and a constant.
fn rules(row: &UnwindTableRow<usize>) -> Rules {
    const SAME: [RegisterRule<usize>; 2] = [RegisterRule::Undefined, RegisterRule::SameValue];
    let is_small = |offset: i64| (-MOST_FRAME..MOST_FRAME).contains(&offset) && offset % 8 == 0;
    let (canonical, returned, frame) = (row.cfa(), row.register(X86_64::RA), row.register(X86_64::RBP));
    let is_saved = match &frame {
        RegisterRule::Offset(at) => is_small(*at),
        rule => SAME.contains(rule),
    };
    match (canonical, returned) {
        (_, RegisterRule::Undefined) => Rules::Ends,
        (CfaRule::RegisterAndOffset { register: X86_64::RSP, offset }, RegisterRule::Offset(-8))
            if is_saved && is_small(*offset) && (8..8 * i64::from(u16::MAX)).contains(offset) =>
        {
            Rules::Plain
        }
        (CfaRule::RegisterAndOffset { register: X86_64::RBP, offset: 16 }, RegisterRule::Offset(-8))
            if frame == RegisterRule::Offset(-16) =>
        {
            Rules::Plain
        }
        (CfaRule::RegisterAndOffset { register: X86_64::RSP | X86_64::RBP, .. }, _)
        | (CfaRule::Expression(_), _) => Rules::Expressions,
        _ => Rules::Unknown,
    }
}

/// A frame whose rules are evaluated.
struct Evaluated<'a> {
    tables: &'a EhFrame<Bytes<'a>>,
    encoding: Encoding,
    registers: FrameRegisters,
    stack: StackBytes<'a>,
    /// The instruction, as the file has it.
    at: u64,
}

impl Evaluated<'_> {
    /// The address where the caller's frame ends.
    fn canonical(&self, rule: &CfaRule<usize>) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.value(*register)?.checked_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.expression(expression, None),
        }
    }

    /// A register of the caller.
    fn register(&self, rule: RegisterRule<usize>, canonical: u64, same: Option<u64>) -> Option<u64> {
        match rule {
            RegisterRule::Undefined | RegisterRule::SameValue => same,
            RegisterRule::Offset(offset) => self.stack.word(canonical.checked_add_signed(offset)?),
            RegisterRule::ValOffset(offset) => canonical.checked_add_signed(offset),
            RegisterRule::Expression(expression) => {
                self.stack.word(self.expression(&expression, Some(canonical))?)
            }
            RegisterRule::ValExpression(expression) => self.expression(&expression, Some(canonical)),
            _ => None,
        }
    }

    fn value(&self, register: gimli::Register) -> Option<u64> {
        match register {
            X86_64::RSP => Some(self.registers.stack),
            X86_64::RBP => Some(self.registers.frame),
            // Its low digits are those of the process.
            X86_64::RA => Some(self.at),
            _ => None,
        }
    }

    fn expression(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.get(self.tables).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.value(register)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.stack.word(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().pop()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
