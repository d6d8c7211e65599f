//! Causes of misses by thread, line and object at once.

use serde::{Deserialize, Serialize};

use super::LevelCauses;

/// Misses that are cold, of capacity, conflicts, of lines held elsewhere, of true sharing and of false sharing, in this
/// order.
pub type ByCause = [u64; 6];

impl LevelCauses {
    /// Misses by cause.
    pub fn by_cause(&self) -> ByCause {
        let LevelCauses { cold, capacity, conflict, held_elsewhere, true_sharing, false_sharing, .. } = *self;
        [cold, capacity, conflict, held_elsewhere, true_sharing, false_sharing]
    }
}

/// Causes of the misses of a run, by thread, line and object: rows of the tables of the report on the same trace and
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissCauses {
    /// The combinations that miss.
    pub groups: Vec<CauseGroup>,
}

/// Causes of the misses of a thread at a line at an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseGroup {
    /// Its row in the table of threads.
    pub thread: usize,
    /// Its row in the table of lines.
    pub line: usize,
    /// Its row in the table of objects.
    pub object: usize,
    /// Misses by level, and of each by cause.
    pub misses: Vec<ByCause>,
}
