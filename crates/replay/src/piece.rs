//! Events of one stream that nothing of another comes between.

use std::borrow::Cow;
use std::ops::Range;

use memlode_trace::event::{Access, Batch, Loop, Mark, Stride};

use crate::moments::Moment;
use crate::shards::{Dealing, Dealt, Half};

/// A run of a chunk's events that nothing of another stream comes between.
#[derive(Clone, Debug)]
pub struct Piece<'b> {
    /// The chunk, or this consumer's part of it.
    pub batch: &'b Batch,
    /// Its division among the shards.
    pub dealing: &'b Dealing,
    pub(crate) accesses: Range<usize>,
    pub(crate) marks: Range<usize>,
    pub(crate) loops: Range<usize>,
    /// Iterations of the first loop that came before, and iterations of the one behind the last
    /// that are here.
    pub(crate) iterations: (u64, u64),
    /// The chunk ends with it.
    pub(crate) ends: bool,
}

/// The end of a run of events.
#[derive(Clone, Copy, Debug)]
pub enum PieceEnd<'b> {
    /// A loop, where they are kept, or a part of one.
    Loop(LoopPart<'b>),
    /// A part of an access that goes on, or began, in another shard.
    Half(&'b Half),
}

/// A place in a shard's part of a chunk: the numbers of events before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub accesses: usize,
    pub marks: usize,
    pub loops: usize,
    /// Iterations of the next loop, if it is kept.
    pub iterations: u64,
}

impl Place {
    /// The end.
    pub fn end_of(batch: &Batch) -> Place {
        let (accesses, marks, loops) = (batch.accesses.len(), batch.marks.len(), batch.loops.len());
        Place { accesses, marks, loops, iterations: 0 }
    }

    /// The place of one of the moments that a moment stands for.
    pub fn of(moment: &Moment, number: u64, batch: &Batch) -> Place {
        let (accesses, marks) = (moment.accesses as usize, moment.marks as usize);
        let loops = moment.loops as usize;
        let at = Place { accesses, marks, loops, iterations: 0 };
        let Some(inside) = moment.inside.filter(|_| number > 0) else { return at };
        match batch.loops.get(loops).filter(|_| inside.accesses == 0) {
            // Its first iteration may be dealt out as accesses.
            Some(kept) => Place {
                accesses: kept.access as usize,
                marks: kept.mark as usize,
                iterations: number * inside.apart,
                ..at
            },
            None => Place { accesses: accesses + number as usize * inside.accesses as usize, ..at },
        }
    }
}

/// Some iterations of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopPart<'b> {
    repeated: &'b Loop,
    strides: &'b [Stride],
    /// Division of the loop among the shards, if it was dealt out.
    pub dealt: Option<&'b Dealt>,
    /// Iterations before these, a multiple of the loop's period.
    pub before: u64,
    /// Number of these.
    pub iterations: u64,
}

impl<'b> LoopPart<'b> {
    /// Its strides, each with the first access in these iterations.
    pub fn strides(&self) -> Cow<'b, [Stride]> {
        if self.before == 0 {
            return self.strides.into();
        }
        let here = |stride: &Stride| Stride { access: stride.access_in(self.before), ..*stride };
        self.strides.iter().map(here).collect()
    }
}

/// Accesses, and the marks between them.
#[derive(Clone, Copy, Debug)]
pub struct Events<'b> {
    /// The accesses, in program order.
    pub accesses: &'b [Access],
    /// The marks, in program order, each with the number of the chunk's accesses that come before
    /// it.
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
        Piece { batch, dealing, accesses, marks, loops: 0..batch.loops.len(), iterations: (0, 0), ends: true }
    }

    /// The events between two places of a shard's part of a chunk, which may end there.
    pub(crate) fn between(
        batch: &'b Batch,
        dealing: &'b Dealing,
        from: Place,
        to: Place,
        ends: bool,
    ) -> Piece<'b> {
        let (accesses, marks) = (from.accesses..to.accesses, from.marks..to.marks);
        let (loops, iterations) = (from.loops..to.loops, (from.iterations, to.iterations));
        Piece { batch, dealing, accesses, marks, loops, iterations, ends }
    }

    /// A shard's part of a chunk, cut at all of its moments.
    pub fn at_moments(batch: &'b Batch, dealing: &'b Dealing) -> Vec<Piece<'b>> {
        let of_one = |moment: &Moment| -> Vec<Place> {
            (0..moment.count()).map(|number| Place::of(moment, number, batch)).collect()
        };
        let mut places: Vec<Place> = dealing.moments.iter().flat_map(of_one).collect();
        places.insert(0, Place::default());
        places.push(Place::end_of(batch));
        let last = places.len() - 2;
        let piece = |(number, places): (usize, &[Place])| {
            Piece::between(batch, dealing, places[0], places[1], number == last)
        };
        places.windows(2).enumerate().map(piece).collect()
    }

    /// Returns whether the chunk begins with it.
    pub fn is_first(&self) -> bool {
        (self.accesses.start, self.marks.start, self.loops.start, self.iterations.0) == (0, 0, 0, 0)
    }

    /// Returns whether the chunk ends with it.
    pub fn is_last(&self) -> bool {
        self.ends
    }

    /// Returns whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
            && self.marks.is_empty()
            && (self.loops.start, self.iterations.0) == (self.loops.end, self.iterations.1)
    }

    /// The accesses, in program order.
    pub fn accesses(&self) -> &'b [Access] {
        &self.batch.accesses[self.accesses.clone()]
    }

    /// The marks, in program order: `(i, m)` stands before the access that is the `i`th of this
    /// piece.
    pub fn marks(&self) -> impl Iterator<Item = (usize, &'b Mark)> {
        let piece = self.clone();
        self.batch.marks[self.marks.clone()].iter().map(move |(at, mark)| (piece.within(*at), mark))
    }

    /// Which accesses of the chunk, and which marks.
    pub fn places(&self) -> (Range<usize>, Range<usize>) {
        (self.accesses.clone(), self.marks.clone())
    }

    /// Its events in order: runs of accesses and marks, each with the loop behind it. There is none
    /// behind the last one.
    pub fn runs(&self) -> impl Iterator<Item = (Events<'b>, Option<PieceEnd<'b>>)> {
        let batch = self.batch;
        let (mut accesses, mut marks) = (self.accesses.clone(), self.marks.clone());
        let mut loops = self.loop_parts().peekable();
        let mut halves = self.halves().iter().peekable();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let half = halves.peek().map_or(usize::MAX, |half| half.access as usize);
            let next = loops.next_if(|next| next.repeated.access as usize <= half);
            let (access, mark, stop) = if let Some(next) = next {
                let Loop { access, mark, .. } = *next.repeated;
                (access as usize, mark as usize, Some(PieceEnd::Loop(next)))
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

    /// Its loops, or the parts of them that are here.
    fn loop_parts(&self) -> impl Iterator<Item = LoopPart<'b>> + use<'b> {
        let (batch, dealing) = (self.batch, self.dealing);
        let (Range { start, end }, (before, behind)) = (self.loops.clone(), self.iterations);
        (start..end + usize::from(behind > 0)).map(move |number| {
            let repeated = &batch.loops[number];
            let strides = &batch.strides[repeated.strides.start as usize..repeated.strides.end as usize];
            let before = if number == start { before } else { 0 };
            let to = if number == end { behind } else { repeated.iterations };
            LoopPart { repeated, strides, dealt: dealing.loops.get(number), before, iterations: to - before }
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
