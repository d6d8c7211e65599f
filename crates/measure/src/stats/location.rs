//! The location of values, and how well it is known.

use memlode_counters::stat::Interval;
use rand::RngExt;

use super::{Random, pseudomedian, quantile};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// With fewer values no interval is given: resamples of so few are the same few again.
const LEAST: usize = 5;
/// The most values of resamples: the pairs of more would cost more than they add.
const MOST: usize = 200;

/// Returns the pseudomedian of values with its 95% bootstrap interval.
pub fn location(values: &[f64], random: &mut Random) -> Interval {
    let ends = (values.len() >= LEAST).then(|| {
        let centres: Vec<f64> = (0..RESAMPLES).map(|_| pseudomedian(&resample(values, random))).collect();
        (quantile(&centres, 0.025), quantile(&centres, 0.975))
    });
    Interval { middle: pseudomedian(values), ends }
}

/// Returns by how many per cent the second values lie below the first, with its 95% bootstrap interval; none if the first are
/// zero. Values that are the same in each run, as a simulation's, are known exactly.
pub fn improvement(before: &[f64], after: &[f64], random: &mut Random) -> Option<Interval> {
    let percent = |before: f64, after: f64| 100.0 * (before - after) / before;
    let (a, b) = (pseudomedian(before), pseudomedian(after));
    if a == 0.0 || !a.is_finite() || !b.is_finite() {
        return None;
    }
    let ends = (before.len() >= LEAST && after.len() >= LEAST).then(|| {
        let one = |_| {
            let (a, b) = (resample(before, random), resample(after, random));
            percent(pseudomedian(&a), pseudomedian(&b))
        };
        let all: Vec<f64> = (0..RESAMPLES).map(one).filter(|percent| percent.is_finite()).collect();
        (quantile(&all, 0.025), quantile(&all, 0.975))
    });
    Some(Interval { middle: percent(a, b), ends })
}

fn resample(values: &[f64], random: &mut Random) -> Vec<f64> {
    (0..values.len().min(MOST)).map(|_| values[random.random_range(0..values.len())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random;

    /// Over many samples of a known location, the interval contains it about as often as stated.
    #[test]
    fn intervals_hold_the_truth() {
        let mut random = random(11);
        let mut noise = |centre: f64| -> Vec<f64> {
            let one = |_| centre + (0..12).map(|_| random.random_range(-0.5..0.5)).sum::<f64>();
            (0..15).map(one).collect()
        };
        let samples: Vec<_> = (0..80).map(|_| (noise(20.0), noise(10.0))).collect();
        let mut random = super::super::random(12);
        let holds =
            |found: Interval, truth: f64| found.ends.is_some_and(|(low, high)| (low..=high).contains(&truth));
        let held = samples.iter().filter(|(a, _)| holds(location(a, &mut random), 20.0)).count();
        assert!((68..=80).contains(&held), "{held} of 80");
        let held =
            samples.iter().filter(|(a, b)| improvement(a, b, &mut random).is_some_and(|i| holds(i, 50.0)));
        let held = held.count();
        assert!((68..=80).contains(&held), "{held} of 80");
    }

    #[test]
    fn few_values_have_no_interval_and_zero_no_percentage() {
        let mut random = random(1);
        assert_eq!(location(&[1.0, 3.0], &mut random), Interval { middle: 2.0, ends: None });
        assert_eq!(improvement(&[0.0; 9], &[1.0; 9], &mut random), None);
        let exact = improvement(&[4.0], &[1.0], &mut random);
        assert_eq!(exact, Some(Interval { middle: 75.0, ends: None }));
    }
}
