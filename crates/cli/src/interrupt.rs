//! Signals that come while a program is recorded: the program's as long as it runs, and an end to our work afterwards.
//!
//! ```text
//!  Starting ──► Running ────────► Collecting ──────────────────────► Leaving
//!  kept for     the program's;    the first: no more waiting, the     "trace kept in …",
//!  the program  passed on         trace is completed, no report       exit 128 + n at once
//! ```

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use memlode_collect::Switch;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};

use crate::term;

/// Receives signals until it is dropped.
pub struct Signals {
    state: Arc<Mutex<State>>,
    handle: Handle,
    listener: Option<JoinHandle<()>>,
}

struct State {
    phase: Phase,
    /// The signal that ended our own work.
    caught: Option<i32>,
    /// Directories that must not be left behind.
    scratch: Vec<PathBuf>,
}

enum Phase {
    /// The program is about to run.
    Starting(Vec<Signal>),
    /// It runs.
    Running { program: OwnedFd, toggle: Option<(i32, Switch)> },
    /// The work is still being written. The closure ends everything that would wait for it; without
    /// one, nothing is worth waiting for.
    Collecting { hurry: Option<Box<dyn Fn() + Send>>, words: String },
    /// Everything is written.
    Leaving { words: String },
}

impl Signals {
    /// Begins to receive. A program that has not started yet gets these signals when it starts.
    pub fn receive() -> Result<Signals> {
        let mut signals = SignalsInfo::<WithOrigin>::new(received()).context("cannot receive signals")?;
        let state = State { phase: Phase::Starting(Vec::new()), caught: None, scratch: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let handle = signals.handle();
        let shared = state.clone();
        let listener = std::thread::spawn(move || {
            for origin in signals.forever() {
                lock(&shared).take(origin.signal, origin.process.is_some());
            }
        });
        Ok(Signals { state, handle, listener: Some(listener) })
    }

    /// A program runs: a signal that toggles the recording is ours, the others are the program's.
    pub fn started(&self, program: OwnedFd, toggle: Option<(i32, Switch)>) {
        let mut state = lock(&self.state);
        if let Phase::Starting(early) = &state.phase {
            for signal in early {
                let _ = rustix::process::pidfd_send_signal(program.as_fd(), *signal);
            }
        }
        state.phase = Phase::Running { program, toggle };
    }

    /// The program has ended. The next signal calls `hurry`, and the one after it ends us with these words; if there is
    /// nothing to be saved, the next one does.
    pub fn collecting(&self, words: String, hurry: Option<Box<dyn Fn() + Send>>) {
        lock(&self.state).phase = Phase::Collecting { hurry, words };
    }

    /// Everything is written that should be. The next signal ends us, with these words. Returns the signal that came
    /// already.
    pub fn leaving(&self, words: String) -> Option<i32> {
        let mut state = lock(&self.state);
        state.phase = Phase::Leaving { words };
        state.caught
    }

    /// A directory that is to be removed when a signal ends us.
    pub fn remove_at_end(&self, directory: PathBuf) {
        lock(&self.state).scratch.push(directory);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl State {
    /// Handles a signal. From the terminal it has no sender, and goes to all processes there.
    fn take(&mut self, number: i32, has_sender: bool) {
        let signal = Signal::from_named_raw(number);
        match &mut self.phase {
            Phase::Starting(early) => early.extend(signal),
            Phase::Running { toggle: Some((toggling, switch)), .. } if *toggling == number => switch.toggle(),
            Phase::Running { program, .. } => {
                if let Some(signal) = signal.filter(|_| has_sender) {
                    let _ = rustix::process::pidfd_send_signal(program.as_fd(), signal);
                }
            }
            Phase::Collecting { .. } | Phase::Leaving { .. } if !ENDING.contains(&number) => {}
            Phase::Collecting { hurry: Some(hurry), .. } if self.caught.is_none() => {
                hurry();
                self.caught = Some(number);
            }
            Phase::Collecting { words, .. } | Phase::Leaving { words } => {
                for directory in &self.scratch {
                    let _ = std::fs::remove_dir_all(directory);
                }
                let (done, told) = mpsc::channel();
                let words = std::mem::take(words);
                std::thread::spawn(move || {
                    term::clear();
                    term::line(&words);
                    done.send(())
                });
                // A reader that takes nothing more must not keep us here.
                let _ = told.recv_timeout(PATIENCE);
                std::process::exit(i32::from(status(number)));
            }
        }
    }
}

/// Last words wait no longer than this.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the exit status that shells report for a signal.
pub fn status(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}

/// Signals that ask a program to end.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Signals that we handle. Ignored ones (`nohup memlode run …`) stay ignored: a handler of ours
/// would make the program start with the default action.
fn received() -> Vec<i32> {
    let ignored = ignored();
    let signals = ENDING.into_iter().chain([SIGUSR1, SIGUSR2, SIGWINCH]);
    signals.filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Signals that are ignored, a bit each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Turns the signal for a file that may not grow (`ulimit -f`) into an error of the write, which
/// has a message. Programs that we start do not inherit that, as they would inherit an ignored
/// signal.
pub fn survive_limits() {
    if ignored() >> (SIGXFSZ - 1) & 1 == 0 {
        // It can be registered; without it, the limit is as deadly as to others.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
