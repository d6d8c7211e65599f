//! Tables of analyses as far as a page shows them.

use serde::{Deserialize, Serialize};

use super::{Analysis, Table, Value, Word};

/// The most important rows of analyses of every access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageRows {
    /// The analyses, with the rows that are shown.
    pub analysis: Analysis,
    /// The tables that have more rows.
    pub left_out: Vec<LeftOutRows>,
}

/// Rows of a table that are not shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutRows {
    /// The table's short name.
    pub table: Word,
    /// Rows.
    pub rows: usize,
    /// Their sums, by what the page needs them for: rows of the same columns, in which counts and
    /// bytes are added up.
    pub sums: Vec<Vec<Value>>,
}

impl PageRows {
    /// The table of this name, if there is one.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.analysis.tables.iter().find(|table| table.id == id)
    }

    /// The rows that a table has besides those that are shown.
    pub fn left_out(&self, id: &str) -> Option<&LeftOutRows> {
        self.left_out.iter().find(|left| left.table == id)
    }

    /// Returns whether each row has a value for each column, as one that was read from a file may not.
    pub fn is_sound(&self) -> bool {
        self.analysis.tables.iter().all(Table::is_sound)
    }
}
