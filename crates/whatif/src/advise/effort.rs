//! The work that a search for edits may take.

use serde::{Deserialize, Serialize};

use super::Baseline;

/// Work that advice may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Types that layouts are tried of: those that the program waits for most.
    pub types: usize,
    /// Reports that as much work may be spent on edits as; none: as much as it takes. Short traces
    /// may take more.
    pub reports: Option<u64>,
}

/// A reason why not everything was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOff {
    /// The host stopped it.
    Stopped,
    /// The allowed effort was used up.
    Spent,
}

/// Reports that a replay under an edit takes as long as.
const REPORTS: u64 = 2;

/// Accesses that may be replayed under edits of any trace.
const LEAST_WORK: u64 = 200_000_000;

impl Effort {
    /// Returns whether edits took as much as they may.
    pub(super) fn is_spent(self, baseline: &Baseline) -> bool {
        let most = |reports: u64| (baseline.accesses().saturating_mul(reports) / REPORTS).max(LEAST_WORK);
        self.reports.map(most).is_some_and(|most| baseline.spent() >= most)
    }
}
