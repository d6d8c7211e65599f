//! Tables whose rows have names that fit, and numbers beside them.

use std::fmt::Write;

use super::{Style, plain_table};

/// The names of some rows.
pub struct NamedRows {
    /// Subject of the table.
    pub title: &'static str,
    /// Headings of the names, and of numbers that belong to them.
    pub columns: &'static [&'static str],
    /// Texts by row and column.
    pub texts: Vec<Vec<String>>,
    /// Below each row, where a row takes two lines.
    pub below: Vec<String>,
}

impl NamedRows {
    /// The table: names, and beside them cells under headings. There are `all` rows, of which these are the first.
    pub fn table(self, headings: &[String], cells: Vec<Vec<String>>, all: usize, style: Style) -> String {
        let columns = self.columns.iter().map(|column| column.to_string());
        let headings: Vec<String> = columns.chain(headings.iter().cloned()).collect();
        let mut table = plain_table(&headings, self.columns.len());
        let shown = self.texts.len();
        for (mut row, cells) in self.texts.into_iter().zip(cells) {
            row.extend(cells);
            table.add_row(row);
        }
        let of = if all > shown { format!(" (first {shown} of {all})") } else { String::new() };
        let mut out = format!("\n{}{of}\n", style.heading(self.title));
        // A heading, and a line for each row.
        let below = std::iter::once(None).chain(self.below.iter().map(Some)).chain(std::iter::repeat(None));
        for (line, below) in table.lines().zip(below) {
            let _ = writeln!(out, "  {}", line.trim_end());
            let below = below.into_iter().filter(|text| !text.is_empty());
            below.for_each(|text| _ = writeln!(out, "    {text}"));
        }
        out
    }
}

/// Names of subjects, in a number of columns of a terminal.
pub mod named {
    use super::NamedRows;
    use crate::model::{Access, Data, Function, Object, Thread, Type};
    use crate::render::terminal::Style;
    use crate::render::terminal::label::{Detail, Label, distinct};
    use crate::render::terminal::names::{data_label, function_label, object_label, place_label, type_label};
    use crate::render::text::{brief, bytes, count};

    fn by_label<S>(
        title: &'static str,
        columns: &'static [&'static str],
        rows: &[&S],
        room: usize,
        label: impl Fn(&S, Detail) -> Label,
    ) -> NamedRows {
        let texts = distinct(rows, |row, detail| vec![label(row, detail)], &[room]);
        NamedRows { title, columns, texts, below: Vec::new() }
    }

    /// Members, and variables and arrays that have none.
    pub fn data(rows: &[&Data], room: usize) -> NamedRows {
        by_label("Data", &["data"], rows, room, data_label)
    }

    /// Members of types.
    pub fn members(rows: &[&Data], room: usize) -> NamedRows {
        by_label("Members", &["member"], rows, room, data_label)
    }

    /// Types.
    pub fn types(rows: &[&Type], room: usize) -> NamedRows {
        by_label("Types", &["type"], rows, room, type_label)
    }

    /// Functions.
    pub fn functions(rows: &[&Function], room: usize) -> NamedRows {
        by_label("Functions", &["function"], rows, room, function_label)
    }

    /// Data and line side by side, or where that would cut them, one below the other.
    pub fn lines(rows: &[&Access], room: usize, style: Style) -> NamedRows {
        let labels = |row: &&Access, detail| {
            let Access { data, position } = row;
            vec![data_label(data, detail), place_label(position, detail)]
        };
        let widest = |column: usize, width: fn(&Label) -> usize| {
            rows.iter().map(|row| width(&labels(row, 0)[column])).max().unwrap_or(0)
        };
        let data = widest(0, Label::width);
        let left = room.saturating_sub(data + 4);
        let title = "Data and line";
        // Data whole, and some room for functions; otherwise two lines a row.
        if widest(1, Label::width) <= left || widest(1, Label::least_width) + 12 <= left {
            let texts = distinct(rows, labels, &[data, left]);
            return NamedRows { title, columns: &["data", "line"], texts, below: Vec::new() };
        }
        let below = style.width.saturating_sub(4);
        let texts = distinct(rows, labels, &[room, below]);
        let (texts, below) = texts.into_iter().map(|mut row| (vec![row.remove(0)], row.remove(0))).unzip();
        NamedRows { title, columns: &["data"], texts, below }
    }

    /// Objects, with how many there were and how large they are.
    pub fn objects(rows: &[&Object], room: usize, style: Style) -> NamedRows {
        let element = |object: &Object| {
            let element = brief(object.element.as_deref().unwrap_or(""));
            Label::default().name(&if object.element_by_use { format!("~{element}") } else { element })
        };
        let labels = |row: &&Object, detail| vec![object_label(row, detail), element(row)];
        let elements = rows.iter().map(|row| element(row).width()).max().unwrap_or(0);
        let elements = elements.min(room / 3).max("element".len());
        let left = room.saturating_sub(elements + 2);
        let widest = rows.iter().map(|row| object_label(row, 0).width()).max().unwrap_or(0);
        let is_wide = widest <= left;
        let widths = if is_wide { [left, elements] } else { [style.width.saturating_sub(4), room] };
        let mut below = Vec::new();
        let texts = distinct(rows, labels, &widths).into_iter().zip(rows).map(|(mut row, object)| {
            if !is_wide {
                below.push(row.remove(0));
            }
            let made = (object.count > 0).then(|| [count(object.count), bytes(object.bytes)]);
            // Every row has all columns.
            row.extend(made.unwrap_or_default());
            row
        });
        let texts = texts.collect();
        let columns: &[&str] =
            if is_wide { &["object", "element", "number", "size"] } else { &["element", "number", "size"] };
        NamedRows { title: "Objects", columns, texts, below }
    }

    /// Threads of `processes` processes.
    pub fn threads(rows: &[&Thread], processes: usize) -> NamedRows {
        let text = |thread: &&Thread| {
            let name = match processes {
                1 => format!("{} (tid {})", thread.thread, thread.tid),
                _ => format!("{} (tid {} of pid {})", thread.thread, thread.tid, thread.pid),
            };
            vec![name, thread.core.to_string()]
        };
        let texts = rows.iter().map(text).collect();
        NamedRows { title: "Threads", columns: &["thread", "core"], texts, below: Vec::new() }
    }
}
