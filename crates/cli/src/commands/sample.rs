//! `memlode sample`: where a program that was not rebuilt spends its time, and at which data.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Parser, ValueEnum};
use memlode_report::render::terminal;
use memlode_sample::tiers::{LinuxSampling, SampledEvent, TierKind, events};
use memlode_sample::{
    BlockNotes, SampleSource, Sampled, Skid, attach, frameless, report, resolve, root_of, sample_events,
};
use memlode_trace::manifest::ManifestInfo;
use memlode_trace::sampled::SampledRecording;
use rustix::process::{Pid, Signal, kill_process};

use crate::args::numbers;
use crate::args::times::parse_duration;
use crate::call_graph::{self, CallGraph};
use crate::child::exit_code;
use crate::preload::{self, Preload};
use crate::sampled::show;
use crate::status::OK;
use crate::stop::stop_on_signals;
use crate::term;

/// Samples a second of CPU time, at most.
const FASTEST: u64 = 20_000;
/// With fewer samples than this, the report says that they are few.
pub const FEW: u64 = 100;
/// From this part of the samples on, it is said that their callers lie too deep.
const MANY_CUT: f64 = 0.05;
/// From this part of the samples on, it is said that frame pointers do not lead to their callers.
const MANY_FRAMELESS: f64 = 0.05;
/// Between two looks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// Sample a program that nobody rebuilt, or a process that runs: its time by member, line and
/// function
///
/// The kernel's clock interrupts each thread many times a second of its CPU time. Lines come from
/// debug information, types and members from that and the decoded instructions. Nothing is
/// simulated.
#[derive(Debug, Parser)]
#[command(
    override_usage = "memlode sample [OPTIONS] -p PID\n       memlode sample [OPTIONS] -- PROGRAM ARGS…",
    after_help = AFTER_HELP
)]
pub struct Args {
    /// The process to sample, with its threads and all that it starts
    #[arg(short, long, value_name = "PID", conflicts_with = "command", required_unless_present = "command")]
    pid: Option<u32>,
    /// Stop after this time; a program that was started is ended then
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Samples a second of CPU time, to 20000
    #[arg(long, value_name = "N", default_value = "1000", value_parser = rate)]
    rate: u64,
    /// Sample by the kernel's clock, a counter of cycles, or loads and stores with their data's source
    #[arg(long, value_enum, value_name = "WAY", default_value = "clock")]
    by: By,
    /// Name blocks of the heap of at least this size, by the calls that allocated them; none: no blocks
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = least_block)]
    blocks: LeastBlock,
    /// Find callers by frame pointers (fp), or by unwind tables and a copy of the stack (dwarf, or dwarf,SIZE for one of
    /// another size than 2K); auto: the latter where the program keeps no frame pointers, to a rate of 2000
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = call_graph::parse)]
    call_graph: CallGraph,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value = "15", value_parser = numbers::small_count)]
    top: usize,
    #[command(flatten)]
    keep: KeepSamplesArgs,
    /// Print JSON; the program's output goes to standard error
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// A way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The kernel's clock: on every machine
    Clock,
    /// A counter of cycles
    Cycles,
    /// Loads and stores, with their data's address and where that came from (PEBS, IBS)
    Memory,
}

impl By {
    fn tier(self) -> TierKind {
        match self {
            By::Clock => TierKind::Clock,
            By::Cycles => TierKind::Counters,
            By::Memory => TierKind::Precise,
        }
    }

    /// The events, if this machine has the way.
    fn events(self, rate: u64) -> Result<Vec<Vec<SampledEvent>>> {
        let tier = self.tier();
        events(&LinuxSampling, tier, rate).map_err(|why| {
            anyhow!("{}. Next: {}", terminal::tier_refusal(&why), terminal::tier_use(tier, false))
        })
    }

