//! The collector: shared-memory rings of traced programs to a trace directory.
//!
//! ```
//! use memlode_collect::{Collector, CommandEnd, Destination, Options};
//!
//! # let folder = tempfile::tempdir()?;
//! let destination = Destination::directory(&folder.path().join("trace"), false, Default::default())?;
//! let collector = Collector::start(Options::new(destination))?;
//! // A program that finds this socket in its environment is recorded; here none does.
//! assert!(collector.socket_path().exists());
//! let summary = collector.finish(CommandEnd { exit_code: Some(0), signal: None })?;
//! assert!(summary.is_whole());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!  program ── hello, images ──► socket ──► control ──► Process: memory, images, threads
//!     │                                                   │
//!     └── words ──► ring ──► worker: copy, clear, give back, encode ──► Output ──► trace directory
//! ```
//! * `socket`: where programs connect, and their messages
//! * `control`: one thread that replies and notices when they end
//! * `private`: the folder of that socket, out of reach of other users
//! * `shared`: the shared memory, whose contents are never trusted
//! * `process`: the images and threads of one process
//! * `images`: the ELF files of the images that a program has loaded
//! * `reader`: one ring, read in order
//! * `packing`: encoded chunks that wait to be packed
//! * `worker`: the threads that do the reading and encoding, and when they sleep
//! * `pace`: bursts, and the recorded stretch of time
//! * `switch`: how the user switches recording on and off
//! * `output`: the destination, and what happens when the disk is full
//!
//! Whatever a traced program does to its shared memory, the collector does not panic, hang or read
//! out of bounds.
//!
//! # Encoding keeps up
//!
//! A thread of a program writes faster than one of ours encodes. So the reader of its ring cuts the
//! words into batches, and all workers encode (`ahead`). A chunk needs little of those before it,
//! which is added when they are joined in order (`crates/trace/src/write/history.rs`): the calls in
//! progress, and words that addresses are derived from. The latter are first values of differences,
//! so an encoder must know them. It searches the words of the batches before, since no other word
//! has the value of a header, and the result is verified when the chunk is joined. If only one
//! thread found the segments of all words, the program would wait for that thread.

mod ahead;
mod clock;
mod control;
pub mod error;
mod images;
mod output;
mod pace;
mod packing;
pub mod private;
mod process;
mod promises;
mod reader;
mod shared;
mod socket;
mod switch;
mod worker;

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memlode_trace::format::{limit, off, ring};
use memlode_trace::manifest::{Burst, Summary as ManifestSummary};

pub use crate::error::Error;
pub use crate::output::Destination;
use crate::output::Output;
use crate::pace::Pace;
use crate::socket::Socket;
pub use crate::switch::Switch;
use crate::worker::Shared;

/// The environment variable with the address of a program's collector.
pub const ENVIRONMENT: &str = "MEMLODE_COLLECTOR";

/// Bytes that the names of regions may have together, with one more each.
pub const MOST_REGIONS_BYTES: usize = shared::REGIONS_BYTES - 1;

/// Options of a recording.
pub struct Options {
    /// The destination.
    pub destination: Destination,
    /// Threads that read rings, and encode and pack their words; `None` for one per two processors,
    /// at least two if there are two processors, at most eight.
    pub workers: Option<usize>,
    /// When the command has ended: wait for descendants as long as they live, or only for those
    /// that are ending as well.
    pub wait_for_all: bool,
    /// Record in bursts only; they begin to be counted when the collector starts.
    pub burst: Option<Burst>,
    /// Record only after this delay from the collector's start.
    pub delay: Duration,
    /// Record only for this long, after the delay.
    pub length: Option<Duration>,
    /// Stop recording when this many accesses have been written; some more may be on their way.
    pub most_accesses: Option<u64>,
    /// Record only in these regions, which the program marks by `memlode_start` and `memlode_stop`.
    /// If there are none, everywhere.
    pub regions: Vec<String>,
    /// The time for which a program without room to write waits for a collector that shows no sign
    /// of life; then it goes on unrecorded. Zero: for ever.
    pub patience: Duration,
}

impl Options {
    /// The usual way.
    pub fn new(destination: Destination) -> Options {
        Options {
            destination,
            workers: None,
            wait_for_all: false,
            burst: None,
            delay: Duration::ZERO,
            length: None,
            most_accesses: None,
            regions: Vec::new(),
            patience: Duration::from_millis(ring::PATIENCE_MS.into()),
        }
    }
}

