//! # Time line
//!
//! **What it finds.** How accesses, misses of each level, modelled waiting and the bytes that go to
//! and from memory change while the program runs, interval by interval, and which member each
//! interval waits for most.
//!
//! **Why it costs.** A program has phases. A figure for the whole of it hides that the load phase
//! misses and the rest does not, or that it gets slower as its data grow.
//!
//! **What to do.** Find the phase that waits, and look at its member; record that phase alone
//! (`--delay`, `--for`, `--region`).
//!
//! **When it is wrong.** Intervals of time are those of the recorded run, by time stamps that are
//! tens of microseconds apart, or by synchronisation; intervals by count are exact. The wait is a
//! sum of latencies, an upper bound; a note of `memlode timeline` says what the report's model, by
//! which misses overlap, makes of it for the whole run. Fetched are the lines that memory serves,
//! one of a straddling access; written are lines that the last level drops and stores past the
//! caches. What a prefetcher fetches in vain is not in them.
//!
//! **Arguments.** `every=N`: the length of an interval, in accesses (`500k`, `10M`) or in time
//! (`10ms`); 1M. `memlode timeline DIR --every N` is the same as `memlode replay DIR --analyse
//! timeline:every=N`.

use std::str::FromStr;

use memlode_attribute::annotate::{AnnotatedAccesses, Extras};
use memlode_attribute::place::{What, what};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// The length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// In accesses.
    Accesses(u64),
    /// In nanoseconds. Needs [`View::clock`], so a trace that is complete.
    Nanoseconds(u64),
}

impl FromStr for Every {
    type Err = ();

    /// `1000`; `10ms`, `1s`.
    fn from_str(text: &str) -> Result<Every, ()> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (scale, make): (u64, fn(u64) -> Every) = match text[digits..].trim() {
            "" => (1, Every::Accesses),
            "ns" => (1, Every::Nanoseconds),
            "us" | "µs" => (1_000, Every::Nanoseconds),
            "ms" => (1_000_000, Every::Nanoseconds),
            "s" => (1_000_000_000, Every::Nanoseconds),
            "min" => (60_000_000_000, Every::Nanoseconds),
            _ => return Err(()),
        };
        let number = text[..digits].parse().ok().and_then(|number: u64| number.checked_mul(scale));
        number.filter(|number| *number > 0).map(make).ok_or(())
    }
}

/// See the module's page.
pub struct Timeline {
    every: Every,
}

/// The intervals of a stretch of the trace.
#[derive(Default)]
pub struct Intervals {
    /// In order; the last one is the current interval.
    all: Vec<Interval>,
    /// The current interval: cycles beyond the first level by cell, and the cells that have any.
    wait: Vec<u64>,
    waiting: Vec<u32>,
}

/// One interval.
#[derive(Serialize, Deserialize)]
pub struct Interval {
    number: u64,
    /// Its first access, and that one's time stamp.
    first: u64,
    stamp: u64,
    /// Accesses by the level that served them.
    served: Vec<u64>,
    /// Bytes that memory gave, and got.
    fetched: u64,
    written: u64,
    /// Cycles beyond the first level by cell, once it has ended.
    wait: Vec<(u32, u64)>,
}

impl Intervals {
    /// Ends the current interval.
    fn end(&mut self) {
        let Some(at_hand) = self.all.last_mut() else { return };
        for cell in self.waiting.drain(..) {
            at_hand.wait.push((cell, std::mem::take(&mut self.wait[cell as usize])));
        }
    }
}

impl Analysis for Timeline {
    const META: Meta = Meta {
        id: "timeline",
        title: "accesses, misses and waiting, interval by interval",
        reads: Reads::Rows,
        inlines: false,
        levels: true,
        after: &[],
        // Intervals of time begin with the first access of any thread.
        splits: Splits { chunks: false, address: None, thread: false, time: true },
        arguments: &[Argument {
            name: "every",
            help: "length of an interval, in accesses (500k, 10M) or in time (10ms) [default: 1M]",
        }],
        tables: &[TableMeta {
            id: "timeline",
            title: "Time line",
            is_whole: true,
            columns: &[
                Column { id: "access", holds: Holds::Count },
                Column { id: "seconds", holds: Holds::Seconds },
                Column { id: "accesses", holds: Holds::Count },
                Column { id: "*_misses", holds: Holds::Count },
                Column { id: "fetched_bytes", holds: Holds::Bytes },
                Column { id: "written_bytes", holds: Holds::Bytes },
                Column { id: "wait_cycles", holds: Holds::Count },
                Column { id: "data", holds: Holds::What },
                Column { id: "share_of_wait", holds: Holds::Share },
            ],
        }],
    };

    type State = Intervals;
    type Saved = Vec<Interval>;

    fn new(arguments: &Arguments) -> Result<Timeline, BadArgument> {
        let expected = "a number of accesses, such as 500k or 10M, or a time, such as 10ms";
        Ok(Timeline { every: arguments.get("every", expected)?.unwrap_or(Every::Accesses(1_000_000)) })
    }

