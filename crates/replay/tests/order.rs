//! Replay order: threads that synchronise are replayed in an order in which they can have run.

#[path = "../../trace/tests/support/mod.rs"]
mod support;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use memlode_replay::{Dealt, Piece, PieceEnd, Point, Replay, ReplayStep, Replayed, Shards, live};
use memlode_simulate::Shape;
use memlode_trace::Trace;
use memlode_trace::log::Event;
use memlode_trace::write::{
    AddressSpace, ChunkEncoder, DirectoryStore, Packer, Stop, Store, Tail, TraceWriter,
};
use proptest::prelude::*;
use support::*;

/// A step of a program of several threads, in the order in which they were taken.
#[derive(Clone, Copy, Debug)]
enum Done {
    /// Accesses the address that is the number of the step, `times` times.
    Access { stamp_before: bool, times: u64 },
    /// The same in a loop that is one record.
    Loop { iterations: u64 },
    /// The same between stamps; the second stamp is that of the step `steps` later.
    Timed { iterations: u64, steps: u64 },
    /// Learns all that was done by threads that have released this lock so far.
    Acquire(usize),
    /// Nothing is recorded of the first lock but a stamp where it is acquired.
    Release(usize),
    /// A chunk ends; the next begins.
    HandOver,
}

const LOCKS: usize = 3;
/// Its number in the format; the one before acquires.
const RELEASE: u8 = 1;

fn done(loops: u32) -> impl Strategy<Value = Done> {
    let times = || prop_oneof![6 => 1..=1u64, 2 => 60..200u64, 1 => 200..1000u64];
    prop_oneof![
        4 => (any::<bool>(), times()).prop_map(|(stamp_before, times)| Done::Access { stamp_before, times }),
        loops => times().prop_map(|iterations| Done::Loop { iterations }),
        2 => (0..LOCKS).prop_map(Done::Acquire),
        2 => (0..LOCKS).prop_map(Done::Release),
        1 => Just(Done::HandOver),
    ]
}

/// Steps of all streams, with loops among them or without.
fn steps(loops: u32) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..STREAMS, done(loops)), 0..120)
}

/// Thread (its stream 1 from 4 on), and its step.
type Step = (usize, Done);
const STREAMS: usize = 6;

fn plan() -> Plan {
    let access = support::Step::Access(0, Operand::Word);
    let iteration = support::Step::Stride(0, Operand::Word, 0);
    Plan {
        functions: 1,
        site_bytes: vec![8],
        segments: vec![
            Seg { function: 0, steps: vec![access] },
            Seg { function: 0, steps: vec![support::Step::Stamp] },
            Seg { function: 0, steps: vec![support::Step::Stamp, access] },
            Seg { function: 0, steps: vec![support::Step::Sync(RELEASE, Operand::Word)] },
            Seg { function: 0, steps: vec![support::Step::Sync(RELEASE - 1, Operand::Word)] },
            Seg { function: 0, steps: vec![support::Step::Repeat, iteration] },
        ],
    }
}

/// Writes the records of the steps. The time of step *i* is 10·(*i* + 1).
fn write(directory: &Path, steps: &[Step]) {
    write_to(Box::new(DirectoryStore::create(directory, true).unwrap()), steps);
}

