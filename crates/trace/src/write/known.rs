//! An encoder's memory of the segments that its thread has executed.

use super::history::Caller;
use super::relative::RelativeStack;
use crate::format::{limit, stream};
use crate::module::ModuleId;

/// No anchor has this address: they lie at multiples of eight.
pub(super) const NO_HEADER: u64 = u64::MAX;

/// The entry of `segments` that precedes a chunk's first segment, and follows one whose successor
/// is not known.
pub(super) const NONE: u32 = 0;

/// A segment between its executions, in the form that each execution needs: small, because
/// interpreters have thousands.
#[derive(Clone, Copy)]
pub(super) struct Hot {
    /// The header word that followed last time in this chunk, and the segment it stands for, or
    /// [`NO_HEADER`] and [`NONE`].
    pub next_header: u64,
    pub next: u32,
    /// Number of the chunk that it was executed in last.
    pub executed: u32,
    /// Index in that chunk's dictionary.
    pub local: u32,
    /// First of its last words.
    pub base: u32,
    pub accesses: u32,
    pub words: u16,
    /// It repeats strides, or is none.
    pub is_special: bool,
    /// [`STACK_OPS`], [`UNEVEN`].
    pub traits: u8,
}

/// It enters functions or leaves them.
pub(super) const STACK_OPS: u8 = 1;
/// Marks a segment whose words have the number of its accesses.
pub(super) const UNEVEN: u8 = 2;

/// The rest that is kept of a segment.
pub(super) struct Known {
    /// Number of the chunk in which `fresh`, the dictionary's index, the successor and the last
    /// words are valid.
    pub chunk: u32,
    /// True if the chunk has none of its words so far.
    pub fresh: bool,
    /// True if others refer to its words.
    pub is_source: bool,
    /// Into `stack_ops`.
    pub stack_ops: (u32, u32),
    /// Into `sources`.
    pub sources: (u32, u32),
    /// Into `steps`.
    pub steps: (u32, u32),
    /// Into `amounts`.
    pub amounts: (u32, u32),
    /// Number of strides that it repeats, 0 if it does not.
    pub strides: u32,
    /// The word that is its latest stamp.
    pub stamp: Option<u16>,
    /// Its last ops are carried out after its words are written: a loop, or a function that copies
    /// or fills memory.
    pub promises: bool,
    /// Names the function over all modules.
    pub function: (ModuleId, u32),
    pub module: ModuleId,
    pub anchor: u32,
}

impl Hot {
    pub fn forget_next(&mut self) {
        self.foretell(NO_HEADER, NONE);
    }

    /// The segment of this header followed.
    pub fn foretell(&mut self, header: u64, id: u32) {
        (self.next_header, self.next) = (header, id);
    }
}

impl Known {
    /// Returns how many more accesses an execution makes than it has ops, modulo 2^64. A separate
    /// function for loops that need it seldom.
    #[cold]
    #[inline(never)]
    pub fn more(&self, amounts: &[Amount], operands: &[u64]) -> u64 {
        let amounts = &amounts[self.amounts.0 as usize..self.amounts.1 as usize];
        amounts.iter().fold(0, |more, amount| more.wrapping_add(amount.beyond_one(operands)))
    }
}

/// Applies an execution of a segment to the shadow stack.
pub(super) fn follow_stack(
    stack: &mut RelativeStack<Caller<u32>>,
    segment: &Known,
    id: u32,
    ops: &[StackOp],
    operands: &[u64],
) {
    let caller = Caller { function: segment.function, segment: id };
    for op in &ops[segment.stack_ops.0 as usize..segment.stack_ops.1 as usize] {
        match *op {
            StackOp::Enter(word) => stack.enter(caller, operands[word as usize]),
            StackOp::Exit => stack.exit(caller),
            StackOp::Resume(word) => stack.resume(caller, operands[word as usize]),
        }
    }
}

/// Returns whether nothing is written behind the word before `end`: in an open tail, the segment
/// that ends there may lack words.
#[inline(always)]
pub(super) fn is_last(words: &[u64], end: usize) -> bool {
    words.get(end).is_none_or(|&next| next == 0)
}

/// Returns whether the words behind a segment's header are all there, and the hot loop can take it.
/// It does not take the last segment of an open tail, which needs more checks.
#[inline(always)]
pub(super) fn fits<const OPEN: bool>(segment: &Hot, behind: &[u64]) -> bool {
    let end = usize::from(segment.words);
    let is_whole = !segment.is_special && end <= behind.len();
    is_whole && !(OPEN && is_last(behind, end))
}

/// The segments of one image. A table, not a hash map: interpreters and the like jump about, and
/// each jump looks up.
pub(super) struct ImageSegments {
    /// Address of the first anchor.
    pub start: u64,
    /// Indexed by anchor; [`NONE`] if it has not been executed.
    pub segments: Vec<u32>,
}

impl ImageSegments {
    pub fn new(start: u64, anchors: usize) -> Self {
        // Memory that is never touched is never allocated.
        ImageSegments { start, segments: vec![NONE; anchors] }
    }

    #[inline(always)]
    pub fn segment(&self, header: u64) -> Option<u32> {
        let offset = header.wrapping_sub(self.start);
        // An address between two anchors is turned into a number that none has.
        let anchor = offset.rotate_right(stream::ANCHOR_BYTES.trailing_zeros());
        self.segments.get(usize::try_from(anchor).ok()?).copied().filter(|&id| id != NONE)
    }
}

/// Returns how often a loop was executed; its words begin with the count, and go these steps. A
/// loop that would have gone past an end of the address space, or on for as many iterations as it
/// has bytes, was not carried out: its thread met a fault or was called away, and went on.
pub(super) fn carried_out(operands: &[u64], steps: &[(u16, u64)]) -> u64 {
    let count = operands[0];
    let goes_too_far = |&(word, step): &(u16, u64)| {
        let way = i128::from(step.cast_signed()) * i128::from(count.saturating_sub(1));
        let last = i128::from(operands[word as usize]) + way;
        way.unsigned_abs() >= limit::RANGE_BYTES.into() || u64::try_from(last).is_err()
    };
    if count > limit::RANGE_BYTES || steps.iter().any(goes_too_far) { 1 } else { count }
}

#[derive(Clone, Copy)]
pub(super) enum StackOp {
    Enter(u16),
    Exit,
    Resume(u16),
}

/// A word with the number of accesses of an op; its segment counts each op as one.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    /// One for each bit that is set, of a number of bits.
    Mask(u16, u8),
    /// One for as many bytes as an access can have.
    Bytes(u16),
}

impl Amount {
    /// Returns how many more than one they are, modulo 2^64.
    pub fn beyond_one(self, operands: &[u64]) -> u64 {
        let accesses = match self {
            Amount::Mask(word, lanes) => {
                let all = u64::MAX.checked_shr(u64::BITS - u32::from(lanes)).unwrap_or(0);
                (operands[word as usize] & all).count_ones().into()
            }
            Amount::Bytes(word) => match operands[word as usize] {
                bytes if bytes > limit::RANGE_BYTES => 1,
                bytes => bytes.div_ceil(u32::MAX.into()),
            },
        };
        u64::wrapping_sub(accesses, 1)
    }
}
