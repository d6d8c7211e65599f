//! Reports as text that fits a screen.

mod causes;
mod record;
mod report;
mod rules;
mod sample;
mod sharing;
mod style;
mod tables;

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::sentences;
use super::text::{brief, printable};
use crate::model::{Analysis, Data, Home, Object, Position, Report, Simulation};
use crate::names::demangle_short;

pub use record::draw as draw_record;
pub use style::Style;

/// A table of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Data and line.
    Line,
    /// Type.
    Type,
    /// Member of a type.
    Field,
    /// Objects.
    Object,
    /// Function.
    Function,
    /// Thread.
    Thread,
}

/// What `memlode report` prints.
pub fn report(found: &Report, by: &[By], style: Style) -> String {
    report::header(found, style) + &report::findings(found, style) + &report::tables(found, by, style)
}

/// What `memlode sim` prints.
pub fn simulation(found: &Simulation, by: &[By], style: Style) -> String {
    let mut text = report::header(&found.report, style);
    text += &rules::rules(&found.rules, style);
    for &table in by {
        text += &causes::causes(found, table, style);
    }
    text += &sharing::sharing(found, style);
    text += &rules::prefetchers(&found.besides, style);
    text += &causes::aliases(found, style);
    text + &report::tables(&found.report, &[By::Thread], Style { top: usize::MAX, ..style })
}

/// What `memlode replay --analyse` and `memlode timeline` print, and the notes that go with it.
pub fn analysis(found: &Analysis, style: Style) -> (String, Vec<String>) {
    let tables = found.tables.iter().map(|table| tables::table(table, style)).collect();
    (tables, found.notes.iter().map(sentences::note).collect())
}

/// A table without lines; the columns from `left` on hold numbers.
fn plain_table(headings: &[impl ToString], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(ToString::to_string));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// `arc.state`, `table[]`, `int`, or what else is known.
pub fn name(data: &Data) -> String {
    let ty = data.ty.as_deref().map(brief);
    let text = match (&ty, &data.member, &data.variable) {
        (Some(ty), Some(member), _) => format!("{ty}.{member}"),
        (None, Some(member), Some(variable)) => format!("{variable}.{member}"),
        (Some(ty), None, Some(variable)) => format!("{variable} ({ty})"),
        (None, None, Some(variable)) => variable.clone(),
        (Some(ty), None, None) => ty.to_string(),
        (None, Some(member), None) => member.clone(),
        (None, None, None) => "(no name)".to_string(),
    };
    printable(&text).into_owned()
}

/// `before.c:50 price_block`; for a library's line, `app.cpp:12 main (in stl_vector.h:1126)`: the line that the
/// reader can change comes first.
pub fn place(position: &Position) -> String {
    match &position.inlined_into {
        Some(outer) => format!("{} (in {})", place(outer), file_and_line(position)),
        None => {
            let function = printable(&brief(&demangle_short(&position.linkage_name))).into_owned();
            match file_and_line(position) {
                place if place.is_empty() => function,
                place => format!("{place} {function}"),
            }
        }
    }
}

fn file_and_line(position: &Position) -> String {
    let Some(file) = position.file.as_deref() else { return String::new() };
    let file = printable(file.rsplit('/').next().unwrap_or(file));
    position.line.map_or(file.to_string(), |line| format!("{file}:{line}"))
}

/// Where objects live and where they came from, in a line; heap objects by the call that allocates them.
pub fn object(object: &Object) -> String {
    home(&object.home)
}

/// The same of their home alone.
pub fn home(home: &Home) -> String {
    let text = match home {
        Home::Unknown => "memory of unknown origin".to_string(),
        Home::Heap { allocated_at, path, path_complete } => {
            let own = demangle_short(&allocated_at.linkage_name);
            let callers = path.iter().skip_while(|f| **f == own).map(|f| brief(f));
            let off = (!path_complete).then(|| "(recording was off)".to_owned());
            let callers: String = callers.chain(off).map(|caller| format!(" ← {caller}")).collect();
            format!("{}{callers}", place(allocated_at))
        }
        Home::Global { symbol, image } => format!("global {} of {image}", brief(symbol)),
        Home::Stack { function, variable: Some(variable) } => {
            format!("stack of {}: {variable}", brief(function))
        }
        Home::Stack { function, variable: None } => format!("stack of {}", brief(function)),
    };
    printable(&text).into_owned()
}

fn write_table(out: &mut String, table: &Table) {
    for line in table.lines() {
        let _ = writeln!(out, "  {}", line.trim_end());
    }
}
