//! Counts over the time of a run, for formats with a time line: intervals of the analysis
//! `timeline`.

use memlode_analyses::{Table, Value};

/// Intervals that a run is divided into, about.
const INTERVALS: u64 = 500;

/// A quantity interval by interval.
#[derive(Clone, Debug, PartialEq)]
pub struct OverTime {
    /// Its name, as of a metric: `accesses`, `misses_L1d`, `stall_cycles`.
    pub name: String,
    /// The end of each interval, in nanoseconds from the beginning of the run, and the quantity in it.
    pub intervals: Vec<(u64, u64)>,
}

/// Returns the length of intervals for a run with this number of accesses, as an argument of
/// `timeline`.
pub fn every(accesses: u64) -> u64 {
    accesses.div_ceil(INTERVALS).max(1)
}

/// Reads quantities from the table of `timeline`. If the trace has no clock, an access takes a
/// nanosecond.
pub fn over_time(timeline: &Table) -> Vec<OverTime> {
    let column = |name: &str| timeline.columns.iter().position(|column| column == name);
    let (Some(first), Some(accesses)) = (column("access"), column("accesses")) else { return Vec::new() };
    let begins = |row: &Vec<Value>| match column("seconds").map(|at| &row[at]) {
        Some(Value::Seconds(seconds)) => (seconds * 1e9).round() as u64,
        _ => count(&row[first]),
    };
    let ends =
        ends(&timeline.rows.iter().map(|row| (begins(row), count(&row[accesses]))).collect::<Vec<_>>());
    let quantities = timeline.columns.iter().enumerate().filter_map(|(at, column)| {
        let name = match column.strip_suffix("_misses") {
            Some(level) => format!("misses_{level}"),
            None if at == accesses => column.clone(),
            // The analysis has no cost model: its cycles are those of stalls.
            None if column == "wait_cycles" => "stall_cycles".into(),
            None => return None,
        };
        let values = timeline.rows.iter().map(|row| count(&row[at]));
        Some(OverTime { name, intervals: ends.iter().copied().zip(values).collect() })
    });
    quantities.collect()
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Count(count) => *count,
        _ => 0,
    }
}

/// The end of each interval by its begin and its accesses. Stamps are some accesses apart, so that
/// several intervals may begin at one: between two stamps, and behind the last, time passes evenly.
fn ends(intervals: &[(u64, u64)]) -> Vec<u64> {
    let Some(&(start, _)) = intervals.first() else { return Vec::new() };
    // Accesses before a stamp, and the stamp.
    let (mut stamps, mut accesses) = (vec![(0, start)], 0u64);
    for &(begin, more) in intervals {
        if stamps.last().is_none_or(|(_, last)| begin > *last) {
            stamps.push((accesses, begin));
        }
        accesses += more;
    }
    let (before, last) = stamps[stamps.len() - 1];
    let each = if before > 0 { (last - start) as f64 / before as f64 } else { 1.0 };
    stamps.push((accesses, last.saturating_add((each * (accesses - before) as f64) as u64)));
    let mut done = 0;
    let end = |(_, more): &(u64, u64)| {
        done += more;
        let next = stamps.partition_point(|(before, _)| *before < done).clamp(1, stamps.len() - 1);
        let ((a, from), (b, to)) = (stamps[next - 1], stamps[next]);
        from + ((to - from) as f64 * (done - a) as f64 / (b - a).max(1) as f64) as u64
    };
    intervals.iter().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ends_where_the_next_begins() {
        assert_eq!(ends(&[(0, 100), (40, 100), (90, 50)]), [40, 90, 112]);
        assert!(ends(&[]).is_empty());
        // Several begin at one stamp, or all do, or one is read a little late.
        assert_eq!(ends(&[(10, 50), (10, 50), (30, 100)]), [20, 30, 50]);
        assert_eq!(ends(&[(7, 3), (7, 2)]), [10, 12]);
        assert_eq!(ends(&[(50, 1), (40, 1)]), [51, 52]);
    }

    #[test]
    fn a_run_has_about_500_intervals() {
        assert_eq!([0, 1, 500, 501, 1_000_000].map(every), [1, 1, 1, 2, 2000]);
    }
}
