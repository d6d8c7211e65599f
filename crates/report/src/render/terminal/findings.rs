//! Findings in words: the data and their cost, then the facts, then the change to make.

use std::fmt::Write;

use memlode_attribute::WaitKind;
use memlode_layout::{Edit as Layout, edits_from_text};
use rustc_hash::FxHashMap;

use super::Style;
use super::names::{data_label, home_label, place_label, wrappers};
use super::reasons::because;
use super::sample::{not_told_apart, stall_share, with_error};
use super::shared;
use super::source::source;
use super::style::{apart, together as together_text};
use crate::model::{
    Access, AdvisedEdit, Caller, Data, Density, Doubt, Edit, Evidence, Finding, Home, Object, Position,
    Report, Row, SharedObject,
};
use crate::ranked::{Ranked, ranked};
use crate::render::sentences::executions;
use crate::render::text::{brief, brief_members, bytes, count, percent, percent_of, printable};

/// Findings shown on a screen.
const FINDINGS: usize = 5;

/// If threads lose this part of their time to each other, the reader is pointed to the details.
const WORTH_READING: f64 = 0.02;

/// The most lines shown of those into which a line was inlined.
const CALLERS: usize = 3;

/// The start of the fact that has a call path.
const ALLOCATED: &str = "in memory allocated at ";

/// Columns in front of a finding's facts.
const INDENT: usize = 4;

/// Returns the findings as text.
pub fn findings(report: &Report, style: Style) -> String {
    let mut out = String::new();
    let findings = &report.findings;
    let ranked = ranked(report);
    if ranked.is_empty() {
        let _ = write!(out, "\n{}", style.paragraph("Findings", &nothing(report)));
        return out;
    }
    let is_mixed = ranked.iter().any(|finding| matches!(finding, Ranked::Shared(_)));
    let run_cycles = is_mixed.then_some(report.run_cycles);
    let heading = match &report.trace.sample {
        None if is_mixed => "Findings, by modelled cycles that threads wait or lose to each other",
        None => "Findings, by modelled cycles of waiting for data",
        Some(_) => "Findings in the sample, by modelled cycles of waiting for data",
    };
    let _ = writeln!(out, "\n{}", style.heading(heading));
    let mut edits: Vec<&AdvisedEdit> = report.advised.iter().collect();
    let mut paths = FxHashMap::default();
    for (number, ranked) in (1..).zip(ranked.iter().take(FINDINGS)) {
        let finding = match ranked {
            Ranked::Waits(finding) => finding,
            Ranked::Shared(object) => {
                out += &shared::finding(number, report, object, &mut edits, style);
                continue;
            }
        };
        headline(&mut out, (number, finding), run_cycles, style);
        out += &finding.source.as_ref().map(|found| source(found, style)).unwrap_or_default();
        for fact in facts(report, finding) {
            let fact = match fact.starts_with(ALLOCATED) {
                true => told_once(&mut paths, number, fact),
                false => fact,
            };
            out += &style.indented(INDENT, &fact);
        }
        if let Some(edit) = arrow(&mut edits, finding) {
            out += &style.advice(&style.indented(INDENT, &edit));
        }
    }
    if ranked.len() > FINDINGS {
        let _ = writeln!(out, "   and {} smaller ones", ranked.len() - FINDINGS);
    }
    for Doubt::Lead { value, standard_error } in findings.first().map_or(&[][..], |first| &first.doubt) {
        if let Some(note) = not_told_apart(*value, *standard_error) {
            let _ = writeln!(out, "   {note}");
        }
    }
    out
}

/// A call path stands where it is first told; behind it, the number of that finding does.
fn told_once(paths: &mut FxHashMap<String, usize>, number: usize, fact: String) -> String {
    match *paths.entry(fact.clone()).or_insert(number) {
        first if first == number => fact,
        first => format!("in memory allocated as in F{first}"),
    }
}

/// The objects whose lines threads take from each other, as far as they are findings.
pub fn listed(report: &Report) -> Vec<&SharedObject> {
    let shown = ranked(report).into_iter().take(FINDINGS);
    let shared = |finding| match finding {
        Ranked::Shared(object) => Some(object),
        Ranked::Waits(_) => None,
    };
    shown.filter_map(shared).collect()
}

