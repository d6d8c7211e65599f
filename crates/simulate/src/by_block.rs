//! Values by the number of a line or page, in blocks of neighbours that are found together.
//!
//! ```text
//!   places   block 7 → 0, block 3 → 1, …       a hash of the blocks in use
//!   values   | 448 … 511 | 192 … 255 | …       a value for each number, block behind block
//! ```
//! Programs touch neighbouring lines one after the other. In a hash of lines, each of them would be
//! somewhere else, and mostly outside of our own caches. Here they are side by side, and the hash
//! has one entry for all of them. A block that was used of late needs no hash at all.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

/// Blocks that are found without the hash, by the low bits of their numbers: a power of two.
const NEAR: usize = 256;

/// A value for each number, in blocks of `N` numbers.
#[derive(Clone, Debug)]
pub struct ByBlock<V, const N: usize> {
    /// The value of a number that was never set.
    empty: V,
    /// The place of each block.
    places: FxHashMap<u64, u32>,
    /// Indexed by place: the block's number.
    blocks: Vec<u64>,
    values: Vec<V>,
    /// A block and its place.
    near: Box<[(u64, u32); NEAR]>,
}

impl<V: Copy, const N: usize> ByBlock<V, N> {
    /// A table in which every number has the value `empty`.
    pub fn new(empty: V) -> ByBlock<V, N> {
        ByBlock {
            empty,
            places: FxHashMap::default(),
            blocks: Vec::new(),
            values: Vec::new(),
            // No block has this number, as a block has several numbers.
            near: Box::new([(u64::MAX, 0); NEAR]),
        }
    }

    /// Finds the place of a number's value, which stays its place.
    ///
    /// # Panics
    /// Beyond 2^32 - 1 blocks.
    #[inline]
    pub fn place(&mut self, number: u64) -> usize {
        let block = number / N as u64;
        let (near, place) = self.near[block as usize % NEAR];
        let place = if near == block { place } else { self.find(block) };
        place as usize * N + (number % N as u64) as usize
    }

    #[inline(never)]
    fn find(&mut self, block: u64) -> u32 {
        let next = u32::try_from(self.blocks.len()).expect("a table has fewer than 2^32 blocks");
        let place = *self.places.entry(block).or_insert(next);
        if place == next {
            self.blocks.push(block);
            self.values.resize(self.values.len() + N, self.empty);
        }
        self.near[block as usize % NEAR] = (block, place);
        place
    }

    /// Returns the number whose value is at a place.
    pub fn number(&self, place: usize) -> u64 {
        self.blocks[place / N] * N as u64 + (place % N) as u64
    }

    /// Returns all numbers of blocks in use, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, V)> {
        self.values.iter().enumerate().map(|(place, value)| (self.number(place), *value))
    }
}

impl<V, const N: usize> Index<usize> for ByBlock<V, N> {
    type Output = V;

    /// The value at a place.
    #[inline]
    fn index(&self, place: usize) -> &V {
        &self.values[place]
    }
}

impl<V, const N: usize> IndexMut<usize> for ByBlock<V, N> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut V {
        &mut self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers have the values of a map, near and far apart, more blocks than are found without the hash.
        #[test]
        fn a_number_has_the_value_that_a_map_has(
            steps in prop::collection::vec((0..3u64, 0..20_000u64, 1..9u32), 0..3000),
        ) {
            let (mut table, mut map) = (ByBlock::<u32, 16>::new(0), BTreeMap::new());
            for (far, near, value) in steps {
                let number = (far << 62) + near;
                let place = table.place(number);
                prop_assert_eq!(table.number(place), number);
                let before = std::mem::replace(&mut table[place], value);
                prop_assert_eq!(before, map.insert(number, value).unwrap_or(0));
            }
            let all: BTreeMap<u64, u32> = table.iter().filter(|(_, value)| *value > 0).collect();
            prop_assert_eq!(all, map);
        }
    }
}
