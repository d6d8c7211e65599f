//! An analysis that runs beside the program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use memlode_attribute::Source;
use memlode_machine::Machine;
use memlode_replay::{LiveTrace, Replayed, live};
use memlode_trace::write::Store;

use crate::analyse::{Analysed, Found, Job};
use crate::destination::created;
use crate::term;

/// The name of an unnamed trace in a report.
const UNNAMED: &str = "not stored";

/// An analysis of a trace that is being recorded.
pub struct Beside {
    /// The directory where the trace is kept, too.
    pub kept: Option<PathBuf>,
    may_have_gaps: bool,
    trace: Weak<LiveTrace>,
    thread: JoinHandle<Result<Done>>,
}

/// The work is done. Giving it up drops the trace, which the writer notices.
struct Done {
    machine: Machine,
    found: Found,
    replayed: Replayed,
    trace: Arc<LiveTrace>,
}

impl Beside {
    /// Begins to analyse the data of the store. `may_have_gaps` says whether recording may be off
    /// now and then.
    pub fn start(
        job: Job,
        kept: Option<(&Path, bool)>,
        may_have_gaps: bool,
    ) -> Result<(Beside, Box<dyn Store>)> {
        let kept = match kept {
            Some((path, replace)) => Some((path, created(path, replace)?)),
            None => None,
        };
        let (name, directory) = match kept {
            Some((path, directory)) => (path, Some(Box::new(directory) as Box<dyn Store>)),
            None => (Path::new(UNNAMED), None),
        };
        let (store, trace) = live(name, directory);
        let trace = Arc::new(trace);
        let seen = Arc::downgrade(&trace);
        let thread = std::thread::Builder::new()
            .name("memlode-live".to_owned())
            .spawn(move || {
                let source = Source::Live { trace: trace.clone(), may_have_gaps };
                let (machine, (found, replayed)) = job.find(&source, |_| {})?;
                Ok(Done { machine, found, replayed, trace })
            })
            .context("cannot start a thread")?;
        let kept = (name != Path::new(UNNAMED)).then(|| name.to_owned());
        Ok((Beside { kept, may_have_gaps, trace: seen, thread }, Box::new(store)))
    }

    /// Returns the closure that gives the analysis up, so that the trace is completed without it.
    /// `None` if no trace is kept.
    pub fn giving_up(&self) -> Option<impl Fn() + Send + use<>> {
        let trace = self.trace.clone();
        self.kept.is_some().then_some(move || {
            if let Some(trace) = trace.upgrade() {
                trace.desert();
            }
        })
    }

    /// Waits until everything that was recorded is analysed.
    pub fn finish(self) -> Result<Analysed> {
        let Done { machine, found, replayed, trace } =
            self.thread.join().map_err(|_| anyhow::anyhow!("the simulation failed"))??;
        let trace = trace.take_trace();
        let without_bounds =
            matches!(found, Found::Report(..) | Found::Simulation(..)) && !self.may_have_gaps;
        if without_bounds && trace.chunks().iter().any(|chunk| chunk.is_after_gap()) {
            term::note(
                "recording was off for a while: the figures are those of what was recorded, without bounds for the rest; with \
                 --signal, --region or --burst there are bounds",
            );
        }
        Analysed::new(Arc::new(trace), machine, found, replayed)
    }
}
