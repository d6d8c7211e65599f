//! The division of threads: some simulate a shard each, and decode while they are idle; the others
//! only decode.
//!
//! More shards share the accesses, but each has to follow every call and allocation, and accesses
//! have to be dealt out. With few shards, simulating may take longer than all the decoding. Which
//! is faster depends on the trace; the figures are the same.
//!
//! With one shard the outer levels have a thread of their own
//! ([`crate::drive::threads::outer_levels`]). The estimate ignores that: where this thread has the
//! most work, two shards were as fast or faster.

use std::time::Duration;

use memlode_simulate::{Hierarchy, MemRef};
use memlode_trace::event::{Access, Batch};
use memlode_trace::{ChunkRef, Trace};

use crate::drive::source::Source;

/// Chunks that are sampled, and how many chunks there must be for each of them.
const LOOKED_AT: usize = 8;
const OF_EACH: usize = 64;
/// Chunks of a trace that is still written that are waited for, since programs begin otherwise than
/// they go on, and for how long.
const LIVE_CHUNKS: usize = 8;
const LIVE_PATIENCE: Duration = Duration::from_millis(10);

/// Nanoseconds that each takes on one core of an AMD EPYC guest. Only their ratios matter, and
/// these do not have to be exact.
mod cost {
    /// Nanoseconds to decode a word of the stream.
    pub const WORD: f64 = 7.0;
    /// Nanoseconds to deal an access out to shards.
    pub const DEAL: f64 = 5.0;
    /// Nanoseconds to simulate and charge an access that hits the first level.
    pub const HIT: f64 = 3.0;
    /// Further nanoseconds if it misses the first level.
    pub const MISS: f64 = 40.0;
    /// Nanoseconds to simulate an access of a loop that is one record.
    pub const STRIDED: f64 = 6.0;
    /// Nanoseconds to follow a call or an allocation.
    pub const MARK: f64 = 25.0;
    /// Nanoseconds to encode a word, while the program runs beside.
    pub const ENCODE: f64 = 5.0;
    /// An access of such a program itself.
    pub const PROGRAM: f64 = 1.5;
}

/// The load of a part of a trace.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    words: u64,
    accesses: u64,
    misses: u64,
    strided: u64,
    marks: u64,
    /// The program and the collector need the cores, too.
    is_live: bool,
}

/// The number of shards with which `threads` threads are likely to be fastest. `caches` is empty;
/// its shape allows `most`.
pub(crate) fn shards(source: &Source, caches: &Hierarchy, threads: usize, most: usize) -> usize {
    if most < 2 {
        return most;
    }
    // A part of what is possible is.
    let Ok(first_level) = Hierarchy::new(&caches.levels()[..1], caches.cores()) else { return 1 };
    let mut look = Look { load: Load::default(), first_level };
    match source {
        Source::Stored(trace) if look.stored(trace) => look.load.fastest(threads, most),
        Source::Excerpt { .. } => 1,
        // It is so short that nothing depends on it.
        Source::Stored(_) => most,
        Source::Live { trace, .. } => {
            trace.preview(LIVE_CHUNKS, LIVE_PATIENCE, LOOKED_AT, |chunk, batch| look.add(chunk, batch));
            Load { is_live: true, ..look.load }.fastest(threads, most)
        }
    }
}

/// Samples the contents of chunks.
struct Look {
    load: Load,
    first_level: Hierarchy,
}

impl Look {
    /// Some chunks, spread over a trace; false if it is short.
    fn stored(&mut self, trace: &Trace) -> bool {
        let all = trace.chunks();
        let count = (all.len() / OF_EACH).min(LOOKED_AT);
        let mut batch = Batch::default();
        for number in 0..count {
            let chunk = &all[(2 * number + 1) * all.len() / (2 * count)];
            if trace.decode_kept(chunk, &mut batch).is_ok() {
                self.add(chunk, &batch);
            }
        }
        count > 0
    }

