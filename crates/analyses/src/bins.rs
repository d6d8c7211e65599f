//! Counts in at most 64 bins of one width, which doubles as larger numbers come. So the state of an
//! analysis stays small, whatever it counts, and a percentile is known to one bin.

use crate::{BadNumber, Value};

/// The most bins: a power of two.
pub(crate) const MOST: u64 = 64;

/// The width of bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scale {
    /// The width is 2 to the power of this.
    pub shift: u32,
}

impl Scale {
    /// The least width with which a number has a bin.
    pub fn of(number: u64) -> Scale {
        Scale { shift: (u64::BITS - number.leading_zeros()).saturating_sub(MOST.ilog2()) }
    }

    /// The bin of a number that has one.
    pub fn bin(self, number: u64) -> u8 {
        (number >> self.shift) as u8
    }

    /// The bin of a wider scale that a bin is in.
    pub fn rebin(self, bin: u8, wider: Scale) -> u8 {
        bin.checked_shr(wider.shift - self.shift).unwrap_or(0)
    }

    /// The least number of a bin.
    pub fn first(self, bin: u8) -> u64 {
        u64::from(bin) << self.shift
    }

    /// The numbers of a bin.
    pub fn width(self) -> u64 {
        1 << self.shift
    }
}

/// A count for each bin of a scale, up to the last that has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bins(Vec<u64>);

impl Bins {
    /// Reads counts that a stranger wrote.
    ///
    /// # Errors
    /// If there are too many.
    pub fn read(counts: Vec<u64>) -> Result<Bins, BadNumber> {
        match counts.len() as u64 <= MOST {
            true => Ok(Bins(counts)),
            false => Err(BadNumber { what: "bin", number: counts.len() as u64 }),
        }
    }

    /// The counts, for [`Bins::read`].
    pub fn counts(self) -> Vec<u64> {
        self.0
    }

    /// Adds to a bin.
    pub fn add(&mut self, bin: u8, count: u64) {
        let bin = usize::from(bin);
        if self.0.len() <= bin {
            self.0.resize(bin + 1, 0);
        }
        self.0[bin] = self.0[bin].saturating_add(count);
    }

    /// Adds the counts of bins of the same width.
    pub fn add_all(&mut self, more: &Bins) {
        (0..).zip(&more.0).for_each(|(bin, count)| self.add(bin, *count));
    }

    /// Widens the bins.
    pub fn widen(&mut self, from: Scale, to: Scale) {
        let before = Bins(std::mem::take(&mut self.0));
        (0..).zip(&before.0).for_each(|(bin, count)| self.add(from.rebin(bin, to), *count));
    }

    /// The sum.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, more| sum.saturating_add(*more))
    }

    /// The bin up to which this part of what is counted lies.
    fn bin_at(&self, share: f64) -> u8 {
        let wanted = (self.total() as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0u64;
        let found = self.0.iter().position(|count| {
            sum = sum.saturating_add(*count);
            sum >= wanted
        });
        found.unwrap_or(0) as u8
    }

    /// The bounds of all that is counted and of its middle nine tenths, of numbers below `end`: the
    /// least, those at 5 and 95 per cent, and the greatest; the last two are the ends of their bins.
    pub fn bounds(&self, scale: Scale, end: u64) -> [u64; 4] {
        let last = self.0.iter().rposition(|count| *count > 0).unwrap_or(0) as u8;
        let behind = |bin: u8| scale.first(bin).saturating_add(scale.width()).min(end);
        [
            scale.first(self.bin_at(0.0)),
            scale.first(self.bin_at(0.05)),
            behind(self.bin_at(0.95)),
            behind(last),
        ]
    }

    /// The count of each bin of numbers below `end`.
    pub fn value(&self, scale: Scale, end: u64) -> Value {
        let bins = usize::from(scale.bin(end.saturating_sub(1))).min(MOST as usize - 1) + 1;
        Value::Bins((0..bins).map(|bin| self.0.get(bin).copied().unwrap_or(0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers added as they come, with bins that widen, lie where numbers lie whose greatest was known.
        #[test]
        fn bins_that_widen_hold_what_wide_bins_hold(numbers in prop::collection::vec(0u64..5000, 1..200)) {
            let (mut scale, mut bins) = (Scale::default(), Bins::default());
            for &number in &numbers {
                let wider = scale.max(Scale::of(number));
                bins.widen(scale, wider);
                scale = wider;
                bins.add(scale.bin(number), 1);
            }
            let mut sorted = numbers;
            sorted.sort_unstable();
            let (count, last) = (sorted.len(), sorted[sorted.len() - 1]);
            prop_assert!(last >> scale.shift < MOST && (scale.shift == 0 || last >> scale.shift >= MOST / 2));
            prop_assert_eq!(bins.total(), count as u64);
            let within = |share: f64| sorted[((count as f64 * share).ceil() as usize).max(1) - 1];
            let [from, p5, p95, to] = bins.bounds(scale, u64::MAX);
            let down = |number: u64| number / scale.width() * scale.width();
            prop_assert_eq!([from, p5], [down(sorted[0]), down(within(0.05))]);
            prop_assert_eq!([p95, to], [down(within(0.95)) + scale.width(), down(last) + scale.width()]);
        }
    }
}
