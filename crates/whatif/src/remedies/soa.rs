//! # An array for each member
//!
//! **What it proposes.** `soa`: an array of records becomes as many arrays as the record has members.
//!
//! **Why it gains.** A loop over one member reads nothing but that member.
//!
//! **When it is wrong.** Code that reads one whole record after another in no order fetches a line for
//! each member. That is replayed.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// An array for each member.
pub(crate) struct Soa;

impl Remedy for Soa {
    const META: RemedyMeta = RemedyMeta { id: "soa", rank: 30, program: "gallery/pricing-scan" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, .. } = case.subject else { return Vec::new() };
        vec![Proposal::one(Edit::Soa { structure: heat.structure.name.clone(), members: Vec::new() })]
    }
}
