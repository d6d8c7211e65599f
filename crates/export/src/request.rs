//! Requests of a user, by the names that the machine and the trace have, and why they cannot be granted.

use std::ops::Range;
use std::sync::Arc;

use memlode_attribute::annotate::{Annotations, Extras, Options};
use memlode_attribute::setup::Setup;
use memlode_attribute::simulators::ImpossibleMachine;
use memlode_attribute::{Simulation, Source};
use memlode_machine::Machine;
use memlode_report::build::notes::nothing_recorded;
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;
use thiserror::Error;

use crate::encoder::BatchEncoder;

/// Which accesses are exported, and which of their facts.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    /// Why they missed, too, with the machine set up so.
    pub causes: Option<Setup>,
    /// One thread only: `PROCESS.THREAD`, or `THREAD` of process 0.
    pub thread: Option<String>,
    /// Only accesses that these levels served; empty: all.
    pub levels: Vec<String>,
    /// Only accesses that missed the first level.
    pub misses_only: bool,
    /// The most accesses that are exported.
    pub limit: Option<u64>,
    /// Only accesses with these numbers in replay order; `None`: all.
    pub stretch: Option<Range<u64>>,
    /// Simulate no caches: the level is then unknown, and every access has the first one.
    pub without_caches: bool,
}

/// Why a request cannot be met.
#[derive(Debug, Error)]
pub enum Refused {
    /// Nothing was recorded.
    #[error("{0}")]
    Empty(String),
    /// No such thread.
    #[error("there is no thread {wanted}; the trace has {}", known.join(", "))]
    Thread {
        /// The name as requested.
        wanted: String,
        /// Some that there are.
        known: Vec<String>,
    },
    /// No such level.
    #[error("the machine {machine} has no level {wanted}; it has {}", known.join(", "))]
    Level {
        /// The machine.
        machine: String,
        /// The name as requested.
        wanted: String,
        /// The valid names.
        known: Vec<String>,
    },
    /// Impossible caches or translations.
    #[error("the machine {machine} cannot be simulated: {why}")]
    Machine {
        /// The machine.
        machine: String,
        /// The fault.
        why: ImpossibleMachine,
    },
}

/// Starts the request: a replay, and the encoder of its batches.
pub fn start(
    trace: &Arc<Trace>,
    machine: &Machine,
    request: &ExportRequest,
) -> Result<(Annotations, BatchEncoder), Refused> {
    if trace.chunks().is_empty() {
        return Err(Refused::Empty(nothing_recorded(trace)));
    }
    let options = Options {
        causes: request.causes.clone(),
        thread: request.thread.as_deref().map(|wanted| find_thread(trace, wanted)).transpose()?,
        levels: levels(request, machine)?,
        limit: request.limit.unwrap_or(u64::MAX),
        blocks: false,
        extras: Extras::default(),
        without_caches: request.without_caches,
        stretch: request.stretch.clone().unwrap_or(0..u64::MAX),
        tables: None,
    };
    let refused = |why| Refused::Machine { machine: machine.name.clone(), why };
    let source = Source::Stored(trace.clone());
    let annotations = Simulation::of(&source, machine).rows(options).map_err(refused)?;
    Ok((annotations, BatchEncoder::new(trace.clone(), machine, request.causes.is_some())))
}

/// The thread that `PROCESS.THREAD` names, or `THREAD` of process 0.
pub fn find_thread(trace: &Trace, wanted: &str) -> Result<ThreadId, Refused> {
    let (process, index) = wanted.split_once('.').unwrap_or(("0", wanted));
    let found = process.parse::<u32>().ok().zip(index.parse::<u32>().ok()).and_then(|(process, index)| {
        trace.threads().iter().position(|t| t.process.0 == process && t.index == index)
    });
    let known = || trace.threads().iter().take(20).map(|t| format!("{}.{}", t.process.0, t.index)).collect();
    let found = found.ok_or_else(|| Refused::Thread { wanted: wanted.to_string(), known: known() });
    Ok(ThreadId(found? as u32))
}

/// The requested levels, a bit each.
fn levels(request: &ExportRequest, machine: &Machine) -> Result<u32, Refused> {
    let all = if request.misses_only { !1 } else { u32::MAX };
    if request.levels.is_empty() {
        return Ok(all);
    }
    let known = machine.served_by();
    request.levels.iter().try_fold(0, |levels, wanted| {
        let found = known.iter().position(|level| level.eq_ignore_ascii_case(wanted));
        let refused =
            || Refused::Level { machine: machine.name.clone(), wanted: wanted.clone(), known: known.clone() };
        Ok(levels | all & 1 << found.ok_or_else(refused)?)
    })
}
