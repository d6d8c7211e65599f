//! The next line, when a line misses and when a prefetched line is first used: "tagged prefetch"
//! (Smith, "Cache Memories", ACM Computing Surveys 1982).

use super::{Prefetcher, Seen};

pub struct NextLine;

impl Prefetcher for NextLine {
    #[inline(always)]
    fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>) {
        if seen.miss || seen.first_use {
            wanted.push(seen.line + 1);
        }
    }
}
