//! The C and C++ view.

use std::fmt::Write;

use crate::generate::NOTICE;
use crate::schema::{Schema, Struct, Value};

/// `memlode_format.h`: C11 and C++17.
pub fn emit(schema: &Schema) -> String {
    let mut out = format!(
        "/* {NOTICE} */\n#ifndef MEMLODE_FORMAT_H\n#define MEMLODE_FORMAT_H\n\n\
         #include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\n#define MEMLODE_STATIC_ASSERT static_assert\n\
         #else\n#define MEMLODE_STATIC_ASSERT _Static_assert\n#endif\n"
    );
    for group in &schema.groups {
        out.push('\n');
        if !group.doc.is_empty() {
            let _ = writeln!(out, "// {}", group.doc);
        }
        for constant in &group.constants {
            let name = format!("MEMLODE_{}_{}", group.name.to_uppercase(), constant.name.to_uppercase());
            // Plain integers, without a suffix: a negated mask then extends to 64 bits as it should.
            let value = match constant.value {
                Value::Integer(value) if value > i32::MAX as u64 => format!("{}ULL", constant.spelling),
                _ => constant.spelling.clone(),
            };
            let _ = write!(out, "#define {name} {value}");
            let _ = writeln!(out, "{}", comment(&constant.doc));
        }
    }
    for structure in &schema.structs {
        emit_struct(&mut out, structure);
    }
    out.push_str("\n#endif\n");
    out
}

fn emit_struct(out: &mut String, structure: &Struct) {
    let name = format!("memlode_{}", structure.name);
    let _ = writeln!(out, "\n// {}\nstruct {name} {{", structure.doc);
    for field in &structure.fields {
        let array = field.array.map_or(String::new(), |count| format!("[{count}]"));
        let _ = writeln!(out, "  {} {}{array};{}", field.int.c(), field.name, comment(&field.doc));
    }
    let _ = writeln!(
        out,
        "}};\nMEMLODE_STATIC_ASSERT(sizeof(struct {name}) == {}, \"{name}\");",
        structure.bytes
    );
    for field in &structure.fields {
        let _ = writeln!(
            out,
            "MEMLODE_STATIC_ASSERT(offsetof(struct {name}, {}) == {}, \"{name}.{0}\");",
            field.name, field.offset
        );
    }
}

fn comment(doc: &str) -> String {
    if doc.is_empty() { String::new() } else { format!(" // {doc}") }
}
