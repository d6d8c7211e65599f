//! `memlode report`: which data misses, at which line.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{ArgMatches, Parser};
use memlode_trace::Trace;

use crate::advised;
use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::only::OnlyArgs;
use crate::args::order::OrderArgs;
use crate::args::part::PartArgs;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::next::{ContextArgs, NextCommands};
use crate::sampled;
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;

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
