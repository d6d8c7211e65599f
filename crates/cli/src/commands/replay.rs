//! `memlode replay`: every access of a trace with what became of it, for other programs.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, Parser, ValueEnum, value_parser};
use memlode_analyses::Run;
use memlode_attribute::annotate::Annotations;
use memlode_export::ipc::StreamWriter;
use memlode_export::ndjson::LineWriter;
use memlode_export::request::start;
use memlode_export::{ArrowTable, BatchEncoder, ExportRequest};
use memlode_report::notes::{nothing_decoded, sentences};
use memlode_trace::Trace;

use crate::accesses;
use crate::analyse::{Job, Wanted};
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::setup::SetupArgs;
use crate::args::traces::TraceArgs;
use crate::destination::is_stdout;
use crate::door::{self, Door};
use crate::host;
use crate::kept::{KeepArgs, question};
use crate::show::{Out, ShapeArgs, show};
use crate::status::OK;
use crate::term;

/// Processes of `--processes` at most.
const MOST_PROCESSES: i64 = 1024;

/// Print or export every access with the names of what it touched and the level that served it
#[derive(Debug, Parser)]
#[command(
    after_help = "\
Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.
docs/replay.md lists the columns. Threads are interleaved as they ran, as far as they synchronised.",
    mut_args(with_causes)
)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Write every access, and of each
    #[arg(long, alias = "annotate", value_enum, value_name = "WHAT", required_unless_present = "analyse")]
    rows: Option<Rows>,
    /// Print what an analysis of every access finds instead; several may be given
    #[arg(long, value_name = "NAME[:ARGUMENTS]", conflicts_with_all = ["rows", "pages", "cores", "placement", "rules", "to", "format", "thread", "level", "misses_only", "limit"])]
    analyse: Vec<String>,
    /// The rule of --analyse shared: `source` is that of the paper it comes from
    #[arg(long, value_name = "RULE", value_parser = ["source"], requires = "analyse")]
    rule: Option<String>,
    /// Cut the trace into N parts for --analyse, and look at them in N processes
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MOST_PROCESSES), conflicts_with = "rows", requires = "analyse")]
    processes: Option<u32>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    setup: SetupArgs,
    /// Destination: a file, or - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    to: PathBuf,
    /// Output format [default: by the file's name; ndjson on a terminal, else arrow]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Accesses of one thread only: PROCESS.THREAD as in `memlode dump`, or THREAD of process 0
    #[arg(long, short, value_name = "T")]
    thread: Option<String>,
    /// Only those that these levels served, such as L2,memory
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', conflicts_with = "misses_only")]
    level: Vec<String>,
    /// Only those that missed in the first level
    #[arg(long)]
    misses_only: bool,
    /// Accesses at most
    #[arg(long, short = 'n', value_name = "N", value_parser = numbers::count)]
    limit: Option<u64>,
    /// Rows of each table of an analysis
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count, conflicts_with = "rows")]
    top: usize,
    /// Print what an analysis finds as JSON
    #[arg(long, conflicts_with = "rows")]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// The level that served it
    Hits,
    /// Why each level missed, too; several times as long
    Causes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// An Arrow IPC stream
    Arrow,
    /// One JSON object a line
    Ndjson,
}

