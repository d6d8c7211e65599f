//! `memlode annotate`: source lines with what their accesses did.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, ValueHint};
use memlode_machine::Machine;
use memlode_report::render::terminal::LineEvent;
use memlode_report::render::{json, terminal};
use memlode_report::text::printable;
use memlode_report::{
    CommandAnswer, CommandFindings, NamedSimulation as Simulation, Report, SiteCounts, WantedLines, listing,
};
use memlode_trace::Trace;

use super::report;
use super::sim;
use crate::analyse::{Found, Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::traces::TraceArgs;
use crate::kept::{self, KeepArgs, question};
use crate::next::{ConfidentialArgs, NextCommands};
use crate::sampled_lines::SampledLines;
use crate::show::Out;
use crate::status::OK;
use crate::{code, sampled, term};

/// Functions with this part of the cycles are listed if nothing is requested.
const HOT: f64 = 0.01;

/// Show source lines with the accesses, misses and modelled cycles of each beside it
#[derive(Debug, Parser)]
#[command(
    override_usage = "memlode annotate [OPTIONS] [DIR] [FILE[:LINE]]\n       memlode annotate [OPTIONS] [DIR] --function NAME",
    after_help = AFTER_HELP
)]
pub struct Args {
    /// The trace directory [default: the newest one here], and a source file: its path, or its last components
    #[arg(value_name = "DIR] [FILE[:LINE]", num_args = 0..=2)]
    words: Vec<PathBuf>,
    /// The lines of this function
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Columns beside the lines: share, cycles, wait, accesses, reads, writes, misses, those of a level as in L2, cause, unused,
    /// data
    #[arg(
        long,
        value_name = "EVENT",
        value_delimiter = ',',
        default_value = "share,accesses,misses,cycles,cause,unused"
    )]
    events: Vec<String>,
    /// Lines without accesses that are shown around others
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    context: u32,
    /// Show the instructions beneath each line, with the accesses of those that can be distinguished
    #[arg(long)]
    asm: bool,
    /// Take the instructions of this program: the same sources, compiled without memlode [default: of the recorded one]
    #[arg(long, value_name = "BIN", requires = "asm", value_hint = ValueHint::FilePath)]
    native: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    confidential: ConfidentialArgs,
    #[command(flatten)]
    keep: KeepArgs,
}

const AFTER_HELP: &str = "\
Without FILE or --function: the functions that have 1% of the modelled cycles or more. Causes and unused bytes are those that \
`memlode sim` found of the same trace and machine, if it was asked before.
Exit status: 0 success, 1 the trace or the machine cannot be used, or nothing is accessed there, 2 wrong usage.
Of samples: share, ±, samples, loads, stores, cycles, source, data; an instruction has its own samples.
docs/annotate.md explains the columns.";

/// Options of samples, besides those of reports.
const OF_SAMPLES: [&str; 5] = ["words", "function", "events", "context", "asm"];

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let (directory, file) = subject(&args.words)?;
    let wanted = match (file, &args.function) {
        (Some(_), Some(_)) => bail!("a file and --function are two questions: ask one of them"),
        (Some(file), None) => listed(&file),
        (None, Some(name)) => WantedLines::Function(name.clone()),
        (None, None) => WantedLines::Hot(HOT),
    };
    let directory = TraceArgs::of(directory).find()?;
    if sampled::is_sampled(&directory) {
        sampled::refuse_others::<Args>(&directory, given, &OF_SAMPLES)?;
        let are_named =
            given.is_some_and(|given| given.value_source("events") == Some(ValueSource::CommandLine));
        let lines = SampledLines {
            wanted: &wanted,
            events: if are_named { &args.events } else { &[] },
            context: args.context,
            with_code: args.asm,
            as_json: args.json,
            confidential: &args.confidential,
        };
        return lines.show(&directory);
    }
    let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Report(None)))?;
    let trace = Arc::new(Trace::open(&directory)?);
    let machine = job.machine.clone();
    let mut counts = None;
    let question = question::<report::Args>("report", None, &[&machine]);
    let answer = match args.asm {
        false => args.keep.answer(question, &[&trace], || Ok(job.run(trace.clone())?.answer()))?,
        true => {
            // What single instructions did, no report says.
            let analysed = job.run(trace.clone())?;
            let answer = analysed.answer();
            if !args.keep.no_keep {
                kept::keep(question, &trace, &answer);
            }
            if let Found::Report(profile, ..) = &analysed.found {
                counts = Some(SiteCounts::of(&trace, &machine, profile));
            }
            answer
        }
    };
    let CommandFindings::Report(report) = answer.found else { bail!("lines are listed of a report") };
    let events = LineEvent::named(&args.events, &report.machine).map_err(|why| anyhow!(why))?;
    let simulation = causes(&trace, &machine);
    let mut sources = args.confidential.sources(&trace, 0)?;
    let mut found = listing(&report, simulation.as_ref(), &mut sources, &wanted, args.context);
    if found.parts.is_empty() {
        bail!("{}", nothing(&report, &wanted));
    }
    if let Some(counts) = counts {
        code::add(&mut found, &wanted, &counts, &trace, args.native.as_deref())?;
    }
    if args.json {
        Out::Stdout.write(&json::listing(&found)?, true)?;
        return Ok(ExitCode::from(OK));
    }
    let is_cause = |event: &LineEvent| matches!(event, LineEvent::Cause | LineEvent::Unused);
    let told: Vec<LineEvent> =
        events.iter().copied().filter(|event| found.has_causes || !is_cause(event)).collect();
    Out::Stdout.write(&terminal::listing(&found, &told, Out::Stdout.style(0)), false)?;
    if told.len() < events.len() {
        let next = NextCommands::new(trace.directory(), &args.machine.machine);
        term::line(&format!("`{}` finds out why lines missed, and the next listing says it", next.of("sim")));
    }
    Ok(ExitCode::from(OK))
}

