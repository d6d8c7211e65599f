//! # Working set
//!
//! **What it finds.** How many different bytes, in lines and in pages, the program touches in each interval, and how many of them
//! for the first time.
//!
//! **Why it costs.** What is touched again and again stays in a cache only if all of it fits, lines in caches and pages in TLBs.
//!
//! **What to do.** See which phase has a working set above the size of a cache; `memlode timeline` with the same intervals says what it waits for. Where pages are many
//! times the lines, little of each page is used.
//!
//! **When it is wrong.** The interval decides: a longer one has a larger working set.
//!
//! **Reference.** Denning: The working set model for program behavior, Communications of the ACM 11(5), 1968.

use memlode_attribute::annotate::Events;
use rustc_hash::FxHashMap;

use crate::Meta;
use crate::events::{Analysis, Arguments, BadArgument, Known, Table, Value, View};

const LINE: u64 = 64;
const PAGE: u64 = 4096;

/// What is touched, of one size.
struct Touched {
    unit: u64,
    /// The last interval, from 1, by unit.
    seen: FxHashMap<u64, u32>,
    /// The unit touched last: most accesses touch it again.
    last: u64,
    here: u64,
    new: u64,
}

impl Touched {
    fn new(unit: u64) -> Touched {
        Touched { unit, seen: FxHashMap::default(), last: u64::MAX, here: 0, new: 0 }
    }

    fn touch(&mut self, first: u64, last: u64, space: u64, interval: u32) {
        for number in first / self.unit..=last / self.unit {
            let number = number ^ (space / self.unit);
            if number == self.last {
                continue;
            }
            self.last = number;
            let seen = self.seen.entry(number).or_default();
            self.new += u64::from(*seen == 0);
            self.here += u64::from(*seen != interval);
            *seen = interval;
        }
    }

    /// Bytes of this interval, and those of them that no one before had.
    fn end(&mut self) -> (u64, u64) {
        self.last = u64::MAX;
        (std::mem::take(&mut self.here) * self.unit, std::mem::take(&mut self.new) * self.unit)
    }
}

/// See the module's page.
pub struct WorkingSet {
    every: u64,
    interval: u32,
    /// Accesses of the interval, and the number of its first.
    accesses: u64,
    first: u64,
    lines: Touched,
    pages: Touched,
    spaces: Vec<u64>,
    rows: Vec<Vec<Value>>,
}

impl WorkingSet {
    /// How it is asked for.
    pub const KNOWN: Known = Known {
        meta: Meta { id: "working-set", title: "bytes and pages touched, interval by interval" },
        arguments: &[("every", "accesses of an interval [default: 1000000]")],
        make: |arguments| {
            arguments.check(&WorkingSet::KNOWN)?;
            Ok(Box::new(WorkingSet::new(arguments)?))
        },
    };

    fn new(arguments: &Arguments) -> Result<WorkingSet, BadArgument> {
        let every = arguments.get("every")?.unwrap_or(1_000_000);
        if every == 0 {
            return Err(BadArgument(
                "an interval of every=0 accesses has no end: take 1 or more".to_string(),
            ));
        }
        Ok(WorkingSet {
            every,
            interval: 1,
            accesses: 0,
            first: 0,
            lines: Touched::new(LINE),
            pages: Touched::new(PAGE),
            spaces: Vec::new(),
            rows: Vec::new(),
        })
    }

    fn end(&mut self) {
        let (lines, new_lines) = self.lines.end();
        let (pages, _) = self.pages.end();
        let total = self.lines.seen.len() as u64 * LINE;
        self.rows.push(vec![
            Value::Count(self.first),
            Value::Count(self.accesses),
            Value::Bytes(lines),
            Value::Bytes(pages),
            Value::Bytes(new_lines),
            Value::Bytes(total),
        ]);
        self.first += self.accesses;
        self.accesses = 0;
        self.interval += 1;
    }
}

impl Analysis for WorkingSet {
    fn take(&mut self, events: &Events, view: View<'_>) {
        let new = &view.cells.cells[self.spaces.len()..];
        self.spaces.extend(new.iter().map(|cell| view.space(cell.thread)));
        for row in 0..events.rows() {
            let first = events.address[row];
            let last = first.saturating_add(u64::from(events.bytes[row].max(1)) - 1);
            let space = self.spaces[events.cell[row] as usize];
            self.lines.touch(first, last, space, self.interval);
            self.pages.touch(first, last, space, self.interval);
            self.accesses += 1;
            if self.accesses == self.every {
                self.end();
            }
        }
    }

    fn finish(mut self: Box<Self>, _view: View<'_>) -> Vec<Table> {
        if self.accesses > 0 {
            self.end();
        }
        let columns = ["access", "accesses", "lines_bytes", "pages_bytes", "new_bytes", "so_far_bytes"];
        vec![Table {
            id: "working_set",
            title: "Working set".to_string(),
            columns: columns.map(str::to_string).to_vec(),
            rows: self.rows,
            is_whole: true,
        }]
    }
}
