//! A question, and the name of the file that has its answer.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::FOLDER;

/// Everything that determines an answer, except the code and the trace beside which it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The command: `report`, `sim`, `whatif`.
    pub command: String,
    /// Options that change the answer, each with its given values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    /// The machines that are simulated.
    pub machines: Vec<MachineIdentity>,
    /// Further traces that it is about, as hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// The facts about a machine that determine an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineIdentity {
    /// Its short name.
    pub name: String,
    /// A hash of the description, made by [`fingerprint`].
    pub hash: String,
}

impl MachineIdentity {
    /// A machine by its name and description: machine files may be edited, and `host` is another
    /// machine elsewhere.
    pub fn of(name: &str, known: &impl Debug) -> MachineIdentity {
        MachineIdentity { name: name.to_string(), hash: fingerprint(format!("{known:?}").as_bytes()) }
    }
}

impl Question {
    /// Path of the file in the directory of a trace.
    pub(crate) fn file(&self) -> PathBuf {
        let word: String = self.command.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let text = serde_json::to_string(self).unwrap_or_default();
        PathBuf::from(FOLDER).join(format!("{word}-{}.json", fingerprint(text.as_bytes())))
    }
}

/// The first sixteen hexadecimal digits of the SHA-256 of some bytes.
pub fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