/// The directory in which a collector would open its socket; it has been tried.
///
/// # Errors
/// When no directory lets a socket be opened.
pub fn socket_directory() -> Result<PathBuf, Error> {
    let socket = Socket::open()?;
    Ok(socket.path().ancestors().nth(2).unwrap_or(Path::new("/")).to_owned())
}

/// Counts of the recording so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Words of all streams.
    pub words: u64,
    /// Accesses in the chunks written so far; 0 while discarding.
    pub accesses: u64,
    /// Packed bytes written so far.
    pub bytes: u64,
    /// Processes that registered.
    pub processes: u64,
    /// Threads that recorded something.
    pub threads: u64,
}

/// The end of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Everything that was recorded, and everything that was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Totals.
    pub stats: Stats,
    /// Last segments that lacked words and were dropped: at most one per thread that was cut short,
    /// and one per signal handler that was left for good.
    pub torn_segments: u64,
    /// Loops, copies and fills that were the last thing begun by a program that was killed, or by
    /// code that a signal handler left for good. Of each the first access is in the trace.
    pub unfinished: u64,
    /// Words dropped because no known image explains them.
    pub unknown_words: u64,
    /// Words dropped because they could not be written.
    pub unwritten_words: u64,
    /// Threads that found no room in the shared memory.
    pub unregistered_threads: u64,
    /// Processes that went on without us, since we had shown no sign of life.
    pub given_up: u64,
    /// Why writing stopped, if it did.
    pub failure: Option<String>,
    /// Sentences about anything else that is missing.
    pub notes: Vec<String>,
}

impl RecordingSummary {
    /// Returns whether every event of every process is in the trace.
    pub fn is_whole(&self) -> bool {
        self.unknown_words == 0
            && self.unwritten_words == 0
            && self.unregistered_threads == 0
            && self.given_up == 0
            && self.failure.is_none()
            && self.notes.is_empty()
    }
}

/// A running collector.
pub struct Collector {
    shared: Arc<Shared>,
    socket: Arc<Socket>,
    stop: Arc<OwnedFd>,
    control: Option<JoinHandle<()>>,
    pace: Arc<Pace>,
    timing: Vec<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
    wait_for_all: bool,
    rate: clock::Rate,
}

/// Descendants that are still alive this long after the command are not ending.
const LINGER: Duration = Duration::from_millis(500);
/// A child that was forked just before its parent ended registers within this time.
const SETTLE: Duration = Duration::from_millis(20);

