//! # Working set
//!
//! **What it finds.** How many different bytes, in lines and in pages, the program touches in each
//! interval, and how many of them for the first time.
//!
//! **Why it costs.** What is touched again and again stays in a cache only if all of it fits, lines
//! in caches and pages in TLBs.
//!
//! **What to do.** See which phase has a working set above the size of a cache; `memlode timeline`
//! with the same intervals says what it waits for. Where pages are many times the lines, little of
//! each page is used.
//!
//! **When it is wrong.** The interval decides: a longer one has a larger working set.
//!
//! **Reference.** Denning: The working set model for program behavior, Communications of the ACM
//! 11(5), 1968.
//!
//! **Arguments.** `every=N`: accesses of an interval (1000000). As in `memlode replay DIR --analyse
//! working-set:every=100000`.

use std::collections::BTreeMap;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_simulate::{ByBlock, Space};
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// The first and the last interval that touched a unit of memory.
type Seen = (u32, u32);

/// No interval touched it.
const NEVER: Seen = (1, 0);

/// Memory touched, in units of one size.
struct Touched {
    /// Indexed by unit.
    seen: ByBlock<Seen, 64>,
    /// The unit touched last, and when: most accesses touch it again.
    last: (u64, u32),
}

impl Touched {
    fn new() -> Touched {
        Touched { seen: ByBlock::new(NEVER), last: (u64::MAX, 0) }
    }

    /// Reports for each unit of a range whether it is new in this interval, and new at all.
    fn touch(
        &mut self,
        (first, last): (u64, u64),
        unit: u64,
        space: Space,
        interval: u32,
        mut tell: impl FnMut(bool, bool),
    ) {
        for number in first / unit..=last / unit {
            let number = space.place_block(number, unit);
            if (number, interval) == self.last {
                continue;
            }
            self.last = (number, interval);
            let place = self.seen.place(number);
            let seen = &mut self.seen[place];
            let is_new = *seen == NEVER;
            let here = is_new || seen.1 != interval;
            *seen = (if is_new { interval } else { seen.0 }, interval);
            tell(here, is_new);
        }
    }

    /// Units that were touched, and when.
    fn units(&self) -> impl Iterator<Item = (u64, Seen)> {
        self.seen.iter().filter(|(_, seen)| *seen != NEVER)
    }

    /// Units, and the first and the last interval that touched each.
    fn saved(self) -> Vec<(u64, u32, u32)> {
        self.units().map(|(unit, (first, last))| (unit, first, last)).collect()
    }

    /// Reads what [`Touched::saved`] gave.
    fn of(saved: Vec<(u64, u32, u32)>) -> Touched {
        let mut touched = Touched::new();
        for (unit, first, last) in saved {
            let place = touched.seen.place(unit);
            touched.seen[place] = (first, last);
        }
        touched
    }

    /// Adds the touches of a later stretch. Reports the interval in which the stretch took a unit
    /// for new, and whether this one had touched it in the same interval.
    fn append(&mut self, later: Touched, mut tell: impl FnMut(u32, bool)) {
        for (number, (first, last)) in later.units() {
            let place = self.seen.place(number);
            let seen = &mut self.seen[place];
            if *seen == NEVER {
                *seen = (first, last);
            } else {
                tell(first, seen.1 == first);
                seen.1 = last;
            }
        }
        self.last = later.last;
    }
}

/// Lines and pages touched in one interval.
#[derive(Clone, Copy, Default)]
struct Interval {
    accesses: u64,
    lines: u64,
    pages: u64,
    new_lines: u64,
}

impl Sets {
    /// Adds to an interval.
    fn add(&mut self, number: u32, more: Interval) {
        if more.accesses > 0 {
            let sum = self.intervals.entry(number).or_default();
            sum.accesses += more.accesses;
            sum.lines += more.lines;
            sum.pages += more.pages;
            sum.new_lines += more.new_lines;
        }
    }
}

/// See the module's page.
pub struct WorkingSet {
    every: u64,
}

/// Lines and pages touched in a stretch of the trace.
pub struct Sets {
    lines: Touched,
    pages: Touched,
    /// Intervals that have accesses, by number.
    intervals: BTreeMap<u32, Interval>,
    /// Indexed by cell: bits that addresses of its process have and those of others have not.
    spaces: Vec<Space>,
}

/// The sets on their way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedSets {
    lines: Vec<(u64, u32, u32)>,
    pages: Vec<(u64, u32, u32)>,
    intervals: Vec<(u32, [u64; 4])>,
}

