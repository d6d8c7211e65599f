//! `memlode run` and `memlode record`: run the program as usual, and record it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use clap::error::ErrorKind;
use clap::{Arg, CommandFactory, Parser};
use memlode_analyses::Run;
use memlode_collect::{Collector, CommandEnd, Destination, ENVIRONMENT, RecordingSummary};
use memlode_report::text::{bytes, count};
use memlode_trace::manifest::{Manifest, ManifestInfo, Summary};
use memlode_trace::write::DirectoryStore;

use super::report;
use super::timeline::IntervalArgs;
use crate::accesses;
use crate::analyse::{Analysed, Found, Job, Wanted, open};
use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::order::OrderArgs;
use crate::args::setup::SetupArgs;
use crate::child::{NotStarted, Program, ProgramOutput, ending, exit_code, locate};
use crate::control::{ControlArgs, PART, Server};
use crate::destination::is_stdout;
use crate::destination::{self, InMemory, Place, To, created};
use crate::interrupt::{self, Signals};
use crate::kept::{KeepArgs, keep, question};
use crate::live::Beside;
use crate::next::{ContextArgs, NextCommands};
use crate::page::{self, ExtraArgs, Subject};
use crate::preload;
use crate::show::{Out, ShapeArgs, show};
use crate::term;

/// Memlode itself failed: the status that `env`, `timeout` and others use.
const OURS: u8 = 125;

/// Run a program built by `memlode cc` and say which data it waits for
///
/// The program's input, output, signals and exit status are its own. The report comes on standard error when it
/// has ended.
#[derive(Debug, Parser)]
#[command(after_help = STATUS_HELP)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Options of recording and reporting.
#[derive(Debug, Parser)]
#[command(
    mut_arg("pages", only_with_sim),
    mut_arg("cores", only_with_sim),
    mut_arg("placement", only_with_sim),
    mut_arg("rules", only_with_sim),
    mut_arg("threads", |threads| {
        let threads = threads.conflicts_with_all(["live", "analyse", "timeline", "no_report"]);
        threads.hide_short_help(true).help_heading(REPORTING)
    }),
    mut_arg("every", |every| every.requires("timeline").help_heading("With --timeline").hide_short_help(true)),
    mut_arg("context", |context| context.hide_short_help(true).help_heading(REPORTING)),
    mut_arg("confidential", |files| files.hide_short_help(true).help_heading(REPORTING)),
    mut_arg("by", |by| by.help("Tables to show [default: line; with --sim field]"))
)]
pub struct Options {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Find everything out while the program runs, and store nothing unless -o names a directory
    #[arg(long, conflicts_with_all = ["no_report", "discard", "to"])]
    live: bool,
    #[command(flatten)]
    machine: MachineArgs,
    /// Instead of a report, say why accesses missed, as `memlode sim` does
    #[arg(long, conflicts_with_all = ["analyse", "timeline"])]
    sim: bool,
    #[command(flatten)]
    setup: SetupArgs,
    /// Instead of a report, say what an analysis of every access finds, as `memlode replay --analyse` does; several may be
    /// given
    #[arg(long, value_name = "NAME[:ARGUMENTS]")]
    analyse: Vec<String>,
    /// Instead of a report, show accesses, misses and waiting interval by interval, as `memlode timeline` does
    #[arg(long)]
    timeline: bool,
    #[command(flatten)]
    interval: IntervalArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    sources: ContextArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Record without a report
    #[arg(long, hide_short_help = true, help_heading = REPORTING, conflicts_with_all = ["json", "report_to", "sim", "analyse", "timeline"])]
    no_report: bool,
    /// Write the report as JSON, to the file of --report-to
    #[arg(long, requires = "report_to")]
    json: bool,
    /// Write the report to a file, or - for standard output; the program's own then goes to standard error
    #[arg(long, value_name = "FILE")]
    report_to: Option<PathBuf>,
    /// Besides, draw the report as a page for a browser, one file that loads nothing, as `memlode html` does
    #[arg(long, value_name = "FILE", conflicts_with_all = ["live", "no_report", "sim", "analyse", "timeline", "discard"])]
    html: Option<PathBuf>,
}

