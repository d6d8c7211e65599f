//! # Elements of threads that share a line
//!
//! **What it proposes.** `align … of=element`, to a line: elements of an array that are no records, and
//! that different threads write.
//!
//! **Why it gains.** Each write of one thread takes the line of its neighbours from the others.
//!
//! **When it is wrong.** An array of many elements gets much larger, which is replayed. Where a thread
//! has many of them, dealing them may be better.

use memlode_layout::{Edit, Scope};

use crate::elements::shared_elements;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Elements on lines of their own.
pub(crate) struct AlignElements;

impl Remedy for AlignElements {
    const META: RemedyMeta =
        RemedyMeta { id: "align-elements", rank: 220, program: "tests/corpus/sick/counters.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, is_falsely: true } = case.subject else {
            return Vec::new();
        };
        let to = sharing.line_bytes;
        let align = |subject| Proposal::one(Edit::Align { subject, of: Some(Scope::Element), to });
        let found = shared_elements(case.inputs, sharing, class);
        found.map(|elements| align(elements.object)).into_iter().collect()
    }
}
