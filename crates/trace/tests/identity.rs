//! Round trips: everything that is written is read again, for any program.

mod support;

use std::ops::ControlFlow;
use std::path::Path;

use memlode_replay::{Piece, Replay, Shards, live};
use memlode_trace::Trace;
use memlode_trace::event::{Batch, Frame};
use memlode_trace::module::ModuleId;
use memlode_trace::stack::ShadowStack;
use memlode_trace::write::{
    AddressSpace, ChunkEncoder, Encoder, FULL_WORDS, Form, FullChunk, Stop, Tail, Wanted,
};
use proptest::prelude::*;
use support::*;

const FUNCTIONS: usize = 3;
const SITES: usize = 5;

/// Ops that may stand behind others: derived operands refer to an op that has what they need.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let choice = (0..17u8, 0..SITES, 1..5usize, -64..64i64, 1..=64u64, any::<bool>());
    prop::collection::vec(choice, 1..8).prop_map(|choices| {
        let mut steps: Vec<Step> = Vec::new();
        for (kind, site, back, distance, lanes, far) in choices {
            let from = |fits: fn(&Step) -> bool| match steps.len().checked_sub(back).map(|at| &steps[at]) {
                Some(step) if fits(step) => Operand::Back(back, if far { distance << 50 } else { distance }),
                _ => Operand::Word,
            };
            let address =
                from(|s| matches!(s, Step::Access(..) | Step::Range(..) | Step::Masked(..) | Step::Sync(..)));
            let length = match from(|s| matches!(s, Step::Range(..))) {
                Operand::Back(back, _) => Operand::Back(back, 0),
                word => word,
            };
            steps.push(match kind {
                0..3 => Step::Access(site, address),
                3 => Step::Range(site, address, length),
                4 => Step::Masked(site, lanes, address),
                5 => Step::Gather(site, lanes),
                6 => Step::Enter,
                7 => Step::Exit,
                8 => Step::Resume,
                9 => Step::Alloc(site),
                10 => Step::AllocArray(site),
                11 => Step::Realloc(site),
                12 => Step::Free(site),
                13 => Step::Unmap(site),
                14 if lanes % 2 == 0 => Step::Sync((lanes / 2 % 10) as u8, address),
                14 => Step::Stamp,
                _ => match steps.last() {
                    Some(Step::Access(..) | Step::Masked(..) | Step::Gather(..)) => Step::Value,
                    _ => Step::Stamp,
                },
            });
        }
        steps
    })
}

