//! # Reloads
//!
//! **What it finds.** Loads that read the same address as the time before, with a store to other
//! data in between and none to that address: the value was known, and the program loads it again.
//!
//! **Why it costs.** If a compiler does not know whether a store changes the object behind a
//! pointer, it loads it again after each store. The load waits where it agrees with the store in
//! the low bits of its address (see [alias](alias.md)), and keeps the loop from being vectorised.
//!
//! **What to do.** Declare the pointers `restrict` (`__restrict` in C++), or keep the value in a
//! local variable before the loop.
//!
//! **When it is wrong.** Code compiled without optimisation loads everything again. So does code
//! that reads a `volatile` or atomic variable, which other threads may have changed, and code that
//! calls a function in between that is not inlined: `restrict` changes nothing there.
//!
//! **Reference.** ISO C, 6.7.3.1: formal definition of restrict.
//!
//! **Arguments.** `least=N`: pairs with fewer reloads are left out (100). `share=PART`: loads are
//! left out if a smaller part of their executions are reloads, 0 to 1 (0.5). `memlode alias DIR`
//! shows reloads, too.

use std::collections::VecDeque;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_attribute::place::{Place, What};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::pairs::{Actors, LOAD, LOAD_LINE, LoadAndStore, STORE, STORE_LINE};
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// Accesses within which a load that is repeated belongs to the same loop.
const WINDOW: u64 = 224;
/// A load that loads again in a smaller part of its executions has another reason to be there.
const LEAST_SHARE: f64 = 0.5;

/// See the module's page.
pub struct Reloads {
    /// Pairs with fewer reloads are left out.
    least: u64,
    /// Loads that are reloads in a smaller part of their executions are left out.
    share: f64,
}

#[derive(Clone, Copy)]
struct Touch {
    address: u64,
    bytes: u32,
    cell: u32,
    /// The number of the access in its thread.
    at: u64,
}

impl Touch {
    fn overlaps(&self, other: &Touch) -> bool {
        self.address < other.address + u64::from(other.bytes)
            && other.address < self.address + u64::from(self.bytes)
    }
}

/// The last stores of a thread.
#[derive(Default)]
struct Recent {
    now: u64,
    stores: VecDeque<Touch>,
}

impl Recent {
    /// The last store after an access, if there is one, and no store was to the accessed bytes.
    fn stored_since(&self, load: &Touch) -> Option<u32> {
        let mut since = self.stores.iter().rev().take_while(|store| store.at > load.at).peekable();
        let last = since.peek()?.cell;
        since.all(|store| !store.overlaps(load)).then_some(last)
    }
}

/// The reloads so far, and what threads did last.
pub struct Counts {
    threads: Vec<Recent>,
    actors: Actors,
    /// Last loads by cell, and how often it did.
    loads: Vec<(Option<Touch>, u64)>,
    /// Reloads of each pair of cells, of a load and of the store before it.
    reloads: FxHashMap<(u32, u32), u64>,
}

/// The counts on their way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedCounts {
    /// Loads by cell.
    loads: Vec<(u32, u64)>,
    /// Reloads of each pair of cells.
    reloads: Vec<(u32, u32, u64)>,
}

impl Counts {
    fn access(&mut self, address: u64, bytes: u32, cell: u32) {
        let (thread, writes) = self.actors.of(cell);
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Recent::default);
        }
        let recent = &mut self.threads[thread];
        recent.now += 1;
        let touch = Touch { address, bytes, cell, at: recent.now };
        if writes {
            recent.stores.push_back(touch);
            while recent.stores.front().is_some_and(|store| store.at + WINDOW < touch.at) {
                recent.stores.pop_front();
            }
            return;
        }
        let (last, loads) = &mut self.loads[cell as usize];
        *loads += 1;
        let before = last.replace(touch);
        let again = before.filter(|before| before.address == address && before.at + WINDOW >= touch.at);
        if let Some(store) = again.and_then(|before| recent.stored_since(&before)) {
            *self.reloads.entry((cell, store)).or_default() += 1;
        }
    }
}

impl Analysis for Reloads {
    const META: Meta = Meta {
        id: "reloads",
        title: "loads of what was known, after stores to other data",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // What was loaded and stored before decides, by the thread.
        splits: Splits { chunks: false, address: None, thread: true, time: false },
        arguments: &[
            Argument { name: "least", help: "reloads of a pair from which on it counts [default: 100]" },
            Argument {
                name: "share",
                help: "part of a load's executions that are reloads from which on it counts [default: 0.5]",
            },
        ],
        tables: &[TableMeta {
            id: "reloads",
            title: "Loads of what no store in between has changed: `restrict`, or a local variable, saves them",
            is_whole: false,
            columns: &[
                LOAD,
                LOAD_LINE,
                STORE,
                STORE_LINE,
                Column { id: "reloads", holds: Holds::Count },
                Column { id: "share_of_loads", holds: Holds::Share },
            ],
        }],
    };

