//! The other line of an aligned pair, when one misses (Intel's optimization manual calls it the
//! spatial prefetcher: lines of 64 bytes come in chunks of 128).

use super::{Prefetcher, Seen};

pub struct AdjacentLine;

impl Prefetcher for AdjacentLine {
    #[inline(always)]
    fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>) {
        if seen.miss {
            wanted.push(seen.line ^ 1);
        }
    }
}
