//! Threads side by side against a naive model, written from the study's description alone: one step at a time, one queue,
//! nothing kept that could be looked up.

use std::collections::BTreeMap;

use memlode_simulate::side_by_side::{
    Act, CYCLE, Item, Kind, Pace, Program, Sampling, Step, Ticks, simulate,
};
use proptest::prelude::*;

const NEVER: Ticks = Ticks::MAX;

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
        atomic: 7 * CYCLE,
        fence: 61 * CYCLE,
        window: 128,
        on_their_way: 12,
        forwards: false,
    }
}

/// As calibrated on a Sapphire Rapids.
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

fn step(act: Act, line: u32, byte: u32, instructions: u32, place: u32) -> Item {
    Item::Step(Step { act, line, bytes: 0xff << byte, instructions, place })
}

/// A thread of the naive model.
#[derive(Clone, Default)]
struct Naive {
    at: usize,
    pending: Option<u64>,
    clock: Ticks,
    retired: Ticks,
    committed: Ticks,
    number: u64,
    retired_number: u64,
    /// Instruction, step, done.
    window: Vec<(u64, Step, Ticks)>,
    /// When, step.
    buffer: Vec<(Ticks, Step)>,
    /// Stores that have reached their line, and when.
    stored: Vec<(Ticks, Step)>,
    chain: BTreeMap<(u32, u64), Ticks>,
    arrivals: Vec<Ticks>,
    transfers: u64,
}

/// Readable and writable, from and until; of no line at first.
type Rights = BTreeMap<(u32, usize), [Ticks; 4]>;

struct Machine {
    pace: Pace,
    threads: Vec<Naive>,
    rights: Rights,
    arrived: BTreeMap<u32, Ticks>,
    items: Vec<Vec<Item>>,
    /// Lines are everybody's own: none ever moves.
    private: bool,
}

impl Machine {
    fn request(&mut self, x: usize, line: u32, write: bool, t: Ticks) -> Ticks {
        if self.private {
            return t;
        }
        let pace = self.pace;
        let none = [0, Ticks::MIN, 0, Ticks::MIN];
        let mine = *self.rights.get(&(line, x)).unwrap_or(&none);
        let (from, until) = if write { (mine[2], mine[3]) } else { (mine[0], mine[1]) };
        if t < until {
            return from.max(t);
        }
        let (arrival, leave) = match self.arrived.get(&line) {
            None => (t, t),
            Some(&last) => {
                let mut arrival = t + pace.transfer;
                let arrivals = &self.threads[x].arrivals;
                if arrivals.len() >= pace.on_their_way && arrivals[arrivals.len() - pace.on_their_way] > t {
                    arrival = arrival.max(arrivals[arrivals.len() - pace.on_their_way] + pace.transfer);
                }
                arrival = arrival.max(last + pace.arrival);
                self.threads[x].arrivals.push(arrival);
                self.threads[x].transfers += 1;
                (arrival, arrival - (pace.arrival - pace.usable))
            }
        };
        self.arrived.insert(line, arrival);
        for y in (0..self.threads.len()).filter(|y| *y != x) {
            let others = self.rights.entry((line, y)).or_insert(none);
            others[3] = others[3].min(leave);
            if write {
                others[1] = others[1].min(leave);
            }
        }
        let read_from = if t < mine[1] { mine[0] } else { arrival };
        let rights = match write {
            true => [read_from, NEVER, arrival, NEVER],
            false => [arrival, NEVER, mine[2], Ticks::MIN],
        };
        self.rights.insert((line, x), rights);
        arrival
    }

    /// Returns whether a store to the line of a load comes within a window.
    fn stores_soon(&self, x: usize, at: usize, line: u32) -> bool {
        let mut between = 0;
        for item in &self.items[x][at + 1..] {
            let Item::Step(step) = item else { continue };
            between += u64::from(step.instructions);
            if between > self.pace.window {
                return false;
            }
            if step.line == line && step.act.writes() {
                return true;
            }
        }
        false
    }

    fn pending(&self, x: usize) -> (u64, Step) {
        let Item::Step(step) = self.items[x][self.threads[x].at] else { unreachable!("steps alone") };
        let all = u64::from(step.instructions.saturating_sub(step.act.instructions()));
        (self.threads[x].pending.unwrap_or(all), step)
    }

