//! The bytes of the program's structures, and the rows of the report that are about them.

use std::collections::HashMap;

use memlode_report::render::page::short;
use memlode_report::{Advice, NamedRecord, RecordPart, Report};
use serde::Serialize;

/// Structures that a page draws at most.
const MOST: usize = 80;

/// Members of one that are drawn at most.
const MOST_MEMBERS: usize = 600;

/// Records inside each other that are looked into.
const DEPTH: usize = 8;

/// A row among the report's fields, and the number of members that it may be about: of an access to `left|right`
/// each has its part.
type Part = (usize, usize);

/// A structure that the program uses.
#[derive(Debug, Serialize)]
pub struct Structure {
    /// Its row among the report's types.
    row: usize,
    /// Its name, shortened.
    name: String,
    /// Its full name.
    full: String,
    /// Its size.
    bytes: u64,
    /// Its form: `struct`, `class`, `union`.
    form: String,
    /// Its members, in the order of their bytes.
    members: Vec<Member>,
    /// True if members were left out.
    is_cut: bool,
    /// Rows among the report's fields that belong to no member of it that is known.
    others: Vec<usize>,
    /// True if the published rules split it; unknown where they were not asked.
    is_split: Option<bool>,
}

/// A member, or a part of one that is a structure itself.
#[derive(Debug, Serialize)]
struct Member {
    /// Its path.
    path: String,
    /// Its type.
    #[serde(rename = "type")]
    ty: String,
    /// First bit.
    first_bit: u64,
    /// Bits.
    bits: u64,
    /// Rows that are about it.
    rows: Vec<Part>,
    /// Cold by the published rules; unknown where they were not asked.
    is_cold: Option<bool>,
}

/// Finds the layouts of the types that the report is about, in its order.
pub fn structures(report: &Report, records: &[NamedRecord], advice: Option<&Advice>) -> Vec<Structure> {
    let known: HashMap<&str, &NamedRecord> = records
        .iter()
        .rev()
        .filter(|record| !record.incomplete)
        .map(|record| (&record.name[..], record))
        .collect();
    let mut fields: HashMap<&str, Vec<(Part, &str)>> = HashMap::new();
    for (at, row) in report.fields.iter().enumerate() {
        if let (Some(ty), Some(member)) = (&row.subject.ty, &row.subject.member) {
            fields.entry(ty).or_default().extend(parts(at, member));
        }
    }
    let draw = |(row, ty): (usize, &str)| {
        let layout = known.get(ty)?;
        let rows = fields.get(ty).map_or(&[][..], Vec::as_slice);
        let mut reader = Reader { known: &known, rows, members: Vec::new() };
        reader.record(layout, "", 0, 0);
        let mut members = reader.members;
        members.sort_by_key(|member| member.first_bit);
        let others = place(&mut members, rows);
        let chart = advice.and_then(|advice| advice.structures.iter().find(|chart| chart.ty == ty));
        if let Some(chart) = chart {
            for member in &mut members {
                let top = member.path.split(['.', '[']).next().unwrap_or_default();
                member.is_cold =
                    chart.members.iter().find(|known| known.member == top).map(|known| known.is_cold);
            }
        }
        Some(Structure {
            row,
            name: short(ty),
            full: ty.to_string(),
            bytes: layout.bytes,
            form: layout.form.to_string(),
            is_cut: members.len() > MOST_MEMBERS,
            members: members.into_iter().take(MOST_MEMBERS).collect(),
            others,
            is_split: chart.map(|chart| chart.is_split),
        })
    };
    let types = report.types.iter().map(|row| &row.subject.name[..]).enumerate();
    types.filter_map(draw).take(MOST).collect()
}

/// The members that a row may be about, by their paths.
fn parts(row: usize, path: &str) -> impl Iterator<Item = (Part, &str)> {
    let members = path.split('|').count();
    path.split('|').map(move |path| ((row, members), path))
}

/// Gives each row to the members that it is about. Returns those of no member.
fn place(members: &mut [Member], rows: &[(Part, &str)]) -> Vec<usize> {
    let mut others = Vec::new();
    for &(row, path) in rows {
        let holds = |member: &&mut Member| is_at_or_below(path, &member.path);
        match members.iter_mut().filter(holds).max_by_key(|member| member.path.len()) {
            Some(member) => member.rows.push(row),
            None => others.push(row.0),
        }
    }
    others
}

/// `pos.x` and `pos[].x` are below `pos`.
fn is_at_or_below(path: &str, member: &str) -> bool {
    path.strip_prefix(member).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Walks through a record and those inside it.
struct Reader<'a> {
    known: &'a HashMap<&'a str, &'a NamedRecord>,
    rows: &'a [(Part, &'a str)],
    members: Vec<Member>,
}

