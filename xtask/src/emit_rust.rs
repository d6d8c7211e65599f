//! The Rust view.

use std::fmt::Write;

use crate::generate::NOTICE;
use crate::schema::{Field, Group, Schema, Struct, Value};

/// `format.rs`, a module of `memlode-trace`.
pub fn emit(schema: &Schema) -> String {
    let mut out =
        format!("// {NOTICE}\n\n//! The numbers and structures of the trace format; see `format/SPEC.md`.\n");
    schema.groups.iter().for_each(|group| emit_group(&mut out, group));
    schema.structs.iter().for_each(|structure| emit_struct(&mut out, structure));
    out
}

fn emit_group(out: &mut String, group: &Group) {
    let doc = if group.doc.is_empty() { &group.name } else { &group.doc };
    let _ = writeln!(out, "\n/// {doc}\npub mod {} {{", group.name);
    for constant in &group.constants {
        let doc = match constant.doc.is_empty() {
            true => format!("`{}.{}`", group.name, constant.name),
            false => constant.doc.clone(),
        };
        let ty = match constant.value {
            Value::Integer(_) => group.int.rust(),
            Value::Text => "&str".to_owned(),
        };
        let name = constant.name.to_uppercase();
        let _ =
            writeln!(out, "    /// {}\n    pub const {name}: {ty} = {};", escape(&doc), constant.spelling);
    }
    out.push_str("}\n");
}

fn emit_struct(out: &mut String, structure: &Struct) {
    let name = camel(&structure.name);
    let _ = writeln!(out, "\n/// {}", escape(&structure.doc));
    let _ = writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct {name} {{");
    for field in &structure.fields {
        let doc = if field.doc.is_empty() { format!("`{}`", field.name) } else { field.doc.clone() };
        let _ = writeln!(out, "    /// {}\n    pub {}: {},", escape(&doc), field.name, rust_type(field));
    }
    let _ = writeln!(out, "}}\n\nimpl {name} {{");
    let _ = writeln!(
        out,
        "    /// Size in memory and in a file.\n    pub const BYTES: usize = {};",
        structure.bytes
    );
    let _ = writeln!(
        out,
        "\n    /// From its little-endian form.\n    \
             pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {{\n        Self {{"
    );
    for field in &structure.fields {
        let _ = writeln!(out, "            {}: {},", field.name, read(field));
    }
    out.push_str("        }\n    }\n");
    let _ = writeln!(
        out,
        "\n    /// To its little-endian form.\n    \
             pub fn to_bytes(&self) -> [u8; Self::BYTES] {{\n        \
         let mut bytes = [0; Self::BYTES];"
    );
    for field in &structure.fields {
        let _ = writeln!(out, "        {}", write_field(field));
    }
    out.push_str("        bytes\n    }\n}\n");
    let _ = writeln!(
        out,
        "\nimpl Default for {name} {{\n    fn default() -> Self {{\n        \
         Self::from_bytes(&[0; Self::BYTES])\n    }}\n}}\n"
    );
    let _ = writeln!(out, "const _: () = assert!(size_of::<{name}>() == {name}::BYTES);");
    for field in &structure.fields {
        let _ = writeln!(
            out,
            "const _: () = assert!(std::mem::offset_of!({name}, {}) == {});",
            field.name, field.offset
        );
    }
}

fn rust_type(field: &Field) -> String {
    let int = field.int.rust();
    field.array.map_or(int.clone(), |count| format!("[{int}; {count}]"))
}

fn read(field: &Field) -> String {
    let (int, width, start) = (field.int.rust(), field.int.bytes, field.offset);
    match field.array {
        None => {
            let bytes =
                (start..start + width).map(|at| format!("bytes[{at}]")).collect::<Vec<_>>().join(", ");
            format!("{int}::from_le_bytes([{bytes}])")
        }
        Some(count) if width == 1 => format!("std::array::from_fn::<_, {count}, _>(|i| bytes[{start} + i])"),
        Some(count) => format!(
            "std::array::from_fn::<_, {count}, _>(|i| \
             {int}::from_le_bytes(std::array::from_fn(|k| bytes[{start} + {width} * i + k])))"
        ),
    }
}

fn write_field(field: &Field) -> String {
    let (name, width, start) = (&field.name, field.int.bytes, field.offset);
    match field.array {
        None => format!("bytes[{start}..{}].copy_from_slice(&self.{name}.to_le_bytes());", start + width),
        Some(count) if width == 1 => {
            format!("bytes[{start}..{}].copy_from_slice(&self.{name});", start + count)
        }
        Some(count) => format!(
            "for (i, bytes) in bytes[{start}..{}].chunks_exact_mut({width}).enumerate() {{ \
             bytes.copy_from_slice(&self.{name}[i].to_le_bytes()); }}",
            start + width * count
        ),
    }
}

/// `chunk_header` to `ChunkHeader`.
fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Keeps `ring.slot_*` and `[64]` from being read as Markdown.
fn escape(doc: &str) -> String {
    doc.replace('*', "\\*").replace('[', "\\[")
}
