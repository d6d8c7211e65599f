//! Memory over the run, by the allocations that have most of it.

use std::collections::HashMap;

use memlode_report::build::{Limit, Rest};
use memlode_report::{NamedHome, NamedTable, NamedValue, PageRows, Report};
use serde::Serialize;

use crate::cut::Kept;

/// Allocations that are drawn: those that have most at the peak.
pub const LIMIT: Limit = Limit::Rows { most: 500, rest: Rest::Added };

/// Bytes that are alive as the run goes.
#[derive(Debug, PartialEq, Serialize)]
pub struct Memory {
    /// The most that are alive at once, and the access behind which they are.
    peak_bytes: u64,
    peak_access: u64,
    /// The first access of each stretch, the most bytes in it, and those at its end.
    first_access: Vec<u64>,
    most: Vec<u64>,
    at_ends: Vec<u64>,
    /// Blocks that were made, and that were freed.
    made: u64,
    freed: u64,
    /// Allocations, those with most at the peak first.
    objects: Vec<OfObject>,
    /// Allocations that are left out, and their bytes at the peak.
    left_out: usize,
    left_out_peak_bytes: u64,
}

/// Memory of one allocation.
#[derive(Debug, PartialEq, Serialize)]
struct OfObject {
    /// Its row among the report's objects; none if nothing accesses its blocks, or if the row is left out.
    row: Option<usize>,
    /// The home of its blocks, for its name.
    #[serde(skip)]
    home: NamedHome,
    name: String,
    made: u64,
    freed: u64,
    made_bytes: u64,
    peak_bytes: u64,
    at_ends: Vec<u64>,
}

fn number(value: &NamedValue) -> Option<u64> {
    match value {
        NamedValue::Count(number) | NamedValue::Bytes(number) => Some(*number),
        _ => None,
    }
}

/// Finds the memory of a run. Returns none if it has no blocks.
pub fn memory(found: &PageRows) -> Option<Memory> {
    let rows = |id: &str| found.table(id).map_or(&[][..], |table: &NamedTable| &table.rows);
    let [peak_access, peak_bytes] = numbers(rows("heap_peak").first()?)?;
    let stretches: Vec<[u64; 3]> = rows("heap_over_time").iter().filter_map(|row| numbers(row)).collect();
    let objects: Vec<OfObject> = rows("heap").iter().filter_map(|row| of_object(row)).collect();
    let left_out = found.left_out("heap");
    let others: Vec<OfObject> =
        left_out.iter().flat_map(|left| &left.sums).filter_map(|row| of_object(row)).collect();
    let sum = |of: fn(&OfObject) -> u64| objects.iter().chain(&others).map(of).sum();
    let (made, freed) = (sum(|of| of.made), sum(|of| of.freed));
    Some(Memory {
        peak_bytes,
        peak_access,
        first_access: stretches.iter().map(|[first, ..]| *first).collect(),
        most: stretches.iter().map(|[_, most, _]| *most).collect(),
        at_ends: stretches.iter().map(|[.., end]| *end).collect(),
        made,
        freed,
        objects,
        left_out: left_out.map_or(0, |left| left.rows),
        left_out_peak_bytes: others.iter().map(|of| of.peak_bytes).sum(),
    })
}

/// All values of a row, which are numbers.
fn numbers<const N: usize>(row: &[NamedValue]) -> Option<[u64; N]> {
    row.iter().map(number).collect::<Option<Vec<u64>>>()?.try_into().ok()
}

fn of_object(row: &[NamedValue]) -> Option<OfObject> {
    let [NamedValue::Home(home), values @ .., NamedValue::Bins(at_ends)] = row else { return None };
    let [made, freed, made_bytes, peak_bytes, _end_bytes, _stretch] = numbers(values)?;
    let name = memlode_report::render::page::home_name(home);
    let (home, at_ends) = (home.clone(), at_ends.clone());
    Some(OfObject { row: None, home, name, made, freed, made_bytes, peak_bytes, at_ends })
}

impl Memory {
    /// Finds the rows of the allocations in a report, all of whose rows are still there.
    pub fn find_rows(&mut self, report: &Report) {
        let key = |home: &NamedHome| match home {
            NamedHome::Heap { allocated_at, path, .. } => (allocated_at.line, path.clone()),
            _ => (None, Vec::new()),
        };
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, row) in report.objects.iter().enumerate() {
            places.entry(key(&row.subject.home)).or_default().push(at);
        }
        for of in &mut self.objects {
            let alike = places.get(&key(&of.home)).map_or(&[][..], Vec::as_slice);
            of.row = alike.iter().copied().find(|&at| report.objects[at].subject.home == of.home);
        }
    }

    /// Refers to the rows that are left of the report.
    pub fn refer_to(&mut self, kept: &Kept) {
        self.objects.iter_mut().for_each(|of| of.row = of.row.and_then(|row| kept.objects[row]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_table_is_an_allocation() {
        let numbers = [3, 2, 48, 32, 16, 64].map(NamedValue::Count);
        let row =
            |home| [&[NamedValue::Home(home)][..], &numbers, &[NamedValue::Bins(vec![16, 32])]].concat();
        let of = of_object(&row(NamedHome::Unknown)).expect("a row");
        assert_eq!((of.made, of.freed, of.made_bytes, of.peak_bytes), (3, 2, 48, 32));
        assert_eq!((of.row, of.at_ends), (None, vec![16, 32]));
        assert_eq!(of_object(&numbers), None);
    }
}
