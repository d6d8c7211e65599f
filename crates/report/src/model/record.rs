//! Layouts of a program's records.

use serde::{Deserialize, Serialize};

use super::Word;

/// A structure, class, union or enum with variants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLayout {
    /// Name without typedefs; empty for variants and unnamed types.
    #[serde(rename = "type")]
    pub name: String,
    /// `"struct"`, `"class"`, `"union"`, `"variants"`
    pub form: Word,
    /// Size in bytes.
    pub bytes: u64,
    /// Only a declaration was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// A function that was seen looks into it; otherwise no `cast` and `escapes` are known.
    pub watched: bool,
    /// A pointer to one is converted to a pointer to another record, or the other way round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cast: bool,
    /// Its members, in the order of the source.
    pub members: Vec<RecordPart>,
}

/// A member of a [`RecordLayout`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPart {
    /// Name in the source; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `"field"`, `"base"`, `"virtual base"`, `"vptr"`, `"discriminant"`, `"variants"`, `"variant"`
    pub kind: Word,
    /// First bit, from the beginning of the record.
    pub first_bit: u64,
    /// Bits that it takes up.
    pub bits: u64,
    /// Its type; empty if that is not known.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub ty: String,
    /// True if it is a bit-field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bit_field: bool,
    /// Its address is given to another function, stored, returned or made a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escapes: bool,
    /// The value of the discriminant that selects this variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The record inside, if it has no type that could be looked up by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<Box<RecordLayout>>,
}