    /// The time of the next store, retirement and issue.
    fn times(&self, x: usize) -> [Ticks; 3] {
        let thread = &self.threads[x];
        let store = thread.buffer.first().map_or(NEVER, |(at, _)| *at);
        let retire = match thread.window.first() {
            None => NEVER,
            Some((_, step, done)) => {
                let stores = matches!(step.act, Act::Store | Act::Increment);
                let same = thread.buffer.last().is_some_and(|(_, last)| last.line == step.line);
                let full = stores && thread.buffer.len() >= 64 && !same;
                let drains = self.pace.forwards && step.act == Act::Atomic && !thread.buffer.is_empty();
                if full || drains { NEVER } else { (*done).max(thread.retired) }
            }
        };
        let full =
            thread.window.first().is_some_and(|(number, ..)| thread.number >= number + self.pace.window);
        let issue = if thread.at == self.items[x].len() || full {
            NEVER
        } else {
            match self.pending(x) {
                (0, Step { act: Act::Increment, line, bytes, .. }) => {
                    thread.chain.get(&(line, bytes)).copied().unwrap_or(0).max(thread.clock)
                }
                (0, Step { act: Act::Fence, .. })
                    if !(thread.window.is_empty() && thread.buffer.is_empty()) =>
                {
                    NEVER
                }
                _ => thread.clock,
            }
        };
        [store, retire, issue]
    }

    fn run(&mut self) {
        loop {
            let all = (0..self.threads.len()).flat_map(|x| {
                self.times(x).into_iter().enumerate().map(move |(stage, time)| (time, x, stage))
            });
            let (time, x, stage) = all.min().unwrap();
            match (time, stage) {
                (NEVER, _) => return,
                (_, 0) => self.store(x, time),
                (_, 1) => self.retire(x, time),
                _ => self.issue(x, time),
            }
        }
    }

    fn store(&mut self, x: usize, t: Ticks) {
        let (_, step) = self.threads[x].buffer[0];
        let at = self.request(x, step.line, true, t);
        if self.pace.forwards && at > t {
            for place in 1..=self.pace.on_their_way {
                if let Some((_, step)) = self.threads[x].buffer.get(place).copied() {
                    self.request(x, step.line, true, t);
                }
            }
        }
        let at = at.max(self.threads[x].committed);
        let thread = &mut self.threads[x];
        thread.committed = at;
        if at > t {
            thread.buffer[0].0 = at;
            return;
        }
        thread.buffer.remove(0);
        thread.stored.push((t, step));
        if thread.retired < t && thread.buffer.len() == 63 {
            thread.retired = t;
        }
    }

    fn retire(&mut self, x: usize, t: Ticks) {
        let (number, step, _) = self.threads[x].window.remove(0);
        let thread = &self.threads[x];
        let mut t = t.max(thread.retired + (number - thread.retired_number) as Ticks * 120);
        match step.act {
            Act::Atomic => {
                let has = self.request(x, step.line, true, t);
                if self.pace.forwards && has > t {
                    let next: Vec<Step> =
                        self.threads[x].window.iter().take(self.pace.on_their_way).map(|w| w.1).collect();
                    for step in next.iter().filter(|step| step.act == Act::Atomic) {
                        self.request(x, step.line, true, t);
                    }
                }
                t = has + self.pace.atomic;
            }
            Act::Store | Act::Increment => self.threads[x].buffer.push((t, step)),
            _ => {}
        }
        let thread = &mut self.threads[x];
        thread.retired_number = number;
        thread.retired = t;
        if thread.number >= number + self.pace.window {
            thread.clock = thread.clock.max(t);
        }
    }

    fn issue(&mut self, x: usize, t: Ticks) {
        let (pending, step) = self.pending(x);
        let thread = &mut self.threads[x];
        if pending > 0 {
            let room = thread
                .window
                .first()
                .map_or(pending, |(number, ..)| number + self.pace.window - thread.number);
            let now = room.min(pending);
            thread.number += now;
            thread.clock += now as Ticks * 300;
            thread.pending = Some(pending - now);
            return;
        }
        thread.pending = None;
        thread.clock = thread.clock.max(t);
        let (t, at) = (thread.clock, thread.at);
        thread.at += 1;
        if step.act == Act::Fence {
            thread.clock = t.max(thread.retired).max(thread.committed) + self.pace.fence;
            thread.retired = thread.retired.max(thread.clock);
            thread.number += 1;
            return;
        }
        let waits = |other: &Step| {
            matches!(other.act, Act::Store | Act::Increment)
                && (other.line, other.bytes) == (step.line, step.bytes)
        };
        let takes_own = self.pace.forwards
            && (thread.window.iter().any(|(_, other, _)| waits(other))
                || thread.buffer.iter().any(|(_, other)| waits(other))
                || thread.stored.iter().any(|(at, other)| waits(other) && t < at + 40 * CYCLE));
        let done = match step.act {
            Act::Load if takes_own => t,
            Act::Increment if takes_own => {
                let rights = self.rights.get(&(step.line, x));
                let here = self.private || rights.is_some_and(|mine| mine[2] <= t && t < mine[3]);
                let done = t + if here { CYCLE * 3 / 2 } else { 6 * CYCLE };
                self.threads[x].chain.insert((step.line, step.bytes), done);
                done
            }
            Act::Load => {
                let soon = self.stores_soon(x, at, step.line);
                self.request(x, step.line, soon, t)
            }
            Act::Increment => {
                let arrival = self.request(x, step.line, true, t);
                let done = arrival + if arrival > t { 8 * CYCLE } else { CYCLE * 3 / 2 };
                self.threads[x].chain.insert((step.line, step.bytes), done);
                done
            }
            Act::Atomic => self.request(x, step.line, true, t),
            _ => t,
        };
        let thread = &mut self.threads[x];
        thread.window.push((thread.number, step, done));
        thread.number += u64::from(step.act.instructions());
        thread.clock += Ticks::from(step.act.instructions()) * 300;
    }
}

