//! The side of a function that records nothing.
//!
//! A function that memlode compiled holds its code twice (`instrument/src/sides/Versions.h`), and
//! control goes from one side to the other where a loop begins:
//!
//! ```text
//!   entry ── room in the cursor? ─┬─► recording side: refers to anchors     ◄─┐
//!                                 └─► dormant side: refers to none, tests `dormant` in each loop
//! ```
//! Without the branches behind these tests, the graph of a function falls into parts. The parts
//! that lead to an anchor, or come from one, record; the others do not.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::ops::Range;

use iced_x86::{Mnemonic, OpKind, Register};
use memlode_trace::format::{ProcessHeader, ring, section};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::ProgramFile;
use crate::instruction::{Flow, Instruction};

/// The variable of the runtime that begins as the process header does.
const CONTROL: &str = "__memlode_control";

/// The parts of memlode's runtime that code refers to, by address.
pub(crate) struct Recorder {
    anchors: Range<u64>,
    /// Places that hold the address of `CONTROL`.
    slots: HashSet<u64>,
    /// `CONTROL` itself, where it is in the program.
    control: Option<u64>,
}

impl Recorder {
    /// `None` of a program that has no anchors.
    pub fn of(program: &ProgramFile) -> Option<Recorder> {
        let image = object::File::parse(program.bytes()).ok()?;
        let anchors = image.section_by_name(section::ANCHORS)?;
        let anchors = anchors.address()..anchors.address().saturating_add(anchors.size());
        let dynamic = image.dynamic_symbol_table();
        let is_control = |target| match target {
            RelocationTarget::Symbol(index) => {
                let symbol = dynamic.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                symbol.is_some_and(|symbol| symbol.name() == Ok(CONTROL))
            }
            _ => false,
        };
        let slots = image.dynamic_relocations().into_iter().flatten();
        let slots = slots.filter(|(_, to)| is_control(to.target())).map(|(slot, _)| slot).collect();
        let control = image.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(CONTROL));
        Some(Recorder { anchors, slots, control: control.map(|symbol| symbol.address()) })
    }

    /// Returns whether code refers to an anchor.
    pub fn records(&self, code: &[Instruction]) -> bool {
        code.iter().any(|instruction| self.is_anchored(instruction))
    }

    fn is_anchored(&self, Instruction(of): &Instruction) -> bool {
        let is_immediate =
            |kind| matches!(kind, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64);
        of.is_ip_rel_memory_operand() && self.anchors.contains(&of.ip_rel_memory_address())
            || (0..of.op_count())
                .any(|at| is_immediate(of.op_kind(at)) && self.anchors.contains(&of.immediate(at)))
    }

    /// Registers that hold the address of `CONTROL` somewhere in this code.
    fn registers(&self, code: &[Instruction]) -> HashSet<Register> {
        let loads = |of: &iced_x86::Instruction| {
            let address = of.ip_rel_memory_address();
            of.is_ip_rel_memory_operand()
                && match of.mnemonic() {
                    Mnemonic::Mov => self.slots.contains(&address),
                    Mnemonic::Lea => self.control == Some(address),
                    _ => false,
                }
        };
        code.iter().filter(|Instruction(of)| loads(of)).map(|Instruction(of)| of.op0_register()).collect()
    }

    /// Returns whether it tests the word that is set while recording is off.
    fn is_dormant_test(&self, Instruction(of): &Instruction, control: &HashSet<Register>) -> bool {
        let offset = offset_of!(ProcessHeader, dormant) as u64;
        let has_memory = (0..of.op_count()).any(|at| of.op_kind(at) == OpKind::Memory);
        of.mnemonic() == Mnemonic::Cmp
            && has_memory
            && match of.is_ip_rel_memory_operand() {
                true => self.control.is_some_and(|control| of.ip_rel_memory_address() == control + offset),
                false => of.memory_displacement64() == offset && control.contains(&of.memory_base()),
            }
    }
}

/// Returns whether it tests whether the cursor has room.
fn is_room_test(Instruction(of): &Instruction) -> bool {
    match of.mnemonic() {
        Mnemonic::Test => (0..of.op_count())
            .any(|at| of.op_kind(at) == OpKind::Immediate32 && of.immediate32() == ring::ROOM_BIT),
        Mnemonic::Bt => {
            of.op1_kind() == OpKind::Immediate8
                && u32::from(of.immediate8()) == ring::ROOM_BIT.trailing_zeros()
        }
        _ => false,
    }
}

