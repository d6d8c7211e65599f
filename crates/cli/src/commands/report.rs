//! `memlode report`: which data misses, at which line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use memlode_report::Report;
use memlode_report::terminal::{By, Style, render};

use super::{OK, print, print_json};
use crate::analyse::{self, Analysed};
use crate::term;

/// Say which data misses, at which line, allocated where
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    /// The trace directory that `run` or `record` made
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which machine to simulate.
#[derive(Debug, Parser)]
pub struct MachineArgs {
    /// Machine to simulate: `host`, a name such as `generic` or `zen4`, or a .toml file
    #[arg(long, short, value_name = "M", default_value = "host")]
    pub machine: String,
}

impl MachineArgs {
    /// The words that give this machine to a memlode that is started elsewhere.
    pub fn words(&self) -> [OsString; 2] {
        let file = std::fs::canonicalize(&self.machine).ok().filter(|_| self.machine.ends_with(".toml"));
        ["--machine".into(), file.map_or_else(|| self.machine.clone().into(), OsString::from)]
    }
}

/// Which part of a report to show.
#[derive(Debug, Parser)]
pub struct ShapeArgs {
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Tables to show
    #[arg(long, value_enum, value_name = "TABLE", value_delimiter = ',', default_value = "line")]
    by: Vec<TableName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// Data and the line that touches it
    Line,
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

impl ShapeArgs {
    fn tables(&self) -> Vec<By> {
        let all = [By::Line, By::Field, By::Type, By::Object, By::Function, By::Thread];
        if self.by.contains(&TableName::All) {
            return all.to_vec();
        }
        let table = |name: &TableName| match name {
            TableName::Line => By::Line,
            TableName::Type => By::Type,
            TableName::Field => By::Field,
            TableName::Object => By::Object,
            TableName::Function => By::Function,
            TableName::Thread | TableName::All => By::Thread,
        };
        self.by.iter().map(table).collect()
    }

    /// The words that give this shape to another memlode.
    pub fn words(&self) -> [OsString; 4] {
        let tables: Vec<String> = self
            .by
            .iter()
            .filter_map(|name| Some(name.to_possible_value()?.get_name().to_string()))
            .collect();
        ["--top".into(), self.top.to_string().into(), "--by".into(), tables.join(",").into()]
    }

    /// The report as text, for a stream.
    pub fn text(&self, report: &Report, stream: &(impl IsTerminal + AsFd)) -> String {
        let style = Style { colours: term::colours(stream), width: term::width(stream), top: self.top };
        render(report, &self.tables(), style)
    }

    /// The report as text, for a file.
    pub fn plain_text(&self, report: &Report) -> String {
        render(report, &self.tables(), Style { colours: false, width: term::PLAIN_WIDTH, top: self.top })
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let report = make(&args.trace, &args.machine.machine)?;
    if args.json {
        print_json(&report)?;
    } else {
        print(&args.shape.text(&report, &std::io::stdout()))?;
    }
    Ok(ExitCode::from(OK))
}

/// Simulates a trace on a machine and builds its report.
pub fn make(trace: &Path, machine: &str) -> Result<Report> {
    Ok(of(&analyse::analyse(trace, machine)?))
}

/// The report of a simulated trace.
pub fn of(analysed: &Analysed) -> Report {
    memlode_report::build(&analysed.trace, &analysed.machine, &analysed.profile, &analysed.replayed)
}
