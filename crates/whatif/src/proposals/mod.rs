//! Edits that are worth a try, found in what was counted of a trace: one file for each reason.
//!
//! A proposal is no promise. Whoever asks for them replays each, and most are turned down.

pub mod aliasing;
mod conflicts;
mod grouping;
mod narrowing;
mod nodes;
mod packing;
mod pages;
pub mod threads;
mod unused;

use memlode_attribute::CostModel;
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_trace::sites::FunctionId;
use rustc_hash::FxHashMap;

use crate::named::name_of;
use crate::plan::{PlanInputs, element_of, record_of};
use crate::values::RecordedValues;

/// Types and objects that wait for less of all the waiting are left alone.
const LEAST_SHARE: f64 = 0.03;

/// And those that wait for less of the run's cycles: no edit of them is worth it.
const LEAST_OF_RUN: f64 = 0.02;

/// Returns the cycles of waiting from which on a type or object is worth a try.
pub fn least_cycles(wait_cycles: f64, run_cycles: f64) -> f64 {
    (wait_cycles * LEAST_SHARE).max(run_cycles * LEAST_OF_RUN)
}

/// Edits that are made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The type or the objects that they are about, which is what proposals compete for.
    pub subject: String,
    /// The edits.
    pub edits: Vec<Edit>,
}

/// Objects of one origin, and how the program uses them.
struct Uses {
    /// The name by which edits know them.
    name: String,
    /// The name of the record that their elements are.
    record: Option<String>,
    element_bytes: u64,
    objects: u64,
    bytes: u64,
    /// Cycles of waiting, and those of loads that go to places far from each other, by function.
    by_function: FxHashMap<FunctionId, Waits>,
    /// Cycles for translations, and for memory of other nodes than the thread's, where these are simulated.
    beyond_levels: u64,
}

#[derive(Clone, Copy, Default)]
struct Waits {
    all: f64,
    jumping: f64,
}

impl Uses {
    fn wait(&self) -> f64 {
        self.by_function.values().map(|waits| waits.all).sum()
    }
}

/// Finds edits to try on objects and types that the program waits for, those that it waits for longest first.
pub fn proposals(
    known: &PlanInputs<'_>,
    values: &RecordedValues,
    machine: &Machine,
    run_cycles: f64,
) -> Vec<Proposal> {
    let costs = CostModel::new(known.profile, known.names, machine);
    let uses = uses(known, &costs, run_cycles);
    let mut found = unused::proposals(known, &uses);
    found.extend(narrowing::proposals(known, values, &uses));
    found.extend(conflicts::proposals(machine, &uses));
    found.extend(grouping::proposals(&uses));
    found.extend(packing::proposals(&uses));
    found.extend(pages::proposals(machine, &uses));
    found.extend(nodes::proposals(known, machine, &uses));
    found
}

/// Returns the objects that the program waits for enough, the most first.
fn uses(known: &PlanInputs<'_>, costs: &CostModel, run_cycles: f64) -> Vec<Uses> {
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
    let mut uses: Vec<Uses> = Vec::new();
    for ((class, by_function), beyond_levels) in profile.classes.iter().zip(by_class).zip(beyond_levels) {
        let wait: f64 = by_function.values().map(|waits| waits.all).sum();
        if wait <= 0.0 || wait < least {
            continue;
        }
        let Some(name) = name_of(known, &class.home) else { continue };
        let record = record_of(known.names, class);
        let record = record.and_then(|(record, _)| known.names.layouts().layout(record).name);
        uses.push(Uses {
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
