//! Cells of a run: accesses by thread, line, object and time at once, with the prices of the cost
//! model.

use memlode_analyses::{Table, Value};
use memlode_attribute::annotate::EventObject;
use memlode_attribute::place::{Place, What};
use memlode_attribute::tables::{Row, Tables};
use memlode_attribute::{Class, ClassId, CostModel, Home, PathId, Profile};
use memlode_machine::Machine;
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{FunctionId, LocationId};
use rustc_hash::FxHashMap;

use crate::model::{CellColumns, CellGroup, Cells, OtherCells};

/// The part of cycles, and of accesses, that the cells which are distinguished make up at least.
const KEPT: f64 = 0.995;

/// The most cells that are distinguished: a page has room for them.
const MOST: usize = 200_000;

/// A thread, data at a line, and a class of objects.
type Key = (ThreadId, What, Place, ClassId);

/// Costs of a key's accesses.
#[derive(Clone, Default)]
struct Costs {
    /// Accesses and their cycles of waiting, by the number of levels that they missed.
    accesses: Vec<u64>,
    wait: Vec<f64>,
    instructions: f64,
    first_touches: f64,
}

/// Makes the cells of a run. `found` is the table of the analysis `cells`; profile and costs are
/// those that its report is made of. Returns `None` for another table.
pub fn cells(
    trace: &Trace,
    machine: &Machine,
    (profile, costs): (&Profile, &CostModel),
    found: &Table,
) -> Option<Cells> {
    let latencies = machine.latencies();
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let levels = machine.levels.len();
    let threads = numbers(tables.threads());
    let lines = numbers(tables.lines());
    let objects = numbers(tables.objects());
    let classes = classes(profile);
    let prices = prices(profile, costs, &tables, levels);
    let mut made = Cells::default();
    let mut all = Unsorted::new(levels);
    for row in &found.rows {
        let Found { key: (thread, what, place, object), stretch_accesses, accesses, misses } =
            read(row, levels)?;
        let class = *classes.get(&(object.home.clone(), object.path.clone()))?;
        let costs = prices.get(&(thread, what, place, class))?;
        let group = group(
            (*threads.get(&thread)?, *lines.get(&(what, place))?, *objects.get(&class)?),
            costs,
            levels,
        );
        made.stretch_accesses = stretch_accesses;
        made.stretches = made.stretches.max(accesses.len());
        for (stretch, &accesses) in accesses.iter().enumerate().filter(|(_, accesses)| **accesses > 0) {
            let misses: Vec<u64> = misses.iter().map(|level| level[stretch]).collect();
            all.push(made.groups.len(), stretch, accesses, &misses, &group);
        }
        made.groups.push(group);
    }
    (made.cells, made.others) = all.cut();
    Some(made)
}

/// A row of the analysis.
struct Found<'t> {
    key: (ThreadId, What, Place, &'t EventObject),
    stretch_accesses: u64,
    accesses: &'t [u64],
    misses: Vec<&'t [u64]>,
}

/// Reads a row: the subject in four columns, numbers of the whole run, and those of each stretch.
fn read(row: &[Value], levels: usize) -> Option<Found<'_>> {
    let [Value::Count(thread), Value::What(what), Value::Place(place), Value::Object(object), rest @ ..] =
        row
    else {
        return None;
    };
    let [.., Value::Count(stretch_accesses), Value::Bins(accesses)] =
        &rest[..rest.len().checked_sub(levels)?]
    else {
        return None;
    };
    let mut misses = Vec::new();
    for value in &rest[rest.len() - levels..] {
        match value {
            Value::Bins(bins) if bins.len() == accesses.len() => misses.push(&bins[..]),
            _ => return None,
        }
    }
    let key = (ThreadId(u32::try_from(*thread).ok()?), *what, *place, object);
    Some(Found { key, stretch_accesses: *stretch_accesses, accesses, misses })
}

/// The places of the rows of a table.
pub(super) fn numbers<K: std::hash::Hash + Eq>(rows: Vec<Row<K>>) -> FxHashMap<K, usize> {
    rows.into_iter().enumerate().map(|(at, row)| (row.key, at)).collect()
}

/// The classes of a profile, as a replay of rows describes them.
pub(super) fn classes(profile: &Profile) -> FxHashMap<ObjectKey, ClassId> {
    described(profile).collect()
}

/// The classes of a profile in order, with their numbers.
pub(super) fn described(profile: &Profile) -> impl Iterator<Item = (ObjectKey, ClassId)> + '_ {
    let described = move |(number, class): (u32, &Class)| {
        let (home, path) = match class.home {
            Home::Heap { site, path, dormant } => {
                (Home::Heap { site, path: PathId::ROOT, dormant }, profile.paths.steps(path).collect())
            }
            _ => (class.home.clone(), Vec::new()),
        };
        ((home, path), ClassId(number))
    };
    (0..).zip(&profile.classes).map(described)
}

/// A class of objects in words that all profiles of a trace share.
pub(super) type ObjectKey = (Home, Steps);

