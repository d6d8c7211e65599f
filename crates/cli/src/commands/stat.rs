//! `memlode stat`: events of the kernel and ratios of the processor's counters, run by run.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_attribute::has_gaps;
use memlode_attribute::setup::Setup;
use memlode_counters::kernel::Linux;
use memlode_counters::stat::{FORMAT, FunctionTable, Stat, VERSION};
use memlode_counters::table::EventTable;
use memlode_machine::Machine;
use memlode_measure::process::{AddressLayout, CountedRegion, RunLimits, StopFlag};
use memlode_measure::stat::{StatError, StatPlan, compare, not_run, sampled_functions, stat, stat_of_region};
use memlode_report::build;
use memlode_report::render::terminal;
use memlode_sample::{SampleSource, name, sample_event};
use memlode_trace::Trace;

use super::bench::fresh_seed;
use crate::analyse::{Found, Job, Wanted, open};
use crate::args::launch::LaunchArgs;
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::setup::SetupArgs;
use crate::args::times::parse_duration;
use crate::host;
use crate::install::Install;
use crate::print::print_json;
use crate::show::Out;
use crate::status::OK;
use crate::stop::stop_on_signals;
use crate::{itself, term};

/// Bytes of the largest file of `memlode stat` that is read.
const MOST: u64 = 64 << 20;

/// Count what a program does, as ratios that do not depend on the length of its run
///
/// Runs the program several times, with as many of the processor's counters as count at the same time. What cannot be counted
/// here is simulated from a trace, and is labelled so, or is named as missing.
#[derive(Debug, Parser)]
#[command(
    override_usage = "memlode stat [OPTIONS] [--trace DIR] -- PROGRAM ARGS…\n       memlode stat [OPTIONS] -p PID\n       \
                      memlode stat [OPTIONS] --trace DIR",
    after_help = AFTER_HELP
)]
pub struct Args {
    /// Observe this process, for some time, in the place of a program
    #[arg(long, short, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// Count only between memlode_start("NAME") and memlode_stop("NAME") of <memlode.h>
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "trace", "per_function"])]
    region: Option<String>,
    /// With --pid: the length of each stretch that is counted
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = parse_duration, requires = "pid")]
    stretch: Duration,
    /// Rounds: each has a run, or a stretch, for each group of events that can be counted at the same time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Time after which no round begins
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Take the processor to have the events of this table [default: that of its model]
    #[arg(long, value_name = "NAME")]
    events: Option<String>,
    /// Simulate what is not counted from this trace; without a program, all [default: of a program built by memlode, one is recorded
    /// and removed]
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Simulate nothing
    #[arg(long, conflicts_with = "trace")]
    no_simulation: bool,
    /// Say what each function has of it, too: from samples of each event, in one more run for each, and simulated
    #[arg(long, conflicts_with = "pid")]
    per_function: bool,
    /// Rows of the tables of functions
    #[arg(long, value_name = "N", default_value = "15", value_parser = numbers::small_count, requires = "per_function")]
    top: usize,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    setup: SetupArgs,
    /// Write the result to a file, for `memlode diff`
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    how: LaunchArgs,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present_any = ["pid", "trace"],
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
  memlode stat -o before.stat -- ./before input
  memlode stat -o after.stat -- ./after input
  memlode diff before.stat after.stat
  memlode stat --region solve -- ./before input

What the ratios mean, and which are simulated: docs/stat.md.
Exit status: 0 success, 1 nothing can be counted or the program fails, 2 wrong usage, 130 interrupted.";

