//! The work that a search for edits may take.

use serde::{Deserialize, Serialize};

use super::Baseline;

/// Work that advice may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Types that layouts are tried of: those that the program waits for most.
    pub types: usize,
    /// Work that may be spent on edits.
    pub budget: Budget,
}

/// A limit of the work on edits. Those of the first type are tried in any case.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// No limit.
    Endless,
    /// The work of ten reports of the trace, and more for a short one.
    Usual,
    /// The work of this number of reports.
    Reports(u64),
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

/// Reports of the usual budget.
const USUAL: u64 = 10;

/// Accesses that the usual budget allows to replay of any trace.
const LEAST_WORK: u64 = 200_000_000;

impl Effort {
    /// Returns whether edits took as much as they may.
    pub(super) fn is_spent(self, baseline: &Baseline) -> bool {
        let accesses = |reports: u64| baseline.accesses().saturating_mul(reports) / REPORTS;
        let most = match self.budget {
            Budget::Endless => return false,
            Budget::Usual => accesses(USUAL).max(LEAST_WORK),
            Budget::Reports(reports) => accesses(reports),
        };
        baseline.spent() >= most
    }
}
