//! `memlode sim`: the behaviour of each cache of a machine.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, Parser};
use memlode_attribute::has_gaps;
use serde_json::json;

use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::order::OrderArgs;
use crate::args::part::PartArgs;
use crate::args::setup::SetupArgs;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::print::{print, print_json};
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;

/// Simulate a machine's caches on a trace: what missed, why, and how much of the fetched lines was used
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.",
    mut_arg("by", |by| by.help("Tables to show, of functions and threads with --time only [default: data, with --time line]")),
    mut_arg("threads", |threads| {
        threads
            .help("Say besides what threads lose to each other: as if each had a core of its own, or none earlier than it was recorded")
            .conflicts_with("time")
    }),
    mut_args(PartArgs::hidden)
)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Say how long accesses take and what they wait for, by a model of the core beside exact LRU caches: chains, window, fill
    /// buffers, bandwidth, walks, stores in flight
    #[arg(long, conflicts_with_all = ["rules", "placement"])]
    time: bool,
    /// List the machines known by name
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
    /// Accepted, so that users who try it learn where it is.
    #[command(flatten)]
    part: PartArgs,
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    if args.list {
        list(args.json)?;
        return Ok(ExitCode::from(OK));
    }
    if !args.part.is_all() {
        bail!(
            "why accesses missed is told of whole traces: --between, --function, --file and --thread are options of \
             `memlode report`"
        );
    }
    if let Some(table) = args.shape.without_causes().filter(|_| !args.time) {
        let why =
            format!("there is no table of causes by {table}: there are line, data, field, type and object");
        Args::command().bin_name("memlode sim").error(ErrorKind::ArgumentConflict, why).exit();
    }
    let setup = |machine: &_| {
        let setup = Box::new(args.setup.of(machine)?);
        Ok(if args.time { Wanted::Timing(setup) } else { Wanted::Simulation(setup, args.order.order()) })
    };
    let job = Job::new(&args.machine.machine, setup)?;
    let trace = Arc::new(args.trace.open()?);
    if args.time && has_gaps(&trace) {
        bail!(
            "{}: recorded in bursts, and what was executed between them is not known: --time needs a whole trace",
            trace.directory().display()
        );
    }
    let question = question::<Args>("sim", given, &[&job.machine]);
    let answer = args.keep.answer(question, &[&trace], || Ok(job.run(trace.clone())?.answer()))?;
    show(&answer, &args.shape, None, args.json, Out::Stdout)?;
    Ok(ExitCode::from(OK))
}

fn list(json: bool) -> Result<()> {
    let machines: Vec<_> = std::iter::once("host")
        .chain(memlode_machine::names())
        .map(memlode_machine::Machine::find)
        .collect::<Result<_, _>>()?;
    if json {
        let machines: Vec<_> = machines
            .iter()
            .map(|m| {
                json!({
                    "name": m.name,
                    "description": m.description,
                    "sources": m.sources,
                    "file_hash": m.file_hash,
                })
            })
            .collect();
        return print_json(&machines);
    }
    let width = machines.iter().map(|machine| machine.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        machines.iter().map(|m| format!("{:width$}  {}\n", m.name, m.description)).collect();
    print(&lines.concat())
}