impl Options {
    /// Returns the requested analysis; `None` if only the trace is wanted.
    fn job(&self) -> Result<Option<Job>> {
        if self.no_report {
            return Ok(None);
        }
        if let Some(table) = self.shape.without_causes().filter(|_| self.sim) {
            let why =
                format!("--sim has no table of causes by {table}: there are line, field, type and object");
            Args::command().bin_name("memlode run").error(ErrorKind::ArgumentConflict, why).exit();
        }
        if self.live && self.timeline && self.interval.is_time() {
            bail!(
                "how fast time stamps go is known when the program has ended, so --live takes intervals of so many accesses, \
                 as in --every 10M; without --live, there are intervals of time"
            );
        }
        let wanted = |machine: &_| {
            if self.sim {
                return Ok(Wanted::Simulation(Box::new(self.setup.of(machine)?), self.order.order()));
            }
            if self.analyse.is_empty() && !self.timeline {
                return Ok(Wanted::Report(self.order.order()));
            }
            let mut analyses = Run::default();
            self.analyse.iter().try_for_each(|wanted| accesses::add(&mut analyses, wanted))?;
            if self.timeline {
                self.interval.add(&mut analyses)?;
            }
            Ok(Wanted::Accesses(analyses))
        };
        let job = Job::new(&self.machine.machine, wanted)?;
        job.check()?;
        Ok(Some(job))
    }

    /// Commands about the trace, if it is kept.
    fn next(&self, analysed: &Analysed) -> Option<NextCommands> {
        let directory = match (&self.recording.output, &self.recording.to) {
            (Some(directory), To::Directory | To::Ram) => directory,
            (None, To::Directory) if !self.live => analysed.trace.directory(),
            _ => return None,
        };
        Some(NextCommands::new(directory, &self.machine.machine))
    }
}

/// Options of how a machine is set up stand under a heading of their own.
fn only_with_sim(option: Arg) -> Arg {
    option.requires("sim").help_heading("With --sim").hide_short_help(true)
}

/// Run a program built by `memlode cc` and keep its trace
#[derive(Debug, Parser)]
#[command(after_help = STATUS_HELP)]
pub struct RecordArgs {
    #[command(flatten)]
    recording: RecordingArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

const STATUS_HELP: &str = "\
Exit status: the program's own; 128 + n after signal n; 125 when memlode itself failed or nothing was recorded, \
126 when the program cannot be executed, 127 when it is not found, 2 wrong usage.";

/// Headings of `--help`.
const KEEPING: &str = "Where the trace goes";
const REPORTING: &str = "What is reported";

#[derive(Debug, Parser)]
struct RecordingArgs {
    /// Directory for the trace (default: memlode-PROGRAM-trace, numbered if it exists)
    #[arg(long, short, value_name = "DIR", conflicts_with = "discard")]
    output: Option<PathBuf>,
    /// Replace a trace that is already there
    #[arg(long, hide_short_help = true, help_heading = KEEPING)]
    force: bool,
    /// Place to record to: `directory`; `ram`, copied to --output when the program has ended, or else reported and
    /// removed; `text`, to --output or standard output when it has ended; `tcp://HOST:PORT` or `unix:///PATH`, where
    /// `memlode serve` receives
    #[arg(long, value_name = "WHERE", default_value_t = To::Directory, conflicts_with = "discard", hide_short_help = true, help_heading = KEEPING)]
    to: To,
    /// Bytes that a trace in memory may have, with k, M or G (default: half of what /dev/shm has free)
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, hide_short_help = true, help_heading = KEEPING)]
    ram_limit: Option<u64>,
    /// File with the token of the receiver (also the variable MEMLODE_TOKEN)
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = KEEPING)]
    token_file: Option<PathBuf>,
    /// Record but discard the data, to measure overhead
    #[arg(long, hide_short_help = true, help_heading = KEEPING)]
    discard: bool,
    #[command(flatten)]
    control: ControlArgs,
    /// Also record children of the program that outlive it
    #[arg(long, hide_short_help = true, help_heading = PART)]
    wait: bool,
    /// Also record which blocks libraries make that memlode did not build: they are objects of the line that called
    /// into the library
    #[arg(long, hide_short_help = true, help_heading = PART)]
    library_blocks: bool,
    /// A program of which nothing is recorded is no failure
    #[arg(long, hide = true)]
    allow_empty: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    Ok(ExitCode::from(outcome(reported(&args.options, &args.command))))
}

