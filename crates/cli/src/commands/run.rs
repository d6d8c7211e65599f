//! `memlode run` and `memlode record`: the program as it would run anyway, and what it did.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_collect::{Collector, Destination, ENVIRONMENT, Outcome, Summary};
use memlode_report::text::{bytes, count};
use memlode_trace::manifest::ManifestInfo;

use super::report::{MachineArgs, ShapeArgs, make};
use crate::child::{NotStarted, Program, ending, exit_code, locate};
use crate::term;

/// Memlode itself failed, as `env`, `timeout` and others say it.
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

/// How to record and what to report.
#[derive(Debug, Parser)]
pub struct Options {
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Record without a report
    #[arg(long, conflicts_with_all = ["json", "report_to"])]
    no_report: bool,
    /// Write the report as JSON
    #[arg(long)]
    json: bool,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    report_to: Option<PathBuf>,
}

impl Options {
    /// The words that give these options to another `memlode run`, wherever it is started.
    pub fn words(&self) -> Result<Vec<OsString>> {
        let mut words = self.recording.words()?;
        words.extend(self.machine.words());
        words.extend(self.shape.words());
        for (flag, on) in [("--no-report", self.no_report), ("--json", self.json)] {
            words.extend(on.then(|| flag.into()));
        }
        if let Some(file) = &self.report_to {
            words.extend(["--report-to".into(), std::path::absolute(file)?.into()]);
        }
        Ok(words)
    }
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
Exit status: the program's own; 128 + n after signal n; 125 when memlode itself failed or nothing was recorded,
126 when the program cannot be executed, 127 when it is not found, 2 wrong usage.";

#[derive(Debug, Parser)]
struct RecordingArgs {
    /// Directory for the trace (default: memlode-PROGRAM-trace, numbered if it exists)
    #[arg(long, short, value_name = "DIR", conflicts_with = "discard")]
    output: Option<PathBuf>,
    /// Replace a trace that is already there
    #[arg(long, requires = "output")]
    force: bool,
    /// Collect everything and keep nothing: what recording alone costs
    #[arg(long)]
    discard: bool,
    /// Also record children of the program that outlive it
    #[arg(long)]
    wait: bool,
    /// A program of which nothing is recorded is no failure
    #[arg(long, hide = true)]
    allow_empty: bool,
}

impl RecordingArgs {
    fn words(&self) -> Result<Vec<OsString>> {
        let mut words = Vec::new();
        if let Some(directory) = &self.output {
            words.extend(["--output".into(), std::path::absolute(directory)?.into()]);
        }
        let flags = [
            ("--force", self.force),
            ("--discard", self.discard),
            ("--wait", self.wait),
            ("--allow-empty", self.allow_empty),
        ];
        words.extend(flags.iter().filter(|(_, on)| *on).map(|(flag, _)| flag.into()));
        Ok(words)
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let Args { options, command } = args;
    Ok(ExitCode::from(outcome(recorded(&options.recording, &command, |trace| {
        if options.no_report {
            return Ok(());
        }
        let report = make(trace, &options.machine.machine)?;
        let text = |stream: Option<&std::io::Stderr>| -> Result<String> {
            Ok(match (options.json, stream) {
                (true, _) => serde_json::to_string_pretty(&report)? + "\n",
                (false, Some(stream)) => options.shape.text(&report, stream),
                (false, None) => options.shape.plain_text(&report),
            })
        };
        match &options.report_to {
            Some(file) => {
                fs::write(file, text(None)?).with_context(|| format!("cannot write {}", file.display()))
            }
            None => term::block(&text(Some(&std::io::stderr()))?),
        }
    }))))
}

pub fn record(args: RecordArgs) -> Result<ExitCode> {
    Ok(ExitCode::from(outcome(recorded(&args.recording, &args.command, |_| Ok(())))))
}

/// Failures of ours have a status of their own, so that scripts can tell them from the program's.
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
    then: impl FnOnce(&Path) -> Result<()>,
) -> Result<u8> {
    let path = match locate(&command[0]) {
        Ok(path) => path,
        Err(not_started) => return Ok(refuse(not_started)),
    };
    let directory = if args.discard { None } else { Some(directory(args, &path)?) };
    let destination = match &directory {
        Some(path) => Destination::Directory { path: path.clone(), replace: args.force, info: info(command) },
        None => Destination::Discard,
    };
    let options =
        memlode_collect::Options { wait_for_all: args.wait, ..memlode_collect::Options::new(destination) };
    let collector = Collector::start(options)?;
    let variables = [(ENVIRONMENT, collector.socket_path().as_os_str())];
    let program = match Program::start(&path, command, &variables)? {
        Ok(program) => program,
        Err(not_started) => {
            drop(collector);
            // Nothing ran: leave nothing behind.
            let _ = directory.as_ref().map(fs::remove_dir_all);
            return Ok(refuse(not_started));
        }
    };
    let status = program.wait()?;
    let summary = collector.finish(Outcome { exit_code: status.code(), signal: status.signal() })?;
    let Some(directory) = directory else {
        term::line(&format!("{} words recorded and discarded", count(summary.stats.words)));
        return Ok(exit_code(status));
    };
    finish(args, &directory, status, &summary, then)
}

fn finish(
    args: &RecordingArgs,
    directory: &Path,
    status: ExitStatus,
    summary: &Summary,
    then: impl FnOnce(&Path) -> Result<()>,
) -> Result<u8> {
    if let Some(ending) = ending(status) {
        term::note(&ending);
    }
    let code = exit_code(status);
    if let Some(failure) = &summary.failure {
        bail!(
            "recording stopped early: {failure}; what was written until then is in {} and can be reported",
            directory.display()
        );
    }
    if summary.stats.words == 0 {
        let trace = memlode_trace::Trace::open(directory)?;
        let why = crate::analyse::nothing_recorded(&trace);
        // An empty trace is of no use to anybody.
        fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
        if args.allow_empty {
            return Ok(code);
        }
        term::error(&anyhow::anyhow!(why));
        return Ok(if code == 0 { OURS } else { code });
    }
    then(directory)?;
    term::line(&format!(
        "{} accesses in {} at {}: `memlode report {}`",
        count(summary.stats.accesses),
        bytes(summary.stats.bytes),
        directory.display(),
        crate::driver::toolchain::shell_quote(&directory.into()),
    ));
    Ok(code)
}

fn refuse(not_started: NotStarted) -> u8 {
    term::error(&anyhow::anyhow!(not_started.why));
    not_started.status
}

/// The directory for the trace: the one that was asked for, or the first free one named after the program.
fn directory(args: &RecordingArgs, program: &Path) -> Result<PathBuf> {
    if let Some(directory) = &args.output {
        return Ok(directory.clone());
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let first = format!("memlode-{name}-trace");
    let numbered = (2..10_000).map(|n| format!("{first}-{n}"));
    std::iter::once(first.clone())
        .chain(numbered)
        .map(PathBuf::from)
        .find(|directory| !directory.exists())
        .with_context(|| format!("there are too many directories called {first}-N here: name one with -o"))
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
    }
}

/// As the kernel names it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.map(|name| name.trim_start_matches([' ', '\t', ':']).to_string()).unwrap_or_default()
}
