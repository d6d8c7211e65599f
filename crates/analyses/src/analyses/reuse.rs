//! # Reuse
//!
//! **What it finds.** How much other data is touched before the same data are touched again: for
//! the program as a whole as the misses of caches of every size, and for each member, each line of
//! code and each class of objects as reuse distances.
//!
//! **Why it costs.** A cache still has a line if less other data than its size was used since. An
//! access whose reuse distance is above the size of a cache misses in it, however clever the cache
//! is.
//!
//! **What to do.** Where a curve drops, a working set fits: block or fuse loops until distances
//! fall below the size of a cache that matters. Data that are used once need no cache; stream them.
//!
//! **When it is wrong.** Distances are over the accesses of all threads in replay order, as one
//! fully associative LRU cache that all of them share would see them. Real caches are shared by
//! fewer threads, and have sets.
//!
//! **Reference.** Mattson, Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies,
//! IBM Systems Journal 9(2), 1970.

use std::cmp::Reverse;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_attribute::place::what;
use memlode_simulate::{ReuseDistance, ReuseHistogram, Space};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// Bytes of the caches for which rows have misses: a first, a second, a last level.
const SIZES: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];

const DATA: Column = Column { id: "data", holds: Holds::What };
const PLACE: Column = Column { id: "line", holds: Holds::Place };
const OBJECT: Column = Column { id: "object", holds: Holds::Object };
const ACCESSES: Column = Column { id: "accesses", holds: Holds::Count };
const FIRST: Column = Column { id: "first_touches", holds: Holds::Count };
const MEDIAN: Column = Column { id: "median_bytes", holds: Holds::Bytes };
const SMALL: Column = Column { id: "misses_32KiB", holds: Holds::Share };
const MIDDLE: Column = Column { id: "misses_1MiB", holds: Holds::Share };
const LARGE: Column = Column { id: "misses_32MiB", holds: Holds::Share };
const DISTANCES: Column = Column { id: "distances", holds: Holds::Histogram };

/// Smallest cache of the curve, in lines.
const SMALLEST: u64 = 16;

/// See the module's page.
pub struct Reuse;

/// The distances of a stretch of the trace.
#[derive(Default)]
pub struct Distances {
    distances: ReuseDistance,
    by_cell: Vec<ReuseHistogram>,
    /// Indexed by cell: bits that lines of its process have and those of others have not.
    spaces: Vec<Space>,
    /// Accesses to lines that were not touched before in this stretch, in order.
    first: Vec<FirstTouch>,
    /// Their lines.
    first_lines: Vec<u64>,
}

/// Distances, and how often each was.
type Buckets = Vec<(u64, u64)>;

/// The distances on their way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedDistances {
    /// Each cell with its first touches and the buckets of its histogram.
    by_cell: Vec<(u32, u64, Buckets)>,
    /// Cell, lines and longest distance of each first touch.
    first: Vec<(u32, u32, u64)>,
    first_lines: Vec<u64>,
    /// All lines, the most recent last.
    by_recency: Vec<u64>,
}

/// An access to one or more lines that were not touched before.
#[derive(Clone, Copy)]
struct FirstTouch {
    cell: u32,
    /// Number of lines; they are next in [`Distances::first_lines`].
    lines: u32,
    /// The longest distance of its other lines.
    longest: u64,
}

impl Distances {
    /// The histogram of a cell that may be new.
    fn with_cell(&mut self, cell: u32) -> &mut ReuseHistogram {
        let cell = cell as usize;
        self.by_cell.resize(self.by_cell.len().max(cell + 1), ReuseHistogram::default());
        &mut self.by_cell[cell]
    }

    /// Touches the lines of some bytes.
    fn touch(&mut self, cell: u32, (first, last): (u64, u64), line_bytes: u64) {
        let (mut lines, mut longest) = (0, 0);
        for line in first / line_bytes..=last / line_bytes {
            let line = self.spaces[cell as usize].place_block(line, line_bytes);
            match self.distances.touch(line) {
                Some(distance) => longest = longest.max(distance),
                None => {
                    lines += 1;
                    self.first_lines.push(line);
                }
            }
        }
        if lines == 0 {
            self.by_cell[cell as usize].add(Some(longest));
        } else {
            self.first.push(FirstTouch { cell, lines, longest });
        }
    }

