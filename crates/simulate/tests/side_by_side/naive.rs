//! The naive model, written from the study's description alone: one step at a time, one queue,
//! nothing kept that could be looked up.

use std::collections::BTreeMap;

use memlode_simulate::side_by_side::{Act, CYCLE, Item, Pace, Step, Ticks};

const NEVER: Ticks = Ticks::MAX;

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
    /// When, step, stores to other lines behind it.
    buffer: Vec<(Ticks, Step, u64)>,
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
        let store = thread.buffer.first().map_or(NEVER, |(at, ..)| *at);
        let retire = match thread.window.first() {
            None => NEVER,
            Some((_, step, done)) => {
                let full = self.is_full(x, step);
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

    /// Returns whether the buffer, if there is anything in it, takes neither a step nor the stores
    /// to other lines before it.
    fn is_full(&self, x: usize, step: &Step) -> bool {
        let buffer = &self.threads[x].buffer;
        let Some((_, last, behind)) = buffer.last() else { return false };
        let joins = last.line == step.line && *behind == 0 && step.stores == 0;
        let is_store = matches!(step.act, Act::Store | Act::Increment);
        let places = u64::from(step.stores) + u64::from(is_store && !joins);
        places > 0 && buffer.iter().map(|(.., behind)| 1 + behind).sum::<u64>() + places > 64
    }

    fn next_is_held_up(&self, x: usize) -> bool {
        self.threads[x].window.first().is_some_and(|(_, step, _)| self.is_full(x, step))
    }

    fn store(&mut self, x: usize, t: Ticks) {
        let held_up = self.next_is_held_up(x);
        let (_, step, behind) = self.threads[x].buffer[0];
        let at = self.request(x, step.line, true, t);
        if self.pace.forwards && at > t {
            for place in 1..=self.pace.on_their_way {
                if let Some((_, step, _)) = self.threads[x].buffer.get(place).copied() {
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
        if let (true, Some(next)) = (self.pace.forwards && !self.private, thread.buffer.first_mut()) {
            let goes_elsewhere = next.1.line != step.line || behind > 0;
            next.0 = next.0.max(t + (behind as Ticks + Ticks::from(goes_elsewhere)) * 300);
        }
        if held_up && !self.next_is_held_up(x) {
            let thread = &mut self.threads[x];
            thread.retired = thread.retired.max(t);
        }
    }

    fn retire(&mut self, x: usize, t: Ticks) {
        let (number, step, _) = self.threads[x].window.remove(0);
        let thread = &self.threads[x];
        let mut t = t.max(thread.retired + (number - thread.retired_number) as Ticks * 120);
        if let Some((.., behind)) = self.threads[x].buffer.last_mut() {
            *behind += u64::from(step.stores);
        }
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
            Act::Store | Act::Increment => self.threads[x].buffer.push((t, step, 0)),
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
                || thread.buffer.iter().any(|(_, other, _)| waits(other))
                || thread.stored.iter().any(|(at, other)| waits(other) && t < at + 40 * CYCLE));
        let done = match step.act {
            Act::Load if takes_own => t,
            Act::Increment if takes_own => {
                let rights = self.rights.get(&(step.line, x));
                let here = self.private || rights.is_some_and(|mine| mine[2] <= t && t < mine[3]);
                let done = t + if here { self.pace.increment } else { self.pace.increment.max(6 * CYCLE) };
                self.threads[x].chain.insert((step.line, step.bytes), done);
                done
            }
            Act::Load => {
                let soon = self.stores_soon(x, at, step.line);
                self.request(x, step.line, soon, t)
            }
            Act::Increment => {
                let arrival = self.request(x, step.line, true, t);
                let slow = arrival > t && self.pace.increment < 8 * CYCLE;
                let done = arrival + if slow { 8 * CYCLE } else { self.pace.increment };
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
pub fn naive(items: &[Vec<Item>], pace: Pace, private: bool) -> Vec<(Ticks, u64)> {
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
