//! Ratios of counts, which do not depend on the length of a run.

use serde::{Deserialize, Serialize};

/// One of eleven ratios of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ratio {
    /// Clocks of the core for each instruction that was executed for good.
    ClocksPerInstruction,
    /// Part of the clocks in which no instructions arrived from the instruction cache.
    InstructionFetchStall,
    /// Indirect calls by instruction.
    VirtualCalls,
    /// Loads by clock.
    LoadRate,
    /// Part of the clocks in which stores could not be taken.
    StoreOrderBlock,
    /// Lines fetched into the first data cache by instruction.
    L1dMissRate,
    /// Lines fetched into the second cache by instruction.
    L2MissRate,
    /// Part of the clocks in which page tables were walked.
    TlbMissPenalty,
    /// Loads without a translation in any TLB by instruction.
    DtlbMissRate,
    /// Loads of lines that another core had modified, by instruction.
    ModifiedDataSharing,
    /// Part of the clocks that atomic operations took.
    LockedOperations,
}

impl Ratio {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Ratio; 11] = [
        Ratio::ClocksPerInstruction,
        Ratio::InstructionFetchStall,
        Ratio::VirtualCalls,
        Ratio::LoadRate,
        Ratio::StoreOrderBlock,
        Ratio::L1dMissRate,
        Ratio::L2MissRate,
        Ratio::TlbMissPenalty,
        Ratio::DtlbMissRate,
        Ratio::ModifiedDataSharing,
        Ratio::LockedOperations,
    ];

    /// Returns whether it is shown as a number and not in per cent.
    pub fn is_plain(self) -> bool {
        matches!(self, Ratio::ClocksPerInstruction | Ratio::LoadRate)
    }
}
