//! Columns of the subjects of rows.

use memlode_report::Data;
use memlode_report::render::terminal;
use memlode_report::{
    NamedAccess, NamedFunction, NamedHome, NamedRecord, NamedRecordPart, NamedThread, NamedType, Object,
    Position,
};

use crate::columns::Columns;

/// Adds data and the line that touches it.
pub fn accesses(out: &mut Columns, rows: &[&NamedAccess]) {
    data(out, &rows.iter().map(|row| &row.data).collect::<Vec<_>>());
    let places: Vec<_> = rows.iter().map(|row| Some(&row.position)).collect();
    positions(out, "", &places);
}

/// Adds types, members and variables.
pub fn data(out: &mut Columns, rows: &[&Data]) {
    named_data(out, "", rows);
}

/// Adds types, members and variables, in columns with this prefix.
pub fn named_data(out: &mut Columns, prefix: &str, rows: &[&Data]) {
    out.maybe_text(&format!("{prefix}type"), rows.iter().map(|row| row.ty.as_ref()));
    out.maybe_text(&format!("{prefix}member"), rows.iter().map(|row| row.member.as_ref()));
    out.maybe_text(&format!("{prefix}variable"), rows.iter().map(|row| row.variable.as_ref()));
}

/// Adds lines, in columns with this prefix, and the lines outside libraries into which they were
/// inlined.
pub fn positions(out: &mut Columns, prefix: &str, rows: &[Option<&Position>]) {
    lines(out, prefix, rows);
    out.bool(
        &format!("{prefix}line_borrowed"),
        rows.iter().map(|row| row.is_some_and(|row| row.borrowed || into(row).is_some_and(|at| at.borrowed))),
    );
    let outer: Vec<_> = rows.iter().map(|row| row.and_then(into)).collect();
    lines(out, &format!("{prefix}inlined_into_"), &outer);
}

fn into(row: &Position) -> Option<&Position> {
    row.inlined_into.as_deref()
}

fn lines(out: &mut Columns, prefix: &str, rows: &[Option<&Position>]) {
    let named = |name: &str| format!("{prefix}{name}");
    out.maybe_text(&named("file"), rows.iter().map(|row| row.and_then(|row| row.file.as_ref())));
    out.maybe_u32(&named("line"), rows.iter().map(|row| row.and_then(|row| row.line)));
    out.maybe_text(&named("function"), rows.iter().map(|row| row.map(|row| &row.function)));
    out.maybe_text(&named("linkage_name"), rows.iter().map(|row| row.map(|row| &row.linkage_name)));
}

/// Adds types.
pub fn types(out: &mut Columns, rows: &[&NamedType]) {
    out.text("type", rows.iter().map(|row| &row.name));
}

/// Adds functions.
pub fn functions(out: &mut Columns, rows: &[&NamedFunction]) {
    out.text("function", rows.iter().map(|row| &row.function));
    out.text("linkage_name", rows.iter().map(|row| &row.linkage_name));
}

/// Adds threads.
pub fn threads(out: &mut Columns, rows: &[&NamedThread]) {
    out.u64("thread", rows.iter().map(|row| row.thread.into()));
    out.u64("process", rows.iter().map(|row| row.process.into()));
    out.u64("pid", rows.iter().map(|row| row.pid.into()));
    out.u64("tid", rows.iter().map(|row| row.tid.into()));
    out.u64("core", rows.iter().map(|row| row.core.into()));
}

/// Adds classes of objects.
pub fn objects(out: &mut Columns, rows: &[&Object]) {
    homes(out, &rows.iter().map(|row| Some(&row.home)).collect::<Vec<_>>());
    out.maybe_text("element", rows.iter().map(|row| row.element.as_ref()));
    out.bool("element_by_use", rows.iter().map(|row| row.element_by_use));
    out.u64("objects", rows.iter().map(|row| row.count));
    out.u64("object_bytes", rows.iter().map(|row| row.bytes));
}

/// Adds homes of objects: one name, and the parts of it.
pub fn homes(out: &mut Columns, rows: &[Option<&NamedHome>]) {
    let kind = |home: &NamedHome| match home {
        NamedHome::Unknown => "unknown",
        NamedHome::Heap { .. } => "heap",
        NamedHome::Global { .. } => "global",
        NamedHome::Stack { .. } => "stack",
    };
    out.maybe_text("object_kind", rows.iter().map(|row| row.map(kind)));
    out.maybe_text("object", rows.iter().map(|row| row.map(terminal::home)));
    let heap: Vec<_> = rows
        .iter()
        .map(|row| match row {
            Some(NamedHome::Heap { allocated_at, path, .. }) => Some((allocated_at, path)),
            _ => None,
        })
        .collect();
    let allocated: Vec<_> = heap.iter().map(|row| row.map(|(at, _)| at)).collect();
    lines(out, "allocated_", &allocated);
    out.texts("allocation_path", heap.iter().map(|row| row.map_or(Vec::new(), |(_, path)| path.clone())));
    let symbol = |row: &Option<&NamedHome>| match row {
        Some(NamedHome::Global { symbol, .. }) => Some(symbol.clone()),
        Some(NamedHome::Stack { variable, .. }) => variable.clone(),
        _ => None,
    };
    out.maybe_text("object_variable", rows.iter().map(symbol));
    let holder = |row: &Option<&NamedHome>| match row {
        Some(NamedHome::Global { image, .. }) => Some(image.clone()),
        Some(NamedHome::Stack { function, .. }) => Some(function.clone()),
        _ => None,
    };
    out.maybe_text("object_of", rows.iter().map(holder));
}

/// Makes the table of the members of all records, including those of unnamed records inside them.
pub fn layouts(records: &[NamedRecord]) -> Columns {
    let mut parts: Vec<(&NamedRecord, u64, &NamedRecordPart)> = Vec::new();
    records.iter().for_each(|record| collect(record, record, 0, &mut parts));
    let mut out = Columns::new(parts.len());
    out.text("type", parts.iter().map(|(record, ..)| &record.name));
    out.text("form", parts.iter().map(|(record, ..)| &record.form));
    out.u64("type_bytes", parts.iter().map(|(record, ..)| record.bytes));
    out.text("member", parts.iter().map(|(.., part)| &part.name));
    out.text("kind", parts.iter().map(|(.., part)| &part.kind));
    out.text("member_type", parts.iter().map(|(.., part)| &part.ty));
    out.u64("first_bit", parts.iter().map(|(_, base, part)| base + part.first_bit));
    out.u64("bits", parts.iter().map(|(.., part)| part.bits));
    out
}

fn collect<'r>(
    named: &'r NamedRecord,
    record: &'r NamedRecord,
    base: u64,
    parts: &mut Vec<(&'r NamedRecord, u64, &'r NamedRecordPart)>,
) {
    for part in &record.members {
        match &part.inside {
            Some(inside) => collect(named, inside, base + part.first_bit, parts),
            None => parts.push((named, base, part)),
        }
    }
}
