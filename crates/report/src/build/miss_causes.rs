//! Causes of misses by thread, line and object at once, from a simulation that finds them.

use std::collections::BTreeMap;

use memlode_attribute::tables::Tables;
use memlode_attribute::{CostModel, DetailedProfile, Profile};
use memlode_machine::Machine;
use memlode_trace::Trace;

use super::cells::{classes, described, numbers};
use crate::model::{ByCause, CauseGroup, MissCauses};

/// Finds the causes of misses. Profile and costs are those that the report is made of; `detailed` is of the same trace.
/// Accesses of which the report has no row are left out.
pub fn miss_causes(
    trace: &Trace,
    machine: &Machine,
    (profile, costs): (&Profile, &CostModel),
    detailed: &DetailedProfile,
) -> MissCauses {
    let latencies = machine.latencies();
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let (threads, lines) = (numbers(tables.threads()), numbers(tables.lines()));
    let objects = numbers(tables.objects());
    let classes = classes(profile);
    let their_costs = CostModel::new(&detailed.profile, trace.sites(), machine);
    let their_tables = Tables::of_run(trace, &detailed.profile, &latencies, &their_costs);
    // Both profiles number classes of objects in their own way.
    let object_of = |(key, _)| objects.get(classes.get(&key)?).copied();
    let their_objects: Vec<Option<usize>> = described(&detailed.profile).map(object_of).collect();
    let levels = machine.levels.len();
    let mut sums: BTreeMap<(usize, usize, usize), Vec<ByCause>> = BTreeMap::new();
    for cell in &detailed.profile.cells {
        let row = || {
            let (what, place) = their_tables.key_of(cell);
            let object = their_objects.get(cell.class.0 as usize).copied().flatten()?;
            Some((*threads.get(&cell.thread)?, *lines.get(&(what, place))?, object))
        };
        let found = detailed.of(cell).levels;
        let Some(row) = row().filter(|_| found.iter().any(|level| level.misses() > 0)) else { continue };
        let sum = sums.entry(row).or_insert_with(|| vec![ByCause::default(); levels]);
        for (sum, of) in sum.iter_mut().zip(found) {
            let shared = [of.held_elsewhere, of.true_sharing, of.false_sharing];
            let more = [of.cold, of.capacity, of.conflict].into_iter().chain(shared);
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
    }
    let group = |((thread, line, object), misses)| CauseGroup { thread, line, object, misses };
    MissCauses { groups: sums.into_iter().map(group).collect() }
}
