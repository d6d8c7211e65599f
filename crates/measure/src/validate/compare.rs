//! Agreement of a model's shares with a timer's. Numbers only.

use serde::{Deserialize, Serialize};

use crate::stats::spearman;

/// Lines with a smaller share in both columns are not ranked: their order is noise.
pub const LEAST_SHARE: f64 = 0.005;
/// A line is good enough to begin with if it takes this part of the slowest line's time.
pub const GOOD: f64 = 0.8;

/// Agreement of a column of shares with the timer's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Spearman's rank correlation over the lines that have [`LEAST_SHARE`] in either column; `None` where there are fewer
    /// than three, or one column does not vary.
    pub spearman: Option<f64>,
    /// Rank of the truly slowest line, 1 for the first. Of lines with equal shares, it is the last.
    pub slowest_line_rank: usize,
    /// True if the first line takes at least [`GOOD`] of the slowest line's time.
    pub first_good: bool,
    /// The share that lies on wrong lines: half the sum of absolute differences.
    pub misplaced_share: f64,
}

/// Compares a column with the timer's. Each sums to 1, or to 0 if it is empty.
///
/// # Panics
/// If the columns differ in length or are empty.
pub fn agreement(timer: &[f64], model: &[f64]) -> Agreement {
    assert_eq!(timer.len(), model.len(), "columns of one table");
    let ranked: Vec<usize> =
        (0..timer.len()).filter(|at| timer[*at].max(model[*at]) >= LEAST_SHARE).collect();
    let pick = |column: &[f64]| ranked.iter().map(|at| column[*at]).collect::<Vec<f64>>();
    let rho = if ranked.len() < 3 { f64::NAN } else { spearman(&pick(timer), &pick(model)) };
    let slowest = largest(timer);
    let rank = model.iter().filter(|share| **share >= model[slowest]).count();
    // Of several lines that the model puts first, none stands out: the worst counts.
    let first = model[largest(model)];
    let led_to =
        (0..model.len()).filter(|at| model[*at] == first).map(|at| timer[at]).fold(f64::INFINITY, f64::min);
    let apart = timer.iter().zip(model).map(|(timer, model)| (timer - model).abs()).sum::<f64>();
    let is_silent = first <= 0.0;
    Agreement {
        spearman: rho.is_finite().then_some(rho),
        slowest_line_rank: rank,
        first_good: !is_silent && led_to >= GOOD * timer[slowest],
        misplaced_share: if is_silent { 1.0 } else { apart / 2.0 },
    }
}

/// The index of the largest value; the first of equal ones.
fn largest(values: &[f64]) -> usize {
    (0..values.len()).rev().max_by(|a, b| values[*a].total_cmp(&values[*b])).expect("a column has rows")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Worked by hand: the two lead lines change places, and 0.3 moves from one to the other.
    #[test]
    fn a_profile_with_its_leaders_swapped() {
        let found = agreement(&[0.6, 0.3, 0.1], &[0.3, 0.6, 0.1]);
        assert_eq!(found.slowest_line_rank, 2);
        assert!(!found.first_good);
        assert!((found.misplaced_share - 0.3).abs() < 1e-12);
        assert!((found.spearman.expect("three lines") - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_first_line_nearly_as_slow_as_the_slowest_is_good() {
        assert!(agreement(&[0.5, 0.4, 0.1], &[0.4, 0.5, 0.1]).first_good);
        assert!(!agreement(&[0.6, 0.3, 0.1], &[0.4, 0.5, 0.1]).first_good);
    }

    #[test]
    fn what_is_small_in_both_is_not_ranked() {
        let timer = [0.5, 0.3, 0.198, 0.001, 0.001];
        let model = [0.5, 0.3, 0.197, 0.003, 0.0];
        assert_eq!(agreement(&timer, &model).spearman, Some(1.0));
        assert_eq!(agreement(&[0.999, 0.001], &[1.0, 0.0]).spearman, None, "too few lines");
    }

    /// A model without costs has put nothing first and nothing right.
    #[test]
    fn silence_is_no_agreement() {
        let found = agreement(&[0.7, 0.2, 0.1], &[0.0; 3]);
        assert_eq!((found.slowest_line_rank, found.first_good, found.misplaced_share), (3, false, 1.0));
    }

    fn shares(counts: &[u32]) -> Vec<f64> {
        let total: u32 = counts.iter().sum();
        counts.iter().map(|count| f64::from(*count) / f64::from(total)).collect()
    }

    proptest! {
        #[test]
        fn laws(pairs in prop::collection::vec((0u32..1000, 0u32..1000), 1..30), turn in 0usize..30) {
            let (timer, model): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
            prop_assume!(timer.iter().sum::<u32>() > 0 && model.iter().sum::<u32>() > 0);
            let (timer, model) = (shares(&timer), shares(&model));
            let found = agreement(&timer, &model);
            prop_assert!((0.0..=1.0 + 1e-12).contains(&found.misplaced_share));
            prop_assert!((1..=timer.len()).contains(&found.slowest_line_rank));
            // It does not matter in which order the lines come, unless several are the slowest.
            let turned = |column: &[f64]| {
                let mut column = column.to_vec();
                column.rotate_left(turn % timer.len());
                column
            };
            let again = agreement(&turned(&timer), &turned(&model));
            prop_assert!((again.misplaced_share - found.misplaced_share).abs() < 1e-9);
            prop_assert_eq!(again.first_good, found.first_good);
            let same = agreement(&timer, &timer);
            prop_assert!(same.first_good || timer.iter().filter(|share| **share > 0.0).count() > 1);
            prop_assert!(same.misplaced_share == 0.0);
            prop_assert!(same.spearman.is_none_or(|rho| rho > 1.0 - 1e-9));
        }
    }
}