/// Returns a finding as unwrapped sentences: the data, its line and its share of the wait, the
/// facts, and the advised edit, if there is one.
pub fn finding_sentences(report: &Report, finding: &Finding) -> Vec<String> {
    let Access { data, position } = &finding.subject;
    let (data, place) = (data_label(data, 0).whole(), place_label(position, 0).whole());
    let share = stall_share(finding.cost.wait_share, finding.cost.standard_error);
    let head = format!("{data} at {place}: {share} of the wait");
    let edit = arrow(&mut report.advised.iter().collect(), finding);
    let all = [head].into_iter().chain(facts(report, finding)).chain(edit);
    all.map(|sentence| apart(&sentence)).collect()
}

/// `F1  arc.state  before.c:51 price_block  56% of the wait  3fa9c21b`; where that is too long, the line comes below.
///
/// If losses of threads are listed as well, shares are of the run's cycles.
fn headline(out: &mut String, (number, finding): (usize, &Finding), run_cycles: Option<f64>, style: Style) {
    let share = match run_cycles {
        Some(cycles) => format!("{} of the cycles", percent_of(finding.cost.wait_cycles / cycles.max(1.0))),
        None => {
            let share = stall_share(finding.cost.wait_share, finding.cost.standard_error);
            format!("{share} of the wait")
        }
    };
    let Access { data, position } = &finding.subject;
    let (data, place) = (data_label(data, 0), place_label(position, 0));
    let handle = &finding.handle;
    let room = style.width.saturating_sub(INDENT + 2 + 2 + share.chars().count() + 2 + handle.len());
    if data.width() + place.least_width() <= room {
        let place = place.fit(room - data.width());
        let (data, place) = (style.culprit(&data.whole()), style.heading(&place));
        let _ = writeln!(out, "F{number:<2} {data}  {place}  {}  {handle}", style.heading(&share));
    } else {
        let data = style.culprit(&data.fit(room));
        let _ = writeln!(out, "F{number:<2} {data}  {}  {handle}", style.heading(&share));
        let place = place.fit(style.width.saturating_sub(INDENT));
        let _ = writeln!(out, "    {}", style.heading(&place));
    }
}

/// A sentence for each fact.
pub fn facts(report: &Report, finding: &Finding) -> Vec<String> {
    let numbers = &finding.numbers;
    let errors = numbers.standard_errors.as_ref();
    let ratios = errors.and_then(|errors| errors.miss_ratios.as_ref());
    let misses = report.machine.levels.iter().enumerate().map(|(i, level)| {
        let error = ratios.map(|ratios| ratios.of(i));
        format!("{} miss {}", with_error(&percent(numbers.misses.of(i), numbers.accesses), error), level.name)
    });
    let misses = misses.collect::<Vec<_>>().join(", ");
    let mut facts = vec![format!("{} accesses, of which {misses}", count(numbers.accesses))];
    for evidence in &finding.evidence {
        match evidence {
            Evidence::Together { lines } => facts.extend(together(finding, lines)),
            Evidence::Callers { through, divided } => facts.push(callers(through, divided)),
            Evidence::Objects { objects } => facts.extend(memory(objects)),
            Evidence::Waits { how, .. } if !is_told_by_instruction(finding) => {
                facts.push(waits(*how).to_string());
            }
            Evidence::Waits { .. } => {}
            Evidence::PastCaches {} => facts.push(
                "stores past the caches: each miss is a line that goes to memory, and they wait where more do than memory \
                 takes"
                    .to_string(),
            ),
            Evidence::SoftwarePrefetch {} => facts.push(
                "software prefetches: they wait for nothing, and cost the bandwidth that their lines take".to_string(),
            ),
            // What the code looks like is not what was seen.
            Evidence::Addresses { .. } => {}
            Evidence::Prefetch { accesses_ahead, latency_cycles, access_cycles } => facts.push(format!(
                "software prefetch can help where the address is known {accesses_ahead} accesses ahead: misses are answered \
                 after {latency_cycles} cycles, and each access takes {access_cycles:.0} of instructions"
            )),
            Evidence::Density(density) => match &finding.edit {
                Some(Edit::Split { members, .. }) => facts.push(used(density) + &alone(density, members)),
                None if is_mostly_used(density) && !do_lines_tell_more(density) => {}
                None => facts.push(used(density)),
            },
            Evidence::Unrecorded { places } => {
                facts.push(format!("not recorded at this line, by executions: {}", executions(places)));
            }
        }
    }
    facts
}

