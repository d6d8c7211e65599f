//! The tables of `memlode sim`: a block of lines for each row of a report's table, one for each level that missed.

use std::fmt::Write;

use super::label::{self, Label, distinct};
use super::names::{access_label, data_label, object_label, type_label};
use super::{By, Style, plain_table};
use crate::model::{Access, Detail, Evictor, LevelCauses, Numbers, Row, Simulation};
use crate::render::text::{count, cut_end, percent, percent_of};

/// Columns that the numbers take: level, misses, the causes, unused.
const NUMBERS: usize = 57;

/// Columns that the causes take that other cores are.
const SHARING: usize = 26;

/// Columns that the errors of misses take.
const ERRORS: usize = 9;

/// The row of all accesses.
const ALL: &str = "(all accesses)";

/// The least width of the columns of evictors, and of the part for one name.
const EVICTORS: usize = 26;
const EVICTOR: usize = 24;

/// Pairs of 4K aliasing shown.
const ALIASES: usize = 5;

/// A table of causes; functions and threads have none.
pub fn causes(simulation: &Simulation, by: By, style: Style) -> String {
    let report = &simulation.report;
    let coherent = simulation.coherence.is_some();
    let sampled = report.total.numbers.standard_errors.is_some();
    let numbers = NUMBERS + if coherent { SHARING } else { 0 } + if sampled { ERRORS } else { 0 };
    let room = style.width.saturating_sub(numbers).max(24);
    let width = style.width.saturating_sub(2);
    let (title, rows): (_, Rows<'_>) = match by {
        By::Line => ("Data and line", named(&report.lines, access_label, width)),
        By::Data => ("Data", named(&report.data, data_label, width)),
        By::Field => ("Members", named(&report.fields, data_label, width)),
        By::Type => ("Types", named(&report.types, type_label, width)),
        By::Object => ("Objects", named(&report.objects, object_label, width)),
        By::Function | By::Thread => return String::new(),
    };
    let shared: &[&str] = if coherent { &["held", "true sh.", "false sh."] } else { &[] };
    let headings = [
        &["", "level", "misses"][..],
        if sampled { &["±"] } else { &[] },
        &["cold", "capacity", "conflict"],
        shared,
        &["unused", "line lost to"],
    ]
    .concat();
    let mut table = plain_table(&headings, 2);
    if let Some(column) = table.column_mut(headings.len() - 1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let (shown, all) = (rows.len().min(style.top), rows.len());
    let widest =
        rows.iter().take(shown).map(|row| row.name.chars().count()).max().unwrap_or(0).max(ALL.len());
    // Names that leave no room for what lines were lost to have a line of their own.
    let is_beside = widest + EVICTORS <= room;
    let left = room.saturating_sub(if is_beside { widest } else { 2 });
    let total = &report.total;
    let whole = (ALL.to_string(), &total.numbers, total.detail.as_ref());
    let named = rows.iter().take(shown).map(|row| (row.name.clone(), row.numbers, row.detail));
    let mut above: Vec<Option<String>> = vec![None];
    for (mut name, numbers, detail) in std::iter::once(whole).chain(named) {
        let errors = sampled.then(|| miss_errors(numbers));
        let found = detail.map(|detail| lines(detail, errors.as_deref(), coherent, left, &rows));
        let mut found = found.unwrap_or_default();
        if found.is_empty() {
            found.push(vec!["none".into()]);
        }
        for line in found {
            let name = std::mem::take(&mut name);
            above.push((!is_beside && !name.is_empty()).then(|| name.clone()));
            table.add_row(std::iter::once(if is_beside { name } else { String::new() }).chain(line));
        }
    }
    let of = if all > shown { format!(" (first {shown} of {all})") } else { String::new() };
    let mut out = String::new();
    let title = format!("{title}: why they missed, and what was fetched and not used");
    let _ = writeln!(out, "\n{}{of}", style.heading(&title));
    for (line, above) in table.lines().zip(above) {
        above.into_iter().for_each(|name| _ = writeln!(out, "  {name}"));
        let _ = writeln!(out, "  {}", line.trim_end());
    }
    out
}

/// A row of a table.
struct Named<'a> {
    name: String,
    /// The short form, for narrow columns.
    short: String,
    numbers: &'a Numbers,
    detail: Option<&'a Detail>,
}

type Rows<'a> = Vec<Named<'a>>;

