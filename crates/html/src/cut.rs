//! Rows that a page leaves out: those that make up the last half percent of waiting and of accesses.

use memlode_report::{Numbers, Report, Row};
use serde::Serialize;

/// The part of waiting, and of accesses, that the rows which are kept make up at least.
const KEPT: f64 = 0.995;

/// A table of no more rows stays whole.
const SMALL: usize = 200;

/// The most rows of a table that are kept.
const MOST: usize = 3_000;

/// Rows of each kind of transfers that are kept at most.
const MOST_TRANSFERS: usize = 300;

/// Rows of a table that are not in the page.
#[derive(Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// The table, as the report's JSON names it.
    table: &'static str,
    /// Rows.
    rows: usize,
    /// Their accesses.
    accesses: u64,
    /// Cycles that they wait.
    wait_cycles: f64,
}

/// The new places of the rows of some tables; none of those that are not in the page.
pub struct Kept {
    /// Places of lines.
    pub lines: Vec<Option<usize>>,
    /// Places of objects.
    pub objects: Vec<Option<usize>>,
    /// Places of threads.
    pub threads: Vec<Option<usize>>,
}

/// Leaves rows out of the tables of a report, and returns their number, and where the others are now.
pub fn cut(report: &mut Report) -> (Vec<LeftOut>, Kept) {
    if let Some(sharing) = &mut report.sharing {
        sharing.false_sharing.truncate(MOST_TRANSFERS);
        sharing.true_sharing.truncate(MOST_TRANSFERS);
        sharing.handed_over.truncate(MOST_TRANSFERS);
        sharing.cache_lines.truncate(MOST_TRANSFERS);
        sharing.locks.truncate(MOST_TRANSFERS);
    }
    let (lines, of_lines) = rows("lines", &mut report.lines);
    let (objects, of_objects) = rows("objects", &mut report.objects);
    let (threads, of_threads) = rows("threads", &mut report.threads);
    let cut = [
        of_lines,
        rows("data", &mut report.data).1,
        rows("fields", &mut report.fields).1,
        rows("types", &mut report.types).1,
        of_objects,
        rows("functions", &mut report.functions).1,
        of_threads,
    ];
    (cut.into_iter().flatten().collect(), Kept { lines, objects, threads })
}

/// Leaves rows out of a table. Returns the new place of each, and what was left out.
fn rows<S>(table: &'static str, rows: &mut Vec<Row<S>>) -> (Vec<Option<usize>>, Option<LeftOut>) {
    if rows.len() <= SMALL {
        return ((0..rows.len()).map(Some).collect(), None);
    }
    let by_wait = enough(rows, |numbers| numbers.wait.cycles);
    let by_accesses = enough(rows, |numbers| numbers.accesses as f64);
    let mut left = LeftOut { table, rows: 0, accesses: 0, wait_cycles: 0.0 };
    let mut places = Vec::new();
    let mut kept = 0;
    rows.retain(|row| {
        let at = places.len();
        let keep = (by_wait[at] || by_accesses[at]) && kept < MOST;
        places.push(keep.then_some(kept));
        if keep {
            kept += 1;
        } else {
            left.rows += 1;
            left.accesses += row.numbers.accesses;
            left.wait_cycles += row.numbers.wait.cycles;
        }
        keep
    });
    (places, (left.rows > 0).then_some(left))
}

/// Marks the largest rows that make up enough of what `weight` counts.
fn enough<S>(rows: &[Row<S>], weight: impl Fn(&Numbers) -> f64) -> Vec<bool> {
    let weights: Vec<f64> = rows.iter().map(|row| weight(&row.numbers)).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let mut missing = KEPT * weights.iter().sum::<f64>();
    let mut marks = vec![false; rows.len()];
    for at in order {
        if missing <= 0.0 {
            break;
        }
        marks[at] = true;
        missing -= weights[at];
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(accesses: u64, cycles: f64) -> Row<()> {
        let mut numbers = Numbers { accesses, ..Numbers::default() };
        numbers.wait.cycles = cycles;
        Row { subject: (), numbers, detail: None }
    }

    #[test]
    fn what_waits_and_what_is_accessed_is_kept_and_the_rest_is_counted() {
        let mut table = vec![row(10, 100_000.0), row(1, 4.0), row(1, 1.0), row(500_000, 0.0)];
        table.extend((0..SMALL).map(|_| row(2, 0.0)));
        let (places, left) = rows("lines", &mut table);
        assert_eq!(places[..5], [Some(0), None, None, Some(1), None]);
        let kept: Vec<u64> = table.iter().map(|row| row.numbers.accesses).collect();
        assert_eq!(kept, [10, 500_000]);
        let (rows, accesses) = (2 + SMALL, 2 + 2 * SMALL as u64);
        assert_eq!(left, Some(LeftOut { table: "lines", rows, accesses, wait_cycles: 5.0 }));
    }

    #[test]
    fn a_small_table_stays_whole() {
        let mut table = vec![row(10, 10.0), row(10, 10.0)];
        assert_eq!(rows("lines", &mut table), (vec![Some(0), Some(1)], None));
        assert_eq!(table.len(), 2);
    }
}
