//! Limits of the encoder: what it accepts, and where it stops.

mod support;

use std::ops::ControlFlow;
use std::path::Path;

use memlode_replay::Replay;
use memlode_trace::Trace;
use memlode_trace::module::ModuleId;
use memlode_trace::write::{AddressSpace, Appended, ChunkEncoder, Packer, Promise, Stop, Tail, TraceWriter};
use support::*;

fn plan() -> Plan {
    let steps = |words| vec![Step::Access(0, Operand::Word); words];
    let mut segments = Vec::from([1, 2, 0].map(|words| Seg { function: 0, steps: steps(words) }));
    let strides = [(Operand::Word, 24), (Operand::Back(1, 8), 24), (Operand::Word, 0), (Operand::Word, -8)];
    let strides = strides.map(|(address, step)| Step::Stride(0, address, step));
    segments.push(Seg { function: 0, steps: [&[Step::Repeat], &strides[..]].concat() });
    segments.push(Seg { function: 0, steps: vec![Step::Range(0, Operand::Word, Operand::Word)] });
    let still = vec![Step::Repeat, Step::Stride(0, Operand::Word, 0)];
    segments.push(Seg { function: 0, steps: still });
    Plan { functions: 1, site_bytes: vec![8], segments }
}

/// A writer, and an address space with the plan's module.
fn setup(directory: &Path) -> (TraceWriter, AddressSpace, ModuleId) {
    let mut writer = TraceWriter::create(directory, Default::default(), false).unwrap();
    let (id, module) = writer.add_module(image(&plan())).unwrap();
    let mut space = AddressSpace::default();
    space.load(id, module, LOAD_BIAS);
    (writer, space, id)
}

fn header(segment: u64) -> u64 {
    LOAD_BIAS + ANCHORS_AT + 8 * segment
}

fn append(words: &[u64], tail: Tail) -> Appended {
    let directory = tempfile::tempdir().unwrap();
    let (_, space, _) = setup(directory.path());
    ChunkEncoder::new().append(words, tail, (1, 2), &space)
}

#[test]
fn an_open_tail_ends_where_nothing_was_written() {
    let (a, b) = (header(0), header(1));
    for (words, consumed, stop) in [
        (vec![a, 7, b, 8, 9], 5, Stop::End),
        (vec![a, 7, b, 8, 9, 0, 0, 0], 5, Stop::Unwritten),
        (vec![a, 7, b, 8, 0, 0, 0, 0], 2, Stop::Torn),
        (vec![a, 7, b, 0, 9, 0, 0, 0], 2, Stop::Torn),
        (vec![a, 7, b, 8], 2, Stop::Torn),
        (vec![a, 7, b, 0, 9, a, 7, 0], 7, Stop::Unwritten),
        (vec![a, 7, a, 0], 2, Stop::Torn),
        (vec![0, 0], 0, Stop::Unwritten),
        (vec![header(2), 0, 0], 1, Stop::Unwritten),
        (vec![], 0, Stop::End),
    ] {
        assert_eq!(append(&words, Tail::Open), Appended { consumed, stop }, "{words:x?}");
    }
}

#[test]
fn a_loop_or_copy_at_the_end_of_an_open_tail_may_be_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let (_, space, _) = setup(directory.path());
    let (iterations, range) = ([header(3), 5, 0x1000, 0x2000, 0x3000], [header(4), 0x1000, 1 << 40]);
    for (last, promise, shortened) in [
        (&iterations[..], Promise { accesses: 20, bytes: 0 }, vec![header(3), 1, 0x1000, 0x2000, 0x3000]),
        (&range[..], Promise { accesses: 0, bytes: 1 << 40 }, vec![header(4), 0x1000, 1]),
    ] {
        let more = [header(0), 7];
        let held = Appended { consumed: 0, stop: Stop::Promise };
        for behind in [&[][..], &[0, 0]] {
            assert_eq!(append(&[last, behind].concat(), Tail::Open), held);
        }
        let all = last.len() + 2;
        assert_eq!(append(&[last, &more].concat(), Tail::Open), Appended { consumed: all, stop: Stop::End });
        assert_eq!(append(last, Tail::HandedOver), Appended { consumed: all - 2, stop: Stop::End });
        assert_eq!(space.promise(&[last, &more].concat()), Some(promise));
        assert_eq!(space.promise(&more), None);
        let mut words = last.to_vec();
        space.shorten(&mut words);
        assert_eq!(words, shortened);
    }
}

