//! `memlode validate`: is the model's ranking that of a clock?

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Parser, ValueHint};
use memlode_attribute::CostModel;
use memlode_attribute::setup::Setup;
use memlode_machine::Machine;
use memlode_measure::process::{Launch, RunLimits};
use memlode_measure::validate::{LineCost, ModelledCosts, SourceLine, Validation, validate};
use memlode_report::Numbers;
use memlode_report::build::{report, timing};
use memlode_report::names::demangle;
use memlode_report::render::measured::validate as words;

use crate::analyse::{Found, Job, Wanted, open};
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::times::parse_duration;
use crate::host;
use crate::kept::{Answer, KeepArgs, question};
use crate::print::{print, print_json};
use crate::status::OK;
use crate::stop::stop_on_signals;
use crate::{itself, term};

/// Compare the modelled cost of each line with samples of a timer
///
/// Records the program, times the same program without memlode's recording twice, and compares the shares of the lines
/// that touch memory.
#[derive(Debug, Parser)]
#[command(override_usage = "memlode validate [OPTIONS] [--native PROGRAM] -- PROGRAM ARGS…", after_help = AFTER_HELP)]
pub struct Args {
    /// The program built without memlode, which is timed [default: the recorded program, started by itself]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath)]
    native: Option<OsString>,
    /// Compare with this trace, and record nothing
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// File that the program reads on standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// A timed run that takes longer is an error
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Lines to show
    #[arg(long, value_name = "N", default_value = "15", value_parser = numbers::small_count)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
    /// The program built by memlode, and its arguments, which both programs get
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", value_hint = ValueHint::AnyPath)]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
  memlode validate --native ./prog-plain -- ./prog input

What the columns mean, and the JSON: docs/validate.md.
Exit status: 0 success, 1 a program cannot be run, timed or compared, 2 wrong usage, 130 interrupted.";

/// `given` is what `args` was made of.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let machine = host::machine(&args.machine.machine)?;
    let found = match &args.trace {
        Some(directory) => {
            let trace = open(directory)?;
            let question = question::<Args>("validate", given, &[&machine]);
            args.keep.answer(question, &[&trace], || timed(&args, directory, &machine))?
        }
        // What is recorded for this is gone afterwards, and what was found out about it, too.
        None => {
            let scratch = tempfile::tempdir().context("cannot make a folder for the trace")?;
            timed(&args, &record(&args, scratch.path())?, &machine)?
        }
    };
    show(&args, &found, &machine)?;
    Ok(ExitCode::from(OK))
}

impl Answer for Validation {
    /// Each line has a share by each model.
    fn is_sound(&self) -> bool {
        let mut models = self.models.iter().map(|judged| &judged.model).filter(|name| *name != "timer2");
        models.all(|model| self.lines.iter().all(|row| row.models.contains_key(model)))
    }
}

/// Times the program, and holds the models of a trace against that.
fn timed(args: &Args, trace: &Path, machine: &Machine) -> Result<Validation> {
    let models = models(trace, &args.machine.machine, machine)?;
    let mut words = args.command.clone();
    if let Some(native) = &args.native {
        words[0] = native.clone();
    }
    let launch = Launch { words, input: args.input.clone(), ..Launch::default() };
    let stop = stop_on_signals()?;
    term::line(words::PROGRESS);
    let mut found = validate(&launch, &models, RunLimits { stop: &stop, longest: args.time_limit })?;
    found.functions.iter_mut().for_each(|function| function.function = demangle(&function.function));
    Ok(found)
}

fn show(args: &Args, found: &Validation, machine: &Machine) -> Result<()> {
    if args.json {
        #[derive(serde::Serialize)]
        struct Document<'a> {
            format: &'static str,
            version: u32,
            machine: &'a str,
            #[serde(flatten)]
            found: &'a Validation,
        }
        return print_json(&Document {
            format: "memlode validate",
            version: 1,
            machine: &machine.name,
            found,
        });
    }
    let shown = words::text(found, args.top, term::width(&std::io::stdout()));
    print(&shown.lines().map(|line| memlode_report::text::printable(line) + "\n").collect::<String>())
}

/// Records the program into a new folder inside `scratch`.
fn record(args: &Args, scratch: &Path) -> Result<PathBuf> {
    let trace = scratch.join("trace");
    let status = itself::record(&args.command, args.input.as_deref(), None, &trace)?;
    if !status.success() {
        let program = args.command[0].to_string_lossy();
        bail!("recording `{program}` ended with {status}, and a program that fails is not compared");
    }
    Ok(trace)
}

/// Returns the models' costs of a trace.
fn models(trace: &Path, name: &str, machine: &Machine) -> Result<Vec<ModelledCosts>> {
    let job = Job::new(name, |_| Ok(Wanted::Report(None)))?;
    let analysed = job.run(Arc::new(open(trace)?))?;
    let Found::Report(profile, _, sharing) = &analysed.found else { bail!("a report was asked for") };
    let costs_of = CostModel::new(profile, analysed.trace.sites(), machine);
    let report = report(analysed.inputs(profile, &costs_of, sharing.as_deref()));
    let clock_hz = machine.costs.clock_ghz.value * 1e9;
    let by = |name, cycles: fn(&Numbers) -> f64| ModelledCosts {
        name,
        lines: costs(report.lines.iter().map(|row| {
            let at = &row.subject.position;
            (&at.file, at.line, &at.function, cycles(&row.numbers))
        })),
        seconds: Some(cycles(&report.total.numbers) / clock_hz),
    };
    let job = Job::new(name, |machine| Ok(Wanted::Timing(Box::new(Setup::of(machine)))))?;
    let timed = job.run(Arc::new(open(trace)?))?;
    let Found::Timing(profile) = &timed.found else { bail!("times were asked for") };
    let timing = timing(&timed.trace, machine, profile, &timed.replayed);
    let rows = timing.lines.iter().map(|row| {
        let at = &row.subject.position;
        (&at.file, at.line, &at.function, row.numbers.cycles)
    });
    Ok(vec![
        by("lru", |numbers| numbers.stall_cycles as f64),
        by("report", |Numbers { wait, .. }| wait.cycles + wait.first_touch_cycles + wait.instruction_cycles),
        ModelledCosts { name: "sim_time", lines: costs(rows), seconds: Some(timing.total.numbers.ms / 1e3) },
    ])
}

/// The cycles of rows that have a source line: its file, number and function.
type LineCycles<'a> = (&'a Option<String>, Option<u32>, &'a String, f64);

fn costs<'a>(rows: impl Iterator<Item = LineCycles<'a>>) -> Vec<LineCost> {
    let costs = rows.filter_map(|(file, line, function, cost)| {
        let line = SourceLine { file: file.clone()?, line: line? };
        Some(LineCost { line, function: function.clone(), cost })
    });
    costs.collect()
}
