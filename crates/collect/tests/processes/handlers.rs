//! Signal handlers that record. The stream they interrupt stays whole.

use std::collections::BTreeMap;

use memlode_trace::event::Batch;

use crate::build::program;
use crate::record::{Recording, addresses, record};

/// The addresses of all accesses by process, thread (index in its process) and stream.
fn streams(recording: &Recording) -> BTreeMap<(u32, u32, u8), Vec<u64>> {
    let mut streams: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    let mut batch = Batch::default();
    for chunk in recording.trace.chunks() {
        recording.trace.decode(chunk, &mut batch).unwrap();
        let thread = &recording.trace.threads()[chunk.thread.0 as usize];
        let stream = streams.entry((thread.process.0, thread.index, batch.stream)).or_default();
        stream.extend(batch.accesses.iter().map(|access| access.address));
    }
    streams
}

/// Returns the words of the code in `handlers.c` up to the interrupted segment, that segment, and
/// the rest.
fn before() -> Vec<u64> {
    (1..=1003).collect()
}

fn block(first: u64) -> impl Iterator<Item = u64> {
    first + 1..=first + 64
}

fn whole() -> Vec<u64> {
    before().into_iter().chain(block(100_000)).chain(2001..=3000).collect()
}

fn handlers(arguments: &[&str]) -> Recording {
    let recording = record(&program("handlers"), arguments);
    assert_eq!(recording.status.code(), Some(0), "{arguments:?}");
    recording
}

#[test]
fn between_the_words_of_a_segment() {
    for stack in ["same", "alternate"] {
        let recording = handlers(&[stack]);
        recording.assert_whole();
        assert_eq!(recording.trace.threads().len(), 1);
        let recorded = streams(&recording);
        assert_eq!(recorded[&(0, 0, 0)], whole(), "{stack}");
        assert_eq!(recorded[&(0, 0, 1)], [5000, 5001, 5002, 5003, 5004], "{stack}");
    }
}

#[test]
fn handlers_that_are_interrupted_by_handlers() {
    let recording = handlers(&["nested", "5"]);
    recording.assert_whole();
    let recorded = streams(&recording);
    assert_eq!(recorded[&(0, 0, 0)], whole());
    for level in 0..5u64 {
        let own = (5000 + 10_000 * level)..=(5004 + 10_000 * level);
        let expected: Vec<u64> = match level {
            4 => own.collect(),
            _ => own.chain(block(100_000 * (level + 2))).collect(),
        };
        assert_eq!(recorded[&(0, 0, level as u8 + 1)], expected, "level {level}");
    }
}

#[test]
fn handlers_too_deep_to_be_recorded_are_counted() {
    let recording = handlers(&["nested", "9"]);
    assert_eq!(recording.summary.unregistered_threads, 1);
    assert_eq!((recording.summary.unknown_words, recording.summary.torn_segments), (0, 0));
    let recorded = streams(&recording);
    assert_eq!(recorded[&(0, 0, 0)], whole());
    assert_eq!(recorded.len(), 6);
}

#[test]
fn handlers_that_are_left_by_longjmp() {
    for way in ["jump", "jump-alternate"] {
        let recording = handlers(&[way]);
        // The segment that was interrupted never ended, each time.
        assert_eq!(recording.summary.torn_segments, 100, "{way}: {:?}", recording.summary);
        assert_eq!(recording.summary.unknown_words, 0);
        let recorded = streams(&recording);
        let mut expected: Vec<u64> = (1..=1000).collect();
        expected.extend((0..100).flat_map(|_| 1001..=1003));
        expected.extend(2001..=3000);
        assert_eq!(recorded[&(0, 0, 0)], expected, "{way}");
        let expected: Vec<u64> = (0..100).flat_map(|_| 5000..=5004).collect();
        assert_eq!(recorded[&(0, 0, 1)], expected, "{way}");
        assert_eq!(recorded.len(), 2);
    }
}

#[test]
fn a_jump_inside_a_handler_leaves_nothing() {
    let recording = handlers(&["inner-jump"]);
    recording.assert_whole();
    let recorded = streams(&recording);
    assert_eq!(recorded[&(0, 0, 0)], whole());
    assert!(recorded[&(0, 0, 1)].ends_with(&[5004, 6000, 6001]));
}

#[test]
fn handlers_that_are_left_in_ways_nobody_tells() {
    let recording = handlers(&["switch"]);
    assert_eq!(recording.summary.torn_segments, 1, "{:?}", recording.summary);
    assert_eq!(recording.summary.unknown_words, 0);
    let recorded = streams(&recording);
    // First in the handler's stream, then back in its own.
    let (own, handlers) = (&recorded[&(0, 0, 0)], &recorded[&(0, 0, 1)]);
    assert_eq!(own[..1003], before());
    assert_eq!(handlers[..5], [5000, 5001, 5002, 5003, 5004]);
    let rest: Vec<u64> = handlers[5..].iter().chain(&own[1003..]).copied().collect();
    assert!(rest.into_iter().eq((10_000..30_000).chain(2001..=3000)));
    assert!(own.len() > 5000, "{}", own.len());
}

#[test]
fn ends_inside_a_handler() {
    // Only a thread's end is seen by the unwinder, which leaves the handler: then its code is abandoned.
    for (way, torn) in [("exit", 0), ("_exit", 0), ("pthread_exit", 1)] {
        let recording = handlers(&[way]);
        assert_eq!(recording.summary.torn_segments, torn, "{way}: {:?}", recording.summary);
        assert_eq!(recording.summary.unknown_words, 0, "{way}");
        let recorded = streams(&recording);
        assert_eq!(recorded[&(0, 0, 0)], before(), "{way}");
        assert_eq!(recorded[&(0, 0, 1)].len(), 5, "{way}");
    }
}

#[test]
fn a_fork_inside_a_handler() {
    let recording = handlers(&["fork"]);
    recording.assert_whole();
    let recorded = streams(&recording);
    assert_eq!(recorded[&(0, 0, 0)], whole());
    assert_eq!(recorded[&(0, 0, 1)].len(), 5);
    // The child takes up the interrupted code on memory that nobody reads, and has no events after its first refill here.
    assert!(recorded.keys().all(|(process, ..)| *process == 0), "{:?}", recorded.keys());
}

#[test]
fn a_handler_that_nobody_knows_costs_no_more_than_the_words_it_writes_over() {
    let recording = handlers(&["unknown"]);
    let recorded = addresses(&recording.trace).pop_first().unwrap().1;
    // It wrote five loads where the interrupted code had 1001 to 1003 and the first words of its block.
    let expected: Vec<u64> = (1..=1000).chain(5000..=5004).chain(2001..=3000).collect();
    assert_eq!(recorded, expected);
    assert_eq!(recording.summary.unknown_words, 6 + 65 - 10);
    assert!(recording.summary.notes[0].contains("61 words"), "{:?}", recording.summary.notes);
}

#[test]
fn a_program_finds_its_handlers_as_it_installed_them() {
    let recording = record(&program("dispositions"), &[]);
    assert_eq!(recording.stdout, "");
    assert_eq!(recording.status.code(), Some(0));
    recording.assert_whole();
}