#[test]
fn handed_over_words_all_count() {
    let (a, b) = (header(0), header(1));
    for (words, consumed, stop) in [
        (vec![a, 0, b, 0, 0], 5, Stop::End),
        (vec![a, 7, 0, 0], 2, Stop::Unknown { header: 0 }),
        (vec![a, 7, b, 8], 2, Stop::Torn),
        (vec![a, 7, a + 1, 8], 2, Stop::Unknown { header: a + 1 }),
        (vec![a, 7, header(6), 8], 2, Stop::Unknown { header: header(6) }),
        (vec![u64::MAX, 8], 0, Stop::Unknown { header: u64::MAX }),
    ] {
        assert_eq!(append(&words, Tail::HandedOver), Appended { consumed, stop }, "{words:x?}");
    }
}

#[test]
fn a_full_chunk_is_finished_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, space, _) = setup(directory.path());
    let words: Vec<u64> = (0..500_000).flat_map(|i| [header(0), 0x1000 + 8 * i]).collect();
    let (mut encoder, mut packer) = (ChunkEncoder::new(), Packer::new());
    let mut at = 0;
    loop {
        let appended = encoder.append(&words[at..], Tail::HandedOver, (at as u64, at as u64 + 1), &space);
        at += appended.consumed;
        let chunk = encoder.finish().unwrap().pack(&mut packer);
        assert!(chunk.raw_words() < 1 << 18);
        assert_eq!(chunk.accesses() * 2, u64::from(chunk.raw_words()));
        writer.append(0, 0, chunk).unwrap();
        match appended.stop {
            Stop::Full => assert!(appended.consumed > 0),
            Stop::End => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(encoder.is_empty() && encoder.finish().is_none());
    writer.finish(Default::default()).unwrap();
    let trace = Trace::open(directory.path()).unwrap();
    assert!(trace.chunks().len() > 2);
    let mut next = 0x1000;
    trace.replay(2, |batch| {
        for access in &batch.accesses {
            assert_eq!((access.address, access.bytes), (next, 8));
            next += 8;
        }
        ControlFlow::Continue(())
    });
    assert_eq!(next, 0x1000 + 8 * 500_000);
}

#[test]
fn a_long_loop_is_several_chunks() {
    const ITERATIONS: u64 = 1_000_000;
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, space, _) = setup(directory.path());
    let words = [
        header(0),
        7,
        header(3),
        ITERATIONS,
        0x1000,
        0x2000,
        0x4000_0000,
        header(3),
        1,
        1,
        2,
        3,
        header(0),
        9,
    ];
    let (mut encoder, mut packer) = (ChunkEncoder::new(), Packer::new());
    let mut at = 0;
    while at < words.len() {
        at += encoder.append(&words[at..], Tail::HandedOver, (at as u64, at as u64), &space).consumed;
        let chunk = encoder.finish().unwrap().pack(&mut packer);
        assert!(chunk.accesses() <= (1 << 20) + 4 && chunk.bytes() < 200, "{chunk:?}");
        writer.append(0, 0, chunk).unwrap();
    }
    writer.finish(Default::default()).unwrap();
    let trace = Trace::open(directory.path()).unwrap();
    assert_eq!(trace.chunks().len(), 4);
    let iteration = |i: u64| [0x1000 + 24 * i, 0x1008 + 24 * i, 0x2000, 0x4000_0000 - 8 * i];
    let mut expected = [7].into_iter().chain((0..ITERATIONS).flat_map(iteration)).chain([1, 9, 2, 3, 9]);
    trace.replay(0, |batch| {
        for access in &batch.accesses {
            assert_eq!(Some(access.address), expected.next());
        }
        ControlFlow::Continue(())
    });
    assert_eq!(expected.next(), None);
}

