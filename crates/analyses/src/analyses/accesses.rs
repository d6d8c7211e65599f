//! # Accesses
//!
//! **What it finds.** How often the program accesses each variable or member, and at which lines,
//! by thread; and with `misses=yes`, how many of these accesses missed each cache.
//!
//! **Why it costs.** An access costs little as long as it hits. But a layout should bring the most
//! accessed members together. A variable that is accessed far more often than its use explains is
//! kept in memory, although a register would do.
//!
//! **What to do.** Look at the first rows: data that one loop accesses belong side by side. All
//! lines that access a variable are its sources: the second table has them.
//!
//! **When it is wrong.** A count is no cost: [offenders](offenders.md) ranks by waiting. An access
//! of several lines of a cache counts once for each.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016): accesses per variable, the sources of a variable, and (variable, file, line)
//! by misses.
//!
//! **Arguments.** `misses=yes`: simulate the caches, and begin with what misses most. As in
//! `memlode replay DIR --analyse accesses:misses=yes`.

use std::cmp::Reverse;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_attribute::place::{Place, What, what};
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

use crate::addresses::sorted;
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

const DATA: Column = Column { id: "data", holds: Holds::What };
const ACCESSES: Column = Column { id: "accesses", holds: Holds::Count };
const READS: Column = Column { id: "reads", holds: Holds::Count };
const WRITES: Column = Column { id: "writes", holds: Holds::Count };
const MISSES: Column = Column { id: "*_misses", holds: Holds::Count };

/// See the module's page.
pub struct Accesses {
    /// Misses are counted, too.
    with_misses: bool,
}

/// Accesses by cell, and there by the level that served them; level 0 has all of them if misses do not matter.
#[derive(Default)]
pub struct ByCell(Vec<Vec<u64>>);

/// Accesses of a row.
#[derive(Clone, Default)]
struct Sum {
    served: Vec<u64>,
    writes: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Sum {
    fn accesses(&self) -> u64 {
        self.served.iter().sum()
    }

    /// Misses of each level: what a later one served.
    fn misses(&self) -> impl Iterator<Item = u64> {
        let mut left = self.accesses();
        self.served[..self.served.len() - 1].iter().map(move |served| {
            left -= served;
            left
        })
    }

    fn counts(&self) -> impl Iterator<Item = Value> {
        let accesses = self.accesses();
        let counts = [accesses, accesses - self.writes, self.writes].into_iter();
        counts.chain(self.misses()).map(Value::Count)
    }
}

impl Accesses {
    fn levels(&self, view: &View<'_>) -> usize {
        if self.with_misses { view.levels.len() } else { 1 }
    }

    /// Sums over what the cells of a row have in common, the most misses or accesses first.
    fn sums<K: Ord + std::hash::Hash + Copy>(
        &self,
        counts: &ByCell,
        view: &View<'_>,
        key: impl Fn(u32) -> K,
    ) -> Vec<(K, Sum)> {
        let mut sums: FxHashMap<K, Sum> = FxHashMap::default();
        for (cell, served) in (0..).zip(&counts.0).filter(|(_, served)| served.iter().any(|n| *n > 0)) {
            let sum = sums.entry(key(cell)).or_default();
            sum.served.resize(self.levels(view), 0);
            sum.served.iter_mut().zip(served).for_each(|(sum, more)| *sum += more);
            let accesses: u64 = served.iter().sum();
            sum.writes += if view.writes(cell) { accesses } else { 0 };
            *sum.threads.entry(view.cell(cell).thread).or_default() += accesses;
        }
        let mut sums: Vec<(K, Sum)> = sums.into_iter().collect();
        sums.sort_by_key(|(key, sum)| (Reverse((sum.misses().next(), sum.accesses())), *key));
        sums
    }
}

impl Analysis for Accesses {
    const META: Meta = Meta {
        id: "accesses",
        title: "accesses by variable, and by line",
        reads: Reads::Rows,
        inlines: true,
        levels: false,
        after: &[],
        // Each access counts by itself; one that is cut counts twice.
        splits: Splits { chunks: true, address: None, thread: true, time: true },
        arguments: &[Argument { name: "misses", help: "`yes`: misses of each cache, too [default: no]" }],
        tables: &[
            TableMeta {
                id: "accesses_by_variable",
                title: "Accesses by variable",
                is_whole: false,
                columns: &[
                    DATA,
                    ACCESSES,
                    READS,
                    WRITES,
                    MISSES,
                    Column { id: "by_thread", holds: Holds::Threads },
                ],
            },
            TableMeta {
                id: "accesses_by_line",
                title: "Accesses by variable and line",
                is_whole: false,
                columns: &[DATA, Column { id: "line", holds: Holds::Place }, ACCESSES, READS, WRITES, MISSES],
            },
        ],
    };