impl Collector {
    /// Opens the destination and the socket, and starts to listen.
    pub fn start(options: Options) -> Result<Collector, Error> {
        let system = |what| move |source: std::io::Error| Error::System { what, source };
        let socket = Arc::new(Socket::open()?);
        let usual =
            std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2).clamp(n.get().min(2), 8));
        let workers = options.workers.unwrap_or(usual).max(1);
        let output = Output::open(options.destination)?;
        let Options { regions, most_accesses, patience, .. } = options;
        let shared = Shared::new(output, workers, regions, most_accesses, patience);
        let shared = Arc::new(shared);
        let stop = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)
            .map_err(|error| system("create an eventfd")(error.into()))?;
        let mut collector = Collector {
            shared,
            socket,
            stop: Arc::new(stop),
            control: None,
            pace: Arc::default(),
            timing: Vec::new(),
            workers: Vec::new(),
            wait_for_all: options.wait_for_all,
            rate: clock::Rate::start(),
        };
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(body).map_err(system("start a thread"))
        };
        for index in 0..workers {
            let (shared, socket) = (collector.shared.clone(), collector.socket.clone());
            let body = move || {
                let work = || if index == 0 { shared.lead() } else { shared.help() };
                if catch_unwind(AssertUnwindSafe(work)).is_err() {
                    // Nobody may read on: programs must not wait for us.
                    socket.retire();
                    shared.output.note("the collector failed; the rest was not recorded".to_owned());
                }
            };
            collector.workers.push(start("memlode-read", Box::new(body))?);
        }
        if options.burst.is_some() {
            collector.pace.set_burst(options.burst);
            collector.shared.switch(off::PACE, true);
        }
        let (shared, pace) = (collector.shared.clone(), collector.pace.clone());
        collector.timing.push(start("memlode-pace", Box::new(move || pace.keep(&shared)))?);
        let (delay, length) = (options.delay, options.length);
        if !delay.is_zero() || length.is_some() {
            collector.shared.switch(off::WINDOW, !delay.is_zero());
            let (shared, pace) = (collector.shared.clone(), collector.pace.clone());
            let body = move || pace.keep_window(&shared, delay, length);
            collector.timing.push(start("memlode-window", Box::new(body))?);
        }
        let (shared, socket, stop) =
            (collector.shared.clone(), collector.socket.clone(), collector.stop.clone());
        collector.control =
            Some(start("memlode-listen", Box::new(move || control::listen(&shared, &socket, &stop)))?);
        Ok(collector)
    }

    /// Returns the value of [`ENVIRONMENT`] for programs.
    pub fn socket_path(&self) -> &Path {
        self.socket.path()
    }

    /// Returns the switch of recording.
    pub fn switch(&self) -> Switch {
        Switch { shared: self.shared.clone(), pace: self.pace.clone() }
    }

    /// Totals so far, for a progress line.
    pub fn stats(&self) -> Stats {
        stats(&self.shared)
    }
    /// Processes that are still recorded.
    pub fn live_processes(&self) -> usize {
        self.shared.processes().len()
    }

    /// Ends the recording: reads all that was written and completes the trace. To be called when
    /// the command has ended, or earlier to stop recording it.
    pub fn finish(mut self, outcome: CommandEnd) -> Result<RecordingSummary, Error> {
        let start = Instant::now();
        let mut quiet_since = start;
        loop {
            match self.live_processes() {
                0 if quiet_since.elapsed() >= SETTLE => break,
                0 => {}
                _ if !self.wait_for_all && start.elapsed() >= LINGER => break,
                _ if self.pace.has_waited_enough() => break,
                _ => quiet_since = Instant::now(),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.stop_listening();
        for process in self.shared.processes() {
            if !process.is_over() {
                self.shared.output.note(format!(
                    "process {} was still running when recording ended",
                    process.pid.as_raw_pid()
                ));
            }
            process.mark_over();
        }
        self.shared.wake();
        while self.live_processes() > 0 && self.workers.iter().all(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.stop_workers();
        let output = &self.shared.output;
        let refused = output.counters.refused_processes.load(Ordering::Relaxed);
        if refused > 0 {
            let most = limit::PROCESSES;
            output.note(format!(
                "{refused} processes are not recorded: a trace holds {most}, and as many had come before"
            ));
        }
        let mut summary = self.summary();
        let finished = output.finish(ManifestSummary {
            finished_unix_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |t| t.as_millis() as u64),
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            ticks_per_second: self.rate.ticks_per_second(),
            switched: self.pace.is_switched(),
            torn_segments: summary.torn_segments,
            unfinished: summary.unfinished,
            unknown_words: summary.unknown_words,
            unregistered_threads: summary.unregistered_threads,
            given_up: summary.given_up,
            plain: output.plain(),
            notes: summary.notes.iter().cloned().chain(summary.failure.as_deref().map(stopped)).collect(),
        });
        if let Err(error) = finished {
            summary.failure.get_or_insert(error.to_string());
        }
        Ok(summary)
    }

    fn summary(&self) -> RecordingSummary {
        let output = &self.shared.output;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &output.counters;
        RecordingSummary {
            stats: self.stats(),
            torn_segments: get(&counters.torn_segments),
            unfinished: get(&counters.unfinished),
            unknown_words: get(&counters.unknown_words),
            unwritten_words: get(&counters.unwritten_words),
            unregistered_threads: get(&counters.unregistered_threads),
            given_up: get(&counters.given_up),
            failure: output.failure(),
            notes: output.notes(),
        }
    }

    fn stop_listening(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        self.pace.stop();
        for thread in self.control.take().into_iter().chain(self.timing.drain(..)) {
            let _ = thread.join();
        }
    }

    fn stop_workers(&mut self) {
        self.shared.stop();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// A sentence for a trace that could not be written on.
fn stopped(failure: &str) -> String {
    format!("recording stopped early: {failure}; nothing of what followed is in the trace")
}

fn stats(shared: &Shared) -> Stats {
    let counters = &shared.output.counters;
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Stats {
        words: get(&counters.words),
        accesses: get(&counters.accesses),
        bytes: get(&counters.bytes),
        processes: get(&counters.processes),
        threads: get(&counters.threads),
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop_listening();
        self.stop_workers();
    }
}
