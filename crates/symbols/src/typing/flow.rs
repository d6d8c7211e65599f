//! Values followed from instruction to instruction, until nothing changes any more.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, ConditionCode, Mnemonic, OpKind};

use super::state::{State, Value};
use super::{Known, TypedAccess, Untyped};
use crate::instruction::{Flow, Instruction, Operand, Operands, Register};

/// Registers that a function may change without restoring them: rax, rdx, rcx, rsi, rdi, r8 to r11.
const CHANGED_BY_CALLS: [u8; 9] = [0, 1, 2, 4, 5, 8, 9, 10, 11];
/// The offset that stands for the top of a stack which a function has aligned: places are counted from
/// there, far from those that are counted from the frame's end.
const ALIGNED: i64 = -(1 << 40);
/// The register that functions return values in: rax.
const RESULT: Register = Register(0);
/// States that are joined before a block, after which only the frame's place is kept: states only lose,
/// so a few suffice.
const MOST_JOINED: u32 = 40;

/// The instructions of a function, one after the other, up to the first bytes that are none.
pub fn decode(code: &[u8], address: u64) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(instruction) = Instruction::decode(&code[at..], address + at as u64) {
        at += (instruction.next() - instruction.address()) as usize;
        found.push(instruction);
    }
    found
}

/// Accesses of a function of which nothing is known.
pub fn untyped(code: &[Instruction], operands: &mut Operands, why: Untyped) -> Vec<TypedAccess> {
    let one = |instruction: &Instruction| {
        let operand = accessed(operands, instruction);
        let why = match operand {
            None => Untyped::NoMemory,
            Some(_) if is_of_stack(instruction) => Untyped::Stack,
            Some(_) => why,
        };
        TypedAccess { address: instruction.address(), operand, data: Err(why) }
    };
    code.iter().map(one).collect()
}

/// The operand that an instruction waits for: the one that it names, or else the first; loads come
/// before stores.
fn accessed(operands: &mut Operands, instruction: &Instruction) -> Option<Operand> {
    let found: Vec<Operand> = operands.of(instruction).filter(|operand| operand.bytes > 0).collect();
    let is_stack = |operand: &&Operand| operand.base() != Some(Register::STACK);
    let named = found.iter().filter(is_stack).max_by_key(|operand| operand.loads);
    named.or(found.first()).copied()
}

/// Returns whether an instruction saves something on the stack, or takes it from there, without naming
/// any memory: `push`, `pop`, `call`, `ret`.
fn is_of_stack(instruction: &Instruction) -> bool {
    let decoded = &instruction.0;
    decoded.is_stack_instruction() && decoded.op_kinds().all(|kind| kind != OpKind::Memory)
}

/// Finds the data that each instruction touches.
pub fn follow(known: &Known<'_>, code: &[Instruction], operands: &mut Operands) -> Vec<TypedAccess> {
    let blocks = blocks(code);
    let mut before: BTreeMap<usize, State> = BTreeMap::new();
    if !code.is_empty() {
        before.insert(0, State::entry());
    }
    let mut waiting: BTreeSet<usize> = before.keys().copied().collect();
    let mut joined: BTreeMap<usize, u32> = BTreeMap::new();
    // Where jumps go that tables tell: to blocks that nothing else leads to.
    let mut by_table: Option<State> = None;
    let mut targets: Vec<usize> = Vec::new();
    loop {
        while let Some(block) = waiting.pop_first() {
            let mut state = before[&block].clone();
            let end = blocks.range(block + 1..).next().copied().unwrap_or(code.len());
            for instruction in &code[block..end] {
                step(known, instruction, operands, &mut state);
            }
            let last = &code[end - 1];
            if last.flow() == Flow::Ends && last.0.is_jmp_near_indirect() {
                let jumps = if known.has_handlers { state.clone().only_frame() } else { state.clone() };
                let has_changed = match &mut by_table {
                    Some(other) => other.meet(&jumps, known.debug),
                    None => {
                        by_table = Some(jumps.clone());
                        true
                    }
                };
                for target in targets.iter().filter(|_| has_changed) {
                    let changed = before.get_mut(target).is_some_and(|other| other.meet(&jumps, known.debug));
                    if changed {
                        waiting.insert(*target);
                    }
                }
            }
            for next in successors(code, end - 1) {
                let is_new = match before.get_mut(&next) {
                    Some(other) => {
                        let has_changed = other.meet(&state, known.debug);
                        let count = joined.entry(next).or_default();
                        *count += u32::from(has_changed);
                        if *count > MOST_JOINED {
                            other.keep_frame();
                        }
                        has_changed
                    }
                    None => before.insert(next, state.clone()).is_none(),
                };
                if is_new {
                    waiting.insert(next);
                }
            }
        }
        // One at a time: what it leads to is reached by it.
        let Some(block) = blocks.iter().find(|block| !before.contains_key(block)) else { break };
        before.insert(*block, by_table.clone().unwrap_or_default());
        targets.push(*block);
        // Padding behind a jump is run by nobody.
        let end = blocks.range(block + 1..).next().copied().unwrap_or(code.len());
        if code[*block..end].iter().any(|instruction| instruction.0.mnemonic() != Mnemonic::Nop) {
            waiting.insert(*block);
        }
    }
    tell(known, code, operands, &blocks, &before)
}

