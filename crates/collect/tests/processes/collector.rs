//! The collector's own troubles.

use std::time::{Duration, Instant};

use memlode_collect::{Collector, Destination, Options};

use crate::build::program;
use crate::record::{addresses, collector, directory, open, outcome, printed, record, spawn, wait};

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

#[test]
fn a_destination_that_cannot_be_written_to_is_an_error_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("trace");
    let destination = Destination::Directory { path, replace: false, info: Default::default() };
    assert!(Collector::start(Options::new(destination)).is_err());
}

/// A small file system, if we may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(bytes: u64) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
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
