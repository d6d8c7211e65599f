//! Correlation: the degree to which two columns move together.

/// Pearson's correlation of two columns of equal length: 1 if one is a rising straight line of the other. NaN if one
/// does not vary or there are fewer than two rows.
///
/// # Panics
/// If the columns differ in length.
pub fn pearson(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "columns of one table");
    let mean = |column: &[f64]| column.iter().sum::<f64>() / column.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut both, mut only_a, mut only_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        (both, only_a, only_b) = (both + a * b, only_a + a * a, only_b + b * b);
    }
    if a.len() < 2 || only_a == 0.0 || only_b == 0.0 {
        return f64::NAN;
    }
    (both / (only_a * only_b).sqrt()).clamp(-1.0, 1.0)
}

/// Spearman's rank correlation: Pearson's of the ranks, ties sharing theirs. 1 if one column rises with the other in any
/// way, and deaf to how far single rows lie from the rest.
///
/// # Panics
/// If the columns differ in length.
pub fn spearman(a: &[f64], b: &[f64]) -> f64 {
    pearson(&ranks(a), &ranks(b))
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        for at in tied {
            ranks[*at] = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        }
        before += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_curves_and_constants() {
        let rising: Vec<f64> = (1..=20).map(f64::from).collect();
        let curve: Vec<f64> = rising.iter().map(|x| x.exp()).collect();
        assert!((pearson(&rising, &rising) - 1.0).abs() < 1e-12);
        assert!((spearman(&rising, &curve) - 1.0).abs() < 1e-12);
        assert!(pearson(&rising, &curve) < 0.6);
        let falling: Vec<f64> = rising.iter().map(|x| -3.0 * x + 5.0).collect();
        assert!((pearson(&rising, &falling) + 1.0).abs() < 1e-12);
        assert!(pearson(&rising, &[4.0; 20]).is_nan());
        assert!(spearman(&[1.0], &[2.0]).is_nan());
    }

    /// Worked by hand: ranks 1, 2.5, 2.5, 4 and 2, 1, 3, 4.
    #[test]
    fn ties_share_their_ranks() {
        let rho = spearman(&[1.0, 5.0, 5.0, 9.0], &[20.0, 10.0, 30.0, 40.0]);
        assert!((rho - 3.0 / (4.5f64 * 5.0).sqrt()).abs() < 1e-12, "{rho}");
    }
}