/// `of which 40% here, and 36% at line 91 of the same function (p (char))`.
fn together(finding: &Finding, lines: &[Row<Access>]) -> Option<String> {
    let share = |numbers: &crate::model::Numbers| {
        let error = numbers.standard_errors.as_ref().map(|errors| errors.wait_share);
        stall_share(numbers.wait_share, error)
    };
    let next = lines.first()?;
    let (here, there) = (&finding.subject.position, &next.subject.position);
    let line = match there.line {
        _ if is_same_line(here, there) => "at the same line".to_string(),
        Some(line) if here.linkage_name == there.linkage_name => {
            format!("at line {line} of the same function")
        }
        _ => format!("at {}", together_text(&place_label(there, 0).whole())),
    };
    let more = match lines.len() - 1 {
        0 => String::new(),
        1 => ", the rest for 1 more line".to_string(),
        n => format!(", the rest for {n} more lines"),
    };
    Some(format!(
        "of this, {} here, {} for {} {line}{more}",
        share(&finding.numbers),
        share(&next.numbers),
        data_label(&next.subject.data, 0).whole(),
    ))
}

fn is_same_line(one: &Position, other: &Position) -> bool {
    (&one.file, one.line) == (&other.file, other.line)
}

/// `called at list.c:40 sum ← main.c:12 main`, or with shares where calls divide: `called at main.c:12 main (72%), main.c:20
/// main (28%)`.
fn callers(through: &[Position], divided: &[Caller]) -> String {
    let one = |position: &Position| together_text(&place_label(position, 0).whole());
    let path: Vec<String> = through.iter().map(one).collect();
    let share = |caller: &Caller| {
        let call = caller.call.as_ref().map_or_else(|| together_text("not inlined"), &one);
        format!("{call} {}", together_text(&format!("({})", percent_of(caller.share))))
    };
    let shown: Vec<String> = divided.iter().take(CALLERS).map(share).collect();
    let more = match divided.len().saturating_sub(CALLERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let path = path.join(&format!(" {}", together_text("← ")));
    let between = if path.is_empty() || shown.is_empty() { "" } else { ", and that at " };
    format!("called at {path}{between}{}{more}", shown.join(", "))
}

/// `memory allocated at arena.cc:59 grow ← main (548 blocks, 2.14 MiB) and at 2 other places`.
fn memory(objects: &[Row<Object>]) -> Option<String> {
    let first = &objects.first()?.subject;
    let made = match (first.count, &first.home) {
        (0, _) | (_, Home::Global { .. }) => String::new(),
        (1, _) => format!(" (1 block of {})", bytes(first.bytes)),
        (n, _) => format!(" ({} blocks, {})", count(n), bytes(first.bytes)),
    };
    let others = match objects.len() - 1 {
        0 => String::new(),
        1 => " and at 1 other place".to_string(),
        n => format!(" and at {n} other places"),
    };
    let wrappers = wrappers(&first.home).iter().map(|name| together_text(name)).collect::<Vec<_>>();
    let through = match &wrappers[..] {
        [] => String::new(),
        wrappers => format!(" through {}", wrappers.join(", ")),
    };
    // A step of the path, and what was made there, are not broken.
    let home = home_label(&first.home, 0).whole();
    let home =
        home.split(" ← ").map(together_text).collect::<Vec<_>>().join(&format!(" {}", together_text("← ")));
    let made = if made.is_empty() { made } else { format!(" {}", together_text(made.trim_start())) };
    Some(match first.home {
        Home::Heap { .. } => format!("{ALLOCATED}{home}{through}{made}{others}"),
        Home::Stack { .. } => format!("on the {home}{others}"),
        Home::Global { .. } => format!("in {home}{others}"),
        Home::Unknown => {
            format!("in {home}{others}; if a library made it, `memlode run --library-blocks` tells")
        }
    })
}

/// Returns whether the kind of instruction shows how the accesses wait, and the finding has it.
fn is_told_by_instruction(finding: &Finding) -> bool {
    let is_told =
        |evidence: &Evidence| matches!(evidence, Evidence::PastCaches {} | Evidence::SoftwarePrefetch {});
    finding.evidence.iter().any(is_told)
}

fn waits(how: WaitKind) -> &'static str {
    match how {
        WaitKind::Stored => "stores: they wait where more lines are written than memory takes",
        WaitKind::Streamed => "streaming: lines are fetched ahead, and cost the bandwidth that they take",
        WaitKind::Chained => "pointer chasing: each miss must finish before the next can start",
        WaitKind::Overlapping => "jumps that do not depend on each other: their misses can overlap",
    }
}

