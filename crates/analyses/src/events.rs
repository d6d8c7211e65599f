//! Analyses that look at every access.
//!
//! An analysis is one file: a type, its [`Analysis`], and its line in [`analyses`]. It sees what `memlode replay --annotate hits` writes and the
//! Python package yields, batch by batch, in replay order, and says what it has found as tables.

use std::str::FromStr;

use memlode_attribute::annotate::{Cells, EventCell, EventObject, Events};
use memlode_attribute::tables::{Place, What, place, what};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{Site, SiteTable};
use memlode_trace::{Clock, Thread};

use crate::Meta;
use crate::reuse::Reuse;
use crate::shared::Shared;
use crate::strides::Strides;
use crate::working_set::WorkingSet;

/// What the numbers of batches refer to.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The cells of the batches so far.
    pub cells: &'a Cells,
    /// The names of the trace.
    pub names: &'a SiteTable,
    /// The threads of the trace.
    pub threads: &'a [Thread],
    /// The machine's levels by name, memory last.
    pub levels: &'a [String],
    /// Cycles until each answers.
    pub latencies: &'a [u32],
    /// What time stamps tell, if they do. While a trace is written, they do not.
    pub clock: Option<Clock>,
}

impl<'a> View<'a> {
    /// A row's cell.
    pub fn cell(&self, cell: u32) -> EventCell {
        self.cells.cells[cell as usize]
    }

    /// A cell's site.
    pub fn site(&self, cell: u32) -> &'a Site {
        self.names.site(self.cell(cell).site)
    }

    /// Whether a cell's accesses write.
    pub fn writes(&self, cell: u32) -> bool {
        self.site(cell).kind.is_write()
    }

    /// What a cell's accesses touch, and where that stands in the source.
    pub fn key(&self, cell: u32) -> (What, Place) {
        self.key_of(self.site(cell))
    }

    /// What a site's accesses touch, and where that stands in the source.
    pub fn key_of(&self, site: &Site) -> (What, Place) {
        (what(self.names, site, true), place(self.names, site))
    }

    /// What makes a thread's addresses those of its process: bits that user addresses do not have.
    pub fn space(&self, thread: ThreadId) -> u64 {
        u64::from(self.threads[thread.0 as usize].process.0) << 48
    }
}

/// Looks at every access. It is made before the trace is there, which may still be written while batches are taken.
pub trait Analysis: Send {
    /// A batch. Called on one thread, in replay order. What the batch does not speak of may be missing in the view.
    fn take(&mut self, events: &Events, view: View<'_>);

    /// What was found, after the last batch.
    fn finish(self: Box<Self>, view: View<'_>) -> Vec<Table>;
}

/// What an analysis has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Short name, stable.
    pub id: &'static str,
    /// What it says, in a few words.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// By row and column; the most important rows first, or in the order of time.
    pub rows: Vec<Vec<Value>>,
    /// The rows say something together: none of them is to be left out.
    pub is_whole: bool,
}

/// What a table holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// How many.
    Count(u64),
    /// Not known, or there is none.
    Nothing,
    /// A size or a distance.
    Bytes(u64),
    /// From one address to the next, in bytes.
    Step(i64),
    /// One of a few words.
    Word(&'static str),
    /// Bytes from which on, and how often.
    Histogram(Vec<(u64, u64)>),
    /// Seconds.
    Seconds(f64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// What is accessed; `None`: nothing.
    What(Option<What>),
    /// Where.
    Place(Place),
    /// A class of objects.
    Object(EventObject),
    /// How many by thread, the most first.
    Threads(Vec<(ThreadId, u64)>),
}

/// An analysis that can be asked for by name.
pub struct Known {
    /// What it is called.
    pub meta: Meta,
    /// Its arguments, and what they mean.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Makes one.
    pub make: fn(&Arguments) -> Result<Box<dyn Analysis>, BadArgument>,
}

/// All of them.
pub fn analyses() -> [Known; 4] {
    [Shared::KNOWN, Reuse::KNOWN, Strides::KNOWN, WorkingSet::KNOWN]
}

/// What a user gives to an analysis: `least=100,most=20`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Vec<(String, String)>);

/// Why arguments cannot be used, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadArgument(pub String);

impl FromStr for Arguments {
    type Err = BadArgument;

    fn from_str(text: &str) -> Result<Arguments, BadArgument> {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => Err(BadArgument(format!("`{pair}` is no argument: expected name=value"))),
        };
        text.split(',').filter(|part| !part.is_empty()).map(pair).collect::<Result<_, _>>().map(Arguments)
    }
}

impl Arguments {
    /// The value of an argument, if it is given.
    pub fn get<T: FromStr>(&self, name: &str) -> Result<Option<T>, BadArgument> {
        let Some((_, text)) = self.0.iter().rev().find(|(given, _)| given == name) else { return Ok(None) };
        let value = text.parse();
        value
            .map(Some)
            .map_err(|_| BadArgument(format!("`{text}` is no value for {name}: expected a number")))
    }

    /// Refuses what is given and not known.
    pub fn check(&self, known: &Known) -> Result<(), BadArgument> {
        let is_known = |name: &String| known.arguments.iter().any(|(known, _)| known == name);
        let Some((name, _)) = self.0.iter().find(|(name, _)| !is_known(name)) else { return Ok(()) };
        let all: Vec<&str> = known.arguments.iter().map(|(name, _)| *name).collect();
        Err(BadArgument(format!("{} has no argument `{name}`; it has {}", known.meta.id, all.join(", "))))
    }
}
