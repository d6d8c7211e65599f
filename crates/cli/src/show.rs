//! Output of the findings, as text or JSON, on a stream or in a file.

use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use memlode_report::render::terminal::{By, Style};
use memlode_report::render::{json, terminal};
use memlode_report::{Sources, build};

use crate::analyse::{Analysed, Found};
use crate::args::numbers;
use crate::door::{Door, Form};
use crate::next::{ContextArgs, NextCommands};
use crate::term;

/// Which part of what was found to show.
#[derive(Debug, Parser)]
pub struct ShapeArgs {
    /// Rows of each table
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count)]
    top: usize,
    /// Tables to show [default: line]
    #[arg(long, value_enum, value_name = "TABLE", value_delimiter = ',')]
    by: Vec<TableName>,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// Data and the line that touches it
    Line,
    /// Data: members, and variables and arrays that have none
    Data,
    /// Types
    Type,
    /// Members of types
    Field,
    /// Objects: by allocating call, global variable or stack variable
    Object,
    /// Functions
    Function,
    /// Threads
    Thread,
    /// All of these
    All,
}

impl TableName {
    /// The tables that there are of causes.
    pub const OF_CAUSES: [&str; 6] = ["line", "data", "field", "type", "object", "all"];

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }
}

impl ShapeArgs {
    /// So many rows of tables that nobody chooses among.
    pub fn rows(top: usize) -> ShapeArgs {
        ShapeArgs { top, by: Vec::new() }
    }

    /// A table that was asked for and that there is none of for causes.
    pub fn without_causes(&self) -> Option<String> {
        self.by.iter().map(|table| table.name()).find(|name| !TableName::OF_CAUSES.contains(&&name[..]))
    }

    /// Rows of each table.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The tables that are asked for, or this one.
    pub fn tables(&self, default: By) -> Vec<By> {
        if self.by.is_empty() {
            return vec![default];
        }
        if self.by.contains(&TableName::All) {
            return vec![By::Line, By::Data, By::Field, By::Type, By::Object, By::Function, By::Thread];
        }
        let table = |name: &TableName| match name {
            TableName::Line => By::Line,
            TableName::Data => By::Data,
            TableName::Type => By::Type,
            TableName::Field => By::Field,
            TableName::Object => By::Object,
            TableName::Function => By::Function,
            TableName::Thread | TableName::All => By::Thread,
        };
        self.by.iter().map(table).collect()
    }
}

/// A place to show them.
#[derive(Clone, Copy)]
pub enum Out<'a> {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file.
    File(&'a Path),
}

impl Out<'_> {
    /// Returns how text is to look there.
    pub fn style(self, top: usize) -> Style {
        let (colours, width) = match self {
            Out::Stdout => (term::colours(&stdout()), term::width(&stdout())),
            Out::Stderr => (term::colours(&stderr()), term::width(&stderr())),
            Out::File(_) => (false, term::PLAIN_WIDTH),
        };
        Style { colours, width, top }
    }

    /// Writes it.
    pub fn write(self, text: &str, as_json: bool) -> Result<()> {
        let colours = match self {
            Out::Stdout => term::colours(&stdout()),
            Out::Stderr => term::colours(&stderr()),
            Out::File(_) => false,
        };
        let form = if as_json { Form::Json } else { Form::Text { colours } };
        match self {
            Out::Stdout => {
                let mut out = Door::new(stdout().lock(), form);
                out.write_all(text.as_bytes())?;
                Ok(out.flush()?)
            }
            Out::Stderr => term::block(text, form),
            Out::File(file) => {
                let write = |out| Door::new(out, form).write_all(text.as_bytes());
                let written = File::create(file).and_then(write);
                written.with_context(|| format!("cannot write {}", file.display()))
            }
        }
    }
}

impl Analysed {
    /// Shows it: as JSON in full, or as text in the shape that is asked for.
    pub fn show(&self, shape: &ShapeArgs, as_json: bool, out: Out<'_>) -> Result<()> {
        self.show_with(shape, ContextArgs::default(), None, as_json, out)
    }

    /// Does the same with neighbours of the source lines of findings, and with commands that go on below a report.
    pub fn show_with(
        &self,
        shape: &ShapeArgs,
        sources: ContextArgs,
        next: Option<&NextCommands>,
        as_json: bool,
        out: Out<'_>,
    ) -> Result<()> {
        let Analysed { trace, machine, found, replayed } = self;
        let style = out.style(shape.top);
        match found {
            Found::Report(profile, part, sharing) => {
                let mut report = build::report(trace, machine, profile, replayed, sharing.as_deref());
                report.trace.notes.extend(part.clone());
                Sources::new(trace, sources.context).add_to(&mut report);
                let mut text = match as_json {
                    true => json::report(&report)?,
                    false => terminal::report(&report, &shape.tables(By::Line), style),
                };
                if let Some(next) = next.filter(|_| !as_json) {
                    text += &format!("\n{}\n", next.line());
                }
                out.write(&text, as_json)
            }
            Found::Simulation(profile, sharing) => {
                for name in profile.unmet_names() {
                    term::note(&format!("--pages: nothing that was accessed is called {name}"));
                }
                let simulation = build::simulation(trace, machine, profile, replayed, sharing.as_deref());
                let text = match as_json {
                    true => json::simulation(&simulation)?,
                    false => terminal::simulation(&simulation, &shape.tables(By::Data), style),
                };
                out.write(&text, as_json)
            }
            Found::Timing(profile) => {
                let timing = build::timing(trace, machine, profile, replayed);
                let text = match as_json {
                    true => json::timing(&timing)?,
                    false => terminal::timing(&timing, &shape.tables(By::Line), style),
                };
                out.write(&text, as_json)
            }
            Found::Accesses(tables) => {
                let analysis = build::analysis(trace, machine, tables, replayed);
                if as_json {
                    return out.write(&json::analysis(&analysis)?, true);
                }
                let (text, notes) = terminal::analysis(&analysis, style);
                out.write(&text, false)?;
                notes.iter().for_each(|note| term::note(note));
                Ok(())
            }
        }
    }
}
