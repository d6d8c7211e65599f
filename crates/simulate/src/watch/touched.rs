//! Which lines anything has touched so far.

use rustc_hash::FxHashMap;

/// Lines of a block, one bit each, and blocks of a group, which share one lookup.
const LINES: u32 = 64;
const BLOCKS: u64 = 8;

/// Groups that are found without a lookup, by the low bits of their numbers.
const NEAR: usize = 256;

/// One line of the machine we run on.
type Group = [u64; BLOCKS as usize];

/// A set of lines that only grows.
#[derive(Clone)]
pub struct Touched {
    shift: u32,
    /// Place of each group.
    places: FxHashMap<u64, u32>,
    groups: Vec<Group>,
    /// Number of a group and its place.
    near: Box<[(u64, u32); NEAR]>,
}

impl Touched {
    /// An empty set of lines of `line_bytes`, a power of two.
    pub fn new(line_bytes: u32) -> Touched {
        Touched {
            shift: line_bytes.trailing_zeros(),
            places: FxHashMap::default(),
            groups: Vec::new(),
            near: Box::new([(u64::MAX, 0); NEAR]),
        }
    }

    /// Touches the line of an address; returns whether this is its first touch.
    #[inline]
    pub fn is_first(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        let (block, bit) = (line / u64::from(LINES), 1 << (line % u64::from(LINES)));
        let number = block / BLOCKS;
        let near = &mut self.near[number as usize % NEAR];
        if near.0 != number {
            let next = self.groups.len() as u32;
            let place = *self.places.entry(number).or_insert(next);
            if place == next {
                self.groups.push(Group::default());
            }
            *near = (number, place);
        }
        let block = &mut self.groups[near.1 as usize][(block % BLOCKS) as usize];
        let is_first = *block & bit == 0;
        *block |= bit;
        is_first
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_is_touched_first_once(
            accesses in prop::collection::vec((0..40u64, 0..1u64 << 19), 0..2000),
            shift in 5..8u32,
        ) {
            let mut touched = Touched::new(1 << shift);
            let mut lines = HashSet::new();
            for (far, near) in accesses {
                let address = far << 43 | near;
                prop_assert_eq!(touched.is_first(address), lines.insert(address >> shift));
            }
        }
    }
}
