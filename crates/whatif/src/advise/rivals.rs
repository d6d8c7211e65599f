//! Edits by what they compete for.

use memlode_attribute::CostModel;
use memlode_attribute::libraries::FetchedCrates;
use memlode_layout::Edit;
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::StringId;
use rustc_hash::FxHashSet;

use super::Baseline;
use crate::heat::RecordNames;
use crate::hot_cold::Chart;
use crate::named::records_named;
use crate::uses::least_cycles;

/// The number of proposals about objects that are tried, at most.
const MOST_PROPOSALS: usize = 8;

/// Finds edits of objects, and of the types that the program waits for most, up to a number of
/// them. Edits of one group are rivals: one is advised at most.
pub fn rivals(baseline: &Baseline, types: usize, charts: &[Chart]) -> Vec<Vec<Vec<Edit>>> {
    let mut groups: Vec<(Vec<String>, Vec<Vec<Edit>>)> = Vec::new();
    for (name, record) in waited_for(baseline).into_iter().take(types) {
        let chart = charts.iter().find(|chart| chart.name == name);
        let edits = baseline.of_record(record, chart).into_iter().map(|proposal| proposal.edits);
        groups.push((vec![name], edits.collect()));
    }
    for proposal in baseline.proposals().into_iter().take(MOST_PROPOSALS) {
        let subjects: Vec<String> = proposal.subject.split(", ").map(str::to_string).collect();
        match groups.iter_mut().find(|(known, _)| known.iter().any(|name| subjects.contains(name))) {
            Some((known, edits)) => {
                known.extend(subjects);
                if !edits.contains(&proposal.edits) {
                    edits.push(proposal.edits);
                }
            }
            None => groups.push((subjects, vec![proposal.edits])),
        }
    }
    groups.into_iter().map(|(_, edits)| edits).collect()
}

/// Finds the program's records that it waits for, the longest first.
pub fn waited_for(baseline: &Baseline) -> Vec<(String, LayoutId)> {
    let names = baseline.trace.sites();
    let costs = CostModel::new(&baseline.profile, names, &baseline.machine);
    let records = RecordNames::of(names, &baseline.profile);
    let layouts = names.layouts();
    let all = layouts.all().iter().filter(|layout| layout.is_record());
    let of_records: FxHashSet<StringId> = all.filter_map(|layout| layout.name).collect();
    let mut by_type: Vec<(StringId, f64)> = Vec::new();
    for (number, cell) in baseline.profile.cells.iter().enumerate() {
        // What is reached by a pointer to a member, such as to a string, is of the object's record.
        let mut touched = records.touched(names, names.site(cell.site)).into_iter().map(|(ty, _)| ty);
        let touched = touched.find(|ty| of_records.contains(ty));
        let Some(ty) = touched.or(records.of_classes[cell.class.0 as usize]) else { continue };
        let cycles = costs.of(number).cycles();
        match by_type.iter_mut().find(|(known, _)| *known == ty) {
            Some((_, sum)) => *sum += cycles,
            None => by_type.push((ty, cycles)),
        }
    }
    by_type.sort_by(|(a, cycles), (b, others)| others.total_cmp(cycles).then(a.cmp(b)));
    let least = least_cycles(costs.total().cycles(), baseline.cycles().run);
    let enough = by_type.into_iter().filter(|&(_, cycles)| cycles >= least && cycles > 0.0);
    let fetched = FetchedCrates::of(names);
    let record = |(ty, _): (StringId, f64)| {
        let name = Some(names.string(ty).to_string()).filter(|name| !fetched.has_type(name))?;
        let record = records_named(names, &name).first().copied()?;
        Some((name, record))
    };
    enough.filter_map(record).collect()
}
