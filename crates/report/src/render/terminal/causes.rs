//! The tables of `memlode sim`: a block of lines for each row of a report's table, one for each level that missed.

use std::fmt::Write;

use super::{By, Style, name, object, place, plain_table, write_table};
use crate::model::{Access, Detail, Evictor, LevelCauses, Numbers, Row, Simulation};
use crate::render::text::{brief, count, cut, cut_end, percent, percent_of, printable};

/// Columns that the numbers take: level, misses, the causes, unused.
const NUMBERS: usize = 57;

/// Columns that the causes take that other cores are.
const SHARING: usize = 20;

/// Columns that the errors of misses take.
const ERRORS: usize = 9;

/// The row of all accesses.
const ALL: &str = "(all accesses)";

/// Pairs of 4K aliasing shown.
const ALIASES: usize = 5;

/// A table of causes; of functions and threads there is none.
pub fn causes(simulation: &Simulation, by: By, style: Style) -> String {
    let report = &simulation.report;
    let coherent = simulation.coherence.is_some();
    let sampled = report.total.numbers.standard_errors.is_some();
    let numbers = NUMBERS + if coherent { SHARING } else { 0 } + if sampled { ERRORS } else { 0 };
    let room = style.width.saturating_sub(numbers).max(24);
    let (title, names): (_, Names<'_>) = match by {
        By::Line => (
            "Data and line",
            names(&report.lines, |row| format!("{} {}", name(&row.data), place(&row.position))),
        ),
        By::Field => ("Members", names(&report.fields, name)),
        By::Type => ("Types", names(&report.types, |row| brief(&row.name))),
        By::Object => ("Objects", names(&report.objects, object)),
        By::Function | By::Thread => return String::new(),
    };
    let shared: &[&str] = if coherent { &["true sh.", "false sh."] } else { &[] };
    let headings = [
        &["", "level", "misses"][..],
        if sampled { &["±"] } else { &[] },
        &["cold", "capacity", "conflict"],
        shared,
        &["unused", if coherent { "taken by" } else { "pushed out by" }],
    ]
    .concat();
    let mut table = plain_table(&headings, 2);
    if let Some(column) = table.column_mut(headings.len() - 1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let (shown, all) = (names.len().min(style.top), names.len());
    // Names get most of what the numbers leave; what pushed lines out gets what the names do not need.
    let cut_names = names.iter().take(shown).map(|(name, ..)| cut(name, room * 3 / 5).into_owned());
    let cut_names: Vec<String> = cut_names.collect();
    let widest = cut_names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(ALL.len());
    let total = &report.total;
    let rows =
        cut_names.into_iter().zip(&names).map(|(name, (_, numbers, detail))| (name, *numbers, *detail));
    for (mut name, numbers, detail) in
        std::iter::once((ALL.to_string(), &total.numbers, total.detail.as_ref())).chain(rows)
    {
        let errors = sampled.then(|| miss_errors(numbers));
        let room = room.saturating_sub(widest);
        let found = detail.map(|detail| lines(detail, errors.as_deref(), coherent, room, &names));
        for line in found.unwrap_or_default() {
            table.add_row(std::iter::once(std::mem::take(&mut name)).chain(line));
        }
        if !name.is_empty() {
            table.add_row([name, "none".into()]);
        }
    }
    let of = if all > shown { format!(" (first {shown} of {all})") } else { String::new() };
    let mut out = String::new();
    let title = format!("{title}: why they missed, and what was fetched and not used");
    let _ = writeln!(out, "\n{}{of}", style.heading(&title));
    write_table(&mut out, &table);
    out
}

/// The rows of a table: their names, counts and details.
type Names<'a> = Vec<(String, &'a Numbers, Option<&'a Detail>)>;

fn names<S>(rows: &[Row<S>], name: impl Fn(&S) -> String) -> Names<'_> {
    let name = |row: &S| printable(&name(row)).into_owned();
    rows.iter().map(|row| (name(&row.subject), &row.numbers, row.detail.as_ref())).collect()
}

