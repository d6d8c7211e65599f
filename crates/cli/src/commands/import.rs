//! `memlode import`: what a recording of `perf` says, in the words of `memlode sample`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use memlode_report::text::printable;
use memlode_sample::perf_data::{Imported, import};
use memlode_sample::{report, resolve};

use super::sample::{FEW, KeepSamplesArgs};
use crate::args::numbers;
use crate::sampled::show;
use crate::status::OK;
use crate::term;

/// Read a recording of `perf record`: its samples by member, line and function
///
/// Made by any perf, on any x86-64 machine. Programs are read from where they were, or below --root; types and members
/// come from their debug information. Where samples say which cache or memory data came from, and how long that took
/// (`perf mem record`, `perf c2c record`), the report does.
#[derive(Debug, Parser)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The recording
    #[arg(value_name = "FILE", default_value = "perf.data")]
    file: PathBuf,
    /// The event to report; without this those that say where data came from, or else the one with most samples
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// The folder below which the machine's files are that was recorded
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value = "15", value_parser = numbers::small_count)]
    top: usize,
    #[command(flatten)]
    keep: KeepSamplesArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
  perf record -g -- ./prog input && memlode import
  perf mem record -- ./prog input && memlode import --event cpu/mem-loads/P

What the columns mean, and the JSON: docs/sample.md.";

pub fn run(args: Args) -> Result<ExitCode> {
    args.keep.refuse_occupied()?;
    let Imported { sampled, source, others } =
        import(&args.file, args.event.as_deref(), args.root.as_deref())?;
    let recording = resolve(&sampled, &source);
    args.keep.keep(&recording, &[])?;
    let report = report(&recording);
    show(&report, args.top, args.json)?;
    if args.json {
        return Ok(ExitCode::from(OK));
    }
    for (name, samples) in others {
        let name = printable(&name).into_owned();
        term::note(&format!(
            "{samples} samples of another event are left out: --event '{name}' reports them"
        ));
    }
    if report.samples < FEW {
        term::note("so few samples say little: record for longer, or more often");
    }
    Ok(ExitCode::from(OK))
}
