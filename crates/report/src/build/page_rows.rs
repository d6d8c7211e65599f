//! The most important rows of analyses of every access. Names of all rows of a large program take longer
//! than the analyses.

use std::hash::Hash;

use memlode_analyses::{Table, Value};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;
use rustc_hash::FxHashMap;

use super::tables::analysis;
use crate::model::{LeftOutRows, PageRows};

/// The rows of a table that are shown, and the knowledge about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most rows that are shown.
    pub most: usize,
    /// Knowledge about rows that are not shown.
    pub rest: Rest,
}

/// Knowledge about rows that are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Their number.
    Counted,
    /// Their sum, too.
    Added,
    /// Their sums by the innermost line of the call path in the first column, too.
    AddedByLine,
}

/// Formats the results of some analyses of `trace` on `machine`, with the rows that `limit` leaves of a table by its short
/// name. Rows that belong together all stay.
pub fn page_rows(
    trace: &Trace,
    machine: &Machine,
    mut tables: Vec<Table>,
    replayed: &Replayed,
    limit: impl Fn(&str) -> Option<Limit>,
) -> PageRows {
    let rest = tables.iter_mut().filter_map(|table| {
        let may_be_cut = |limit: &Limit| !table.meta.is_whole && limit.most < table.rows.len();
        let limit = limit(table.meta.id).filter(may_be_cut)?;
        let rest = table.rows.split_off(limit.most);
        let count = rest.len();
        let (columns, holds) = (table.columns.clone(), table.holds.clone());
        let sums = Table { meta: table.meta, columns, holds, rows: sums(rest, limit.rest) };
        Some((count, sums))
    });
    let (counts, rest): (Vec<usize>, Vec<Table>) = rest.unzip();
    let shown = tables.len();
    tables.extend(rest);
    let mut analysis = analysis(trace, machine, &tables, replayed);
    let rest = analysis.tables.split_off(shown).into_iter().zip(counts);
    let left_out = rest.map(|(table, rows)| LeftOutRows { table: table.id, rows, sums: table.rows });
    PageRows { left_out: left_out.collect(), analysis }
}

fn sums(rows: Vec<Vec<Value>>, rest: Rest) -> Vec<Vec<Value>> {
    match rest {
        Rest::Counted => Vec::new(),
        Rest::Added => by_key(rows, |_| ()),
        Rest::AddedByLine => {
            let innermost = |row: &[Value]| match row.first() {
                Some(Value::Stack(lines)) => lines.first().copied(),
                _ => None,
            };
            let mut sums = by_key(rows, innermost);
            sums.iter_mut().for_each(|row| {
                if let Some(Value::Stack(lines)) = row.first_mut() {
                    lines.truncate(1);
                }
            });
            sums
        }
    }
}

/// Adds up rows of the same key, in the order in which keys come first. What is no number is that of the first.
fn by_key<K: Hash + Eq>(rows: Vec<Vec<Value>>, key: impl Fn(&[Value]) -> K) -> Vec<Vec<Value>> {
    let mut places: FxHashMap<K, usize> = FxHashMap::default();
    let mut sums: Vec<Vec<Value>> = Vec::new();
    for row in rows {
        let at = *places.entry(key(&row)).or_insert(sums.len());
        match sums.get_mut(at) {
            Some(sum) => sum.iter_mut().zip(&row).for_each(|(sum, more)| add(sum, more)),
            None => sums.push(row),
        }
    }
    sums
}

fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Count(sum), Value::Count(more)) | (Value::Bytes(sum), Value::Bytes(more)) => {
            *sum = sum.saturating_add(*more);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_key_are_added_up() {
        let row = |key: &'static str, count, bytes| {
            vec![Value::Word(key), Value::Count(count), Value::Bytes(bytes), Value::Share(0.5)]
        };
        let first = |row: &[Value]| format!("{:?}", row[0]);
        let rows = vec![row("b", 1, 10), row("a", 2, 20), row("b", 3, u64::MAX)];
        assert_eq!(by_key(rows.clone(), first), [row("b", 4, u64::MAX), row("a", 2, 20)]);
        assert_eq!(sums(rows.clone(), Rest::Added), [row("b", 6, u64::MAX)]);
        assert!(sums(rows, Rest::Counted).is_empty());
    }
}
