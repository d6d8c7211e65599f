//! Objects that a program waits for, and how it uses them.

use memlode_attribute::CostModel;
use memlode_trace::sites::FunctionId;
use rustc_hash::FxHashMap;

use crate::named::name_of;
use crate::plan::{PlanInputs, element_of, record_of};

/// Types and objects with a smaller part of all waiting are left out.
const LEAST_SHARE: f64 = 0.03;

/// Objects with less than this part of the run's cycles are left out: no edit of them is worth
/// while.
const LEAST_OF_RUN: f64 = 0.02;

/// Returns the cycles of waiting from which on a type or object is worth a try.
pub fn least_cycles(wait_cycles: f64, run_cycles: f64) -> f64 {
    (wait_cycles * LEAST_SHARE).max(run_cycles * LEAST_OF_RUN)
}

/// Objects of one origin, and how the program uses them.
pub struct ObjectUses {
    /// The name by which edits know them.
    pub name: String,
    /// The name of the record that their elements are.
    pub record: Option<String>,
    /// Bytes of an element; 0 if that is not known.
    pub element_bytes: u64,
    /// The number of the objects.
    pub objects: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Cycles of waiting, and those of loads whose addresses are far from each other, by function.
    pub by_function: FxHashMap<FunctionId, Waits>,
    /// Cycles for translations, and for memory of other nodes than the thread's, where these are simulated.
    pub beyond_levels: u64,
}

/// Cycles of waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// All of them.
    pub all: f64,
    /// Cycles of loads whose addresses are far from each other.
    pub jumping: f64,
}

impl ObjectUses {
    /// All cycles of waiting.
    pub fn wait(&self) -> f64 {
        self.by_function.values().map(|waits| waits.all).sum()
    }

    /// Cycles of loads whose addresses are far from each other.
    pub fn jumping(&self) -> f64 {
        self.by_function.values().map(|waits| waits.jumping).sum()
    }

    /// The functions that wait for any of some objects.
    pub fn functions(uses: &[ObjectUses]) -> Vec<FunctionId> {
        let functions = uses.iter().flat_map(|used| used.by_function.keys().copied());
        let mut functions: Vec<FunctionId> = functions.collect();
        functions.sort_by_key(|function| function.0);
        functions.dedup();
        functions
    }
}

/// Returns the objects that the program waits for enough, the most first.
pub fn uses(known: &PlanInputs<'_>, costs: &CostModel, run_cycles: f64) -> Vec<ObjectUses> {
    let profile = known.profile;
    let mut by_class: Vec<FxHashMap<FunctionId, Waits>> = vec![FxHashMap::default(); profile.classes.len()];
    let mut beyond_levels = vec![0; profile.classes.len()];
    for (number, cell) in profile.cells.iter().enumerate() {
        if let Some(sum) = beyond_levels.get_mut(cell.class.0 as usize) {
            *sum += cell.counts.other_cycles;
        }
        let site = known.names.site(cell.site);
        let cycles = costs.of(number).cycles();
        let walk = profile.walks.get(cell.site.0 as usize).and_then(|walk| walk.near_share());
        let jumps = !site.kind.is_write() && walk.is_some_and(|near| near < 0.5);
        let Some(waits) = by_class.get_mut(cell.class.0 as usize) else { continue };
        let waits = waits.entry(site.function).or_default();
        waits.all += cycles;
        waits.jumping += if jumps { cycles } else { 0.0 };
    }
    let least = least_cycles(costs.total().cycles(), run_cycles);
    let mut uses: Vec<ObjectUses> = Vec::new();
    for ((class, by_function), beyond_levels) in profile.classes.iter().zip(by_class).zip(beyond_levels) {
        let wait: f64 = by_function.values().map(|waits| waits.all).sum();
        if wait <= 0.0 || wait < least {
            continue;
        }
        let Some(name) = name_of(known, &class.home) else { continue };
        let record = record_of(known.names, class);
        let record = record.and_then(|(record, _)| known.names.layouts().layout(record).name);
        uses.push(ObjectUses {
            name,
            record: record.map(|name| known.names.string(name).to_string()),
            element_bytes: element_of(known, &class.home).unwrap_or(0),
            objects: class.objects,
            bytes: class.bytes,
            by_function,
            beyond_levels,
        });
    }
    uses.sort_by(|a, b| b.wait().total_cmp(&a.wait()).then_with(|| a.name.cmp(&b.name)));
    uses
}