fn write_to(store: Box<dyn Store>, steps: &[Step]) {
    let plan = plan();
    let mut writer = TraceWriter::new(store, Default::default()).unwrap();
    let (id, module) = writer.add_module(image(&plan)).unwrap();
    let mut space = AddressSpace::default();
    space.load(id, module, LOAD_BIAS);
    writer
        .event(&Event::ProcessStart { process: 0, pid: 7, parent: None, command: vec![], stamp: 1 })
        .unwrap();
    let mut packer = Packer::new();
    let mut encoders: Vec<_> = (0..STREAMS).map(|_| ChunkEncoder::new()).collect();
    let mut begun = [1; STREAMS];
    let mut finish = |stream: usize, encoder: &mut ChunkEncoder, next: Option<u64>| {
        let (thread, number) = (stream as u32 % 4, stream as u8 / 4);
        if let Some(chunk) = encoder.finish() {
            writer.append(0, thread, chunk.pack(&mut packer).of_stream(number)).unwrap();
        }
        if let Some(bounds) = writer.bounds() {
            bounds.bound(0, thread, number, next);
            bounds.all_known(u64::MAX);
        }
    };
    // Empty as yet: no more than the order of the threads, and when their first chunks begin.
    (0..STREAMS).for_each(|stream| finish(stream, &mut ChunkEncoder::new(), Some(1)));
    for (number, &(stream, done)) in steps.iter().enumerate() {
        let now = 10 * (number as u64 + 1);
        let again = |times| vec![(0, vec![number as u64]); times as usize];
        let executions = match done {
            Done::Access { stamp_before: false, times } => again(times),
            Done::Access { stamp_before: true, times } => {
                [vec![(2, vec![now, number as u64])], again(times - 1)].concat()
            }
            Done::Loop { iterations } => vec![(5, vec![iterations, number as u64])],
            Done::Timed { iterations, steps } => {
                let end = (3, vec![0, now + 10 * steps]);
                vec![(3, vec![0, now]), (5, vec![iterations, number as u64]), end]
            }
            Done::Acquire(0) => vec![(1, vec![now])],
            Done::Acquire(lock) => vec![(4, vec![lock as u64, now])],
            Done::Release(0) => continue,
            Done::Release(lock) => vec![(3, vec![lock as u64, now])],
            Done::HandOver => {
                finish(stream, &mut encoders[stream], Some(now));
                begun[stream] = now;
                continue;
            }
        };
        let words = raw(&executions);
        let mut words = &words[..];
        let last = now + if let Done::Timed { steps, .. } = done { 10 * steps } else { 0 };
        loop {
            let encoder = &mut encoders[stream];
            let appended = encoder.append(words, Tail::HandedOver, (begun[stream], last), &space);
            words = &words[appended.consumed..];
            match appended.stop {
                Stop::Full => finish(stream, encoder, Some(begun[stream])),
                stop => break assert_eq!(stop, Stop::End),
            }
        }
    }
    for (stream, encoder) in encoders.iter_mut().enumerate() {
        finish(stream, encoder, None);
    }
    writer.finish(Default::default()).unwrap();
}

/// For each step the steps that happened before it: in its stream, and by locks.
fn before(steps: &[Step]) -> Vec<Vec<bool>> {
    let none = vec![false; steps.len()];
    let mut known = vec![none.clone(); STREAMS];
    let mut released = vec![none; LOCKS];
    let union = |into: &mut Vec<bool>, from: &[bool]| into.iter_mut().zip(from).for_each(|(a, &b)| *a |= b);
    let mut all = Vec::new();
    for (number, &(stream, done)) in steps.iter().enumerate() {
        match done {
            Done::Acquire(lock) => union(&mut known[stream], &released[lock]),
            Done::Release(lock) => union(&mut released[lock], &known[stream]),
            _ => {}
        }
        all.push(known[stream].clone());
        known[stream][number] = true;
    }
    all
}

/// The numbers of the accesses as they are replayed.
fn replayed(directory: &Path, workers: usize) -> Vec<usize> {
    let trace = Trace::open(directory).unwrap();
    assert_eq!(trace.damage(), []);
    let (mut order, mut events) = (Vec::new(), 0);
    let replayed = trace.interleave(workers, |piece| {
        order.extend(piece.accesses().iter().map(|access| access.address as usize));
        assert!(piece.marks().all(|(at, _)| at <= piece.accesses().len()));
        events += piece.accesses().len() + piece.marks().count();
        ControlFlow::Continue(())
    });
    assert!(replayed.damaged.is_empty() && replayed.chunks == trace.chunks().len());
    let mut whole = 0;
    trace.replay(0, |batch| {
        whole += batch.accesses.len() + batch.marks.len();
        ControlFlow::Continue(())
    });
    assert_eq!(events, whole, "every event comes once");
    order
}

proptest! {
    #[test]
    fn what_happened_before_comes_before(steps in steps(1)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        write(&path, &steps);
        let order = replayed(&path, 0);
        prop_assert_eq!(&replayed(&path, 2), &order);

        let times = |number: usize| match steps[number].1 {
            Done::Access { times, .. } | Done::Loop { iterations: times } => times as usize,
            _ => 0,
        };
        let expected: Vec<usize> = (0..steps.len()).flat_map(|number| vec![number; times(number)]).collect();
        // Of each step, the places of its first and its last access.
        let mut places = vec![(usize::MAX, 0); steps.len()];
        for (at, &number) in order.iter().enumerate() {
            places[number] = (places[number].0.min(at), at);
        }
        let before = before(&steps);
        for later in (0..steps.len()).filter(|&later| times(later) > 0) {
            for earlier in (0..later).filter(|&earlier| times(earlier) > 0 && before[later][earlier]) {
                let ordered = places[earlier].1 < places[later].0;
                prop_assert!(ordered, "{earlier} happened before {later}, but not in {order:?}");
            }
        }
        // Where each access is stamped, the order is that of time.
        let is_stamped = |done: &Done| match done {
            Done::Access { stamp_before, times } => *stamp_before && *times == 1,
            Done::Loop { .. } => false,
            _ => true,
        };
        if steps.iter().all(|(_, done)| is_stamped(done)) {
            prop_assert_eq!(&order, &expected);
        }
        prop_assert_eq!(&kept(&path), &order);
        let mut sorted = order;
        sorted.sort_unstable();
        prop_assert_eq!(sorted, expected);
    }
}