/// Counts that wrapped, of loops that a fault ended after a few iterations. The program went on.
#[test]
fn a_loop_that_leaves_the_address_space_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, space, _) = setup(directory.path());
    let mut expected = Vec::new();
    let (up, still, down) = (0x1000, 0x2000, 0x4000_0000);
    for (segment, words) in [
        // Further than there are addresses.
        (3, vec![u64::MAX, up, still, down]),
        (3, vec![1 << 60, up, still, down]),
        (3, vec![(1 << 48) / 24 + 2, up, still, down]),
        // Not as far, but past the ends.
        (3, vec![2 + 0x4000 / 8, up, still, 0x4000]),
        (3, vec![100, u64::MAX - 99 * 24 + 1, still, down]),
        // Nowhere, for longer than any program runs.
        (5, vec![u64::MAX, still]),
        (5, vec![(1 << 48) + 1, still]),
    ] {
        let addresses = match words[1..] {
            [first, still, down] => vec![first, first + 8, still, down],
            _ => vec![words[1]],
        };
        let words = [&[header(segment)], &words[..], &[header(0), 9]].concat();
        let (mut encoder, mut packer) = (ChunkEncoder::new(), Packer::new());
        let whole = encoder.append(&words, Tail::HandedOver, (1, 2), &space);
        assert_eq!(whole, Appended { consumed: words.len(), stop: Stop::End }, "{words:x?}");
        writer.append(0, 0, encoder.finish().unwrap().pack(&mut packer)).unwrap();
        expected.extend([&addresses[..], &[9]].concat());
    }
    writer.finish(Default::default()).unwrap();
    let mut addresses = Vec::new();
    Trace::open(directory.path()).unwrap().replay(0, |batch| {
        addresses.extend(batch.accesses.iter().map(|access| access.address));
        ControlFlow::Continue(())
    });
    assert_eq!(addresses, expected);
}

/// Loops that go to the very ends of the address space.
#[test]
fn a_loop_that_stays_in_the_address_space_counts_in_full() {
    let directory = tempfile::tempdir().unwrap();
    let (_, space, _) = setup(directory.path());
    for words in [
        [header(3), 1 + 0x4000 / 8, 0x1000, 0x2000, 0x4000],
        [header(3), 100, u64::MAX - 99 * 24, 0x2000, 0x4000],
        [header(3), 0, 0x1000, 0x2000, 0],
        [header(3), 1, u64::MAX, 0x2000, 0],
    ] {
        let mut encoder = ChunkEncoder::new();
        encoder.append(&words, Tail::HandedOver, (1, 2), &space);
        assert_eq!(encoder.finish().unwrap().pack(&mut Packer::new()).accesses(), 4 * words[1], "{words:x?}");
    }
}

#[test]
fn header_words_mean_what_is_loaded_now() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, mut space, first) = setup(directory.path());
    let mut other_plan = plan();
    other_plan.segments[..3].reverse();
    let (second, other) = writer.add_module(image(&other_plan)).unwrap();
    let (same, module) = writer.add_module(image(&plan())).unwrap();
    assert!(same == first && second != first, "an image is written once");

    let (mut encoder, mut packer) = (ChunkEncoder::new(), Packer::new());
    // All in one chunk: what it has learnt of a header word must not outlive the module.
    let mut take =
        |words: &[u64], space: &AddressSpace| encoder.append(words, Tail::HandedOver, (1, 1), space).stop;
    assert_eq!(take(&[header(0), 1, header(0), 2, header(0), 3], &space), Stop::End);
    space.unload(first, LOAD_BIAS);
    assert_eq!(take(&[header(0), 1], &space), Stop::Unknown { header: header(0) });
    // Another image in the same place: segment 0 has no words there, segment 2 has one.
    space.load(second, other, LOAD_BIAS);
    assert_eq!(take(&[header(0), header(0), header(2), 5], &space), Stop::End);
    // The first one elsewhere.
    space.load(first, module, LOAD_BIAS + 0x10_0000);
    assert_eq!(take(&[header(0) + 0x10_0000, 9, header(2), 6], &space), Stop::End);
    writer.append(0, 0, encoder.finish().unwrap().pack(&mut packer)).unwrap();
    writer.finish(Default::default()).unwrap();

    let trace = Trace::open(directory.path()).unwrap();
    let mut addresses = Vec::new();
    trace.replay(0, |batch| {
        addresses.extend(batch.accesses.iter().map(|access| access.address));
        ControlFlow::Continue(())
    });
    assert_eq!(addresses, [1, 2, 3, 5, 9, 6]);
}
