//! # Aliasing
//!
//! **What it finds.** Pairs of a load and a store to other data whose addresses agree in the low 12
//! bits while the store may still be on its way to the cache: both by data and line, how often, how
//! close they are, and in how many pairs of pages (4096 at most).
//!
//! **Why it costs.** Processors compare a load with stores in flight by part of the address first.
//! One that agrees there waits as if it depended on the store. If also the low 20 bits agree and
//! pages are huge, the physical addresses agree, and the wait was ten times as long. In small pages
//! one in 256 pairs of pages agrees by chance, other ones in each run. So of conflicts in few pairs
//! of pages, either all wait or none do; of conflicts in many pairs, 1/256 wait.
//!
//! **What to do.** Move one of the two by some lines: another alignment, padding between them, an
//! allocator that staggers large blocks. Where the compiler reloads data that a store cannot have
//! changed, `restrict` removes the loads: [reloads](reloads.md).
//!
//! **When it is wrong.** A trace has no time: order alone decides which stores are in flight. The
//! rank weighs each conflict by how close the store is, from 1 for the access before to 0 at 30
//! accesses. On three kernels such a weight correlated with a counter of one processor by 0.85 to
//! 0.96; it ranks, and does not predict time. Some processors lose nothing. `memlode bench` and
//! `memlode bias` measure.
//!
//! **Reference.** Melhus, Jensen: Measurement bias from address aliasing.
//!
//! **Arguments.** `least=N`: pairs with fewer conflicts are left out (100). As in
//! `memlode alias DIR --least N`.

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_machine::InFlight;
use memlode_simulate::{AliasConflict, MemRef, StoreBuffer};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::pairs::{Actors, LOAD, LOAD_LINE, LoadAndStore, STORE, STORE_LINE};
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// Accesses from a store on after which a conflict counts for nothing: some 72 instructions.
const REACH: u64 = 30;
/// Bits that physical addresses share with virtual ones in huge pages, and that were seen to matter.
const LOW20: u64 = (1 << 20) - 1;
/// log2 of the bytes of a small page.
const PAGE: u32 = 12;
/// Pairs of pages of one pair of cells that are counted; from there on chance evens them out.
const MOST_PAGES: usize = 4096;

/// All conflicts of one load with one store.
#[derive(Clone, Serialize, Deserialize)]
pub struct Pair {
    conflicts: u64,
    /// Conflicts by closeness, in parts of [`REACH`].
    weight: u64,
    low20: u64,
    least: u32,
    /// Distance from the store to the load, of the closest conflict.
    apart: i64,
    /// Pages of the load and of the store, where these are two: [`MOST_PAGES`] at most.
    pages: FxHashSet<(u64, u64)>,
}

/// See the module's page.
pub struct Alias {
    /// Pairs with fewer conflicts are left out.
    least: u64,
}

/// The conflicts so far, and the stores on their way.
pub struct Conflicts {
    /// One for each thread, made when the thread first accesses anything.
    buffers: Vec<Option<StoreBuffer>>,
    actors: Actors,
    /// The counts of each pair of cells, of a load and of a store.
    pairs: FxHashMap<(u32, u32), Pair>,
}

impl Conflicts {
    fn access(&mut self, address: u64, bytes: u32, cell: u32, flight: InFlight) {
        let (thread, writes) = self.actors.of(cell);
        if thread >= self.buffers.len() {
            self.buffers.resize(thread + 1, None);
        }
        let buffer = self.buffers[thread]
            .get_or_insert_with(|| StoreBuffer::new(flight.stores, flight.instructions, 1));
        let Some(AliasConflict { store_tag, store_address, accesses }) =
            buffer.access(MemRef::read(0, address, bytes).writing(writes).tagged(cell))
        else {
            return;
        };
        let apart = address.wrapping_sub(store_address);
        // The two overlap in the low 12 bits; if they agree in 20, they lie as close there.
        let near = |apart: u64| apart & LOW20 < 64;
        let pair = self.pairs.entry((cell, store_tag.number())).or_insert_with(Pair::new);
        pair.conflicts += 1;
        pair.weight += (REACH + 1).saturating_sub(accesses.into());
        pair.low20 += u64::from(near(apart) || near(apart.wrapping_neg()));
        pair.least = pair.least.min(accesses);
        pair.nearest(apart as i64);
        pair.page((address >> PAGE, store_address >> PAGE));
    }
}

impl Pair {
    fn new() -> Pair {
        Pair {
            conflicts: 0,
            weight: 0,
            low20: 0,
            least: u32::MAX,
            apart: i64::MAX,
            pages: FxHashSet::default(),
        }
    }

    fn add(&mut self, more: &Pair) {
        self.conflicts += more.conflicts;
        self.weight += more.weight;
        self.low20 += more.low20;
        self.least = self.least.min(more.least);
        self.nearest(more.apart);
        more.pages.iter().for_each(|pages| self.page(*pages));
    }

