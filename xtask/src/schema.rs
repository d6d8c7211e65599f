//! `format/trace.toml` as values: groups of constants, and structures with every offset worked out.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The whole file, in its own order.
pub struct Schema {
    pub groups: Vec<Group>,
    pub structs: Vec<Struct>,
}

/// A table of constants.
pub struct Group {
    pub name: String,
    pub doc: String,
    /// Type of the integers among the constants.
    pub int: Int,
    pub constants: Vec<Constant>,
}

pub struct Constant {
    pub name: String,
    pub value: Value,
    /// The number as spelled in the file, so that masks stay hexadecimal.
    pub spelling: String,
    pub doc: String,
}

pub enum Value {
    Integer(u64),
    Text,
}

/// A structure without hidden padding.
pub struct Struct {
    pub name: String,
    pub doc: String,
    pub fields: Vec<Field>,
    pub bytes: usize,
}

pub struct Field {
    pub name: String,
    pub int: Int,
    /// `None` for a scalar.
    pub array: Option<usize>,
    pub offset: usize,
    pub doc: String,
}

/// An integer type of the format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Int {
    pub bytes: usize,
    pub signed: bool,
}

impl Int {
    fn parse(name: &str) -> Result<Self> {
        let (signed, bits) = name.split_at_checked(1).context("empty type")?;
        let bytes = match bits {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => bail!("unknown type {name:?}"),
        };
        ensure!(matches!(signed, "u" | "i"), "unknown type {name:?}");
        Ok(Int { bytes, signed: signed == "i" })
    }

    /// `u32`, as Rust and `trace.toml` spell it.
    pub fn rust(self) -> String {
        format!("{}{}", if self.signed { "i" } else { "u" }, self.bytes * 8)
    }

    /// `uint32_t`
    pub fn c(self) -> String {
        format!("{}int{}_t", if self.signed { "" } else { "u" }, self.bytes * 8)
    }
}

