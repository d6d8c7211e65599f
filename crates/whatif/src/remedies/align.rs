//! # Records that begin at lines
//!
//! **What it proposes.** `align` to a line, of records whose size is no power of two.
//!
//! **Why it gains.** A record that begins anywhere lies in one line more than it must.
//!
//! **When it is wrong.** The records take more room, which is replayed. `malloc` aligns to 16 bytes:
//! blocks need `aligned_alloc`.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Records that begin at lines.
pub(crate) struct Align;

impl Remedy for Align {
    const META: RemedyMeta =
        RemedyMeta { id: "align", rank: 60, program: "tests/corpus/remedies/straddle.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, line_bytes, .. } = case.subject else { return Vec::new() };
        if heat.structure.bytes.is_power_of_two() {
            return Vec::new();
        }
        let subject = heat.structure.name.clone();
        vec![Proposal::one(Edit::Align { subject, of: None, to: line_bytes })]
    }
}
