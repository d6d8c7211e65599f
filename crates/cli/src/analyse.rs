//! From a trace directory and the name of a machine to a profile, with progress shown.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use memlode_attribute::{DetailedProfile, Profile, profile_in_detail, profile_trace};
use memlode_machine::Machine;
use memlode_trace::event::ThreadId;
use memlode_trace::{Replayed, Trace};

use crate::term;

/// A trace, a machine, and what one did on the other.
pub struct Analysed<P = Profile> {
    /// The trace.
    pub trace: Trace,
    /// The machine.
    pub machine: Machine,
    /// The counts.
    pub profile: P,
    /// What could not be decoded.
    pub replayed: Replayed,
}

/// Opens, simulates and counts.
pub fn analyse(directory: &Path, machine: &str) -> Result<Analysed> {
    simulate(directory, machine, |trace, machine, bar| {
        Ok(profile_trace(trace, machine, threads(), |_| {
            term::advance(bar, 1);
            ControlFlow::Continue(())
        })?)
    })
}

/// The same with why everything missed. Pages have the machine's size if none is given.
pub fn in_detail(
    directory: &Path,
    machine: &str,
    page_bytes: Option<u64>,
) -> Result<Analysed<DetailedProfile>> {
    simulate(directory, machine, |trace, machine, bar| {
        let page_bytes = page_bytes.unwrap_or(machine.page_bytes);
        Ok(profile_in_detail(trace, machine, page_bytes, threads(), |_| {
            term::advance(bar, 1);
            ControlFlow::Continue(())
        })?)
    })
}

fn simulate<P>(
    directory: &Path,
    machine: &str,
    profile: impl FnOnce(&Trace, &Machine, &ProgressBar) -> Result<(P, Replayed)>,
) -> Result<Analysed<P>> {
    // A mistyped machine is told before minutes of work.
    let machine = Machine::find(machine)?;
    let trace = open(directory)?;
    if trace.chunks().is_empty() {
        bail!("{}", nothing_recorded(&trace));
    }
    let bar = term::progress(trace.chunks().len() as u64, "simulating");
    let (profile, replayed) = profile(&trace, &machine, &bar)
        .with_context(|| format!("the machine {} cannot be simulated", machine.name))?;
    bar.finish_and_clear();
    something_decoded(&trace, &replayed)?;
    Ok(Analysed { trace, machine, profile, replayed })
}

/// A trace of which nothing could be decoded is an error.
pub fn something_decoded(trace: &Trace, replayed: &Replayed) -> Result<()> {
    if replayed.chunks == 0 {
        let first = replayed.damaged.first().map(|(_, error)| error.to_string()).unwrap_or_default();
        bail!("nothing in {} could be decoded: {first}", trace.directory().display());
    }
    Ok(())
}

/// Each thread keeps the program's objects: more of them would cost memory and gain little.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(16)
}

/// Opens a trace.
pub fn open(directory: &Path) -> Result<Trace> {
    Ok(Trace::open(directory)?)
}

/// The thread that `PROCESS.THREAD` names, or `THREAD` of process 0.
pub fn find_thread(trace: &Trace, wanted: &str) -> Result<ThreadId> {
    let (process, index) = wanted.split_once('.').unwrap_or(("0", wanted));
    let known = || -> Vec<String> {
        trace.threads().iter().take(20).map(|t| format!("{}.{}", t.process.0, t.index)).collect()
    };
    let found = process.parse::<u32>().ok().zip(index.parse::<u32>().ok()).and_then(|(process, index)| {
        trace.threads().iter().position(|t| t.process.0 == process && t.index == index)
    });
    let Some(found) = found else {
        bail!("--thread {wanted}: there is no such thread; the trace has {}", known().join(", "));
    };
    Ok(ThreadId(found as u32))
}

/// Why a trace has no events, as a sentence.
pub fn nothing_recorded(trace: &Trace) -> String {
    let directory = trace.directory().display();
    if let Some(damage) = trace.damage().first() {
        format!("nothing of {directory} can be read: {damage}")
    } else if trace.processes().is_empty() {
        format!(
            "{directory} holds no events: nothing that ran was built by memlode; build the program with `memlode cc` \
             or `memlode c++` (see `memlode help cc`), or with `memlode cargo`, and record it again"
        )
    } else if let Some(burst) = trace.manifest().info.burst {
        format!(
            "{directory} holds no events: nothing ran in a burst, of which the first comes after {:.3} s; record with a \
             shorter period, or without --burst",
            (burst.period_us - burst.on_us.min(burst.period_us)) as f64 / 2e6
        )
    } else if let [first, ..] = &trace.manifest().info.only[..] {
        format!("{directory} holds no events: {first}")
    } else if trace.sites().is_filtered() {
        format!(
            "{directory} holds no events: the filter that the program was compiled with leaves out all that it did"
        )
    } else {
        format!(
            "{directory} holds no events: the program ended before it touched memory in instrumented code"
        )
    }
}
