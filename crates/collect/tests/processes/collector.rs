//! The collector's own troubles.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};
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
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(printed(child), (String::new(), String::new()));
    for (_, addresses) in addresses(&open(directory.path())) {
        let first = addresses[0];
        assert!(addresses.iter().enumerate().all(|(i, &address)| address == first + 8 * i as u64));
    }
}

/// Not a test: a collector in a process of its own, for [`a_killed_collector_is_no_concern_of_the_program`].
#[test]
#[ignore = "a helper that another test starts"]
fn collector_process() {
    let path = std::env::var_os("COLLECTOR_TEST_DIRECTORY").expect("started by another test");
    let collector = collector(Path::new(&path));
    std::fs::write(Path::new(&path).join("socket"), collector.socket_path().as_os_str().as_bytes()).unwrap();
    std::thread::sleep(PATIENCE);
}

#[test]
fn a_killed_collector_is_no_concern_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "collector::collector_process", "--ignored"])
        .env("COLLECTOR_TEST_DIRECTORY", directory.path())
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
    let mut child = Command::new(program("flood"))
        .args(["2", "400", "load"])
        .env(ENVIRONMENT, socket)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let chunks = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    while chunks(&directory.path().join("trace/threads/p0000-t0000.mlt")) < 1000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    helper.kill().unwrap();
    helper.wait().unwrap();
    assert_eq!(wait(&mut child).code(), Some(0));
    assert_eq!(printed(child), (String::new(), String::new()));
    // What the collector had written can be read, and is known to be not all.
    let trace = memlode_trace::Trace::open(&directory.path().join("trace")).unwrap();
    assert!(!trace.manifest().complete);
    for addresses in addresses(&trace).values().filter(|addresses| !addresses.is_empty()) {
        assert!(addresses.windows(2).all(|pair| pair[1] == pair[0] + 8));
    }
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