    type State = ByCell;
    type Saved = Vec<(u32, Vec<u64>)>;

    fn new(arguments: &Arguments) -> Result<Accesses, BadArgument> {
        let misses: Option<String> = arguments.get("misses", "yes or no")?;
        match misses.as_deref() {
            None | Some("no") => Ok(Accesses { with_misses: false }),
            Some("yes") => Ok(Accesses { with_misses: true }),
            Some(other) => Err(BadArgument(format!("`{other}` is no value for misses: expected yes or no"))),
        }
    }

    fn splits(&self) -> Splits {
        Splits { chunks: !self.with_misses, ..Self::META.splits }
    }

    fn reads_levels(&self) -> bool {
        self.with_misses
    }

    fn start(&self) -> ByCell {
        ByCell::default()
    }

    fn observe(&self, counts: &mut ByCell, rows: &AnnotatedAccesses, view: &View<'_>) {
        counts.0.resize(view.cells.cells.len(), vec![0; self.levels(view)]);
        match self.with_misses {
            true => {
                for (&cell, &level) in rows.cell.iter().zip(&rows.level) {
                    counts.0[cell as usize][usize::from(level)] += 1;
                }
            }
            false => rows.cell.iter().for_each(|&cell| counts.0[cell as usize][0] += 1),
        }
    }

    fn merge(&self, counts: &mut ByCell, later: ByCell) {
        counts.0.resize(counts.0.len().max(later.0.len()), Vec::new());
        for (sum, more) in counts.0.iter_mut().zip(later.0) {
            match sum.is_empty() {
                true => *sum = more,
                false => sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more),
            }
        }
    }

    fn save(&self, counts: ByCell, carried: &mut CellPacker<'_>) -> Vec<(u32, Vec<u64>)> {
        let counts = (0..).zip(counts.0).filter(|(_, served)| served.iter().any(|n| *n > 0));
        counts.map(|(cell, served)| (carried.cell(cell), served)).collect()
    }

    fn load(&self, saved: Vec<(u32, Vec<u64>)>, carried: &CellUnpacker<'_>) -> Result<ByCell, BadNumber> {
        let mut counts = ByCell::default();
        for (cell, served) in saved {
            let served = match self.with_misses {
                true => carried.by_level(served)?,
                false => served.get(..1).ok_or(BadNumber { what: "level", number: 0 })?.to_vec(),
            };
            let cell = carried.cell(cell)? as usize;
            counts.0.resize(counts.0.len().max(cell + 1), Vec::new());
            counts.0[cell] = served;
        }
        Ok(counts)
    }

    fn finish(&self, counts: ByCell, view: &View<'_>) -> Findings {
        let levels = if self.with_misses { view.caches() } else { &[] };
        let [by_variable, by_line] = Accesses::META.tables else { unreachable!() };
        let variables: Vec<(What, Sum)> =
            self.sums(&counts, view, |cell| what(view.names, view.site(cell), false));
        let variable = |(data, sum): (What, Sum)| {
            let counts = sum.counts().collect::<Vec<_>>();
            [Value::What(data)]
                .into_iter()
                .chain(counts)
                .chain([Value::Threads(sorted(sum.threads))])
                .collect()
        };
        let lines: Vec<((What, Place), Sum)> = self.sums(&counts, view, |cell| view.key(cell));
        let line = |((data, place), sum): ((What, Place), Sum)| {
            [Value::What(data), Value::Place(place)].into_iter().chain(sum.counts()).collect()
        };
        let tables = vec![
            Table::new(by_variable, levels, true, variables.into_iter().map(variable).collect()),
            Table::new(by_line, levels, true, lines.into_iter().map(line).collect()),
        ];
        Findings { findings: Vec::new(), tables }
    }
}
