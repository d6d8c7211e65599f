//! # Temporaries
//!
//! **What it finds.** Allocations whose blocks live for a moment only: each is made, used a little
//! and freed, and then the next one is made. It reports the number of blocks, their life in
//! accesses of the program, and how many were alive at a time.
//!
//! **Why it costs.** Each block takes a call that allocates and one that frees, which read and
//! write the allocator's own data. A block that comes back at another address brings other lines
//! into the caches than the one before; between threads it takes a lock, or a line from another
//! core.
//!
//! **What to do.** Where one or a few are alive at a time, keep them: a buffer outside of the loop
//! that is emptied and not freed (`clear()` keeps a vector's memory), space that is reserved once,
//! a variable on the stack or a small vector that has room for some elements itself. A value that
//! is only copied to be read needs no copy. Where many are alive and end together, an arena that is
//! emptied as a whole needs no call for each.
//!
//! **When it is wrong.** The allocator's work is not recorded, so there are no cycles: some take 20
//! ns for both calls. `memlode bench` measures the gain of a version that keeps its blocks.
//! Accesses are those of all threads, so blocks seem to live longer where many threads run. A block
//! that is freed by code that was not compiled with memlode has no end. An address that is used for
//! the next block at once costs no cache misses, and nearly all of these accesses hit.
//!
//! **Reference.** Barrett and Zorn, "Using lifetime predictors to improve memory allocation
//! performance", PLDI 1993, who measured lives by allocation site, in bytes allocated meanwhile.
//!
//! **Arguments.** `least=N`: allocations with fewer ended blocks are left out (100). `life=N`: mean
//! life in accesses up to which its blocks are temporaries (10000).

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, BlockEvent, Life};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// See the module's page.
pub struct Temporaries {
    /// Allocations with fewer blocks are left out.
    least: u64,
    /// Allocations whose blocks live for more accesses are left out.
    life: u64,
}

/// A block that has not ended.
struct Alive {
    object: u32,
    /// The access before which it began.
    from: u64,
}

/// The blocks of an allocation.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Sum {
    ended: u64,
    bytes: u64,
    /// Accesses while each of those that ended was alive, added up.
    lived: u64,
    alive: u64,
    most_alive: u64,
    /// Accesses to its blocks.
    accesses: u64,
}

/// The blocks so far.
#[derive(Default)]
pub struct Blocks {
    /// Keyed by process and beginning: live blocks, with their size.
    alive: FxHashMap<u64, (Alive, u64)>,
    /// Indexed by object.
    objects: Vec<Sum>,
    /// The number of the access to come.
    next: u64,
    accesses: u64,
}

impl Blocks {
    fn of(&mut self, object: u32) -> &mut Sum {
        let object = object as usize;
        if object >= self.objects.len() {
            self.objects.resize(object + 1, Sum::default());
        }
        &mut self.objects[object]
    }

    /// A block begins or ends in front of an access.
    fn block(&mut self, place: u64, life: Life, now: u64) {
        match life {
            Life::Begins { bytes, object } => {
                // Nobody saw the end of what was there.
                if let Some((before, _)) = self.alive.insert(place, (Alive { object, from: now }, bytes)) {
                    self.of(before.object).alive -= 1;
                }
                let sum = self.of(object);
                sum.alive += 1;
                sum.most_alive = sum.most_alive.max(sum.alive);
            }
            Life::Ends => {
                let Some((Alive { object, from }, bytes)) = self.alive.remove(&place) else { return };
                let sum = self.of(object);
                sum.alive -= 1;
                sum.ended += 1;
                sum.bytes = sum.bytes.saturating_add(bytes);
                sum.lived += now - from;
            }
        }
    }
}