/// Rows with names that are all different.
fn named<S>(rows: &[Row<S>], label: impl Fn(&S, label::Detail) -> Label, width: usize) -> Rows<'_> {
    let names = |width| distinct(rows, |row, detail| vec![label(&row.subject, detail)], &[width]);
    let names = names(width).into_iter().zip(names(EVICTOR));
    let row = |((name, short), row)| {
        let (name, short): (Vec<String>, Vec<String>) = (name, short);
        let row: &Row<S> = row;
        Named {
            name: name.concat(),
            short: short.concat(),
            numbers: &row.numbers,
            detail: row.detail.as_ref(),
        }
    };
    names.zip(rows).map(row).collect()
}

/// The standard errors of the misses of each level, as parts of these.
fn miss_errors(numbers: &Numbers) -> Vec<String> {
    let Some(errors) = &numbers.standard_errors else { return Vec::new() };
    let levels = errors.misses.0.iter().zip(&numbers.misses.0);
    levels.map(|((_, error), (_, misses))| percent_of(error / (*misses).max(1) as f64)).collect()
}

/// A line for each level that missed, and for each further result. `errors` are those of the
/// levels' misses, if there is a column for them.
fn lines(
    detail: &Detail,
    errors: Option<&[String]>,
    coherent: bool,
    room: usize,
    rows: &Rows<'_>,
) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for (number, level) in detail.causes.iter().enumerate().filter(|(_, level)| level.misses() > 0) {
        let misses = level.misses();
        let mut line = vec![level.level.clone(), count(misses)];
        line.extend(errors.map(|errors| errors.get(number).cloned().unwrap_or_default()));
        line.extend([level.cold, level.capacity, level.conflict].map(|part| percent(part, misses)));
        if coherent {
            let shared = [level.held_elsewhere, level.true_sharing, level.false_sharing];
            line.extend(shared.map(|part| percent(part, misses)));
        }
        // What is fetched by nobody, as by an exclusive level, is not unused.
        let fetched = level.fetched_bytes > 0;
        line.push(if fetched { percent(level.unused_bytes, level.fetched_bytes) } else { String::new() });
        line.push(cut_end(&evictors(level, misses, rows), room).into_owned());
        lines.push(line);
    }
    // Other lines have no causes.
    let mut other = |name: &str, number: u64, unused: String, last: String| {
        let causes = if coherent { 6 } else { 3 } + usize::from(errors.is_some());
        let line = [name.to_string(), count(number)].into_iter().chain(vec![String::new(); causes]);
        lines.push(line.chain([unused, last]).collect());
    };
    if let Some(pages) = detail.translation.as_ref().filter(|pages| pages.walks + pages.second_level_hits > 0)
    {
        let unused = percent(pages.unused_bytes, pages.visited_bytes);
        let second = match pages.second_level_hits {
            0 => String::new(),
            hits => format!("({} hit the L2 TLB)", count(hits)),
        };
        other("TLB", pages.walks, unused, second);
    }
    if let Some(conflicts) = detail.alias_conflicts.filter(|conflicts| *conflicts > 0) {
        other("4K", conflicts, String::new(), String::new());
    }
    if let Some(memory) = detail.memory.as_ref().filter(|memory| memory.remote > 0) {
        let of = format!("({} of what memory served)", percent(memory.remote, memory.local + memory.remote));
        other("remote", memory.remote, String::new(), of);
    }
    lines
}

/// `arc.cost 61%, node.next 12%`.
fn evictors(level: &LevelCauses, misses: u64, rows: &Rows<'_>) -> String {
    let some = level.evicted_by.iter().take(2).map(|Evictor { row, misses: of_row }| {
        let by = row.and_then(|row| rows.get(row)).map_or("others", |row| row.short.as_str());
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
    let shown = aliases.len().min(style.top.min(ALIASES));
    let of =
        if aliases.len() > shown { format!(" (first {shown} of {})", aliases.len()) } else { String::new() };
    let title = "4K aliasing: loads that agree with an earlier store in the low 12 bits of another address";
    let _ = writeln!(out, "\n{}{of}", style.heading(title));
    let access = |access: &Access, room: usize| access_label(access, 0).fit(style.width.saturating_sub(room));
    for alias in &aliases[..shown] {
        let distance = match alias.least_accesses {
            1 => "the access before at the nearest".to_string(),
            n => format!("{n} accesses before at the nearest"),
        };
        let _ = writeln!(out, "  {:<9} loads of {}", count(alias.conflicts), access(&alias.load, 21));
        let room = 30 + distance.len();
        let _ = writeln!(out, "  {:<9} after stores to {}, {distance}", "", access(&alias.store, room));
    }
    out
}