/// Functions on the stack, each with the place that called it.
type Steps = Vec<(FunctionId, Option<LocationId>)>;

/// The costs of each key's accesses.
fn prices(profile: &Profile, costs: &CostModel, tables: &Tables<'_>, levels: usize) -> FxHashMap<Key, Costs> {
    let mut sums: FxHashMap<Key, Costs> = FxHashMap::default();
    for (number, cell) in profile.cells.iter().enumerate() {
        let (what, place) = tables.key_of(cell);
        let sum = sums.entry((cell.thread, what, place, cell.class)).or_default();
        sum.accesses.resize(levels + 1, 0);
        sum.wait.resize(levels + 1, 0.0);
        let waits = costs.by_depth(profile, number, levels);
        for (depth, wait) in waits.into_iter().enumerate().take(levels + 1) {
            sum.accesses[depth] += cell.counts.reads[depth] + cell.counts.writes[depth];
            sum.wait[depth] += wait;
        }
        sum.instructions += costs.of(number).instructions;
        sum.first_touches += costs.of(number).first_touches;
    }
    sums
}

fn group((thread, line, object): (usize, usize, usize), costs: &Costs, levels: usize) -> CellGroup {
    let each = |sum: f64, accesses: u64| if accesses > 0 { sum / accesses as f64 } else { 0.0 };
    CellGroup {
        thread,
        line,
        object,
        wait: (1..=levels).map(|depth| each(costs.wait[depth], costs.accesses[depth])).collect(),
        instructions: each(costs.instructions, costs.accesses.iter().sum()),
        first_touch: each(costs.first_touches, costs.accesses[levels]),
    }
}

/// Modelled cycles of some accesses: those of waiting, and all.
fn cycles(group: &CellGroup, accesses: u64, misses: impl Iterator<Item = u64>) -> (f64, f64) {
    let misses: Vec<u64> = misses.collect();
    let behind = |depth: usize| misses.get(depth).copied().unwrap_or(0);
    let served = |depth: usize| misses[depth].saturating_sub(behind(depth + 1)) as f64;
    let wait: f64 = group.wait.iter().enumerate().map(|(depth, price)| price * served(depth)).sum();
    let last = misses.last().copied().unwrap_or(0) as f64;
    (wait, wait + accesses as f64 * group.instructions + last * group.first_touch)
}

/// All cells, before the least are left out.
struct Unsorted {
    columns: CellColumns,
    /// Cycles of waiting, and all cycles.
    weights: Vec<(f64, f64)>,
}

impl Unsorted {
    fn new(levels: usize) -> Unsorted {
        let columns = CellColumns { misses: vec![Vec::new(); levels], ..CellColumns::default() };
        Unsorted { columns, weights: Vec::new() }
    }

    fn push(&mut self, number: usize, stretch: usize, accesses: u64, misses: &[u64], group: &CellGroup) {
        let CellColumns { group: groups, stretch: stretches, accesses: all, misses: levels } =
            &mut self.columns;
        groups.push(number);
        stretches.push(stretch);
        all.push(accesses);
        levels.iter_mut().zip(misses).for_each(|(level, misses)| level.push(*misses));
        self.weights.push(cycles(group, accesses, misses.iter().copied()));
    }

    /// Keeps the cells that make up enough of the cycles and of the accesses, in their order.
    fn cut(self) -> (CellColumns, OtherCells) {
        let Unsorted { columns: all, weights } = self;
        let by_cycles: Vec<f64> = weights.iter().map(|(_, cycles)| *cycles).collect();
        let by_accesses: Vec<f64> = all.accesses.iter().map(|accesses| *accesses as f64).collect();
        let marks = [by_cycles, by_accesses].map(|weights| enough(&weights));
        let mut kept = CellColumns { misses: vec![Vec::new(); all.misses.len()], ..CellColumns::default() };
        let mut others = OtherCells { misses: vec![0; all.misses.len()], ..OtherCells::default() };
        for (at, (wait, cycles)) in weights.into_iter().enumerate() {
            let misses = all.misses.iter().map(|level| level[at]);
            if marks.iter().any(|marks| marks[at]) {
                kept.group.push(all.group[at]);
                kept.stretch.push(all.stretch[at]);
                kept.accesses.push(all.accesses[at]);
                kept.misses.iter_mut().zip(misses).for_each(|(level, misses)| level.push(misses));
            } else {
                others.cells += 1;
                others.accesses += all.accesses[at];
                others.misses.iter_mut().zip(misses).for_each(|(sum, misses)| *sum += misses);
                others.wait_cycles += wait;
                others.cycles += cycles;
            }
        }
        (kept, others)
    }
}

/// Marks the largest that make up enough of the sum of some weights.
fn enough(weights: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let mut missing = KEPT * weights.iter().sum::<f64>();
    let mut marks = vec![false; weights.len()];
    for at in order.into_iter().take(MOST / 2) {
        if missing <= 0.0 {
            break;
        }
        marks[at] = true;
        missing -= weights[at];
    }
    marks
}
