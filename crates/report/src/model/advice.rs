//! Changes to make, with the proof, and changes not to bother with.

use memlode_whatif::noise::Verdict;
use serde::Serialize;

use super::{RecordLayout, WhatIf};

/// The findings of `memlode advise`.
#[derive(Clone, Debug, Serialize)]
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
    pub rejected: Vec<Rejected>,
    /// Objects that threads would take from each other if they began elsewhere, and do not where they begin now.
    pub latent: Vec<LatentSharing>,
    /// Objects of which threads write neighbouring lines, one of a pair of lines each.
    pub pairs: Vec<PairedLines>,
    /// Buffers whose loads agree with stores to another one in the low 12 bits of the address.
    pub aliased: Vec<AliasedLoads>,
    /// Live structures, their members marked hot or cold.
    pub structures: Vec<StructureChart>,
}

/// An edit that is not worth it, or less than another of the same type.
#[derive(Clone, Debug, Serialize)]
pub struct Rejected {
    /// In its short form.
    pub edit: String,
    /// The part of the cycles that it gains; less than 0 if it loses.
    pub gain: f64,
    /// The verdict on it.
    pub verdict: Verdict,
    /// True if the whole trace was replayed, or its beginning alone.
    pub is_whole: bool,
}

/// An object whose beginning alone keeps threads from sharing its lines.
#[derive(Clone, Debug, Serialize)]
pub struct LatentSharing {
    /// The object, as edits name it.
    pub object: String,
    /// Bytes by which it would begin later.
    pub shifted_by: u64,
    /// The part of the run's cycles that threads would then lose.
    pub lost_share: f64,
    /// The edit that keeps threads apart wherever it begins.
    pub edit: String,
}

/// An object of which threads write neighbouring lines: where a processor fetches lines in pairs, they may take them from each other.
#[derive(Clone, Debug, Serialize)]
pub struct PairedLines {
    /// The object, as edits name it.
    pub object: String,
    /// The edit that gives each thread pairs of lines of its own.
    pub edit: String,
}

/// Loads of one buffer that agree in the low 12 bits of their address with stores to another one that may be on their way. What that costs
/// is not modelled.
#[derive(Clone, Debug, Serialize)]
pub struct AliasedLoads {
    /// The buffer that is read.
    pub load: String,
    /// The buffer that is written.
    pub store: String,
    /// So many accesses were looked at.
    pub accesses: u64,
    /// The loads that agree.
    pub conflicts: u64,
    /// Those that still do under the edit.
    pub conflicts_left: u64,
    /// The edit.
    pub edit: String,
}

/// A live structure.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
