//! A difference with its interval, its test and its power.

use rand::RngExt;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Random, pseudomedian, quantile, signed_rank};

/// A difference is claimed if one as large comes of nothing more rarely than this.
pub const CLAIM: f64 = 0.001;
/// The share of repetitions that would have claimed an effect of the size called detectable.
pub const POWER: f64 = 0.95;
/// Resamples of the bootstrap: the ends of a 95% interval vary by a few percent of its length from seed to seed.
const RESAMPLES: usize = 1000;
/// The most values of resamples: the pairs of the pseudomedian of more would cost more than they
/// add.
const MOST: usize = 200;

/// The ratio of two times, as differences of logarithms give it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Differences that this rests on.
    pub units: usize,
    /// The ratio of the times: e to the pseudomedian of the differences.
    pub ratio: f64,
    /// The lower end of its 95% bootstrap interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability of a rank sum as extreme if there were no difference, times the number of comparisons.
    pub p: f64,
    /// The ratio, above 1, that would have been claimed in 19 of 20 repetitions.
    pub detectable: f64,
}

impl Effect {
    /// The effect in differences `ln(second) − ln(first)`, one of `comparisons` that are made at once.
    pub fn of(differences: &[f64], comparisons: usize, random: &mut Random) -> Effect {
        let centre = pseudomedian(differences);
        let comparisons = comparisons.max(1) as f64;
        let p = (signed_rank(differences) * comparisons).min(1.0);
        let n = differences.len().min(MOST);
        let mut resampled = vec![0.0; n];
        let centres: Vec<f64> = (0..if differences.is_empty() { 0 } else { RESAMPLES })
            .map(|_| {
                resampled.fill_with(|| differences[random.random_range(0..differences.len())]);
                pseudomedian(&resampled)
            })
            .collect();
        // Fewer values in a resample spread it more: take that back.
        let shrink = (n as f64 / differences.len().max(1) as f64).sqrt();
        let end = |q| (centre + (quantile(&centres, q) - centre) * shrink).exp();
        let normal = Normal::standard();
        let sigmas = normal.inverse_cdf(1.0 - CLAIM / comparisons / 2.0) + normal.inverse_cdf(POWER);
        let deviation = shrink * deviation(&centres);
        Effect {
            units: differences.len(),
            ratio: centre.exp(),
            low: end(0.025),
            high: end(0.975),
            p,
            detectable: match 2f64.powi(1 - differences.len().min(99) as i32) * comparisons < CLAIM {
                true => (sigmas * deviation).exp(),
                // Not even differences of one sign would be claimed.
                false => f64::INFINITY,
            },
        }
    }

    /// Returns whether the data allow to speak of a difference.
    pub fn is_claimed(&self) -> bool {
        self.p < CLAIM && (self.low > 1.0 || self.high < 1.0)
    }
}

/// The standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}
