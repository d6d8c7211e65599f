//! The lines that several threads use and one writes: most accesses are to none of them, and that
//! is found out at once.

use rustc_hash::FxHashMap;

/// Bits of the filter in front of the table of lines: 2^21.
const FILTER_BITS: u32 = 21;

/// Lines that count.
pub(super) struct Contended<'s> {
    lines: &'s FxHashMap<u64, u32>,
    /// In their order.
    sorted: Vec<u64>,
    filter: Vec<u64>,
}

impl<'s> Contended<'s> {
    pub fn new(lines: &'s FxHashMap<u64, u32>) -> Contended<'s> {
        let mut sorted: Vec<u64> = lines.keys().copied().collect();
        sorted.sort_unstable();
        let mut filter = vec![0; 1 << (FILTER_BITS - 6)];
        for &line in &sorted {
            let bit = Self::bit(line);
            filter[bit / 64] |= 1 << (bit % 64);
        }
        Contended { lines, sorted, filter }
    }

    fn bit(line: u64) -> usize {
        (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS)) as usize
    }

    /// Returns false only for a line that is not among them.
    #[inline]
    pub fn may_have(&self, line: u64) -> bool {
        let bit = Self::bit(line);
        self.filter[bit / 64] >> (bit % 64) & 1 != 0
    }

    #[inline]
    pub fn number(&self, line: u64) -> Option<u32> {
        if self.may_have(line) { self.lines.get(&line).copied() } else { None }
    }

    /// The numbers between two lines.
    pub fn between(&self, first: u64, last: u64) -> &[u64] {
        let from = self.sorted.partition_point(|&line| line < first);
        let lines = &self.sorted[from..];
        &lines[..lines.partition_point(|&line| line <= last)]
    }

    /// Returns whether one of them lies between two lines.
    pub fn any(&self, first: u64, last: u64) -> bool {
        let from = self.sorted.partition_point(|&line| line < first);
        self.sorted.get(from).is_some_and(|&line| line <= last)
    }
}