/// The numbers of the accesses as they are replayed where loops are kept.
fn kept(directory: &Path) -> Vec<usize> {
    let mut order = Vec::new();
    let consume = |piece: &Piece<'_>| {
        for (events, end) in piece.runs() {
            order.extend(events.accesses.iter().map(|access| access.address as usize));
            if let Some(PieceEnd::Loop(part)) = end {
                let stride = part.strides()[0];
                order.extend(
                    (0..part.iterations).map(|iteration| stride.access_in(iteration).address as usize),
                );
            }
        }
        ControlFlow::Continue(())
    };
    Trace::open(directory).unwrap().interleave_shards(&Shards::one(), 0, vec![consume]);
    order
}

/// Streams that ran side by side alternate every 64 accesses, each when its share of the time
/// between stamps is over, also within loops.
#[test]
fn between_stamps_streams_take_turns() {
    for once in [Done::Access { stamp_before: false, times: 256 }, Done::Loop { iterations: 256 }] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        // From 1 to 10, and from 1 to 20.
        write(&path, &[(0, once), (1, once)]);
        // Moments of the first: 3, 5, 7. Of the second: 5, 10, 15.
        let expected = [(0, 64), (1, 64), (0, 128), (1, 64), (0, 64), (1, 128)];
        let expected: Vec<usize> = expected.iter().flat_map(|&(number, times)| vec![number; times]).collect();
        assert_eq!(replayed(&path, 0), expected);
        assert_eq!(kept(&path), expected);
    }
}

/// Loops that go on in several chunks alternate as well, if there are stamps on both sides of them.
#[test]
fn loops_of_several_chunks_take_turns() {
    const ITERATIONS: u64 = 3 << 20;
    let timed = Done::Timed { iterations: ITERATIONS, steps: 4 };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path, &[(0, timed), (1, timed)]);
    let chunks = Trace::open(&path).unwrap().chunks().iter().filter(|chunk| chunk.accesses() > 0).count();
    assert!(chunks >= 6, "{chunks}");
    let order = replayed(&path, 0);
    assert_eq!(order.len() as u64, 2 * ITERATIONS);
    // The loops ran from 10 and 20 to 50 and 60. Of each, a quarter is alone.
    let longest = order.chunk_by(|a, b| a == b).map(<[usize]>::len).max().unwrap();
    assert!((longest as u64) < ITERATIONS / 3, "{longest}");
    assert!(order.chunk_by(|a, b| a == b).count() > 20);
    assert!(order == kept(&path));
}

/// The numbers of the accesses as they are replayed while they are written, and the chunks.
fn replayed_live(directory: &Path, steps: &[Step]) -> (Vec<usize>, Vec<(u64, u64)>) {
    let kept = DirectoryStore::create(directory, true).unwrap();
    let (store, live) = live(directory, Some(Box::new(kept)));
    std::thread::scope(|scope| {
        scope.spawn(|| write_to(Box::new(store), steps));
        let mut seen = Vec::new();
        live.preview(4, Duration::from_millis(1), 3, |chunk, _| seen.push(chunk.stamps()));
        let mut order = Vec::new();
        let replayed = live.interleave(1, |piece| {
            order.extend(piece.accesses().iter().map(|access| access.address as usize));
            ControlFlow::Continue(())
        });
        let trace = live.take_trace();
        assert!(replayed.damaged.is_empty() && replayed.chunks == trace.chunks().len());
        let chunks: Vec<_> = trace.chunks().iter().map(|chunk| chunk.stamps()).collect();
        assert!(seen.len() <= 3 && seen.is_empty() == chunks.is_empty());
        assert!(
            seen.is_empty() || chunks.windows(seen.len()).any(|some| some == seen),
            "{seen:?} of {chunks:?}"
        );
        (order, chunks)
    })
}

proptest! {
    #[test]
    fn live_is_the_order_of_a_stored_trace(steps in steps(1)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let (order, chunks) = replayed_live(&path, &steps);
        prop_assert_eq!(order, replayed(&path, 0));
        let stored: Vec<_> = Trace::open(&path).unwrap().chunks().iter().map(|chunk| chunk.stamps()).collect();
        prop_assert_eq!(chunks, stored);
    }
}

