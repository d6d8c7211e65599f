//! # Cells
//!
//! **What it finds.** Accesses and misses by thread, line, data and object at once, and when they
//! happen: the run in at most 64 equal stretches. Every other table is a sum over some of these
//! rows; the page of `memlode html` filters them.
//!
//! **Why it costs.** A line that waits may do so for one thread, for one of the objects that it
//! visits, or at the start of the run alone. A sum over all of them hides that.
//!
//! **What to do.** Sum up the rows of one thread, object or stretch, and compare them with the
//! whole: with `--json`, the numbers are in the columns that end in `_over_time`.
//!
//! **When it is wrong.** All stretches have the same number of accesses of all threads; their
//! duration is unknown. Stall cycles are an upper bound, as misses overlap.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, EventCell};
use memlode_attribute::place::{Place, What};
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

use crate::bins::{MOST, Scale};
use crate::served::{add, misses, stall_cycles, total};
use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// See the module's page.
pub struct CellsOverTime;

/// Accesses by the level that served them, of each cell in each stretch.
#[derive(Default)]
pub struct Counted {
    stretches: Scale,
    ended: FxHashMap<(u32, u8), Vec<u64>>,
    /// The current stretch: accesses by cell and level, and the cells that have any.
    current: u8,
    served: Vec<u64>,
    touched: Vec<u32>,
}

impl Counted {
    /// Ends the current stretch.
    fn end(&mut self, levels: usize) {
        for cell in self.touched.drain(..) {
            let served = &mut self.served[cell as usize * levels..][..levels];
            add(self.ended.entry((cell, self.current)).or_default(), served);
            served.fill(0);
        }
    }

    /// Widens the stretches so that an access of this number has one. No stretch may be current.
    fn lengthen(&mut self, stretches: Scale) {
        if stretches.shift > self.stretches.shift {
            let before = std::mem::replace(&mut self.stretches, stretches);
            for ((cell, stretch), served) in std::mem::take(&mut self.ended) {
                add(self.ended.entry((cell, before.rebin(stretch, stretches))).or_default(), &served);
            }
        }
    }
}

/// The subject of a row: thread, data, line, and number of the class of objects.
type Key = (ThreadId, What, Place, u32);

/// The accesses of a row by stretch, and in each by the level that served them.
type OverTime = Vec<u64>;

impl CellsOverTime {
    fn rows(counted: Counted, view: &View<'_>) -> Vec<(Key, OverTime)> {
        let last = counted.ended.keys().map(|(_, stretch)| *stretch).max().unwrap_or(0);
        let mut rows: FxHashMap<Key, OverTime> = FxHashMap::default();
        for ((cell, stretch), served) in counted.ended {
            let EventCell { thread, object, .. } = view.cell(cell);
            let (what, place) = view.key(cell);
            let levels = view.levels.len();
            let none = || vec![0; levels * (usize::from(last) + 1)];
            let row = rows.entry((thread, what, place, object)).or_insert_with(none);
            let sums = &mut row[usize::from(stretch) * levels..][..levels];
            sums.iter_mut().zip(served).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        rows.into_iter().collect()
    }
}

fn sum(over_time: &OverTime, levels: usize) -> Vec<u64> {
    over_time.chunks_exact(levels).fold(Vec::new(), |mut sums, served| {
        add(&mut sums, served);
        sums
    })
}

impl Analysis for CellsOverTime {
    const META: Meta = Meta {
        id: "cells",
        title: "accesses and misses by thread, line, data and object, and when",
        reads: Reads::Rows,
        inlines: false,
        levels: true,
        after: &[],
        // Each access counts by itself; one that is cut counts twice.
        splits: Splits { chunks: false, address: None, thread: true, time: true },
        arguments: &[],
        tables: &[TableMeta {
            id: "cells",
            title: "Accesses of each thread at each line to data of each object",
            is_whole: false,
            columns: &[
                Column { id: "thread", holds: Holds::Count },
                Column { id: "data", holds: Holds::What },
                Column { id: "line", holds: Holds::Place },
                Column { id: "object", holds: Holds::Object },
                Column { id: "accesses", holds: Holds::Count },
                Column { id: "*_misses", holds: Holds::Count },
                Column { id: "stall_cycles", holds: Holds::Count },
                Column { id: "stretch_accesses", holds: Holds::Count },
                Column { id: "accesses_over_time", holds: Holds::Bins },
                Column { id: "*_misses_over_time", holds: Holds::Bins },
            ],
        }],
    };

