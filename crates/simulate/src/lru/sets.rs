//! From a line number to its set.

/// Line numbers have at most this many bits, since a line has at least 4 bytes.
const LINE_BITS: u32 = 62;

/// `line % sets`, without a division.
///
/// For a number of sets that is no power of two, the remainder comes from a multiplication by a
/// rounded-up reciprocal (Granlund and Montgomery, "Division by invariant integers using
/// multiplication", PLDI 1994): with l = ⌈log₂ sets⌉ and m = ⌈2^(62+l) / sets⌉, ⌊n·m / 2^(62+l)⌋ is
/// ⌊n / sets⌋ for every n < 2^62.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetIndex {
    sets: u64,
    /// 0 when `sets` is a power of two.
    reciprocal: u64,
    /// 62 + l, less the 64 bits that are dropped anyway: at least 0, since numbers that are no
    /// powers of two are at least 3.
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

    /// Returns how many there are.
    pub fn count(&self) -> u64 {
        self.sets
    }

    /// The same if they are a power of two.
    pub fn power_of_two(&self) -> Option<PowerOfTwo> {
        (self.reciprocal == 0).then_some(PowerOfTwo { mask: self.sets - 1, bits: self.sets.trailing_zeros() })
    }

    /// Returns the bits of a line number that are its set's number, if there are such.
    pub fn mask(&self) -> Option<u64> {
        self.power_of_two().map(|sets| sets.mask)
    }

    /// The set of a line number below 2^62; always less than the number of sets.
    #[inline(always)]
    pub fn of(&self, line: u64) -> usize {
        if self.reciprocal == 0 {
            return (line & (self.sets - 1)) as usize;
        }
        self.divide(line).0
    }

    /// For a number of sets that is no power of two.
    #[inline(always)]
    fn divide(&self, line: u64) -> (usize, u64) {
        let high = ((u128::from(line) * u128::from(self.reciprocal)) >> u64::BITS) as u64;
        let quotient = high >> self.shift;
        ((line - quotient * self.sets) as usize, quotient)
    }
}

/// The number of sets, and how lines of a set are distinguished.
pub(crate) trait Sets: Copy {
    /// The set of a line number below 2^62, and the number divided by that of the sets.
    fn split(self, line: u64) -> (usize, u64);

    /// The line number again.
    fn join(self, set: usize, quotient: u64) -> u64;
}

impl Sets for SetIndex {
    #[inline(always)]
    fn split(self, line: u64) -> (usize, u64) {
        match self.power_of_two() {
            Some(sets) => sets.split(line),
            None => self.divide(line),
        }
    }

    #[inline(always)]
    fn join(self, set: usize, quotient: u64) -> u64 {
        quotient * self.sets + set as u64
    }
}

/// A number of sets that is a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerOfTwo {
    mask: u64,
    bits: u32,
}

impl Sets for PowerOfTwo {
    #[inline(always)]
    fn split(self, line: u64) -> (usize, u64) {
        ((line & self.mask) as usize, line >> self.bits)
    }

    #[inline(always)]
    fn join(self, set: usize, quotient: u64) -> u64 {
        quotient << self.bits | set as u64
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
                let (set, quotient) = index.split(line);
                prop_assert_eq!((set as u64, quotient), (line % sets, line / sets));
                prop_assert_eq!(index.join(set, quotient), line);
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
