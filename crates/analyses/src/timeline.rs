//! # Time line
//!
//! **What it finds.** How accesses, misses of each level and modelled waiting change while the program runs, interval by interval, and which member
//! each interval waits for most.
//!
//! **Why it costs.** A program has phases. A figure for the whole of it hides that the load phase misses and the rest does not, or
//! that it gets slower as its data grow.
//!
//! **What to do.** Find the phase that waits, and look at its member; record that phase alone (`--delay`, `--for`, `--region`).
//!
//! **When it is wrong.** Intervals of time are those of the recorded run, by time stamps that are tens of microseconds apart, or by
//! synchronisation; intervals by count are exact. The wait is an upper bound, as everywhere.

use memlode_attribute::annotate::Events;
use memlode_attribute::tables::{What, what};
use rustc_hash::FxHashMap;

use crate::events::{Analysis, Table, Value, View};

/// How long an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// So many accesses.
    Accesses(u64),
    /// So many nanoseconds. Needs [`View::clock`], so a trace that is complete.
    Nanoseconds(u64),
}

/// See the module's page.
pub struct Timeline {
    every: Every,
    /// Number of the interval at hand.
    at_hand: Option<u64>,
    first: u64,
    /// Time stamp of its first access.
    stamp: u64,
    /// Accesses by the level that answered.
    answered: Vec<u64>,
    /// Cycles beyond the first level by cell, and the cells that have any.
    wait: Vec<u64>,
    waiting: Vec<u32>,
    /// Of the intervals before: their time stamps, and what is said of them but for the time.
    rows: Vec<(u64, Vec<Value>)>,
}

impl Timeline {
    /// With intervals of a length that is not 0.
    pub fn new(every: Every) -> Timeline {
        Timeline {
            every,
            at_hand: None,
            first: 0,
            stamp: 0,
            answered: Vec::new(),
            wait: Vec::new(),
            waiting: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Ends the interval at hand.
    fn end(&mut self, view: View<'_>) {
        let mut by_member: FxHashMap<What, u64> = FxHashMap::default();
        let mut total = 0;
        for cell in self.waiting.drain(..) {
            let cycles = std::mem::take(&mut self.wait[cell as usize]);
            total += cycles;
            *by_member.entry(what(view.names, view.site(cell), false)).or_default() += cycles;
        }
        let most = by_member.into_iter().max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a)));
        let accesses: u64 = self.answered.iter().sum();
        let mut row = vec![Value::Count(self.first)];
        row.push(Value::Count(accesses));
        let mut left = accesses;
        for answered in &self.answered[..self.answered.len() - 1] {
            left -= answered;
            row.push(Value::Count(left));
        }
        let share = most.map_or(0.0, |(_, cycles)| cycles as f64 / total as f64);
        row.extend([Value::Count(total), Value::What(most.map(|(what, _)| what)), Value::Share(share)]);
        self.rows.push((self.stamp, row));
        self.answered.fill(0);
    }
}

impl Analysis for Timeline {
    fn take(&mut self, events: &Events, view: View<'_>) {
        self.wait.resize(view.cells.cells.len(), 0);
        self.answered.resize(view.levels.len(), 0);
        for row in 0..events.rows() {
            let number = match self.every {
                Every::Accesses(accesses) => events.sequence[row] / accesses,
                Every::Nanoseconds(ns) => view.clock.map_or(0, |clock| clock.ns(events.stamp[row])) / ns,
            };
            // Stamps of threads that nothing orders may be read a little late.
            if self.at_hand.is_none_or(|at_hand| number > at_hand) {
                if self.at_hand.is_some() {
                    self.end(view);
                }
                self.at_hand = Some(number);
                self.first = events.sequence[row];
                self.stamp = events.stamp[row];
            }
            let (level, cell) = (usize::from(events.level[row]), events.cell[row]);
            self.answered[level] += 1;
            if level > 0 {
                let wait = &mut self.wait[cell as usize];
                if *wait == 0 {
                    self.waiting.push(cell);
                }
                *wait += u64::from(view.latencies[level].saturating_sub(view.latencies[0]));
            }
        }
    }

    fn finish(mut self: Box<Self>, view: View<'_>) -> Vec<Table> {
        if self.at_hand.is_some() {
            self.end(view);
        }
        // How fast stamps go may be known only now.
        let seconds = |stamp| view.clock.map(|clock| Value::Seconds(clock.ns(stamp) as f64 / 1e9));
        let rows = self.rows.into_iter().map(|(stamp, mut row)| {
            row.splice(1..1, seconds(stamp));
            row
        });
        let caches = &view.levels[..view.levels.len() - 1];
        let columns = ["access".to_string()]
            .into_iter()
            .chain(view.clock.map(|_| "seconds".to_string()))
            .chain(["accesses".to_string()])
            .chain(caches.iter().map(|level| format!("{level}_misses")))
            .chain(["wait_cycles", "data", "share_of_wait"].map(str::to_string));
        vec![Table {
            id: "timeline",
            title: "Time line".to_string(),
            columns: columns.collect(),
            rows: rows.collect(),
            is_whole: true,
        }]
    }
}
