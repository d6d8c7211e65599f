//! Layouts that are tried one after the other: of a type, or of those that a program waits for.

use anyhow::{Result, bail};
use memlode_attribute::Counts;
use memlode_attribute::run::latencies;
use memlode_layout::{Edit, Link};
use memlode_report::text::{count, percent_of};
use memlode_report::{Advice, MarkedMember, Rejected, StructureChart, Tried, WhatIf};
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::StringId;
use memlode_whatif::candidates::candidates;
use memlode_whatif::hot_cold::{Chart, charts};
use memlode_whatif::noise::Verdict;
use memlode_whatif::plan::records_named;
use memlode_whatif::predict::TraceStart;

use crate::whatif::AsItIs;

/// So many of those of a type are confirmed on the whole trace.
const CONFIRMED: usize = 3;

/// Accesses of the part of a trace on which candidates are tried.
const PART: u64 = 20_000_000;

/// The same where somebody waits for the end of a report, and what a gain there must exceed.
const GLANCE: u64 = 3_000_000;
const GLANCE_LEAST: f64 = 0.05;

/// Types whose accesses wait for less of all that is waited are left alone.
const LEAST_SHARE: f64 = 0.03;

/// An edit, and the part of the cycles that it gains on a part of the trace.
type Gain = (Edit, f64);

/// Tries layouts of a type on a part of a trace, and the best of them on all of it.
pub fn search(as_it_is: &AsItIs, ty: &str) -> Result<WhatIf> {
    let Some(&record) = records_named(as_it_is.trace.sites(), ty).first() else {
        // Says which types there are.
        as_it_is.plan(&[Edit::Soa { structure: ty.to_string(), members: Vec::new() }])?;
        bail!("the trace has no type `{ty}`");
    };
    let part = as_it_is.question().part(PART)?;
    let tried = try_all(as_it_is, &part, record, None)?;
    let mut best: Option<WhatIf> = None;
    for (edit, _) in tried.iter().take(CONFIRMED) {
        let found = confirm(as_it_is, edit)?;
        if best.as_ref().is_none_or(|best| found.gain > best.gain) {
            best = Some(found);
        }
    }
    let Some(mut best) = best else {
        bail!("there is no other layout of `{ty}` to try: its members cannot be moved, or it has one alone");
    };
    best.tried = tried.into_iter().map(|(edit, gain)| Tried { edit: edit.to_string(), gain }).collect();
    Ok(best)
}

/// Tries layouts of the types that a program waits for most, and tells which are worth it.
pub fn advise(as_it_is: &AsItIs, types: usize) -> Result<Advice> {
    let charts = charts(as_it_is.trace.sites(), &as_it_is.profile);
    let noise = as_it_is.noise()?;
    let part = as_it_is.question().part(PART)?;
    let mut advice = Advice {
        trace: as_it_is.trace.directory().display().to_string(),
        machine: as_it_is.machine.name.clone(),
        noise: noise.range(),
        worth_it: Vec::new(),
        rejected: Vec::new(),
        structures: drawn(as_it_is, &charts),
    };
    for (name, record) in waited_for(as_it_is).into_iter().take(types) {
        let by_rules = charts.iter().find(|chart| chart.name == name).and_then(Chart::edit);
        let mut tried = try_all(as_it_is, &part, record, by_rules)?.into_iter();
        // The best one is replayed in full; the next one only where that disappoints.
        let mut is_found = false;
        for (edit, gain) in tried.by_ref().take(2) {
            if is_found || noise.verdict(1.0, 1.0 - gain) != Verdict::WorthIt {
                advice.rejected.push(rejected(&edit, gain, noise.verdict(1.0, 1.0 - gain), false));
                continue;
            }
            let found = confirm(as_it_is, &edit)?;
            if found.verdict == Verdict::WorthIt {
                advice.worth_it.push(found);
                is_found = true;
            } else {
                advice.rejected.push(rejected(&edit, found.gain, found.verdict, true));
            }
        }
        for (edit, gain) in tried {
            advice.rejected.push(rejected(&edit, gain, noise.verdict(1.0, 1.0 - gain), false));
        }
    }
    advice.worth_it.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    advice.rejected.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(advice)
}

