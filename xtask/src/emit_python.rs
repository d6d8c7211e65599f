//! The Python view: standard library only.

use std::fmt::Write;

use crate::generate::NOTICE;
use crate::schema::{Field, Schema};

/// The Python class of a structure.
const LAYOUT: &str = r#"
class Layout:
    """A fixed structure: unpack() gives a named tuple, pack() takes the same values by name."""

    def __init__(self, name, *fields):
        self.fields = fields  # (name, struct code, count or None for a scalar)
        self.tuple = namedtuple(name, [field[0] for field in fields])
        self.struct = struct.Struct("<" + "".join(f"{count or ''}{code}" for _, code, count in fields))
        self.size = self.struct.size

    def unpack(self, buffer, offset=0):
        values = iter(self.struct.unpack_from(buffer, offset))
        return self.tuple(*(
            next(values) if count is None or code == "s" else tuple(next(values) for _ in range(count))
            for _, code, count in self.fields
        ))

    def pack(self, **values):
        flat = []
        for name, code, count in self.fields:
            if count is None or code == "s":
                flat.append(values.get(name, b"" if code == "s" else 0))
            else:
                flat.extend(values.get(name, [0] * count))
        return self.struct.pack(*flat)
"#;

/// `memlode_format.py`
pub fn emit(schema: &Schema) -> String {
    let mut out = format!(
        "# {NOTICE}\n\"\"\"The numbers and structures of the memlode trace format; see format/SPEC.md.\"\"\"\n\n\
         import struct\nfrom collections import namedtuple\n"
    );
    for group in &schema.groups {
        let doc = if group.doc.is_empty() { &group.name } else { &group.doc };
        let _ = writeln!(out, "\n# {doc}");
        for constant in &group.constants {
            let doc = if constant.doc.is_empty() { String::new() } else { format!("  # {}", constant.doc) };
            let name = format!("{}_{}", group.name.to_uppercase(), constant.name.to_uppercase());
            let _ = writeln!(out, "{name} = {}{doc}", constant.spelling);
        }
    }
    let _ = write!(out, "\n{LAYOUT}\n");
    for structure in &schema.structs {
        let _ = writeln!(out, "\n# {}", structure.doc);
        let _ = writeln!(out, "{} = Layout(\n    \"{}\",", structure.name.to_uppercase(), structure.name);
        for field in &structure.fields {
            let count = field.array.map_or("None".to_owned(), |count| count.to_string());
            let doc = if field.doc.is_empty() { String::new() } else { format!("  # {}", field.doc) };
            let _ = writeln!(out, "    (\"{}\", \"{}\", {count}),{doc}", field.name, code(field));
        }
        let _ = writeln!(out, ")\nassert {}.size == {}", structure.name.to_uppercase(), structure.bytes);
    }
    out
}

/// The letter of Python's `struct` module.
fn code(field: &Field) -> char {
    let letter = match field.int.bytes {
        1 if field.array.is_some() => return 's',
        1 => 'b',
        2 => 'h',
        4 => 'i',
        _ => 'q',
    };
    if field.int.signed { letter } else { letter.to_ascii_uppercase() }
}