fn tell(
    known: &Known<'_>,
    code: &[Instruction],
    operands: &mut Operands,
    blocks: &BTreeSet<usize>,
    before: &BTreeMap<usize, State>,
) -> Vec<TypedAccess> {
    let mut found = Vec::with_capacity(code.len());
    let mut state = State::default();
    for (at, instruction) in code.iter().enumerate() {
        if blocks.contains(&at) {
            state = before.get(&at).cloned().unwrap_or_default();
        }
        let address = instruction.address();
        known.overlay(address, &mut state);
        let operand = accessed(operands, instruction);
        let data = match &operand {
            None => Err(Untyped::NoMemory),
            Some(_) if is_of_stack(instruction) => Err(Untyped::Stack),
            Some(operand) => known.data(address, operand, &state),
        };
        found.push(TypedAccess { address, operand, data });
        step(known, instruction, operands, &mut state);
    }
    found
}

/// Indices of the instructions that others lead to.
fn blocks(code: &[Instruction]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    if !code.is_empty() {
        found.insert(0);
    }
    for (at, instruction) in code.iter().enumerate() {
        let target = match instruction.flow() {
            Flow::Next | Flow::Call => continue,
            Flow::Jump(target) | Flow::Branch(target) => index(code, target),
            Flow::Ends => None,
        };
        found.extend(target.into_iter().chain((at + 1 < code.len()).then_some(at + 1)));
    }
    found
}

pub fn index(code: &[Instruction], address: u64) -> Option<usize> {
    code.binary_search_by_key(&address, Instruction::address).ok()
}

fn successors(code: &[Instruction], at: usize) -> impl Iterator<Item = usize> {
    let next = (at + 1 < code.len()).then_some(at + 1);
    let (next, target) = match code[at].flow() {
        Flow::Next | Flow::Call => (next, None),
        Flow::Branch(target) => (next, index(code, target)),
        Flow::Jump(target) => (None, index(code, target)),
        Flow::Ends => (None, None),
    };
    next.into_iter().chain(target)
}

/// The state behind an instruction.
fn step(known: &Known<'_>, instruction: &Instruction, operands: &mut Operands, state: &mut State) {
    known.overlay(instruction.address(), state);
    let stack = state.get(Register::STACK);
    let decoded = &instruction.0;
    let target = (decoded.op_count() > 0 && decoded.op0_kind() == OpKind::Register)
        .then(|| Register::of(decoded.op0_register()))
        .flatten();
    // Half a register holds numbers, but no address.
    let whole = target.filter(|_| decoded.op0_register().size() >= 4);
    let is_half = decoded.op0_register().size() == 4;
    let value = whole.and_then(|target| result(known, instruction, operands, state, target));
    let value = value.filter(|value| !is_half || matches!(value, Value::Number(..)) || is_static(decoded));
    let is_push = decoded.mnemonic() == Mnemonic::Push;
    let stored =
        if is_push || decoded.mnemonic() == Mnemonic::Mov { stored(instruction, state) } else { None };
    store(instruction, operands, state, stored);
    if decoded.mnemonic() == Mnemonic::Mov {
        learn(known, instruction, operands, state);
    }
    let written: Vec<Register> = operands.written(instruction).collect();
    for register in written {
        state.set(register, Value::Unknown);
    }
    if let (Some(target), Some(value)) = (whole, value) {
        state.set(target, value);
    }
    if matches!(instruction.flow(), Flow::Call) {
        CHANGED_BY_CALLS.iter().for_each(|number| state.set(Register(*number), Value::Unknown));
        state.set(Register::STACK, stack);
        if let Some(value) = known.returned(decoded.near_branch_target(), instruction.next()) {
            state.set(RESULT, value);
        }
    } else if decoded.is_stack_instruction() && decoded.mnemonic() != Mnemonic::Leave {
        state.set(Register::STACK, known.moved(stack, decoded.stack_pointer_increment().into()));
    }
}

