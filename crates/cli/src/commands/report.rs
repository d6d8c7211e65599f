//! `memlode report`: which data misses, at which line.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{ArgMatches, Parser, ValueEnum, ValueHint};
use memlode_attribute::sharing::Order;
use memlode_report::{CommandAnswer, CommandFindings, only, only_changes};
use memlode_trace::Trace;

use super::OK;
use crate::advised;
use crate::analyse::{Job, Wanted};
use crate::args::part::PartArgs;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::next::{ContextArgs, NextCommands};
use crate::sampled;
use crate::show::{Out, ShapeArgs, show};

/// Say which data misses, at which line, allocated where
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    only: OnlyArgs,
    #[command(flatten)]
    sources: ContextArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    part: PartArgs,
}

/// Which machine to simulate.
#[derive(Debug, Parser)]
pub struct MachineArgs {
    /// Machine to simulate: `host`, a name such as `generic` or `zen4`, or a .toml file
    #[arg(long, short, value_name = "M", default_value = "host", value_hint = ValueHint::FilePath)]
    pub machine: String,
}

/// Which findings are meant.
#[derive(Debug, Default, Parser)]
pub struct OnlyArgs {
    /// Findings, pairs and locks to show, with the rows that they are about: by handle, or by rank in this report (F3)
    #[arg(long, value_name = "HANDLE", value_delimiter = ',')]
    pub only: Vec<String>,
}

impl OnlyArgs {
    /// Leaves what is meant of a report.
    pub fn keep(&self, answer: &mut CommandAnswer) -> Result<()> {
        match &mut answer.found {
            CommandFindings::Report(report) => only(report, &self.only).context("--only")?,
            CommandFindings::Comparison(found) => only_changes(found, &self.only).context("--only")?,
            _ => {}
        }
        Ok(())
    }
}

/// In which order threads are replayed.
#[derive(Clone, Copy, Debug, Parser)]
pub struct OrderArgs {
    /// For what threads lose to each other: as if each had a core of its own, or none earlier than it was recorded
    /// (default: parallel, if the creation of all threads was recorded)
    #[arg(long, value_name = "ORDER")]
    threads: Option<ThreadOrder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ThreadOrder {
    Parallel,
    Recorded,
}

impl OrderArgs {
    /// Returns the requested order.
    pub fn order(self) -> Option<Order> {
        self.threads.map(|order| match order {
            ThreadOrder::Parallel => Order::Parallel,
            ThreadOrder::Recorded => Order::Recorded,
        })
    }
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let directory = args.trace.find()?;
    if sampled::is_sampled(&directory) {
        sampled::refuse_others::<Args>(&directory, given, &[])?;
        return sampled::show_trace(&directory, args.shape.top(), args.json);
    }
    let mut job = Job::new(&args.machine.machine, |_| Ok(Wanted::Report(args.order.order())))?;
    let trace = Arc::new(Trace::open(&directory)?);
    let part = args.part.of(&trace)?;
    let is_whole = part.is_none() && args.order.order().is_none();
    if let Some(part) = part {
        job.wanted = Wanted::Part(Box::new(part));
    }
    let next = NextCommands::new(trace.directory(), &args.machine.machine);
    let machine = job.machine.clone();
    let question = question::<Args>("report", given, &[&machine]);
    let compute = || Ok(job.run(trace.clone())?.answer());
    let mut answer = args.keep.answer(question, &[&trace], compute)?;
    if is_whole && !args.json {
        advised::add(&mut answer, &trace, &machine);
    }
    args.only.keep(&mut answer)?;
    args.sources.sources(&trace)?.add_to(&mut answer);
    show(&answer, &args.shape, Some(&next), args.json, Out::Stdout)?;
    Ok(ExitCode::from(OK))
}
