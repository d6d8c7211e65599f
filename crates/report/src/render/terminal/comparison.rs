//! Two reports side by side, as text.

use std::fmt::Write;

use memlode_whatif::noise::Verdict;

use super::advice::left_off;
use super::label::{Label, distinct};
use super::names::{access_label, data_label, object_label, type_label};
use super::{By, Style, plain_table, write_table};
use crate::model::{Change, Compared, Comparison, HandEdit, Level, Narrowed, Numbers, Status, WhatIf};
use crate::render::text::{bytes, count, percent_of, printable};

/// Returns the output of `memlode diff`.
pub fn comparison(found: &Comparison, by: &[By], style: Style) -> String {
    let mut out =
        style.paragraph("before", &printable(&format!("{} on {}", found.before.trace, found.before.machine)));
    out +=
        &style.paragraph("after", &printable(&format!("{} on {}", found.after.trace, found.after.machine)));
    totals(&mut out, found);
    if let Some(noise) = found.noise {
        let sentence = format!(
            "other placements of the same objects change a run by {} of its cycles at most: less is within noise",
            percent_of(noise)
        );
        out += &style.paragraph("noise", &sentence);
    }
    tables(&mut out, found, by, style);
    out
}

/// Returns the output of `memlode whatif`.
pub fn what_if(found: &WhatIf, by: &[By], style: Style) -> String {
    let mut out = String::new();
    for (number, edit) in found.edits.iter().enumerate() {
        out += &style.paragraph(if number == 0 { "edit" } else { "" }, &printable(edit));
    }
    let (before, after) = (&found.comparison.before, &found.comparison.after);
    out += &style.paragraph("trace", &printable(&format!("{} on {}", before.trace, before.machine)));
    let change = match found.gain {
        gain if gain >= 0.0 => format!("{} fewer", percent_of(gain)),
        loss => format!("{} more", percent_of(-loss)),
    };
    let noise = match found.comparison.noise {
        Some(noise) => format!("; placement alone changes {} at most", percent_of(noise)),
        None => String::new(),
    };
    let verdict = match &found.footprint {
        footprint if footprint.objects == 0 => moves_nothing(footprint.objects_left),
        _ => format!(
            "{}: {change} cycles in the run ({} → {}){noise}",
            verdict(found.verdict),
            count(before.run_cycles as u64),
            count(after.run_cycles as u64),
        ),
    };
    out += &match found.verdict {
        Verdict::WorthIt => style.paragraph("verdict", &style.advice(&verdict)),
        Verdict::Neutral => style.paragraph("verdict", &verdict),
        Verdict::Worse => style.warning_paragraph("verdict", &verdict),
    };
    out += &style.paragraph("because", &confidence(found));
    totals(&mut out, &found.comparison);
    for (number, tried) in found.tried.iter().enumerate() {
        let gain = match tried.gain {
            gain if gain >= 0.0 => format!("{} fewer cycles", percent_of(gain)),
            loss => format!("{} more cycles", percent_of(-loss)),
        };
        let sentence = format!("{gain} on a part of the trace: {}", printable(&tried.edit));
        out += &style.paragraph(if number == 0 { "tried" } else { "" }, &sentence);
    }
    if let Some(why) = found.left_off {
        out += &style.paragraph("", left_off(why));
    }
    for (number, edit) in found.by_hand.iter().take(MOST_BY_HAND).enumerate() {
        out += &style.paragraph(if number == 0 { "by hand" } else { "" }, &printable(&hand_edit(edit)));
    }
    if let Some(more) = found.by_hand.len().checked_sub(MOST_BY_HAND + 1) {
        out += &style.paragraph("", &format!("and at {} more places", more + 1));
    }
    tables(&mut out, &found.comparison, by, style);
    out
}

/// Places to edit by hand that are shown; the file that was to be the patch has all.
const MOST_BY_HAND: usize = 20;

