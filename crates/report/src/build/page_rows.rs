//! The most important rows of analyses of every access. Names of all rows of a large program take longer
//! than the analyses.

use std::hash::Hash;

use memlode_analyses::{Table, Value};
use memlode_attribute::tables::Tables;
use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cells::{ObjectKey, described};
use super::tables::analysis;
use crate::model::{LeftOutRows, PageRows};

/// The rows of a table that are shown, and the knowledge about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The first of them.
    Rows {
        /// The most rows that are shown.
        most: usize,
        /// Knowledge about rows that are not shown.
        rest: Rest,
    },
    /// Rows about the first objects of the report, in the first column.
    Objects {
        /// The most objects.
        most: usize,
    },
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
/// name. Rows that belong together all stay. Profile and costs are those that the report is made of.
pub fn page_rows(
    trace: &Trace,
    machine: &Machine,
    counts: (&Profile, &CostModel),
    mut tables: Vec<Table>,
    replayed: &Replayed,
    limit: impl Fn(&str) -> Limit,
) -> PageRows {
    let objects = objects(trace, machine, counts);
    let rest = tables.iter_mut().filter_map(|table| match limit(table.meta.id) {
        Limit::Rows { most, rest } if !table.meta.is_whole && most < table.rows.len() => {
            let others = table.rows.split_off(most);
            let count = others.len();
            let (columns, holds) = (table.columns.clone(), table.holds.clone());
            Some((count, Table { meta: table.meta, columns, holds, rows: sums(others, rest) }))
        }
        Limit::Rows { .. } => None,
        Limit::Objects { most } => {
            let first: FxHashSet<&ObjectKey> = objects.iter().take(most).collect();
            table.rows.retain(|row| match row.first() {
                Some(Value::Object(of)) => first.contains(&(of.home.clone(), of.path.clone())),
                _ => true,
            });
            None
        }
    });
    let (counts, rest): (Vec<usize>, Vec<Table>) = rest.unzip();
    let shown = tables.len();
    tables.extend(rest);
    let mut analysis = analysis(trace, machine, &tables, replayed);
    let rest = analysis.tables.split_off(shown).into_iter().zip(counts);
    let left_out = rest.map(|(table, rows)| LeftOutRows { table: table.id, rows, sums: table.rows });
    PageRows { left_out: left_out.collect(), analysis }
}

/// The classes of objects, in the order of the report's rows.
fn objects(trace: &Trace, machine: &Machine, (profile, costs): (&Profile, &CostModel)) -> Vec<ObjectKey> {
    let latencies = machine.latencies();
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let keys: Vec<ObjectKey> = described(profile).map(|(key, _)| key).collect();
    tables.objects().into_iter().filter_map(|row| keys.get(row.key.0 as usize).cloned()).collect()
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
