//! Losses of threads to lines that they take from each other, in words.

use std::fmt::Write;

use super::Style;
use super::names::{access_label, object_label};
use super::sharing::side;
use crate::model::{SharedData, SharedLock, SharedObject, Transfers};
use crate::render::text::{count, milliseconds, percent_of};

/// Rows shown of each kind.
const ROWS: usize = 5;

/// A row that costs a smaller part of the threads' time is not worth one.
const LEAST: f64 = 0.001;

/// The most locks that are listed.
const LOCKS: usize = 3;

/// The section of a report; empty if there is only one thread. Objects that are findings, as
/// `listed`, are not repeated.
pub fn transfers(found: &Transfers, listed: &[&SharedObject], style: Style) -> String {
    let whole = found.ms + found.rest_ms;
    let mut out = format!("\n{}\n", style.heading("Lines that threads take from each other"));
    let far = found.far_ms.map_or(String::new(), |far| {
        format!(", {} if they are on cores that are far from each other", milliseconds(far))
    });
    let known = if found.measured { "measured" } else { "assumed" };
    let lost = match found.transfers {
        0 => "no line came from another core".to_string(),
        transfers => format!(
            "about {} of all threads together are lost to {} transfers{far}: {} of {} without misses of caches; the times of \
             transfers are {known}",
            milliseconds(found.ms),
            count(transfers),
            percent_of(found.ms / whole.max(f64::MIN_POSITIVE)),
            milliseconds(whole),
        ),
    };
    out += &style.indented(2, &lost);
    out += &style.indented(2, &order(found));
    for shared in found.locks.iter().take(LOCKS) {
        out += &style.indented(2, &lock(shared));
    }
    out += &handed_over(found, style);
    type RowsOf = fn(&SharedObject) -> &[usize];
    let kinds: [(_, _, _, RowsOf); 2] = [
        ("False sharing: other bytes of the line were written", "taken by", &found.false_sharing, |object| {
            &object.false_rows
        }),
        (
            "True sharing: bytes that another thread wrote are needed",
            "written by",
            &found.true_sharing,
            |object| &object.true_rows,
        ),
    ];
    for (title, by, rows, of) in kinds {
        let is_told = |row: usize| listed.iter().any(|object| of(object).contains(&row));
        // One transfer that was simulated stands for several that were not.
        let costly = |row: &&SharedData| row.ms >= LEAST * whole && row.transfers > found.one_in;
        let rows = rows.iter().enumerate().filter(|(row, _)| !is_told(*row)).map(|(_, row)| row);
        let all: Vec<&SharedData> = rows.filter(costly).collect();
        if all.is_empty() {
            continue;
        }
        let shown = all.len().min(style.top.min(ROWS));
        let of = if all.len() > shown { format!(" (first {shown} of {})", all.len()) } else { String::new() };
        let _ = writeln!(out, "\n{}{of}", style.heading(title));
        for row in &all[..shown] {
            write_row(&mut out, row, by, found.one_in > 1, style);
        }
    }
    out
}

/// The range of a lock's cost: it depends on the order in which threads get the lock, which the
/// program does not decide.
pub fn lock(lock: &SharedLock) -> String {
    let name = match &lock.access {
        Some(access) => access_label(access, 0).whole(),
        None => object_label(&lock.object, 0).whole(),
    };
    let of = if lock.locks == 1 { String::new() } else { format!(" ({} of them)", count(lock.locks)) };
    let handle = &lock.handle;
    format!(
        "lock {handle}: {name}{of}, taken {} times by {} threads; as recorded it came from another thread {} times, and {} were lost to \
         its lines; if threads took turns, {} times, and about {}",
        count(lock.takes),
        lock.threads.len(),
        count(lock.changes),
        milliseconds(lock.ms),
        count(lock.most_changes),
        milliseconds(lock.most_ms),
    )
}

/// The lines that came once, in a sentence: nothing is to be done about them.
fn handed_over(found: &Transfers, style: Style) -> String {
    let transfers: u64 = found.handed_over.iter().map(|row| row.transfers).sum();
    if transfers == 0 {
        return String::new();
    }
    let ms: f64 = found.handed_over.iter().map(|row| row.ms).sum();
    let transfers =
        if transfers == 1 { "1 transfer".into() } else { format!("{} transfers", count(transfers)) };
    let text = format!(
        "handed over: {transfers}, {}, of lines of threads that have ended, or of what was done before a thread was made, or of \
         memory that is used anew; each comes once and is not shared",
        milliseconds(ms)
    );
    style.indented(2, &text)
}

fn write_row(out: &mut String, row: &SharedData, by: &str, is_part: bool, style: Style) {
    let lines = match row.lines {
        1 => "1 line".to_string(),
        lines => format!("{} lines", count(lines as u64)),
    };
    // Transfers count for those that were left out, too; which lines those were of is not known.
    let lines = if is_part { format!("{lines} or more") } else { lines };
    let (room, handle) = (style.width.saturating_sub(21).max(24), &row.handle);
    let _ = writeln!(
        out,
        "  {:<15} {} transfers of {lines}  {handle}",
        milliseconds(row.ms),
        count(row.transfers)
    );
    let _ = writeln!(out, "  {:<15} {}", "waiting", side(&row.missed, style));
    if let Some(written) = &row.written {
        let _ = writeln!(out, "  {by:<15} {}", side(written, style));
    }
    let home = match row.stack_of {
        Some(thread) => format!("the stack of thread {thread}"),
        None => object_label(&row.object, 0).fit(room),
    };
    let _ = writeln!(out, "  {:<15} {home}", "in");
    let other = row.written.as_ref().filter(|other| other.object.home != row.object.home);
    if let Some(other) = other {
        let _ = writeln!(out, "  {:<15} {}", "and", object_label(&other.object, 0).fit(room));
    }
}

/// A sentence about the order in which threads were replayed, and its limits.
fn order(found: &Transfers) -> String {
    let mut text = match (&*found.order, found.fineness_ns) {
        ("parallel", _) => {
            "order: as if each thread had a core of its own; what the schedule decided (who got a lock, or a \
                            piece of work) is as recorded"
                .to_string()
        }
        (_, Some(ns)) => format!(
            "order: as recorded, which was slower than the program is; known to within {}",
            milliseconds(ns as f64 / 1e6)
        ),
        (_, None) => "order: as recorded".to_string(),
    };
    if found.unknown_starts > 0 {
        let threads = if found.unknown_starts == 1 { "thread" } else { "threads" };
        let _ = write!(text, "; the creation of {} {threads} was not recorded", found.unknown_starts);
    }
    if found.one_in > 1 {
        let _ = write!(text, "; one access in {} to such lines is simulated", found.one_in);
    }
    if found.unmet > 0 {
        let _ = write!(text, "; {} waits could not be put in order", count(found.unmet));
    }
    text
}