    /// Adds the stretch that follows. Its first touches may be repeated touches here: taken in
    /// order, they see the same lines in between as in one stretch (Niu, Dinan, Lu, Sadayappan,
    /// "PARDA: a fast parallel reuse distance analysis algorithm", IPDPS 2012).
    fn append(&mut self, later: Distances) {
        if later.spaces.len() > self.spaces.len() {
            self.spaces = later.spaces;
        }
        self.by_cell.resize(self.by_cell.len().max(later.by_cell.len()), ReuseHistogram::default());
        for (sum, more) in self.by_cell.iter_mut().zip(&later.by_cell) {
            sum.merge(more);
        }
        let mut lines = later.first_lines.iter();
        for FirstTouch { cell, lines: count, mut longest } in later.first {
            let mut left = 0;
            for &line in lines.by_ref().take(count as usize) {
                match self.distances.touch(line) {
                    Some(distance) => longest = longest.max(distance),
                    None => {
                        left += 1;
                        self.first_lines.push(line);
                    }
                }
            }
            if left == 0 {
                self.by_cell[cell as usize].add(Some(longest));
            } else {
                self.first.push(FirstTouch { cell, lines: left, longest });
            }
        }
        // And then lines are as recent as they were when it ended.
        for line in later.distances.by_recency() {
            self.distances.touch(line);
        }
    }
}

impl Analysis for Reuse {
    const META: Meta = Meta {
        id: "reuse",
        title: "reuse distances, and the misses of caches of every size",
        reads: Reads::Rows,
        inlines: true,
        levels: false,
        after: &[],
        // A distance counts what all threads touch, anywhere.
        splits: Splits { chunks: false, address: None, thread: false, time: true },
        arguments: &[],
        tables: &[
            TableMeta {
                id: "miss_ratio_curve",
                title: "Misses by size of a fully associative cache",
                is_whole: true,
                columns: &[
                    Column { id: "cache_bytes", holds: Holds::Bytes },
                    Column { id: "misses", holds: Holds::Count },
                    Column { id: "miss_ratio", holds: Holds::Share },
                ],
            },
            TableMeta {
                id: "reuse_by_data",
                title: "Reuse by data",
                is_whole: false,
                columns: &[DATA, ACCESSES, FIRST, MEDIAN, SMALL, MIDDLE, LARGE, DISTANCES],
            },
            TableMeta {
                id: "reuse_by_line",
                title: "Reuse by data and line",
                is_whole: false,
                columns: &[DATA, PLACE, ACCESSES, FIRST, MEDIAN, SMALL, MIDDLE, LARGE, DISTANCES],
            },
            TableMeta {
                id: "reuse_by_object",
                title: "Reuse by object",
                is_whole: false,
                columns: &[OBJECT, ACCESSES, FIRST, MEDIAN, SMALL, MIDDLE, LARGE, DISTANCES],
            },
        ],
    };

    type State = Distances;
    type Saved = SavedDistances;

    fn new(_arguments: &Arguments) -> Result<Reuse, BadArgument> {
        Ok(Reuse)
    }

    fn start(&self) -> Distances {
        Distances::default()
    }

    fn observe(&self, state: &mut Distances, rows: &AnnotatedAccesses, view: &View<'_>) {
        let new = &view.cells.cells[state.spaces.len()..];
        state.spaces.extend(new.iter().map(|cell| view.space(cell.thread)));
        state.by_cell.resize(state.spaces.len(), ReuseHistogram::default());
        for row in 0..rows.rows() {
            let first = rows.address[row];
            let last = first.saturating_add(u64::from(rows.bytes[row].max(1)) - 1);
            state.touch(rows.cell[row], (first, last), view.line_bytes());
        }
    }

    fn merge(&self, state: &mut Distances, later: Distances) {
        state.append(later);
    }

    fn save(&self, state: Distances, carried: &mut CellPacker<'_>) -> SavedDistances {
        let by_cell = (0..).zip(&state.by_cell).filter(|(_, histogram)| histogram.accesses() > 0);
        let by_cell = by_cell
            .map(|(cell, histogram)| {
                (carried.cell(cell), histogram.first_touches(), histogram.buckets().collect())
            })
            .collect();
        let first = state.first.iter();
        SavedDistances {
            by_cell,
            first: first.map(|touch| (carried.cell(touch.cell), touch.lines, touch.longest)).collect(),
            first_lines: state.first_lines,
            by_recency: state.distances.by_recency(),
        }
    }