/// Records, analyses, and prints the result.
fn reported(options: &Options, command: &[OsString]) -> Result<u8> {
    let (purpose, later) = match options.job()? {
        None => (Purpose::Trace, None),
        Some(job) if options.live => (Purpose::Live(Box::new(job)), None),
        Some(job) => (Purpose::Report, Some(job)),
    };
    let to_stdout = options.report_to.as_deref().is_some_and(is_stdout);
    if to_stdout && options.recording.to == To::Text && options.recording.output.is_none() {
        bail!("--report-to - and --to text would both write to standard output: give one of them a file");
    }
    let output = if to_stdout { ProgramOutput::StandardError } else { ProgramOutput::Own };
    recorded(&options.recording, command, output, purpose, |recorded| {
        let analysed = match (recorded, later) {
            (Recorded::Analysed(analysed), _) => *analysed,
            (Recorded::Trace(trace), Some(job)) => job.run(Arc::new(open(trace)?))?,
            (Recorded::Trace(trace), None) => return losses(trace),
        };
        let out = match &options.report_to {
            None => Out::Stderr,
            Some(_) if to_stdout => Out::Stdout,
            Some(file) => Out::File(file),
        };
        let next = options.next(&analysed);
        let mut answer = analysed.answer();
        options.sources.sources(&analysed.trace)?.add_to(&mut answer);
        show(&answer, &options.shape, next.as_ref(), options.json, out)?;
        if let (Found::Report(..), None) = (&analysed.found, options.order.order()) {
            // As `memlode report` would, which then has the answer.
            let question = question::<report::Args>("report", None, &[&analysed.machine]);
            keep(question, &analysed.trace, &analysed.answer());
        }
        if let Some(file) = &options.html {
            let (trace, machine) = (&analysed.trace, &analysed.machine);
            let confidential = &options.sources.confidential;
            let counted = Some(&analysed);
            let subject = Subject { trace, machine, counted, keep: KeepArgs::default(), confidential };
            let unnamed = NextCommands::new(Path::new("DIR"), &options.machine.machine);
            let next = next.as_ref().unwrap_or(&unnamed);
            page::write(&subject, analysed.answer(), &ExtraArgs::usual(), next, file)?;
        }
        Ok(())
    })
}

pub fn record(args: RecordArgs) -> Result<ExitCode> {
    Ok(ExitCode::from(outcome(recorded(
        &args.recording,
        &args.command,
        ProgramOutput::Own,
        Purpose::Trace,
        |recorded| match recorded {
            Recorded::Trace(trace) => losses(trace),
            Recorded::Analysed(_) => Ok(()),
        },
    ))))
}

/// Reports everything that `memlode check` would: events that are missing from the trace.
fn losses(trace: &Path) -> Result<()> {
    let manifest = Manifest::read(trace)?;
    manifest.summary.iter().flat_map(Summary::losses).for_each(|loss| term::note(&loss));
    Ok(())
}

/// The purpose for which a program is recorded.
enum Purpose {
    /// A trace.
    Trace,
    /// A report.
    Report,
    /// The same, found meanwhile.
    Live(Box<Job>),
}

/// The result of a recording.
enum Recorded<'a> {
    /// A trace directory.
    Trace(&'a Path),
    /// The findings, made already.
    Analysed(Box<Analysed>),
}

/// A failure of memlode has a status of its own, so that scripts can recognise it.
fn outcome(result: Result<u8>) -> u8 {
    result.unwrap_or_else(|error| {
        term::error(&error);
        OURS
    })
}