pub fn run(args: Args) -> Result<ExitCode> {
    let machine = host::machine(&args.machine.machine)?;
    let table = match &args.events {
        Some(name) => Some(EventTable::named(name)?),
        None => EventTable::of(&Machine::host().identities),
    };
    let plan = StatPlan {
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        pid: args.pid,
        table,
        rounds: args.rounds as usize,
        time: args.time_limit,
        seed: args.how.seed.unwrap_or_else(fresh_seed),
    };
    if let Some(directory) = &args.trace {
        // Minutes of runs are not to be in vain.
        whole_trace(directory)?;
    }
    let stop = stop_on_signals()?;
    let mut found = match &args.trace {
        Some(trace) if args.command.is_empty() && args.pid.is_none() => {
            not_run(open(trace)?.manifest().info.command.clone())
        }
        _ => counted(&args, &plan, &stop)?,
    };
    if args.per_function && !args.command.is_empty() {
        found.functions.push(sampled(&args, plan.table.as_ref(), &found, &stop)?);
    }
    if !args.no_simulation && (found.lacks_ratios() || args.per_function) {
        simulate(&args, &machine, &mut found)?;
    }
    if let Some(file) = &args.output {
        let text = serde_json::to_string_pretty(&found)? + "\n";
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.how.json {
        print_json(&found)?;
    } else {
        Out::Stdout.write(&terminal::stat(&found, Out::Stdout.style(args.top)), false)?;
    }
    Ok(ExitCode::from(OK))
}

fn counted(args: &Args, plan: &StatPlan, stop: &StopFlag) -> Result<Stat> {
    let launch = args.how.launch(&args.command);
    let limits = RunLimits { stop, longest: Duration::MAX };
    let found = match &args.region {
        Some(name) => {
            let library = Install::find()?.runtime();
            let start = |descriptors: &[RawFd]| {
                let region = CountedRegion { name, descriptors, library: &library };
                launch.start(AddressLayout::GIVEN, Some(&region))
            };
            let mut finish = |started| launch.finish(started, limits).map(|sample| sample.wall);
            stat_of_region(plan, name, &Linux, &start, &mut finish)
        }
        None => stat(plan, &Linux, &mut |_| match args.pid {
            None => launch.run(AddressLayout::GIVEN, limits).map(|sample| sample.wall),
            Some(pid) => memlode_measure::process::pass(pid, args.stretch, stop),
        }),
    };
    found.map_err(|why| match why {
        StatError::Run(error) => error.into(),
        StatError::Refused(refused) => anyhow::anyhow!("nothing is counted: {}", terminal::refusal(&refused)),
        StatError::NoRegion(name) => anyhow::anyhow!(
            "the program never was between memlode_start(\"{name}\") and memlode_stop(\"{name}\"): include <memlode.h> \
             (docs/control.md), and link the program dynamically or build it by memlode"
        ),
    })
}

/// Samples each event that was counted, in a run of its own.
fn sampled(args: &Args, table: Option<&EventTable>, found: &Stat, stop: &StopFlag) -> Result<FunctionTable> {
    let launch = args.how.launch(&args.command);
    let limits = RunLimits { stop, longest: Duration::MAX };
    sampled_functions(table, found, &mut |wanted| {
        let run = || launch.run(AddressLayout::GIVEN, limits).map_err(anyhow::Error::from);
        let (_, places) = sample_event(wanted.event, wanted.period, run)?;
        let names = name(&places, SampleSource { is_time: false, ..SampleSource::default() });
        let samples = names.functions.into_iter().map(|row| {
            let function = if row.function.is_empty() { format!("({})", row.image) } else { row.function };
            (function, row.time.samples)
        });
        Ok(samples.collect())
    })
}

/// Puts simulated ratios where nothing was counted, if there is a trace or one can be made.
fn simulate(args: &Args, machine: &Machine, found: &mut Stat) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a folder for the trace")?;
    let directory = match &args.trace {
        Some(trace) => trace.clone(),
        None => match record(args, scratch.path())? {
            Some(directory) => directory,
            None => return Ok(()),
        },
    };
    let setup = |machine: &Machine| -> Result<Box<Setup>> { Ok(Box::new(args.setup.of(machine)?)) };
    let job = Job::new(&args.machine.machine, |machine| Ok(Wanted::Simulation(setup(machine)?, None)))?;
    let trace = match args.region {
        Some(_) => Arc::new(open(&directory)?),
        None => whole_trace(&directory)?,
    };
    let causes = job.run(trace.clone())?;
    let job = Job::new(&args.machine.machine, |machine| Ok(Wanted::Timing(setup(machine)?)))?;
    let timed = job.run(trace.clone())?;
    let (Found::Simulation(detailed, _), Found::Timing(times)) = (&causes.found, &timed.found) else {
        bail!("a simulation and times were asked for")
    };
    let Some(mut simulated) = build::simulated_ratios(&timed.trace, machine, detailed, times) else {
        term::note(
            "the trace does not say how many instructions were executed: no ratio can be simulated from it",
        );
        return Ok(());
    };
    if args.per_function {
        found.functions.push(build::simulated_functions(&timed.trace, machine, detailed, times));
    }
    if args.trace.is_none() {
        simulated.run.trace = None;
    }
    if args.region.is_some() {
        let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Report(None)))?;
        if let Found::Report(profile, ..) = job.run(trace)?.found {
            simulated.run.region = build::simulated_region(&profile, machine);
        }
    }
    found.simulate(&simulated.ratios, simulated.run);
    Ok(())
}

/// Opens a trace, of which ratios can be simulated.
fn whole_trace(directory: &Path) -> Result<Arc<Trace>> {
    let trace = open(directory)?;
    if has_gaps(&trace) {
        bail!("{}: recorded in bursts, and ratios are simulated of whole traces only", directory.display());
    }
    Ok(Arc::new(trace))
}

/// Records the program, or its region alone, if memlode built it; nothing else is known of others.
fn record(args: &Args, scratch: &Path) -> Result<Option<PathBuf>> {
    if args.pid.is_some() || !is_built_by_memlode(args) {
        return Ok(None);
    }
    term::line("recording once, for the ratios that nothing counts here");
    let trace = scratch.join("trace");
    let status = itself::record(&args.command, args.how.input.as_deref(), args.region.as_deref(), &trace)?;
    if !status.success() {
        let program = args.command[0].to_string_lossy();
        bail!("recording `{program}` ended with {status}: --no-simulation leaves it out");
    }
    Ok(Some(trace))
}

fn is_built_by_memlode(args: &Args) -> bool {
    let file = args.command.first().and_then(|word| crate::driver::toolchain::search_path(word));
    file.is_some_and(|file| memlode_symbols::ElfImage::read(&file).is_ok())
}

/// Reads a file that `memlode stat -o` wrote. None if it is a directory.
///
/// # Errors
/// If it cannot be read, or is something else.
pub fn read(path: &Path) -> Result<Option<Stat>> {
    if path.is_dir() {
        return Ok(None);
    }
    let named = || format!("{} cannot be used", path.display());
    let text = memlode_files::read_text(path, MOST).with_context(named)?;
    let what = || format!("{}: not a file that `memlode stat -o` wrote", path.display());
    let value: serde_json::Value = serde_json::from_str(&text).with_context(what)?;
    if value["format"] != FORMAT {
        bail!("{}", what());
    }
    if value["version"] != VERSION {
        bail!("{}: has version {} and this memlode reads {VERSION}", path.display(), value["version"]);
    }
    Ok(Some(serde_json::from_value(value).with_context(what)?))
}

/// Prints the differences between two files.
pub fn difference(before: &Stat, after: &Stat, json: bool) -> Result<()> {
    let found = compare(before, after, 0);
    if json {
        return print_json(
            &serde_json::json!({ "format": "memlode diff of stat", "version": 1, "comparison": found }),
        );
    }
    Out::Stdout.write(&terminal::stat_comparison(&found, Out::Stdout.style(0)), false)
}