    type State = Counts;
    type Saved = SavedCounts;

    fn new(arguments: &Arguments) -> Result<Reloads, BadArgument> {
        Ok(Reloads {
            least: arguments.get("least", "a number of reloads")?.unwrap_or(100),
            share: arguments.get("share", "a part, 0 to 1")?.unwrap_or(LEAST_SHARE),
        })
    }

    fn start(&self) -> Counts {
        Counts {
            threads: Vec::new(),
            actors: Actors::default(),
            loads: Vec::new(),
            reloads: FxHashMap::default(),
        }
    }

    fn observe(&self, counts: &mut Counts, rows: &AnnotatedAccesses, view: &View<'_>) {
        counts.loads.resize(counts.actors.look_up(view), (None, 0));
        for ((&address, &bytes), &cell) in rows.address.iter().zip(&rows.bytes).zip(&rows.cell) {
            counts.access(address, bytes, cell);
        }
    }

    fn merge(&self, counts: &mut Counts, later: Counts) {
        for (pair, reloads) in later.reloads {
            *counts.reloads.entry(pair).or_default() += reloads;
        }
        counts.actors.merge(later.actors);
        counts.loads.resize(counts.loads.len().max(later.loads.len()), (None, 0));
        for ((last, sum), (later, more)) in counts.loads.iter_mut().zip(later.loads) {
            *last = later.or(*last);
            *sum += more;
        }
    }

    fn save(&self, counts: Counts, carried: &mut CellPacker<'_>) -> SavedCounts {
        let loads = (0..).zip(counts.loads).filter(|(_, (_, loads))| *loads > 0);
        let loads = loads.map(|(cell, (_, loads))| (carried.cell(cell), loads)).collect();
        let reloads = counts.reloads.into_iter();
        let reloads =
            reloads.map(|((load, store), n)| (carried.cell(load), carried.cell(store), n)).collect();
        SavedCounts { loads, reloads }
    }

    fn load(&self, saved: SavedCounts, carried: &CellUnpacker<'_>) -> Result<Counts, BadNumber> {
        let mut counts = self.start();
        for (cell, loads) in saved.loads {
            let cell = carried.cell(cell)? as usize;
            counts.loads.resize(counts.loads.len().max(cell + 1), (None, 0));
            counts.loads[cell].1 += loads;
        }
        for (load, store, reloads) in saved.reloads {
            *counts.reloads.entry((carried.cell(load)?, carried.cell(store)?)).or_default() += reloads;
        }
        Ok(counts)
    }

    fn finish(&self, counts: Counts, view: &View<'_>) -> Findings {
        // Threads and classes of objects that do the same are one row.
        let mut loads: FxHashMap<(What, Place), u64> = FxHashMap::default();
        for (cell, (_, count)) in counts.loads.iter().enumerate().filter(|(_, (_, count))| *count > 0) {
            *loads.entry(view.key(cell as u32)).or_default() += count;
        }
        let mut sums: FxHashMap<LoadAndStore, u64> = FxHashMap::default();
        for (cells, reloads) in counts.reloads {
            *sums.entry(LoadAndStore::of(cells, view)).or_default() += reloads;
        }
        let mut again: FxHashMap<(What, Place), u64> = FxHashMap::default();
        sums.iter().for_each(|(names, reloads)| *again.entry(names.load).or_default() += reloads);
        let mostly = |load: &(What, Place)| {
            loads.get(load).is_some_and(|loads| again[load] as f64 >= self.share * *loads as f64)
        };
        let mut rows: Vec<(LoadAndStore, u64)> = sums
            .into_iter()
            .filter(|(names, reloads)| *reloads >= self.least && mostly(&names.load))
            .collect();
        rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let row = |(names, reloads): (LoadAndStore, u64)| {
            let share = reloads as f64 / loads[&names.load].max(1) as f64;
            names.row(&[Value::Count(reloads), Value::Share(share)])
        };
        let rows = rows.into_iter().map(row).collect();
        Findings { findings: Vec::new(), tables: vec![Table::plain(&Reloads::META.tables[0], rows)] }
    }
}
