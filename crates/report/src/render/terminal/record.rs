//! Records drawn whole, in the notation of `pahole`.

use std::fmt::Write;

use crate::model::{RecordLayout, RecordPart};

/// Bytes of a cache line, whose ends are marked.
const LINE_BYTES: u64 = 64;

/// Draws a record: members with offset and size in bytes, holes, and where cache lines begin if it begins at one.
pub fn draw(record: &RecordLayout) -> String {
    draw_with(record, &|_| None)
}

/// The same with something behind the members that have it.
pub fn draw_with(record: &RecordLayout, heat: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    // What has no name is called by what it is, and where.
    match record.name.starts_with(&*record.form) {
        true => drop(writeln!(out, "{} {{", record.name)),
        false => drop(writeln!(out, "{} {} {{", record.form, record.name)),
    }
    if record.incomplete {
        let _ = writeln!(out, "    /* declared only */\n}};");
        return out;
    }
    let mut drawing = Drawing { out, lines: 1, indent: 1, heat };
    drawing.members(record, 0, 0);
    drawing.summary(record);
    drawing.out += "};\n";
    drawing.out
}

struct Drawing<'h> {
    out: String,
    /// The text that stands behind a member of the record itself.
    heat: &'h dyn Fn(&str) -> Option<String>,
    /// Number of the next cache line whose beginning is to be marked.
    lines: u64,
    indent: usize,
}

/// Holes of a record.
#[derive(Default)]
struct Holes {
    count: u64,
    bits: u64,
}

impl Drawing<'_> {
    fn line(&mut self, text: &str) {
        let width = if text.is_empty() { 0 } else { self.indent * 4 };
        let _ = writeln!(self.out, "{:width$}{text}", "");
    }

    /// The members of a record that begins at a bit of the one that is drawn.
    fn members(&mut self, record: &RecordLayout, at: u64, depth: usize) {
        let overlap = matches!(&*record.form, "union" | "variants");
        let mut end = 0;
        for part in in_order(record) {
            if !overlap && part.first_bit > end {
                self.hole(part.first_bit - end);
            }
            end = end.max(part.first_bit + part.bits);
            self.boundary(at + part.first_bit);
            self.part(part, at, depth);
        }
    }

    fn hole(&mut self, bits: u64) {
        let text = match (bits / 8, bits % 8) {
            (bytes, 0) => format!("/* {bytes} bytes hole */"),
            (0, bits) => format!("/* {bits} bits hole */"),
            (bytes, bits) => format!("/* {bytes} bytes and {bits} bits hole */"),
        };
        self.line("");
        self.line(&text);
        self.line("");
    }

    /// Marks the cache lines that begin at or before a bit, and have not been marked.
    fn boundary(&mut self, bit: u64) {
        let number = bit / 8 / LINE_BYTES;
        if number < self.lines {
            return;
        }
        let ago = match bit / 8 - number * LINE_BYTES {
            0 => String::new(),
            bytes => format!(" was {bytes} bytes ago"),
        };
        self.line(&format!("/* --- cacheline {number} boundary ({} bytes){ago} --- */", number * LINE_BYTES));
        self.lines = number + 1;
    }

    fn part(&mut self, part: &RecordPart, at: u64, depth: usize) {
        let first = at + part.first_bit;
        let mut notes = vec![match part.bit_field {
            true => format!("{:>5}:{:<2} {:>3} bits", first / 8, first % 8, part.bits),
            false => format!("{:>5} {:>9}", first / 8, part.bits / 8),
        }];
        match &*part.kind {
            "field" | "variants" => {}
            "variant" => notes.push(match part.value {
                Some(value) => format!("if {value}"),
                None => "otherwise".to_owned(),
            }),
            // Where it is depends on the object.
            "virtual base" => notes = vec![part.kind.to_string()],
            kind => notes.push(kind.to_owned()),
        }
        if part.escapes {
            notes.push("address escapes".to_owned());
        }
        let notes = notes.join(", ");
        let behind = if depth == 0 { (self.heat)(&part.name) } else { None };
        let behind = behind.map_or(String::new(), |text| format!(" {text}"));
        // Types nest no deeper than debug information does; what draws them must not rely on it.
        if let Some(inside) = part.inside.as_ref().filter(|_| depth < 64) {
            self.line(&format!("{} {{", inside.form));
            self.indent += 1;
            self.members(inside, first, depth + 1);
            self.indent -= 1;
            let width = 50_usize.saturating_sub(self.indent * 4 - 4);
            self.line(&format!("{:<width$} /* {notes} */{behind}", "};"));
            return;
        }
        let (ty, extents) = match part.ty.find('[') {
            Some(at) if part.ty.ends_with(']') => part.ty.split_at(at),
            _ => (&part.ty[..], ""),
        };
        let width = 50_usize.saturating_sub(self.indent * 4 - 4);
        let declared = format!("{ty:<26} {}{extents};", part.name);
        self.line(&format!("{declared:<width$} /* {notes} */{behind}"));
    }

    fn summary(&mut self, record: &RecordLayout) {
        let lines = record.bytes.div_ceil(LINE_BYTES);
        self.line("");
        let (bytes, members) = (record.bytes, record.members.len());
        self.line(&format!("/* size: {bytes}, cachelines: {lines}, members: {members} */"));
        let (holes, padding) = free(record);
        if holes.count > 0 {
            let (count, bytes, bits) = (holes.count, holes.bits / 8, holes.bits % 8);
            let bits = if bits > 0 { format!(" and {bits} bits") } else { String::new() };
            self.line(&format!("/* holes: {count}, sum holes: {bytes} bytes{bits} */"));
        }
        if padding > 0 {
            self.line(&format!("/* padding: {padding} */"));
        }
        if !record.bytes.is_multiple_of(LINE_BYTES) && lines > 1 {
            self.line(&format!("/* last cacheline: {} bytes */", record.bytes % LINE_BYTES));
        }
        if record.cast {
            self.line("/* pointers to it are cast to or from another record */");
        }
    }
}

