//! Processes that start others.

use crate::build::program;
use crate::record::{Recording, addresses, collector, open, outcome, record, spawn, wait};

fn children(how: &str) -> Recording {
    let recording = record(&program("children"), &[how]);
    assert_eq!(recording.status.code(), Some(0), "{how}: {}", recording.stderr);
    recording.assert_whole();
    recording
}

/// Returns the records of each process; each has one thread.
fn by_process(recording: &Recording) -> Vec<Vec<u64>> {
    let recorded = addresses(&recording.trace);
    assert_eq!(recorded.len(), recording.trace.processes().len(), "{recorded:?}");
    recorded.into_values().collect()
}

fn range(first: u64, count: u64) -> Vec<u64> {
    (first..first + count).collect()
}

#[test]
fn a_forked_child_has_streams_of_its_own() {
    let recording = children("fork");
    assert_eq!(by_process(&recording), [range(1, 100), range(1000, 100)]);
    let processes = recording.trace.processes();
    assert_eq!(processes[1].parent.unwrap().0, 0);
    assert!(processes.iter().all(|process| process.clean));
    assert_eq!(recording.trace.images().len(), 2);
}

#[test]
fn a_grandchild_too() {
    let mut recorded = by_process(&children("fork-twice"));
    recorded.sort();
    assert_eq!(recorded, [range(1, 100), range(1000, 100), range(2000, 100)]);
}

#[test]
fn a_child_that_becomes_another_program() {
    let recording = children("fork-exec");
    assert_eq!(by_process(&recording), [range(1, 100), range(1000, 100), range(5000, 100)]);
    let pids: Vec<u32> = recording.trace.processes().iter().map(|process| process.pid).collect();
    assert_eq!(pids[1], pids[2]);
    assert_eq!(recording.trace.processes()[2].command[1..], ["leaf"]);
}

/// Children of calls that run no fork handlers, in a few words and in many chunks. Children forked
/// by inline assembly are not noticed.
#[test]
fn children_that_libc_does_not_fork() {
    let unseen: &[&str] = if cfg!(target_arch = "x86_64") { &["call", "unseen"] } else { &[] };
    for way in ["bare", "clone", "clone3", "function"].iter().chain(unseen) {
        for count in [1, 100, 4096, 8191, 8192, 200_000] {
            let recording = record(&program("children"), &[way, &count.to_string()]);
            assert_eq!(recording.status.code(), Some(0), "{way} {count}: {}", recording.stderr);
            recording.assert_whole();
            let recorded = by_process(&recording);
            assert!(recorded == [range(1, 100), range(1000, count)], "{way} {count}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_an_unseen_child_maps_is_its_own() {
    let recording = record(&program("children"), &["unseen-mapping", "1"]);
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    assert_eq!(by_process(&recording), [range(1, 100), vec![1000; 500]]);
}

#[test]
fn a_vfork_child_writes_for_its_parent() {
    assert_eq!(by_process(&children("vfork")), [range(1, 100)]);
}

#[test]
fn spawned_programs() {
    assert_eq!(by_process(&children("spawn")), [range(1, 100), range(5000, 100)]);
    assert_eq!(by_process(&children("system")), [range(1, 100)]);
}

#[test]
fn a_program_that_executes_itself() {
    assert_eq!(by_process(&children("exec")), [range(1, 100), range(5000, 100)]);
}

#[test]
fn a_daemon_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let collector = collector(directory.path());
    let mut child = spawn(&collector, &program("children"), &["daemon"]);
    let status = wait(&mut child);
    let start = std::time::Instant::now();
    let summary = collector.finish(outcome(status)).unwrap();
    // It sleeps for thirty.
    assert!(start.elapsed().as_secs() < 25);
    assert!(!summary.is_whole());
    assert!(summary.notes[0].contains("still running"), "{:?}", summary.notes);
    let trace = open(directory.path());
    assert_eq!(addresses(&trace).into_values().collect::<Vec<_>>(), [range(1, 100), range(1000, 100)]);
    let daemon = rustix::process::Pid::from_raw(trace.processes()[1].pid as i32).unwrap();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
}