impl Reader<'_> {
    fn record(&mut self, record: &NamedRecord, prefix: &str, first_bit: u64, depth: usize) {
        for part in &record.members {
            self.part(part, prefix, first_bit + part.first_bit, depth);
        }
    }

    fn part(&mut self, part: &RecordPart, prefix: &str, first_bit: u64, depth: usize) {
        let path = match (prefix.is_empty(), part.name.is_empty()) {
            (_, true) => prefix.to_string(),
            (true, false) => part.name.clone(),
            (false, false) => format!("{prefix}.{}", part.name),
        };
        let inside = part.inside.as_deref().or_else(|| self.known.get(&part.ty[..]).copied());
        // A member is one piece unless rows tell its parts; what has no name of its own is its parts.
        let is_nameless = part.name.is_empty() || part.inside.is_some() || part.kind == "base";
        let is_told =
            |&(_, row): &(Part, &str)| row.strip_prefix(&path[..]).is_some_and(|rest| rest.starts_with('.'));
        if let Some(inside) = inside.filter(|_| depth < DEPTH && self.members.len() <= MOST_MEMBERS) {
            let path = if part.kind == "base" { prefix } else { &path };
            if is_nameless || self.rows.iter().any(is_told) {
                return self.record(inside, path, first_bit, depth + 1);
            }
        }
        let path = if path.is_empty() { format!("({})", part.kind) } else { path };
        self.members.push(Member {
            path,
            ty: short(&part.ty),
            first_bit,
            bits: part.bits,
            rows: Vec::new(),
            is_cold: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, kind: &'static str, ty: &str, byte: u64, bytes: u64) -> RecordPart {
        RecordPart {
            name: name.into(),
            kind: kind.into(),
            first_bit: 8 * byte,
            bits: 8 * bytes,
            ty: ty.into(),
            bit_field: false,
            escapes: false,
            value: None,
            inside: None,
        }
    }

    fn record(name: &str, bytes: u64, members: Vec<RecordPart>) -> NamedRecord {
        NamedRecord {
            name: name.into(),
            form: "struct".into(),
            bytes,
            incomplete: false,
            watched: false,
            cast: false,
            members,
        }
    }

    /// A member's path, its first byte, and its rows.
    type Placed = (String, u64, Vec<Part>);

    /// Places rows in members; those of no member are returned besides.
    fn read(records: &[NamedRecord], rows: &[(usize, &str)]) -> (Vec<Placed>, Vec<usize>) {
        let known = records.iter().map(|record| (&record.name[..], record)).collect();
        let rows: Vec<(Part, &str)> = rows.iter().flat_map(|&(row, path)| parts(row, path)).collect();
        let mut reader = Reader { known: &known, rows: &rows, members: Vec::new() };
        reader.record(&records[0], "", 0, 0);
        let mut members = reader.members;
        let others = place(&mut members, &rows);
        (members.into_iter().map(|member| (member.path, member.first_bit / 8, member.rows)).collect(), others)
    }

    #[test]
    fn a_record_inside_is_taken_apart_where_rows_tell_its_members() {
        let outer = record(
            "outer",
            32,
            vec![part("a", "field", "point", 0, 16), part("b", "field", "point", 16, 16)],
        );
        let point =
            record("point", 16, vec![part("x", "field", "double", 0, 8), part("y", "field", "double", 8, 8)]);
        let (members, others) = read(&[outer, point], &[(7, "b.y"), (8, "a"), (9, "c"), (6, "a|b.y")]);
        let expected =
            [("a", 0, vec![(8, 1), (6, 2)]), ("b.x", 16, vec![]), ("b.y", 24, vec![(7, 1), (6, 2)])]
                .map(|(a, b, c)| (a.to_string(), b, c));
        assert_eq!(members, expected);
        assert_eq!(others, [9]);
    }

    #[test]
    fn members_of_a_base_are_those_of_the_class_and_elements_those_of_the_array() {
        let class =
            record("derived", 24, vec![part("base", "base", "base", 0, 8), part("all", "field", "", 8, 16)]);
        let base = record("base", 8, vec![part("id", "field", "int", 4, 4)]);
        let (members, others) = read(&[class, base], &[(0, "id"), (1, "all[]"), (2, "all[].x"), (3, "allx")]);
        let expected = [("id", 4, vec![(0, 1)]), ("all", 8, vec![(1, 1), (2, 1)])]
            .map(|(a, b, c)| (a.to_string(), b, c));
        assert_eq!(members, expected);
        assert_eq!(others, [3]);
    }

    #[test]
    fn a_record_that_holds_itself_ends() {
        let (members, _) =
            read(&[record("odd", 8, vec![part("self", "base", "odd", 0, 8)])], &[(0, "self.self")]);
        assert_eq!(members.len(), 1);
    }
}
