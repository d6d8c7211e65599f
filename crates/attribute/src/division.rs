//! How threads are divided: some simulate a shard each and decode when they have nothing better to do, the others only decode.
//!
//! More shards share the accesses, but each has to follow every call and allocation, and accesses have to be dealt out. Fewer shards do
//! neither, but then simulating may take longer than all the decoding. Which is faster depends on the trace; the figures are the
//! same.

use memlode_simulate::Hierarchy;
use memlode_trace::Trace;
use memlode_trace::event::{Access, Batch};

use crate::source::Source;

/// Chunks that are looked at, and how many there must be for each of them.
const LOOKED_AT: usize = 8;
const OF_EACH: usize = 64;

/// Nanoseconds that each takes on one core of an AMD EPYC guest. Only their ratios matter, and these do not have to be exact.
mod cost {
    /// To decode a word of the stream.
    pub const WORD: f64 = 7.0;
    /// To deal an access out to shards.
    pub const DEAL: f64 = 5.0;
    /// To simulate and charge an access that the first level has.
    pub const HIT: f64 = 3.0;
    /// What it takes more if the first level has it not.
    pub const MISS: f64 = 40.0;
    /// To simulate an access of a loop that is one record.
    pub const STRIDED: f64 = 6.0;
    /// To follow a call or an allocation.
    pub const MARK: f64 = 25.0;
}

/// What a part of a trace is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    words: u64,
    accesses: u64,
    misses: u64,
    strided: u64,
    marks: u64,
}

/// What programs like Lua, SQLite and zstd are made of: calls, and few misses.
const USUAL: Load = Load { words: 120, accesses: 100, misses: 2, strided: 0, marks: 8 };

/// With how many shards `threads` threads are likely to be fastest. `caches` is empty, and `most` what its shape allows.
pub(crate) fn shards(source: &Source, caches: &Hierarchy, threads: usize, most: usize) -> usize {
    match source {
        _ if most < 2 => most,
        Source::Stored(trace) => look(trace, caches).map_or(most, |load| load.fastest(threads, most)),
        // Nothing is known yet, and the program needs a core, too.
        Source::Live { .. } => USUAL.fastest(threads, most),
    }
}

/// What some chunks are made of, spread over the trace; `None` if it is so short that nothing depends on it.
fn look(trace: &Trace, caches: &Hierarchy) -> Option<Load> {
    let all = trace.chunks();
    let count = (all.len() / OF_EACH).min(LOOKED_AT);
    let mut first_level = Hierarchy::new(&caches.levels()[..1], caches.cores()).ok().filter(|_| count > 0)?;
    let (mut load, mut batch) = (Load::default(), Batch::default());
    for number in 0..count {
        let chunk = &all[(2 * number + 1) * all.len() / (2 * count)];
        if trace.decode_kept(chunk, &mut batch).is_ok() {
            load.words += u64::from(chunk.raw_words());
            load.add(&batch, &mut first_level);
        }
    }
    Some(load)
}

impl Load {
    fn add(&mut self, batch: &Batch, first_level: &mut Hierarchy) {
        self.accesses += batch.accesses.len() as u64;
        let missed = |access: &&Access| first_level.access(0, access.address, access.bytes, false) > 0;
        self.misses += batch.accesses.iter().filter(missed).count() as u64;
        self.marks += batch.marks.len() as u64;
        let strided = batch.loops.iter().map(|l| l.turns.saturating_mul(l.strides.len() as u64));
        self.strided = strided.fold(self.strided, u64::saturating_add);
    }

    /// The number of shards, up to `most`, with which `threads` threads are through first; the least of these.
    fn fastest(&self, threads: usize, most: usize) -> usize {
        let time = |&shards: &usize| self.time(threads, shards);
        (1..=most).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(1)
    }

    /// How long `threads` threads take with so many shards: until every shard is simulated, and until all work is done.
    fn time(&self, threads: usize, shards: usize) -> f64 {
        let [words, accesses, misses, strided, marks] =
            [self.words, self.accesses, self.misses, self.strided, self.marks].map(|count| count as f64);
        let simulate = accesses * cost::HIT + misses * cost::MISS + strided * cost::STRIDED;
        let follow = marks * cost::MARK;
        let deal = if shards > 1 { accesses * cost::DEAL } else { 0.0 };
        let all = words * cost::WORD + deal + simulate + shards as f64 * follow;
        (simulate / shards as f64 + follow).max(all / threads as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was counted of programs in `bench/` and of Lua, by a hundred accesses, and which way was seen to be faster on two cores.
    #[test]
    fn two_threads_are_divided_as_was_measured() {
        let lua = Load { words: 144, accesses: 100, misses: 0, strided: 2, marks: 21 };
        let sqlite = Load { words: 118, accesses: 100, misses: 1, strided: 1, marks: 9 };
        let zstd = Load { words: 118, accesses: 100, misses: 10, strided: 0, marks: 2 };
        let counters = Load { words: 75, accesses: 100, ..Load::default() };
        let tree = Load { words: 204, accesses: 100, misses: 26, strided: 0, marks: 1 };
        let hash = Load { words: 158, accesses: 100, misses: 42, ..Load::default() };
        let pricing = Load { words: 88, accesses: 100, misses: 52, strided: 8, marks: 0 };
        let stencil = Load { strided: 100, ..Load::default() };
        let fastest =
            [lua, sqlite, zstd, USUAL, counters, tree, hash, pricing, stencil].map(|load| load.fastest(2, 2));
        assert_eq!(fastest, [1, 1, 1, 1, 1, 1, 2, 2, 2]);
    }

    /// With many threads one shard is too few for any of them, and as many as threads are too many where there are calls.
    #[test]
    fn many_threads_share_the_accesses_but_not_the_calls() {
        let calls = Load { words: 144, accesses: 100, marks: 21, ..Load::default() };
        assert!((2..8).contains(&calls.fastest(8, 8)));
        let accesses = Load { words: 88, accesses: 100, misses: 35, ..Load::default() };
        assert!(accesses.fastest(8, 8) > 4);
        assert_eq!(accesses.fastest(8, 1), 1);
    }
}
