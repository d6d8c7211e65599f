//! Tables of analyses, with names.

use serde::{Deserialize, Serialize};

use super::{Data, Home, Note, Position, Word};

/// Findings of some analyses of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The trace directory.
    pub trace: String,
    /// The simulated machine, by its short name.
    pub machine: String,
    /// Notes on data that are missing from the trace.
    pub notes: Vec<Note>,
    /// Their tables.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Short name, stable.
    pub id: Word,
    /// Its title, as the analysis has it.
    pub title: Word,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Indexed by row and column; the most important rows first, or in the order of time.
    pub rows: Vec<Vec<Value>>,
    /// True if the rows belong together, so that none of them is to be left out.
    pub is_whole: bool,
}

impl Table {
    /// Returns whether each row has a value for each column, as one that was read from a file may not.
    pub fn is_sound(&self) -> bool {
        self.rows.iter().all(|row| row.len() == self.columns.len())
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, stable: words joined by `_`.
    pub id: String,
}

/// A line of a call path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackLine {
    /// The line.
    #[serde(flatten)]
    pub position: Position,
    /// True if its function was inlined into that of the next line.
    pub inlined: bool,
}

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Not known, or there is none.
    Nothing,
    /// A number of anything.
    Count(u64),
    /// A size or a distance.
    Bytes(u64),
    /// From one address to the next, in bytes.
    Step(i64),
    /// A name.
    Text(String),
    /// One of a few words, which the analysis's page explains.
    Word(super::Word),
    /// Bytes from which on, and how often.
    Histogram(Vec<(u64, u64)>),
    /// A count for each of some bins of one width, in order.
    Bins(Vec<u64>),
    /// Seconds.
    Seconds(f64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// Data that is accessed.
    Data(Data),
    /// A line.
    Position(Position),
    /// A class of objects.
    Home(Home),
    /// A call path, the innermost line first.
    Stack(Vec<StackLine>),
    /// A count by thread, the highest first.
    Threads(Vec<(u32, u64)>),
}
