//! Counts of some accesses.

use std::ops::AddAssign;

use memlode_simulate::MAX_LEVELS;

/// Reads and writes by the level that served them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `reads[d]`: reads that missed `d` levels, so that level `d` (0 is the first) served them;
    /// the last one is memory.
    pub reads: [u64; MAX_LEVELS + 1],
    /// The same for writes; an atomic update counts as a write.
    pub writes: [u64; MAX_LEVELS + 1],
    /// Further cycles of waiting, if they are simulated: for translations that the first-level TLB
    /// lacks, and for memory of other nodes.
    pub other_cycles: u64,
    /// First touches of lines in the trace, among the accesses that memory served; 0 if they are
    /// not counted.
    pub first_touches: u64,
}

impl Counts {
    /// Adds accesses that missed `depth` levels.
    pub fn add(&mut self, depth: u8, is_write: bool, accesses: u64) {
        let side = if is_write { &mut self.writes } else { &mut self.reads };
        side[usize::from(depth)] += accesses;
    }

    /// Returns the counts since `before`, which is a part of these.
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        Counts {
            reads: std::array::from_fn(|depth| self.reads[depth] - before.reads[depth]),
            writes: std::array::from_fn(|depth| self.writes[depth] - before.writes[depth]),
            other_cycles: self.other_cycles - before.other_cycles,
            first_touches: self.first_touches - before.first_touches,
        }
    }

    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.misses_from(0)
    }

    /// Accesses that missed level `level` (0 is the first).
    pub fn misses(&self, level: usize) -> u64 {
        self.misses_from(level + 1)
    }

    /// Cycles spent beyond the first level. Each access costs the latency of the level that served
    /// it, less the first level's, and its further waiting. `latencies` holds one value a level, in
    /// cycles, and memory's last. An upper bound, since misses overlap on real machines.
    pub fn stall_cycles(&self, latencies: &[u32]) -> u64 {
        let first = latencies.first().copied().unwrap_or(0);
        let served = self.reads.iter().zip(&self.writes).map(|(r, w)| r + w);
        let caches = served.zip(latencies).map(|(n, &cycles)| n * u64::from(cycles.saturating_sub(first)));
        caches.sum::<u64>() + self.other_cycles
    }

    fn misses_from(&self, depth: usize) -> u64 {
        self.reads[depth..].iter().sum::<u64>() + self.writes[depth..].iter().sum::<u64>()
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        // Of a shard alone, hits may be less than nothing.
        for (a, b) in self.reads.iter_mut().zip(other.reads) {
            *a = a.wrapping_add(b);
        }
        for (a, b) in self.writes.iter_mut().zip(other.writes) {
            *a = a.wrapping_add(b);
        }
        self.other_cycles += other.other_cycles;
        self.first_touches += other.first_touches;
    }
}
