//! Stretches of a trace, decoded once and replayed any number of times.
//!
//! ```text
//!   trace     ──┬─────┬──────────┬─────┬──────────┬─────┬──►
//!   excerpt     █ one █          █ two █          █  …  █      whole chunks; between them, allocations and the calls around them
//! ```
//! The beginning of a program is not what it does later: it reads its input and fills its tables. So
//! stretches are spread over the run. Between them, objects come and go as in the run: each has the
//! same number, and the same calls made it.

use std::ops::{ControlFlow, Range};

use memlode_trace::calls::Caller;
use memlode_trace::event::{Batch, Mark, ThreadId};
use memlode_trace::sites::FunctionId;
use memlode_trace::{ChunkRef, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::order::Replay;
use crate::piece::Piece;
use crate::shards::{Dealing, Shards};

/// The number of stretches, unless chunks are longer than so short a stretch.
const STRETCHES: u64 = 20;

/// Stretches of a trace.
#[derive(Default)]
pub struct Excerpt {
    chunks: Vec<(Batch, Dealing)>,
    /// In replay order.
    pieces: Vec<Part>,
}

/// A piece of a chunk that is kept.
struct Part {
    chunk: usize,
    accesses: Range<usize>,
    marks: Range<usize>,
    loops: Range<usize>,
    iterations: (u64, u64),
    ends: bool,
}

/// The current chunk of a stream.
struct AtHand {
    sequence: u32,
    /// Its place in the excerpt.
    chunk: usize,
    /// The numbers of its marks that are kept, if not all of it is.
    marks: Option<Vec<usize>>,
}

impl Excerpt {
    /// Decodes a trace, which `workers` threads help with, and keeps some of its chunks, by their
    /// numbers in [`Trace::chunks`]. It ends with the last of these.
    pub fn of(trace: &Trace, workers: usize, wanted: &[Range<usize>]) -> Excerpt {
        let name = |chunk: &ChunkRef| (chunk.thread, chunk.sequence());
        let wanted = wanted.iter().flat_map(|range| &trace.chunks()[range.clone()]);
        let wanted: FxHashSet<(ThreadId, u32)> = wanted.map(name).collect();
        let (mut excerpt, mut left) = (Excerpt::default(), wanted.len());
        if left == 0 {
            return excerpt;
        }
        let mut streams: FxHashMap<(ThreadId, u8), AtHand> = FxHashMap::default();
        let consume = |piece: &Piece<'_>| {
            let Batch { thread: Some(thread), stream, sequence, .. } = *piece.batch else {
                return ControlFlow::Continue(());
            };
            let before = streams.get(&(thread, stream)).map(|at_hand| at_hand.sequence);
            let is_wanted = wanted.contains(&(thread, sequence));
            if before != Some(sequence) {
                let goes_on = before.and_then(|before| before.checked_add(1)) == Some(sequence);
                streams.insert((thread, stream), excerpt.keep(piece, is_wanted, goes_on));
            }
            if let Some(at_hand) = streams.get(&(thread, stream)) {
                excerpt.add(piece, at_hand);
            }
            left -= usize::from(piece.is_last() && is_wanted);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        trace.interleave_shards(&Shards::one(), workers, vec![consume]);
        excerpt
    }

    /// Keeps a chunk that begins: all of it, or what it says of objects. It may go on where the one
    /// before in its stream ended.
    fn keep(&mut self, piece: &Piece<'_>, is_wanted: bool, goes_on: bool) -> AtHand {
        let (whole, chunk) = (piece.batch, self.chunks.len());
        let mut batch = Batch::default();
        batch.clone_header(whole);
        if goes_on && !whole.dormant {
            // The calls in progress are those at the end of the one before.
            batch.stack = Vec::new();
        }
        let (marks, dealing) = if is_wanted {
            batch.accesses.clone_from(&whole.accesses);
            batch.marks.clone_from(&whole.marks);
            batch.loops.clone_from(&whole.loops);
            (None, piece.dealing.clone())
        } else {
            batch.strides = Vec::new();
            let kept = about_objects(&whole.marks);
            batch.marks = kept.iter().map(|&(_, mark)| (0, mark)).collect();
            (Some(kept.into_iter().map(|(number, _)| number).collect()), Dealing::default())
        };
        self.chunks.push((batch, dealing));
        AtHand { sequence: whole.sequence, chunk, marks }
    }

    /// Adds a piece of a stream's current chunk.
    fn add(&mut self, piece: &Piece<'_>, at_hand: &AtHand) {
        let Piece { accesses, marks, loops, iterations, ends, .. } = piece.clone();
        let chunk = at_hand.chunk;
        let Some(kept) = &at_hand.marks else {
            self.pieces.push(Part { chunk, accesses, marks, loops, iterations, ends });
            return;
        };
        let place = |number: usize| kept.partition_point(|&kept| kept < number);
        let marks = place(marks.start)..place(marks.end);
        if ends || !marks.is_empty() {
            self.pieces.push(Part { chunk, accesses: 0..0, marks, loops: 0..0, iterations: (0, 0), ends });
        }
    }

    /// Its pieces, in replay order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.pieces.iter().map(|part| {
            let (batch, dealing) = &self.chunks[part.chunk];
            let &Part { ref accesses, ref marks, ref loops, iterations, ends, .. } = part;
            let (accesses, marks, loops) = (accesses.clone(), marks.clone(), loops.clone());
            Piece { batch, dealing, accesses, marks, loops, iterations, ends }
        })
    }
}

