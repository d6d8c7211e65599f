//! Threads come and go.

use std::collections::BTreeSet;

use memlode_trace::format::ring;

use crate::build::program;
use crate::record::{addresses, record, record_with};

/// Each thread recorded `loads` loads from `number << 32` on, in order and nothing else.
fn assert_numbered(trace: &memlode_trace::Trace, count: u64, loads: u64) {
    let recorded = addresses(trace);
    let mut seen = BTreeSet::new();
    for (thread, addresses) in &recorded {
        let first = addresses[0];
        assert_eq!(first & 0xffff_ffff, 0, "{thread:?} begins with {first:#x}");
        assert!(addresses.iter().copied().eq(first..first + loads), "{thread:?}: {} loads", addresses.len());
        assert!(seen.insert(first >> 32), "{thread:?} repeats another");
    }
    assert!(seen.into_iter().eq(0..=count), "{} of {count} threads", recorded.len());
}

#[test]
fn thousands_of_short_threads() {
    let recording = record(&program("threads"), &["waves", "6000", "7"]);
    assert_eq!(recording.status.code(), Some(0));
    recording.assert_whole();
    assert_numbered(&recording.trace, 6000, 7);
}

#[test]
fn threads_that_fill_their_rings() {
    let recording = record(&program("threads"), &["waves", "16", "200000"]);
    recording.assert_whole();
    assert_numbered(&recording.trace, 16, 200_000);
}

#[test]
fn several_workers_share_the_rings() {
    for how in [["waves", "24", "100000"], ["waves", "2000", "5"]] {
        let recording = record_with(Some(3), &program("threads"), &how);
        recording.assert_whole();
        assert_numbered(&recording.trace, how[1].parse().unwrap(), how[2].parse().unwrap());
    }
}

#[test]
fn several_workers_encode_what_one_thread_wrote() {
    for workers in [2, 3, 5] {
        let recording = record_with(Some(workers), &program("threads"), &["waves", "8", "2000000"]);
        recording.assert_whole();
        assert_numbered(&recording.trace, 8, 2_000_000);
    }
}

#[test]
fn more_threads_at_once_than_there_are_rings() {
    let (count, rings) = (4150, u64::from(ring::RINGS));
    let recording = record(&program("threads"), &["crowd", &count.to_string(), "3"]);
    assert_eq!(recording.status.code(), Some(0));
    let recorded = addresses(&recording.trace);
    assert_eq!(recorded.len() as u64 + recording.summary.unregistered_threads, count + 1);
    // A few threads may end before the last ones begin.
    assert!(recorded.len() as u64 >= rings, "{}", recorded.len());
    assert!(recorded.values().all(|addresses| addresses.len() == 3));
    assert_eq!(recording.summary.is_whole(), recording.summary.unregistered_threads == 0);
}

#[test]
fn detached_threads_outlive_main() {
    let recording = record(&program("threads"), &["detached", "20", "5000"]);
    recording.assert_whole();
    assert_numbered(&recording.trace, 20, 5000);
}

#[test]
fn handlers_that_record_while_a_refill_is_under_way() {
    let recording = record(&program("signals"), &["2000"]);
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    recording.assert_whole();
    let counts: Vec<u64> = recording.stdout.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let recorded = addresses(&recording.trace);
    let (handled, own): (Vec<u64>, Vec<u64>) = recorded[&(0, 0)].iter().partition(|&&at| at >> 40 == 1);
    assert!(own.into_iter().eq(0..counts[0]));
    assert!(handled.into_iter().map(|at| at & 0xff_ffff_ffff).eq(0..counts[1]));
    assert!(counts[1] > 100, "only {} signals", counts[1]);
}
