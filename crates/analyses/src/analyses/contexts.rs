//! # Contexts
//!
//! **What it finds.** Accesses, misses and modelled cycles by call path: the line of the access,
//! the functions that were inlined there, and each function that called, at the line of its call. A
//! second table adds up, for each function, its own accesses and those of all that it calls.
//!
//! **Why it costs.** A line of a function with many callers means little by itself: the same lookup
//! may hit for one caller and miss for another. Often the caller must change: the order of its
//! calls, or their number.
//!
//! **What to do.** Follow the costliest paths from callee to caller, to the first call that could
//! be avoided or changed. If most cycles of a function come from one caller, its data suit the
//! other callers.
//!
//! **When it is wrong.** Recursion is folded: a call of a function that is already on the path goes
//! back to its place there: `main → walk → walk → walk` is `main → walk`. If the line of a call is
//! ambiguous, the caller has no line: two calls of it between the same accesses, a call through a
//! pointer beside one by name. Code that was not compiled with memlode is on no path: a function
//! that `qsort` calls seems to be called by the one that called `qsort`. Stall cycles are an upper
//! bound, as misses overlap; `memlode export --to callgrind.out.1` has the wait of the cost model
//! by the same paths.
//!
//! **Reference.** Ammons, Ball and Larus, "Exploiting hardware performance counters with flow and
//! context sensitive profiling", PLDI 1997: metrics by calling context, with recursion folded.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, Extras};
use memlode_attribute::place::{Line, Place};
use memlode_attribute::stack::{StackLine, stack};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::SiteId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::addresses::sorted;
use crate::served::{add, misses, stall_cycles, total};
use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// A line of a call path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Step {
    line: Line,
    /// The frame was inlined into the next.
    is_inlined: bool,
    /// The line where its function begins.
    begins: u32,
}

/// The lines of a call path, the innermost first.
type Stack = Vec<Step>;

const ACCESSES: Column = Column { id: "accesses", holds: Holds::Count };
const MISSES: Column = Column { id: "*_misses", holds: Holds::Count };
const STALL_CYCLES: Column = Column { id: "stall_cycles", holds: Holds::Count };
const SHARE: Column = Column { id: "share_of_stall_cycles", holds: Holds::Share };

/// See the module's page.
pub struct Contexts;

/// Accesses of each cell on each call path, by the level that served them.
#[derive(Default)]
pub struct Counted {
    /// Cell and path, with their place in `served`.
    numbers: FxHashMap<(u32, u32), usize>,
    served: Vec<((u32, u32), Vec<u64>)>,
}

impl Counted {
    fn of(&mut self, key: (u32, u32), levels: usize) -> usize {
        let next = self.served.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.served.push((key, vec![0; levels]));
        }
        number
    }

    fn add(&mut self, key: (u32, u32), more: &[u64]) {
        let number = self.of(key, more.len());
        for (sum, more) in self.served[number].1.iter_mut().zip(more) {
            *sum = sum.saturating_add(*more);
        }
    }
}

/// The accesses on a path.
#[derive(Clone, Default)]
struct Sum {
    served: Vec<u64>,
    writes: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Sum {
    fn add(&mut self, served: &[u64], is_write: bool, thread: ThreadId) {
        let accesses = total(served);
        add(&mut self.served, served);
        self.writes = self.writes.saturating_add(if is_write { accesses } else { 0 });
        let of_thread = self.threads.entry(thread).or_default();
        *of_thread = of_thread.saturating_add(accesses);
    }
}

/// Own accesses of a function, and those with all that it calls.
#[derive(Default)]
struct OfFunction {
    own: Vec<u64>,
    all: Vec<u64>,
}

fn step(view: &View<'_>, line: &StackLine) -> Step {
    let begins = view.names.function(line.function).line;
    Step { line: line.named(view.names), is_inlined: line.is_inlined, begins }
}

impl Contexts {
    /// Returns what each path did.
    fn sums(counted: &Counted, view: &View<'_>) -> FxHashMap<Stack, Sum> {
        let mut stacks: FxHashMap<(SiteId, u32), Stack> = FxHashMap::default();
        let mut sums: FxHashMap<Stack, Sum> = FxHashMap::default();
        for ((cell, path), served) in &counted.served {
            let site = view.cell(*cell).site;
            let stack = stacks.entry((site, *path)).or_insert_with(|| {
                let lines = stack(view.names, view.names.site(site), view.cells.path(*path));
                lines.iter().map(|line| step(view, line)).collect()
            });
            let sum = match sums.get_mut(stack) {
                Some(sum) => sum,
                None => sums.entry(stack.clone()).or_default(),
            };
            sum.add(served, view.writes(*cell), view.cell(*cell).thread);
        }
        sums
    }

