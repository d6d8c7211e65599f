//! `memlode timeline`: how misses change while the program runs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_analyses::events::Analysis;
use memlode_analyses::timeline::{Every, Timeline};

use super::OK;
use super::report::MachineArgs;
use crate::accesses;
use crate::times::parse_duration;

/// Say how accesses, misses and waiting change while the program runs, interval by interval
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    /// The trace directory that `run` or `record` made
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    #[command(flatten)]
    machine: MachineArgs,
    /// Length of an interval: so many accesses, as in 10M, or so long, as in 10ms of the recorded run
    #[arg(long, value_name = "LENGTH", value_parser = every, default_value = "1M")]
    every: Every,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let every = args.every;
    let analyses = |trace: &memlode_trace::Trace| {
        if matches!(every, Every::Nanoseconds(_)) && trace.clock().is_none() {
            bail!(
                "{} does not say how fast its time stamps go, as a whole trace of this version does: take intervals of \
                 so many accesses, as in --every 10M, or record it again",
                trace.directory().display()
            );
        }
        Ok(vec![Box::new(Timeline::new(every)) as Box<dyn Analysis>])
    };
    accesses::run(&args.trace, &args.machine.machine, analyses, usize::MAX, args.json)?;
    Ok(ExitCode::from(OK))
}

/// `1000`, `10k`, `10M`, `1G`; `10ms`, `1s`.
fn every(text: &str) -> Result<Every, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let scale = match text[digits..].trim() {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        _ => None,
    };
    let every = match scale {
        Some(scale) => {
            text[..digits].parse().ok().and_then(|n: u64| n.checked_mul(scale)).map(Every::Accesses)
        }
        None => parse_duration(text).ok().map(|time| Every::Nanoseconds(time.as_nanos() as u64)),
    };
    let every = every.filter(|every| !matches!(every, Every::Accesses(0) | Every::Nanoseconds(0)));
    every.ok_or_else(|| {
        "expected a number of accesses, such as 500k or 10M, or a time in us, ms, s or min, such as 10ms"
            .to_string()
    })
}
