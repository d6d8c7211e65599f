//! Layouts that are tried one after the other: of a type, or of those that a program waits for.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use memlode_attribute::CostModel;
use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::place::{place, what};
use memlode_attribute::sharing::OwnMember;
use memlode_layout::{Edit, Link};
use memlode_report::text::{count, percent_of};
use memlode_report::{
    Advice, AliasedLoads, Data, LatentSharing, Located, MarkedMember, PairedLines, Rejected, Sources,
    StructureChart, Tried, WhatIf,
};
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::{SiteId, StringId};
use memlode_whatif::candidates::candidates;
use memlode_whatif::hot_cold::{Chart, charts};
use memlode_whatif::noise::Verdict;
use memlode_whatif::plan::Plan;
use memlode_whatif::plan::records_named;
use memlode_whatif::predict::{TraceStart, Unpredictable, side_by_side};
use memlode_whatif::proposals::aliasing::{conflicts_of, is_cure};
use memlode_whatif::proposals::threads::{Apart, Contended};
use memlode_whatif::proposals::{Proposal, least_cycles};

use crate::analyse::threads;
use crate::next::NextCommands;
use crate::whatif::AsItIs;

/// So many of those of a type are confirmed on the whole trace.
const CONFIRMED: usize = 3;

/// Accesses of the part of a trace on which candidates are tried.
const PART: u64 = 8_000_000;

/// The same where somebody waits for the end of a report, and what a gain there must exceed.
const GLANCE: u64 = 1_000_000;
const GLANCE_LEAST: f64 = 0.05;

/// A glance at the end of a report looks at one such part of a trace, and at no fewer accesses than this.
const GLANCE_PARTS: u64 = 32;
const GLANCE_SHORTEST: u64 = 50_000;

/// So many of those that did best at a glance are tried on more of the trace.
const SEMIFINAL: usize = 4;

/// Gains that differ by less of the run's cycles are about the same.
const ABOUT: f64 = 0.02;

/// So many proposals about objects are tried, at most.
const MOST_PROPOSALS: usize = 8;

/// Bytes by which objects of threads are shifted to see what they would lose elsewhere: what allocators align to, and more.
const SHIFTS: [u64; 3] = [16, 32, 48];

/// The part of the run's cycles from which on losses elsewhere are told.
const LATENT_LEAST: f64 = 0.05;

/// Edits that are made together.
type Edits = Vec<Edit>;

/// Edits, and the part of the cycles that they gain on a part of the trace.
type Gain = (Edits, f64);

/// Tries layouts of a type on a part of a trace, and the best of them on all of it.
pub fn search(as_it_is: &AsItIs, ty: &str) -> Result<WhatIf> {
    let Some(&record) = records_named(as_it_is.trace.sites(), ty).first() else {
        // Says which types there are.
        as_it_is.plan(&[Edit::Soa { structure: ty.to_string(), members: Vec::new() }])?;
        bail!("the trace has no type `{ty}`");
    };
    let part = as_it_is.question().part(PART, &as_it_is.profile)?;
    let tried = try_all(as_it_is, &part, record)?;
    let mut found: Vec<(Edits, WhatIf)> = Vec::new();
    for (edits, _) in tried.iter().take(CONFIRMED) {
        found.push((edits.clone(), confirm(as_it_is, edits)?));
    }
    let most = found.iter().map(|(_, found)| found.gain).fold(f64::NEG_INFINITY, f64::max);
    let about = found.into_iter().filter(|(_, found)| found.gain >= most - ABOUT);
    // The simplest change of those that gain about as much.
    let best =
        about.min_by(|(a, one), (b, other)| effort(a).cmp(&effort(b)).then(other.gain.total_cmp(&one.gain)));
    let Some((_, mut best)) = best else {
        bail!("there is no other layout of `{ty}` to try: its members cannot be moved, or it has one alone");
    };
    best.tried = tried.into_iter().map(|(edits, gain)| Tried { edit: written(&edits), gain }).collect();
    Ok(best)
}