/// The trace and the file that are meant by one word or two.
fn subject(words: &[PathBuf]) -> Result<(Option<PathBuf>, Option<PathBuf>)> {
    match words {
        [] => Ok((None, None)),
        [one] if one.is_dir() => Ok((Some(one.clone()), None)),
        [one] => Ok((None, Some(one.clone()))),
        [trace, file, ..] => Ok((Some(trace.clone()), Some(file.clone()))),
    }
}

/// `arc.c`, `src/arc.c:51`.
fn listed(file: &Path) -> WantedLines {
    let text = file.to_string_lossy();
    match text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) if !file.is_empty() => WantedLines::File(file.to_string(), Some(line)),
        _ => WantedLines::File(text.into_owned(), None),
    }
}

/// The causes of the trace's misses, if an earlier command computed them.
fn causes(trace: &Trace, machine: &Machine) -> Option<Simulation> {
    match kept::find(question::<sim::Args>("sim", None, &[machine]), trace) {
        Some(CommandAnswer { found: CommandFindings::Simulation(found), .. }) => Some(*found),
        _ => None,
    }
}

/// The reason why nothing is listed, and what could be.
fn nothing(report: &Report, wanted: &WantedLines) -> String {
    let positions = report.lines.iter().flat_map(|row| {
        let own = &row.subject.position;
        [Some(own), own.inlined_into.as_deref()].into_iter().flatten()
    });
    let some = |all: Vec<String>| {
        let mut known = BTreeSet::new();
        let distinct = all.into_iter().filter(|name| known.insert(name.clone()));
        distinct.take(5).map(|name| printable(&name).into_owned()).collect::<Vec<_>>().join(", ")
    };
    match wanted {
        WantedLines::Hot(_) => {
            "no function has 1% of the modelled cycles: name a file, or a function by --function".into()
        }
        WantedLines::Function(name) => {
            let functions = positions.map(|position| position.function.clone()).collect();
            format!(
                "nothing is accessed in a function {}: the costliest are {}",
                printable(name),
                some(functions)
            )
        }
        WantedLines::File(file, line) => {
            let whole = WantedLines::File(file.clone(), None);
            let in_file: Vec<u32> = positions
                .clone()
                .filter(|position| whole.is_at(position))
                .filter_map(|position| position.line)
                .collect();
            match line {
                Some(line) if !in_file.is_empty() => {
                    let mut near = in_file;
                    near.sort_unstable_by_key(|known| (known.abs_diff(*line), *known));
                    let near = some(near.iter().map(u32::to_string).collect());
                    format!(
                        "nothing is accessed at line {line} of {}: the nearest lines are {near}",
                        printable(file)
                    )
                }
                _ => {
                    let files = positions.filter_map(|position| position.file.clone()).collect();
                    format!(
                        "nothing is accessed in a file {}: the costliest are {}",
                        printable(file),
                        some(files)
                    )
                }
            }
        }
    }
}
