//! The text of `memlode sim --time`.

use super::names::access_label;
use super::rows::{NamedRows, named};
use super::{By, Style, report};
use crate::model::{StallCycles, TimeReport, TimedNumbers, TimedRow};
use crate::render::sentences::note;
use crate::render::text::{count, milliseconds, percent_of, printable};

/// Columns of a table that numbers take: time, accesses, and waits.
const NUMBERS: usize = 2 + 10 + 10 + WAITS;

/// Columns of waits.
const WAITS: usize = 34;

/// Columns that names have at least.
const LEAST: usize = 24;

/// A stall that is a smaller part of the row's cycles is not named.
const LEAST_STALL: f64 = 0.05;

/// Stalls that are named, at most.
const MOST_STALLS: usize = 3;

/// The most rows of accesses that cross lines or wait for stores, and the least part of the run's
/// accesses of a row.
const CROSSINGS: usize = 5;
const LEAST_CROSSING: f64 = 0.001;

/// The whole text: a header, tables, and accesses that cross lines or wait for stores.
pub fn timing(found: &TimeReport, by: &[By], style: Style) -> String {
    let mut out = header(found, style);
    out.extend(by.iter().map(|&by| table(found, by, style)));
    out + &crossings(found, style)
}

fn header(found: &TimeReport, style: Style) -> String {
    let total = &found.total.numbers;
    let mut out = report::program(&found.trace, &found.machine, &count(total.accesses), style);
    let core = &found.core;
    let known = if core.measured { "measured" } else { "assumed" };
    out += &style.paragraph(
        "core",
        &format!(
            "{:.2} GHz, window of {:.0} instructions, {} fill buffers, {} stores; its times are {known}",
            core.clock_ghz, core.window_instructions, core.fill_buffers, core.store_buffer_entries
        ),
    );
    let threads = if found.trace.threads > 1 { " of all threads together" } else { "" };
    let waits = match waits(&total.stalls, total.cycles) {
        waits if waits.is_empty() => String::new(),
        waits => format!(": {waits}"),
    };
    out += &style.paragraph(
        "time",
        &format!(
            "about {}{threads} by the model, of which {} wait{waits}",
            milliseconds(total.ms),
            percent_of(total.stall_cycles / total.cycles.max(f64::MIN_POSITIVE)),
        ),
    );
    out += &style.paragraph(
        "cycles",
        &format!(
            "{} by this model, in program order; {} by the one of report, whatif and diff, {:.2} times as many",
            count(total.cycles as u64),
            count(found.run_cycles as u64),
            found.run_cycles / total.cycles.max(1.0),
        ),
    );
    for known in &found.trace.notes {
        out += &style.warning_paragraph("note", &printable(&note(known)));
    }
    out
}

fn table(found: &TimeReport, by: By, style: Style) -> String {
    match by {
        By::Line => rows(&found.lines, style, |rows, room| named::lines(rows, room, style)),
        By::Data => rows(&found.data, style, named::data),
        By::Field => rows(&found.fields, style, named::members),
        By::Type => rows(&found.types, style, named::types),
        By::Function => rows(&found.functions, style, named::functions),
        By::Object => rows(&found.objects, style, |rows, room| named::objects(rows, room, style)),
        By::Thread => {
            let all = Style { top: usize::MAX, ..style };
            rows(&found.threads, all, |rows, _| named::threads(rows, found.trace.processes))
        }
    }
}

fn rows<S>(rows: &[TimedRow<S>], style: Style, names: impl Fn(&[&S], usize) -> NamedRows) -> String {
    let shown = &rows[..rows.len().min(style.top)];
    let subjects: Vec<&S> = shown.iter().map(|row| &row.subject).collect();
    let names = names(&subjects, style.width.saturating_sub(NUMBERS).max(LEAST));
    let headings = ["time", "accesses", "waits for"].map(str::to_string);
    let cells = |numbers: &TimedNumbers| {
        let waits = waits(&numbers.stalls, numbers.cycles);
        vec![percent_of(numbers.share), count(numbers.accesses), format!("{waits:<WAITS$}")]
    };
    names.table(&headings, shown.iter().map(|row| cells(&row.numbers)).collect(), rows.len(), style)
}

/// `chain 82%, walk 6%`: the parts of the cycles, the largest first.
fn waits(stalls: &StallCycles, cycles: f64) -> String {
    let mut parts = stalls.named().to_vec();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts.retain(|(_, part)| *part > LEAST_STALL * cycles);
    let parts = parts.iter().take(MOST_STALLS);
    let part = |(name, part): &(&str, f64)| format!("{} {:.0}%", word(name), 100.0 * part / cycles);
    parts.map(part).collect::<Vec<_>>().join(", ")
}

/// A stall in the words of a table.
fn word(name: &str) -> &str {
    match name {
        "buffers" => "fill buffers",
        "stores" => "store buffer",
        "order" => "atomics",
        name => name,
    }
}

/// Accesses that cross lines or pages, and loads that wait for a store before them.
fn crossings(found: &TimeReport, style: Style) -> String {
    let least = LEAST_CROSSING * found.total.numbers.accesses as f64;
    let met = |numbers: &TimedNumbers| numbers.line_crossings + numbers.blocked_loads;
    let mut rows: Vec<_> =
        found.lines.iter().filter(|row| met(&row.numbers) as f64 >= least.max(1.0)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(met(&row.numbers)));
    if rows.is_empty() {
        return String::new();
    }
    let all = rows.len();
    rows.truncate(CROSSINGS.min(style.top));
    let headings = ["of accesses", "cross a line", "a page", "wait for a store"].map(str::to_string);
    let room = style.width.saturating_sub(62).max(LEAST);
    let subjects: Vec<_> = rows.iter().map(|row| &row.subject).collect();
    let texts = super::label::distinct(&subjects, |row, detail| vec![access_label(row, detail)], &[room]);
    let names = NamedRows {
        title: "Accesses that cross lines, and loads that wait for a store of other bytes",
        columns: &["access"],
        texts,
        below: Vec::new(),
    };
    let cells = rows.iter().map(|row| {
        let numbers = &row.numbers;
        let counted =
            [numbers.accesses, numbers.line_crossings, numbers.page_crossings, numbers.blocked_loads];
        counted.map(count).to_vec()
    });
    names.table(&headings, cells.collect(), all, style)
}
