//! # Loads that wait for stores to another buffer
//!
//! **What it proposes.** `shift`: of two buffers whose loads and stores agree in the low 12 bits of
//! the address, one begins 256 or 2048 bytes later.
//!
//! **Why it gains.** Processors compare these bits of a load's address with stores that are on
//! their way to the cache, and let the load wait if they agree. If two buffers begin at the same
//! place of a page, a loop that reads one and writes the other has such loads in every iteration.
//!
//! **When it is wrong.** The cost depends on the processor, and on how close the stores are. So it
//! is advised as possible, with conflicts and without cycles; `memlode bias` measures it.

use memlode_layout::Edit;

use crate::named::name_of;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Bytes to try by which one of the buffers begins later.
const SHIFTS: [u64; 2] = [256, 2048];

/// A buffer that begins later.
pub(crate) struct ShiftAliased;

impl Remedy for ShiftAliased {
    const META: RemedyMeta =
        RemedyMeta { id: "shift-aliased", rank: 310, program: "tests/corpus/sick/convolution.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Aliased(row) = case.subject else { return Vec::new() };
        let [Some(load), Some(store)] = [&row.load, &row.store].map(|home| name_of(case.inputs, home)) else {
            return Vec::new();
        };
        let shift = |object: &String, by| Proposal::one(Edit::Shift { object: object.clone(), by });
        SHIFTS.iter().flat_map(|&by| [shift(&load, by), shift(&store, by)]).collect()
    }
}
