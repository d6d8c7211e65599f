//! Which lines anything has touched so far.

use crate::by_block::ByBlock;

/// Lines of a group, one bit each.
const LINES: u64 = 64;

/// Groups of a block: one line of the machine we run on.
const GROUPS: usize = 8;

/// A set of lines that only grows.
#[derive(Clone)]
pub struct Touched {
    shift: u32,
    /// A bit for each touched line, by the number of its group.
    groups: ByBlock<u64, GROUPS>,
}

impl Touched {
    /// An empty set of lines of `line_bytes`, a power of two.
    pub fn new(line_bytes: u32) -> Touched {
        Touched { shift: line_bytes.trailing_zeros(), groups: ByBlock::new(0) }
    }

    /// Touches the line of an address; returns whether this is its first touch.
    #[inline]
    pub fn is_first(&mut self, address: u64) -> bool {
        let line = address >> self.shift;
        let bit = 1 << (line % LINES);
        let place = self.groups.place(line / LINES);
        let group = &mut self.groups[place];
        let is_first = *group & bit == 0;
        *group |= bit;
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
