//! `memlode timeline`: how misses change while the program runs.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgMatches, Parser};
use memlode_analyses::{Arguments, BadArgument, Every, Run};
use memlode_machine::Machine;
use memlode_report::{CommandFindings, Note};
use memlode_trace::Trace;

use crate::accesses::known;
use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::times::parse_duration;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;

/// Say how accesses, misses and waiting change while the program runs, interval by interval
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    interval: IntervalArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

/// Options that cut the time line.
#[derive(Debug, Parser)]
pub struct IntervalArgs {
    /// Length of an interval: a number of accesses, as in 10M, or a time of the recorded run, as in 10ms
    #[arg(long, value_name = "LENGTH", value_parser = every, default_value = "1M")]
    every: Every,
}

impl IntervalArgs {
    /// Adds the analysis.
    pub fn add(&self, run: &mut Run) -> Result<()> {
        let every = match self.every {
            Every::Accesses(accesses) => accesses.to_string(),
            Every::Nanoseconds(ns) => format!("{ns}ns"),
        };
        let known = known("timeline").context("there is no time line")?;
        run.add(&known, &Arguments::one("every", every)).map_err(|BadArgument(why)| anyhow!("--every: {why}"))
    }

    /// Returns whether intervals are times, rather than numbers of accesses.
    pub fn is_time(&self) -> bool {
        matches!(self.every, Every::Nanoseconds(_))
    }
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let mut analyses = Run::default();
    args.interval.add(&mut analyses)?;
    let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Accesses(analyses)))?;
    let trace = Arc::new(args.trace.open()?);
    if args.interval.is_time() && trace.clock().is_none() {
        bail!(
            "{} does not say how fast its time stamps go, as a whole trace of this version does: take intervals of \
             so many accesses, as in --every 10M, or record it again",
            trace.directory().display()
        );
    }
    let question = question::<Args>("timeline", given, &[&job.machine]);
    let machine = job.machine.clone();
    let answer = args.keep.answer(question, &[&trace], || {
        let mut answer = job.run(trace.clone())?.answer();
        if let CommandFindings::Analysis(found) = &mut answer.found {
            found.notes.extend(latencies(&trace, machine)?);
        }
        Ok(answer)
    })?;
    show(&answer, &ShapeArgs::rows(usize::MAX), None, args.json, Out::Stdout)?;
    Ok(ExitCode::from(OK))
}

/// The sum of latencies beside the wait of a report on the same trace.
fn latencies(trace: &Arc<Trace>, machine: Machine) -> Result<Option<Note>> {
    let job = Job { machine, wanted: Wanted::Report(None), by_path: false };
    let CommandFindings::Report(report) = job.run(trace.clone())?.answer().found else { return Ok(None) };
    let total = &report.total.numbers;
    Ok(Some(Note::SumOfLatencies { cycles: total.stall_cycles, report_cycles: total.wait.cycles as u64 }))
}

/// `1000`, `10k`, `10M`, `1G`; `10ms`, `1s`.
fn every(text: &str) -> Result<Every, String> {
    let every = match numbers::count(text) {
        Ok(accesses) => Some(Every::Accesses(accesses)),
        Err(_) => parse_duration(text).ok().map(|time| Every::Nanoseconds(time.as_nanos() as u64)),
    };
    let every = every.filter(|every| !matches!(every, Every::Accesses(0) | Every::Nanoseconds(0)));
    every.ok_or_else(|| {
        "expected a number of accesses, such as 500k or 10M, or a time in us, ms, s or min, such as 10ms"
            .to_string()
    })
}
