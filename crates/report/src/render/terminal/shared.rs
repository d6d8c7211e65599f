//! An object whose lines threads take from each other, as a finding among those of misses.

use std::fmt::Write;

use super::Style;
use super::findings::arrow_of_shared;
use super::names::{data_label, object_label, place_label};
use super::sharing::side;
use crate::model::{AdvisedEdit, Report, SharedData, SharedObject, Transfers};
use crate::render::text::{count, milliseconds, percent_of};

/// Pairs of accesses that are shown.
const PAIRS: usize = 3;

/// Columns in front of a finding's facts.
const INDENT: usize = 4;

/// One finding: the object, the accesses that take its lines from each other, and the edit that is
/// advised, which is taken from `edits`.
pub fn finding(
    number: usize,
    report: &Report,
    object: &SharedObject,
    edits: &mut Vec<&AdvisedEdit>,
    style: Style,
) -> String {
    let Some(found) = &report.sharing else { return String::new() };
    let pairs = pairs(found, object);
    let Some((first, _)) = pairs.first() else { return String::new() };
    let share = percent_of(object.cycles as f64 / report.run_cycles.max(1.0));
    let share = format!("{share} of the cycles: threads take its lines from each other");
    let access = &first.missed.access;
    let label = data_label(&access.data, 0);
    let handle = &object.handle;
    let taken = INDENT + 2 + share.chars().count() + 2 + handle.len();
    let room = style.width.saturating_sub(taken).clamp(16, style.width.max(48) / 3);
    let label = style.culprit(&label.fit(room));
    let mut out = format!("F{number:<2} {label}  {}  {handle}\n", style.heading(&share));
    let place = place_label(&access.position, 0).fit(style.width.saturating_sub(INDENT));
    let _ = writeln!(out, "    {}", style.heading(&place));
    out += &style.indented(INDENT, &fact(object));
    let shown = pairs.len().min(PAIRS);
    for (pair, by) in &pairs[..shown] {
        let _ = writeln!(out, "    {:<9} waits    {}", milliseconds(pair.ms), side(&pair.missed, style));
        if let Some(written) = &pair.written {
            let _ = writeln!(out, "    {:<9} {by:<8} {}", "", side(written, style));
        }
    }
    if pairs.len() > shown {
        let _ = writeln!(out, "    and {} smaller pairs", pairs.len() - shown);
    }
    let home = match object.stack_of {
        Some(thread) => format!("the stack of thread {thread}"),
        None => object_label(&object.object, 0).whole(),
    };
    out += &style.indented(INDENT, &format!("in {home}"));
    if let Some(arrow) = arrow_of_shared(edits, object) {
        out += &style.advice(&style.indented(INDENT, &arrow));
    }
    out
}

/// A sentence about the cost of an object, and the kind of sharing.
pub fn fact(object: &SharedObject) -> String {
    let falsely = object.false_ms / object.ms.max(f64::MIN_POSITIVE);
    let kinds = match falsely {
        share if share >= 0.995 => "false sharing: other bytes of the line were written".to_string(),
        share if share < 0.005 => "true sharing: bytes that another thread wrote are needed".to_string(),
        share => format!("{} false sharing (other bytes were written), the rest true", percent_of(share)),
    };
    format!(
        "about {} of all threads together, {} transfers; {kinds}",
        milliseconds(object.ms),
        count(object.transfers)
    )
}

/// The pairs of an object, the costliest first, and the verb for the other access.
pub fn pairs<'f>(found: &'f Transfers, object: &SharedObject) -> Vec<(&'f SharedData, &'static str)> {
    let rows = |all: &'f [SharedData], rows: &[usize], by: &'static str| {
        rows.iter().filter_map(|&row| all.get(row)).map(|row| (row, by)).collect::<Vec<_>>()
    };
    let mut pairs = rows(&found.false_sharing, &object.false_rows, "taken by");
    pairs.extend(rows(&found.true_sharing, &object.true_rows, "by"));
    pairs.sort_by(|(a, _), (b, _)| b.ms.total_cmp(&a.ms));
    pairs
}
