//! `memlode sql`: questions in SQL, of results and of every access.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum, ValueHint};

use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::traces::TraceArgs;
use crate::python::{become_python, option};

/// Ask in SQL, of tables of results and of every access
#[derive(Debug, Parser)]
#[command(after_help = "\
Without a query, queries are read from the terminal, or from standard input if that is none.
Tables are those of `memlode export` (lines, members, objects, findings, sites, types, …), those of analyses, and
accesses: every access. docs/sql.md has queries to begin with. DuckDB answers, by memlode's Python package.
Exit status: 0 success, 1 the query or the trace cannot be used, 2 wrong usage.")]
pub struct Args {
    /// The trace directory that `run` or `record` made [default: the newest one here]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    first: Option<OsString>,
    /// The query; it may stand alone
    #[arg(value_name = "QUERY")]
    second: Option<OsString>,
    /// Take accesses from what `memlode export --to FILE.parquet` wrote: the trace is not replayed for them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    from: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Rows of a table that are shown
    #[arg(long, value_name = "N", default_value = "40", value_parser = numbers::small_count)]
    top: usize,
    #[command(flatten)]
    machine: MachineArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns in a frame
    Table,
    /// Comma-separated values
    Csv,
    /// A list of objects, one a line
    Json,
    /// An Arrow IPC stream
    Arrow,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let (directory, query) = match (args.first, args.second) {
        (Some(alone), None) if is_query(&alone) => (None, Some(alone)),
        (directory, query) => (directory.map(PathBuf::from), query),
    };
    let form = args.format.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
    let mut words = vec![
        option("machine", args.machine.machine),
        option("format", form),
        option("top", args.top.to_string()),
    ];
    words.extend(query.map(|query| option("query", query)));
    // Rows of an export are enough by themselves.
    if args.from.is_none() || directory.is_some() {
        words.push(option("trace", TraceArgs::of(directory).find()?));
    }
    words.extend(args.from.map(|rows| option("from", rows)));
    become_python("sql", words)
}

/// Returns whether a word alone is a query: it is no directory, and has several words.
fn is_query(word: &OsString) -> bool {
    !Path::new(word).is_dir() && word.to_string_lossy().trim().contains(char::is_whitespace)
}