/// The options that set a machine up have a heading of their own.
fn with_causes(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "again" | "no_keep" => option.conflicts_with("rows"),
        "pages" | "cores" | "placement" | "rules" => option.help_heading("With --rows causes"),
        _ => option,
    }
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let Some(what) = args.rows else {
        let mut analyses = Run::default();
        let mut questions = Vec::new();
        for wanted in &args.analyse {
            let wanted = match &args.rule {
                Some(rule) => with_rule(wanted, rule)?,
                None => wanted.clone(),
            };
            accesses::add(&mut analyses, &wanted)?;
            questions.push(accesses::in_digits(&wanted));
        }
        let job = Job::new(&args.machine.machine, |_| Ok(Wanted::Accesses(analyses)))?;
        let trace = Arc::new(args.trace.open()?);
        let question = question::<Args>("replay", given, &[&job.machine]);
        let answer = args.keep.answer(question, &[&trace], || match args.processes {
            Some(processes) => job.run_in_parts(&trace, &args.machine.machine, &questions, processes),
            None => Ok(job.run(trace.clone())?.answer()),
        })?;
        show(&answer, &ShapeArgs::rows(args.top), None, args.json, Out::Stdout)?;
        return Ok(ExitCode::from(OK));
    };
    let machine = host::machine(&args.machine.machine)?;
    let format = format(&args)?;
    let trace = Arc::new(args.trace.open()?);
    let causes = match what {
        Rows::Causes => Some(args.setup.of(&machine)?),
        Rows::Hits => {
            if let Some(given) = args.setup.first_given() {
                bail!("{given} is for --rows causes: `hits` are those that memlode report counts");
            }
            None
        }
    };
    let request = ExportRequest {
        causes,
        thread: args.thread,
        levels: args.level,
        misses_only: args.misses_only,
        limit: args.limit,
        ..ExportRequest::default()
    };
    let (annotations, encoder) = start(&trace, &machine, &request)?;
    if is_stdout(&args.to) {
        write(&trace, annotations, encoder, format, io::stdout().lock())?;
    } else {
        let named = || format!("{} cannot be written", args.to.display());
        let file = File::create(&args.to).with_context(named)?;
        write(&trace, annotations, encoder, format, file).with_context(named)?;
    }
    Ok(ExitCode::from(OK))
}

/// A requested analysis, with a further rule.
fn with_rule(wanted: &str, rule: &str) -> Result<String> {
    match wanted.split_once(':') {
        None if wanted == "shared" => Ok(format!("shared:rule={rule}")),
        Some(("shared", arguments)) => Ok(format!("shared:{arguments},rule={rule}")),
        _ => bail!("--rule {rule} is for --analyse shared, and not for {wanted}"),
    }
}

fn format(args: &Args) -> Result<Format> {
    let on_terminal = is_stdout(&args.to) && io::stdout().is_terminal();
    let by_name = || match args.to.extension().and_then(|extension| extension.to_str()) {
        Some("ndjson" | "jsonl" | "json") => Format::Ndjson,
        _ if on_terminal => Format::Ndjson,
        _ => Format::Arrow,
    };
    let format = args.format.unwrap_or_else(by_name);
    if format == Format::Arrow && on_terminal {
        bail!(
            "an Arrow stream is no text for a terminal: write it to a file or a pipe, or take --format ndjson"
        );
    }
    Ok(format)
}

/// Writes all batches, and reports missing parts.
fn write(
    trace: &Trace,
    mut annotations: Annotations,
    mut encoder: BatchEncoder,
    format: Format,
    out: impl Write,
) -> Result<()> {
    let out = BufWriter::with_capacity(1 << 16, out);
    let bar = term::Progress::of(trace, "replaying");
    match format {
        Format::Arrow => {
            let mut writer = StreamWriter::new(out, &encoder.schema())?;
            let mut table = ArrowTable::default();
            while let Some(events) = annotations.next_batch() {
                annotations.give_back(encoder.encode(events, annotations.cells(), &mut table));
                writer.write(&table)?;
                bar.advance_to(annotations.chunks());
            }
            writer.finish()?;
        }
        Format::Ndjson => {
            let mut writer = LineWriter::new(Door::new(out, door::Form::Json), encoder);
            while let Some(events) = annotations.next_batch() {
                writer.write(&events, annotations.cells())?;
                annotations.give_back(events);
                bar.advance_to(annotations.chunks());
            }
            writer.finish()?;
        }
    }
    bar.finish();
    let replayed = annotations.finish();
    if let Some(why) = nothing_decoded(trace, &replayed) {
        bail!("{why}");
    }
    for note in sentences(trace, Some(&replayed)) {
        term::note(&note);
    }
    Ok(())
}