/// A repeat and its strides; those that share a word go the same step.
fn repeat() -> impl Strategy<Value = Vec<Step>> {
    // Up to 99 iterations stay in an address space.
    let far = -(1i64 << 40)..1 << 40;
    let stride = (0..SITES, 0..4usize, -64..64i64, prop_oneof![-8..64i64, far]);
    prop::collection::vec(stride, 1..4).prop_map(|strides| {
        let mut steps = vec![Step::Repeat];
        for (site, back, distance, step) in strides {
            steps.push(match steps.len().checked_sub(back).map(|at| &steps[at..]) {
                Some([Step::Stride(_, _, step), ..]) => {
                    Step::Stride(site, Operand::Back(back, distance), *step)
                }
                _ => Step::Stride(site, Operand::Word, step),
            });
        }
        steps
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let steps = prop_oneof![4 => steps(), 1 => repeat()];
    let segment = (0..FUNCTIONS, steps).prop_map(|(function, steps)| Seg { function, steps });
    let derived = prop::collection::vec((0..SITES, 1..6usize, 0..12usize, any::<i16>()), 0..4);
    let segments = prop::collection::vec((segment, derived), 1..8);
    (segments, prop::collection::vec(1..100u32, SITES)).prop_map(|(segments, site_bytes)| {
        let mut plan = Plan { functions: FUNCTIONS, site_bytes, segments: Vec::new() };
        for (index, (mut segment, derived)) in segments.into_iter().enumerate() {
            for (site, back, word, distance) in derived {
                if segment.steps[0] == Step::Repeat {
                    continue;
                }
                // Words of an earlier segment of the same function.
                let source = index.checked_sub(back).map(|source| &plan.segments[source]);
                let fits = |s: &Seg| {
                    s.function == segment.function
                        && s.steps[0] != Step::Repeat
                        && word < word_count(&plan.site_bytes, s)
                };
                if source.is_some_and(fits) {
                    segment.steps.push(Step::Derived(site, back, word, distance.into()));
                }
            }
            plan.segments.push(segment);
        }
        plan
    })
}

/// Values a program may write: near, far, and extreme ones.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![0x1000..0x1100u64, any::<u64>(), 0..3u64, Just(u64::MAX), 0..0x7fff_ffff_ffffu64]
}

/// Executions for a plan: loops (the same segments over and over) and jumps.
fn executions(plan: Plan) -> impl Strategy<Value = (Plan, Vec<Vec<Vec<Execution>>>)> {
    let count = plan.segments.len();
    let one = (0..count, prop::collection::vec(word(), 70));
    let chunk = prop::collection::vec((prop::collection::vec(one, 1..4), 1..5usize), 1..5);
    let threads = prop::collection::vec(prop::collection::vec(chunk, 0..4), 1..3);
    threads.prop_map(move |threads| {
        let fit = |(segment, words): &Execution| {
            let segment_plan = &plan.segments[*segment];
            let count = word_count(&plan.site_bytes, segment_plan);
            let mut words: Vec<u64> = words.iter().copied().cycle().take(count).collect();
            tame(&plan.site_bytes, segment_plan, &mut words);
            (*segment, words)
        };
        let unroll = |chunk: &Vec<(Vec<Execution>, usize)>| -> Vec<Execution> {
            chunk
                .iter()
                .flat_map(|(body, times)| vec![body.iter().map(fit).collect::<Vec<_>>(); *times].concat())
                .collect()
        };
        let mut threads: Vec<Vec<Vec<Execution>>> =
            threads.iter().map(|chunks| chunks.iter().map(unroll).collect()).collect();
        // Every segment once at first, in order: what others derive addresses from has been executed.
        for chunk in threads.iter_mut().filter_map(|chunks| chunks.first_mut()) {
            let words = |segment: usize| (0..70).map(move |word| 0x5000 * (segment as u64 + 1) + 64 * word);
            let first = (0..plan.segments.len()).map(|segment| fit(&(segment, words(segment).collect())));
            chunk.splice(0..0, first);
        }
        (plan.clone(), threads)
    })
}

/// Lengths of ranges that a machine can have, and loops that stay far from the ends of the address
/// space.
fn tame(site_bytes: &[u32], segment: &Seg, words: &mut [u64]) {
    let up_to = |steps: &[Step]| word_count(site_bytes, &Seg { function: 0, steps: steps.to_vec() });
    if segment.steps[0] == Step::Repeat {
        words[0] %= 100;
        words[1..].iter_mut().for_each(|word| *word = *word % (1 << 62) + (1 << 62));
    }
    for (number, step) in segment.steps.iter().enumerate() {
        if let Step::Range(_, _, Operand::Word) = step {
            words[up_to(&segment.steps[..=number]) - 1] %= 0x3_0000_0000;
        }
    }
}

/// Function and frame, outermost first.
type Stack = Vec<(String, u64)>;

/// The naive model's result for each chunk of a thread, and its stack before each.
fn expected(plan: &Plan, chunks: &[Vec<Execution>]) -> Vec<(Vec<Happened>, Stack)> {
    let mut stack = Stack::new();
    let mut history = History::new();
    let mut out = Vec::new();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        let before = stack.clone();
        let mut events = Vec::new();
        for (segment, words) in chunk {
            expand(plan, *segment, words, &mut history, &mut events);
        }
        for event in &events {
            match event {
                Happened::Enter(function, frame) => {
                    stack.retain(|(_, address)| address > frame);
                    stack.push((function.clone(), *frame));
                }
                Happened::Exit(function) => {
                    stack.pop_if(|(top, _)| top == function);
                }
                Happened::Resume(name, frame) => {
                    while stack.last().is_some_and(|(_, address)| address < frame) {
                        stack.pop();
                    }
                    if stack.last().is_none_or(|(_, address)| address != frame) {
                        stack.push((name.clone(), *frame));
                    }
                }
                _ => {}
            }
        }
        out.push((events, before));
    }
    out
}

