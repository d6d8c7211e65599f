//! `memlode html`: the report as a page.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Parser, ValueHint};

use super::report;
use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::order::OrderArgs;
use crate::args::traces::TraceArgs;
use crate::kept::{KeepArgs, question};
use crate::next::{ConfidentialArgs, NextCommands};
use crate::page::{ExtraArgs, Subject};
use crate::status::OK;
use crate::{page, term};

/// Draw the report as a page for a browser: one file, which loads nothing from anywhere
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used or the file not written, 2 wrong usage."
)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// The file to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    extras: ExtraArgs,
    #[command(flatten)]
    confidential: ConfidentialArgs,
    #[command(flatten)]
    keep: KeepArgs,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Report(args.order.order())))?;
    let trace = Arc::new(args.trace.open()?);
    let next = NextCommands::new(trace.directory(), &args.machine.machine);
    let machine = job.machine.clone();
    let mut counted = None;
    let compute = || {
        let analysed = job.run(trace.clone())?;
        Ok(counted.insert(analysed).answer())
    };
    // As `memlode report` would, if it is asked in the same way.
    let report = match args.order.order() {
        None => {
            args.keep.answer(question::<report::Args>("report", None, &[&machine]), &[&trace], compute)?
        }
        Some(_) => compute()?,
    };
    let subject = Subject {
        trace: &trace,
        machine: &machine,
        counted: counted.as_ref(),
        keep: args.keep,
        confidential: &args.confidential,
    };
    page::write(&subject, report, &args.extras, &next, &args.output)?;
    term::line(&format!("{} is the report: open it in a browser", args.output.display()));
    Ok(ExitCode::from(OK))
}