/// Runs the command and, if there is a trace, hands it on. Returns the exit status.
fn recorded(
    args: &RecordingArgs,
    command: &[OsString],
    output: ProgramOutput,
    purpose: Purpose,
    then: impl FnOnce(Recorded<'_>) -> Result<()>,
) -> Result<u8> {
    let path = match locate(&command[0]) {
        Ok(path) => path,
        Err(not_started) => return Ok(refuse(not_started)),
    };
    let (place, destination) = place(args, &path, command, purpose)?;
    let mut options =
        memlode_collect::Options { wait_for_all: args.wait, ..memlode_collect::Options::new(destination) };
    args.control.apply(&mut options)?;
    let signals = Signals::receive()?;
    let collector = Collector::start(options)?;
    let scratch = collector.socket_path().parent().into_iter().chain(place.scratch());
    scratch.for_each(|directory| signals.remove_at_end(directory.to_owned()));
    let switch = collector.switch();
    if args.control.is_paused() {
        switch.record(false);
    }
    let server = Server::start(collector.socket_path(), switch.clone())?;
    let toggle = args.control.signal().map(|signal| (signal, switch.clone()));
    let preload = if args.library_blocks { preload::of_libraries(path.as_os_str()) } else { Vec::new() };
    let mut variables = vec![(ENVIRONMENT, collector.socket_path().as_os_str())];
    variables.extend(preload.iter().map(|(name, value)| (*name, value.as_os_str())));
    let program = match Program::start(&path, command, &variables, output, &signals, toggle)? {
        Ok(program) => program,
        Err(not_started) => {
            drop((server, collector));
            // Nothing ran: leave nothing behind.
            let _ = place.remove();
            return Ok(refuse(not_started));
        }
    };
    if args.control.is_paused() {
        term::line(&format!("paused; `memlode ctl {} start` begins to record", program.pid()));
    }
    let status = program.wait()?;
    signals.collecting(place.partly(), place.hurry(switch));
    drop(server);
    let summary = collector.finish(CommandEnd { exit_code: status.code(), signal: status.signal() })?;
    if let Place::Nowhere = place {
        term::line(&format!("{} words recorded and discarded", count(summary.stats.words)));
        return Ok(signals.leaving(String::new()).map_or(exit_code(status), interrupt::status));
    }
    if let Some(ending) = ending(status) {
        term::note(&ending);
    }
    let code = exit_code(status);
    if summary.stats.words == 0 && code == NOT_LOADED && needs_runtime(&path) {
        place.remove()?;
        let program = path.display();
        term::error(&anyhow::anyhow!(
            "{program} did not start, as {RUNTIME} is not found: memlode was moved, or is not installed here. Link the \
             program with `memlode cc --static-runtime`, or name the directory of the library in LD_LIBRARY_PATH"
        ));
        return Ok(code);
    }
    finish(args, place, code, &summary, &signals, then)
}

/// Opens the destination.
fn place(
    args: &RecordingArgs,
    program: &Path,
    command: &[OsString],
    purpose: Purpose,
) -> Result<(Place, Destination)> {
    if args.discard {
        return Ok((Place::Nowhere, Destination::Discard));
    }
    let reports = !matches!(purpose, Purpose::Trace);
    let info = args.control.describe(info(command));
    if let Purpose::Live(job) = purpose {
        let kept = args.output.as_deref().map(|directory| (directory, args.force));
        let (beside, store) = Beside::start(*job, kept, args.control.has_gaps())?;
        return Ok((Place::Beside(Box::new(beside)), Destination::Trace { store, info }));
    }
    let in_memory = || -> Result<_> {
        let (memory, store) = InMemory::create(args.ram_limit)?;
        Ok((memory, Destination::Trace { store: Box::new(store), info: info.clone() }))
    };
    Ok(match &args.to {
        To::Directory => {
            let store = match &args.output {
                Some(directory) => created(directory, args.force)?,
                None => named_after(args, program)?,
            };
            let directory = store.path().to_owned();
            (Place::Directory(directory), Destination::Trace { store: Box::new(store), info })
        }
        To::Ram => {
            if args.output.is_none() && !reports {
                bail!(
                    "--to ram would leave nothing: name a directory for the trace with -o, or let `memlode run` report"
                );
            }
            let (memory, destination) = in_memory()?;
            // What is in the way is told before the program runs.
            let kept = args.output.as_ref().map(|directory| created(directory, args.force));
            (Place::Memory(memory, kept.transpose()?), destination)
        }
        To::Text => {
            let (memory, destination) = in_memory()?;
            (Place::Text(memory, args.output.clone()), destination)
        }
        To::Remote(address) => {
            if reports {
                bail!(
                    "a trace that is sent to {address} is reported there: use `memlode record --to {address}`, and \
                     `memlode report` where it is received"
                );
            }
            if args.output.is_some() {
                bail!(
                    "--to {address} and -o exclude each other: the receiver knows where the trace is written"
                );
            }
            let store = destination::remote(address, args.token_file.as_deref())?;
            (Place::Remote(address.clone()), Destination::Trace { store: Box::new(store), info })
        }
    })
}

/// Ends a recording: tells what came of it, keeps what is to be kept, and passes it on to `then`.
/// Returns the command's status.
fn finish(
    args: &RecordingArgs,
    place: Place,
    code: u8,
    summary: &RecordingSummary,
    signals: &Signals,
    then: impl FnOnce(Recorded<'_>) -> Result<()>,
) -> Result<u8> {
    if let Some(failure) = &summary.failure {
        tell_failure(failure, &place)?;
    }
    if summary.stats.accesses == 0 {
        return finish_empty(args, place, code, summary);
    }
    if let Place::Text(..) = place {
        signals.leaving("stopped before all of the text was written".to_owned());
    }
    place.settle()?;
    let kept = place.kept().map(Path::to_owned);
    let report = kept.as_ref().map(|directory| {
        let quoted = crate::driver::toolchain::shell_quote(&directory.as_os_str().to_owned());
        format!("{}: `memlode report {quoted}`", directory.display())
    });
    let interrupted = match (&report, &place) {
        (Some(report), _) => format!("trace kept in {report}"),
        (None, Place::Remote(_)) => "stopped; the receiver has the trace".to_owned(),
        (None, _) => "stopped; no trace is kept (-o DIR keeps one)".to_owned(),
    };
    if let Some(signal) = signals.leaving(interrupted.clone()) {
        term::line(&interrupted);
        return Ok(interrupt::status(signal));
    }
    let to = match &place {
        Place::Remote(address) => format!(" sent to {address}"),
        _ => report.map_or(String::new(), |report| format!(" at {report}")),
    };
    let is_simulated_only = kept.is_none() && matches!(place, Place::Beside(_));
    match place {
        Place::Beside(beside) => then(Recorded::Analysed(Box::new(beside.finish()?)))?,
        place => place.trace().map_or(Ok(()), |trace| then(Recorded::Trace(trace)))?,
    }
    let accesses = count(summary.stats.accesses);
    term::line(&match is_simulated_only {
        true => format!("{accesses} accesses, simulated as they came"),
        false => format!("{accesses} accesses in {}{to}", bytes(summary.stats.bytes)),
    });
    Ok(if summary.failure.is_some() { OURS } else { code })
}

/// Prints why a recording stopped early: as an error where the rest of the command is of no use.
fn tell_failure(failure: &str, place: &Place) -> Result<()> {
    match place {
        Place::Directory(directory) => bail!(
            "recording stopped early: {failure}; what was written until then is in {} and can be reported",
            directory.display()
        ),
        Place::Remote(_) => {
            bail!("recording stopped early: {failure}; the receiver keeps what was sent until then")
        }
        _ => term::note(&format!(
            "recording stopped early: {failure}; this is about what was recorded until then (--ram-limit grants more)"
        )),
    }
    Ok(())
}

/// Ends a recording without an access, and returns the command's status.
fn finish_empty(args: &RecordingArgs, place: Place, code: u8, summary: &RecordingSummary) -> Result<u8> {
    if summary.failure.is_some() {
        // It has been said why.
        place.remove()?;
        return Ok(OURS);
    }
    if args.allow_empty {
        // What was allocated may be of use to somebody.
        if summary.stats.words > 0 {
            place.settle()?
        } else {
            place.remove()?
        }
        return Ok(code);
    }
    let why = match place.trace() {
        Some(trace) => memlode_report::notes::nothing_recorded(&memlode_trace::Trace::open(trace)?),
        None => "no access was recorded: was the program built by `memlode cc`, and did it get as far as what was to be \
                 recorded of it? Without --live, -o DIR and `memlode check DIR` tell more"
            .to_owned(),
    };
    // An empty trace is of no use to anybody.
    place.remove()?;
    term::error(&anyhow::anyhow!(why));
    Ok(OURS)
}

/// The status of a program some of whose libraries are missing.
const NOT_LOADED: u8 = 127;
const RUNTIME: &str = "libmemlode_record.so.1";

/// Bytes of the largest program that is looked into.
const PROGRAM: u64 = 1 << 30;

/// Returns whether a program names the run-time library.
fn needs_runtime(program: &Path) -> bool {
    let bytes = memlode_files::read(program, PROGRAM).unwrap_or_default();
    bytes.windows(RUNTIME.len()).any(|window| window == RUNTIME.as_bytes())
}

fn refuse(not_started: NotStarted) -> u8 {
    term::error(&anyhow::anyhow!(not_started.why));
    not_started.status
}

/// Makes the first free directory named after the program; concurrent processes get different ones.
fn named_after(args: &RecordingArgs, program: &Path) -> Result<DirectoryStore> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let first = format!("memlode-{name}-trace");
    let numbered = (2..10_000).map(|n| format!("{first}-{n}"));
    if args.force {
        return created(Path::new(&first), true);
    }
    for directory in std::iter::once(first.clone()).chain(numbered) {
        if let Some(store) = DirectoryStore::create_new(Path::new(&directory))? {
            return Ok(store);
        }
    }
    bail!("there are too many directories called {first}-N here: name one with -o")
}

fn info(command: &[OsString]) -> ManifestInfo {
    let uname = rustix::system::uname();
    ManifestInfo {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        working_directory: std::env::current_dir().unwrap_or_default().display().to_string(),
        started_unix_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_millis() as u64),
        host: uname.nodename().to_string_lossy().into_owned(),
        cpu: processor(),
        page_bytes: rustix::param::page_size() as u64,
        ..ManifestInfo::default()
    }
}

/// The processor, by the kernel's name.
fn processor() -> String {
    let text = memlode_files::read_text("/proc/cpuinfo".as_ref(), 16 << 20).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.map(|name| name.trim_start_matches([' ', '\t', ':']).to_string()).unwrap_or_default()
}