fn named(trace: &Trace, stack: &[Frame]) -> Stack {
    let sites = trace.sites();
    stack.iter().map(|f| (sites.string(sites.function(f.function).name).to_owned(), f.address)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn decode_undoes_encode((plan, threads) in plan().prop_flat_map(executions)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let told = write_trace(&path, &plan, &threads);
        let trace = Trace::open(&path).unwrap();
        prop_assert_eq!(trace.damage(), &[]);

        let mut batch = Batch::default();
        let mut accesses = 0;
        for (number, chunks) in threads.iter().enumerate() {
            let expected = expected(&plan, chunks);
            let of_thread: Vec<_> = trace.chunks().iter().filter(|c| c.thread.0 as usize == number).collect();
            prop_assert_eq!(of_thread.len(), expected.len());
            // Last chunk first: each decodes alone.
            for (chunk, (events, stack)) in of_thread.iter().zip(&expected).rev() {
                trace.decode(chunk, &mut batch).unwrap();
                prop_assert_eq!(&happened(&trace, &batch), events);
                prop_assert_eq!(&named(&trace, &batch.stack), stack);
            }
            // Following the marks from one snapshot leads to the next.
            let mut shadow = ShadowStack::default();
            for chunk in &of_thread {
                trace.decode(chunk, &mut batch).unwrap();
                accesses += batch.accesses.len() as u64;
                let snapshot: Vec<_> = batch.stack.iter().map(|f| (f.function, f.address)).collect();
                prop_assert_eq!(shadow.frames(), &snapshot);
                batch.marks.iter().for_each(|(_, mark)| shadow.apply(mark));
            }
        }

        prop_assert_eq!(told, accesses);

        let replay = |workers| {
            let mut all = Vec::new();
            let replayed = trace.replay(workers, |batch| {
                all.push((batch.thread, batch.sequence, batch.stamps, happened(&trace, batch)));
                ControlFlow::Continue(())
            });
            assert!(replayed.damaged.is_empty() && !replayed.stopped && replayed.chunks == all.len());
            all
        };
        let sequential = replay(0);
        prop_assert!(sequential.is_sorted_by_key(|(thread, _, stamps, _)| (stamps.0, *thread)));
        prop_assert_eq!(&replay(3), &sequential);
    }
}

/// The address space of a process with the plan's image, in which nothing else happens.
fn space(plan: &Plan) -> AddressSpace {
    let mut space = AddressSpace::default();
    let module = memlode_trace::module::Module::parse(image(plan)).unwrap();
    space.load(ModuleId(0), std::sync::Arc::new(module), LOAD_BIAS);
    space
}

fn encode_in_order(encoder: &mut ChunkEncoder, words: &[u64], space: &AddressSpace) -> Option<FullChunk> {
    let appended = encoder.append(words, Tail::HandedOver, (3, 5), space);
    assert_eq!((appended.consumed, appended.stop), (words.len(), Stop::End));
    encoder.finish()
}

/// An encoder's guess at the words before its part of the stream.
#[derive(Clone, Copy, Debug)]
enum Guess {
    Right,
    Wrong,
    None,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn chunks_encoded_in_any_order_are_the_same_when_joined(
        (plan, threads) in plan().prop_flat_map(executions),
        guesses in prop::collection::vec(prop_oneof![4 => Just(Guess::Right), 1 => Just(Guess::Wrong), 1 => Just(Guess::None)], 8),
        order in any::<u64>(),
    ) {
        let space = space(&plan);
        // As another worker's, it knows what was executed anywhere.
        let mut ahead = Encoder::new(FULL_WORDS, Form::Coded);
        for chunks in &threads {
            let words: Vec<Vec<u64>> = chunks.iter().map(|chunk| raw(chunk)).collect();
            let mut loose: Vec<_> = words.iter().map(|_| None).collect();
            let mut numbers: Vec<usize> = (0..words.len()).collect();
            numbers.sort_by_key(|&number| order.rotate_left(8 * number as u32) as u8);
            for number in numbers {
                let mut before = |wanted: &Wanted| {
                    let before = words[..number].concat();
                    // A random address may look like a header: that is a wrong guess, too.
                    let at = before.iter().rposition(|&word| word == wanted.header)? + 1;
                    let found = before.get(at..at + usize::from(wanted.words))?.to_vec();
                    match guesses[number % guesses.len()] {
                        Guess::Right => Some(found),
                        Guess::Wrong => Some(found.iter().map(|word| word ^ 1).collect()),
                        Guess::None => None,
                    }
                };
                let appended = ahead.append(&words[number], Tail::HandedOver, (3, 5), &space, &mut before);
                let chunk = ahead.finish();
                loose[number] = chunk.filter(|_| appended.stop == Stop::End);
            }
            let (mut joiner, mut sequential) = (ChunkEncoder::new(), ChunkEncoder::new());
            for (chunk, words) in loose.into_iter().zip(&words) {
                let joined = chunk.and_then(|chunk| joiner.join(chunk));
                let joined = joined.or_else(|| encode_in_order(&mut joiner, words, &space));
                let expected = encode_in_order(&mut sequential, words, &space);
                prop_assert_eq!(format!("{joined:?}"), format!("{expected:?}"));
            }
        }
    }
}

/// Facts about the chunks of a replay. They are not split by threads that learn from each other,
/// and so come as a whole.
fn chunks(replay: impl FnOnce(&mut (dyn FnMut(&Piece<'_>) -> ControlFlow<()> + Send))) -> Vec<String> {
    let mut found = Vec::new();
    replay(&mut |piece| {
        if piece.is_last() {
            found.push(format!("{:?}", piece.batch));
        }
        ControlFlow::Continue(())
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_replayed_meanwhile_is_what_is_stored((plan, threads) in plan().prop_flat_map(executions)) {
        let directory = tempfile::tempdir().unwrap();
        write_trace(directory.path(), &plan, &threads);
        let stored = Trace::open(directory.path()).unwrap();
        let live_trace = || {
            let (store, live_trace) = live(Path::new("nowhere"), None);
            write_trace_to(Box::new(store), &plan, &threads);
            live_trace
        };
        let unrolled = chunks(|consume| _ = stored.interleave(0, consume));
        prop_assert_eq!(unrolled, chunks(|consume| _ = live_trace().interleave(0, consume)));
        let one = Shards::one();
        let kept = chunks(|consume| _ = stored.interleave_shards(&one, 0, vec![consume]));
        prop_assert_eq!(kept, chunks(|consume| _ = live_trace().interleave_shards(&one, 0, vec![consume])));
    }
}

#[test]
fn a_consumer_may_stop() {
    let plan = Plan {
        functions: 1,
        site_bytes: vec![8],
        segments: vec![Seg { function: 0, steps: vec![Step::Access(0, Operand::Word)] }],
    };
    let directory = tempfile::tempdir().unwrap();
    let chunk: Vec<Execution> = (0..10).map(|i| (0, vec![i])).collect();
    write_trace(directory.path(), &plan, &[vec![chunk; 50]]);
    let trace = Trace::open(directory.path()).unwrap();
    for workers in [0, 1, 4] {
        let mut seen = 0;
        let replayed = trace.replay(workers, |_| {
            seen += 1;
            if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(replayed.stopped && replayed.chunks == 5 && seen == 5);
    }
}
