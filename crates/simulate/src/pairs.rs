//! How often each pair of tags met.

use rustc_hash::FxHashMap;

/// Exact counts of pairs; the pair that a tag was last in is found without looking it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    index: FxHashMap<(u32, u32), u32>,
    counts: Vec<u64>,
    /// By first tag: the second tag of its last pair, and where that pair is counted.
    last: Vec<(u32, u32)>,
}

/// Counts nothing yet: the tag `u32::MAX` is none.
const NO_PAIR: (u32, u32) = (u32::MAX, 0);

impl Pairs {
    /// Counts one meeting; says which pair it was, in the order of their first meetings.
    #[inline]
    pub fn add(&mut self, first: u32, second: u32) -> u32 {
        self.add_times(first, second, 1)
    }

    /// The same of so many.
    #[inline]
    pub fn add_times(&mut self, first: u32, second: u32, times: u64) -> u32 {
        let slot = match self.last.get(first as usize) {
            Some(&(other, slot)) if other == second => slot,
            _ => self.find(first, second),
        };
        self.counts[slot as usize] += times;
        slot
    }

    #[inline(never)]
    fn find(&mut self, first: u32, second: u32) -> u32 {
        let fresh = self.counts.len() as u32;
        let slot = *self.index.entry((first, second)).or_insert(fresh);
        if slot == fresh {
            self.counts.push(0);
        }
        if self.last.len() <= first as usize {
            self.last.resize(first as usize + 1, NO_PAIR);
        }
        self.last[first as usize] = (second, slot);
        slot
    }

    /// `(first, second, count, slot)`: by first tag, the most frequent second one first.
    pub fn sorted(&self) -> Vec<(u32, u32, u64, u32)> {
        let count = |(&(first, second), &slot): (&(u32, u32), &u32)| {
            (first, second, self.counts[slot as usize], slot)
        };
        let mut pairs: Vec<_> = self.index.iter().map(count).collect();
        pairs.sort_unstable_by_key(|&(first, second, count, _)| (first, u64::MAX - count, second));
        pairs
    }
}
