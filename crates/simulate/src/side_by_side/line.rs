//! Lines: who may use them when, and which bytes were written by whom.

use std::collections::VecDeque;

use super::ledger::{Kind, Ledger, Pair};
use super::past::Past;
use super::{NEVER, Pace, Step, Ticks};

/// One thread's rights to a line.
#[derive(Clone, Copy, Debug)]
struct Copy {
    readable: (Ticks, Ticks),
    writable: (Ticks, Ticks),
    /// The life of the line in this cache, while it lasts.
    life: Option<u32>,
    /// Bytes that others wrote since this thread last needed a transfer.
    foreign: u64,
    /// Bytes that another thread had written when the block or variable around them ended.
    former: u64,
    /// The access that took the line away last, and its bytes.
    taker: u32,
    taken_for: u64,
}

const NOTHING: (Ticks, Ticks) = (0, Ticks::MIN);

impl Copy {
    const NONE: Copy = Copy {
        readable: NOTHING,
        writable: NOTHING,
        life: None,
        foreign: 0,
        former: 0,
        taker: u32::MAX,
        taken_for: 0,
    };
}

/// The rights of all threads to a line. Few threads ever touch it; all others share one entry.
struct Copies {
    threads: Vec<u32>,
    copies: Vec<Copy>,
    others: Copy,
}

impl Copies {
    fn find(&self, thread: usize) -> Option<usize> {
        self.threads.iter().position(|known| *known as usize == thread)
    }

    fn get(&self, thread: usize) -> &Copy {
        self.find(thread).map_or(&self.others, |at| &self.copies[at])
    }

    /// The copy of a thread that touches the line.
    fn own(&mut self, thread: usize) -> &mut Copy {
        let at = self.find(thread).unwrap_or_else(|| {
            self.threads.push(thread as u32);
            self.copies.push(self.others);
            self.copies.len() - 1
        });
        &mut self.copies[at]
    }

    /// The copies of all threads; threads that have not touched the line share one.
    fn all(&mut self) -> impl Iterator<Item = &mut Copy> {
        self.copies.iter_mut().chain([&mut self.others])
    }

    /// The copies of all threads but one, which has touched the line.
    fn all_but(&mut self, thread: usize) -> impl Iterator<Item = &mut Copy> {
        let known = self.threads.iter().zip(&mut self.copies);
        let but = known.filter(move |(known, _)| **known as usize != thread).map(|(_, copy)| copy);
        but.chain([&mut self.others])
    }
}

/// A line of several threads.
pub(crate) struct Line {
    /// When it arrived anywhere last; `None` before its first use.
    arrived: Option<Ticks>,
    copies: Copies,
    /// Bytes, a bit each, and the access that wrote them last.
    writers: Vec<(u64, u32)>,
    /// Its latest access, and the latest of another thread.
    latest: [Latest; 2],
}

/// An access to a line.
#[derive(Clone, Copy, Debug)]
struct Latest {
    /// A number above any thread's, before the first thread.
    thread: usize,
    /// Releases of the thread before it.
    releases: u64,
    place: u32,
}

const NOBODY: Latest = Latest { thread: usize::MAX, releases: 0, place: u32::MAX };

/// Facts about the thread that makes a request.
pub(crate) struct Asker<'a> {
    pub thread: usize,
    /// Arrivals of the latest requests of the thread, the oldest first.
    pub arrivals: &'a mut VecDeque<Ticks>,
    pub past: &'a Past,
}

impl Line {
    pub fn new() -> Line {
        let copies = Copies { threads: Vec::new(), copies: Vec::new(), others: Copy::NONE };
        Line { arrived: None, copies, writers: Vec::new(), latest: [NOBODY; 2] }
    }

    /// The life of the line in a thread's cache.
    pub fn life(&self, thread: usize) -> Option<u32> {
        self.copies.get(thread).life
    }

    /// Returns whether a thread can write the line now.
    pub fn is_writable(&self, thread: usize, t: Ticks) -> bool {
        let (from, until) = self.copies.get(thread).writable;
        from <= t && t < until
    }