#[derive(Deserialize)]
struct RawFile {
    #[serde(rename = "struct")]
    structs: Vec<RawStruct>,
    #[serde(flatten)]
    groups: BTreeMap<String, toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStruct {
    name: String,
    doc: String,
    fields: Vec<(String, String, String)>,
}

impl Schema {
    /// Parses and checks the file.
    pub fn parse(text: &str) -> Result<Self> {
        let raw: RawFile = toml::from_str(text)?;
        let lines = Lines::scan(text);
        let mut groups = raw
            .groups
            .into_iter()
            .map(|(name, table)| group(&name, table, &lines).with_context(|| format!("[{name}]")))
            .collect::<Result<Vec<_>>>()?;
        groups.sort_by_key(|group| lines.position(&group.name, ""));
        let structs = raw
            .structs
            .into_iter()
            .map(|raw| {
                let name = raw.name.clone();
                structure(raw).with_context(|| format!("struct {name}"))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Schema { groups, structs })
    }
}

fn group(name: &str, mut table: toml::Table, lines: &Lines) -> Result<Group> {
    let text = |value: Option<toml::Value>, or: &str| match value {
        None => Ok(or.to_owned()),
        Some(toml::Value::String(text)) => Ok(text),
        Some(other) => bail!("expected a string, found {other}"),
    };
    let doc = text(table.remove("doc"), "")?;
    let int = Int::parse(&text(table.remove("type"), "u32")?)?;
    let mut constants = Vec::new();
    for (key, value) in table {
        let (spelling, comment) =
            lines.of(name, &key).with_context(|| format!("{key}: not on a line of its own"))?;
        let value = match value {
            toml::Value::String(_) => Value::Text,
            toml::Value::Integer(value) => {
                let value = u64::try_from(value).with_context(|| format!("{key} is negative"))?;
                ensure!(
                    int.bytes == 8 || value >> (8 * int.bytes) == 0,
                    "{key} = {value} does not fit {}",
                    int.rust()
                );
                Value::Integer(value)
            }
            other => bail!("{key}: expected an integer or a string, found {other}"),
        };
        constants.push(Constant { name: key, value, spelling, doc: comment });
    }
    constants.sort_by_key(|constant| lines.position(name, &constant.name));
    Ok(Group { name: name.to_owned(), doc, int, constants })
}

fn structure(raw: RawStruct) -> Result<Struct> {
    let mut offset = 0;
    let mut alignment = 1;
    let mut fields = Vec::new();
    for (name, ty, doc) in raw.fields {
        let (int, array) = match ty.strip_suffix(']').and_then(|ty| ty.split_once('[')) {
            Some((int, count)) => {
                (int, Some(count.parse().with_context(|| format!("{name}: array length"))?))
            }
            None => (ty.as_str(), None),
        };
        let int = Int::parse(int).with_context(|| name.clone())?;
        ensure!(offset % int.bytes == 0, "{name} at offset {offset} is not aligned to {}", int.bytes);
        alignment = alignment.max(int.bytes);
        fields.push(Field { name, int, array, offset, doc });
        offset += int.bytes * array.unwrap_or(1);
    }
    ensure!(
        offset % alignment == 0,
        "size {offset} is not a multiple of {alignment}: hidden padding at the end"
    );
    Ok(Struct { name: raw.name, doc: raw.doc, fields, bytes: offset })
}

/// The parts of a schema that a TOML parser drops: the order of the keys, how a value was spelled, and the comment behind it.
struct Lines(Vec<(String, String, String, String)>);

impl Lines {
    fn scan(text: &str) -> Self {
        let mut group = String::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                group = name.to_owned();
                lines.push((group.clone(), String::new(), String::new(), String::new()));
            } else if let Some((key, rest)) = line.split_once(" = ") {
                let (value, comment) = rest.split_once(" #").unwrap_or((rest, ""));
                let spelled = |text: &str| text.trim().to_owned();
                lines.push((group.clone(), spelled(key), spelled(value), spelled(comment)));
            }
        }
        Lines(lines)
    }

    fn position(&self, group: &str, key: &str) -> Option<usize> {
        self.0.iter().position(|line| line.0 == group && line.1 == key)
    }

    fn of(&self, group: &str, key: &str) -> Option<(String, String)> {
        let line = &self.0[self.position(group, key)?];
        Some((line.2.clone(), line.3.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<Schema> {
        Schema::parse(&format!("[[struct]]\nname = \"s\"\ndoc = \"\"\nfields = [{fields}]\n"))
    }

    #[test]
    fn offsets_follow_from_the_fields() {
        let schema = parse(r#"["a", "u32", ""], ["b", "u8[4]", ""], ["c", "i64", ""]"#).unwrap();
        let offsets: Vec<_> = schema.structs[0].fields.iter().map(|field| field.offset).collect();
        assert_eq!((offsets, schema.structs[0].bytes), (vec![0, 4, 8], 16));
    }

    #[test]
    fn hidden_padding_is_refused() {
        assert!(parse(r#"["a", "u32", ""], ["b", "u64", ""]"#).is_err());
        assert!(parse(r#"["a", "u64", ""], ["b", "u32", ""]"#).is_err());
        assert!(parse(r#"["a", "u24", ""]"#).is_err());
    }

    #[test]
    fn order_spelling_and_comments_survive() {
        let schema =
            Schema::parse("struct = []\n[z]\nb = 0x10   # sixteen\na = 2\n[a]\ndoc = \"d\"\n").unwrap();
        assert_eq!(schema.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        let first = &schema.groups[0].constants[0];
        assert_eq!(
            (first.name.as_str(), first.spelling.as_str(), first.doc.as_str()),
            ("b", "0x10", "sixteen")
        );
        assert!(Schema::parse("struct = []\n[z]\ntype = \"u8\"\na = 256\n").is_err());
    }
}