/// Tries layouts of the types and objects that a program waits for most, and tells which are worth it.
pub fn advise(as_it_is: &AsItIs, types: usize, sources: &mut Sources) -> Result<Advice> {
    let charts = charts(as_it_is.trace.sites(), &as_it_is.profile);
    let noise = as_it_is.noise()?;
    let question = as_it_is.question();
    let glance = question.part(GLANCE, &as_it_is.profile)?;
    let all: u64 = as_it_is.trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
    let more = if all > glance.accesses { Some(question.part(PART, &as_it_is.profile)?) } else { None };
    let mut advice = Advice {
        trace: as_it_is.trace.directory().display().to_string(),
        machine: as_it_is.machine.name.clone(),
        noise: noise.range(),
        worth_it: Vec::new(),
        rejected: Vec::new(),
        latent: Vec::new(),
        pairs: Vec::new(),
        aliased: Vec::new(),
        structures: drawn(as_it_is, &charts),
    };
    for rivals in rivals(as_it_is, types, &charts) {
        let tried = simplest_first(try_in_turn(as_it_is, &glance, more.as_ref(), rivals)?, noise.range());
        // The best one is replayed in full; the next one only where that disappoints.
        let mut is_found = false;
        for (number, (edits, gain)) in tried.into_iter().enumerate() {
            let verdict = noise.verdict(1.0, 1.0 - gain);
            if is_found || number >= 2 || verdict != Verdict::WorthIt {
                advice.rejected.push(rejected(&edits, gain, verdict, false));
                continue;
            }
            let found = confirm(as_it_is, &edits)?;
            if found.verdict == Verdict::WorthIt {
                advice.worth_it.push(located(found, sources, Some(0)));
                is_found = true;
            } else {
                advice.rejected.push(rejected(&edits, found.gain, found.verdict, true));
            }
        }
    }
    try_for_threads(as_it_is, &mut advice, sources)?;
    let apart = as_it_is.apart_now();
    advice.latent = latent(as_it_is, &apart)?;
    advice.pairs = in_pairs(as_it_is, &apart)?;
    advice.aliased = aliased(as_it_is, more.as_ref().unwrap_or(&glance))?;
    advice.worth_it.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    advice.rejected.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(advice)
}

/// Tries edits of what threads take from each other on the whole trace, which has few of them.
fn try_for_threads(as_it_is: &AsItIs, advice: &mut Advice, sources: &mut Sources) -> Result<()> {
    for Contended { site, member, proposals } in as_it_is.contended() {
        let mut tried = Vec::new();
        for Proposal { edits, .. } in proposals {
            let known = written(&edits);
            // What saves misses besides was tried for these, and is replayed with what threads lose.
            if !advice.worth_it.iter().any(|found| found.edits.join("; ") == known)
                && let Ok(plan) = as_it_is.plan(&edits)
            {
                advice.rejected.retain(|rejected| rejected.edit != known);
                let found = as_it_is.under(&edits, &plan)?;
                tried.push((found.gain, edits, found));
            }
        }
        let most = tried.iter().map(|(gain, ..)| *gain).fold(f64::NEG_INFINITY, f64::max);
        tried.sort_by(|(gain, a, _), (other, b, _)| {
            let is_less = |gain: f64| gain < most - ABOUT;
            is_less(*gain).cmp(&is_less(*other)).then(effort(a).cmp(&effort(b))).then(other.total_cmp(gain))
        });
        let mut is_found = false;
        for (gain, edits, found) in tried {
            if found.verdict == Verdict::WorthIt && !is_found {
                let line = line_of(as_it_is, &found, site);
                let mut found = located(found, sources, line);
                if let (Some(at), Some(member)) = (&mut found.at, member) {
                    at.access.data = own_data(as_it_is, member);
                }
                advice.worth_it.push(found);
                is_found = true;
            } else {
                advice.rejected.push(rejected(&edits, gain, found.verdict, true));
            }
        }
    }
    Ok(())
}

/// Objects that threads would take from each other if they began elsewhere: an allocator or a linker may put them there any day.
fn latent(as_it_is: &AsItIs, apart: &[Apart]) -> Result<Vec<LatentSharing>> {
    let cycles = as_it_is.cycles();
    let mut found = Vec::new();
    for apart in apart {
        let mut most = (0, 0.0);
        for by in SHIFTS {
            let lost = as_it_is.lost_under(&[moved(apart, by)])? - cycles.lost;
            if lost > most.1 {
                most = (by, lost);
            }
        }
        let share = most.1 / (cycles.run + most.1).max(1.0);
        if share >= LATENT_LEAST {
            found.push(LatentSharing {
                object: apart.object.clone(),
                shifted_by: most.0,
                lost_share: share,
                edit: apart.at_lines().to_string(),
            });
        }
    }
    Ok(found)
}

