//! A part of the accesses, as requested.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::{Arg, Parser};
use memlode_attribute::place::{Line, place};
use memlode_attribute::{Profile, Simulation, Source, Window, has_gaps};
use memlode_export::request::find_thread;
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_report::Note;
use memlode_report::names::{demangle, demangle_short};
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::SiteTable;

use crate::args::numbers;
use crate::args::times::parse_duration;

/// Which accesses to count. The others go through the caches, too.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Count a part, though all of the trace goes through the caches")]
pub struct PartArgs {
    /// Accesses from A up to B in replay order, as in 10M..20M, or in the recorded run's time, as in 1.5s..2s; either may be left
    /// out
    #[arg(long, value_name = "A..B")]
    between: Option<Between>,
    /// Accesses in this function; may be given several times, as those below
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Accesses in this file: a path, or its last components
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// Accesses of this thread: PROCESS.THREAD as in `memlode dump`, or THREAD of process 0
    #[arg(long, value_name = "T")]
    thread: Vec<String>,
}

/// `10M..20M`, `1.5s..`.
#[derive(Clone, Debug)]
struct Between {
    text: String,
    unit: Unit,
    range: Range<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Accesses,
    Nanoseconds,
}

impl FromStr for Between {
    type Err = String;

    fn from_str(text: &str) -> Result<Between, String> {
        let expected = || {
            "expected A..B, two numbers of accesses, as in 10M..20M, or two times, as in 1.5s..2s".to_owned()
        };
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            text => match (numbers::count(text), parse_duration(text)) {
                (Ok(number), _) => Ok(Some((Unit::Accesses, number))),
                (_, Ok(time)) => {
                    Ok(Some((Unit::Nanoseconds, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))))
                }
                _ => Err(expected()),
            },
        };
        let (first, last) = text.split_once("..").ok_or_else(expected)?;
        let (first, last) = (end(first)?, end(last)?);
        let unit = match (first, last) {
            (Some((one, _)), Some((other, _))) if one != other => return Err(expected()),
            (Some((unit, _)), _) | (None, Some((unit, _))) => unit,
            (None, None) => return Err(expected()),
        };
        let range = first.map_or(0, |(_, at)| at)..last.map_or(u64::MAX, |(_, at)| at);
        if range.is_empty() {
            return Err(format!("nothing lies between the ends of `{text}`"));
        }
        Ok(Between { text: text.to_owned(), unit, range })
    }
}

impl PartArgs {
    /// Returns whether all accesses count.
    pub fn is_all(&self) -> bool {
        let PartArgs { between, function, file, thread } = self;
        between.is_none() && function.is_empty() && file.is_empty() && thread.is_empty()
    }

    /// Leaves these options out of the help of a command that refuses them.
    pub fn hidden(option: Arg) -> Arg {
        let is_ours = ["between", "function", "file", "thread"].contains(&option.get_id().as_str());
        option.hide(is_ours)
    }

    /// Returns the part of this trace; `None` if all of it counts.
    pub fn of(&self, trace: &Trace) -> Result<Option<Part>> {
        if self.is_all() {
            return Ok(None);
        }
        let PartArgs { between, function, file, thread } = self;
        if has_gaps(trace) {
            bail!(
                "recording was off now and then, so what the caches held is known in bounds only, and those are of the \
                 whole: --between, --function, --file and --thread need a trace without gaps"
            );
        }
        let window = match between {
            None => None,
            Some(Between { unit: Unit::Accesses, range, .. }) => Some(Window::Accesses(range.clone())),
            Some(Between { unit: Unit::Nanoseconds, range, .. }) => {
                let clock = trace.clock().with_context(|| {
                    format!(
                        "{} does not say how fast its time stamps go, as a whole trace of this version does: give \
                         --between in accesses, as in 10M..20M",
                        trace.directory().display()
                    )
                })?;
                Some(Window::Nanoseconds(range.clone(), clock))
            }
        };
        let threads =
            thread.iter().map(|wanted| find_thread(trace, wanted)).collect::<Result<Vec<_>, _>>()?;
        let note = Note::Part {
            between: between.as_ref().map(|between| between.text.clone()),
            functions: function.clone(),
            files: file.clone(),
            threads: thread.clone(),
        };
        Ok(Some(Part { window, functions: function.clone(), files: file.clone(), threads, note }))
    }
}

/// A part of a trace's accesses.
pub struct Part {
    window: Option<Window>,
    functions: Vec<String>,
    files: Vec<String>,
    threads: Vec<ThreadId>,
    note: Note,
}

impl Part {
    /// Returns a note on the counted part.
    pub fn note(&self) -> Note {
        self.note.clone()
    }

    /// Replays the whole trace and counts the part.
    pub fn profile(
        &self,
        source: &Source,
        machine: &Machine,
        threads: usize,
        watch: impl FnMut(usize) -> ControlFlow<()> + Send,
    ) -> Result<(Profile, Replayed)> {
        let cannot = || format!("the machine {} cannot be simulated", machine.name);
        let simulation = Simulation::of(source, machine).threads(threads);
        let (mut profile, replayed) = match &self.window {
            None => simulation.count(watch).with_context(cannot)?,
            Some(window) => simulation.within(window.clone(), watch).with_context(cannot)?,
        };
        source.look(|trace| {
            let names = trace.sites();
            profile.retain(|cell| {
                let site = &names.sites()[cell.site.0 as usize];
                self.has(names, place(names, site).line, cell.thread)
            });
        });
        if profile.cells.is_empty() {
            bail!(
                "no access is in the part that was asked for: `memlode report --by function,thread` and `memlode timeline` \
                 show what there is"
            );
        }
        Ok((profile, replayed))
    }

    fn has(&self, names: &SiteTable, line: Line, thread: ThreadId) -> bool {
        let function = || {
            let name = names.string(line.function);
            let is = |wanted: &String| {
                name == wanted || demangle(name) == *wanted || demangle_short(name) == *wanted
            };
            self.functions.iter().any(is)
        };
        let file = || {
            let Some((directory, name)) = line.file else { return false };
            let path = format!("{}/{}", names.string(directory), names.string(name));
            let is =
                |wanted: &String| Path::new(&path).ends_with(wanted.strip_prefix("./").unwrap_or(wanted));
            self.files.iter().any(is)
        };
        (self.functions.is_empty() || function())
            && (self.files.is_empty() || file())
            && (self.threads.is_empty() || self.threads.contains(&thread))
    }
}
