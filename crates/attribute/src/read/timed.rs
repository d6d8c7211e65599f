//! Roll-ups of a timed profile.

use std::hash::Hash;

pub use memlode_simulate::{Charged, Stall, TICKS};
use rustc_hash::FxHashMap;

use crate::counts::Counts;
use crate::profile::{Cell, TimedProfile};

/// One row of a table.
#[derive(Clone, Debug)]
pub struct TimedRow<K> {
    /// Subject of the row.
    pub key: K,
    /// The counts.
    pub counts: Counts,
    /// Their charges.
    pub charged: Charged,
}

impl TimedProfile {
    /// Returns the charges of a cell.
    pub fn of(&self, cell: &Cell) -> Charged {
        self.charged.get(cell.tag.index()).copied().unwrap_or_default()
    }

    /// Sums of cells by a key, the costliest first. Cells without one are left out.
    pub fn roll<K: Hash + Eq + Ord + Clone>(&self, key: impl Fn(&Cell) -> Option<K>) -> Vec<TimedRow<K>> {
        let mut sums: FxHashMap<K, (Counts, Charged)> = FxHashMap::default();
        for cell in &self.profile.cells {
            if let Some(key) = key(cell) {
                let sum = sums.entry(key).or_default();
                sum.0 += &cell.counts;
                sum.1 += &self.of(cell);
            }
        }
        let row = |(key, (counts, charged))| TimedRow { key, counts, charged };
        let mut rows: Vec<TimedRow<K>> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let weight = |row: &TimedRow<K>| (row.charged.ticks(), row.counts.accesses());
            weight(b).cmp(&weight(a)).then_with(|| a.key.cmp(&b.key))
        });
        rows
    }
}