/// Objects of which threads write neighbouring lines, which some processors fetch in pairs.
fn in_pairs(as_it_is: &AsItIs, apart: &[Apart]) -> Result<Vec<PairedLines>> {
    let cycles = as_it_is.cycles();
    let mut found = Vec::new();
    for apart in apart {
        let edit = apart.at_pairs();
        if as_it_is.plan(std::slice::from_ref(&edit)).is_err() {
            continue;
        }
        let [now, then] = [moved(apart, 0), edit.clone()].map(|edit| as_it_is.lost_in_pairs(&[edit]));
        let lost = now? - then?;
        let share = lost / (cycles.run + lost).max(1.0);
        if share >= LATENT_LEAST {
            found.push(PairedLines { object: apart.object.clone(), edit: edit.to_string() });
        }
    }
    Ok(found)
}

fn moved(apart: &Apart, by: u64) -> Edit {
    Edit::Shift { object: apart.object.clone(), by }
}

/// Buffers whose loads agree with stores to another one in the low 12 bits, and no more if one of them begins later.
fn aliased(as_it_is: &AsItIs, part: &TraceStart) -> Result<Vec<AliasedLoads>> {
    let question = as_it_is.question();
    let rows = question.aliases(part, None)?;
    let mut found = Vec::new();
    for buffers in as_it_is.aliased(&rows, part.accesses) {
        for edit in &buffers.shifts {
            let Ok(plan) = as_it_is.plan(std::slice::from_ref(edit)) else { continue };
            let left = conflicts_of(&question.aliases(part, Some(&plan))?, &buffers);
            if is_cure(buffers.conflicts, left) {
                found.push(AliasedLoads {
                    load: buffers.load.1.clone(),
                    store: buffers.store.1.clone(),
                    accesses: part.accesses,
                    conflicts: buffers.conflicts,
                    conflicts_left: left,
                    edit: edit.to_string(),
                });
                break;
            }
        }
    }
    Ok(found)
}

/// Adds a line of those that an edit changes.
fn located(mut found: WhatIf, sources: &mut Sources, line: Option<usize>) -> WhatIf {
    let access = line.and_then(|at| found.comparison.lines.get(at)).map(|line| line.subject.clone());
    found.at = access.map(|access| Located { source: sources.around(&access.position), access });
    found
}

/// A member of a type of the program: a library's type that it is made of says less.
fn own_data(as_it_is: &AsItIs, OwnMember { ty, member }: OwnMember) -> Data {
    let name = |id: StringId| Some(as_it_is.trace.sites().string(id).to_string());
    Data { ty: name(ty), member: name(member), variable: None }
}

/// Returns the place among the changed lines of a site's.
fn line_of(as_it_is: &AsItIs, found: &WhatIf, site: SiteId) -> Option<usize> {
    let names = as_it_is.trace.sites();
    let site = names.site(site);
    let (what, line) = (what(names, site, true), place(names, site).line);
    let name = |id: Option<StringId>| id.map(|id| names.string(id));
    found.line_of((names.string(line.function), line.line), name(what.member), name(what.variable))
}

/// Edits by what they compete for: a type, or objects. Of each group one is advised at most.
fn rivals(as_it_is: &AsItIs, types: usize, charts: &[Chart]) -> Vec<Vec<Edits>> {
    let names = as_it_is.trace.sites();
    let mut groups: Vec<(Vec<String>, Vec<Edits>)> = Vec::new();
    for (name, record) in waited_for(as_it_is).into_iter().take(types) {
        let mut edits = candidates(names, &as_it_is.profile, record, as_it_is.machine.line_bytes.into());
        let by_rules = charts.iter().find(|chart| chart.name == name).and_then(Chart::edit);
        edits.extend(by_rules.filter(|edit| !edits.contains(edit)));
        groups.push((vec![name], edits.into_iter().map(|edit| vec![edit]).collect()));
    }
    for proposal in as_it_is.proposals().into_iter().take(MOST_PROPOSALS) {
        let subjects: Vec<String> = proposal.subject.split(", ").map(str::to_string).collect();
        match groups.iter_mut().find(|(known, _)| known.iter().any(|name| subjects.contains(name))) {
            Some((known, edits)) => {
                known.extend(subjects);
                edits.push(proposal.edits);
            }
            None => groups.push((subjects, vec![proposal.edits])),
        }
    }
    groups.into_iter().map(|(_, edits)| edits).collect()
}

