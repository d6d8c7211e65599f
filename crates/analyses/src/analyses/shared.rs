//! # Shared variables
//!
//! **What it finds.** Memory that several threads use in turn: variables of 1 to 8 bytes that at
//! least two threads access about equally often and write, with the data and the lines of code; and
//! lines of cache in which threads have separate variables. The most written ones come first in
//! both.
//!
//! **Why it costs.** A line that one core writes leaves every other core's cache. Each change of
//! hands costs as much as a miss of the last level, also when a lock or an atomic operation keeps
//! the program correct.
//!
//! **What to do.** Give each thread its own variable and add them up at the end. Put variables that
//! merely share a line (the second table) on separate lines, or group them by thread.
//!
//! **When it is wrong.** It counts accesses, not changes of hands: threads that use a variable one
//! after the other, long apart, share it at no cost; `memlode report` has the changes of hands. A
//! thread that accesses a variable much less often than others does not count, such as one that
//! only clears it first or adds up at the end. Accesses before the second thread came are charged
//! to the last lines that made them. A variable ends where a block begins that has its bytes, and
//! where another function or thread has it on its stack.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016): variables whose most frequent thread has less than twice the accesses of the
//! second. `rule=source` is that to the letter: every address that several threads access and that
//! passes this test, written or not, and the source lines of these by their accesses.
//!
//! **Arguments.** `least=N`: variables with fewer accesses are left out (100; with `rule=source`,
//! none is). `ratio=R`: the busiest thread has less than R times the accesses of the second (2).
//! `rule=source`: see above. As in `memlode replay DIR --analyse shared:least=1000,ratio=4`.

use std::cmp::Reverse;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_attribute::place::{Place, What};
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::addresses::{Addresses, sorted};
use crate::variables::{Accessor, SavedVariables, Variables, pieces};
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, Blocks, CellPacker, CellUnpacker, Column,
    Findings, Holds, Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// See the module's page.
pub struct Shared {
    /// Variables with fewer accesses are left out.
    least: u64,
    /// The most frequent thread of a variable has less than this many times the accesses of the
    /// second.
    ratio: f64,
    /// The rule as published.
    as_published: bool,
}

/// Accesses so far.
pub enum Accessed {
    /// Variables, from begin to end of each.
    Variables(Box<Variables>),
    /// Addresses, as published.
    Addresses(Addresses),
}

/// The accesses on their way to another replay.
#[derive(Serialize, Deserialize)]
pub enum SavedAccesses {
    Variables(SavedVariables),
    Addresses(Vec<(u64, u32, u64)>),
}

impl Analysis for Shared {
    const META: Meta = Meta {
        id: "shared",
        title: "memory that threads use in turn",
        reads: Reads::Rows,
        inlines: true,
        levels: false,
        after: &[],
        // Which line a variable's first thread is charged to depends on what came before, so neither by thread
        // nor by time.
        splits: Splits { chunks: false, address: Some(Blocks::Lines), thread: false, time: false },
        arguments: &[
            Argument { name: "least", help: "accesses of a variable from which on it counts [default: 100]" },
            Argument {
                name: "ratio",
                help: "the busiest thread has less than so many times the accesses of the second [default: 2]",
            },
            Argument { name: "rule", help: "`source`: the variables of the paper [default: none]" },
        ],
        tables: &[
            TableMeta {
                id: "shared_words",
                title: "Variables that threads share evenly",
                is_whole: false,
                columns: &[
                    Column { id: "data", holds: Holds::What },
                    Column { id: "line", holds: Holds::Place },
                    Column { id: "accesses", holds: Holds::Count },
                    Column { id: "writes", holds: Holds::Count },
                    Column { id: "words", holds: Holds::Count },
                    Column { id: "threads", holds: Holds::Count },
                    Column { id: "by_thread", holds: Holds::Threads },
                ],
            },
            TableMeta {
                id: "false_sharing",
                title: "Lines in which threads have variables of their own",
                is_whole: false,
                columns: &[
                    Column { id: "data", holds: Holds::What },
                    Column { id: "with", holds: Holds::What },
                    Column { id: "lines", holds: Holds::Count },
                    Column { id: "accesses", holds: Holds::Count },
                    Column { id: "writes", holds: Holds::Count },
                ],
            },
            TableMeta {
                id: "shared_source",
                title: "Source lines of variables that threads share evenly, by the rule of the paper",
                is_whole: false,
                columns: &[
                    Column { id: "file", holds: Holds::File },
                    Column { id: "line", holds: Holds::Count },
                    Column { id: "variable", holds: Holds::Name },
                    Column { id: "totalcount", holds: Holds::Count },
                    Column { id: "threadcount", holds: Holds::Count },
                    Column { id: "threads", holds: Holds::Threads },
                ],
            },
        ],
    };