/// Members as they lie in memory.
fn in_order(record: &RecordLayout) -> Vec<&RecordPart> {
    let mut parts: Vec<&RecordPart> = record.members.iter().collect();
    if record.form != "union" && record.form != "variants" {
        parts.sort_by_key(|part| part.first_bit);
    }
    parts
}

/// Holes of a record, and the bytes behind its last member.
fn free(record: &RecordLayout) -> (Holes, u64) {
    let mut holes = Holes::default();
    let mut end = 0;
    for part in in_order(record) {
        if part.first_bit > end && !matches!(&*record.form, "union" | "variants") {
            holes.count += 1;
            holes.bits += part.first_bit - end;
        }
        end = end.max(part.first_bit + part.bits);
    }
    (holes, record.bytes.saturating_sub(end.div_ceil(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, ty: &str, first_bit: u64, bits: u64) -> RecordPart {
        RecordPart {
            name: name.to_owned(),
            kind: "field".into(),
            first_bit,
            bits,
            ty: ty.to_owned(),
            bit_field: false,
            escapes: false,
            value: None,
            inside: None,
        }
    }

    #[test]
    fn a_record_is_drawn_with_its_holes_and_lines() {
        let record = RecordLayout {
            name: "packet".to_owned(),
            form: "struct".into(),
            bytes: 88,
            incomplete: false,
            watched: true,
            cast: true,
            members: vec![
                field("kind", "char", 0, 8),
                RecordPart { escapes: true, ..field("length", "int", 32, 32) },
                field("body", "char[60]", 64, 480),
                RecordPart { bit_field: true, ..field("last", "unsigned int", 547, 5) },
                field("next", "packet *", 576, 64),
            ],
        };
        let expected = "\
struct packet {
    char                       kind;                   /*     0         1 */

    /* 3 bytes hole */

    int                        length;                 /*     4         4, address escapes */
    char                       body[60];               /*     8        60 */

    /* 3 bits hole */

    /* --- cacheline 1 boundary (64 bytes) was 4 bytes ago --- */
    unsigned int               last;                   /*    68:3    5 bits */

    /* 3 bytes hole */

    packet *                   next;                   /*    72         8 */

    /* size: 88, cachelines: 2, members: 5 */
    /* holes: 3, sum holes: 6 bytes and 3 bits */
    /* padding: 8 */
    /* last cacheline: 24 bytes */
    /* pointers to it are cast to or from another record */
};
";
        assert_eq!(draw(&record), expected);
    }
}
