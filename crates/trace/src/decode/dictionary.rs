//! The segments that a chunk has.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::UnrecordedId;
use crate::bytes::Reader;
use crate::calls::Caller;
use crate::flatten::{Code, Template};
use crate::sites::FunctionId;
use crate::table::{Op, Source};

use super::DecodeError;

/// A dictionary entry.
pub(super) struct Local<'t> {
    pub function: FunctionId,
    /// Calls by which a function may be entered next.
    pub caller: Caller,
    /// Places that are executed as often, and not recorded.
    pub unrecorded: Option<UnrecordedId>,
    pub templates: &'t [Template],
    /// Marks of one that is plain, by the number of accesses before them.
    pub marks: &'t [(u16, Op)],
    /// All ops of a segment that is not plain.
    pub ops: &'t [Op],
    pub accesses: u32,
    pub words: u16,
    /// First of its last words.
    pub base: usize,
    /// Index of its own base in the list of bases; those of its sources follow.
    pub first_base: usize,
}

/// The segments of a chunk; the number of their words before its first segment, 0 if the chunk does
/// not have it; and for each segment the place of its own words and of its sources'.
pub(super) fn dictionary<'t>(
    reader: &mut Reader<'_>,
    codes: &'t [Option<Arc<Code>>],
    last: &mut Vec<u64>,
    bases: &mut Vec<u32>,
) -> Result<Vec<Local<'t>>, DecodeError> {
    let count = reader.count()?;
    let mut locals: Vec<Local<'_>> = Vec::with_capacity(count);
    let mut numbers = FxHashMap::default();
    let mut derived: Vec<(usize, u64, u32, &[Source])> = Vec::new();
    last.clear();
    bases.clear();
    for number in 0..count {
        let (module, word) = (reader.varint()?, reader.varint()?);
        let (anchor, inherits) = (word >> 1, word & 1 == 1);
        let code = usize::try_from(module).ok().and_then(|module| codes.get(module)?.as_ref());
        let code = code.ok_or(DecodeError::Module(module))?;
        let segment = u32::try_from(anchor).ok().and_then(|anchor| code.segment(anchor));
        let segment = segment.ok_or(DecodeError::Anchor { module, anchor })?;
        let sources = code.sources(segment);
        let base = last.len();
        last.resize(base + segment.words as usize, 0);
        if inherits {
            let mut before = 0u64;
            for word in &mut last[base..] {
                before = before.wrapping_add_signed(reader.svarint()?);
                *word = before;
            }
        }
        if !sources.is_empty() {
            derived.push((number, module, anchor as u32, sources));
        }
        numbers.insert((module, anchor as u32), number);
        locals.push(Local {
            function: segment.function,
            caller: segment.caller,
            unrecorded: segment.unrecorded,
            templates: code.templates(segment),
            marks: code.marks(segment),
            ops: code.ops(segment),
            accesses: segment.accesses,
            words: segment.words,
            base,
            first_base: 0,
        });
    }
    for (number, module, anchor, sources) in derived {
        let first = bases.len();
        bases.push(locals[number].base as u32);
        bases.extend(sources.iter().map_while(|source| {
            let number = numbers.get(&(module, anchor.checked_sub(source.back)?))?;
            Some(&locals[*number]).filter(|found| found.words >= source.words).map(|found| found.base as u32)
        }));
        // One that is not executed, but has a frame on the stack, may lack them.
        let complete = bases.len() == first + 1 + sources.len();
        locals[number].first_base = if complete { first } else { usize::MAX };
    }
    Ok(locals)
}
