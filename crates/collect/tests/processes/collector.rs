//! The collector's own troubles.

use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memlode_collect::{Collector, Destination, ENVIRONMENT, Options};

use crate::build::program;
use crate::record::{PATIENCE, addresses, collector, directory, open, outcome, printed, record, spawn, wait};

#[test]
fn a_full_ring_holds_the_program_back_and_loses_nothing() {
    let recording = record(&program("flood"), &["2", "20", "scatter"]);
    recording.assert_whole();
    assert_eq!(recording.summary.stats.words, 2 * 20_000_000);
    let counts: Vec<usize> = addresses(&recording.trace).values().map(Vec::len).collect();
    assert_eq!(counts, [10_000_000, 10_000_000]);
}

#[test]
fn discarding_counts_words() {
    let collector = Collector::start(Options::new(Destination::Discard)).unwrap();
    let mut child = spawn(&collector, &program("flood"), &["1", "50", "block"]);
    let status = wait(&mut child);
    let summary = collector.finish(outcome(status)).unwrap();
    assert!(summary.is_whole(), "{summary:?}");
    let (words, expected) = (summary.stats.words, 50_000_000);
    assert!(words <= expected && words + 2 * 16384 > expected, "{words}");
}

#[test]
fn a_program_survives_its_collector() {
    let directory = tempfile::tempdir().unwrap();
    let collector = collector(directory.path());
    let mut child = spawn(&collector, &program("flood"), &["2", "400", "load"]);
    while collector.stats().words < 1_000_000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Recording ends while the program is in full flight.
    let summary = collector.finish(Default::default()).unwrap();
    assert!(summary.notes[0].contains("still running"), "{:?}", summary.notes);
    let start = Instant::now();
    let status = wait(&mut child);
    assert_eq!(status.code(), Some(0));
    // It does not wait for a collector that is gone: that would take ninety.
    assert!(start.elapsed() < Duration::from_secs(80));
    assert_eq!(printed(child), (String::new(), String::new()));
    for (_, addresses) in addresses(&open(directory.path())) {
        let first = addresses[0];
        assert!(addresses.iter().enumerate().all(|(i, &address)| address == first + 8 * i as u64));
    }
}

/// Not a test: a collector in a separate process, for the tests in which it dies or stalls. It ends
/// on request.
#[test]
#[ignore = "a helper that other tests start"]
fn collector_process() {
    let path = std::env::var_os("COLLECTOR_TEST_DIRECTORY").expect("started by another test");
    let path = Path::new(&path);
    let patience = std::env::var("COLLECTOR_TEST_PATIENCE").expect("seconds").parse().expect("seconds");
    let patience = Duration::from_secs(patience);
    let collector = Collector::start(Options { patience, ..Options::new(directory(path)) }).unwrap();
    std::fs::write(path.join("socket"), collector.socket_path().as_os_str().as_bytes()).unwrap();
    let start = Instant::now();
    while !path.join("enough").exists() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    collector.finish(Default::default()).unwrap();
}

/// A collector in a process of its own, and a program that it is recording.
struct Elsewhere {
    directory: tempfile::TempDir,
    collector: Child,
    program: Child,
}

impl Elsewhere {
    /// Starts both; the program gives up a collector that shows no sign of life for this many
    /// seconds.
    fn start(arguments: &[&str], patience: &str) -> Elsewhere {
        let directory = tempfile::tempdir().unwrap();
        let collector = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "collector::collector_process", "--ignored"])
            .env("COLLECTOR_TEST_DIRECTORY", directory.path())
            .env("COLLECTOR_TEST_PATIENCE", patience)
            .env_remove("XDG_RUNTIME_DIR")
            .env("TMPDIR", directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let socket = directory.path().join("socket");
        let socket = loop {
            match std::fs::read(&socket) {
                Ok(path) if !path.is_empty() => break std::ffi::OsString::from_vec(path),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let program = Command::new(program("flood"))
            .args(arguments)
            .env(ENVIRONMENT, socket)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        while bytes(&directory.path().join("trace/threads/p0000-t0000.mlt")) < 1000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Elsewhere { directory, collector, program }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.collector), signal).unwrap();
    }

    /// The program ends as if it were not recorded. Everything that the collector wrote can be
    /// read.
    fn end_unharmed(&mut self) {
        assert_eq!(wait(&mut self.program).code(), Some(0));
        let mut said = (String::new(), String::new());
        self.program.stdout.take().unwrap().read_to_string(&mut said.0).unwrap();
        self.program.stderr.take().unwrap().read_to_string(&mut said.1).unwrap();
        assert_eq!(said, (String::new(), String::new()));
    }

    fn trace(&self) -> memlode_trace::Trace {
        let trace = memlode_trace::Trace::open(&self.directory.path().join("trace")).unwrap();
        for addresses in addresses(&trace).values().filter(|addresses| !addresses.is_empty()) {
            assert!(addresses.windows(2).all(|pair| pair[1] == pair[0] + 8));
        }
        trace
    }
}

