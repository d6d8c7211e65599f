//! `memlode diff`: what changed from one trace to another, from one machine to another, or from one file of `memlode stat`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{ArgMatches, Parser};
use memlode_report::{CommandAnswer, CommandFindings};
use memlode_trace::Trace;

use crate::args::machine::MachineArgs;
use crate::args::only::OnlyArgs;
use crate::args::order::OrderArgs;
use crate::args::setup::SimArgs;
use crate::baseline;
use crate::host;
use crate::kept::{KeepArgs, question};
use crate::sampled;
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;

/// Compare two traces, or one on two machines, by member, line, object and type; or two files of `memlode stat`
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
    only: OnlyArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    #[cfg(feature = "measure")]
    if let Some(after) = args.after.as_ref().filter(|after| args.before.is_file() || after.is_file()) {
        return files(&args.before, after, args.json);
    }
    if let Some(after) =
        args.after.as_ref().filter(|after| [&args.before, after].iter().any(|side| sampled::is_sampled(side)))
    {
        sampled::refuse_others::<Args>(&args.before, given, &[])?;
        return sampled::compare(&args.before, after, args.shape.top(), args.json);
    }
    let machine = host::machine(&args.machine.machine)?;
    let other = host::machine(args.other_machine.as_ref().unwrap_or(&args.machine.machine))?;
    let after = args.after.as_ref().unwrap_or(&args.before);
    // Both are opened before minutes of work on one.
    let traces = (Arc::new(Trace::open(&args.before)?), Arc::new(Trace::open(after)?));
    let setups = (args.sim.of(&machine)?, args.sim.of(&other)?);
    let question = question::<Args>("diff", given, &[&machine, &other]);
    let compute = || {
        let before = baseline::count(traces.0.clone(), machine, setups.0, args.order.order())?;
        let after = baseline::count(traces.1.clone(), other, setups.1, args.order.order())?;
        let found = baseline::compared([&before, &after])?;
        let notes = [&before, &after].map(baseline::notes).concat();
        Ok(CommandAnswer { notes, ..CommandFindings::Comparison(Box::new(found)).into() })
    };
    let mut answer = args.keep.answer(question, &[&traces.0, &traces.1], compute)?;
    args.only.keep(&mut answer)?;
    show(&answer, &args.shape, None, args.json, Out::Stdout)?;
    Ok(ExitCode::from(OK))
}

/// Compares two files of `memlode stat`.
#[cfg(feature = "measure")]
fn files(before: &std::path::Path, after: &std::path::Path, json: bool) -> Result<ExitCode> {
    let (Some(before), Some(after)) = (super::stat::read(before)?, super::stat::read(after)?) else {
        anyhow::bail!(
            "{} and {} cannot be compared: one is a trace, the other a file of `memlode stat`",
            before.display(),
            after.display()
        );
    };
    super::stat::difference(&before, &after, json)?;
    Ok(ExitCode::from(OK))
}
