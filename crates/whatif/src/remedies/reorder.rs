//! # Members in another order
//!
//! **What it proposes.** `reorder`: the members that are used most first, or the largest first, so
//! that no holes are left between them.
//!
//! **Why it gains.** Members that are used together share a line, and a smaller record shares lines
//! with its neighbours.
//!
//! **When it is wrong.** A reader that knows offsets, such as a file, a network or another library,
//! must not meet the record. `memlode whatif --patch` looks for those that the sources show.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Another order of the members of a record.
pub(crate) struct Reorder;

impl Remedy for Reorder {
    const META: RemedyMeta =
        RemedyMeta { id: "reorder", rank: 10, program: "tests/corpus/remedies/records.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, .. } = case.subject else { return Vec::new() };
        let by_heat = heat.hottest_first();
        let mut by_size = by_heat.clone();
        by_size.sort_by_key(|&at| std::cmp::Reverse(heat.structure.members[at].align));
        let structure = &heat.structure.name;
        let in_order =
            |order: &Vec<usize>| Edit::Reorder { structure: structure.clone(), members: heat.names(order) };
        let mut edits = [by_heat, by_size].iter().map(in_order).collect::<Vec<_>>();
        edits.dedup();
        edits.into_iter().map(Proposal::one).collect()
    }
}
