//! Events of one stream that nothing of another comes between.

use std::ops::Range;

use memlode_trace::event::{Access, Batch, Loop, Mark};

use crate::shards::{Dealing, Dealt, Half};

/// A run of a chunk's events that nothing of another stream comes between.
#[derive(Clone, Debug)]
pub struct Piece<'b> {
    /// The chunk, as far as it is this consumer's.
    pub batch: &'b Batch,
    /// Its division among the shards.
    pub dealing: &'b Dealing,
    pub(crate) accesses: Range<usize>,
    pub(crate) marks: Range<usize>,
    pub(crate) loops: Range<usize>,
    /// The chunk ends with it.
    pub(crate) ends: bool,
}

/// The end of a run of events.
#[derive(Clone, Copy, Debug)]
pub enum PieceEnd<'b> {
    /// A loop, where they are kept, and how it was dealt out, if it was.
    Loop(&'b Loop, Option<&'b Dealt>),
    /// A part of an access that goes on, or began, in another shard.
    Half(&'b Half),
}

/// Accesses, and the marks between them.
#[derive(Clone, Copy, Debug)]
pub struct Events<'b> {
    /// The accesses, in program order.
    pub accesses: &'b [Access],
    /// The marks, in program order, each with the number of the chunk's accesses that come before it.
    pub marks: &'b [(u32, Mark)],
    /// Number of the chunk's accesses that come before these.
    pub before: usize,
}

impl<'b> Piece<'b> {
    /// All of a chunk.
    pub fn whole(batch: &'b Batch) -> Piece<'b> {
        Piece::dealt(batch, Dealing::none())
    }

    /// All of a shard's part of a chunk.
    pub fn dealt(batch: &'b Batch, dealing: &'b Dealing) -> Piece<'b> {
        let (accesses, marks) = (0..batch.accesses.len(), 0..batch.marks.len());
        Piece { batch, dealing, accesses, marks, loops: 0..batch.loops.len(), ends: true }
    }

    /// Returns whether the chunk begins with it.
    pub fn is_first(&self) -> bool {
        self.accesses.start == 0 && self.marks.start == 0 && self.loops.start == 0
    }

    /// Returns whether the chunk ends with it.
    pub fn is_last(&self) -> bool {
        self.ends
    }

    /// Returns whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.marks.is_empty() && self.loops.is_empty()
    }

    /// The accesses, in program order.
    pub fn accesses(&self) -> &'b [Access] {
        &self.batch.accesses[self.accesses.clone()]
    }

    /// The marks, in program order: `(i, m)` stands before the access that is the `i`th of this piece.
    pub fn marks(&self) -> impl Iterator<Item = (usize, &'b Mark)> {
        let piece = self.clone();
        self.batch.marks[self.marks.clone()].iter().map(move |(at, mark)| (piece.within(*at), mark))
    }

    /// Which accesses of the chunk, and which marks.
    pub fn places(&self) -> (Range<usize>, Range<usize>) {
        (self.accesses.clone(), self.marks.clone())
    }

    /// Its events in order: runs of accesses and marks, and what stands behind each, which is nothing behind the last one alone.
    pub fn runs(&self) -> impl Iterator<Item = (Events<'b>, Option<PieceEnd<'b>>)> {
        let batch = self.batch;
        let (mut accesses, mut marks) = (self.accesses.clone(), self.marks.clone());
        let dealing = self.dealing;
        let numbered = (self.loops.start..).zip(&batch.loops[self.loops.clone()]);
        let mut loops = numbered.map(move |(number, next)| (next, dealing.loops.get(number))).peekable();
        let mut halves = self.halves().iter().peekable();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let half = halves.peek().map_or(usize::MAX, |half| half.access as usize);
            let next = loops.next_if(|(next, _)| next.access as usize <= half);
            let (access, mark, stop) = if let Some((next, dealt)) = next {
                (next.access as usize, next.mark as usize, Some(PieceEnd::Loop(next, dealt)))
            } else if let Some(half) = halves.next() {
                let before = batch.marks[marks.clone()].partition_point(|(at, _)| *at <= half.access);
                (half.access as usize, marks.start + before, Some(PieceEnd::Half(half)))
            } else {
                is_over = true;
                (accesses.end, marks.end, None)
            };
            let access = access.clamp(accesses.start, accesses.end);
            let mark = mark.clamp(marks.start, marks.end);
            let events = Events {
                accesses: &batch.accesses[accesses.start..access],
                marks: &batch.marks[marks.start..mark],
                before: accesses.start,
            };
            accesses.start = access + usize::from(matches!(stop, Some(PieceEnd::Half(_))));
            marks.start = mark;
            Some((events, stop))
        })
    }

    /// A place among the chunk's accesses as one among the piece's.
    fn within(&self, at: u32) -> usize {
        (at as usize).clamp(self.accesses.start, self.accesses.end) - self.accesses.start
    }

    /// The halves of accesses among this piece's, in order.
    fn halves(&self) -> &'b [Half] {
        let Range { start, end } = self.accesses;
        let halves = &self.dealing.halves;
        let from = halves.partition_point(|half| (half.access as usize) < start);
        let to = halves.partition_point(|half| (half.access as usize) < end);
        &halves[from..to]
    }

    /// Values: index of the access in this piece, and the bytes.
    pub fn values(&self) -> impl Iterator<Item = (usize, &'b [u8])> {
        let Range { start, end } = self.accesses;
        self.batch.values.between(start, end).map(move |(access, bytes)| (access - start, bytes))
    }
}
