//! Changes to make, with the proof, and changes not to bother with.

use memlode_whatif::advise::{AliasedLoads, LatentSharing, LeftOff, PairedLines, Rejected};
use serde::{Deserialize, Serialize};

use super::{AdvisedEdit, RecordLayout, SharedLock, WhatIf};

/// The findings of `memlode advise`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// The trace directory.
    pub trace: String,
    /// The simulated machine, by its short name.
    pub machine: String,
    /// The part of a run's cycles that placement alone changes.
    pub noise: f64,
    /// Edits that are worth it, replayed in full; the one that gains most first.
    pub worth_it: Vec<WhatIf>,
    /// Edits that were tried and are not, the best first.
    pub rejected: Vec<RejectedEdits>,
    /// Objects that threads would take from each other if they began elsewhere, and do not where they begin now.
    pub latent: Vec<LatentSharing>,
    /// Objects of which threads write neighbouring lines, one of a pair of lines each.
    pub pairs: Vec<PairedLines>,
    /// Buffers whose loads agree with stores to another one in the low 12 bits of the address.
    pub aliased: Vec<AliasedLoads>,
    /// Locks that several threads take often: no layout of data alone decides their cost.
    pub locks: Vec<SharedLock>,
    /// Live structures, their members marked hot or cold.
    pub structures: Vec<StructureChart>,
    /// The reason why not everything was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_off: Option<LeftOff>,
}

/// Edits that are not worth it, under a short name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RejectedEdits {
    /// A short name of the edits, which other recordings of the program give them, too.
    pub handle: String,
    /// The edits, and what they gain.
    #[serde(flatten)]
    pub rejected: Rejected,
}

impl Advice {
    /// The edits that are worth it, as a report shows them.
    pub fn advised(&self) -> Vec<AdvisedEdit> {
        let item = |item: &WhatIf| AdvisedEdit {
            edits: item.edits.clone(),
            gain: item.gain,
            at: item.at.as_ref().map(|at| at.access.clone()),
            constants: item.confidence.constants.clone(),
        };
        self.worth_it.iter().map(item).collect()
    }
}

/// A live structure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StructureChart {
    /// The structure.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size.
    pub bytes: u64,
    /// The temperature differential of the marking.
    pub differential: f64,
    /// True if the published rules split it.
    pub is_split: bool,
    /// Its members as they lie.
    pub members: Vec<MarkedMember>,
    /// Its layout.
    pub layout: RecordLayout,
}

/// A member of a live structure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MarkedMember {
    /// Its name.
    pub member: String,
    /// Its size.
    pub bytes: u64,
    /// Accesses to it.
    pub accesses: u64,
    /// True if it is cold.
    pub is_cold: bool,
}
