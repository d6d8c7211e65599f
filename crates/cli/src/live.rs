//! A simulation that runs beside the program.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use memlode_attribute::{Profile, profile_live};
use memlode_machine::Machine;
use memlode_trace::write::{DirectoryStore, Store};
use memlode_trace::{LiveTrace, Replayed, live};

use crate::analyse::{Analysed, threads};
use crate::term;

/// What an unnamed trace is called in a report.
const UNNAMED: &str = "not stored";

/// A simulation of a trace that is being recorded.
pub struct Simulation {
    /// Where the trace is kept, too.
    pub kept: Option<PathBuf>,
    machine: Machine,
    gaps: bool,
    thread: JoinHandle<Result<(Profile, Replayed, LiveTrace)>>,
}

impl Simulation {
    /// Begins to simulate what is put into the store. `gaps` says whether recording may be off now and then.
    pub fn start(
        machine: &str,
        kept: Option<(&Path, bool)>,
        gaps: bool,
    ) -> Result<(Simulation, Box<dyn Store>)> {
        let machine = Machine::find(machine)?;
        let kept = match kept {
            Some((path, replace)) => Some((path, DirectoryStore::create(path, replace)?)),
            None => None,
        };
        let (name, directory) = match kept {
            Some((path, directory)) => (path, Some(Box::new(directory) as Box<dyn Store>)),
            None => (Path::new(UNNAMED), None),
        };
        let (store, live) = live(name, directory);
        let simulated = machine.clone();
        let thread = std::thread::Builder::new()
            .name("memlode-simulate".to_owned())
            .spawn(move || {
                let (profile, replayed) = profile_live(&live, &simulated, threads(), gaps)
                    .with_context(|| format!("the machine {} cannot be simulated", simulated.name))?;
                Ok((profile, replayed, live))
            })
            .context("cannot start a thread")?;
        let kept = (name != Path::new(UNNAMED)).then(|| name.to_owned());
        Ok((Simulation { kept, machine, gaps, thread }, Box::new(store)))
    }

    /// Waits until everything that was recorded is simulated.
    pub fn finish(self) -> Result<Analysed> {
        let (profile, replayed, live) =
            self.thread.join().map_err(|_| anyhow::anyhow!("the simulation failed"))??;
        let trace = live.into_trace();
        if !self.gaps && trace.chunks().iter().any(|chunk| chunk.is_after_gap()) {
            term::note(
                "recording was off for a while: the figures are those of what was recorded, without bounds for the rest; with \
                 --signal, --region or --burst there are bounds",
            );
        }
        Ok(Analysed { trace, machine: self.machine, profile, replayed })
    }
}
