//! Runs a program under a collector and reads the trace.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use memlode_collect::{Collector, CommandEnd, Destination, ENVIRONMENT, Options, RecordingSummary};
use memlode_trace::Trace;
use memlode_trace::event::Batch;
use tempfile::TempDir;

/// No test program runs longer.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// A run and its trace.
pub struct Recording {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub summary: RecordingSummary,
    pub trace: Trace,
    _directory: TempDir,
}

/// A directory destination.
pub fn directory(path: &Path) -> Destination {
    Destination::directory(&path.join("trace"), false, Default::default()).unwrap()
}

/// A collector that writes to `path/trace`.
pub fn collector(path: &Path) -> Collector {
    Collector::start(Options::new(directory(path))).unwrap()
}

/// Starts a program for a collector.
pub fn spawn(collector: &Collector, program: &Path, arguments: &[impl AsRef<OsStr>]) -> Child {
    Command::new(program)
        .args(arguments)
        .env(ENVIRONMENT, collector.socket_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a program, though not for ever.
pub fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the program hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the output of a program that has ended.
pub fn printed(child: Child) -> (String, String) {
    let output = child.wait_with_output().unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Returns how the command ended, as the collector records it.
pub fn outcome(status: ExitStatus) -> CommandEnd {
    CommandEnd { exit_code: status.code(), signal: status.signal() }
}

/// Records a program from beginning to end.
pub fn record(program: &Path, arguments: &[&str]) -> Recording {
    record_with(None, program, arguments)
}

/// Like [`record`], with a number of workers.
pub fn record_with(workers: Option<usize>, program: &Path, arguments: &[&str]) -> Recording {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { workers, ..Options::new(self::directory(directory.path())) };
    let collector = Collector::start(options).unwrap();
    let mut child = spawn(&collector, program, arguments);
    let status = wait(&mut child);
    let (stdout, stderr) = printed(child);
    let summary = collector.finish(outcome(status)).unwrap();
    let trace = open(directory.path());
    Recording { status, stdout, stderr, summary, trace, _directory: directory }
}

/// Opens the trace under a directory; it must be undamaged.
pub fn open(directory: &Path) -> Trace {
    let trace = Trace::open(&directory.join("trace")).unwrap();
    assert_eq!(trace.damage(), []);
    trace
}

/// The addresses of all accesses by process and thread (index in its process).
pub fn addresses(trace: &Trace) -> BTreeMap<(u32, u32), Vec<u64>> {
    let mut addresses = BTreeMap::new();
    for thread in trace.threads() {
        addresses.insert((thread.process.0, thread.index), Vec::new());
    }
    let mut batch = Batch::default();
    for chunk in trace.chunks() {
        trace.decode(chunk, &mut batch).unwrap();
        let thread = &trace.threads()[chunk.thread.0 as usize];
        let known: &mut Vec<u64> = addresses.get_mut(&(thread.process.0, thread.index)).unwrap();
        known.extend(batch.accesses.iter().map(|access| access.address));
    }
    addresses
}

impl Recording {
    /// The addresses of the only thread.
    pub fn only(&self) -> Vec<u64> {
        let mut all = addresses(&self.trace);
        assert_eq!(all.len(), 1, "threads: {:?}", self.trace.threads());
        all.pop_first().unwrap().1
    }

    /// Nothing is missing, and nothing was reported.
    pub fn assert_whole(&self) {
        assert!(self.summary.is_whole(), "{:?}", self.summary);
        assert_eq!(self.summary.torn_segments, 0);
        assert_eq!(self.stderr, "");
        assert!(self.trace.manifest().complete);
    }
}
