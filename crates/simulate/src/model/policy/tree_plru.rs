//! Pseudo-LRU by a binary tree over the ways: one bit per inner node points to the half used less
//! recently.
//!
//! ```text
//!            node 1                 a use of way 1 makes node 1 point right and node 2 point left;
//!          /        \               the victim is found by following the bits from node 1
//!      node 2      node 3
//!      /    \      /    \
//!   way 0  way 1 way 2  way 3       node numbers are those of a heap: below n are 2n and 2n + 1
//! ```

use super::Policy;

/// For a power of two of ways.
pub struct TreePlru {
    ways: usize,
    /// 64-bit words of a set.
    words: usize,
    /// Bit n of a set is node n: 0 points left, to the lower ways.
    bits: Vec<u64>,
    /// Indexed by way, if a set is one word: the nodes that a use changes, and which of them then
    /// point right.
    uses: Vec<(u64, u64)>,
}

impl TreePlru {
    pub fn new(sets: usize, ways: usize) -> TreePlru {
        debug_assert!(ways.is_power_of_two());
        let words = ways.div_ceil(64);
        let uses = match words {
            1 => (0..ways).map(|way| use_of(ways, way)).collect(),
            _ => Vec::new(),
        };
        TreePlru { ways, words, bits: vec![0; sets * words], uses }
    }
}

/// The nodes above a way, and which of them point right when it is used.
fn use_of(ways: usize, way: usize) -> (u64, u64) {
    let (mut node, mut nodes, mut right) = (ways + way, 0, 0);
    while node > 1 {
        let bit = 1 << (node >> 1);
        nodes |= bit;
        right |= if node & 1 == 0 { bit } else { 0 };
        node >>= 1;
    }
    (nodes, right)
}

impl Policy for TreePlru {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        if let Some((nodes, right)) = self.uses.get(way) {
            let bits = &mut self.bits[set];
            *bits = *bits & !nodes | right;
            return;
        }
        let bits = &mut self.bits[set * self.words..][..self.words];
        // From the leaf upwards: each node points to the child we do not come from.
        let mut node = self.ways + way;
        while node > 1 {
            let (from_right, parent) = (node & 1, node >> 1);
            let bit = 1 << (parent % 64);
            if from_right == 1 {
                bits[parent / 64] &= !bit;
            } else {
                bits[parent / 64] |= bit;
            }
            node = parent;
        }
    }

    fn filled(&mut self, set: usize, way: usize) {
        self.hit(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        let bits = &self.bits[set * self.words..][..self.words];
        let mut node = 1;
        while node < self.ways {
            node = 2 * node + (bits[node / 64] >> (node % 64) & 1) as usize;
        }
        node - self.ways
    }
}
