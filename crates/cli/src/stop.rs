//! A flag for work that ends early and keeps its results.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use memlode_report::render::terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::term;

/// The shells' status of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// Set by the first of the signals that ask us to end; the second ends us.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset and sets it.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot receive signals")?;
    }
    Ok(stop)
}

/// Set when a search is to end with what it has.
static SEARCH: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Makes the first of these signals end the command's search.
pub fn end_search_on_signals() -> Result<()> {
    let stop = stop_on_signals()?;
    SEARCH.get_or_init(|| stop);
    Ok(())
}

/// Returns the answer of a search. One that a signal ended before anything was found has none, and
/// says so.
pub fn unless_search_ended<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(_) if is_search_ended() => {
            term::line(terminal::NOTHING_TRIED);
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

/// The exit status of a search that has an answer.
pub fn searched() -> ExitCode {
    if is_search_ended() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
}

/// Returns true once a signal has ended the search.
pub fn is_search_ended() -> bool {
    SEARCH.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}
