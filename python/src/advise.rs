//! `Trace.advise`: the edits that `memlode advise` finds, as Python's dictionaries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use memlode_analyses::findings_of;
use memlode_attribute::CostModel;
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_report::names::demangle_short;
use memlode_report::render::json;
use memlode_report::{build, notes};
use memlode_trace::Trace;
use memlode_whatif::advise::{Baseline, Effort, advise, written};
use memlode_whatif::host::Host;
use pyo3::prelude::*;

use crate::{PATIENCE, error};

/// News of a search that goes on in a thread of its own.
enum News {
    /// Edits that are worth it, and the part of the run's cycles that they gain.
    Found(String, f64),
    /// The end, with the JSON of `memlode advise` or the reason why there is none.
    Done(Result<String, String>),
}

/// Python, which waits for news and may stop the search.
struct Interpreter {
    news: Mutex<Sender<News>>,
    is_stopped: Arc<AtomicBool>,
}

impl Host for Interpreter {
    fn found(&self, edits: &[Edit], gain: f64) {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody listens any more once it is stopped.
        let _ = news.send(News::Found(written(edits), gain));
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn written(&self, linkage: &str) -> String {
        demangle_short(linkage)
    }
}

/// Tries edits on a machine, tells `found` of those that are worth it, and returns the JSON of `memlode advise`.
pub fn run(
    py: Python<'_>,
    trace: &Arc<Trace>,
    machine: Machine,
    effort: Effort,
    found: Option<&Py<PyAny>>,
) -> PyResult<String> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let host = Interpreter { news: Mutex::new(sender.clone()), is_stopped: is_stopped.clone() };
    let trace = trace.clone();
    let work = std::thread::spawn(move || {
        let _ = sender.send(News::Done(search(trace, machine, effort, host)));
    });
    let answer = wait(py, &Mutex::new(receiver), found);
    is_stopped.store(true, Ordering::Relaxed);
    py.detach(|| drop(work.join()));
    answer
}

/// Waits for the end. A signal, or a function that raises, is one.
fn wait(py: Python<'_>, news: &Mutex<Receiver<News>>, found: Option<&Py<PyAny>>) -> PyResult<String> {
    loop {
        let next = py.detach(|| {
            let news = news.lock().unwrap_or_else(PoisonError::into_inner);
            news.recv_timeout(PATIENCE)
        });
        match next {
            Ok(News::Found(edit, gain)) => {
                if let Some(found) = found {
                    found.call1(py, (edit, gain))?;
                }
            }
            Ok(News::Done(answer)) => return answer.map_err(error),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(error("the search ended without an answer")),
        }
    }
}

fn search(trace: Arc<Trace>, machine: Machine, effort: Effort, host: Interpreter) -> Result<String, String> {
    if notes::is_empty(&trace) {
        return Err(notes::nothing_recorded(&trace));
    }
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get()).min(16);
    let baseline = Baseline::count(trace, machine, (None, None), threads, Box::new(host));
    let baseline = baseline.map_err(|why| why.to_string())?;
    let advised = advise(&baseline, effort).map_err(|why| why.to_string())?;
    let noise = baseline.noise().map_err(|why| why.to_string())?.range();
    let costs = CostModel::new(&baseline.profile, baseline.trace.sites(), &baseline.machine);
    let findings = findings_of(&baseline.trace, &baseline.machine, &baseline.profile, &costs);
    let as_it_is = build::what_if::side(&baseline, findings);
    let advice = build::what_if::advice(&baseline, &as_it_is, &advised, noise);
    json::advice(&advice).map_err(|why| why.to_string())
}