/// Why there are no findings.
fn nothing(report: &Report) -> String {
    let wait = &report.total.numbers.wait;
    if wait.instruction_cycles == 0.0 {
        return "none: no line stands out.".into();
    }
    let all = wait.cycles + wait.instruction_cycles;
    let share = wait.cycles / all;
    let of_caches = percent_of(share);
    let lost = report.sharing.as_ref().map_or(0.0, |found| found.ms / (found.ms + found.rest_ms));
    if lost >= share.max(WORTH_READING) {
        return format!(
            "none for one thread by itself: misses of caches cost {of_caches} of its modelled cycles. What threads lose to each \
             other is more, and follows."
        );
    }
    if report.sharing.as_ref().is_some_and(|found| !found.locks.is_empty()) {
        return format!(
            "none for one thread by itself: misses of caches cost {of_caches} of its modelled cycles. Several threads take a lock \
             often, and what that costs depends on who gets it when: the range follows."
        );
    }
    format!(
        "none. This run waits for data in about {of_caches} of its modelled cycles: another layout would gain little."
    )
}

/// `at most `, if only counts show which members are used.
fn bound(density: &Density) -> &'static str {
    if density.stays.is_some() { "" } else { "at most " }
}

/// A sentence about the part of a type that is used.
pub fn used(density: &Density) -> String {
    let Density { used_bytes, type_bytes, line_used_bytes, line_bytes, level, .. } = density;
    let (ty, members) = (brief(&density.ty), brief_members(&density.members));
    let (ty, members, bound) = (printable(&ty), printable(&members), bound(density));
    if is_mostly_used(density) {
        return format!(
            "in the mean {bound}{line_used_bytes} of the {line_bytes} bytes of a line of {ty} are used while it is in {level}: \
             {members}"
        );
    }
    let of_a_line = of_a_line(density).unwrap_or_default();
    format!(
        "{bound}{used_bytes} of the {type_bytes} bytes of each {ty} are used while it is in {level}: {members}{of_a_line}"
    )
}

/// True if less than a quarter of the type is left alone.
fn is_mostly_used(density: &Density) -> bool {
    4 * density.used_bytes > 3 * density.type_bytes
}

/// True if less than half of a line is used of the part that the used members would fill: each loop
/// uses some of them, or few of the elements.
fn do_lines_tell_more(density: &Density) -> bool {
    let Density { used_bytes, type_bytes, line_used_bytes, line_bytes, .. } = density;
    2 * line_used_bytes * type_bytes <= used_bytes * line_bytes
}

/// A sentence about the part of a line that is used, if it is far smaller than the members' part.
fn of_a_line(density: &Density) -> Option<String> {
    let Density { line_used_bytes, line_bytes, .. } = density;
    do_lines_tell_more(density).then(|| {
        format!(", and in the mean {}{line_used_bytes} of the {line_bytes} bytes of a line", bound(density))
    })
}

