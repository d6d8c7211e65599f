//! The outcome of edits on a run, beside the run as it is.

use memlode_attribute::CostModel;
use memlode_attribute::place::{place, what};
use memlode_attribute::sharing::OwnMember;
use memlode_layout::{Edit, Layout, Part, Slot};
use memlode_trace::sites::StringId;
use memlode_whatif::advise::{
    Advised, Baseline, CostliestAccess, EditOutcome, Rejected, Searched, Trial, Winner, written,
};
use memlode_whatif::hot_cold::Chart;
use memlode_whatif::placement::Footprint;
use memlode_whatif::plan::{Plan, PlanDoubt};

use super::{Inputs, comparison, handles, records, report};
use crate::model::{self, Data, Report};

/// Builds the report of the unedited trace, with what analyses found in it.
pub fn side(baseline: &Baseline, findings: Vec<memlode_analyses::Finding>) -> Report {
    let Baseline { trace, machine, profile, replayed, .. } = baseline;
    let costs = &CostModel::new(profile, trace.sites(), machine);
    let sharing = baseline.sharing();
    report(Inputs { trace, machine, profile, costs, replayed, sharing, findings })
}

/// Builds the report of the effects of edits on a run, whose own report is `as_it_is`.
pub fn what_if(baseline: &Baseline, as_it_is: &Report, outcome: &EditOutcome) -> model::WhatIf {
    what_if_beside(baseline, as_it_is, outcome, outcome.range)
}

/// Builds the best layout of a type, with those that were tried.
pub fn searched(baseline: &Baseline, as_it_is: &Report, found: &Searched) -> model::WhatIf {
    let tried = |Trial { edits, gain, .. }: &Trial| model::Tried { edit: written(edits), gain: *gain };
    model::WhatIf {
        tried: found.tried.iter().map(tried).collect(),
        left_off: found.left_off,
        ..what_if(baseline, as_it_is, &found.best)
    }
}

/// Builds advice, with the lines that edits are about, and without their text.
pub fn advice(baseline: &Baseline, as_it_is: &Report, found: &Advised, noise: f64) -> model::Advice {
    let mut worth_it = Vec::new();
    for Winner { outcome, about } in &found.worth_it {
        let mut made = what_if_beside(baseline, as_it_is, outcome, Some(noise));
        let line = match about {
            None => Some(0),
            Some(about) => line_of(baseline, &made, about),
        };
        made.at = line.and_then(|at| made.comparison.lines.get(at)).map(|line| {
            let mut access = line.subject.clone();
            if let Some(member) = about.and_then(|about| about.member) {
                access.data = own_data(baseline, member);
            }
            model::Located { source: None, access }
        });
        worth_it.push(made);
    }
    model::Advice {
        trace: baseline.trace.directory().display().to_string(),
        machine: baseline.machine.name.clone(),
        noise,
        worth_it,
        rejected: found.rejected.iter().map(|rejected| self::rejected(baseline, rejected)).collect(),
        latent: found.latent.clone(),
        pairs: found.pairs.clone(),
        aliased: found.aliased.clone(),
        locks: as_it_is.sharing.as_ref().map_or_else(Vec::new, |sharing| sharing.locks.clone()),
        structures: charts(baseline, &found.charts),
        left_off: found.left_off,
    }
}

fn rejected(baseline: &Baseline, rejected: &Rejected) -> model::RejectedEdits {
    let handle = handles::of_edits(baseline.trace.sites(), &rejected.edits);
    model::RejectedEdits { handle, rejected: rejected.clone() }
}

fn what_if_beside(
    baseline: &Baseline,
    as_it_is: &Report,
    outcome: &EditOutcome,
    noise: Option<f64>,
) -> model::WhatIf {
    let EditOutcome { edits, plan, predicted, costs, sharing, before, after, verdict, .. } = outcome;
    let (profile, replayed) = (&predicted.profile, &predicted.replayed);
    let as_it_would_be = report(Inputs {
        trace: &baseline.trace,
        machine: &baseline.machine,
        profile,
        costs,
        replayed,
        sharing: sharing.as_ref(),
        // Rows have the findings of the run that there was.
        findings: Vec::new(),
    });
    model::WhatIf {
        handle: handles::of_edits(baseline.trace.sites(), edits),
        edits: edits.iter().map(ToString::to_string).collect(),
        verdict: *verdict,
        gain: outcome.gain(),
        footprint: footprint(predicted.footprint),
        confidence: confidence(baseline, edits, plan, as_it_is),
        comparison: comparison(as_it_is, &as_it_would_be, [before.run, after.run], noise),
        at: None,
        tried: Vec::new(),
        left_off: None,
        by_hand: Vec::new(),
        layouts: plan.layouts().iter().map(edited).collect(),
    }
}