    /// Names of events, where they are not the clock.
    fn names(self, events: &[Vec<SampledEvent>]) -> Vec<String> {
        let written = events.iter().filter_map(|group| group.last());
        written.map(|event| event.name.clone()).filter(|_| self != By::Clock).collect()
    }
}

const AFTER_HELP: &str = "\
  memlode sample -- ./prog input
  memlode sample -p 1234 --duration 10s
  memlode sample -o before -- ./prog input && memlode report before

Ctrl-C ends the sampling, and the report follows. What the columns mean, and the JSON: docs/sample.md.
Exit status: the program's, or for a process that runs 0; 1 nothing could be sampled, 2 wrong usage.";

pub fn run(args: Args) -> Result<ExitCode> {
    let mut events = args.by.events(args.rate)?;
    args.call_graph.apply(&mut events, args.rate, args.command.first().map(OsString::as_os_str), args.pid);
    let is_clock = args.by == By::Clock;
    let period_ns = (1_000_000_000 / args.rate) | 1;
    args.keep.refuse_occupied()?;
    let stop = stop_on_signals()?;
    let mut least_block = args.blocks.0;
    let (status, sampled, subject, root) = match args.pid {
        Some(pid) => {
            term::line(&format!("sampling process {pid}{}", until(args.duration)));
            let (mut notes, why) = match args.blocks.0.map(|least| preload::of_process(pid, least)) {
                Some(Ok(notes)) => (Some(notes), None),
                Some(Err(why)) => (None, Some(why)),
                None => (None, None),
            };
            least_block = notes.as_ref().map(BlockNotes::least);
            let sampled = attach(pid, &events, notes.as_mut(), args.duration, &stop)?;
            why.iter().for_each(|why| preload::tell_none(why));
            (None, sampled, format!("process {pid}"), root_of(pid))
        }
        None => {
            let mut preload = args.blocks.0.and_then(|least| Preload::of(&args.command[0], least));
            let command = command(&args, preload.as_ref())?;
            let notes = preload.as_mut().map(|preload| &mut preload.notes);
            let (status, sampled) = sample_events(&events, notes, || start(&args, command, &stop))?;
            let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
            (status, sampled, words.join(" "), None)
        }
    };
    let code = status.map_or(OK, exit_code);
    match args.by {
        By::Memory if sampled.samples() == 0 => bail!(
            "{subject} has no sample of {}: give it more to do, or sample by --by clock",
            args.by.names(&events).join(", ")
        ),
        _ => refuse_nothing(&sampled, &subject, args.pid.is_some(), period_ns)?,
    }
    let skid = match args.by {
        By::Clock => Skid::measure(period_ns.min(MEASURED_NS)).map_or(1, |skid| skid.instructions),
        // Anywhere behind the event: the next instruction is the best guess.
        By::Cycles => 1,
        By::Memory => 0,
    };
    let source = SampleSource {
        subject,
        events: args.by.names(&events),
        is_time: args.by != By::Memory,
        period_ns: if is_clock { period_ns } else { 0 },
        skid,
        root,
        least_block,
        ..SampleSource::default()
    };
    let recording = resolve(&sampled, &source);
    let cut = sampled.cut as f64 / sampled.samples() as f64;
    let command: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    args.keep.keep(&recording, &command)?;
    let report = report(&recording);
    show(&report, args.top, args.json)?;
    if !args.json && cut >= MANY_CUT {
        term::note(&format!(
            "{:.0}% of the samples have callers deeper than the copied stack: copy more with --call-graph dwarf,8K",
            100.0 * cut
        ));
    }
    if !args.json
        && let Some(missing) =
            frameless(&sampled, source.root.as_deref()).filter(|of| of.share >= MANY_FRAMELESS)
    {
        term::note(&format!(
            "{:.0}% of the samples are in functions that keep no frame pointer, most of them in {}: those that \
             called them may be missing; --call-graph dwarf finds them",
            100.0 * missing.share,
            missing.file
        ));
    }
    if !args.json && report.samples < FEW {
        term::note("so few samples say little: sample for longer, or more often with --rate");
    }
    Ok(ExitCode::from(code))
}

