//! What an analysis found, with names.

use serde::Serialize;

use super::{Access, Estimated, Numbers, Object, Row};

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Which analysis found it.
    pub analysis: &'static str,
    /// The data and the line.
    #[serde(flatten)]
    pub access: Access,
    /// The accesses there.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Other lines of the same function that touch the same type, the costliest first.
    pub also: Vec<Row<Access>>,
    /// Part of all modelled stall cycles, 0 to 1, with those lines.
    pub whole_share: f64,
    /// Its standard error; only where the trace is a sample in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_share_standard_error: Option<f64>,
    /// By how much it is larger than that of the next finding; only where the trace is a sample in bursts, and not of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Estimated>,
    /// The objects touched, the costliest first.
    pub objects: Vec<Row<Object>>,
    /// What the addresses come out of: `chased`, `loaded` or `computed`.
    pub dependence: Option<&'static str>,
    /// How much of the type the code around the line uses.
    pub density: Option<Density>,
    /// A change of layout, where the evidence is plain.
    pub suggestion: Option<Suggestion>,
}

/// How much of each object of a type is used.
#[derive(Clone, Debug, Serialize)]
pub struct Density {
    /// The type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size.
    pub type_bytes: u64,
    /// Bytes of the members that are used.
    pub used_bytes: u64,
    /// Those members, the most used first.
    pub members: Vec<String>,
}

/// A change of layout.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Suggestion {
    /// Keep the members apart from the rest of the type.
    Separate {
        /// The type.
        #[serde(rename = "type")]
        ty: String,
        /// The members.
        members: Vec<String>,
    },
}