    type State = Accessed;
    type Saved = SavedAccesses;

    fn splits(&self) -> Splits {
        match self.as_published {
            true => Splits { chunks: true, address: Some(Blocks::Lines), thread: true, time: true },
            false => Self::META.splits,
        }
    }

    fn new(arguments: &Arguments) -> Result<Shared, BadArgument> {
        let rule: Option<String> = arguments.get("rule", "source")?;
        let as_published = match rule.as_deref() {
            None => false,
            Some("source") => true,
            Some(other) => {
                return Err(BadArgument(format!("`{other}` is no value for rule: expected source")));
            }
        };
        Ok(Shared {
            least: arguments.get("least", "a number")?.unwrap_or(if as_published { 0 } else { 100 }),
            ratio: arguments.get("ratio", "a number")?.unwrap_or(2.0),
            as_published,
        })
    }

    fn start(&self) -> Accessed {
        match self.as_published {
            true => Accessed::Addresses(Addresses::default()),
            false => Accessed::Variables(Box::new(Variables::new())),
        }
    }

    fn observe(&self, accessed: &mut Accessed, rows: &AnnotatedAccesses, view: &View<'_>) {
        match accessed {
            Accessed::Variables(variables) => variables.observe(rows, view),
            Accessed::Addresses(addresses) => {
                for ((&address, &bytes), &cell) in rows.address.iter().zip(&rows.bytes).zip(&rows.cell) {
                    let space = view.space(view.cell(cell).thread);
                    pieces(address, bytes, view.line_bytes(), |first, _| {
                        addresses.touch(space.place(first), cell);
                    });
                }
            }
        }
    }

    fn merge(&self, accessed: &mut Accessed, later: Accessed) {
        match (accessed, later) {
            (Accessed::Variables(variables), Accessed::Variables(later)) => variables.merge(*later),
            (Accessed::Addresses(addresses), Accessed::Addresses(later)) => addresses.merge(later),
            // Which it is depends on the arguments, and these are those of the whole.
            _ => {}
        }
    }

    fn save(&self, accessed: Accessed, carried: &mut CellPacker<'_>) -> SavedAccesses {
        match accessed {
            Accessed::Variables(variables) => SavedAccesses::Variables(variables.save(carried)),
            Accessed::Addresses(addresses) => SavedAccesses::Addresses(addresses.save(carried)),
        }
    }

    fn load(&self, saved: SavedAccesses, carried: &CellUnpacker<'_>) -> Result<Accessed, BadNumber> {
        match saved {
            SavedAccesses::Addresses(saved) if self.as_published => {
                Ok(Accessed::Addresses(Addresses::load(saved, carried)?))
            }
            SavedAccesses::Variables(saved) if !self.as_published => {
                Ok(Accessed::Variables(Box::new(Variables::load(saved, carried)?)))
            }
            _ => Err(BadNumber { what: "rule", number: u64::from(self.as_published) }),
        }
    }

    fn finish(&self, accessed: Accessed, view: &View<'_>) -> Findings {
        let tables = match accessed {
            Accessed::Addresses(addresses) => {
                let is_even = |all, most, second| all >= self.least && self.counts(second, most);
                vec![Table::plain(&Shared::META.tables[2], addresses.rows(view, is_even))]
            }
            Accessed::Variables(mut variables) => {
                variables.look_up(view);
                vec![self.variables_table(&variables, view), self.lines_table(&variables, view)]
            }
        };
        Findings { findings: Vec::new(), tables }
    }
}

