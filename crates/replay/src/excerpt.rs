//! Stretches of a trace, decoded once and replayed as often as anybody likes.
//!
//! ```text
//!   trace     ─ init ─┬─────┬──────────┬─────┬──────────┬─────┬──►
//!   excerpt           █ one █          █ two █          █  …  █      in full; in between what happened to memory
//! ```
//! A beginning is not what a program does later: it reads its input and fills its tables. So an excerpt is spread over the run.
//! In between, chunks in which memory came or went keep their marks, so that objects are known.

use std::ops::{ControlFlow, Range};

use memlode_trace::Trace;
use memlode_trace::event::{Batch, Mark, ThreadId};
use rustc_hash::FxHashMap;

use crate::order::Replay;
use crate::piece::Piece;
use crate::shards::{Dealing, Shards};

/// Stretches of a trace.
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
    turns: (u64, u64),
    ends: bool,
}

/// The way in which a chunk is kept, and where.
#[derive(Clone, Copy)]
enum Kept {
    Whole(usize),
    Marks(usize),
    Nothing,
}

impl Excerpt {
    /// Decodes a trace, with `workers` threads to help, and keeps the chunks that are wanted, by their numbers in replay order. It
    /// ends with the last of these.
    pub fn of(trace: &Trace, workers: usize, wanted: &[Range<usize>]) -> Excerpt {
        let mut excerpt = Excerpt { chunks: Vec::new(), pieces: Vec::new() };
        let mut at_hand: FxHashMap<(ThreadId, u8), Kept> = FxHashMap::default();
        let (mut begun, mut left) = (0, wanted.iter().map(Range::len).sum::<usize>());
        let consume = |piece: &Piece<'_>| {
            let key = (piece.batch.thread.unwrap_or(ThreadId(0)), piece.batch.stream);
            if piece.is_first() {
                let is_wanted = wanted.iter().any(|range| range.contains(&begun));
                at_hand.insert(key, excerpt.keep(piece, is_wanted));
                begun += 1;
            }
            let kept = at_hand.get(&key).copied().unwrap_or(Kept::Nothing);
            excerpt.add(piece, kept);
            if piece.is_last() && matches!(kept, Kept::Whole(_)) {
                left -= 1;
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        trace.interleave_shards(&Shards::one(), workers, vec![consume]);
        excerpt
    }

    /// Keeps what is wanted of a chunk that begins.
    fn keep(&mut self, piece: &Piece<'_>, is_wanted: bool) -> Kept {
        let number = self.chunks.len();
        if is_wanted {
            self.chunks.push((piece.batch.clone(), piece.dealing.clone()));
            return Kept::Whole(number);
        }
        if !piece.batch.marks.iter().any(|(_, mark)| changes_memory(mark)) {
            return Kept::Nothing;
        }
        let mut batch = Batch::default();
        batch.clone_header(piece.batch);
        batch.last = piece.batch.last;
        batch.marks = piece.batch.marks.iter().map(|(_, mark)| (0, *mark)).collect();
        self.chunks.push((batch, Dealing::default()));
        Kept::Marks(number)
    }

    fn add(&mut self, piece: &Piece<'_>, kept: Kept) {
        let Piece { accesses, marks, loops, turns, ends, .. } = piece.clone();
        match kept {
            Kept::Whole(chunk) => self.pieces.push(Part { chunk, accesses, marks, loops, turns, ends }),
            Kept::Marks(chunk) if ends || !marks.is_empty() => {
                self.pieces.push(Part { chunk, accesses: 0..0, marks, loops: 0..0, turns: (0, 0), ends });
            }
            Kept::Marks(_) | Kept::Nothing => {}
        }
    }

    /// Its pieces, in replay order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.pieces.iter().map(|part| {
            let (batch, dealing) = &self.chunks[part.chunk];
            Piece {
                batch,
                dealing,
                accesses: part.accesses.clone(),
                marks: part.marks.clone(),
                loops: part.loops.clone(),
                turns: part.turns,
                ends: part.ends,
            }
        })
    }
}

fn changes_memory(mark: &Mark) -> bool {
    matches!(mark, Mark::Alloc { .. } | Mark::Realloc { .. } | Mark::Free { .. } | Mark::Unmap { .. })
}

/// Chooses chunks of which `most` accesses are in some twenty stretches, spread over all of them; all chunks, if they have no more
/// accesses. `accesses` are those of each chunk.
pub fn stretches(accesses: &[u64], most: u64) -> Vec<Range<usize>> {
    const STRETCHES: u64 = 20;
    let whole: u64 = accesses.iter().sum();
    if whole <= most {
        return std::iter::once(0..accesses.len()).collect();
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut before, mut taken, mut at) = (0, 0, 0);
    for number in 0..STRETCHES {
        // The middle of the stretch is the middle of its part of the run.
        let from = whole / STRETCHES * number + (whole - most) / STRETCHES / 2;
        while at < accesses.len() && before + accesses[at] <= from {
            before += accesses[at];
            at += 1;
        }
        let first = at;
        // What one took too much, the next ones lack.
        while at < accesses.len() && taken < most * (number + 1) / STRETCHES {
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
    use super::*;

    #[test]
    fn stretches_are_spread_over_the_run() {
        let found = stretches(&[1000; 400], 40_000);
        assert_eq!((found.len(), found.iter().map(Range::len).sum::<usize>()), (20, 40));
        assert!(found[0].start > 0 && found.last().is_some_and(|last| last.end > 380), "{found:?}");
        assert!(found.windows(2).all(|two| two[1].start - two[0].start == 20), "{found:?}");
    }

    #[test]
    fn chunks_that_are_larger_than_a_stretch_are_fewer() {
        let found = stretches(&[1000; 10], 3000);
        assert_eq!(found.iter().map(Range::len).sum::<usize>(), 3, "{found:?}");
        assert!(found[0].start > 0 || found[1].start > 1, "{found:?}");
        assert_eq!(stretches(&[5, 5], 10).as_slice(), std::slice::from_ref(&(0..2)));
        assert_eq!(stretches(&[], 10).as_slice(), std::slice::from_ref(&(0..0)));
    }
}