impl Analysis for Temporaries {
    const META: Meta = Meta {
        id: "temporaries",
        title: "blocks that are allocated for a moment",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // A block's life is what all threads do meanwhile, and one may end what another began.
        splits: Splits { chunks: false, address: None, thread: false, time: false },
        arguments: &[
            Argument {
                name: "least",
                help: "blocks that ended, from which on an allocation counts [default: 100]",
            },
            Argument {
                name: "life",
                help: "mean life in accesses up to which blocks are temporaries [default: 10000]",
            },
        ],
        tables: &[TableMeta {
            id: "temporaries",
            title: "Allocations whose blocks live for a moment: where few are alive at a time, they can be kept",
            is_whole: false,
            columns: &[
                Column { id: "object", holds: Holds::Object },
                Column { id: "blocks", holds: Holds::Count },
                Column { id: "mean_bytes", holds: Holds::Bytes },
                Column { id: "mean_life", holds: Holds::Count },
                Column { id: "most_alive", holds: Holds::Count },
                Column { id: "accesses", holds: Holds::Count },
                Column { id: "share_of_accesses", holds: Holds::Share },
            ],
        }],
    };

    type State = Blocks;
    type Saved = (Vec<(u32, Sum)>, u64);

    fn new(arguments: &Arguments) -> Result<Temporaries, BadArgument> {
        Ok(Temporaries {
            least: arguments.get("least", "a number of blocks")?.unwrap_or(100),
            life: arguments.get("life", "a number of accesses")?.unwrap_or(10_000),
        })
    }

    fn start(&self) -> Blocks {
        Blocks::default()
    }

    fn observe(&self, blocks: &mut Blocks, rows: &AnnotatedAccesses, view: &View<'_>) {
        for &BlockEvent { row, process, address, life } in &rows.blocks {
            let now = rows.sequence.get(row as usize).copied();
            let now = now.unwrap_or_else(|| rows.sequence.last().map_or(blocks.next, |last| last + 1));
            blocks.block(view.process_space(process).place(address), life, now);
        }
        blocks.next = rows.sequence.last().map_or(blocks.next, |last| last + 1);
        blocks.accesses += rows.rows() as u64;
        for &cell in &rows.cell {
            blocks.of(view.cell(cell).object).accesses += 1;
        }
    }

    fn merge(&self, blocks: &mut Blocks, later: Blocks) {
        for (object, more) in later.objects.iter().enumerate() {
            let sum = blocks.of(object as u32);
            sum.ended += more.ended;
            sum.bytes = sum.bytes.saturating_add(more.bytes);
            sum.lived += more.lived;
            sum.most_alive = sum.most_alive.max(more.most_alive);
            sum.accesses += more.accesses;
        }
        blocks.accesses += later.accesses;
    }

    fn save(&self, blocks: Blocks, carried: &mut CellPacker<'_>) -> (Vec<(u32, Sum)>, u64) {
        let objects = (0..).zip(blocks.objects).filter(|(_, sum)| sum.ended > 0 || sum.accesses > 0);
        (objects.map(|(object, sum)| (carried.object(object), sum)).collect(), blocks.accesses)
    }

    fn load(&self, saved: (Vec<(u32, Sum)>, u64), carried: &CellUnpacker<'_>) -> Result<Blocks, BadNumber> {
        let mut blocks = Blocks { accesses: saved.1, ..Blocks::default() };
        for (object, sum) in saved.0 {
            *blocks.of(carried.object(object)?) = sum;
        }
        Ok(blocks)
    }

    fn finish(&self, blocks: Blocks, view: &View<'_>) -> Findings {
        let found = blocks.objects.iter().enumerate();
        let mut found: Vec<(usize, &Sum)> = found
            .filter(|(_, sum)| sum.ended >= self.least.max(1) && sum.lived / sum.ended <= self.life)
            .collect();
        found.sort_by_key(|&(object, sum)| (Reverse(sum.ended), object));
        let row = |(object, sum): (usize, &Sum)| {
            vec![
                Value::Object(view.cells.objects[object].clone()),
                Value::Count(sum.ended),
                Value::Bytes(sum.bytes / sum.ended),
                Value::Count(sum.lived / sum.ended),
                Value::Count(sum.most_alive),
                Value::Count(sum.accesses),
                Value::Share(sum.accesses as f64 / blocks.accesses.max(1) as f64),
            ]
        };
        let rows = found.into_iter().map(row).collect();
        Findings { findings: Vec::new(), tables: vec![Table::plain(&Temporaries::META.tables[0], rows)] }
    }
}