    /// Any rule will do that does not depend on the order.
    fn nearest(&mut self, apart: i64) {
        let key = |apart: i64| (apart.unsigned_abs(), apart);
        if key(apart) < key(self.apart) {
            self.apart = apart;
        }
    }

    fn page(&mut self, (load, store): (u64, u64)) {
        if load != store && self.pages.len() < MOST_PAGES {
            self.pages.insert((load, store));
        }
    }
}

impl Analysis for Alias {
    const META: Meta = Meta {
        id: "alias",
        title: "loads that agree with stores to other data in the low 12 bits",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // A thread meets its own stores. What comes later in time meets those before, and where an address lies decides
        // which stores are the last.
        splits: Splits { chunks: false, address: None, thread: true, time: false },
        arguments: &[Argument {
            name: "least",
            help: "conflicts of a pair from which on it counts [default: 100]",
        }],
        tables: &[TableMeta {
            id: "alias",
            title: "Loads that agree with a store to other data in the low 12 address bits",
            is_whole: false,
            columns: &[
                LOAD,
                LOAD_LINE,
                STORE,
                STORE_LINE,
                Column { id: "conflicts", holds: Holds::Count },
                Column { id: "rank_share", holds: Holds::Share },
                Column { id: "least_accesses", holds: Holds::Count },
                Column { id: "apart_bytes", holds: Holds::Step },
                Column { id: "low20_conflicts", holds: Holds::Count },
                Column { id: "page_pairs", holds: Holds::Count },
            ],
        }],
    };

    type State = Conflicts;
    type Saved = Vec<((u32, u32), Pair)>;

    fn new(arguments: &Arguments) -> Result<Alias, BadArgument> {
        Ok(Alias { least: arguments.get("least", "a number of conflicts")?.unwrap_or(100) })
    }

    fn start(&self) -> Conflicts {
        Conflicts { buffers: Vec::new(), actors: Actors::default(), pairs: FxHashMap::default() }
    }

    fn observe(&self, conflicts: &mut Conflicts, rows: &AnnotatedAccesses, view: &View<'_>) {
        conflicts.actors.look_up(view);
        let flight = view.machine.flight();
        for ((&address, &bytes), &cell) in rows.address.iter().zip(&rows.bytes).zip(&rows.cell) {
            conflicts.access(address, bytes, cell, flight);
        }
    }

    fn merge(&self, conflicts: &mut Conflicts, later: Conflicts) {
        for (key, pair) in later.pairs {
            conflicts.pairs.entry(key).or_insert_with(Pair::new).add(&pair);
        }
        conflicts.actors.merge(later.actors);
    }

    fn save(&self, conflicts: Conflicts, carried: &mut CellPacker<'_>) -> Vec<((u32, u32), Pair)> {
        let pairs = conflicts.pairs.into_iter();
        pairs.map(|((load, store), pair)| ((carried.cell(load), carried.cell(store)), pair)).collect()
    }

    fn load(
        &self,
        saved: Vec<((u32, u32), Pair)>,
        carried: &CellUnpacker<'_>,
    ) -> Result<Conflicts, BadNumber> {
        let cells = |(load, store)| Ok((carried.cell(load)?, carried.cell(store)?));
        let pairs = saved.into_iter().map(|(pair, counts)| Ok((cells(pair)?, counts)));
        Ok(Conflicts { pairs: pairs.collect::<Result<_, BadNumber>>()?, ..self.start() })
    }

    fn finish(&self, conflicts: Conflicts, view: &View<'_>) -> Findings {
        let mut sums: FxHashMap<LoadAndStore, Pair> = FxHashMap::default();
        for (cells, pair) in conflicts.pairs {
            sums.entry(LoadAndStore::of(cells, view)).or_insert_with(Pair::new).add(&pair);
        }
        let all: u64 = sums.values().map(|pair| pair.weight).sum();
        let mut rows: Vec<(LoadAndStore, Pair)> =
            sums.into_iter().filter(|(_, pair)| pair.conflicts >= self.least).collect();
        rows.sort_by(|a, b| {
            (b.1.weight, b.1.conflicts).cmp(&(a.1.weight, a.1.conflicts)).then(a.0.cmp(&b.0))
        });
        let row = |(names, pair): (LoadAndStore, Pair)| {
            names.row(&[
                Value::Count(pair.conflicts),
                Value::Share(pair.weight as f64 / all.max(1) as f64),
                Value::Count(pair.least.into()),
                Value::Step(pair.apart),
                Value::Count(pair.low20),
                Value::Count(pair.pages.len() as u64),
            ])
        };
        let rows = rows.into_iter().map(row).collect();
        Findings { findings: Vec::new(), tables: vec![Table::plain(&Alias::META.tables[0], rows)] }
    }
}
