//! From rows to columns: a table is made column by column, each from an iterator over the rows.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::table::{ArrowTable, BatchColumn, ColumnType, ColumnValues, Field, Strings, Validity};

/// A table with the names and types of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedTable {
    /// Its name, stable.
    pub name: String,
    /// Its columns' names and types.
    pub fields: Vec<Field>,
    /// Its rows.
    pub table: ArrowTable,
}

/// The columns of a table that is being made. Texts become dictionaries.
pub(crate) struct Columns {
    fields: Vec<Field>,
    table: ArrowTable,
}

impl Columns {
    /// No columns yet, of `rows` rows.
    pub fn new(rows: usize) -> Columns {
        Columns { fields: Vec::new(), table: ArrowTable { rows, columns: Vec::new() } }
    }

    /// Ends it.
    pub fn named(self, name: &str) -> ExportedTable {
        ExportedTable { name: name.to_string(), fields: self.fields, table: self.table }
    }

    fn push(&mut self, name: &str, ty: ColumnType, nullable: bool, column: impl Into<BatchColumn>) {
        self.fields.push(Field { name: name.to_string(), ty, nullable });
        self.table.columns.push(column.into());
    }

    /// Adds numbers.
    pub fn u64(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        self.push(name, ColumnType::U64, false, ColumnValues::U64(values.collect()));
    }

    /// Adds numbers that may be missing.
    pub fn maybe_u64(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        let (values, validity) = parted(values);
        self.push(name, ColumnType::U64, true, BatchColumn { values: ColumnValues::U64(values), validity });
    }

    /// Adds numbers below 2³² that may be missing.
    pub fn maybe_u32(&mut self, name: &str, values: impl Iterator<Item = Option<u32>>) {
        let (values, validity) = parted(values);
        self.push(name, ColumnType::U32, true, BatchColumn { values: ColumnValues::U32(values), validity });
    }

    /// Adds signed numbers that may be missing.
    pub fn maybe_i64(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>) {
        let (values, validity) = parted(values);
        self.push(name, ColumnType::I64, true, BatchColumn { values: ColumnValues::I64(values), validity });
    }

    /// Adds floating numbers.
    pub fn f64(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        self.push(name, ColumnType::F64, false, ColumnValues::F64(values.collect()));
    }

    /// Adds floating numbers that may be missing.
    pub fn maybe_f64(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        let (values, validity) = parted(values);
        self.push(name, ColumnType::F64, true, BatchColumn { values: ColumnValues::F64(values), validity });
    }

    /// Adds a column of truth values.
    pub fn bool(&mut self, name: &str, values: impl Iterator<Item = bool>) {
        let mut bits = Vec::new();
        crate::table::put_bits(&mut bits, &values.collect::<Vec<_>>(), |is_set| is_set);
        self.push(name, ColumnType::Bool, false, ColumnValues::Bits(bits));
    }

    /// Adds texts.
    pub fn text<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = T>) {
        let column = keys(values.map(Some));
        self.push(name, ColumnType::Keys32, false, column);
    }

    /// Adds texts that may be missing.
    pub fn maybe_text<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        let column = keys(values);
        self.push(name, ColumnType::Keys32, true, column);
    }

    /// Adds lists of texts.
    pub fn texts<T: AsRef<str>>(&mut self, name: &str, lists: impl Iterator<Item = Vec<T>>) {
        let (mut offsets, mut strings) = (vec![0], Strings::default());
        for list in lists {
            list.iter().for_each(|text| {
                strings.push(text.as_ref());
            });
            offsets.push(strings.len() as i32);
        }
        let values = ColumnValues::TextLists(offsets, Arc::new(strings));
        self.push(name, ColumnType::TextLists, false, values);
    }

    /// Adds lists of numbers.
    pub fn u64s(&mut self, name: &str, lists: impl Iterator<Item = Vec<u64>>) {
        let (mut offsets, mut values) = (vec![0], Vec::new());
        for list in lists {
            values.extend(list);
            offsets.push(values.len() as i32);
        }
        self.push(name, ColumnType::U64Lists, false, ColumnValues::U64Lists(offsets, values));
    }
}

/// Values, 0 for missing ones, and which are there.
fn parted<T: Copy + Default>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Option<Validity>) {
    let values: Vec<Option<T>> = values.collect();
    let validity = Validity::of(&values, |value| value.is_some());
    (values.into_iter().map(Option::unwrap_or_default).collect(), validity)
}

/// Keys of a dictionary in which each text stands once.
fn keys<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> BatchColumn {
    let mut known: FxHashMap<String, i32> = FxHashMap::default();
    let mut strings = Strings::default();
    let mut key = |text: &str| match known.get(text) {
        Some(&key) => key,
        None => {
            let key = strings.push(text);
            known.insert(text.to_string(), key);
            key
        }
    };
    let keys = values.map(|value| value.map_or(-1, |text| key(text.as_ref()))).collect();
    BatchColumn::of_keys(keys, &Arc::new(strings))
}
