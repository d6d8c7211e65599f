//! Threads side by side, against a naive model and in cases that were thought through.

mod naive;

use std::collections::BTreeMap;

use memlode_simulate::side_by_side::{
    Act, CYCLE, Item, Kind, Pace, Program, Sampling, Step, Ticks, simulate,
};
use proptest::prelude::*;

use naive::naive;

/// Items by thread.
#[derive(Clone, Debug)]
struct Script {
    threads: Vec<Vec<Item>>,
    next: Vec<usize>,
    makers: Vec<Option<(u32, u64)>>,
}

impl Script {
    fn new(threads: Vec<Vec<Item>>) -> Script {
        let next = vec![0; threads.len()];
        let makers = vec![None; threads.len()];
        Script { threads, next, makers }
    }
}

impl Program for Script {
    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn maker(&self, thread: usize) -> Option<(u32, u64)> {
        self.makers[thread]
    }

    fn next(&mut self, thread: usize) -> Option<Item> {
        let item = self.threads[thread].get(self.next[thread]).cloned();
        self.next[thread] += 1;
        item
    }
}

/// The study's constants, of a Zen 3.
fn pace() -> Pace {
    Pace {
        transfer: 118 * CYCLE,
        arrival: 80 * CYCLE,
        usable: 11 * CYCLE,
        instruction: 300,
        increment: CYCLE * 3 / 2,
        atomic: 7 * CYCLE,
        fence: 61 * CYCLE,
        window: 128,
        on_their_way: 12,
        forwards: false,
    }
}

/// The pace calibrated on a Sapphire Rapids.
fn forwarding() -> Pace {
    Pace {
        transfer: 281 * CYCLE,
        arrival: 208 * CYCLE,
        usable: 54 * CYCLE,
        atomic: 19 * CYCLE,
        fence: 26 * CYCLE,
        window: 235,
        on_their_way: 14,
        forwards: true,
        ..pace()
    }
}

/// A core on which a word goes through the store buffer each time, as on a Zen 1.
fn slow_to_count() -> Pace {
    Pace { increment: 15 * CYCLE / 2, ..pace() }
}

/// A core on which that takes longer than a line that has just come.
fn slower_than_arrivals() -> Pace {
    Pace { increment: 9 * CYCLE, ..forwarding() }
}

fn step(act: Act, line: u32, byte: u32, instructions: u32, place: u32) -> Item {
    Item::Step(Step { act, line, bytes: 0xff << byte, instructions, stores: 0, place })
}

/// A step that follows a number of stores to other lines.
fn behind(stores: u32, item: Item) -> Item {
    let Item::Step(step) = item else { return item };
    Item::Step(Step { stores, ..step })
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Load),
        3 => Just(Act::Store),
        3 => Just(Act::Increment),
        1 => Just(Act::Atomic),
        1 => Just(Act::Fence),
    ]
}

