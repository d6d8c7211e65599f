//! However a program ends, all it recorded is in the trace.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;

use crate::build::program;
use crate::record::{Recording, addresses, collector, open, outcome, record, spawn, wait};

fn up_to(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

/// Runs `endings WAY`, for a few words and for more than the ring holds.
fn each_size(way: &str, check: impl Fn(&Recording)) {
    for count in [1, 10, 100_000, 300_000] {
        let recording = record(&program("endings"), &[way, &count.to_string()]);
        assert_eq!(recording.only(), up_to(count), "{way}, {count} loads");
        recording.assert_whole();
        check(&recording);
    }
}

#[test]
fn return_and_exit_run_the_exit_handlers() {
    for way in ["return", "exit"] {
        each_size(way, |recording| {
            assert_eq!(recording.status.code(), Some(3));
            assert!(recording.trace.processes()[0].clean);
        });
    }
}

#[test]
fn quick_ways_out() {
    for way in ["_exit", "quick_exit"] {
        each_size(way, |recording| {
            assert_eq!(recording.status.code(), Some(3));
            assert!(!recording.trace.processes()[0].clean);
        });
    }
}

#[test]
fn signals_that_end_a_program() {
    for (way, signal) in [("abort", 6), ("segv", 11), ("kill", 9)] {
        each_size(way, |recording| assert_eq!(recording.status.signal(), Some(signal)));
    }
}

#[test]
fn a_segment_that_lacks_words_is_dropped_and_counted() {
    let recording = record(&program("endings"), &["torn", "5000"]);
    assert_eq!(recording.only(), up_to(5000));
    assert_eq!(recording.summary.torn_segments, 1);
    assert_eq!(recording.trace.manifest().summary.as_ref().unwrap().torn_segments, 1);
}

#[test]
fn a_zero_at_the_very_end_is_no_gap() {
    let recording = record(&program("endings"), &["free-null", "10"]);
    recording.assert_whole();
    assert_eq!(recording.summary.stats.words, 22);
}

#[test]
fn killed_from_outside_in_full_flight() {
    let directory = tempfile::tempdir().unwrap();
    let collector = collector(directory.path());
    let mut child = spawn(&collector, &program("endings"), &["run", "0"]);
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.kill().unwrap();
    let status = wait(&mut child);
    let summary = collector.finish(outcome(status)).unwrap();
    assert!(summary.is_whole(), "{summary:?}");
    let recorded = addresses(&open(directory.path())).pop_first().unwrap().1;
    assert!(recorded.len() > 10_000, "{}", recorded.len());
    assert_eq!(recorded, up_to(recorded.len() as u64));
}
