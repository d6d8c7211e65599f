//! Buffers whose loads are held up by stores to another one.

use memlode_layout::Edit;
use serde::{Deserialize, Serialize};

use super::{AdviseError, Baseline, one_as_text, one_from_text};
use crate::aliased::{conflicts_of, is_cure};
use crate::part::TracePart;

/// Loads of one buffer that agree with stores to another one in the low 12 bits of the address, and
/// no more if one of them begins later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AliasedLoads {
    /// The buffer that is read.
    pub load: String,
    /// The buffer that is written.
    pub store: String,
    /// Accesses that were looked at.
    pub accesses: u64,
    /// Loads of them that agree.
    pub conflicts: u64,
    /// Loads that still do under the edit.
    pub conflicts_left: u64,
    /// The edit.
    #[serde(serialize_with = "one_as_text", deserialize_with = "one_from_text")]
    pub edit: Edit,
}

/// Finds such buffers in a part of the trace, each with the simplest edit that cures it.
pub fn aliased(baseline: &Baseline, part: &TracePart) -> Result<Vec<AliasedLoads>, AdviseError> {
    let predictor = baseline.predictor();
    let rows = predictor.aliases(part, None)?;
    let mut found = Vec::new();
    for buffers in baseline.aliased(&rows, part.accesses) {
        for edit in &buffers.shifts {
            let Ok(plan) = baseline.plan(std::slice::from_ref(edit)) else { continue };
            let left = conflicts_of(&predictor.aliases(part, Some(&plan))?, &buffers);
            if is_cure(buffers.conflicts, left) {
                found.push(AliasedLoads {
                    load: buffers.load.1.clone(),
                    store: buffers.store.1.clone(),
                    accesses: part.accesses,
                    conflicts: buffers.conflicts,
                    conflicts_left: left,
                    edit: edit.clone(),
                });
                break;
            }
        }
    }
    Ok(found)
}
