//! Number of times that each pair of tags met.

use rustc_hash::FxHashMap;

use crate::tag::Tag;

/// Exact counts of pairs; the pair that a tag was last in is found without looking it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    index: FxHashMap<(Tag, Tag), u32>,
    counts: Vec<u64>,
    /// Indexed by first tag: the second tag of its last pair, and where that pair is counted.
    last: Vec<(Option<Tag>, u32)>,
}

impl Pairs {
    /// Counts one meeting of a pair; returns the pair's number, in the order of first meetings.
    #[inline]
    pub fn add(&mut self, first: Tag, second: Tag) -> u32 {
        self.add_times(first, second, 1)
    }

    /// Counts `times` meetings of a pair, like [`Pairs::add`].
    #[inline]
    pub fn add_times(&mut self, first: Tag, second: Tag, times: u64) -> u32 {
        let slot = match self.last.get(first.index()) {
            Some(&(other, slot)) if other == Some(second) => slot,
            _ => self.find(first, second),
        };
        self.counts[slot as usize] += times;
        slot
    }

    #[inline(never)]
    fn find(&mut self, first: Tag, second: Tag) -> u32 {
        let fresh = self.counts.len() as u32;
        let slot = *self.index.entry((first, second)).or_insert(fresh);
        if slot == fresh {
            self.counts.push(0);
        }
        if self.last.len() <= first.index() {
            self.last.resize(first.index() + 1, (None, 0));
        }
        self.last[first.index()] = (Some(second), slot);
        slot
    }

    /// `(first, second, count, slot)`: by first tag, the most frequent second one first.
    pub fn sorted(&self) -> Vec<(Tag, Tag, u64, u32)> {
        let count = |(&(first, second), &slot): (&(Tag, Tag), &u32)| {
            (first, second, self.counts[slot as usize], slot)
        };
        let mut pairs: Vec<_> = self.index.iter().map(count).collect();
        pairs.sort_unstable_by_key(|&(first, second, count, _)| (first, u64::MAX - count, second));
        pairs
    }
}
