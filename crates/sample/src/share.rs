//! Counts of samples that may stand for different numbers of events, and their parts of the whole.

use serde::Serialize;

/// Samples, and the events or nanoseconds that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SampleCount {
    pub samples: u64,
    pub weight: u128,
    /// Sum of the squares of the weights.
    pub squares: f64,
}

impl SampleCount {
    pub fn take(&mut self, weight: u64) {
        self.samples += 1;
        self.weight += u128::from(weight);
        self.squares += (weight as f64).powi(2);
    }

    pub fn add(&mut self, other: SampleCount) {
        self.samples += other.samples;
        self.weight += other.weight;
        self.squares += other.squares;
    }

    /// The number of samples of one weight that tell as much: fewer than there are, if weights differ.
    pub fn effective(&self) -> f64 {
        if self.weight == 0 { 0.0 } else { (self.weight as f64).powi(2) / self.squares }
    }
}

/// Samples of one source of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceCount {
    /// Samples.
    pub samples: u64,
    /// Samples that say how long the access took: stores often do not.
    pub timed: u64,
    /// The events that these stand for.
    pub timed_weight: u128,
    /// Cycles that the accesses took that these stand for.
    pub cycles: u128,
}

impl SourceCount {
    pub fn take(&mut self, latency: Option<u64>, weight: u64) {
        self.samples += 1;
        if let Some(cycles) = latency {
            self.timed += 1;
            self.timed_weight += u128::from(weight);
            self.cycles = self.cycles.saturating_add(u128::from(cycles) * u128::from(weight));
        }
    }

    /// Adds the samples of another count.
    pub fn add(&mut self, other: SourceCount) {
        self.samples += other.samples;
        self.timed += other.timed;
        self.timed_weight += other.timed_weight;
        self.cycles = self.cycles.saturating_add(other.cycles);
    }

    /// Cycles in the mean.
    pub fn mean(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.cycles as f64 / self.timed_weight as f64)
    }
}

/// A number of samples, and the part of all that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleShare {
    /// Samples.
    pub samples: u64,
    /// The part of what all samples stand for, 0 to 1.
    pub share: f64,
    /// Distance from the share within which the part of the time lies in 95 of 100 recordings.
    pub error: f64,
}

impl SampleShare {
    /// A part of all samples.
    pub(crate) fn of(part: SampleCount, all: SampleCount) -> SampleShare {
        if all.weight == 0 {
            return SampleShare::default();
        }
        let share = part.weight as f64 / all.weight as f64;
        SampleShare::estimated(part.samples, share, all.effective())
    }

    /// A part of `n` samples of one weight.
    pub(crate) fn estimated(samples: u64, share: f64, n: f64) -> SampleShare {
        // Half of Wilson's interval: it is right near 0 and 1, too.
        const Z: f64 = 1.96;
        if n <= 0.0 {
            return SampleShare::default();
        }
        let spread = ((share * (1.0 - share)).max(0.0) / n + Z * Z / (4.0 * n * n)).sqrt();
        SampleShare { samples, share, error: Z / (1.0 + Z * Z / n) * spread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(weights: impl IntoIterator<Item = u64>) -> SampleCount {
        let mut count = SampleCount::default();
        weights.into_iter().for_each(|weight| count.take(weight));
        count
    }

    #[test]
    fn errors_shrink_with_the_root_of_samples_and_never_vanish() {
        let same = |samples: usize| of(vec![7; samples]);
        let half = SampleShare::of(same(5_000), same(10_000));
        assert!((half.error - 0.0098).abs() < 0.0001, "{half:?}");
        assert!((SampleShare::of(same(50), same(100)).error / half.error - 10.0).abs() < 0.3);
        let all = SampleShare::of(same(100), same(100));
        assert!(all.share == 1.0 && all.error > 0.015, "{all:?}");
        assert_eq!(SampleShare::of(same(0), same(0)), SampleShare::default());
    }

    /// The estimate is the part of the events, and its spread that of recordings in which each event is met by chance.
    #[test]
    fn shares_are_of_what_samples_stand_for() {
        let part = of([1, 1, 1, 1]);
        let mut all = of([12]);
        all.add(part);
        let share = SampleShare::of(part, all);
        assert_eq!((share.samples, share.share), (4, 0.25));
        // One sample has nearly all of the weight, so there is hardly more than one.
        assert!(share.error > 0.3, "{share:?}");
    }
}
