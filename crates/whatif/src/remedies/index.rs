//! # Indices in the place of pointers
//!
//! **What it proposes.** `index`: pointers in a record that has at least two become indices of four
//! bytes.
//!
//! **Why it gains.** The record becomes smaller, so that more of them share lines and fit into a cache.
//!
//! **When it is wrong.** The records must lie in one array, or in a few that are known.

use memlode_layout::{Edit, Role};

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Indices in the place of pointers.
pub(crate) struct Index;

impl Remedy for Index {
    const META: RemedyMeta = RemedyMeta { id: "index", rank: 50, program: "tests/corpus/remedies/links.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, .. } = case.subject else { return Vec::new() };
        let members = heat.structure.members.iter().filter(|member| member.role == Role::Pointer);
        let members: Vec<String> = members.map(|member| member.name.clone()).collect();
        if members.len() < 2 {
            return Vec::new();
        }
        vec![Proposal::one(Edit::Index { structure: heat.structure.name.clone(), members })]
    }
}