    fn extras(&self) -> Extras {
        Extras { traffic: true, ..Extras::default() }
    }

    fn start(&self) -> Intervals {
        Intervals::default()
    }

    fn observe(&self, intervals: &mut Intervals, rows: &AnnotatedAccesses, view: &View<'_>) {
        intervals.wait.resize(view.cells.cells.len(), 0);
        for row in 0..rows.rows() {
            let number = match self.every {
                Every::Accesses(accesses) => rows.sequence[row] / accesses,
                Every::Nanoseconds(ns) => view.clock.map_or(0, |clock| clock.ns(rows.stamp[row])) / ns,
            };
            // Stamps of threads that nothing orders may be read a little late.
            if intervals.all.last().is_none_or(|at_hand| number > at_hand.number) {
                intervals.end();
                intervals.all.push(Interval {
                    number,
                    first: rows.sequence[row],
                    stamp: rows.stamp[row],
                    served: vec![0; view.levels.len()],
                    fetched: 0,
                    written: 0,
                    wait: Vec::new(),
                });
            }
            let (level, cell) = (usize::from(rows.level[row]), rows.cell[row]);
            if let Some(at_hand) = intervals.all.last_mut() {
                at_hand.served[level] += 1;
                at_hand.fetched += u64::from(rows.traffic[row].fetched);
                at_hand.written += u64::from(rows.traffic[row].written);
            }
            if level > 0 {
                let wait = &mut intervals.wait[cell as usize];
                if *wait == 0 {
                    intervals.waiting.push(cell);
                }
                *wait += u64::from(view.latencies[level].saturating_sub(view.latencies[0]));
            }
        }
    }

    fn merge(&self, intervals: &mut Intervals, mut later: Intervals) {
        intervals.end();
        later.end();
        for interval in later.all {
            match intervals.all.last_mut().filter(|at_hand| interval.number <= at_hand.number) {
                None => intervals.all.push(interval),
                Some(at_hand) => {
                    at_hand.wait.extend(interval.wait);
                    at_hand.fetched += interval.fetched;
                    at_hand.written += interval.written;
                    at_hand.served.iter_mut().zip(interval.served).for_each(|(sum, more)| *sum += more);
                }
            }
        }
    }

    fn save(&self, mut intervals: Intervals, carried: &mut CellPacker<'_>) -> Vec<Interval> {
        intervals.end();
        for (cell, _) in intervals.all.iter_mut().flat_map(|interval| &mut interval.wait) {
            *cell = carried.cell(*cell);
        }
        intervals.all
    }

    fn load(&self, saved: Vec<Interval>, carried: &CellUnpacker<'_>) -> Result<Intervals, BadNumber> {
        let mut all = Vec::new();
        for mut interval in saved {
            for (cell, _) in &mut interval.wait {
                *cell = carried.cell(*cell)?;
            }
            interval.served = carried.by_level(interval.served)?;
            all.push(interval);
        }
        Ok(Intervals { all, ..Intervals::default() })
    }

    fn finish(&self, mut intervals: Intervals, view: &View<'_>) -> Findings {
        intervals.end();
        let rows = intervals.all.iter().map(|interval| row(interval, view)).collect();
        let table = Table::new(&Timeline::META.tables[0], view.caches(), view.clock.is_some(), rows);
        Findings { findings: Vec::new(), tables: vec![table] }
    }
}

fn row(interval: &Interval, view: &View<'_>) -> Vec<Value> {
    let mut by_member: FxHashMap<What, u64> = FxHashMap::default();
    let mut total = 0;
    for &(cell, cycles) in &interval.wait {
        total += cycles;
        *by_member.entry(what(view.names, view.site(cell), false)).or_default() += cycles;
    }
    let most = by_member.into_iter().max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a)));
    let accesses: u64 = interval.served.iter().sum();
    let mut row = vec![Value::Count(interval.first)];
    row.extend(view.clock.map(|clock| Value::Seconds(clock.ns(interval.stamp) as f64 / 1e9)));
    row.push(Value::Count(accesses));
    let mut left = accesses;
    for served in &interval.served[..interval.served.len() - 1] {
        left -= served;
        row.push(Value::Count(left));
    }
    row.extend([interval.fetched, interval.written].map(Value::Bytes));
    row.push(Value::Count(total));
    row.push(most.map_or(Value::Nothing, |(what, _)| Value::What(what)));
    row.push(Value::Share(most.map_or(0.0, |(_, cycles)| cycles as f64 / total as f64)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_intervals() {
        for (text, every) in [
            ("1000", Every::Accesses(1000)),
            ("10ms", Every::Nanoseconds(10_000_000)),
            ("2 min", Every::Nanoseconds(120_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(every));
        }
        for text in ["", "0", "0ms", "M", "-1", "1.5M", "10 parsecs", "999999999999min"] {
            assert_eq!(text.parse::<Every>(), Err(()), "{text}");
        }
    }
}