fn edited(layout: &Layout) -> model::EditedLayout {
    let member = |slot: &Slot| model::EditedMember {
        member: slot.names.join(", "),
        offset: slot.offset,
        bytes: slot.bytes,
        was: slot.was,
    };
    let part = |part: &Part| model::EditedPart {
        elements: part.block,
        bytes: part.stride,
        members: part.slots.iter().map(member).collect(),
    };
    let structure = layout.structure();
    model::EditedLayout {
        ty: structure.name.clone(),
        bytes: structure.bytes,
        parts: layout.parts().iter().map(part).collect(),
    }
}

fn confidence(baseline: &Baseline, edits: &[Edit], plan: &Plan, report: &Report) -> model::Confidence {
    let shares = &report.coverage.by_evidence;
    let named = ["source", "debug"].iter().filter_map(|kind| shares.get(*kind)).sum();
    let mut held_by: Vec<String> =
        plan.doubts().iter().flat_map(|PlanDoubt::HeldByValue { outer, .. }| outer.clone()).collect();
    held_by.sort();
    held_by.dedup();
    let narrowed = |edit: &Edit| {
        let Edit::Narrow { structure, member, to } = edit else { return None };
        let values = baseline.seen(structure, member).map_or(0, |seen| seen.count);
        Some(model::Narrowed { member: format!("{structure}.{member}"), to: *to, values })
    };
    let constant = |edit: &Edit| {
        let Edit::Remove { structure, members } = edit else { return Vec::new() };
        let one = |member: &String| {
            let (value, values) = baseline.constant(structure, member)?;
            let (ty, member, value) = (structure.clone(), member.clone(), value.to_string());
            Some(model::ConstantMember { ty, member, value, values })
        };
        members.iter().filter_map(one).collect::<Vec<_>>()
    };
    model::Confidence {
        constants: edits.iter().flat_map(constant).collect(),
        narrowed: edits.iter().filter_map(narrowed).collect(),
        named,
        unknown_objects: baseline.unknown_objects(),
        held_by,
        placed_by: baseline.placed_by().map(str::to_string),
    }
}

fn footprint(of: Footprint) -> model::MemoryUse {
    model::MemoryUse {
        objects: of.objects,
        bytes_before: of.before,
        bytes_after: of.after,
        objects_left: of.left,
    }
}

/// Finds the place among the changed lines of the access that edits are about.
fn line_of(baseline: &Baseline, made: &model::WhatIf, about: &CostliestAccess) -> Option<usize> {
    let names = baseline.trace.sites();
    let site = names.site(about.site);
    let (what, line) = (what(names, site, true), place(names, site).line);
    let name = |id: Option<StringId>| id.map(|id| names.string(id));
    made.line_of((names.string(line.function), line.line), name(what.member), name(what.variable))
}

/// Names a member of a type of the program rather than one of a library's type inside it.
fn own_data(baseline: &Baseline, OwnMember { ty, member }: OwnMember) -> Data {
    let name = |id: StringId| Some(baseline.trace.sites().string(id).to_string());
    Data { ty: name(ty), member: name(member), variable: None }
}

/// Charts with the members of their structures.
fn charts(baseline: &Baseline, charts: &[Chart]) -> Vec<model::StructureChart> {
    let records = records(baseline.trace.sites());
    let draw = |chart: &Chart| {
        let layout = records.iter().find(|record| record.name == chart.name && !record.incomplete)?;
        let members = chart.members.iter().map(|member| model::MarkedMember {
            member: member.name.clone(),
            bytes: member.bytes,
            accesses: member.accesses,
            is_cold: member.is_cold,
        });
        Some(model::StructureChart {
            ty: chart.name.clone(),
            bytes: chart.bytes,
            differential: chart.differential,
            is_split: chart.is_split,
            members: members.collect(),
            layout: layout.clone(),
        })
    };
    charts.iter().filter_map(draw).collect()
}