/// A place to edit by hand, in a line.
pub fn hand_edit(HandEdit { place, why, task }: &HandEdit) -> String {
    format!("{place}: {why} → {task}")
}

/// The verdict on edits that change no object.
fn moves_nothing(left: u64) -> String {
    let left = match left {
        0 => String::new(),
        1 => "; one of the type stays as it is, as its size is no whole number of elements".to_string(),
        left => {
            format!(
                "; {} of the type stay as they are, as their sizes are no whole numbers of elements",
                count(left)
            )
        }
    };
    format!("none: the edit moves no object of this trace{left}")
}

/// A verdict in words.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::WorthIt => "worth it",
        Verdict::Neutral => "neutral",
        Verdict::Worse => "worse",
    }
}

/// Returns what was moved, and the limits of the confidence.
pub fn confidence(found: &WhatIf) -> String {
    let (footprint, confidence) = (&found.footprint, &found.confidence);
    let mut parts = vec![format!(
        "{} {} moved, {} → {}",
        count(footprint.objects),
        if footprint.objects == 1 { "object" } else { "objects" },
        bytes(footprint.bytes_before),
        bytes(footprint.bytes_after),
    )];
    if let Some(allocator) = &confidence.placed_by {
        parts.push(format!("blocks of the heap are placed by {allocator}"));
    }
    if footprint.objects_left > 0 {
        parts.push(format!(
            "{} stay as they are (no whole number of elements)",
            count(footprint.objects_left)
        ));
    }
    parts.push(format!("{} of the accesses name their data", percent_of(confidence.named)));
    if confidence.unknown_objects > 0.0 {
        parts.push(format!("{} are to objects of unknown type", percent_of(confidence.unknown_objects)));
    }
    if !confidence.held_by.is_empty() {
        let held_by: Vec<_> = confidence.held_by.iter().map(|name| printable(name)).collect();
        parts.push(format!("what lies inside {} was not moved", held_by.join(", ")));
    }
    if !confidence.constants.is_empty() {
        let names: Vec<_> = confidence.constants.iter().map(|found| printable(&found.member)).collect();
        parts.push(format!("{} may have other values in another run", names.join(", ")));
    }
    for Narrowed { member, to, values } in &confidence.narrowed {
        let member = printable(member);
        parts.push(match values {
            0 => format!("whether {to} bytes hold what {member} has is not known (compile with --values)"),
            _ => format!(
                "{to} bytes hold the {} values that {member} had in this run; another may have others",
                count(*values)
            ),
        });
    }
    parts.join("; ")
}

fn totals(out: &mut String, found: &Comparison) {
    let headings = ["", "before", "after", "change"];
    let mut table = plain_table(&headings, 1);
    let mut row = |name: &str, before: u64, after: u64| {
        table.add_row([name.to_string(), count(before), count(after), changed(before, after)]);
    };
    // What an edit promised is found again in the run as a whole.
    let cycles = |side: &Compared| side.run_cycles.round() as u64;
    row("cycles of the run", cycles(&found.before), cycles(&found.after));
    if let (Some(before), Some(after)) = (found.before.instructions, found.after.instructions) {
        row("instructions", before, after);
    }
    row("accesses", found.before.total.accesses, found.after.total.accesses);
    let missed = |level: &Level| level.read_misses + level.write_misses;
    for level in &found.before.levels {
        let before = missed(level);
        let Some(after) = found.after.levels.iter().find(|other| other.name == level.name).map(missed) else {
            table.add_row([format!("{} misses", level.name), count(before), "–".into(), String::new()]);
            continue;
        };
        let name = format!("{} misses", level.name);
        table.add_row([name, count(before), count(after), changed(before, after)]);
    }
    if let (Some(before), Some(after)) = (found.before.remote_accesses, found.after.remote_accesses) {
        table.add_row(["remote memory".to_string(), count(before), count(after), changed(before, after)]);
    }
    let wait = |side: &Compared| side.total.wait.cycles.round() as u64;
    let (before, after) = (wait(&found.before), wait(&found.after));
    table.add_row(["cycles of wait".to_string(), count(before), count(after), changed(before, after)]);
    let lost = |side: &Compared| side.lost_cycles.unwrap_or(0);
    let (before, after) = (lost(&found.before), lost(&found.after));
    if (before, after) != (0, 0) {
        table.add_row(["lost to threads".to_string(), count(before), count(after), changed(before, after)]);
    }
    write_table(out, &table);
}

