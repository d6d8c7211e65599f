//! `memlode diff`: what changed from one trace to another, or from one machine to another.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use memlode_machine::Machine;
use memlode_report::build;
use memlode_report::render::terminal::By;
use memlode_report::render::{json, terminal};
use memlode_trace::Trace;

use super::OK;
use super::report::{MachineArgs, OrderArgs};
use crate::args::setup::SimArgs;
use crate::baseline;
use crate::show::{Out, ShapeArgs};

/// Compare two traces, or one on two machines, by member, line, object and type
#[derive(Debug, Parser)]
#[command(
    after_help = "Rows are aligned by name: of the data, of the function and of the allocation's callers, not by line.\n\n\
                  Exit status: 0 success, 1 a trace or a machine cannot be used, 2 wrong usage."
)]
pub struct Args {
    /// The trace before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The trace after; the same one if it is left out, on another machine
    #[arg(value_name = "AFTER", required_unless_present = "other_machine")]
    after: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// The machine of AFTER [default: that of BEFORE]
    #[arg(long, value_name = "M")]
    other_machine: Option<String>,
    #[command(flatten)]
    sim: SimArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let machine = Machine::find(&args.machine.machine)?;
    let other = Machine::find(args.other_machine.as_ref().unwrap_or(&args.machine.machine))?;
    let after = args.after.as_ref().unwrap_or(&args.before);
    // Both are opened before minutes of work on one.
    let (before, after) = (Trace::open(&args.before)?, Trace::open(after)?);
    let setups = (args.sim.of(&machine)?, args.sim.of(&other)?);
    let before = baseline::count(before, machine, setups.0, args.order.order())?;
    let after = baseline::count(after, other, setups.1, args.order.order())?;
    let cycles = [&before, &after].map(|side| side.cycles().run);
    let noise = before.noise()?.range();
    let [before_report, after_report] = [&before, &after].map(build::what_if::baseline);
    let found = build::comparison(&before_report, &after_report, cycles, Some(noise));
    let text = match args.json {
        true => json::comparison(&found)?,
        false => {
            terminal::comparison(&found, &args.shape.tables(By::Data), Out::Stdout.style(args.shape.top()))
        }
    };
    Out::Stdout.write(&text, args.json)?;
    Ok(ExitCode::from(OK))
}
