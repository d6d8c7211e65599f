//! Which data threads take from each other, in words.

use std::fmt::Write;

use super::Style;
use super::names::{data_label, object_label, place_label};
use crate::model::{Sharing, Side, Simulation};
use crate::render::text::count;

/// Rows shown of each kind.
const ROWS: usize = 5;

/// Threads named.
const THREADS: usize = 8;

/// A block of lines for each pair; nothing if threads share nothing.
pub fn sharing(simulation: &Simulation, style: Style) -> String {
    let kinds = [
        ("false", "False sharing: misses because another core wrote other bytes of the line"),
        ("true", "True sharing: misses because another core wrote the same bytes"),
    ];
    let mut out = String::new();
    for (kind, title) in kinds {
        let rows: Vec<&Sharing> = simulation.sharing.iter().filter(|row| row.kind == kind).collect();
        if rows.is_empty() {
            continue;
        }
        let shown = rows.len().min(style.top.min(ROWS));
        let of =
            if rows.len() > shown { format!(" (first {shown} of {})", rows.len()) } else { String::new() };
        let _ = writeln!(out, "\n{}{of}", style.heading(title));
        for row in &rows[..shown] {
            let lines = if row.lines == 1 {
                "1 line".to_string()
            } else {
                format!("{} lines", count(row.lines as u64))
            };
            let misses = format!("{} misses", count(row.misses));
            let _ = writeln!(out, "  {misses:<15} of {}", side(&row.missed, style));
            let _ = writeln!(out, "  {:<15} by {}", "after writes", side(&row.written, style));
            let room = style.width.saturating_sub(21).max(24);
            let _ = writeln!(out, "  {:<15} in {}", lines, object_label(&row.missed.object, 0).fit(room));
            if row.written.object.home != row.missed.object.home {
                let _ = writeln!(out, "  {:<15} and {}", "", object_label(&row.written.object, 0).fit(room));
            }
        }
    }
    out
}

/// `slot.count at counters.c:12 work, threads 1, 2`.
pub(super) fn side(side: &Side, style: Style) -> String {
    let named: Vec<String> = side.threads.iter().take(THREADS).map(u32::to_string).collect();
    let more = if side.threads.len() > THREADS { ", …" } else { "" };
    let threads =
        format!("{} {}{more}", if side.threads.len() == 1 { "thread" } else { "threads" }, named.join(", "));
    let label = data_label(&side.access.data, 0).fixed(" at ").then(place_label(&side.access.position, 0));
    format!("{}, {threads}", label.fit(style.width.saturating_sub(23 + threads.chars().count()).max(32)))
}
