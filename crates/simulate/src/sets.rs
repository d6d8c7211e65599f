//! From a line number to its set.

/// Line numbers have at most this many bits, since a line has at least 4 bytes.
const LINE_BITS: u32 = 62;

/// `line % sets`, without a division.
///
/// For a number of sets that is no power of two, the remainder comes from a multiplication by a rounded-up
/// reciprocal (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994):
/// with l = ⌈log₂ sets⌉ and m = ⌈2^(62+l) / sets⌉, ⌊n·m / 2^(62+l)⌋ is ⌊n / sets⌋ for every n < 2^62.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetIndex {
    sets: u64,
    /// 0 when `sets` is a power of two.
    reciprocal: u64,
    /// 62 + l less the 64 bits that are dropped anyway: at least 0, as 3 is the least of the other numbers.
    shift: u32,
}

impl SetIndex {
    /// For 1 to 2³² − 1 sets.
    pub fn new(sets: u64) -> SetIndex {
        debug_assert!(sets > 0 && sets <= u64::from(u32::MAX));
        if sets.is_power_of_two() {
            return SetIndex { sets, reciprocal: 0, shift: 0 };
        }
        let shift = LINE_BITS + (u64::BITS - sets.leading_zeros());
        // m < 2^63: sets > 2^(l-1), so 2^(62+l) / sets < 2^63.
        let reciprocal = (1u128 << shift).div_ceil(u128::from(sets)) as u64;
        SetIndex { sets, reciprocal, shift: shift - u64::BITS }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.sets
    }

    /// Of a line number, the bits that are its set's number, if there are such.
    pub fn mask(&self) -> Option<u64> {
        (self.reciprocal == 0).then_some(self.sets - 1)
    }

    /// The set of a line number below 2^62; always less than the number of sets.
    #[inline(always)]
    pub fn of(&self, line: u64) -> usize {
        if self.reciprocal == 0 {
            return (line & (self.sets - 1)) as usize;
        }
        let high = ((u128::from(line) * u128::from(self.reciprocal)) >> u64::BITS) as u64;
        let quotient = high >> self.shift;
        (line - quotient * self.sets) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_remainder(sets in 1u64..=u32::MAX as u64, line in 0u64..1 << LINE_BITS) {
            let index = SetIndex::new(sets);
            for line in [line, line - line % sets, (line - line % sets).wrapping_sub(1) >> 2, (1 << LINE_BITS) - 1] {
                prop_assert_eq!(index.of(line) as u64, line % sets);
            }
        }
    }

    #[test]
    fn equals_the_remainder_for_all_small_counts() {
        for sets in 1..=4096u64 {
            let index = SetIndex::new(sets);
            let top = (1u64 << LINE_BITS) - 1;
            for line in (0..3 * sets).chain(top - 2 * sets..=top) {
                assert_eq!(index.of(line) as u64, line % sets, "{line} % {sets}");
            }
        }
    }
}