    fn load(&self, saved: SavedDistances, carried: &CellUnpacker<'_>) -> Result<Distances, BadNumber> {
        let mut state = Distances { first_lines: saved.first_lines, ..Distances::default() };
        let mut lines: u64 = 0;
        for (cell, first_touches, buckets) in saved.by_cell {
            let cell = carried.cell(cell)?;
            state.with_cell(cell).merge(&ReuseHistogram::of(first_touches, buckets));
        }
        for (cell, count, longest) in saved.first {
            let cell = carried.cell(cell)?;
            state.with_cell(cell);
            state.first.push(FirstTouch { cell, lines: count, longest });
            lines += u64::from(count);
        }
        if lines != state.first_lines.len() as u64 {
            return Err(BadNumber { what: "line", number: lines });
        }
        for line in saved.by_recency {
            state.distances.touch(line);
        }
        Ok(state)
    }

    fn finish(&self, mut state: Distances, view: &View<'_>) -> Findings {
        for touch in &state.first {
            state.by_cell[touch.cell as usize].add(None);
        }
        let mut all = ReuseHistogram::default();
        let mut by_data: FxHashMap<_, ReuseHistogram> = FxHashMap::default();
        let mut by_line: FxHashMap<_, ReuseHistogram> = FxHashMap::default();
        let mut by_object: FxHashMap<u32, ReuseHistogram> = FxHashMap::default();
        for (cell, histogram) in state.by_cell.iter().enumerate().filter(|(_, h)| h.accesses() > 0) {
            let cell = cell as u32;
            all.merge(histogram);
            by_data.entry(what(view.names, view.site(cell), false)).or_default().merge(histogram);
            by_line.entry(view.key(cell)).or_default().merge(histogram);
            by_object.entry(view.cell(cell).object).or_default().merge(histogram);
        }
        let data = by_data.into_iter().map(|(data, h)| (vec![Value::What(data)], h));
        let lines = by_line.into_iter().map(|((data, at), h)| (vec![Value::What(data), Value::Place(at)], h));
        let object = |number: u32| Value::Object(view.cells.objects[number as usize].clone());
        let objects = by_object.into_iter().map(|(number, h)| (vec![object(number)], h));
        let line_bytes = view.line_bytes();
        let [curve_meta, data_meta, line_meta, object_meta] = Reuse::META.tables else { unreachable!() };
        let tables = vec![
            curve(curve_meta, &all, state.distances.lines(), line_bytes),
            rows(data_meta, data, line_bytes),
            rows(line_meta, lines, line_bytes),
            rows(object_meta, objects, line_bytes),
        ];
        Findings { findings: Vec::new(), tables }
    }
}

/// The miss-ratio curve, up to the size that holds everything.
fn curve(meta: &'static TableMeta, all: &ReuseHistogram, lines: u64, line_bytes: u64) -> Table {
    let sizes = std::iter::successors(Some(SMALLEST), |size| (*size < lines).then_some(size * 2));
    let row = |size: u64| {
        let misses = all.misses(size);
        let ratio = misses as f64 / all.accesses().max(1) as f64;
        vec![Value::Bytes(size * line_bytes), Value::Count(misses), Value::Share(ratio)]
    };
    Table::plain(meta, sizes.map(row).collect())
}

/// The rows with the most accesses that a small cache cannot answer first.
fn rows(
    meta: &'static TableMeta,
    histograms: impl Iterator<Item = (Vec<Value>, ReuseHistogram)>,
    line_bytes: u64,
) -> Table {
    let mut histograms: Vec<_> = histograms.collect();
    let weight = |h: &ReuseHistogram| (h.misses(SIZES[0] / line_bytes), h.accesses());
    histograms.sort_by_cached_key(|(subject, h)| (Reverse(weight(h)), format!("{subject:?}")));
    let row = |(mut row, h): (Vec<Value>, ReuseHistogram)| {
        let share = |n: u64| Value::Share(n as f64 / h.accesses().max(1) as f64);
        row.extend([Value::Count(h.accesses()), Value::Count(h.first_touches())]);
        row.push(median(&h).map_or(Value::Nothing, |lines| Value::Bytes(lines * line_bytes)));
        row.extend(SIZES.map(|size| share(h.misses(size / line_bytes))));
        row.push(Value::Histogram(h.buckets().map(|(lines, n)| (lines * line_bytes, n)).collect()));
        row
    };
    Table::plain(meta, histograms.into_iter().map(row).collect())
}

/// The median distance, in lines, of repeated accesses, to within an eighth.
fn median(histogram: &ReuseHistogram) -> Option<u64> {
    let again = histogram.accesses() - histogram.first_touches();
    let mut sum = 0;
    histogram.buckets().find_map(|(distance, n)| {
        sum += n;
        (2 * sum >= again).then_some(distance)
    })
}