#[test]
fn a_killed_collector_is_no_concern_of_the_program() {
    let mut recorded = Elsewhere::start(&["2", "400", "load"], "1");
    recorded.collector.kill().unwrap();
    recorded.collector.wait().unwrap();
    recorded.end_unharmed();
    // It is known to be not all.
    assert!(!recorded.trace().manifest().complete);
}

#[test]
fn a_program_goes_on_without_a_collector_that_stands_still() {
    let mut recorded = Elsewhere::start(&["2", "400", "load"], "1");
    recorded.signal(rustix::process::Signal::STOP);
    recorded.end_unharmed();
    recorded.signal(rustix::process::Signal::CONT);
    std::fs::write(recorded.directory.path().join("enough"), "").unwrap();
    assert!(wait(&mut recorded.collector).success());
    let trace = recorded.trace();
    let summary = trace.manifest().summary.clone().unwrap();
    assert_eq!(summary.given_up, 1);
    assert!(summary.losses().iter().any(|loss| loss.contains("no sign of life")), "{:?}", summary.losses());
}

#[test]
fn a_collector_that_stands_still_for_a_moment_loses_nothing() {
    let mut recorded = Elsewhere::start(&["1", "100", "load"], "600");
    recorded.signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    recorded.signal(rustix::process::Signal::CONT);
    recorded.end_unharmed();
    std::fs::write(recorded.directory.path().join("enough"), "").unwrap();
    assert!(wait(&mut recorded.collector).success());
    let trace = recorded.trace();
    assert_eq!(trace.manifest().summary.as_ref().unwrap().given_up, 0);
    assert_eq!(addresses(&trace).values().map(Vec::len).sum::<usize>(), 50_000_000);
}

#[test]
fn a_destination_that_cannot_be_written_to_is_an_error_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("trace");
    assert!(Destination::directory(&path, false, Default::default()).is_err());
}

/// A small file system, if we may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(bytes: u64) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_program() {
    let Some(disk) = SmallDisk::mount(4 << 20) else {
        eprintln!("not checked: only root can mount a small file system");
        return;
    };
    let collector = Collector::start(Options::new(directory(disk.0.path()))).unwrap();
    let mut child = spawn(&collector, &program("flood"), &["1", "20", "scatter"]);
    let status = wait(&mut child);
    assert_eq!(status.code(), Some(0));
    let summary = collector.finish(outcome(status)).unwrap();
    let failure = summary.failure.clone().expect("the disk is full");
    assert!(failure.contains("/trace/threads/") && failure.contains("No space left"), "{failure}");
    assert!(summary.unwritten_words > 0);
    // What was written is readable and says that it is not all.
    let trace = memlode_trace::Trace::open(&disk.0.path().join("trace")).unwrap();
    let recorded = addresses(&trace).pop_first().unwrap().1;
    assert!(recorded.len() > 100_000);
    assert_eq!(2 * recorded.len() as u64 + summary.unwritten_words, summary.stats.words);
}

#[test]
fn nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let collector = collector(directory.path());
    let socket = collector.socket_path().to_owned();
    assert!(socket.exists());
    collector.finish(Default::default()).unwrap();
    assert!(!socket.exists() && !socket.parent().unwrap().exists());
}