    /// Returns when a thread that asks at `t` can use the line, and whether the line has to come.
    pub fn request(
        &mut self,
        asker: Asker<'_>,
        write: bool,
        t: Ticks,
        step: &Step,
        pace: &Pace,
        ledger: &mut Ledger,
    ) -> (Ticks, bool) {
        let x = asker.thread;
        let mine = self.copies.own(x);
        let (from, until) = if write { mine.writable } else { mine.readable };
        if t < until {
            return (from.max(t), false);
        }
        let has_read = t < mine.readable.1;
        let Some(last) = self.arrived else {
            // Nobody had it: it comes from memory, like any other.
            self.arrived = Some(t);
            self.grant(x, (write, has_read, step), t, t, ledger);
            return (t, false);
        };
        let mut arrival = t + pace.transfer;
        if asker.arrivals.len() == pace.on_their_way {
            let earlier = asker.arrivals.pop_front().unwrap_or(Ticks::MIN);
            if earlier > t {
                arrival = arrival.max(earlier + pace.transfer);
            }
        }
        arrival = arrival.max(last + pace.arrival);
        asker.arrivals.push_back(arrival);
        self.arrived = Some(arrival);
        let leave = arrival - (pace.arrival - pace.usable);
        let readers = self.grant(x, (write, has_read, step), arrival, leave, ledger);
        let latest = self.latest[usize::from(self.latest[0].thread == x)];
        let is_over = latest.thread != usize::MAX && asker.past.is_over(latest.thread, latest.releases, x);
        let mine = self.copies.own(x);
        if let Some(life) = mine.life.take() {
            ledger.end(life);
        }
        let (kind, other) = match has_read {
            _ if is_over => (Kind::HandedOver, latest.place),
            // To write what others only read takes as long; it was needed if what they did with it was.
            true => (readers, latest.place),
            false if mine.taker == u32::MAX => (Kind::False, latest.place),
            false => (Kind::False, mine.taker),
        };
        let is_contended = !has_read && mine.taken_for & step.bytes != 0;
        let pair = Pair { line: step.line, kind, place: step.place, other };
        mine.life = Some(ledger.begin(pair, is_contended));
        (arrival, true)
    }

    /// Gives the line to a thread at `from`; the others have it until `leave`. Returns the kinds of
    /// the lives that end by this.
    fn grant(
        &mut self,
        x: usize,
        (write, has_read, step): (bool, bool, &Step),
        from: Ticks,
        leave: Ticks,
        ledger: &Ledger,
    ) -> Kind {
        let mut kind = Kind::False;
        for other in self.copies.all_but(x) {
            other.writable.1 = other.writable.1.min(leave);
            if write {
                other.readable.1 = other.readable.1.min(leave);
                // It lasts until `leave`, so it ends when its owner asks again.
                if other.life.is_some_and(|life| ledger.kind(life) == Kind::True) {
                    kind = Kind::True;
                }
                (other.taker, other.taken_for) = (step.place, step.bytes);
            }
        }
        let mine = self.copies.own(x);
        if write {
            if !has_read {
                mine.readable.0 = from;
            }
            mine.readable.1 = NEVER;
            mine.writable = (from, NEVER);
        } else {
            mine.readable = (from, NEVER);
            mine.writable.1 = Ticks::MIN;
        }
        kind
    }

    /// A thread reads bytes.
    pub fn read(&mut self, thread: usize, step: &Step, past: &Past, ledger: &mut Ledger) {
        self.touch(thread, step, past, ledger);
    }

    /// A thread writes bytes.
    pub fn write(&mut self, thread: usize, step: &Step, past: &Past, ledger: &mut Ledger) {
        self.touch(thread, step, past, ledger);
        let own = self.copies.own(thread);
        (own.foreign, own.former) = (own.foreign & !step.bytes, own.former & !step.bytes);
        for copy in self.copies.all_but(thread) {
            (copy.foreign, copy.former) = (copy.foreign | step.bytes, copy.former & !step.bytes);
        }
        if self.writers.iter().any(|&(bytes, place)| place == step.place && step.bytes & !bytes == 0) {
            return;
        }
        self.writers.retain_mut(|(bytes, _)| {
            *bytes &= !step.bytes;
            *bytes != 0
        });
        match self.writers.iter_mut().find(|(_, place)| *place == step.place) {
            Some((bytes, _)) => *bytes |= step.bytes,
            None => self.writers.push((step.bytes, step.place)),
        }
    }

    /// Ends the block or variable that these bytes are of: its values are not needed any more.
    pub fn end(&mut self, bytes: u64) {
        for copy in self.copies.all() {
            copy.former |= copy.foreign & bytes;
            copy.foreign &= !bytes;
        }
    }

    fn touch(&mut self, thread: usize, step: &Step, past: &Past, ledger: &mut Ledger) {
        if self.latest[0].thread != thread {
            self.latest[1] = self.latest[0];
        }
        self.latest[0] = Latest { thread, releases: past.releases[thread], place: step.place };
        let Some(at) = self.copies.find(thread) else { return };
        let copy = &mut self.copies.copies[at];
        let Some(life) = copy.life else { return };
        let (foreign, former) = (copy.foreign & step.bytes, copy.former & step.bytes);
        // That of the first of these bytes.
        let writer = |bytes: u64| {
            let mut writers = self.writers.iter();
            writers
                .find(|written| written.0 >> bytes.trailing_zeros() & 1 != 0)
                .map_or(u32::MAX, |found| found.1)
        };
        if foreign != 0 {
            (copy.foreign, copy.former) = (0, 0);
            ledger.needed(life, Kind::True, step.place, writer(foreign));
        } else if former != 0 {
            copy.former &= !former;
            ledger.needed(life, Kind::HandedOver, step.place, writer(former));
        }
    }

    /// The end of all: lives that last end.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        for copy in self.copies.all() {
            if let Some(life) = copy.life.take() {
                ledger.end(life);
            }
        }
    }
}
