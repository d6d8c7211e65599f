//! # Arrays that are read together
//!
//! **What it proposes.** `group`: plain arrays of one length become one array of records, if a
//! function reads their elements in an order that no prefetcher follows.
//!
//! **Why it gains.** An element costs one miss, in the place of one for each array.
//!
//! **When it is wrong.** A loop over one of the arrays alone also fetches the others. That is
//! replayed.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::uses::ObjectUses;

/// The part of a function's waiting for jumps that an array has at least.
const LEAST_SHARE: f64 = 0.1;

/// The largest element of a plain array.
const ELEMENT: u64 = 16;

/// Arrays of one length as one.
pub(crate) struct Group;

impl Remedy for Group {
    const META: RemedyMeta = RemedyMeta { id: "group", rank: 150, program: "gallery/parallel-points" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, .. } = case.subject else { return Vec::new() };
        of_functions(uses)
    }
}

fn of_functions(uses: &[ObjectUses]) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = Vec::new();
    for function in ObjectUses::functions(uses) {
        let jumping = |used: &ObjectUses| used.by_function.get(&function).map_or(0.0, |waits| waits.jumping);
        let all: f64 = uses.iter().map(jumping).sum();
        let is_array = |used: &&ObjectUses| {
            used.record.is_none()
                && (1..=ELEMENT).contains(&used.element_bytes)
                && used.objects == 1
                && jumping(used) > 0.0
                && jumping(used) >= all * LEAST_SHARE
        };
        let arrays: Vec<&ObjectUses> = uses.iter().filter(is_array).collect();
        let elements = |used: &ObjectUses| used.bytes / used.element_bytes;
        for (at, first) in arrays.iter().enumerate() {
            let is_same = |used: &&&ObjectUses| elements(used) == elements(first);
            if arrays[..at].iter().any(|used| elements(used) == elements(first)) {
                continue;
            }
            let mut objects: Vec<String> =
                arrays[at..].iter().filter(is_same).map(|used| used.name.clone()).collect();
            objects.sort();
            if objects.len() < 2 {
                continue;
            }
            let proposal = Proposal { subject: objects.join(", "), edits: vec![Edit::Group { objects }] };
            if !found.contains(&proposal) {
                found.push(proposal);
            }
        }
    }
    found
}
