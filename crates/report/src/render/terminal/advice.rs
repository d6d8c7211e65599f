//! Advice as text.

use std::fmt::Write;

use memlode_layout::{Edit, edits_from_text};
use memlode_whatif::advise::{LeftOff, written};

use super::Style;
use super::comparison::{confidence, verdict};
use super::names::access_label;
use super::reasons::because;
use super::record::draw_with;
use super::source::source;
use super::style::apart;
use super::transfers;
use crate::model::{Advice, Level, Position, RejectedEdits, StructureChart, WhatIf};
use crate::render::text::{brief, count, percent_of, printable};

/// Columns of the longest bar.
const BAR: usize = 24;

/// The line about a search that was stopped before it tried anything.
pub const NOTHING_TRIED: &str = "stopped before any edit was tried";

/// Returns the line about the progress of a search.
pub fn tries(step: usize, of: usize) -> String {
    format!("trying edits: step {step} of {of}")
}

/// Returns a sentence about worthwhile edits, as soon as they are found.
pub fn found(edits: &[Edit], gained: f64) -> String {
    format!("found: {}: {}", written(edits), gain(gained))
}

/// Returns the output of `memlode advise`.
pub fn advice(found: &Advice, style: Style) -> String {
    let mut out = style.paragraph("trace", &printable(&format!("{} on {}", found.trace, found.machine)));
    let _ = writeln!(out, "\n{}", style.heading("Worth it, by modelled cycles of the run"));
    if found.worth_it.is_empty() && !found.locks.is_empty() {
        let text = format!(
            "no layout is known to gain: no edit that was tried exceeds 2% and what placement alone changes ({}) in the order in \
             which threads got their locks; what these cost depends on that order",
            percent_of(found.noise)
        );
        out += &style.indented(2, &text);
    } else if found.worth_it.is_empty() && found.left_off.is_none() {
        let _ = writeln!(
            out,
            "  nothing to gain from layout here: no edit that was tried exceeds 2% and what placement alone changes ({})",
            percent_of(found.noise)
        );
    }
    for (number, item) in (1..).zip(&found.worth_it) {
        out += &one(number, item, style);
    }
    if let Some(left_off) = found.left_off {
        out += &style.indented(2, self::left_off(left_off));
    }
    if !found.rejected.is_empty() {
        let shown = found.rejected.len().min(style.top);
        let of = if found.rejected.len() > shown {
            format!(" (first {shown} of {})", found.rejected.len())
        } else {
            String::new()
        };
        let _ = writeln!(out, "\n{}{of}", style.heading("Considered and rejected"));
        for RejectedEdits { handle, rejected } in &found.rejected[..shown] {
            let part = if rejected.is_whole { "" } else { " on a part of the trace" };
            let text = format!(
                "{}: {}{part}, {}  {handle}",
                printable(&written(&rejected.edits)),
                gain(rejected.gain),
                match rejected.verdict {
                    memlode_whatif::noise::Verdict::WorthIt => "less than another edit of the type",
                    other => verdict(other),
                },
            );
            out += &style.indented(2, &text);
        }
    }
    if !found.latent.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Only where it begins now"));
        for latent in &found.latent {
            let text = format!(
                "{}: {} bytes later, threads would lose {} of the cycles to each other; wherever it begins: {}",
                printable(&latent.object),
                latent.shifted_by,
                percent_of(latent.lost_share),
                printable(&latent.edit.to_string())
            );
            out += &style.indented(2, &text);
        }
    }
    if !found.locks.is_empty() {
        let _ = writeln!(out, "\n{}", style.heading("Locks that several threads take"));
        for lock in found.locks.iter().take(style.top) {
            out += &style.indented(2, &transfers::lock(lock));
        }
    }
    out += &possible(found, style);
    for chart in found.structures.iter().take(style.top) {
        out += &structure(chart, style);
    }
    out
}

/// Lists waits that only some processors have, so no cycles are given.
fn possible(found: &Advice, style: Style) -> String {
    let mut out = String::new();
    if found.pairs.is_empty() && found.aliased.is_empty() {
        return out;
    }
    let _ = writeln!(out, "\n{}", style.heading("Possible, on some processors: to be measured"));
    for pair in &found.pairs {
        let bytes = pair.bytes().map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
        let text = format!(
            "{}: threads write lines next to each other, which may be fetched in pairs{bytes}; apart: {}",
            printable(&pair.object),
            printable(&pair.edit.to_string())
        );
        out += &style.indented(2, &text);
    }
    for aliased in &found.aliased {
        let text = format!(
            "{}: {} of {} accesses load what agrees in the low 12 address bits with a store to {} shortly before, and may wait \
             for it; {} do with: {}",
            printable(&aliased.load),
            count(aliased.conflicts),
            count(aliased.accesses),
            printable(&aliased.store),
            count(aliased.conflicts_left),
            printable(&aliased.edit.to_string())
        );
        out += &style.indented(2, &text);
    }
    out
}