proptest! {
    #[test]
    fn each_shard_has_the_order_of_the_whole(steps in steps(1)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        write(&path, &steps);
        let trace = Trace::open(&path).unwrap();
        // Addresses are numbers of steps, of 8 bytes each: two lines. What lies in both is cut.
        let shards = Shards::new(2, 6..7, Shape { line_bytes: 64, sets: 2, ways: 1 });
        let order = replayed(&path, 0);
        let of_line = |line| order.iter().copied().filter(|at| at / 64 == line && at % 64 <= 56).collect();
        let expected: Vec<Vec<usize>> = (0..2).map(of_line).collect();
        for workers in [0, 1, 2] {
            let mut orders = vec![Vec::new(); 2];
            let consumers = orders.iter_mut().enumerate().map(|(line, order)| {
                move |piece: &Piece<'_>| {
                    for (events, end) in piece.runs() {
                        let whole = events.accesses.iter().filter(|access| access.bytes == 8);
                        order.extend(whole.map(|access| access.address as usize));
                        let Some(PieceEnd::Loop(part)) = end else { continue };
                        let first = part.strides()[0].access.address as usize;
                        let is_scheduled = matches!(part.dealt, Some(Dealt::Scheduled(_)));
                        let dealt = u64::from(part.before == 0 && is_scheduled);
                        let is_here = first / 64 == line && first % 64 <= 56;
                        order.extend((dealt..part.iterations).map(|_| first).filter(|_| is_here));
                    }
                    ControlFlow::Continue(())
                }
            });
            let replayed = trace.interleave_shards(&shards, workers, consumers.collect());
            prop_assert!(replayed.damaged.is_empty() && replayed.chunks == trace.chunks().len());
            prop_assert_eq!(&orders, &expected);
        }
    }
}

/// The pieces from a point on, each as its chunk and the places of its events in it; and the points,
/// with the number of pieces before each.
fn resumed(trace: &Trace, from: Option<&Point>) -> (Vec<String>, Vec<(usize, Point)>, Replayed) {
    let wanted: Vec<usize> = (1..trace.chunks().len()).collect();
    let (mut pieces, mut points) = (Vec::new(), Vec::new());
    let replayed = trace.resume(1, from, &wanted, |step| {
        match step {
            ReplayStep::Piece(piece) => {
                let chunk = (piece.batch.thread, piece.batch.stream, piece.batch.sequence);
                pieces.push(format!("{chunk:?} {:?} {}", piece.places(), piece.is_last()));
            }
            ReplayStep::Point(point) => points.push((pieces.len(), point.clone())),
        }
        ControlFlow::Continue(())
    });
    (pieces, points, replayed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_replay_goes_on_from_every_point(steps in steps(1)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        write(&path, &steps);
        let trace = Trace::open(&path).unwrap();
        let (pieces, points, whole) = resumed(&trace, None);
        prop_assert_eq!(points.len(), trace.chunks().len().saturating_sub(1));
        for (number, (before, point)) in points.iter().enumerate() {
            prop_assert!(point.fits(trace.chunks().len()) && !point.fits(point.taken() - 1));
            let (rest, later, replayed) = resumed(&trace, Some(point));
            prop_assert_eq!(&rest, &pieces[*before..]);
            let ahead = |(at, later): &(usize, Point)| (at - before, later.clone());
            prop_assert_eq!(later, points[number + 1..].iter().map(ahead).collect::<Vec<_>>());
            prop_assert_eq!((replayed.chunks, replayed.unrecorded), (whole.chunks, whole.unrecorded.clone()));
        }
    }
}

/// No event is replayed later than it happened: an event that began later waits for nothing.
#[test]
fn a_stream_without_stamps_goes_where_its_chunk_began() {
    let access = |stamp_before| Done::Access { stamp_before, times: 1 };
    let steps = [
        (0, access(false)), // 0
        (1, Done::HandOver),
        (0, access(false)), // 2
        (1, access(true)),  // 3
        (0, Done::HandOver),
        (0, access(false)), // 5
        (1, access(true)),  // 6
        (0, access(false)), // 7
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path, &steps);
    assert_eq!(replayed(&path, 0), [0, 2, 3, 5, 7, 6]);
}

#[test]
fn a_consumer_may_stop_between_two_pieces() {
    let steps: Vec<_> = (0..100).map(|i| (i % 2, Done::Access { stamp_before: true, times: 1 })).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path, &steps);
    for workers in [0, 2] {
        let mut pieces = 0;
        let replayed = Trace::open(&path).unwrap().interleave(workers, |_| {
            pieces += 1;
            if pieces == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(replayed.stopped && pieces == 10);
    }
}