/// Tries edits on a little of a trace, and those that do best there on more of it; those that gain most come first.
fn try_in_turn(
    as_it_is: &AsItIs,
    glance: &TraceStart,
    part: Option<&TraceStart>,
    edits: Vec<Edits>,
) -> Result<Vec<Gain>> {
    let mut tried = try_edits(as_it_is, glance, edits)?;
    let tells = tried.first().is_some_and(|(_, gain)| *gain >= GLANCE_LEAST);
    let Some(part) = part.filter(|part| part.chunks > glance.chunks) else { return Ok(tried) };
    // A beginning in which nothing gains may not be what the program does later.
    let rest = tried.split_off(if tells { SEMIFINAL.min(tried.len()) } else { tried.len() });
    let mut again = try_edits(as_it_is, part, tried.into_iter().map(|(edits, _)| edits).collect())?;
    again.extend(rest);
    Ok(again)
}

/// Puts the simplest change first of those that gain about as much as the best.
fn simplest_first(mut tried: Vec<Gain>, range: f64) -> Vec<Gain> {
    let best = tried.first().map_or(0.0, |(_, gain)| *gain);
    let enough = best - range.max(ABOUT);
    let about = tried.iter().take_while(|(_, gain)| *gain >= enough).count();
    tried[..about].sort_by(|(a, gain), (b, other)| effort(a).cmp(&effort(b)).then(other.total_cmp(gain)));
    tried
}

/// Grades how much of a program edits change: declarations alone, what makes the objects, or each use of them.
fn effort(edits: &[Edit]) -> u8 {
    let one = |edit: &Edit| match edit {
        Edit::Reorder { .. } | Edit::Pad { .. } | Edit::Align { .. } => 0,
        Edit::Shift { .. } | Edit::Remove { .. } | Edit::Pages { .. } | Edit::Place { .. } => 1,
        Edit::Split { .. } | Edit::Soa { .. } | Edit::Group { .. } | Edit::PerThread { .. } => 2,
        Edit::Pack { .. } | Edit::Narrow { .. } | Edit::Index { .. } | Edit::Aosoa { .. } => 3,
    };
    edits.iter().map(one).max().unwrap_or(0)
}

/// Returns what the first accesses of a trace say of what it waits for most, in a sentence. It takes no longer than `budget`, as far as a
/// first try tells.
pub fn glance(as_it_is: &AsItIs, next: &NextCommands, budget: Duration) -> Result<String> {
    let (started, advise) = (Instant::now(), next.of("advise"));
    if let Some(contended) = as_it_is.contended().into_iter().next() {
        let cycles = as_it_is.cycles();
        return Ok(format!(
            "threads lose {} of the cycles to lines that they take from each other; `{}` may save that, to be replayed by: {advise}",
            percent_of(cycles.lost / cycles.run.max(1.0)),
            written(&contended.proposals[0].edits)
        ));
    }
    let Some((name, record)) = waited_for(as_it_is).into_iter().next() else {
        return Ok("nothing to gain from layout here: no type is waited for".to_string());
    };
    let by_rules =
        charts(as_it_is.trace.sites(), &as_it_is.profile).into_iter().find(|chart| chart.name == name);
    let mut edits =
        candidates(as_it_is.trace.sites(), &as_it_is.profile, record, as_it_is.machine.line_bytes.into());
    edits.retain(|edit| {
        matches!(edit, Edit::Split { by: Link::Parallel | Link::Index, .. } | Edit::Soa { .. })
    });
    edits.truncate(3);
    edits.extend(by_rules.and_then(|chart| chart.edit()));
    let whole: u64 = as_it_is.trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
    let part =
        as_it_is.question().part((whole / GLANCE_PARTS).clamp(GLANCE_SHORTEST, GLANCE), &as_it_is.profile)?;
    // As it is and placed anew.
    let each = started.elapsed() / 2;
    let mut tried: Vec<Gain> = Vec::new();
    for some in edits.chunks(threads()) {
        if !tried.is_empty() && started.elapsed() + each > budget {
            break;
        }
        tried.extend(try_edits(as_it_is, &part, some.iter().map(|edit| vec![edit.clone()]).collect())?);
    }
    let seen = count(part.accesses);
    Ok(match tried.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        Some((edits, gain)) if *gain >= GLANCE_LEAST => format!(
            "{}: {} fewer cycles in the first {seen} accesses; all of them, and others: {advise}",
            written(edits),
            percent_of(*gain)
        ),
        _ => format!(
            "nothing to gain from layout here, as the first {seen} accesses tell; more is tried by: {advise}"
        ),
    })
}