/// The marks of a chunk by which objects come and go, with the calls and returns around them, by
/// their numbers. A call in which nothing comes or goes is left out with its return.
fn about_objects(marks: &[(u32, Mark)]) -> Vec<(usize, Mark)> {
    let mut kept: Vec<(usize, Mark)> = Vec::new();
    // Calls in progress that began in the chunk, by their place in these.
    let mut calls: Vec<(usize, FunctionId)> = Vec::new();
    // For each of them, and for the function around them, the latest place that it called from.
    let mut callers: Vec<Option<Caller>> = Vec::new();
    for (number, &(_, mark)) in marks.iter().enumerate() {
        match mark {
            Mark::Enter { function, frame, caller } => {
                callers.resize(calls.len() + 1, None);
                let latest = &mut callers[calls.len()];
                // From the segment that made the call before, which may be left out.
                let caller = match *latest {
                    Some(known) if caller == Caller::RETURNED => known,
                    _ => caller,
                };
                *latest = Some(caller).filter(|&caller| caller != Caller::RETURNED).or(*latest);
                calls.push((kept.len(), function));
                kept.push((number, Mark::Enter { function, frame, caller }));
            }
            Mark::Exit { function } => match calls.pop() {
                Some((place, entered)) if entered == function && place + 1 == kept.len() => _ = kept.pop(),
                entered => {
                    kept.push((number, mark));
                    if entered.is_none_or(|(_, entered)| entered != function) {
                        calls.clear();
                        callers.clear();
                    }
                }
            },
            Mark::Resume { .. } => {
                kept.push((number, mark));
                calls.clear();
                callers.clear();
            }
            Mark::Alloc { .. } | Mark::Realloc { .. } | Mark::Free { .. } | Mark::Unmap { .. } => {
                kept.push((number, mark));
            }
            Mark::Stamp { .. } | Mark::Sync { .. } => {}
        }
    }
    kept
}

/// Chooses chunks that have about `most` accesses, in some twenty stretches that are spread over all
/// of them; all chunks, if they have no more. `accesses` are those of each chunk.
pub fn stretches(accesses: &[u64], most: u64) -> Vec<Range<usize>> {
    let whole: u64 = accesses.iter().sum();
    if whole <= most {
        return std::iter::once(0..accesses.len()).collect();
    }
    let mean = (whole / accesses.len() as u64).max(1);
    let count = (most / mean).clamp(1, STRETCHES);
    let (mut found, mut before, mut taken, mut at) = (Vec::<Range<usize>>::new(), 0, 0, 0);
    for number in 0..count {
        // The middle of a stretch is the middle of its part of the run.
        let middle = u128::from(whole) * u128::from(2 * number + 1) / u128::from(2 * count);
        let from = (middle as u64).saturating_sub(most / count / 2);
        while at < accesses.len() && before + accesses[at] <= from {
            before += accesses[at];
            at += 1;
        }
        let first = at;
        // The excess of one is missing from the next ones.
        let enough = u128::from(most) * u128::from(number + 1) / u128::from(count);
        while at < accesses.len() && u128::from(taken) < enough {
            taken += accesses[at];
            before += accesses[at];
            at += 1;
        }
        match found.last_mut().filter(|last| last.end == first) {
            Some(last) => last.end = at,
            None if at > first => found.push(first..at),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use memlode_trace::sites::SiteId;

    use super::*;

    /// Chunks that are one stretch.
    fn one(chunks: Range<usize>) -> Vec<Range<usize>> {
        std::iter::once(chunks).collect()
    }

    #[test]
    fn stretches_are_spread_over_the_run() {
        let found = stretches(&[1000; 400], 40_000);
        assert_eq!((found.len(), found.iter().map(Range::len).sum::<usize>()), (20, 40));
        assert_eq!((found[0].start, found[19].end), (9, 391), "{found:?}");
        assert!(found.windows(2).all(|two| two[1].start - two[0].start == 20), "{found:?}");
    }

    #[test]
    fn stretches_of_long_chunks_are_fewer_and_as_far_apart() {
        assert_eq!(stretches(&[1000; 10], 3000), [1..2, 4..5, 7..8]);
        assert_eq!(stretches(&[1000; 9], 10), one(4..5), "one is in the middle");
        assert_eq!(stretches(&[5, 5], 10), one(0..2));
        assert_eq!(stretches(&[], 10), one(0..0));
        // One chunk may have more accesses than are wanted.
        assert_eq!(stretches(&[10, 10, 5000, 10, 10], 100), one(2..3));
    }

    #[test]
    fn calls_in_which_nothing_is_allocated_are_left_out() {
        let enter = |function: u32, caller| Mark::Enter { function: FunctionId(function), frame: 0, caller };
        let exit = |function: u32| Mark::Exit { function: FunctionId(function) };
        let alloc = Mark::Alloc { site: SiteId(0), base: 64, count: 1, element_bytes: 8 };
        let [one, two] = [Caller::BEFORE, Caller::UNKNOWN];
        let marks = [
            enter(1, one),
            enter(2, one),
            exit(2),
            exit(1),
            // It was called from where the one before was.
            enter(3, Caller::RETURNED),
            enter(4, two),
            exit(4),
            alloc,
            exit(3),
            // A function that was entered in an earlier chunk.
            exit(9),
            enter(5, two),
        ];
        let marks: Vec<(u32, Mark)> = marks.into_iter().map(|mark| (0, mark)).collect();
        let wanted = [(4, enter(3, one)), (7, alloc), (8, exit(3)), (9, exit(9)), (10, enter(5, two))];
        assert_eq!(about_objects(&marks), wanted);
    }
}
