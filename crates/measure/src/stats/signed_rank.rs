//! Wilcoxon's signed-rank test, and the location that belongs to it.

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to this many values, the distribution of the rank sum is computed; beyond, a normal one
/// agrees to three digits.
const EXACT: usize = 60;

/// The two-sided probability that values symmetric about zero have a rank sum as far from its mean as these. Zeros are
/// left out, ties share their ranks; 1 if nothing is left.
pub fn signed_rank(values: &[f64]) -> f64 {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    values.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let n = values.len();
    if n == 0 {
        return 1.0;
    }
    // Twice the rank, so that a tie's is a whole number.
    let mut ranks = vec![0usize; n];
    let mut from = 0;
    while from < n {
        let mut to = from;
        while to < n && values[to].abs() == values[from].abs() {
            to += 1;
        }
        ranks[from..to].fill(from + 1 + to);
        from = to;
    }
    let positive: usize = ranks.iter().zip(&values).filter(|(_, value)| **value > 0.0).map(|(r, _)| r).sum();
    let total: usize = ranks.iter().sum();
    let extreme = positive.min(total - positive);
    if n <= EXACT {
        return exact(&ranks, total, extreme);
    }
    let variance: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
    // Half a step towards the mean: ranks are whole numbers, the normal distribution is not.
    let distance = (total as f64 / 2.0 - extreme as f64 - 1.0).max(0.0);
    let normal = Normal::standard();
    (2.0 * normal.sf(distance / variance.sqrt())).min(1.0)
}

/// Returns the share of all combinations of signs of these ranks whose sum is as extreme on either
/// side.
fn exact(ranks: &[usize], total: usize, extreme: usize) -> f64 {
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached += rank;
        for sum in (*rank..=reached).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let tail: f64 = ways[..=extreme].iter().sum();
    (2.0 * tail / 2f64.powi(ranks.len() as i32)).min(1.0)
}

/// The median of the means of all pairs (Hodges and Lehmann's estimate): nearly as precise as the mean where noise is
/// normal, and unmoved by bursts. NaN of no values.
pub fn pseudomedian(values: &[f64]) -> f64 {
    let mut means: Vec<f64> = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (at, a) in values.iter().enumerate() {
        means.extend(values[at..].iter().map(|b| (a + b) / 2.0));
    }
    if means.is_empty() {
        return f64::NAN;
    }
    let middle = means.len() / 2;
    let (below, &mut upper, _) = means.select_nth_unstable_by(middle, f64::total_cmp);
    if values.len() * (values.len() + 1) / 2 % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    (lower + upper) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every assignment of signs, one by one.
    fn by_enumeration(values: &[f64]) -> f64 {
        let rank = |value: f64| {
            let below = values.iter().filter(|other| other.abs() < value.abs()).count() as f64;
            let same = values.iter().filter(|other| other.abs() == value.abs()).count() as f64;
            below + (same + 1.0) / 2.0
        };
        let ranks: Vec<f64> = values.iter().map(|value| rank(*value)).collect();
        let centre = ranks.iter().sum::<f64>() / 2.0;
        let sum = |positive: &dyn Fn(usize) -> bool| -> f64 {
            (0..ranks.len()).filter(|at| positive(*at)).map(|at| ranks[at]).sum()
        };
        let observed = (sum(&|at| values[at] > 0.0) - centre).abs();
        let all = 1u32 << ranks.len();
        let extreme =
            (0..all).filter(|signs| (sum(&|at| signs >> at & 1 == 1) - centre).abs() >= observed - 1e-9);
        extreme.count() as f64 / f64::from(all)
    }

    proptest! {
        #[test]
        fn equals_enumeration(values in prop::collection::vec(-6i32..6, 1..12)) {
            let values: Vec<f64> = values.iter().filter(|v| **v != 0).map(|v| f64::from(*v)).collect();
            prop_assume!(!values.is_empty());
            prop_assert!((signed_rank(&values) - by_enumeration(&values)).abs() < 1e-9);
        }

        #[test]
        fn pseudomedian_equals_the_sorted_middle(values in prop::collection::vec(-1e3f64..1e3, 1..40)) {
            let pairs = values.iter().enumerate().flat_map(|(at, a)| values[at..].iter().map(move |b| (a + b) / 2.0));
            let expected = crate::stats::median(&pairs.collect::<Vec<_>>());
            prop_assert!((pseudomedian(&values) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn the_normal_tail_goes_on_where_the_exact_one_ends() {
        let mut values: Vec<f64> = (1..=60).map(|at| f64::from(if at % 3 == 0 { -at } else { at })).collect();
        let exact = signed_rank(&values);
        // Small enough to change next to nothing, and one too many for the exact distribution.
        values.push(0.5);
        let normal = signed_rank(&values);
        assert!((exact / normal).ln().abs() < 0.3, "{exact} {normal}");
        assert_eq!(signed_rank(&[0.0, 0.0]), 1.0);
        assert!((signed_rank(&[1.0; 11]) - 2.0 / 2048.0).abs() < 1e-12);
    }
}
