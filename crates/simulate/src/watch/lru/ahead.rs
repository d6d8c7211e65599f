//! Accesses that waited, simulated through caches whose records are prefetched.

use crate::mem_ref::MemRef;
use crate::tag::Tag;
use crate::watch::batch::{FAR, NEAR, goes_far};
use crate::watch::lru::WatchedLru;
use crate::watch::lru::first_level::Hit;
use crate::watch::watched::Miss;

/// Distance in accesses at which the records of lines that will be evicted are prefetched.
const SOON: usize = 6;

impl WatchedLru {
    /// Simulates accesses of one core; adds those that miss to `missed`.
    pub fn all(&mut self, requests: &[MemRef], missed: &mut Vec<Miss>) {
        let mut ahead = Ahead::new();
        let mut done = 0;
        while done < requests.len() {
            let (hits, stop) = self.hit_all(&requests[done..]);
            done += hits;
            let Some(request) = requests.get(done) else { break };
            // Where there is a miss, there are more.
            self.look_ahead(requests, done, &mut ahead);
            let depth = match stop {
                Hit::Missing => self.access_missing(*request),
                _ => self.access_one(*request).0,
            };
            if depth > 0 {
                missed.push((*request, depth));
            }
            done += 1;
        }
    }

    /// Simulates the hits at the beginning that change nothing else, all of one core; returns their
    /// number, and what comes next.
    fn hit_all(&mut self, requests: &[MemRef]) -> (usize, Hit) {
        let Some((mut hits, level)) = requests.first().and_then(|first| self.hits(first.core())) else {
            return (0, Hit::Other);
        };
        let line_bytes = 1 << level.line_shift;
        let (mut done, mut writes, mut most, mut stop) = (0, 0, Tag::default(), Hit::Done);
        for &MemRef { address, bytes, tag, is_write, .. } in requests {
            let (offset, after_first) = (address & (line_bytes - 1), u64::from(bytes.wrapping_sub(1)));
            // Of no bytes, the last one is 4 GiB away.
            stop = match offset + after_first < line_bytes {
                true => hits.hit(address >> level.line_shift, level.bits_at(offset, after_first), is_write),
                false => Hit::Other,
            };
            if stop != Hit::Done {
                break;
            }
            writes += u64::from(is_write);
            most = most.max(tag);
            done += 1;
        }
        drop(hits);
        self.served[0][0] += done as u64 - writes;
        self.served[1][0] += writes;
        self.watcher.has_room(most);
        (done, stop)
    }

    /// Prefetches records that later accesses may need.
    fn look_ahead(&self, requests: &[MemRef], at_hand: usize, ahead: &mut Ahead) {
        let (first, table) = self.first_of(requests[at_hand].core());
        let (from, to) = (ahead.looked_at.max(at_hand + 1), requests.len().min(at_hand + FAR));
        if from < to {
            ahead.looked_at = to;
            for (number, pair) in (from..to).zip(requests[from - 1..to].windows(2)) {
                let line = self.watcher.line(pair[1].address);
                if goes_far(&pair[0], &pair[1]) && ahead.is_news(line) && !first.holds(line) {
                    table.prefetch_index(line);
                    ahead.push(number, line);
                }
            }
        }
        let core = requests[at_hand].core();
        while let Some(line) = ahead.next_before(0, at_hand + NEAR) {
            table.prefetch_record(line);
            self.prefetch_rows(core, line);
        }
        while let Some(line) = ahead.next_before(1, at_hand + SOON) {
            self.prefetch_oldest(core, line);
        }
    }
}

/// Lines that accesses to come may miss, for which the index was fetched and not all else.
struct Ahead {
    /// Up to where was looked.
    looked_at: usize,
    /// Lines that were seen last, indexed by bits of their number.
    seen: [u64; 64],
    /// Numbers of accesses and their lines, a ring: there are never more than [`FAR`].
    lines: [(usize, u64); FAR.next_power_of_two()],
    /// Number of the accesses whose records were prefetched, and of those for which the records of
    /// evicted lines were.
    taken: [usize; 2],
    put: usize,
}

impl Ahead {
    fn new() -> Ahead {
        // No line has this number.
        Ahead {
            looked_at: 0,
            seen: [u64::MAX; _],
            lines: [(0, 0); FAR.next_power_of_two()],
            taken: [0; 2],
            put: 0,
        }
    }

    /// Returns whether a line was not seen just before: loops come to a line again and again.
    #[inline(always)]
    fn is_news(&mut self, line: u64) -> bool {
        // Rows of arrays are often a power of two apart.
        let place = line ^ line >> 6 ^ line >> 12;
        let seen = &mut self.seen[place as usize % self.seen.len()];
        std::mem::replace(seen, line) != line
    }

    #[inline(always)]
    fn push(&mut self, number: usize, line: u64) {
        self.lines[self.put % self.lines.len()] = (number, line);
        self.put += 1;
    }

    /// The next line to be taken for something, if its access has a number below this.
    #[inline(always)]
    fn next_before(&mut self, what: usize, number: usize) -> Option<u64> {
        let taken = &mut self.taken[what];
        let (of, line) = self.lines[*taken % self.lines.len()];
        let is_next = *taken < self.put && of < number;
        *taken += usize::from(is_next);
        is_next.then_some(line)
    }
}