    /// Adds up the functions of all paths. A path counts once for each function on it.
    fn by_function(paths: &[(Stack, Sum)]) -> FxHashMap<Line, OfFunction> {
        let mut functions: FxHashMap<Line, OfFunction> = FxHashMap::default();
        for (stack, sum) in paths {
            let mut known = FxHashSet::default();
            for (depth, step) in stack.iter().enumerate() {
                let function = Line { line: step.begins, ..step.line };
                if known.insert(function) {
                    let of_function = functions.entry(function).or_default();
                    add(&mut of_function.all, &sum.served);
                    if depth == 0 {
                        add(&mut of_function.own, &sum.served);
                    }
                }
            }
        }
        functions
    }
}

impl Analysis for Contexts {
    const META: Meta = Meta {
        id: "contexts",
        title: "accesses, misses and cycles by call path",
        reads: Reads::Rows,
        inlines: true,
        levels: true,
        after: &[],
        // Each access counts by itself, once its path and its level are known; one that is cut counts twice.
        splits: Splits { chunks: false, address: None, thread: true, time: true },
        arguments: &[],
        tables: &[
            TableMeta {
                id: "contexts",
                title: "Accesses by call path, the innermost line first",
                is_whole: false,
                columns: &[
                    Column { id: "path", holds: Holds::Stack },
                    ACCESSES,
                    Column { id: "reads", holds: Holds::Count },
                    Column { id: "writes", holds: Holds::Count },
                    MISSES,
                    STALL_CYCLES,
                    SHARE,
                    Column { id: "by_thread", holds: Holds::Threads },
                ],
            },
            TableMeta {
                id: "contexts_by_function",
                title: "Functions with all that they call, and by themselves",
                is_whole: false,
                columns: &[
                    Column { id: "function", holds: Holds::Place },
                    ACCESSES,
                    MISSES,
                    STALL_CYCLES,
                    SHARE,
                    Column { id: "own_accesses", holds: Holds::Count },
                    Column { id: "own_stall_cycles", holds: Holds::Count },
                ],
            },
        ],
    };

    type State = Counted;
    type Saved = Vec<(u32, u32, Vec<u64>)>;

    fn new(_arguments: &Arguments) -> Result<Contexts, BadArgument> {
        Ok(Contexts)
    }

    fn extras(&self) -> Extras {
        Extras { paths: true, ..Extras::default() }
    }

    fn start(&self) -> Counted {
        Counted::default()
    }

    fn observe(&self, counted: &mut Counted, rows: &AnnotatedAccesses, view: &View<'_>) {
        // Accesses of one loop have few cells, and mostly one path.
        let mut last = ((u32::MAX, u32::MAX), 0);
        for (row, (&cell, &level)) in rows.cell.iter().zip(&rows.level).enumerate() {
            let key = (cell, rows.path.get(row).copied().unwrap_or(0));
            if last.0 != key {
                last = (key, counted.of(key, view.levels.len()));
            }
            counted.served[last.1].1[usize::from(level)] += 1;
        }
    }

    fn merge(&self, counted: &mut Counted, later: Counted) {
        for (key, served) in later.served {
            counted.add(key, &served);
        }
    }

    fn save(&self, counted: Counted, carried: &mut CellPacker<'_>) -> Vec<(u32, u32, Vec<u64>)> {
        let served = counted.served.into_iter();
        served.map(|((cell, path), served)| (carried.cell(cell), carried.path(path), served)).collect()
    }

    fn load(
        &self,
        saved: Vec<(u32, u32, Vec<u64>)>,
        carried: &CellUnpacker<'_>,
    ) -> Result<Counted, BadNumber> {
        let mut counted = Counted::default();
        for (cell, path, served) in saved {
            counted.add((carried.cell(cell)?, carried.path(path)?), &carried.by_level(served)?);
        }
        Ok(counted)
    }

    fn finish(&self, counted: Counted, view: &View<'_>) -> Findings {
        let stall = |served: &[u64]| stall_cycles(served, view.latencies);
        let mut paths: Vec<(Stack, Sum)> = Contexts::sums(&counted, view).into_iter().collect();
        paths.sort_by(|a, b| {
            let key = |(_, sum): &(Stack, Sum)| Reverse((stall(&sum.served), total(&sum.served)));
            key(a).cmp(&key(b)).then_with(|| a.0.cmp(&b.0))
        });
        let mut functions: Vec<(Line, OfFunction)> = Contexts::by_function(&paths).into_iter().collect();
        functions.sort_by_key(|(line, of)| (Reverse((stall(&of.all), total(&of.all))), *line));
        let whole = paths.iter().map(|(_, sum)| stall(&sum.served)).fold(0, u64::saturating_add);
        let share = |served: &[u64]| Value::Share(stall(served) as f64 / whole.max(1) as f64);
        let path = |(stack, sum): (Stack, Sum)| {
            let accesses = total(&sum.served);
            let counts = [accesses, accesses.saturating_sub(sum.writes), sum.writes];
            let counts = counts.into_iter().chain(misses(&sum.served)).chain([stall(&sum.served)]);
            let lines = stack.iter().map(|step| (step.line, step.is_inlined));
            let mut row = vec![Value::Stack(lines.collect())];
            row.extend(counts.map(Value::Count));
            row.extend([share(&sum.served), Value::Threads(sorted(sum.threads))]);
            row
        };
        let function = |(line, OfFunction { own, all }): (Line, OfFunction)| {
            let place = Place { line, inlined_into: None };
            let counts = [total(&all)].into_iter().chain(misses(&all)).chain([stall(&all)]);
            let mut row = vec![Value::Place(place)];
            row.extend(counts.map(Value::Count));
            row.extend([share(&all), Value::Count(total(&own)), Value::Count(stall(&own))]);
            row
        };
        let functions: Vec<Vec<Value>> = functions.into_iter().map(function).collect();
        let paths = paths.into_iter().map(path).collect();
        let [by_path, by_function] = Contexts::META.tables else { unreachable!() };
        let tables = vec![
            Table::new(by_path, view.caches(), true, paths),
            Table::new(by_function, view.caches(), true, functions),
        ];
        Findings { findings: Vec::new(), tables }
    }
}
