//! Arrays of which the same function reads the same elements, in no order that a prefetcher follows: as one array of records, an
//! element costs one miss in the place of one for each array.

use memlode_layout::Edit;
use memlode_trace::sites::FunctionId;

use super::{Proposal, Uses};

/// The part of a function's waiting for jumps that an array has at least.
const LEAST_SHARE: f64 = 0.1;

/// The largest element of a plain array.
const ELEMENT: u64 = 16;

pub(super) fn proposals(uses: &[Uses]) -> Vec<Proposal> {
    let mut functions: Vec<FunctionId> =
        uses.iter().flat_map(|used| used.by_function.keys().copied()).collect();
    functions.sort_by_key(|function| function.0);
    functions.dedup();
    let mut found: Vec<Proposal> = Vec::new();
    for function in functions {
        let jumping = |used: &Uses| used.by_function.get(&function).map_or(0.0, |waits| waits.jumping);
        let all: f64 = uses.iter().map(jumping).sum();
        let is_array = |used: &&Uses| {
            used.record.is_none()
                && (1..=ELEMENT).contains(&used.element_bytes)
                && used.objects == 1
                && jumping(used) > 0.0
                && jumping(used) >= all * LEAST_SHARE
        };
        let arrays: Vec<&Uses> = uses.iter().filter(is_array).collect();
        let elements = |used: &Uses| used.bytes / used.element_bytes;
        for (at, first) in arrays.iter().enumerate() {
            let is_same = |used: &&&Uses| elements(used) == elements(first);
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