    fn add(&mut self, chunk: &ChunkRef, batch: &Batch) {
        let load = &mut self.load;
        load.words += u64::from(chunk.raw_words());
        load.accesses += batch.accesses.len() as u64;
        let missed =
            |access: &&Access| self.first_level.access(MemRef::read(0, access.address, access.bytes)) > 0;
        load.misses += batch.accesses.iter().filter(missed).count() as u64;
        load.marks += batch.marks.len() as u64;
        let strided = batch.loops.iter().map(|l| l.iterations.saturating_mul(l.strides.len() as u64));
        load.strided = strided.fold(load.strided, u64::saturating_add);
    }
}

impl Load {
    /// The number of shards, up to `most`, with which `threads` threads are through first; the
    /// least of these.
    fn fastest(&self, threads: usize, most: usize) -> usize {
        let time = |&shards: &usize| self.time(threads, shards);
        (1..=most).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(1)
    }

    /// Returns the time that `threads` threads take with this number of shards: until every shard
    /// is simulated, and until all work is done.
    fn time(&self, threads: usize, shards: usize) -> f64 {
        let [words, accesses, misses, strided, marks] =
            [self.words, self.accesses, self.misses, self.strided, self.marks].map(|count| count as f64);
        let simulate = accesses * cost::HIT + misses * cost::MISS + strided * cost::STRIDED;
        let follow = marks * cost::MARK;
        let deal = if shards > 1 { accesses * cost::DEAL } else { 0.0 };
        let beside = match self.is_live {
            true => words * cost::ENCODE + (accesses + strided) * cost::PROGRAM,
            false => 0.0,
        };
        let all = words * cost::WORD + deal + simulate + shards as f64 * follow + beside;
        (simulate / shards as f64 + follow).max(all / threads as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with counts of programs in `bench/` and of Lua, by a hundred accesses, and with the
    /// way that was seen to be faster on two cores.
    #[test]
    fn two_threads_are_divided_as_was_measured() {
        let lua = Load { words: 144, accesses: 100, misses: 0, strided: 2, marks: 21, ..Load::default() };
        let sqlite = Load { words: 118, accesses: 100, misses: 1, strided: 1, marks: 9, ..Load::default() };
        let zstd = Load { words: 118, accesses: 100, misses: 10, strided: 0, marks: 2, ..Load::default() };
        let counters = Load { words: 75, accesses: 100, ..Load::default() };
        let tree = Load { words: 204, accesses: 100, misses: 26, strided: 0, marks: 1, ..Load::default() };
        let hash = Load { words: 158, accesses: 100, misses: 42, ..Load::default() };
        let pricing = Load { words: 88, accesses: 100, misses: 52, strided: 8, marks: 0, ..Load::default() };
        let stencil = Load { strided: 100, ..Load::default() };
        let fastest =
            [lua, sqlite, zstd, counters, tree, hash, pricing, stencil].map(|load| load.fastest(2, 2));
        assert_eq!(fastest, [1, 1, 1, 1, 1, 2, 2, 2]);
        let matmul = Load { words: 1, strided: 100, ..Load::default() };
        let fastest = [lua, zstd, counters, tree, pricing, matmul, stencil]
            .map(|load| Load { is_live: true, ..load }.fastest(2, 2));
        assert_eq!(fastest, [1, 1, 1, 1, 2, 2, 2], "live");
        assert_eq!(Load::default().fastest(2, 2), 1, "nothing is known");
    }

    /// With many threads one shard is too few for any of them, and as many as threads are too many
    /// where there are calls.
    #[test]
    fn many_threads_share_the_accesses_but_not_the_calls() {
        let calls = Load { words: 144, accesses: 100, marks: 21, ..Load::default() };
        assert!((2..8).contains(&calls.fastest(8, 8)));
        let accesses = Load { words: 88, accesses: 100, misses: 35, ..Load::default() };
        assert!(accesses.fastest(8, 8) > 4);
        assert_eq!(accesses.fastest(8, 1), 1);
    }
}