/// Instructions that are executed one after the other.
struct Block {
    code: Range<usize>,
    next: Vec<usize>,
    is_anchored: bool,
    /// Sides may change behind it.
    is_test: bool,
    /// It is for changing sides alone.
    is_between: bool,
}

/// Marks the instructions of the side that records nothing. `None` if no side is found that does.
pub(crate) fn unrecorded(
    code: &[Instruction],
    recorder: &Recorder,
    is_runtime: &dyn Fn(u64) -> bool,
) -> Option<Vec<bool>> {
    let blocks = blocks(code, recorder, is_runtime);
    let anchored: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].is_anchored).collect();
    let mut before = vec![Vec::new(); blocks.len()];
    let mut behind = vec![Vec::new(); blocks.len()];
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| !block.is_test) {
        for &next in &block.next {
            behind[at].push(next);
            before[next].push(at);
        }
    }
    let (leads, comes) = (reached(&anchored, &before), reached(&anchored, &behind));
    let own: Vec<usize> =
        (0..blocks.len()).filter(|&at| !leads[at] && !comes[at] && !blocks[at].is_between).collect();
    if own.is_empty() {
        return None;
    }
    // What both sides come to belongs to this one, too.
    let dormant = reached(&own, &behind);
    let control = recorder.registers(code);
    let mut kept = vec![false; code.len()];
    for (block, _) in
        blocks.iter().zip(&dormant).filter(|(block, is_dormant)| **is_dormant && !block.is_between)
    {
        for at in block.code.clone() {
            let is_test = recorder.is_dormant_test(&code[at], &control);
            let is_branch_of_it = at > block.code.start && block.is_test && at + 1 == block.code.end;
            kept[at] = !is_test && !is_branch_of_it;
        }
    }
    Some(kept)
}

/// The blocks that can be reached from some.
fn reached(from: &[usize], next: &[Vec<usize>]) -> Vec<bool> {
    let mut known = vec![false; next.len()];
    let mut open = from.to_vec();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut known[at], true) {
            open.extend(&next[at]);
        }
    }
    known
}

fn blocks(code: &[Instruction], recorder: &Recorder, is_runtime: &dyn Fn(u64) -> bool) -> Vec<Block> {
    let index: HashMap<u64, usize> = code.iter().enumerate().map(|(at, one)| (one.address(), at)).collect();
    let mut begins = vec![false; code.len()];
    for (at, instruction) in code.iter().enumerate() {
        let (ends, to) = match instruction.flow() {
            Flow::Next | Flow::Call => (false, None),
            Flow::Jump(to) | Flow::Branch(to) => (true, index.get(&to)),
            Flow::Ends => (true, None),
        };
        to.into_iter().for_each(|to| begins[*to] = true);
        if ends && at + 1 < code.len() {
            begins[at + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..code.len()).filter(|at| *at == 0 || begins[*at]).collect();
    let ends = starts.iter().skip(1).copied().chain([code.len()]);
    let ranges: Vec<Range<usize>> = starts.iter().copied().zip(ends).map(|(from, to)| from..to).collect();
    let block_at: HashMap<usize, usize> = starts.iter().enumerate().map(|(block, at)| (*at, block)).collect();
    let control = recorder.registers(code);
    let of = |range: &Range<usize>| {
        let inside = &code[range.clone()];
        let last = &inside[inside.len() - 1];
        let behind = block_at.get(&range.end).copied();
        let target = |to: u64| index.get(&to).and_then(|at| block_at.get(at)).copied();
        let next: Vec<usize> = match last.flow() {
            Flow::Next | Flow::Call => behind.into_iter().collect(),
            Flow::Jump(to) => target(to).into_iter().collect(),
            Flow::Branch(to) => behind.into_iter().chain(target(to)).collect(),
            Flow::Ends => Vec::new(),
        };
        let tests = |one: &&Instruction| recorder.is_dormant_test(one, &control);
        let has_room_test = inside.iter().any(is_room_test);
        let compares_cursor =
            inside.iter().filter(tests).any(|Instruction(of)| of.op0_kind() == OpKind::Register);
        let calls_runtime = inside.iter().any(|one| one.is_call() && is_runtime(one.0.near_branch_target()));
        Block {
            code: range.clone(),
            is_anchored: inside.iter().any(|one| recorder.is_anchored(one)),
            is_test: next.len() == 2 && (has_room_test || inside.iter().any(|one| tests(&one))),
            is_between: has_room_test || compares_cursor || calls_runtime,
            next,
        }
    };
    ranges.iter().filter(|range| !range.is_empty()).map(of).collect()
}
