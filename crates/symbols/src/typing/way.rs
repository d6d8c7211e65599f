//! The instruction that a program came from, when the timer finds it in front of another one.
//!
//! The processor is interrupted between two instructions, and the time is that of the first. A
//! comparison and the jump behind it are one to the processor: it waits for the memory that the
//! comparison reads, and is found where the jump leads to. That is mostly the beginning of a loop,
//! in front of which lies an instruction that nothing waits for, or padding.

use std::collections::BTreeMap;

use iced_x86::Mnemonic;

use super::TypedAccess;
use super::flow::index;
use crate::instruction::{Flow, Instruction};

/// For each instruction of a function the one that the program came from, by their numbers. `None`
/// where no instruction says it: at the function's beginning, and behind calls.
pub fn before(code: &[Instruction], accesses: &[TypedAccess]) -> Vec<Option<u32>> {
    let mut jumps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, instruction) in code.iter().enumerate() {
        if let Flow::Jump(target) | Flow::Branch(target) = instruction.flow()
            && let Some(target) = index(code, target)
        {
            jumps.entry(target).or_default().push(at);
        }
    }
    let mut is_run = true;
    let mut found = Vec::with_capacity(code.len());
    for at in 0..code.len() {
        let previous = at.checked_sub(1).filter(|at| {
            // Padding behind a jump is run by nobody.
            is_run && matches!(code[*at].flow(), Flow::Next | Flow::Branch(_))
        });
        let from = jumps.get(&at).into_iter().flatten();
        let starts = from.chain(&previous).map(|from| fused(code, accesses, &jumps, *from));
        let is_access = |from: usize| accesses[from].operand.is_some_and(|operand| operand.bytes > 0);
        let loads = |from: usize| accesses[from].operand.is_some_and(|operand| operand.loads);
        // Loops are where the time is, and memory is what takes it.
        let best =
            starts.max_by_key(|from| (is_access(*from), *from >= at, loads(*from), Some(*from) == previous));
        // A jump alone waits for nothing.
        let is_known = |from: &usize| previous.is_some() || is_access(*from);
        found.push(best.filter(is_known).map(|from| from as u32));
        let is_padding = code[at].0.mnemonic() == Mnemonic::Nop;
        let follows = match at.checked_sub(1).map(|at| code[at].flow()) {
            Some(Flow::Ends | Flow::Jump(_)) => false,
            _ => is_run,
        };
        is_run = !is_padding || follows || jumps.contains_key(&at);
    }
    found
}

/// The instruction that an interrupt behind another one waited for: a comparison, if that is the
/// jump behind it, and the comparison touches memory.
fn fused(
    code: &[Instruction],
    accesses: &[TypedAccess],
    jumps: &BTreeMap<usize, Vec<usize>>,
    from: usize,
) -> usize {
    let is_one = |at: &usize| {
        !jumps.contains_key(&from) && accesses[*at].operand.is_some() && code[*at].fuses_with(&code[from])
    };
    from.checked_sub(1).filter(is_one).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::super::Untyped;
    use super::super::flow::{decode, untyped};
    use super::*;
    use crate::instruction::Operands;

    /// The number of the instruction in front of each.
    fn ways(code: &[u8]) -> Vec<Option<u32>> {
        let code = decode(code, 0x1000);
        let accesses = untyped(&code, &mut Operands::default(), Untyped::NoFunction);
        before(&code, &accesses)
    }

    #[test]
    fn a_comparison_is_waited_for_behind_its_jump() {
        // 0 jmp 3; 1 nop; 2 mov rax, [rax]; 3 cmp [rax + 8], rdi; 4 jne 2; 5 ret
        let code = [
            &[0xeb, 0x05][..],
            &[0x66, 0x90],
            &[0x48, 0x8b, 0x00],
            &[0x48, 0x39, 0x78, 0x08],
            &[0x75, 0xf7],
            &[0xc3],
        ];
        assert_eq!(ways(&code.concat()), [None, None, Some(3), Some(2), Some(3), Some(3)]);
        // A comparison with a number in the instruction is one of its own.
        let code = [&[0x48, 0x83, 0x78, 0x08, 0x07][..], &[0x75, 0xf9], &[0xc3]];
        assert_eq!(ways(&code.concat()), [None, Some(0), Some(1)]);
        // So is one that a jump leads to the end of, as here from 3.
        let code = [&[0x48, 0x39, 0x78, 0x08][..], &[0x75, 0x02], &[0x90], &[0xc3], &[0xeb, 0xfa]];
        assert_eq!(ways(&code.concat()), [None, Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn loops_come_from_their_end() {
        // 0 mov rdx, [rdi]; 1 mov rax, [rax]; 2 add rsi, [rax]; 3 jne 1; 4 ret
        let code =
            [&[0x48, 0x8b, 0x17][..], &[0x48, 0x8b, 0x00], &[0x48, 0x03, 0x30], &[0x75, 0xf8], &[0xc3]];
        assert_eq!(ways(&code.concat()), [None, Some(2), Some(1), Some(2), Some(2)]);
        // 0 mov rdx, [rdi]; 1 mov rax, [rax]; 2 dec rsi; 3 jne 1; 4 ret: the one in front waits.
        let code =
            [&[0x48, 0x8b, 0x17][..], &[0x48, 0x8b, 0x00], &[0x48, 0xff, 0xce], &[0x75, 0xf8], &[0xc3]];
        assert_eq!(ways(&code.concat()), [None, Some(0), Some(1), Some(2), Some(3)]);
        // Behind a call is its end.
        assert_eq!(ways(&[0xe8, 0, 0, 0, 0, 0x90, 0xc3]), [None, None, Some(1)]);
    }
}