/// Nanoseconds between the samples that the skid is measured with, at most.
const MEASURED_NS: u64 = 200_003;

/// The place where samples are kept.
#[derive(Debug, Parser)]
pub struct KeepSamplesArgs {
    /// Keep the samples as a trace in this directory, for `report`, `diff`, `export` and `check`
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace a trace that is there
    #[arg(long, requires = "output")]
    force: bool,
}

impl KeepSamplesArgs {
    /// Refuses a directory that holds something else, before anything is sampled.
    pub fn refuse_occupied(&self) -> Result<()> {
        let Some(directory) = &self.output else { return Ok(()) };
        let is_free =
            !directory.exists() || std::fs::read_dir(directory).is_ok_and(|mut all| all.next().is_none());
        if !is_free && !self.force {
            bail!(
                "{} exists and is not empty; choose another directory, or replace a trace with --force",
                directory.display()
            );
        }
        Ok(())
    }

    /// Writes a recording, if that is wanted.
    pub fn keep(&self, recording: &SampledRecording, command: &[String]) -> Result<()> {
        let Some(directory) = &self.output else { return Ok(()) };
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = started.as_millis() as u64
            - (recording.info.watched_ns / 1_000_000).min(started.as_millis() as u64);
        let info = ManifestInfo {
            command: command.to_vec(),
            working_directory: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            started_unix_ms: started,
            ..ManifestInfo::default()
        };
        Ok(recording.write(directory, info, self.force)?)
    }
}

fn until(duration: Option<Duration>) -> String {
    match duration {
        Some(duration) => format!(" for {}", crate::args::times::duration_text(duration)),
        None => "; Ctrl-C ends that".into(),
    }
}

/// The least bytes of blocks that are named; `None`: none are.
#[derive(Clone, Copy, Debug)]
struct LeastBlock(Option<u64>);

fn least_block(text: &str) -> Result<LeastBlock, String> {
    match text {
        "none" => Ok(LeastBlock(None)),
        text => Ok(LeastBlock(Some(numbers::bytes(text).map_err(|why| why + ", or none")?))),
    }
}

/// The program as it is started.
fn command(args: &Args, preload: Option<&Preload>) -> Result<Command> {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if args.json {
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned().context("cannot use standard error")?);
    }
    if let Some(preload) = preload {
        preload.add_to(&mut command);
    }
    Ok(command)
}

/// Starts the program and waits for it. `None` if it was ended here.
fn start(args: &Args, mut command: Command, stop: &AtomicBool) -> Result<Option<ExitStatus>> {
    let mut child =
        command.spawn().with_context(|| format!("cannot run {}", args.command[0].to_string_lossy()))?;
    let begun = Instant::now();
    let mut ended = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok((!ended).then_some(status));
        }
        let is_over = args.duration.is_some_and(|longest| begun.elapsed() >= longest);
        if !ended && (is_over || stop.load(Ordering::Relaxed)) {
            ended = true;
            end(&child);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Asks the program to end. It is waited for, so its process id is still valid.
fn end(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn refuse_nothing(sampled: &Sampled, subject: &str, is_attached: bool, period_ns: u64) -> Result<()> {
    if sampled.samples() > 0 {
        return Ok(());
    }
    let milliseconds = period_ns as f64 / 1e6;
    match is_attached {
        true => bail!(
            "{subject} took less than {milliseconds:.3} ms of CPU time in {:.1} s: it waits for something else than its data",
            sampled.seconds
        ),
        false => bail!(
            "`{subject}` ended before it had taken {milliseconds:.3} ms of CPU time, so there are no samples: give it more to \
             do, or sample more often with --rate"
        ),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let rate = numbers::count(text)?;
    match rate {
        1..=FASTEST => Ok(rate),
        _ => Err(format!("expected 1 to {FASTEST} samples a second of CPU time")),
    }
}