/// The pointer that a store writes.
fn stored(instruction: &Instruction, state: &State) -> Option<Value> {
    let decoded = &instruction.0;
    let last = decoded.op_count().checked_sub(1)?;
    let is_whole = decoded.op_kind(last) == OpKind::Register && decoded.op_register(last).size() == 8;
    Register::of(decoded.op_register(last)).filter(|_| is_whole).map(|register| state.get(register))
}

/// A pointer that is stored in a variable or member is of its type, wherever it came from: `table = calloc(…)`.
fn learn(known: &Known<'_>, instruction: &Instruction, operands: &mut Operands, state: &mut State) {
    let decoded = &instruction.0;
    let is_whole = decoded.op1_kind() == OpKind::Register && decoded.op1_register().size() == 8;
    let source = Register::of(decoded.op1_register()).filter(|_| is_whole);
    let is_open =
        |source: &Register| matches!(state.get(*source), Value::Unknown | Value::Untyped | Value::Static);
    let Some(source) = source.filter(is_open) else { return };
    let Some(operand) = operands.of(instruction).find(|operand| operand.stores) else { return };
    let value = known.pointer_at(instruction.address(), &operand, state);
    if matches!(value, Value::Into(..)) {
        state.set(source, value);
    }
}

/// Remembers a value that is stored in the frame.
fn store(instruction: &Instruction, operands: &mut Operands, state: &mut State, value: Option<Value>) {
    let stores: Vec<Operand> = operands.of(instruction).filter(|operand| operand.stores).collect();
    for operand in stores {
        let base = operand.base().map(|base| state.get(base));
        if let (Some(Value::Frame(at)), None) = (base, operand.index()) {
            let at = at.wrapping_add(operand.displacement() as i64);
            state.keep(at, value.unwrap_or_default());
        }
    }
}

/// The value that an instruction gives its first operand, a whole register; `None` if that is not
/// known.
fn result(
    known: &Known<'_>,
    instruction: &Instruction,
    operands: &mut Operands,
    state: &State,
    target: Register,
) -> Option<Value> {
    let decoded = &instruction.0;
    let address = instruction.address();
    let source = |at: u32| {
        let register = Register::of(decoded.op_register(at))?;
        (decoded.op_kind(at) == OpKind::Register && decoded.op_register(at).size() >= 4)
            .then(|| state.get(register))
    };
    let number = |at: u32| decoded.try_immediate(at).ok().map(|number| number as i64);
    match decoded.mnemonic() {
        Mnemonic::And if target == Register::STACK => Some(Value::Frame(ALIGNED)),
        Mnemonic::Mov => {
            if let Some(value) = source(1) {
                return Some(value);
            }
            match decoded.op1_kind() {
                OpKind::Memory => {
                    let operand = operands.of(instruction).next()?;
                    Some(known.loaded(address, &operand, state))
                }
                _ => {
                    let number = number(1)?;
                    let object = if known.is_fixed { address_of(known, number as u64) } else { None };
                    object.or(Some(Value::number(0, number)))
                }
            }
        }
        Mnemonic::Pop => {
            let operand = operands.of(instruction).next()?;
            Some(known.loaded(address, &operand, state))
        }
        Mnemonic::Lea => lea(known, instruction, state),
        Mnemonic::Add => match (state.get(target), added(known, instruction, operands, state)) {
            (own @ Value::Into(..), Some(other)) => Some(known.indexed(own, other)),
            (own, Some(other @ Value::Into(..))) => Some(known.indexed(other, own)),
            (own, Some(other)) => Some(own.plus(other)),
            (own, None) => number(1).map(|by| known.moved(own, by)),
        },
        Mnemonic::Sub => match (state.get(target), source(1)) {
            (own @ Value::Into(..), Some(other @ Value::Number(..))) => {
                Some(known.indexed(own, other.times(-1)))
            }
            (own, Some(other)) => Some(own.plus(other.times(-1))),
            (own, None) => number(1).map(|by| known.moved(own, by.wrapping_neg())),
        },
        Mnemonic::And => match (state.get(target), number(1)) {
            // Numbers that are kept in the low bits of a pointer are removed.
            (own @ Value::Into(..), Some(-16..0)) => Some(own),
            (own, mask) => {
                let other = mask.map_or(source(1).map_or(0, Value::zeros), |mask| mask.trailing_zeros());
                Some(Value::number(1_u64.checked_shl(own.zeros().max(other)).unwrap_or(0), 0))
            }
        },
        Mnemonic::Shr | Mnemonic::Sar => {
            let by = decoded.try_immediate(1).ok().filter(|by| *by < 32)?;
            let own = state.get(target);
            let (of, rest) = own.parts();
            (own.zeros() >= by as u32 && rest >= 0).then(|| Value::number(of >> by, rest >> by))
        }
        Mnemonic::Neg => match state.get(target) {
            own @ Value::Number(..) => Some(own.times(-1)),
            _ => None,
        },
        Mnemonic::Inc => Some(known.moved(state.get(target), 1)),
        Mnemonic::Dec => Some(known.moved(state.get(target), -1)),
        Mnemonic::Xor if decoded.op0_register() == decoded.op1_register() => Some(Value::number(0, 0)),
        Mnemonic::Shl => {
            let by = decoded.try_immediate(1).ok().filter(|by| *by < 32)?;
            Some(state.get(target).times(1 << by))
        }
        Mnemonic::Imul => {
            let factor = number(decoded.op_count().checked_sub(1)?)?;
            let from =
                if decoded.op_count() == 3 { source(1).unwrap_or_default() } else { state.get(target) };
            Some(from.times(factor))
        }
        Mnemonic::Movsxd => {
            let from = Register::of(decoded.op1_register()).map(|from| state.get(from));
            from.filter(|from| matches!(from, Value::Number(..)))
        }
        _ if is_conditional_move(decoded.code()) => {
            let other = match decoded.op1_kind() {
                OpKind::Memory => known.loaded(address, &operands.of(instruction).next()?, state),
                _ => source(1)?,
            };
            Some(state.get(target).meet(other, known.debug))
        }
        _ => None,
    }
}

