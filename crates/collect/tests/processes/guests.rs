//! The runtime is a guest in the program.

use std::process::Command;

use memlode_collect::ENVIRONMENT;

use crate::build::program;
use crate::record::{addresses, record};

fn assert_first_thousand(what: &str) {
    let recording = record(&program("guest"), &[what]);
    assert_eq!(recording.status.code(), Some(0));
    assert!(recording.only().into_iter().eq(1..=1000), "{what}");
    recording.assert_whole();
}

#[test]
fn leaves_heap_errno_and_descriptors_alone() {
    let recording = record(&program("guest"), &["heap"]);
    assert_eq!(recording.stdout, "heap calls 0, errno kept, descriptors +0\n");
    recording.assert_whole();
    assert_eq!(recording.summary.stats.words, 2000 + 20 * 1000 * 65);
}

#[test]
fn has_no_descriptor_to_lose() {
    assert_first_thousand("closefrom");
}

#[test]
fn needs_the_environment_only_once() {
    assert_first_thousand("clearenv");
}

#[test]
fn a_loop_that_sees_recording_off_for_a_moment_keeps_what_it_wrote() {
    assert_first_thousand("glimpse");
}

#[test]
fn keeps_every_register() {
    let recording = record(&program("registers"), &[]);
    assert_eq!(recording.status.code(), Some(0), "the number is that of the check in registers.S");
}

#[test]
fn is_silent_without_a_collector() {
    let dead = tempfile::tempdir().unwrap();
    for socket in [None, Some("/nonexistent/collector"), Some(""), dead.path().to_str()] {
        for arguments in [&["waves", "200", "20000"][..], &["detached", "5", "10"]] {
            let mut command = Command::new(program("threads"));
            command.args(arguments).env_remove(ENVIRONMENT);
            if let Some(socket) = socket {
                command.env(ENVIRONMENT, socket);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{socket:?}: {output:?}");
            assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        }
    }
}

#[test]
fn memory_that_is_scribbled_over_harms_nobody() {
    for seed in 1..=10 {
        let recording = record(&program("guest"), &["scribble", &seed.to_string()]);
        assert_eq!(recording.status.code(), Some(0));
        assert_eq!(recording.trace.processes().len(), 1);
        // Recorded or lost, but not lost in silence.
        let whole = addresses(&recording.trace).values().any(|recorded| recorded.len() == 1000);
        assert!(whole || !recording.summary.is_whole(), "{:?}", recording.summary);
    }
}