    type State = Counted;
    type Saved = (u32, Vec<(u32, u8, Vec<u64>)>);

    fn new(_arguments: &Arguments) -> Result<CellsOverTime, BadArgument> {
        Ok(CellsOverTime)
    }

    fn start(&self) -> Counted {
        Counted::default()
    }

    fn observe(&self, counted: &mut Counted, rows: &AnnotatedAccesses, view: &View<'_>) {
        let levels = view.levels.len();
        let Some(&last) = rows.sequence.last() else { return };
        counted.lengthen(Scale::of(last));
        counted.served.resize(view.cells.cells.len() * levels, 0);
        for ((&cell, &level), &sequence) in rows.cell.iter().zip(&rows.level).zip(&rows.sequence) {
            let stretch = counted.stretches.bin(sequence);
            if stretch != counted.current {
                counted.end(levels);
                counted.current = stretch;
            }
            let served = &mut counted.served[cell as usize * levels..][..levels];
            if served.iter().all(|n| *n == 0) {
                counted.touched.push(cell);
            }
            served[usize::from(level)] += 1;
        }
        // Another replay numbers cells in its own way, so nothing is left half counted.
        counted.end(levels);
    }

    fn merge(&self, counted: &mut Counted, mut later: Counted) {
        let longest = counted.stretches.max(later.stretches);
        counted.lengthen(longest);
        later.lengthen(longest);
        for (key, served) in later.ended {
            add(counted.ended.entry(key).or_default(), &served);
        }
    }

    fn save(&self, counted: Counted, carried: &mut CellPacker<'_>) -> (u32, Vec<(u32, u8, Vec<u64>)>) {
        let ended = counted.ended.into_iter();
        let ended = ended.map(|((cell, stretch), served)| (carried.cell(cell), stretch, served));
        (counted.stretches.shift, ended.collect())
    }

    fn load(
        &self,
        (shift, saved): (u32, Vec<(u32, u8, Vec<u64>)>),
        carried: &CellUnpacker<'_>,
    ) -> Result<Counted, BadNumber> {
        BadNumber::check("stretch", shift.into(), u64::BITS as usize)?;
        let mut counted = Counted { stretches: Scale { shift }, ..Counted::default() };
        for (cell, stretch, served) in saved {
            BadNumber::check("stretch", stretch.into(), MOST as usize)?;
            let key = (carried.cell(cell)?, stretch);
            add(counted.ended.entry(key).or_default(), &carried.by_level(served)?);
        }
        Ok(counted)
    }

    fn finish(&self, counted: Counted, view: &View<'_>) -> Findings {
        let stretch_accesses = 1 << counted.stretches.shift;
        let levels = view.levels.len();
        let with_sum = |(key, over_time): (Key, OverTime)| {
            let served = sum(&over_time, levels);
            (key, over_time, served)
        };
        let mut rows: Vec<_> = CellsOverTime::rows(counted, view).into_iter().map(with_sum).collect();
        // Of equal ones, by what all readers of the trace call alike.
        let names: Vec<String> = view.cells.objects.iter().map(|object| format!("{object:?}")).collect();
        rows.sort_by_cached_key(|((thread, what, place, object), _, served)| {
            let weight = Reverse((stall_cycles(served, view.latencies), total(served)));
            (weight, *thread, *what, *place, &names[*object as usize])
        });
        let row = |((thread, what, place, object), over_time, served): (Key, OverTime, Vec<u64>)| {
            let mut row = vec![
                Value::Count(thread.0.into()),
                Value::What(what),
                Value::Place(place),
                Value::Object(view.cells.objects[object as usize].clone()),
                Value::Count(total(&served)),
            ];
            row.extend(misses(&served).map(Value::Count));
            row.push(Value::Count(stall_cycles(&served, view.latencies)));
            row.push(Value::Count(stretch_accesses));
            let stretches = over_time.chunks_exact(levels);
            let beyond =
                |level: usize| Value::Bins(stretches.clone().map(|served| total(&served[level..])).collect());
            row.extend((0..levels).map(beyond));
            row
        };
        let rows = rows.into_iter().map(row).collect();
        let table = Table::new(&CellsOverTime::META.tables[0], view.caches(), true, rows);
        Findings { findings: Vec::new(), tables: vec![table] }
    }
}
