//! Tables that analyses fill.

use memlode_attribute::annotate::EventObject;
use memlode_attribute::place::{Line, Place, What};
use memlode_attribute::values::Number;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::StringId;

/// The shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMeta {
    /// Short name, stable.
    pub id: &'static str,
    /// The subject of its rows, in a few words.
    pub title: &'static str,
    /// True if the rows say something together, so that none of them is to be left out.
    pub is_whole: bool,
    /// Its columns.
    pub columns: &'static [Column],
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, stable: words joined by `_`. If there is one for each cache level, `*` stands for the
    /// level's name.
    pub id: &'static str,
    /// The kind of its values.
    pub holds: Holds,
}

/// The kind of values that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// [`Value::Count`].
    Count,
    /// [`Value::Bytes`], or nothing.
    Bytes,
    /// [`Value::Step`].
    Step,
    /// [`Value::Word`]: one of these.
    Word(&'static [&'static str]),
    /// [`Value::Histogram`].
    Histogram,
    /// [`Value::Bins`].
    Bins,
    /// [`Value::Seconds`]. The column is left out where time is not known.
    Seconds,
    /// [`Value::Share`].
    Share,
    /// [`Value::What`], or nothing.
    What,
    /// [`Value::Place`].
    Place,
    /// [`Value::Object`].
    Object,
    /// [`Value::Stack`].
    Stack,
    /// [`Value::Threads`].
    Threads,
    /// [`Value::File`], or nothing.
    File,
    /// [`Value::Name`].
    Name,
    /// [`Value::Number`], or nothing.
    Number,
}

/// The result of an analysis, by row and column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its shape.
    pub meta: &'static TableMeta,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The kind of values of each.
    pub holds: Vec<Holds>,
    /// The most important rows first, or in the order of time.
    pub rows: Vec<Vec<Value>>,
}

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not known, or there is none.
    Nothing,
    /// A number of anything.
    Count(u64),
    /// A size or a distance.
    Bytes(u64),
    /// From one address to the next, in bytes.
    Step(i64),
    /// One of a few words.
    Word(&'static str),
    /// Bytes from which on, and how often.
    Histogram(Vec<(u64, u64)>),
    /// A count for each of some bins of one width, in order.
    Bins(Vec<u64>),
    /// Seconds.
    Seconds(f64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// Data that is accessed.
    What(What),
    /// A line.
    Place(Place),
    /// A class of objects.
    Object(EventObject),
    /// The lines of a call path, the innermost first, and whether each was inlined into the next.
    Stack(Vec<(Line, bool)>),
    /// A count by thread, the highest first.
    Threads(Vec<(ThreadId, u64)>),
    /// A file, by its directory and name.
    File(StringId, StringId),
    /// Data by name alone.
    Name(What),
    /// A value of the program.
    Number(Number),
}

impl Table {
    /// A table of a shape. `levels` are the names of the cache levels, for columns that there are one for
    /// each of; `with_time` says whether there are seconds.
    pub fn new(meta: &'static TableMeta, levels: &[String], with_time: bool, rows: Vec<Vec<Value>>) -> Table {
        let (mut columns, mut holds) = (Vec::new(), Vec::new());
        for column in meta.columns.iter().filter(|column| with_time || column.holds != Holds::Seconds) {
            match column.id.split_once('*') {
                None => columns.push(column.id.to_string()),
                Some((before, after)) => {
                    columns.extend(levels.iter().map(|level| format!("{before}{level}{after}")));
                }
            }
            holds.resize(columns.len(), column.holds);
        }
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()), "{}", meta.id);
        Table { meta, columns, holds, rows }
    }

    /// The same for a shape whose columns are always those.
    pub fn plain(meta: &'static TableMeta, rows: Vec<Vec<Value>>) -> Table {
        Table::new(meta, &[], true, rows)
    }
}