fn is_conditional_move(code: Code) -> bool {
    code.condition_code() != ConditionCode::None && !code.is_jcc_short_or_near()
}

/// The value that an addition adds, unless it is a number in the instruction.
fn added(
    known: &Known<'_>,
    instruction: &Instruction,
    operands: &mut Operands,
    state: &State,
) -> Option<Value> {
    let decoded = &instruction.0;
    match decoded.op1_kind() {
        OpKind::Memory => {
            let operand = operands.of(instruction).next().filter(|operand| operand.bytes == 8)?;
            Some(known.loaded(instruction.address(), &operand, state))
        }
        OpKind::Register if decoded.op1_register().size() >= 4 => {
            Register::of(decoded.op1_register()).map(|register| state.get(register))
        }
        _ => None,
    }
}

/// Returns whether an instruction may put a static address into half a register: those of
/// position-dependent programs fit there.
fn is_static(decoded: &iced_x86::Instruction) -> bool {
    decoded.mnemonic() == Mnemonic::Mov && decoded.op1_kind() == OpKind::Immediate32
}

/// The address of a static variable.
fn address_of(known: &Known<'_>, address: u64) -> Option<Value> {
    known.global(address).map(|found| known.begun(found))
}

fn lea(known: &Known<'_>, instruction: &Instruction, state: &State) -> Option<Value> {
    let decoded = &instruction.0;
    let displacement = decoded.memory_displacement64() as i64;
    let scale = i64::from(decoded.memory_index_scale());
    let base = Register::of(decoded.memory_base()).map(|base| state.get(base));
    let index = Register::of(decoded.memory_index()).map(|index| state.get(index));
    let scaled = index.map(|index| index.times(scale));
    match (base, index) {
        // Addressed from the instruction on, or by a number alone.
        (None, None) => address_of(known, displacement as u64).or(Some(Value::Static)),
        (Some(base @ Value::Into(..)), _) => {
            let moved = known.moved(base, displacement);
            Some(scaled.map_or(moved, |index| known.indexed(moved, index)))
        }
        (base, Some(index @ Value::Into(..))) if scale == 1 => {
            let moved = known.moved(index, displacement);
            Some(base.map_or(moved, |base| known.indexed(moved, base)))
        }
        (Some(Value::Thread(at)), _) => {
            let at = at.wrapping_add(displacement);
            match (known.thread_local(at), scaled) {
                (Some(found), Some(index)) => Some(known.indexed(known.begun(found), index)),
                (Some(found), None) => Some(known.begun(found)),
                (None, None) => Some(Value::Thread(at)),
                (None, Some(_)) => None,
            }
        }
        (Some(base @ Value::Frame(at)), _) => {
            let at = at.wrapping_add(displacement);
            match scaled {
                Some(index) => {
                    let found = known.frame_variable(decoded.ip(), at, state)?;
                    Some(known.indexed(known.begun(found), index))
                }
                None => Some(known.moved(base, displacement)),
            }
        }
        (base, _) => {
            let zero = Value::number(0, 0);
            let both = match decoded.memory_base() == decoded.memory_index() {
                // Three, five or nine times a number.
                true => base.unwrap_or(zero).times(1 + scale),
                false => base.unwrap_or(zero).plus(scaled.unwrap_or(zero)),
            };
            Some(both.plus(Value::number(0, displacement)))
        }
    }
}
