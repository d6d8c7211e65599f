//! # Reuse
//!
//! **What it finds.** How much other data is touched before the same data are touched again: for the program as a whole as the
//! misses of caches of every size, and for each member, each line of code and each class of objects as reuse distances.
//!
//! **Why it costs.** A cache keeps what is used again before its size in other data has gone through it. An access whose reuse distance is above the size
//! of a cache misses in it, however clever the cache is.
//!
//! **What to do.** Where a curve drops, a working set fits: block or fuse loops until distances fall below the size of a cache that matters. Data
//! that are used once need no cache; stream them.
//!
//! **When it is wrong.** Distances are over the accesses of all threads in replay order, as one fully associative LRU cache that all of them share would see
//! them. Real caches are shared by fewer threads, and have sets.
//!
//! **Reference.** Mattson, Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970.

use memlode_attribute::annotate::Events;
use memlode_attribute::tables::what;
use memlode_simulate::{ReuseDistance, ReuseHistogram};
use rustc_hash::FxHashMap;

use crate::Meta;
use crate::events::{Analysis, Known, Table, Value, View};

/// Bytes of a line.
const LINE: u64 = 64;

/// Sizes of caches that rows are told for, in lines, and how they are called: a first, a second, a last level.
const SIZES: [(u64, &str); 3] =
    [(512, "misses_32KiB"), (16 << 10, "misses_1MiB"), (512 << 10, "misses_32MiB")];

/// Smallest cache of the curve, in lines.
const SMALLEST: u64 = 16;

/// See the module's page.
#[derive(Default)]
pub struct Reuse {
    distances: ReuseDistance,
    by_cell: Vec<ReuseHistogram>,
    /// By cell: bits that lines of its process have and those of others have not.
    spaces: Vec<u64>,
}

impl Reuse {
    /// How it is asked for.
    pub const KNOWN: Known = Known {
        meta: Meta { id: "reuse", title: "reuse distances, and the misses of caches of every size" },
        arguments: &[],
        make: |arguments| {
            arguments.check(&Reuse::KNOWN)?;
            Ok(Box::new(Reuse::default()))
        },
    };
}

impl Analysis for Reuse {
    fn take(&mut self, events: &Events, view: View<'_>) {
        let new = &view.cells.cells[self.spaces.len()..];
        self.spaces.extend(new.iter().map(|cell| view.space(cell.thread) / LINE));
        self.by_cell.resize(self.spaces.len(), ReuseHistogram::default());
        for row in 0..events.rows() {
            let (cell, first) = (events.cell[row] as usize, events.address[row]);
            let last = first.saturating_add(u64::from(events.bytes[row].max(1)) - 1);
            let mut longest = Some(0);
            for line in first / LINE..=last / LINE {
                let distance = self.distances.touch(line ^ self.spaces[cell]);
                longest = longest.zip(distance).map(|(a, b)| a.max(b));
            }
            self.by_cell[cell].add(longest);
        }
    }

    fn finish(self: Box<Self>, view: View<'_>) -> Vec<Table> {
        let mut all = ReuseHistogram::default();
        let mut by_data: FxHashMap<_, ReuseHistogram> = FxHashMap::default();
        let mut by_line: FxHashMap<_, ReuseHistogram> = FxHashMap::default();
        let mut by_object: FxHashMap<u32, ReuseHistogram> = FxHashMap::default();
        for (cell, histogram) in self.by_cell.iter().enumerate() {
            let cell = cell as u32;
            all.merge(histogram);
            by_data.entry(what(view.names, view.site(cell), false)).or_default().merge(histogram);
            by_line.entry(view.key(cell)).or_default().merge(histogram);
            by_object.entry(view.cell(cell).object).or_default().merge(histogram);
        }
        let data = by_data.into_iter().map(|(data, h)| (vec![Value::What(Some(data))], h));
        let lines =
            by_line.into_iter().map(|((data, at), h)| (vec![Value::What(Some(data)), Value::Place(at)], h));
        let object = |number: u32| Value::Object(view.cells.objects[number as usize].clone());
        let objects = by_object.into_iter().map(|(number, h)| (vec![object(number)], h));
        vec![
            curve(&all, self.distances.lines()),
            rows("reuse_by_data", "Reuse by data", &["data"], data),
            rows("reuse_by_line", "Reuse by data and line", &["data", "line"], lines),
            rows("reuse_by_object", "Reuse by object", &["object"], objects),
        ]
    }
}

/// The miss-ratio curve, up to the size that holds everything.
fn curve(all: &ReuseHistogram, lines: u64) -> Table {
    let sizes = std::iter::successors(Some(SMALLEST), |size| (*size < lines).then_some(size * 2));
    let row = |size: u64| {
        let misses = all.misses(size);
        let ratio = misses as f64 / all.accesses().max(1) as f64;
        vec![Value::Bytes(size * LINE), Value::Count(misses), Value::Share(ratio)]
    };
    Table {
        id: "miss_ratio_curve",
        title: "Misses by size of a fully associative cache".to_string(),
        columns: ["cache_bytes", "misses", "miss_ratio"].map(str::to_string).to_vec(),
        rows: sizes.map(row).collect(),
        is_whole: true,
    }
}

/// The rows with the most accesses that a small cache cannot answer first.
fn rows(
    id: &'static str,
    title: &str,
    keys: &[&str],
    histograms: impl Iterator<Item = (Vec<Value>, ReuseHistogram)>,
) -> Table {
    let mut histograms: Vec<_> = histograms.collect();
    let weight = |h: &ReuseHistogram| (h.misses(SIZES[0].0), h.accesses());
    histograms.sort_by(|(a, x), (b, y)| {
        weight(y).cmp(&weight(x)).then_with(|| format!("{a:?}").cmp(&format!("{b:?}")))
    });
    let row = |(mut row, h): (Vec<Value>, ReuseHistogram)| {
        let share = |n: u64| Value::Share(n as f64 / h.accesses().max(1) as f64);
        row.extend([Value::Count(h.accesses()), Value::Count(h.first_touches())]);
        row.push(median(&h).map_or(Value::Nothing, |lines| Value::Bytes(lines * LINE)));
        row.extend(SIZES.map(|(size, _)| share(h.misses(size))));
        row.push(Value::Histogram(h.buckets().map(|(lines, n)| (lines * LINE, n)).collect()));
        row
    };
    let columns = keys.iter().copied().chain(["accesses", "first_touches", "median_bytes"]);
    let columns = columns.chain(SIZES.map(|(_, name)| name)).chain(["distances"]);
    Table {
        id,
        title: title.to_string(),
        columns: columns.map(str::to_string).collect(),
        rows: histograms.into_iter().map(row).collect(),
        is_whole: false,
    }
}

/// The distance, in lines, that half of the accesses to what was touched before do not exceed, to within an eighth.
fn median(histogram: &ReuseHistogram) -> Option<u64> {
    let again = histogram.accesses() - histogram.first_touches();
    let mut sum = 0;
    histogram.buckets().find_map(|(distance, n)| {
        sum += n;
        (2 * sum >= again).then_some(distance)
    })
}
