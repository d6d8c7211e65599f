//! The text of source lines.

use serde::{Deserialize, Serialize};

/// The line that a finding is about, with its neighbours, or the reason why it is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceText {
    /// The lines.
    Lines {
        /// In the order of the file.
        lines: Vec<SourceLine>,
    },
    /// Nothing can be shown.
    Missing {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Its number, from 1.
    pub line: u32,
    /// Its text, as it is in the file.
    pub text: String,
    /// Set if it is the requested line rather than a neighbour.
    pub is_subject: bool,
}
