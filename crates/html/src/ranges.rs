//! The parts of objects that are accessed, and when, as a page draws them.

use std::collections::HashMap;

use memlode_report::build::Limit;
use memlode_report::{NamedHome, NamedTable, NamedValue, PageRows, Report};
use serde::Serialize;

use crate::cut::Kept;

/// Objects that are drawn: the first of the report.
const MOST_OBJECTS: usize = 60;

/// The rows that a page has of these tables.
pub const LIMIT: Limit = Limit::Objects { most: MOST_OBJECTS };

/// Threads of one that are drawn.
const MOST_THREADS: usize = 200;

/// Accesses to an object by place and time.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Ranges {
    /// Its row among the report's objects.
    object: usize,
    /// Bytes of the object, and of a bin.
    bytes: u64,
    bin_bytes: u64,
    threads: Vec<Range>,
    /// The first access of each stretch in which it is accessed, and the accesses to its bins there.
    first_access: Vec<u64>,
    bins: Vec<Vec<u64>>,
    /// Threads that are not drawn.
    left_out: usize,
}

/// The part of an object that a thread accesses.
#[derive(Debug, PartialEq, Serialize)]
struct Range {
    thread: u64,
    accesses: u64,
    /// Between these offsets lie all accesses, and the middle nine tenths.
    from: u64,
    p5: u64,
    p95: u64,
    to: u64,
}

fn number(value: &NamedValue) -> Option<u64> {
    match value {
        NamedValue::Count(number) | NamedValue::Bytes(number) => Some(*number),
        _ => None,
    }
}

/// The home in the first column of a row, and the values that follow.
fn subject(row: &[NamedValue]) -> Option<(&NamedHome, &[NamedValue])> {
    match row {
        [NamedValue::Home(home), rest @ ..] => Some((home, rest)),
        _ => None,
    }
}

/// Finds the parts of the first objects of a report, all of whose rows are still there, by row.
pub fn ranges(report: &Report, found: &PageRows) -> Vec<Ranges> {
    let homes = report.objects.iter().take(MOST_OBJECTS).map(|row| &row.subject.home).zip(0..);
    let rows: Vec<(&NamedHome, usize)> = homes.collect();
    let mut made: HashMap<usize, Ranges> = HashMap::new();
    let mut each = |id: &str, add: &dyn Fn(&mut Ranges, &[NamedValue]) -> Option<()>| {
        for row in found.table(id).map_or(&[][..], |table: &NamedTable| &table.rows) {
            let Some((home, values)) = subject(row) else { continue };
            if let Some((_, at)) = rows.iter().find(|(known, _)| *known == home) {
                add(made.entry(*at).or_insert_with(|| Ranges { object: *at, ..Ranges::default() }), values);
            }
        }
    };
    each("ranges", &add_thread);
    each("ranges_over_time", &add_stretch);
    let mut made: Vec<Ranges> = made.into_values().filter(|of| !of.threads.is_empty()).collect();
    made.sort_by_key(|of| of.object);
    made.iter_mut().for_each(Ranges::in_order);
    made
}

/// Adds a row of the table of whole runs.
fn add_thread(of: &mut Ranges, values: &[NamedValue]) -> Option<()> {
    let numbers = values.iter().take(8).map(number).collect::<Option<Vec<u64>>>()?;
    let [bytes, thread, accesses, from, p5, p95, to, bin_bytes] = numbers[..] else { return None };
    (of.bytes, of.bin_bytes) = (bytes, bin_bytes);
    if of.threads.len() < MOST_THREADS {
        of.threads.push(Range { thread, accesses, from, p5, p95, to });
    } else {
        of.left_out += 1;
    }
    Some(())
}

/// Adds a row of the table of stretches: all threads together.
fn add_stretch(of: &mut Ranges, values: &[NamedValue]) -> Option<()> {
    let first = number(values.get(1)?)?;
    let Some(NamedValue::Bins(bins)) = values.last() else { return None };
    let at = of.first_access.iter().position(|known| *known == first).unwrap_or_else(|| {
        of.first_access.push(first);
        of.bins.push(vec![0; bins.len()]);
        of.bins.len() - 1
    });
    let sums = &mut of.bins[at];
    sums.resize(sums.len().max(bins.len()), 0);
    sums.iter_mut().zip(bins).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    Some(())
}

impl Ranges {
    /// Puts the stretches in the order of time.
    fn in_order(&mut self) {
        let mut stretches: Vec<_> =
            std::mem::take(&mut self.first_access).into_iter().zip(std::mem::take(&mut self.bins)).collect();
        stretches.sort_unstable_by_key(|(first, _)| *first);
        (self.first_access, self.bins) = stretches.into_iter().unzip();
    }

    /// Refers to the row that is left of the report, if it is.
    pub fn refer_to(self, kept: &Kept) -> Option<Ranges> {
        Some(Ranges { object: kept.objects[self.object]?, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_apart_and_their_stretches_together() {
        let mut of = Ranges::default();
        let thread = |thread: u64| {
            let numbers = [128, thread, 30, 0, 8, 100, 128].map(NamedValue::Bytes);
            [&numbers[..], &[NamedValue::Bytes(64), NamedValue::Bins(vec![10, 20])]].concat()
        };
        for number in 0..2 {
            assert_eq!(add_thread(&mut of, &thread(number)), Some(()));
        }
        for (thread, first, bins) in [(0, 8, [1, 2]), (0, 0, [3, 0]), (1, 8, [0, 5])] {
            let row = [NamedValue::Count(thread), NamedValue::Count(first), NamedValue::Bins(bins.into())];
            assert_eq!(add_stretch(&mut of, &row), Some(()));
        }
        of.in_order();
        assert_eq!((of.bytes, of.bin_bytes, of.threads.len()), (128, 64, 2));
        assert_eq!((of.first_access, of.bins), (vec![0, 8], vec![vec![3, 0], vec![1, 7]]));
        assert_eq!(add_thread(&mut Ranges::default(), &[NamedValue::Nothing]), None);
    }
}
