//! `memlode alias`: which data collide in the low bits of their addresses.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{ArgMatches, Parser};

use memlode_analyses::Run;

use crate::accesses::add;
use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;

/// Name the loads that agree with a store to other data in the low 12 address bits
#[derive(Debug, Parser)]
#[command(after_help = "\
On any machine, from the trace alone: pairs that can collide, ranked by how often and how close, and loads that
`restrict` would save. What it costs is for `memlode bench` and `memlode bias` to measure: docs/bias.md.
Exit status: 0 success, 1 the trace cannot be used, 2 wrong usage.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// Conflicts, or reloads, of a pair from which on it is shown
    #[arg(long, value_name = "N", default_value = "100", value_parser = numbers::count)]
    least: u64,
    /// Pairs
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let mut analyses = Run::default();
    for analysis in ["alias", "reloads"] {
        add(&mut analyses, &format!("{analysis}:least={}", args.least))?;
    }
    let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Accesses(analyses)))?;
    let trace = Arc::new(args.trace.open()?);
    let question = question::<Args>("alias", given, &[&job.machine]);
    let answer = args.keep.answer(question, &[&trace], || Ok(job.run(trace.clone())?.answer()))?;
    show(&answer, &ShapeArgs::rows(args.top), None, args.json, Out::Stdout)?;
    Ok(ExitCode::from(OK))
}
