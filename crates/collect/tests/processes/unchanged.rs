//! The runtime in a program's way: on its stack, and in its waits.

use std::time::{Duration, Instant};

use crate::build::{Build, build, program};
use crate::record::{addresses, record};

#[test]
fn a_profiler_walks_through_the_runtime_wherever_it_finds_it() {
    let how = Build { sources: &["walked"], function: "work", ..Default::default() };
    for (name, flags) in [("walked", &[][..]), ("walked-static", &["-static"])] {
        let recording = record(&build(name, Build { flags, ..how }), &[]);
        assert_eq!(recording.stdout, "walked\n", "{name}");
        assert_eq!(recording.status.code(), Some(0), "{name}");
    }
}

#[test]
fn a_ring_whose_counters_are_damaged_is_not_waited_for() {
    for counter in ["head", "tail"] {
        let start = Instant::now();
        let recording = record(&program("damaged"), &[counter]);
        assert_eq!(recording.status.code(), Some(5), "{counter}");
        assert!(start.elapsed() < Duration::from_secs(30), "{counter}: {:?}", start.elapsed());
        // The thread has gone on in another ring.
        let recorded = addresses(&recording.trace);
        assert!(recorded.values().any(|all| all.ends_with(&[100_998, 100_999])), "{counter}");
        let told = recording.summary.notes.iter().any(|note| note.contains("contradict each other"));
        assert!(told || counter == "tail", "{counter}: {:?}", recording.summary);
    }
    let recording = record(&program("damaged"), &["head", "4"]);
    assert_eq!((recording.status.code(), recording.summary.given_up), (Some(5), 1));
}

#[test]
fn a_program_that_locks_its_memory() {
    for way in ["current", "future"] {
        let recording = record(&program("locked"), &[way]);
        assert_eq!((recording.stdout.as_str(), recording.status.code()), ("0\n", Some(0)), "{way}");
        recording.assert_whole();
        assert!(recording.only().into_iter().eq(1..=101_000), "{way}");
    }
}
