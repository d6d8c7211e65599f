//! Which data threads take from each other, by name.

use std::fmt::Write;

use memlode_attribute::ClassId;
use memlode_attribute::detail::{DetailedProfile, SharingRow};
use memlode_attribute::tables::{Place, Tables, What};
use serde::Serialize;

use crate::build::Builder;
use crate::model::Object;
use crate::simulation::{Access, Simulation};
use crate::terminal::{Style, name, object, place};
use crate::text::{count, cut, cut_end};

/// Rows shown of each kind.
const ROWS: usize = 5;

/// Threads named.
const THREADS: usize = 8;

/// Misses of some data because of other cores' writes.
#[derive(Clone, Debug, Serialize)]
pub struct Sharing {
    /// `false`: other bytes of the line were written; `true`: the same bytes.
    pub kind: &'static str,
    /// What missed.
    pub missed: Side,
    /// What had been written.
    pub written: Side,
    /// Misses of the first cache that had lost the line.
    pub misses: u64,
    /// Different lines.
    pub lines: usize,
}

/// Data, the line that touches it, and the threads that do.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Data and line.
    #[serde(flatten)]
    pub access: Access,
    /// Where the objects live and were allocated.
    pub object: Object,
    /// Threads, as numbered in the table of threads.
    pub threads: Vec<u32>,
}

/// What is told apart of each side.
type Key = ((What, Place), ClassId);

/// What threads take from each other, the most frequent first.
pub(crate) fn sharing(
    detailed: &DetailedProfile,
    tables: &Tables<'_>,
    builder: &Builder<'_>,
) -> Vec<Sharing> {
    let side = |((what, place), class): &Key, threads: &std::collections::BTreeSet<_>| Side {
        access: Access { data: builder.data(what), position: builder.position(place) },
        object: builder.object(*class),
        threads: threads.iter().map(|thread: &memlode_trace::event::ThreadId| thread.0).collect(),
    };
    let row = |row: SharingRow<Key>| Sharing {
        kind: if row.is_true { "true" } else { "false" },
        missed: side(&row.missed, &row.missed_by),
        written: side(&row.written, &row.written_by),
        misses: row.misses,
        lines: row.lines.len(),
    };
    detailed.sharing(|cell| (tables.key_of(cell), cell.class)).into_iter().map(row).collect()
}

/// A block of lines for each pair; nothing if threads share nothing.
pub fn sharing_text(simulation: &Simulation, style: Style) -> String {
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
        let title = if style.colours { format!("\x1b[1m{title}\x1b[0m") } else { title.into() };
        let _ = writeln!(out, "\n{title}{of}");
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
            let _ = writeln!(out, "  {:<15} in {}", lines, cut_end(&object(&row.missed.object), room));
            if row.written.object.home != row.missed.object.home {
                let _ = writeln!(out, "  {:<15} and {}", "", cut_end(&object(&row.written.object), room));
            }
        }
    }
    out
}

/// `slot.count at counters.c:12 work, threads 1, 2`.
fn side(side: &Side, style: Style) -> String {
    let named: Vec<String> = side.threads.iter().take(THREADS).map(u32::to_string).collect();
    let more = if side.threads.len() > THREADS { ", …" } else { "" };
    let threads =
        format!("{} {}{more}", if side.threads.len() == 1 { "thread" } else { "threads" }, named.join(", "));
    let room = style.width.saturating_sub(27 + threads.chars().count()).max(32);
    let data = cut(&name(&side.access.data), room * 45 / 100).into_owned();
    let at = cut_end(&place(&side.access.position), room.saturating_sub(data.chars().count())).into_owned();
    format!("{data} at {at}, {threads}")
}
