//! `memlode bias`: what moves times although no program changed.

mod alloc;
mod env;
mod fix;
mod heap;
mod link;
mod pages;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memlode_measure::bias::counters;
use memlode_measure::picture::Picture;
use memlode_measure::process::{Launch, Output};

use super::bench::{fresh_seed, stop_on_signals};
use super::{OK, print, print_json};

/// Measure what moves times although no program changed: environment, links, allocators, physical pages
#[derive(Debug, Parser)]
#[command(after_help = "\
What each measures, and how far to trust it: docs/bias.md.
Exit status: 0 success, 1 nothing could be measured, 2 wrong usage.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Pages(pages::Pages),
    Alloc(alloc::Alloc),
    Env(env::Env),
    Heap(heap::Heap),
    Block(fix::Block),
    Fix(fix::Fix),
    Link(link::Link),
    Counters(Counters),
    #[command(hide = true)]
    Call(heap::Call),
}

/// Find which events of a table of counters move with its cycles, and what they are where cycles spike
#[derive(Debug, Parser)]
struct Counters {
    /// A CSV table: a row for each context, a column for each event, as `perf stat` or `bias env --predict` fills it
    #[arg(value_name = "FILE")]
    table: Option<PathBuf>,
    /// The column of the context; it is no event
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The event that others are compared with
    #[arg(long, value_name = "EVENT", default_value = "cycles")]
    cycles: String,
    /// Spikes to show
    #[arg(long, value_name = "N", default_value_t = 2)]
    spikes: usize,
    /// Events to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Parser)]
struct Program {
    /// File that the program reads on standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Let the program print
    #[arg(long)]
    show_output: bool,
    /// Number that all random choices follow from [default: a new one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    words: Vec<OsString>,
}

impl Program {
    fn launch(&self) -> Launch {
        Launch {
            words: self.words.clone(),
            input: self.input.clone(),
            output: if self.show_output { Output::Shown } else { Output::Discarded },
            environment: Vec::new(),
        }
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Pages(args) => pages::run(&args)?,
        What::Alloc(args) => alloc::run(&args)?,
        What::Env(args) => env::run(&args)?,
        What::Heap(args) => heap::run(&args)?,
        What::Block(args) => fix::sweep(&args)?,
        What::Fix(args) => fix::run(&args)?,
        What::Call(args) => heap::call(&args)?,
        What::Link(args) => link::run(&args)?,
        What::Counters(args) => correlate(&args)?,
    }
    Ok(ExitCode::from(OK))
}

fn correlate(args: &Counters) -> Result<()> {
    let Some(file) = &args.table else {
        bail!(
            "{}: `memlode bias env --function NAME --predict FILE -- PROGRAM` writes a table of what is predicted instead, \
             or name one",
            match counters::can_count() {
                true => "memlode reads counters from a table, such as one of `perf stat`",
                false => "this machine has no counters that memlode may read",
            }
        );
    };
    let named = || format!("{} cannot be used", file.display());
    let text = memlode_files::read_text(file, 64 << 20).with_context(named)?;
    let table =
        counters::CounterTable::parse(&text, args.context.as_deref(), &args.cycles).with_context(named)?;
    let found = table.correlate(args.spikes);
    if args.json {
        return print_json(&found);
    }
    print(&counters::text(&found, args.top))
}

/// Writes a picture to a file.
fn draw(file: &Path, picture: &Picture<'_>) -> Result<()> {
    std::fs::write(file, picture.svg()?).with_context(|| format!("cannot write {}", file.display()))
}
