//! The unedited trace, for the commands that compare: counted with progress shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use memlode_analyses::findings_of;
use memlode_attribute::CostModel;
use memlode_attribute::setup::Setup;
use memlode_attribute::sharing::Order;
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_report::names::demangle_short;
use memlode_report::notes::{self, is_empty, nothing_decoded, nothing_recorded, sentences};
use memlode_report::render::terminal;
use memlode_report::{NamedComparison, Note, Report, build};
use memlode_trace::Trace;
use memlode_whatif::advise::Baseline;
use memlode_whatif::host::{AllocatorFactory, Host, ReplayProgress};

use crate::analyse::threads;
use crate::{place, stop, term};

/// Counts a trace, as `report` does or with a machine's rules, and reports its gaps.
pub fn count(
    trace: Arc<Trace>,
    machine: Machine,
    setup: Option<Setup>,
    order: Option<Order>,
) -> Result<Baseline> {
    if is_empty(&trace) {
        bail!("{}", nothing_recorded(&trace));
    }
    let cannot = format!("the machine {} cannot be simulated", machine.name);
    let host = Box::new(Terminal::of(&trace));
    let baseline =
        Baseline::count(trace.clone(), machine, (setup, order), threads(), host).context(cannot)?;
    if let Some(why) = nothing_decoded(&trace, &baseline.replayed) {
        bail!("{why}");
    }
    for note in sentences(&trace, Some(&baseline.replayed)) {
        term::note(&note);
    }
    Ok(baseline)
}

/// The notes that [`count`] reports.
pub fn notes(baseline: &Baseline) -> Vec<Note> {
    notes::notes(&baseline.trace, Some(&baseline.replayed))
}

/// The time that passes at least between two lines that say how far a search is.
const PATIENCE: Duration = Duration::from_secs(5);

/// A terminal that shows progress, and the C library's `malloc`.
struct Terminal {
    chunks: u64,
    /// When it last told how far a search is.
    told: Mutex<Instant>,
}

impl Terminal {
    fn of(trace: &Trace) -> Terminal {
        Terminal { chunks: trace.chunks().len() as u64, told: Mutex::new(Instant::now()) }
    }
}

impl Host for Terminal {
    fn progress(&self, doing: &'static str) -> ReplayProgress {
        let bar = term::Progress::new(self.chunks, doing);
        Box::new(move |done| bar.advance_to(done))
    }

    /// Also reports into a pipe, where no bar is seen; seldom, as most searches take seconds.
    fn tries(&self, number: usize, of: usize) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= PATIENCE {
            *told = Instant::now();
            term::line(&terminal::tries(number, of));
        }
    }

    fn found(&self, edits: &[Edit], gain: f64) {
        term::line(&terminal::found(edits, gain));
    }

    fn is_stopped(&self) -> bool {
        stop::is_search_ended()
    }

    fn allocators(&self) -> AllocatorFactory {
        Box::new(place::allocators())
    }

    fn allocator_name(&self) -> &str {
        place::NAME
    }

    fn written(&self, linkage: &str) -> String {
        demangle_short(linkage)
    }
}

/// Builds the report of a run without edits.
pub fn as_it_is(run: &Baseline) -> Report {
    let costs = CostModel::new(&run.profile, run.trace.sites(), &run.machine);
    build::what_if::side(run, findings_of(&run.trace, &run.machine, &run.profile, &costs))
}

/// Compares two runs, with what analyses find in each. The effect of placement is measured on the
/// first.
pub fn compared(sides: [&Baseline; 2]) -> Result<NamedComparison> {
    let cycles = sides.map(|side| side.cycles().run);
    let noise = sides[0].noise()?.range();
    let [before, after] = sides.map(as_it_is);
    Ok(build::comparison(&before, &after, cycles, Some(noise)))
}
