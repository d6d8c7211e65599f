//! From a trace directory and the name of a machine to a profile, with progress shown.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use memlode_attribute::simulator::Setup;
use memlode_attribute::{DetailedProfile, Profile, profile_in_detail, profile_trace};
use memlode_machine::Machine;
use memlode_report::notes::{nothing_decoded, nothing_recorded};
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

/// The same with why everything missed.
pub fn in_detail(
    directory: &Path,
    machine: &str,
    setup: impl FnOnce(&Machine) -> Result<Setup>,
) -> Result<Analysed<DetailedProfile>> {
    simulate(directory, machine, |trace, machine, bar| {
        Ok(profile_in_detail(trace, machine, &setup(machine)?, threads(), |_| {
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
    if let Some(why) = nothing_decoded(&trace, &replayed) {
        bail!("{why}");
    }
    Ok(Analysed { trace, machine, profile, replayed })
}

/// Each thread keeps the program's objects: more of them would cost memory and gain little.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(16)
}

/// Opens a trace.
pub fn open(directory: &Path) -> Result<Trace> {
    Ok(Trace::open(directory)?)
}
