//! Accesses by the level that served them, the innermost first and memory last. Sums that would not fit stay at the most that does:
//! states come from strangers.

/// Adds accesses.
pub(crate) fn add(sums: &mut Vec<u64>, served: &[u64]) {
    sums.resize(sums.len().max(served.len()), 0);
    sums.iter_mut().zip(served).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// All of them.
pub(crate) fn total(served: &[u64]) -> u64 {
    served.iter().fold(0, |sum, more| sum.saturating_add(*more))
}

/// Cycles beyond the first level's, as the report has them.
pub(crate) fn stall_cycles(served: &[u64], latencies: &[u32]) -> u64 {
    let first = latencies.first().copied().unwrap_or(0);
    let each = served.iter().zip(latencies);
    let each = each.map(|(n, &cycles)| n.saturating_mul(u64::from(cycles.saturating_sub(first))));
    each.fold(0, u64::saturating_add)
}

/// Misses of each level of cache.
pub(crate) fn misses(served: &[u64]) -> impl Iterator<Item = u64> {
    (1..served.len()).map(|level| total(&served[level..]))
}
