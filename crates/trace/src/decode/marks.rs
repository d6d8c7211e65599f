//! Events of segments besides accesses.

use crate::calls::Caller;
use crate::event::Mark;
use crate::format::limit;
use crate::sites::SiteId;
use crate::table::Op;

use super::dictionary::Local;
use super::{DecodeError, Fallible};

/// The mark of an execution of a segment, with the last words as they are, and the segment executed
/// before it.
#[inline(always)]
pub(super) fn mark(op: Op, local: &Local<'_>, last: &[u64], caller: Caller) -> Option<Mark> {
    let function = local.function;
    let word = |word: u16| last[local.base + word as usize];
    let mark = match op {
        Op::Stamp { word: stamp } => match word(stamp) {
            0 | 1 => return None, // nobody to learn from yet
            stamp => Mark::Stamp { stamp },
        },
        Op::Sync { kind, at, word: stamp } => match word(stamp) {
            0 | 1 => return None,
            stamp => Mark::Sync { kind, object: word(at.word).wrapping_add(at.offset), stamp },
        },
        Op::Enter { frame } => Mark::Enter { function, frame: word(frame), caller },
        Op::Exit => Mark::Exit { function },
        Op::Resume { frame } => Mark::Resume { function, frame: word(frame) },
        Op::Alloc { site, first } => {
            Mark::Alloc { site: SiteId(site), base: word(first), count: 1, element_bytes: word(first + 1) }
        }
        Op::AllocArray { site, first } => Mark::Alloc {
            site: SiteId(site),
            base: word(first),
            count: word(first + 1),
            element_bytes: word(first + 2),
        },
        Op::Realloc { site, first } => Mark::Realloc {
            site: SiteId(site),
            base: word(first),
            bytes: word(first + 1),
            old: word(first + 2),
        },
        Op::Free { site, first } => Mark::Free { site: SiteId(site), base: word(first) },
        Op::Unmap { site, first } => {
            Mark::Unmap { site: SiteId(site), base: word(first), bytes: word(first + 1) }
        }
        _ => unreachable!("an op that makes accesses leaves no mark"),
    };
    Some(mark)
}

/// Adds a mark that stands before the access of that number.
#[inline(always)]
pub(super) fn tell(marks: &mut Vec<(u32, Mark)>, before: usize, mark: Option<Mark>) -> Fallible {
    let Some(mark) = mark else { return Ok(()) };
    if marks.len() as u64 == limit::CHUNK_ACCESSES {
        return Err(DecodeError::TooMany(limit::CHUNK_ACCESSES).into());
    }
    marks.push((before as u32, mark));
    Ok(())
}
