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
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memlode_counters::kernel::{Kernel, Linux};
use memlode_counters::refusal::CountRefusal;
use memlode_counters::table::EventTable;
use memlode_measure::bias::counter_sweep::{self, CounterSweepPlan};
use memlode_measure::bias::counters;
use memlode_measure::process::{Launch, RunLimits};
use memlode_report::render::measured::counters as words;
use memlode_report::render::measured::picture::Drawing;
use memlode_report::render::terminal::refusal;

use super::bench::fresh_seed;
use crate::args::launch::LaunchArgs;
use crate::args::times::parse_duration;
use crate::print::{print, print_json};
use crate::status::OK;
use crate::stop::stop_on_signals;
use crate::term;

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
///
/// The table is a file, or is made by --sweep.
#[derive(Debug, Parser)]
struct Counters {
    /// A CSV table: a row for each context, a column for each event, as `perf stat` or `bias env --predict` fills it
    #[arg(value_name = "FILE", conflicts_with = "sweep")]
    table: Option<PathBuf>,
    /// Count every event of this processor that memlode knows at every length of the environment of a program
    #[arg(long, requires = "program")]
    sweep: bool,
    /// With --sweep: write the table as CSV
    #[arg(long, value_name = "FILE", requires = "sweep")]
    out: Option<PathBuf>,
    /// With --sweep: take the processor to have the events of this table [default: that of its model]
    #[arg(long, value_name = "NAME", requires = "sweep")]
    events: Option<String>,
    /// With --sweep: passes over all contexts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..), requires = "sweep")]
    passes: u32,
    /// With --sweep: time after which no pass begins
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = parse_duration, requires = "sweep")]
    time_limit: Duration,
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
    /// With --sweep: the program and its arguments
    #[arg(last = true, value_name = "PROGRAM", requires = "sweep")]
    program: Vec<OsString>,
}

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    how: LaunchArgs,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    words: Vec<OsString>,
}

impl Program {
    fn launch(&self) -> Launch {
        self.how.launch(&self.words)
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
    if args.sweep {
        return show(&counters::CounterTable::parse(&counted(args)?, None, "cycles")?, args);
    }
    let Some(file) = &args.table else {
        bail!(
            "name a table, such as one of `perf stat`, or {}: `memlode bias env --function NAME --predict FILE -- PROGRAM` \
             writes a table of what is predicted instead",
            match counters::can_count() {
                true => "have --sweep count one",
                false => "count one on another machine, as this one has no counters that memlode may read",
            }
        );
    };
    let named = || format!("{} cannot be used", file.display());
    let text = memlode_files::read_text(file, 64 << 20).with_context(named)?;
    let table =
        counters::CounterTable::parse(&text, args.context.as_deref(), &args.cycles).with_context(named)?;
    show(&table, args)
}

fn show(table: &counters::CounterTable, args: &Counters) -> Result<()> {
    let found = table.correlate(args.spikes);
    if args.json {
        return print_json(&found);
    }
    print(&words::text(&found, args.top))
}

/// Counts a table over the lengths of the environment.
fn counted(args: &Counters) -> Result<String> {
    let table = match &args.events {
        Some(name) => Some(EventTable::named(name)?),
        None => EventTable::of(&memlode_machine::Machine::host().identities),
    };
    let refused = |why: &CountRefusal| anyhow::anyhow!("nothing is counted: {}", refusal(why));
    let table = table.ok_or_else(|| match Linux.has_unit() {
        true => refused(&CountRefusal::NoTable),
        false => refused(&CountRefusal::NoUnit),
    })?;
    let stop = stop_on_signals()?;
    let program = Launch { words: args.program.clone(), ..Launch::default() };
    let plan = CounterSweepPlan {
        table: &table,
        contexts: counter_sweep::contexts()?,
        passes: args.passes as usize,
        time: args.time_limit,
        seed: fresh_seed(),
    };
    let limits = RunLimits { stop: &stop, longest: args.time_limit };
    let mut run = |context| counter_sweep::run_at(&program, context, limits);
    let found = counter_sweep::sweep(&plan, &Linux, &mut run)?.map_err(|why| refused(&why))?;
    for (event, why) in &found.refused {
        term::note(&words::refused(event, why));
    }
    let text = found.csv();
    if let Some(file) = &args.out {
        std::fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(text)
}

/// Writes a picture to a file.
fn draw(file: &Path, picture: &Drawing) -> Result<()> {
    std::fs::write(file, picture.svg()?).with_context(|| format!("cannot write {}", file.display()))
}