fn items(lines: u32) -> impl Strategy<Value = Vec<Item>> {
    let stores = prop_oneof![2 => Just(0), 1 => 0..12u32];
    let one = (acts(), 0..lines, 0..8u32, prop_oneof![1..20u32, 1..200u32], stores);
    let body = prop::collection::vec(one, 1..12);
    (body, 1..60usize).prop_map(|(body, iterations)| {
        let iteration = body.iter().map(|&(act, line, word, instructions, stores)| {
            let instructions = instructions.max(act.instructions()) + stores;
            behind(stores, step(act, line, 8 * word, instructions, 0))
        });
        let iteration: Vec<Item> = iteration.collect();
        iteration.iter().cycle().take(iteration.len() * iterations).cloned().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// To the digit: every clock, every transfer, and the time without any.
    #[test]
    fn equals_the_naive_model(
        threads in prop::collection::vec(items(3), 1..5),
        pace in prop_oneof![
            Just(pace()),
            Just(forwarding()),
            Just(slow_to_count()),
            Just(slower_than_arrivals()),
        ],
    ) {
        let found = simulate(&mut Script::new(threads.clone()), 3, &pace, Sampling::ALL);
        let shared = naive(&threads, pace, false);
        let alone = naive(&threads, pace, true);
        for ((found, shared), alone) in found.threads.iter().zip(shared).zip(alone) {
            prop_assert_eq!(found.transfers, shared.1);
            prop_assert_eq!(found.lost, shared.0 - alone.0);
            prop_assert_eq!(found.alone, alone.0);
        }
        prop_assert_eq!(found.unmet, 0);
        let transfers: u64 = found.pairs.iter().map(|(_, taken)| taken.transfers).sum();
        prop_assert_eq!(transfers, found.threads.iter().map(|thread| thread.transfers).sum::<u64>());
    }
}

fn times(item: &Item, count: usize) -> Vec<Item> {
    vec![item.clone(); count]
}

/// Returns what transfers were for, by kind, place and the other's place.
fn kinds(threads: Vec<Vec<Item>>, lines: usize) -> BTreeMap<(Kind, u32, u32), u64> {
    kinds_of(Script::new(threads), lines)
}

fn kinds_of(mut script: Script, lines: usize) -> BTreeMap<(Kind, u32, u32), u64> {
    let found = simulate(&mut script, lines, &pace(), Sampling::ALL);
    let mut kinds = BTreeMap::new();
    for (pair, taken) in found.pairs {
        *kinds.entry((pair.kind, pair.place, pair.other)).or_default() += taken.transfers;
    }
    kinds
}

#[test]
fn counters_beside_each_other_are_shared_falsely_and_one_counter_truly() {
    let count = |byte, place| times(&step(Act::Increment, 0, byte, 4, place), 5000);
    let apart = kinds(vec![count(0, 1), count(8, 2)], 1);
    assert!(apart.keys().all(|(kind, ..)| *kind == Kind::False), "{apart:?}");
    assert!(apart[&(Kind::False, 1, 2)] > 100 && apart[&(Kind::False, 2, 1)] > 100, "{apart:?}");
    let one = kinds(vec![count(0, 1), count(0, 2)], 1);
    let truly: u64 = one.iter().filter(|((kind, ..), _)| *kind == Kind::True).map(|(_, n)| n).sum();
    assert!(truly > 200 && truly + 2 >= one.values().sum::<u64>(), "{one:?}");
}

/// An atomic counter of two threads, updated now and then, is all that its line is asked for: also
/// where the line goes back before it was used.
#[test]
fn one_atomic_counter_is_shared_truly() {
    for pace in [pace(), forwarding()] {
        for instructions in [4, 20, 60, 150] {
            let count = |place| times(&step(Act::Atomic, 0, 0, instructions, place), 3000);
            let found = simulate(&mut Script::new(vec![count(1), count(2)]), 1, &pace, Sampling::ALL);
            let falsely: u64 =
                found.pairs.iter().filter(|(pair, _)| pair.kind == Kind::False).map(|p| p.1.transfers).sum();
            assert!(falsely <= 1, "{instructions}: {:?}", found.pairs);
        }
    }
}

/// The write of `a` takes the reader's line, but the reader needs the value of the write of `b`.
#[test]
fn a_needed_transfer_names_the_write_of_the_bytes() {
    let (mut writer, mut reader) = (Vec::new(), Vec::new());
    for iteration in 0..100 {
        writer.extend([step(Act::Store, 0, 0, 3, 1), step(Act::Store, 0, 8, 3, 2), Item::Release]);
        writer.push(Item::Acquire(vec![(1, iteration + 1)]));
        reader.push(Item::Acquire(vec![(0, iteration + 1)]));
        reader.extend([step(Act::Load, 0, 8, 3, 3), Item::Release]);
    }
    let found = kinds(vec![writer, reader], 1);
    assert!(found[&(Kind::True, 3, 2)] >= 99, "{found:?}");
    assert!(!found.contains_key(&(Kind::True, 3, 1)), "{found:?}");
    let falsely: u64 = found.iter().filter(|((kind, ..), _)| *kind == Kind::False).map(|(_, n)| n).sum();
    assert!(falsely <= 1, "{found:?}");
}

/// One writes an element of each line, the other reads all of them: the data are needed.
#[test]
fn data_that_are_needed_are_not_shared_falsely() {
    let (mut writer, mut reader) = (Vec::new(), Vec::new());
    for round in 0..20 {
        writer.extend((0..64).map(|line| step(Act::Increment, line, 40, 4, 1)));
        writer.extend([Item::Release, Item::Acquire(vec![(1, round + 1)])]);
        reader.push(Item::Acquire(vec![(0, round + 1)]));
        let all = (0..64).flat_map(|line| (0..8).map(move |word| step(Act::Load, line, 8 * word, 2, 2)));
        reader.extend(all);
        reader.push(Item::Release);
    }
    let found = kinds(vec![writer, reader], 64);
    let falsely: u64 = found.iter().filter(|((kind, ..), _)| *kind == Kind::False).map(|(_, n)| n).sum();
    let truly: u64 = found.values().sum::<u64>() - falsely;
    assert!(truly >= 19 * 64 && falsely * 50 <= truly, "{falsely} {truly}");
}

/// Thread 0 sets a line up, makes thread 1 and, when that has ended, thread 2; then it adds up.
/// Each uses a word of its own and reads the line that was set up.
#[test]
fn what_is_ordered_by_creation_and_end_is_handed_over() {
    let counts = |byte, place| times(&step(Act::Increment, 0, byte, 4, place), 100);
    let made = |release, byte, place| {
        let begins = [Item::Acquire(vec![(0, release)]), step(Act::Load, 0, 0, 3, place)];
        begins.into_iter().chain(counts(byte, place)).chain([Item::Release]).collect()
    };
    let maker = vec![
        step(Act::Store, 0, 0, 3, 10),
        Item::Release,
        Item::Acquire(vec![(1, 1)]),
        Item::Release,
        Item::Acquire(vec![(2, 1)]),
        step(Act::Load, 0, 8, 3, 11),
        step(Act::Load, 0, 16, 3, 11),
    ];
    let mut script = Script::new(vec![maker, made(1, 8, 1), made(2, 16, 2)]);
    let fights = kinds_of(script.clone(), 1);
    script.makers = vec![None, Some((0, 1)), Some((0, 2))];
    let handed = kinds_of(script, 1);
    let expected =
        [((Kind::HandedOver, 1, 10), 1), ((Kind::HandedOver, 2, 1), 1), ((Kind::HandedOver, 11, 2), 1)];
    assert_eq!(handed, BTreeMap::from(expected));
    // Without knowing who made whom, the first is for what was set up; those that have ended have ended all the same.
    assert_eq!(fights[&(Kind::True, 1, 10)], 1);
    assert_eq!(fights[&(Kind::HandedOver, 2, 1)], 1);
}

/// In turns, one thread writes a word and another takes the line to write the same word: with an
/// end in between, to another variable.
#[test]
fn what_has_ended_is_not_needed() {
    let iterations = |ends: bool| {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for iteration in 0..10 {
            first.push(Item::Acquire(vec![(1, iteration)]));
            first.extend(ends.then_some(Item::Ended { line: 0, bytes: 0xff }));
            first.extend([step(Act::Store, 0, 0, 3, 1), Item::Release]);
            second.extend([
                Item::Acquire(vec![(0, iteration + 1)]),
                step(Act::Store, 0, 0, 3, 2),
                Item::Release,
            ]);
        }
        // Neither ends before the other is done.
        first.push(Item::Acquire(vec![(1, 10)]));
        second.extend([Item::Work(100_000), Item::Release]);
        kinds(vec![first, second], 1)
    };
    let (alive, ended) = (iterations(false), iterations(true));
    assert_eq!(alive, BTreeMap::from([((Kind::True, 1, 2), 9), ((Kind::True, 2, 1), 10)]));
    assert_eq!(ended, BTreeMap::from([((Kind::HandedOver, 1, 2), 9), ((Kind::True, 2, 1), 10)]));
}

/// Keeps what is ordered in order, and loses no waiting.
#[test]
fn an_acquisition_comes_after_what_it_saw() {
    let first: Vec<Item> =
        times(&step(Act::Store, 0, 0, 10, 1), 1000).into_iter().chain([Item::Release]).collect();
    let second: Vec<Item> = [Item::Acquire(vec![(0, 1)])]
        .into_iter()
        .chain(times(&step(Act::Store, 0, 8, 10, 2), 1000))
        .collect();
    let found = simulate(&mut Script::new(vec![first, second]), 1, &pace(), Sampling::ALL);
    assert_eq!(found.threads.iter().map(|thread| thread.transfers).sum::<u64>(), 1, "one hand-over");
    assert!(found.threads[1].waited >= 1000 * 10 * 300);
    assert!(found.threads[1].lost < 200 * CYCLE);
}

#[test]
fn an_order_that_cannot_be_is_told() {
    let threads = vec![vec![Item::Acquire(vec![(1, 1)]), Item::Release], vec![Item::Acquire(vec![(0, 1)])]];
    assert_eq!(simulate(&mut Script::new(threads), 1, &pace(), Sampling::ALL).unmet, 1);
}

/// Counters in lines of their own, one update behind the other, as in the loop of two threads on a Zen 1
/// that took 7 to 8 cycles for each.
#[test]
fn a_counter_takes_as_long_as_the_core_takes_for_an_update() {
    let cycles = |pace: Pace| {
        let count = |line, place| times(&step(Act::Increment, line, 0, 5, place), 2000);
        let found = simulate(&mut Script::new(vec![count(0, 1), count(1, 2)]), 2, &pace, Sampling::ALL);
        assert_eq!(found.threads.iter().map(|thread| thread.transfers).sum::<u64>(), 0);
        found.threads[0].alone as f64 / CYCLE as f64 / 2000.0
    };
    let (renaming, buffered) = (cycles(pace()), cycles(slow_to_count()));
    assert!((1.4..1.6).contains(&renaming) && (7.4..7.6).contains(&buffered), "{renaming} {buffered}");
}

/// Two threads that count in one line with little else to do: a core that goes on with its own
/// stores loses next to nothing where another waits for the line each time, and as much where a
/// thousand instructions lie between.
#[test]
fn a_core_that_forwards_loses_nothing_to_counts_that_follow_each_other() {
    let lost = |pace: Pace, instructions| {
        let count = |byte, place| times(&step(Act::Increment, 0, byte, instructions, place), 2000);
        let found = simulate(&mut Script::new(vec![count(0, 1), count(8, 2)]), 1, &pace, Sampling::ALL);
        found.threads.iter().map(|thread| thread.lost as f64 / thread.alone as f64).sum::<f64>() / 2.0
    };
    // Where nothing else is to do, what forwarding takes is lost, which is not a tenth of what waiting does.
    let waits = |instructions| lost(Pace { forwards: false, ..forwarding() }, instructions);
    assert!(lost(forwarding(), 20) < 0.1 && waits(20) > 2.0, "{} {}", lost(forwarding(), 20), waits(20));
    let far = (lost(forwarding(), 1000), waits(1000));
    assert!(far.0 > 0.3 && (0.5..2.0).contains(&(far.0 / far.1)), "{far:?}");
}

/// Stores to lines of their own wait in the buffer behind one whose line is away, so a core can go
/// on for less long.
#[test]
fn a_core_that_forwards_loses_to_what_it_stores_elsewhere() {
    let lost = |stores| {
        let iteration = |byte, place| behind(stores, step(Act::Increment, 0, byte, 12, place));
        let threads = vec![times(&iteration(0, 1), 2000), times(&iteration(8, 2), 2000)];
        let found = simulate(&mut Script::new(threads), 1, &forwarding(), Sampling::ALL);
        found.threads.iter().map(|thread| thread.lost as f64 / thread.alone as f64).sum::<f64>() / 2.0
    };
    assert!(lost(8) > 4.0 * lost(0), "{} {}", lost(0), lost(8));
}

/// Only the fence behind a store waits for it: that time is charged to the line.
#[test]
fn what_a_fence_waits_for_is_charged_to_the_line() {
    for pace in [pace(), forwarding()] {
        let fenced = |byte, place| {
            let iteration = [step(Act::Store, 0, byte, 50, place), step(Act::Fence, 0, 0, 1, 0)];
            (0..500).flat_map(|_| iteration.clone()).collect::<Vec<_>>()
        };
        let found = simulate(&mut Script::new(vec![fenced(0, 1), fenced(8, 2)]), 1, &pace, Sampling::ALL);
        let lost: Ticks = found.threads.iter().map(|thread| thread.lost).sum();
        let stalled: Ticks = found.pairs.iter().map(|(_, taken)| taken.stalled).sum();
        assert!(lost > 0 && (0.8..1.3).contains(&(stalled as f64 / lost as f64)), "{stalled} {lost}");
    }
}

/// Work before an access is no part of the wait for its line.
#[test]
fn work_before_an_access_is_not_charged_to_its_line() {
    let write = step(Act::Store, 0, 0, 1, 1);
    let read = step(Act::Load, 0, 0, 1_000_000, 2);
    let found = simulate(&mut Script::new(vec![vec![write], vec![read]]), 1, &pace(), Sampling::ALL);
    let [(_, taken)] = found.pairs[..] else { panic!("{:?}", found.pairs) };
    assert!(taken.stalled > 0 && taken.stalled <= pace().transfer, "{taken:?}");
}