/// Returns what the first accesses of a trace say of the type that it waits for most, in a sentence.
pub fn glance(as_it_is: &AsItIs) -> Result<String> {
    let directory = as_it_is.trace.directory().display();
    let Some((name, record)) = waited_for(as_it_is).into_iter().next() else {
        return Ok("nothing to gain from layout here: no type is waited for".to_string());
    };
    let by_rules =
        charts(as_it_is.trace.sites(), &as_it_is.profile).into_iter().find(|chart| chart.name == name);
    let mut edits = candidates(as_it_is.trace.sites(), &as_it_is.profile, record);
    edits.retain(|edit| {
        matches!(edit, Edit::Split { by: Link::Parallel | Link::Index, .. } | Edit::Soa { .. })
    });
    edits.truncate(3);
    edits.extend(by_rules.and_then(|chart| chart.edit()));
    let part = as_it_is.question().part(GLANCE)?;
    let tried = try_edits(as_it_is, &part, edits)?;
    let seen = count(part.accesses);
    Ok(match tried.first() {
        Some((edit, gain)) if *gain >= GLANCE_LEAST => format!(
            "{edit}: {} fewer cycles in the first {seen} accesses; all of them, and others: memlode advise {directory}",
            percent_of(*gain)
        ),
        _ => format!(
            "nothing to gain from layout here, as the first {seen} accesses tell; more is tried by: memlode advise {directory}"
        ),
    })
}

fn rejected(edit: &Edit, gain: f64, verdict: Verdict, is_whole: bool) -> Rejected {
    Rejected { edit: edit.to_string(), gain, verdict, is_whole }
}

fn confirm(as_it_is: &AsItIs, edit: &Edit) -> Result<WhatIf> {
    let edits = [edit.clone()];
    as_it_is.under(&edits, &as_it_is.plan(&edits)?)
}

/// Tries the candidates of a record, and one besides; those that gain most come first.
fn try_all(
    as_it_is: &AsItIs,
    part: &TraceStart,
    record: LayoutId,
    besides: Option<Edit>,
) -> Result<Vec<Gain>> {
    let mut edits = candidates(as_it_is.trace.sites(), &as_it_is.profile, record);
    edits.extend(besides.filter(|edit| !edits.contains(edit)));
    try_edits(as_it_is, part, edits)
}

/// Tries edits, each by itself; those that gain most come first.
fn try_edits(as_it_is: &AsItIs, part: &TraceStart, edits: Vec<Edit>) -> Result<Vec<Gain>> {
    let question = as_it_is.question();
    let mut tried: Vec<Gain> = Vec::new();
    for edit in edits {
        // What cannot be made is no candidate.
        let Ok(plan) = as_it_is.plan(std::slice::from_ref(&edit)) else { continue };
        let cycles = part.under(&question, &plan, None)?;
        tried.push((edit, 1.0 - cycles.run / part.placed.run.max(1.0)));
    }
    tried.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(tried)
}

/// Records by how long the program waits for them, the longest first.
fn waited_for(as_it_is: &AsItIs) -> Vec<(String, LayoutId)> {
    let names = as_it_is.trace.sites();
    let latencies = latencies(&as_it_is.machine);
    let mut by_type: Vec<(StringId, u64)> = Vec::new();
    let mut total = Counts::default();
    for cell in &as_it_is.profile.cells {
        total += &cell.counts;
        let Some(ty) = names.site(cell.site).ty.map(|ty| names.ty(ty).name) else { continue };
        let cycles = cell.counts.stall_cycles(&latencies);
        match by_type.iter_mut().find(|(known, _)| *known == ty) {
            Some((_, sum)) => *sum += cycles,
            None => by_type.push((ty, cycles)),
        }
    }
    by_type.sort_by_key(|&(ty, cycles)| (std::cmp::Reverse(cycles), ty));
    let least = total.stall_cycles(&latencies) as f64 * LEAST_SHARE;
    let enough = by_type.into_iter().filter(|&(_, cycles)| cycles as f64 >= least && cycles > 0);
    let record = |(ty, _): (StringId, u64)| {
        let name = names.string(ty).to_string();
        let record = records_named(names, &name).first().copied()?;
        Some((name, record))
    };
    enough.filter_map(record).collect()
}

/// Charts with what their structures are made of.
fn drawn(as_it_is: &AsItIs, charts: &[Chart]) -> Vec<StructureChart> {
    let records = memlode_report::records(as_it_is.trace.sites());
    let draw = |chart: &Chart| {
        let layout = records.iter().find(|record| record.name == chart.name && !record.incomplete)?;
        let members = chart.members.iter().map(|member| MarkedMember {
            member: member.name.clone(),
            bytes: member.bytes,
            accesses: member.accesses,
            is_cold: member.is_cold,
        });
        Some(StructureChart {
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