/// Returns a clause about members that are mostly used without the others, or in turn.
fn alone(density: &Density, members: &[String]) -> String {
    let others = at_other_times(density);
    let (are, alone) =
        (if members.len() == 1 { "is" } else { "are" }, printable(&brief_members(members)).into_owned());
    match &others[..] {
        [] if members.len() > 1 && do_lines_tell_more(density) => format!("; loops use {alone} in turn"),
        [] => String::new(),
        others => format!("; {alone} {are} mostly used without {}", printable(&brief_members(others))),
    }
}

/// Returns the sentence about the edit that is advised for a finding, and removes that edit from
/// `edits`: those that no earlier finding had.
pub fn arrow(edits: &mut Vec<&AdvisedEdit>, finding: &Finding) -> Option<String> {
    let at = edits.iter().position(|advised| is_about(advised, finding))?;
    Some(promise(edits.remove(at)))
}

/// Returns that sentence for an object that threads share.
pub fn arrow_of_shared(edits: &mut Vec<&AdvisedEdit>, object: &SharedObject) -> Option<String> {
    let subjects = |texts: &[String]| {
        let edits = edits_from_text(&texts.join("; ")).unwrap_or_default();
        edits.iter().map(|edit| edit.subject().to_string()).collect::<Vec<_>>()
    };
    let known = subjects(&object.edits);
    let is_about =
        |advised: &&AdvisedEdit| subjects(&advised.edits).iter().any(|subject| known.contains(subject));
    let at = edits.iter().position(is_about)?;
    Some(promise(edits.remove(at)))
}

/// An advised edit, its gain and the reason.
fn promise(advised: &AdvisedEdit) -> String {
    let AdvisedEdit { edits: texts, gain, constants, .. } = advised;
    let why = edits_from_text(&texts.join("; ")).map(|edits| format!(", as {}", because(&edits, constants)));
    let edit = printable(&texts.join("; ")).into_owned();
    format!("→ {edit}: {} fewer cycles{}", percent_of(*gain), why.unwrap_or_default())
}

/// Returns whether edits are about the data of a finding, or about one of the blocks that it is in,
/// or gain most at one of its lines: its data may go by another name there than the edited type,
/// such as that of a member, or of a library's type around it.
fn is_about(advised: &AdvisedEdit, finding: &Finding) -> bool {
    if advised.at.as_ref().is_some_and(|at| is_among(at, finding)) {
        return true;
    }
    let Ok(edits) = edits_from_text(&advised.edits.join("; ")) else { return false };
    let Data { ty, variable, .. } = &finding.subject.data;
    let objects = finding.evidence.iter().find_map(|evidence| match evidence {
        Evidence::Objects { objects } => Some(objects),
        _ => None,
    });
    let homes: Vec<String> =
        objects.into_iter().flatten().map(|row| home_label(&row.subject.home, 0).whole()).collect();
    edits.iter().any(|edit| match edit {
        Layout::Group { objects } => objects.iter().any(|object| Some(object) == variable.as_ref()),
        edit => {
            let subject = edit.subject();
            Some(subject) == ty.as_deref()
                || Some(subject) == variable.as_deref()
                || homes.iter().any(|home| home.split_whitespace().any(|word| word == subject))
        }
    })
}

/// Returns whether data and line are a finding's, or those of one of the lines beside it.
fn is_among(at: &Access, finding: &Finding) -> bool {
    let beside = finding.evidence.iter().flat_map(|evidence| match evidence {
        Evidence::Together { lines } => &lines[..],
        _ => &[],
    });
    let place = |position: &Position| (position.file.clone(), position.line, position.linkage_name.clone());
    let is_it = |other: &Access| other.data == at.data && place(&other.position) == place(&at.position);
    std::iter::once(&finding.subject).chain(beside.map(|row| &row.subject)).any(is_it)
}

/// Returns the members of a type that are used, but mostly not when that of the finding is.
pub fn at_other_times(density: &Density) -> Vec<&str> {
    let others = density.members.iter().filter(|member| !density.used_with.contains(member));
    others.map(String::as_str).collect()
}