fn rejected(edits: &[Edit], gain: f64, verdict: Verdict, is_whole: bool) -> Rejected {
    Rejected { edit: written(edits), gain, verdict, is_whole }
}

/// Edits in their short form.
fn written(edits: &[Edit]) -> String {
    edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn confirm(as_it_is: &AsItIs, edits: &[Edit]) -> Result<WhatIf> {
    as_it_is.under(edits, &as_it_is.plan(edits)?)
}

/// Tries the candidates of a record; those that gain most come first.
fn try_all(as_it_is: &AsItIs, part: &TraceStart, record: LayoutId) -> Result<Vec<Gain>> {
    let edits =
        candidates(as_it_is.trace.sites(), &as_it_is.profile, record, as_it_is.machine.line_bytes.into());
    try_edits(as_it_is, part, edits.into_iter().map(|edit| vec![edit]).collect())
}

/// Tries each of some changes by itself; those that gain most come first.
fn try_edits(as_it_is: &AsItIs, part: &TraceStart, changes: Vec<Edits>) -> Result<Vec<Gain>> {
    // What cannot be made is no candidate.
    let planned = changes.into_iter().filter_map(|edits| Some((as_it_is.plan(&edits).ok()?, edits)));
    let planned: Vec<(Plan, Edits)> = planned.collect();
    let cycles =
        side_by_side(&as_it_is.question(), &planned, |question, (plan, _)| part.under(question, plan, None));
    let mut tried: Vec<Gain> = Vec::new();
    for ((_, edits), cycles) in planned.into_iter().zip(cycles) {
        match cycles {
            Ok(cycles) => tried.push((edits, 1.0 - cycles.run / part.placed.run.max(1.0))),
            Err(Unpredictable::Placement(_)) => {}
            Err(why) => return Err(why.into()),
        }
    }
    tried.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(tried)
}

/// Records by how long the program waits for them, the longest first.
fn waited_for(as_it_is: &AsItIs) -> Vec<(String, LayoutId)> {
    let names = as_it_is.trace.sites();
    let costs = CostModel::new(&as_it_is.profile, names, &as_it_is.machine);
    let mut by_type: Vec<(StringId, f64)> = Vec::new();
    for (number, cell) in as_it_is.profile.cells.iter().enumerate() {
        let Some(ty) = names.site(cell.site).ty.map(|ty| names.ty(ty).name) else { continue };
        let cycles = costs.of(number).cycles();
        match by_type.iter_mut().find(|(known, _)| *known == ty) {
            Some((_, sum)) => *sum += cycles,
            None => by_type.push((ty, cycles)),
        }
    }
    by_type.sort_by(|(a, cycles), (b, others)| others.total_cmp(cycles).then(a.cmp(b)));
    let least = least_cycles(costs.total().cycles(), as_it_is.cycles().run);
    let enough = by_type.into_iter().filter(|&(_, cycles)| cycles >= least && cycles > 0.0);
    let fetched = FetchedCrates::of(names);
    let record = |(ty, _): (StringId, f64)| {
        let name = Some(names.string(ty).to_string()).filter(|name| !fetched.has_type(name))?;
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