/// The standard errors of the misses of each level, as parts of these.
fn miss_errors(numbers: &Numbers) -> Vec<String> {
    let Some(errors) = &numbers.standard_errors else { return Vec::new() };
    let levels = errors.misses.0.iter().zip(&numbers.misses.0);
    levels.map(|((_, error), (_, misses))| percent_of(error / (*misses).max(1) as f64)).collect()
}

/// A line for each level that missed, and for what else was found. `errors` are those of the levels' misses, if there is a column for
/// them.
fn lines(
    detail: &Detail,
    errors: Option<&[String]>,
    coherent: bool,
    room: usize,
    names: &Names<'_>,
) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (number, level) in detail.causes.iter().enumerate().filter(|(_, level)| level.misses() > 0) {
        let misses = level.misses();
        let mut line = vec![level.level.clone(), count(misses)];
        line.extend(errors.map(|errors| errors.get(number).cloned().unwrap_or_default()));
        line.extend([level.cold, level.capacity, level.conflict].map(|part| percent(part, misses)));
        if coherent {
            line.extend([level.true_sharing, level.false_sharing].map(|part| percent(part, misses)));
        }
        // What is fetched by nobody, as by an exclusive level, is not unused.
        let fetched = level.fetched_bytes > 0;
        line.push(if fetched { percent(level.unused_bytes, level.fetched_bytes) } else { String::new() });
        line.push(cut_end(&evictors(level, misses, names), room).into_owned());
        lines.push(line);
    }
    // Other lines have no causes.
    let mut other = |name: &str, number: u64, unused: String, last: String| {
        let causes = if coherent { 5 } else { 3 } + usize::from(errors.is_some());
        let line = [name.to_string(), count(number)].into_iter().chain(vec![String::new(); causes]);
        lines.push(line.chain([unused, last]).collect());
    };
    if let Some(pages) = detail.translation.as_ref().filter(|pages| pages.walks + pages.second_level_hits > 0)
    {
        let unused = percent(pages.unused_bytes, pages.visited_bytes);
        let second = match pages.second_level_hits {
            0 => String::new(),
            hits => format!("(L2 TLB had {})", count(hits)),
        };
        other("TLB", pages.walks, unused, second);
    }
    if let Some(conflicts) = detail.alias_conflicts.filter(|conflicts| *conflicts > 0) {
        other("4K", conflicts, String::new(), String::new());
    }
    if let Some(memory) = detail.memory.as_ref().filter(|memory| memory.remote > 0) {
        let of = format!("({} of memory's answers)", percent(memory.remote, memory.local + memory.remote));
        other("remote", memory.remote, String::new(), of);
    }
    lines
}

/// `arc.cost 61%, node.next 12%`.
fn evictors(level: &LevelCauses, misses: u64, names: &Names<'_>) -> String {
    let some = level.evicted_by.iter().take(2).map(|Evictor { row, misses: of_row }| {
        let by = row.and_then(|row| names.get(row)).map_or("others", |(name, ..)| name);
        format!("{by} {}", percent(*of_row, misses))
    });
    some.collect::<Vec<_>>().join(", ")
}

/// Loads that a store to another address may hold up; nothing if there are none.
pub fn aliases(simulation: &Simulation, style: Style) -> String {
    let mut out = String::new();
    let aliases = &simulation.aliases;
    if aliases.is_empty() {
        return out;
    }
    let room = style.width.saturating_sub(32).max(24) / 2;
    let access = |access: &Access| {
        let text = format!("{} {}", name(&access.data), place(&access.position));
        cut(&printable(&text), room).into_owned()
    };
    let mut table = plain_table(&["load", "store", "conflicts", "accesses apart"], 2);
    for alias in aliases.iter().take(style.top.min(ALIASES)) {
        table.add_row([
            access(&alias.load),
            access(&alias.store),
            count(alias.conflicts),
            alias.least_accesses.to_string(),
        ]);
    }
    let shown = aliases.len().min(style.top.min(ALIASES));
    let of =
        if aliases.len() > shown { format!(" (first {shown} of {})", aliases.len()) } else { String::new() };
    let title = "4K aliasing: loads that agree with an earlier store in the low 12 bits of another address";
    let _ = writeln!(out, "\n{}{of}", style.heading(title));
    write_table(&mut out, &table);
    out
}
