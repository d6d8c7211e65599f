//! Buffers whose loads are held up by stores to another one, since their addresses agree in the low 12 bits.

use memlode_attribute::{AliasRow, Home};
use memlode_layout::Edit;

use crate::named::name_of;
use crate::plan::PlanInputs;
use crate::remedy::{Case, CaseSubject, proposals};

/// Loads that conflict are this part of all accesses, at least.
const LEAST_SHARE: f64 = 0.02;

/// A store that is farther in front of a load than this many accesses seldom matters.
const REACH: u32 = 30;

/// The most pairs of buffers that are examined, those that conflict most.
const MOST: usize = 3;

/// The part of the conflicts that must be gone, for a shift to be a cure.
const CURED: f64 = 0.75;

/// Two buffers, by the names that edits know them by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasedBuffers {
    /// The buffer that is read.
    pub load: (Home, String),
    /// The buffer that is written.
    pub store: (Home, String),
    /// Loads that agree with a store on its way.
    pub conflicts: u64,
    /// Edits to try, the simplest first.
    pub shifts: Vec<Edit>,
}

/// Finds buffers to shift, among conflicts by home in this many accesses.
pub fn aliased(known: &PlanInputs<'_>, rows: &[AliasRow<Home>], accesses: u64) -> Vec<AliasedBuffers> {
    let least = accesses as f64 * LEAST_SHARE;
    let far = |row: &&AliasRow<Home>| {
        row.load != row.store && row.conflicts as f64 >= least && row.least_accesses <= REACH
    };
    let buffers = |row: &AliasRow<Home>| {
        let (load, store) = (name_of(known, &row.load)?, name_of(known, &row.store)?);
        let proposed = proposals(&Case { inputs: known, subject: CaseSubject::Aliased(row) });
        let shifts = proposed.into_iter().flat_map(|proposal| proposal.edits).collect();
        Some(AliasedBuffers {
            load: (row.load.clone(), load),
            store: (row.store.clone(), store),
            conflicts: row.conflicts,
            shifts,
        })
    };
    rows.iter().filter(far).filter_map(buffers).take(MOST).collect()
}

/// Returns the conflicts of two buffers among all.
pub fn conflicts_of(rows: &[AliasRow<Home>], of: &AliasedBuffers) -> u64 {
    rows.iter().filter(|row| row.load == of.load.0 && row.store == of.store.0).map(|row| row.conflicts).sum()
}

/// Returns whether a shift after which `after` of the conflicts remain is a cure.
pub fn is_cure(before: u64, after: u64) -> bool {
    after as f64 <= before as f64 * (1.0 - CURED)
}
