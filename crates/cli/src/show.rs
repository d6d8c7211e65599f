//! Output of the findings, as text or JSON, on a stream or in a file.

use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use memlode_report::render::terminal::{By, Style};
use memlode_report::render::{json, terminal};
use memlode_report::{CommandAnswer, CommandFindings};

use crate::args::numbers;
use crate::door::{Door, Form};
use crate::next::NextCommands;
use crate::term;

/// The part of the results that is shown.
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
    /// A fixed number of rows of tables, without a choice of tables.
    pub fn rows(top: usize) -> ShapeArgs {
        ShapeArgs { top, by: Vec::new() }
    }

    /// Rows of each table.
    pub fn top(&self) -> usize {
        self.top
    }

    /// A table that was asked for and that there is none of for causes.
    pub fn without_causes(&self) -> Option<String> {
        self.by.iter().map(|table| table.name()).find(|name| !TableName::OF_CAUSES.contains(&&name[..]))
    }

    /// The requested tables, or this one.
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

/// Shows an answer: as JSON in full, or as text in the requested shape, with further commands below
/// a report.
pub fn show(
    answer: &CommandAnswer,
    shape: &ShapeArgs,
    next: Option<&NextCommands>,
    as_json: bool,
    out: Out<'_>,
) -> Result<()> {
    for name in &answer.unmet_pages {
        term::note(&format!("--pages: nothing that was accessed is called {name}"));
    }
    if as_json {
        return out.write(&json::answer(answer)?, true);
    }
    let style = out.style(shape.top);
    let mut notes = Vec::new();
    let text = match &answer.found {
        CommandFindings::Report(report) => {
            let text = terminal::report(report, &shape.tables(By::Line), style);
            next.map_or(text.clone(), |next| format!("{text}\n{}\n", next.line()))
        }
        CommandFindings::Simulation(found) => terminal::simulation(found, &shape.tables(By::Data), style),
        CommandFindings::Timing(found) => terminal::timing(found, &shape.tables(By::Line), style),
        CommandFindings::Analysis(found) => {
            let (text, said) = terminal::analysis(found, style);
            notes = said;
            text
        }
        CommandFindings::Comparison(found) => terminal::comparison(found, &shape.tables(By::Data), style),
        CommandFindings::WhatIf(found) => terminal::what_if(found, &shape.tables(By::Data), style),
        CommandFindings::Advice(found) => terminal::advice(found, style),
    };
    out.write(&text, false)?;
    notes.iter().for_each(|note| term::note(note));
    Ok(())
}