impl Analysis for WorkingSet {
    const META: Meta = Meta {
        id: "working-set",
        title: "bytes and pages touched, interval by interval",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // A page is touched once in an interval, whichever threads or lines of it do.
        splits: Splits { chunks: false, address: None, thread: false, time: true },
        arguments: &[Argument { name: "every", help: "accesses of an interval [default: 1000000]" }],
        tables: &[TableMeta {
            id: "working_set",
            title: "Working set",
            is_whole: true,
            columns: &[
                Column { id: "access", holds: Holds::Count },
                Column { id: "accesses", holds: Holds::Count },
                Column { id: "lines_bytes", holds: Holds::Bytes },
                Column { id: "pages_bytes", holds: Holds::Bytes },
                Column { id: "new_bytes", holds: Holds::Bytes },
                Column { id: "so_far_bytes", holds: Holds::Bytes },
            ],
        }],
    };

    type State = Sets;
    type Saved = SavedSets;

    fn new(arguments: &Arguments) -> Result<WorkingSet, BadArgument> {
        match arguments.get("every", "a number of accesses")?.unwrap_or(1_000_000) {
            0 => Err(BadArgument("an interval of every=0 accesses has no end: take 1 or more".to_string())),
            every => Ok(WorkingSet { every }),
        }
    }

    fn start(&self) -> Sets {
        Sets { lines: Touched::new(), pages: Touched::new(), intervals: BTreeMap::new(), spaces: Vec::new() }
    }

    fn observe(&self, sets: &mut Sets, rows: &AnnotatedAccesses, view: &View<'_>) {
        let new = &view.cells.cells[sets.spaces.len()..];
        sets.spaces.extend(new.iter().map(|cell| view.space(cell.thread)));
        let (line, page) = (view.line_bytes(), view.machine.page_bytes);
        let (mut at_hand, mut end) = (Interval::default(), 0);
        let mut number = 0;
        for row in 0..rows.rows() {
            let first = rows.address[row];
            let last = first.saturating_add(u64::from(rows.bytes[row].max(1)) - 1);
            let space = sets.spaces[rows.cell[row] as usize];
            if rows.sequence[row] >= end || row == 0 {
                sets.add(number, std::mem::take(&mut at_hand));
                number = (rows.sequence[row] / self.every) as u32;
                end = (u64::from(number) + 1).saturating_mul(self.every);
            }
            let interval = &mut at_hand;
            interval.accesses += 1;
            sets.lines.touch((first, last), line, space, number, |here, is_new| {
                interval.lines += u64::from(here);
                interval.new_lines += u64::from(is_new);
            });
            sets.pages.touch((first, last), page, space, number, |here, _| interval.pages += u64::from(here));
        }
        sets.add(number, at_hand);
    }

    fn merge(&self, sets: &mut Sets, later: Sets) {
        for (number, more) in later.intervals {
            sets.add(number, more);
        }
        let intervals = &mut sets.intervals;
        sets.lines.append(later.lines, |first, twice| {
            let interval = intervals.entry(first).or_default();
            interval.new_lines = interval.new_lines.saturating_sub(1);
            interval.lines = interval.lines.saturating_sub(u64::from(twice));
        });
        sets.pages.append(later.pages, |first, twice| {
            let interval = intervals.entry(first).or_default();
            interval.pages = interval.pages.saturating_sub(u64::from(twice));
        });
        if later.spaces.len() > sets.spaces.len() {
            sets.spaces = later.spaces;
        }
    }

    fn save(&self, sets: Sets, _carried: &mut CellPacker<'_>) -> SavedSets {
        let intervals = sets.intervals.into_iter();
        SavedSets {
            lines: sets.lines.saved(),
            pages: sets.pages.saved(),
            intervals: intervals
                .map(|(number, Interval { accesses, lines, pages, new_lines })| {
                    (number, [accesses, lines, pages, new_lines])
                })
                .collect(),
        }
    }

    fn load(&self, saved: SavedSets, _carried: &CellUnpacker<'_>) -> Result<Sets, BadNumber> {
        let intervals = saved.intervals.into_iter();
        Ok(Sets {
            lines: Touched::of(saved.lines),
            pages: Touched::of(saved.pages),
            intervals: intervals
                .map(|(number, [accesses, lines, pages, new_lines])| {
                    (number, Interval { accesses, lines, pages, new_lines })
                })
                .collect(),
            spaces: Vec::new(),
        })
    }

    fn finish(&self, sets: Sets, view: &View<'_>) -> Findings {
        let (line, page) = (view.line_bytes(), view.machine.page_bytes);
        let mut so_far = 0;
        let row = |(&number, interval): (&u32, &Interval)| {
            so_far += interval.new_lines;
            vec![
                Value::Count(u64::from(number) * self.every),
                Value::Count(interval.accesses),
                Value::Bytes(interval.lines * line),
                Value::Bytes(interval.pages * page),
                Value::Bytes(interval.new_lines * line),
                Value::Bytes(so_far * line),
            ]
        };
        let rows = sets.intervals.iter().map(row).collect();
        Findings { findings: Vec::new(), tables: vec![Table::plain(&WorkingSet::META.tables[0], rows)] }
    }
}
