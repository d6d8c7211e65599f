//! # Blocks of elements, an array for each member in each
//!
//! **What it proposes.** `aosoa`: blocks of eight elements, each with an array for each member.
//!
//! **Why it gains.** A loop over one member reads whole lines of it, and all members of an element are
//! near each other: in one page, and in different sets of a cache.
//!
//! **When it is wrong.** Each use of an element computes two places. What that costs is not known.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Elements of a block.
const BLOCK: u32 = 8;

/// Blocks of elements.
pub(crate) struct Aosoa;

impl Remedy for Aosoa {
    const META: RemedyMeta = RemedyMeta { id: "aosoa", rank: 40, program: "tests/corpus/remedies/blocks.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, .. } = case.subject else { return Vec::new() };
        vec![Proposal::one(Edit::Aosoa { structure: heat.structure.name.clone(), block: BLOCK })]
    }
}
