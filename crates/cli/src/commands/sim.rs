//! `memlode sim`: what each cache of a machine would have answered.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use super::report::MachineArgs;
use super::{OK, print, print_json};
use crate::analyse::{Job, Wanted};
use crate::args::part::PartArgs;
use crate::args::setup::SetupArgs;
use crate::args::traces::TraceArgs;
use crate::show::{Out, ShapeArgs, TableName};

/// Simulate a machine's caches on a trace: what missed, why, and how much of the fetched lines was used
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.",
    mut_arg("by", tables),
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
    /// List the machines known by name
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Known, so that who asks for it hears where it is.
    #[command(flatten)]
    part: PartArgs,
}

/// The tables that there are, and the one that is shown if none is asked for.
fn tables(by: clap::Arg) -> clap::Arg {
    let table = |name: String| <TableName as clap::ValueEnum>::from_str(&name, false);
    by.value_parser(PossibleValuesParser::new(TableName::OF_CAUSES).try_map(table))
        .help("Tables to show [default: data]")
}

pub fn run(args: Args) -> Result<ExitCode> {
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
    let setup = |machine: &_| Ok(Wanted::Simulation(Box::new(args.setup.of(machine)?)));
    let job = Job::new(&args.machine.machine, setup)?;
    job.run(args.trace.open()?)?.show(&args.shape, args.json, Out::Stdout)?;
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