/// A sentence about the reason why not everything was tried.
pub(super) fn left_off(why: LeftOff) -> &'static str {
    match why {
        LeftOff::Stopped => "stopped: this is the best so far",
        LeftOff::Spent => "not all was tried: this is the best within the budget, which --budget raises",
    }
}

fn gain(gain: f64) -> String {
    match gain {
        gain if gain >= 0.0 => format!("{} fewer cycles", percent_of(gain)),
        loss => format!("{} more cycles", percent_of(-loss)),
    }
}

/// Returns advice as unwrapped sentences: the edits, their effects, and how sure these are.
pub fn advice_sentences(item: &WhatIf) -> Vec<String> {
    let edits: Vec<_> = item.edits.iter().map(|edit| printable(edit)).collect();
    let gained = format!("{}: {}", gain(item.gain), changes(item).join(", "));
    [edits.join("; "), gained, confidence(item)].map(|sentence| apart(&sentence)).to_vec()
}

/// Advice in two or three lines.
fn one(number: usize, item: &WhatIf, style: Style) -> String {
    let edits: Vec<_> = item.edits.iter().map(|edit| printable(edit)).collect();
    let mut out = format!("{number:>2}. {}  {}\n", style.advice(&edits.join("; ")), item.handle);
    if let Some(at) = &item.at {
        let line = access_label(&at.access, 0).fit(style.width.saturating_sub(4));
        out += &format!("    {}\n", style.heading(&line));
        out += &at.source.as_ref().map(|found| source(found, style)).unwrap_or_default();
        if is_borrowed(&at.access.position) {
            let text = "~: the line of a neighbouring instruction, as the access has none of its own";
            out += &style.indented(4, text);
        }
    }
    if let Ok(edits) = edits_from_text(&item.edits.join("; ")) {
        out += &style.indented(4, &because(&edits, &item.confidence.constants));
    }
    out += &style.indented(4, &format!("{}: {}", gain(item.gain), changes(item).join(", ")));
    out + &style.indented(4, &confidence(item))
}

/// A sentence about the effect of an edit: its misses; where they stay equal, the other reason why
/// it costs less.
fn changes(item: &WhatIf) -> Vec<String> {
    let (before, after) = (&item.comparison.before, &item.comparison.after);
    let missed = |level: &Level| level.read_misses + level.write_misses;
    let change = |what: &str, before: u64, after: u64| format!("{what} {} → {}", count(before), count(after));
    let differ = |(before, after): &(u64, u64)| before != after;
    let others = [
        ("cycles lost to other threads", before.lost_cycles.zip(after.lost_cycles)),
        ("accesses to other nodes' memory", before.remote_accesses.zip(after.remote_accesses)),
    ];
    let others = others
        .into_iter()
        .filter_map(|(what, sides)| sides.filter(differ).map(|(before, after)| change(what, before, after)));
    let others: Vec<String> = others.collect();
    let levels = before.levels.iter().zip(&after.levels);
    let levels =
        levels.map(|(before, after)| (format!("{} misses", before.name), (missed(before), missed(after))));
    let told = levels.filter(|(_, sides)| others.is_empty() || differ(sides));
    told.map(|(what, (before, after))| change(&what, before, after)).chain(others.iter().cloned()).collect()
}

/// Returns whether the line of an access is borrowed from a neighbour.
fn is_borrowed(position: &Position) -> bool {
    position.borrowed || position.inlined_into.as_ref().is_some_and(|outer| is_borrowed(outer))
}

/// A structure in pahole's notation, with a bar behind each member: full if it is hot, shaded if it is cold.
fn structure(chart: &StructureChart, style: Style) -> String {
    let says = match chart.is_split {
        true => "the rules of Chilimbi et al. split it",
        false => "the rules of Chilimbi et al. leave it whole",
    };
    let mut out = format!("\n{}: {says}\n", style.heading(&printable(&brief(&chart.ty))));
    let most = chart.members.iter().map(|member| member.accesses).max().unwrap_or(0).max(1);
    let heat = |name: &str| {
        let member = chart.members.iter().find(|member| member.member == name)?;
        let length = (member.accesses as f64 / most as f64 * BAR as f64).ceil() as usize;
        let bar = if member.is_cold { "░" } else { "█" }.repeat(length);
        Some(format!("{bar}{}{}", if length > 0 { " " } else { "" }, count(member.accesses)))
    };
    for line in draw_with(&chart.layout, &heat).lines() {
        let _ = writeln!(out, "{}", printable(line));
    }
    out
}