/// Sums over the variables that one line of source text shares.
#[derive(Default)]
struct Sum {
    variables: u64,
    accesses: u64,
    writes: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Sum {
    fn add(&mut self, Accessor { thread, writes, .. }: Accessor, count: u64) {
        self.accesses += count;
        self.writes += if writes { count } else { 0 };
        *self.threads.entry(thread).or_default() += count;
    }
}

impl Shared {
    /// Returns whether a thread with this many accesses counts beside the most frequent one.
    fn counts(&self, accesses: u64, most: u64) -> bool {
        (most as f64) < self.ratio * accesses as f64
    }

    /// Variables that threads share evenly, by data and line.
    fn variables_table(&self, variables: &Variables, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, Place), Sum> = FxHashMap::default();
        for shared in variables.lines().flatten() {
            let threads = variables.threads(&shared.by);
            let total: u64 = threads.iter().map(|thread| thread.1).sum();
            let [(_, most, _), (_, second, _), ..] = threads[..] else { continue };
            let even = threads.iter().filter(|thread| self.counts(thread.1, most));
            if total < self.least || !self.counts(second, most) || even.clone().all(|thread| thread.2 == 0) {
                continue;
            }
            let even: Vec<ThreadId> = even.map(|thread| thread.0).collect();
            let mut keys: Vec<(What, Place)> = Vec::new();
            for &(cell, count) in &shared.by {
                let accessor = variables.cells[cell as usize];
                if even.contains(&accessor.thread) {
                    let key = view.key(cell);
                    let sum = sums.entry(key).or_default();
                    sum.variables += u64::from(!keys.contains(&key));
                    keys.push(key);
                    sum.add(accessor, count);
                }
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(key, sum)| (Reverse(sum.writes), Reverse(sum.accesses), *key));
        let row = |((what, place), sum): ((What, Place), Sum)| {
            vec![
                Value::What(what),
                Value::Place(place),
                Value::Count(sum.accesses),
                Value::Count(sum.writes),
                Value::Count(sum.variables),
                Value::Count(sum.threads.len() as u64),
                Value::Threads(sorted(sum.threads)),
            ]
        };
        Table::plain(&Shared::META.tables[0], rows.into_iter().map(row).collect())
    }

    /// Lines of cache in which threads have separate variables, by the data of the two busiest
    /// threads.
    fn lines_table(&self, variables: &Variables, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, What), (u64, u64, u64)> = FxHashMap::default();
        for line in variables.lines() {
            // By thread: accesses and writes of its variables, and of the busiest one, which is named.
            let mut threads: FxHashMap<ThreadId, (u64, u64, u64, u32)> = FxHashMap::default();
            for own in line {
                let by = variables.threads(&own.by);
                let Some(&(thread, most, writes)) = by.first() else { continue };
                if by.get(1).is_some_and(|second| self.counts(second.1, most)) {
                    continue;
                }
                let is_its = |by: &&(u32, u64)| variables.cells[by.0 as usize].thread == thread;
                let cell = own.by.iter().filter(is_its).max_by_key(|by| (by.1, Reverse(view.key(by.0))));
                let sum = threads.entry(thread).or_default();
                (sum.0, sum.1) = (sum.0 + most, sum.1 + writes);
                if let Some(&(cell, _)) = cell.filter(|_| most > sum.2) {
                    (sum.2, sum.3) = (most, cell);
                }
            }
            let mut threads: Vec<_> = threads.into_values().collect();
            // Numbers of cells are those of one replay: names decide between equals.
            threads.sort_by_key(|&(all, writes, most, cell)| (Reverse((all, writes, most)), view.key(cell)));
            let [(most, _, _, one), (second, _, _, other), ..] = threads[..] else { continue };
            let total: u64 = threads.iter().map(|thread| thread.0).sum();
            let writes: u64 = threads.iter().map(|thread| thread.1).sum();
            if total >= self.least && self.counts(second, most) && writes > 0 {
                let sum = sums.entry((view.key(one).0, view.key(other).0)).or_default();
                *sum = (sum.0 + 1, sum.1 + total, sum.2 + writes);
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|&(key, (_, accesses, writes))| (Reverse(writes), Reverse(accesses), key));
        let row = |((one, other), (lines, accesses, writes))| {
            let counts = [lines, accesses, writes].map(Value::Count);
            [Value::What(one), Value::What(other)].into_iter().chain(counts).collect()
        };
        Table::plain(&Shared::META.tables[1], rows.into_iter().map(row).collect())
    }
}
