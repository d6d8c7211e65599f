//! # Elements that each thread gets in turn
//!
//! **What it proposes.** `deal`: elements of an array that are no records are dealt to as many parts as
//! there are threads, and each part has lines of its own.
//!
//! **Why it gains.** The elements of a thread share lines with each other, and with those of no other.
//!
//! **When it is wrong.** Each use of an element computes its part and its place in it.

use memlode_layout::Edit;

use crate::elements::shared_elements;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// The most parts to which elements are dealt.
const MOST_PARTS: usize = 1 << 16;

/// Elements by thread.
pub(crate) struct Deal;

impl Remedy for Deal {
    const META: RemedyMeta = RemedyMeta { id: "deal", rank: 230, program: "tests/corpus/remedies/striped.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, is_falsely: true } = case.subject else {
            return Vec::new();
        };
        let Some(found) = shared_elements(case.inputs, sharing, class) else { return Vec::new() };
        let parts = found.threads.min(MOST_PARTS) as u32;
        vec![Proposal::one(Edit::Deal { object: found.object, parts })]
    }
}
