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

/// Runs `endings WAY COUNT LAST AMOUNT`, and returns the number of accesses, how much of the last
/// was unfinished, and how many segments were torn.
fn last(way: &str, count: &str, what: &str, amount: &str) -> (Vec<u64>, u64, u64) {
    let recording = record(&program("endings"), &[way, count, what, amount]);
    let all = addresses(&recording.trace).into_values().flatten().collect();
    (all, recording.summary.unfinished, recording.summary.torn_segments)
}

#[test]
fn a_zero_at_the_end_is_no_gap_where_a_program_ends_by_its_own_will() {
    for way in ["_exit", "quick_exit", "exec", "abort"] {
        let recording = record(&program("endings"), &[way, "10", "free", "0"]);
        assert_eq!(recording.summary.torn_segments, 0, "{way}");
        let again = if way == "exec" { 2 } else { 0 };
        assert_eq!(recording.summary.stats.words, 22 + again, "{way}");
    }
    // What follows may be torn again.
    assert_eq!(last("fail-exec", "10", "free", "0").2, 1);
    assert_eq!(last("segv", "10", "free", "0").2, 1);
}

#[test]
fn a_zero_at_the_end_of_a_thread_is_no_gap_unless_it_may_be_cancelled() {
    for (way, torn) in [("thread", 2), ("pause", 0), ("cancel", 2)] {
        let recording = record(&program("endings"), &[way, "0", "free", "0"]);
        assert_eq!(recording.summary.torn_segments, torn, "{way}");
    }
}

#[test]
fn of_a_loop_or_copy_that_a_killed_program_was_in_the_first_access_counts() {
    let loads = |more: &[u64]| up_to(10).into_iter().chain(more.iter().copied()).collect::<Vec<_>>();
    for amount in ["5", "0x1000000000", "0xffffffffffffffff"] {
        for way in ["segv", "kill", "jump"] {
            let after: &[u64] = if way == "jump" { &[1] } else { &[] };
            let expected = loads(&[&[1 << 20, 1 << 21], after].concat());
            assert_eq!(last(way, "10", "loop", amount), (expected, 1, 0), "{way} {amount}");
            let expected = loads(&[&[1 << 20], after].concat());
            assert_eq!(last(way, "10", "range", amount), (expected, 1, 0), "{way} {amount}");
        }
    }
}

#[test]
fn every_other_loop_or_copy_counts_in_full() {
    for way in ["return", "_exit", "abort", "exec", "sleep"] {
        let (all, unfinished, torn) = last(way, "10", "loop", "100000");
        assert_eq!((all.len() - usize::from(way == "exec"), unfinished, torn), (200_010, 0, 0), "{way}");
    }
    let (all, unfinished, _) = last("return", "10", "range", "0x1000000000");
    assert_eq!((all.len(), unfinished), (10 + 17, 0));
}