/// When each thread ends, and its transfers.
fn naive(items: &[Vec<Item>], pace: Pace, private: bool) -> Vec<(Ticks, u64)> {
    let mut machine = Machine {
        pace,
        threads: vec![Naive::default(); items.len()],
        rights: Rights::default(),
        arrived: BTreeMap::new(),
        items: items.to_vec(),
        private,
    };
    machine.run();
    let end = |thread: &Naive| (thread.clock.max(thread.retired), thread.transfers);
    machine.threads.iter().map(end).collect()
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
    let one = (acts(), 0..lines, 0..8u32, prop_oneof![1..20u32, 1..200u32]);
    let body = prop::collection::vec(one, 1..12);
    (body, 1..60usize).prop_map(|(body, turns)| {
        let turn = body.iter().map(|&(act, line, word, instructions)| {
            step(act, line, 8 * word, instructions.max(act.instructions()), 0)
        });
        let turn: Vec<Item> = turn.collect();
        turn.iter().cycle().take(turn.len() * turns).cloned().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// To the digit: every clock, every transfer, and what it all would take without any.
    #[test]
    fn equals_the_naive_model(
        threads in prop::collection::vec(items(3), 1..5),
        pace in prop_oneof![Just(pace()), Just(forwarding())],
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

/// An atomic counter of two threads, updated now and then, is all that its line is asked for: also where the line goes back
/// before it was used.
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

/// The reader's line is taken by the write of `a`, but what it needs is what the write of `b` left.
#[test]
fn a_needed_transfer_names_the_write_of_the_bytes() {
    let (mut writer, mut reader) = (Vec::new(), Vec::new());
    for turn in 0..100 {
        writer.extend([step(Act::Store, 0, 0, 3, 1), step(Act::Store, 0, 8, 3, 2), Item::Release]);
        writer.push(Item::Acquire(vec![(1, turn + 1)]));
        reader.push(Item::Acquire(vec![(0, turn + 1)]));
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

/// Thread 0 sets a line up, makes thread 1 and, when that has ended, thread 2; then it adds up. Each uses a word of its own
/// and reads what was set up.
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

/// In turns, one thread writes a word and another takes the line to write the same word: with an end in between, to another
/// variable.
#[test]
fn what_has_ended_is_not_needed() {
    let turns = |ends: bool| {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for turn in 0..10 {
            first.push(Item::Acquire(vec![(1, turn)]));
            first.extend(ends.then_some(Item::Ended { line: 0, bytes: 0xff }));
            first.extend([step(Act::Store, 0, 0, 3, 1), Item::Release]);
            second.extend([Item::Acquire(vec![(0, turn + 1)]), step(Act::Store, 0, 0, 3, 2), Item::Release]);
        }
        // Neither ends before the other is done.
        first.push(Item::Acquire(vec![(1, 10)]));
        second.extend([Item::Work(100_000), Item::Release]);
        kinds(vec![first, second], 1)
    };
    let (alive, ended) = (turns(false), turns(true));
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

/// Two threads that count in one line with little else to do: a core that goes on with its own stores loses next to nothing
/// where another waits for the line each time, and as much where a thousand instructions lie between.
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

/// Nobody waits for a store but the fence behind it: that time is the line's.
#[test]
fn what_a_fence_waits_for_is_charged_to_the_line() {
    for pace in [pace(), forwarding()] {
        let fenced = |byte, place| {
            let turn = [step(Act::Store, 0, byte, 50, place), step(Act::Fence, 0, 0, 1, 0)];
            (0..500).flat_map(|_| turn.clone()).collect::<Vec<_>>()
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