/// `−34%`, `+8.3%`, `=`.
fn changed(before: u64, after: u64) -> String {
    match (before, after) {
        _ if before == after => "=".into(),
        (0, _) => "new".into(),
        _ if after < before => format!("−{}", percent_of((before - after) as f64 / before as f64)),
        _ => format!("+{}", percent_of((after - before) as f64 / before as f64)),
    }
}

fn tables(out: &mut String, found: &Comparison, by: &[By], style: Style) {
    for table in by {
        match table {
            By::Data | By::Field => rows(out, found, "Data", &found.data, data_label, style),
            By::Line => rows(out, found, "Data and line", &found.lines, access_label, style),
            By::Object => rows(out, found, "Objects", &found.objects, object_label, style),
            By::Type => rows(out, found, "Types", &found.types, type_label, style),
            By::Function | By::Thread => {}
        }
    }
}

fn rows<S>(
    out: &mut String,
    found: &Comparison,
    title: &str,
    changes: &[Change<S>],
    label: impl Fn(&S, u8) -> Label,
    style: Style,
) {
    // Rows that neither changed nor wait tell nothing.
    let telling: Vec<&Change<S>> = changes.iter().filter(|change| change.wait_cycles_change != 0.0).collect();
    let shown = telling.len().min(style.top);
    let of =
        if telling.len() > shown { format!(" (first {shown} of {})", telling.len()) } else { String::new() };
    let _ = writeln!(out, "\n{}{of}", style.heading(&format!("{title}, what changed most first")));
    if telling.is_empty() {
        let _ = writeln!(out, "  nothing changed");
        return;
    }
    let levels: Vec<String> = found.before.levels.iter().map(|level| level.name.clone()).collect();
    let mut headings = vec![title.to_lowercase(), String::new(), "of the run".to_string()];
    headings.extend(levels.iter().map(|level| format!("{level} misses")));
    let texts = |change: &Change<S>| {
        let level = |numbers: &Option<Numbers>, at: usize| {
            numbers.as_ref().map_or("–".to_string(), |numbers| count(numbers.misses.of(at)))
        };
        let part = change.wait_cycles_change / found.before.run_cycles.max(1.0);
        let sign = if part < 0.0 { "−" } else { "+" };
        let mut texts = vec![status(change.status).to_string(), format!("{sign}{}", percent_of(part.abs()))];
        for at in 0..levels.len() {
            let (before, after) = (level(&change.before, at), level(&change.after, at));
            texts.push(if before == after { "=".into() } else { format!("{before} → {after}") });
        }
        texts
    };
    let numbers: Vec<Vec<String>> = telling[..shown].iter().map(|change| texts(change)).collect();
    let wide = |column: usize| {
        let heading = headings[column + 1].chars().count();
        numbers.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(heading) + 2
    };
    let taken: usize = (0..headings.len() - 1).map(wide).sum();
    let room = style.width.saturating_sub(taken + 4).max(24);
    let named = distinct(&telling[..shown], |change, detail| vec![label(&change.subject, detail)], &[room]);
    let mut table = plain_table(&headings, 2);
    for (name, numbers) in named.into_iter().zip(numbers) {
        table.add_row(name.into_iter().chain(numbers));
    }
    write_table(out, &table);
}

fn status(status: Status) -> &'static str {
    match status {
        Status::New => "new",
        Status::Gone => "gone",
        Status::Better => "better",
        Status::Worse => "worse",
        Status::WithinNoise => "within noise",
    }
}
