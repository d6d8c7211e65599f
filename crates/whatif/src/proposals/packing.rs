//! Objects allocated one by one that lie in another order than that in which a program walks from one to the next: each step waits for a
//! line from far away. Behind each other in the order of the walk they share lines, and the next ones are fetched ahead.

use memlode_layout::Edit;

use super::{Proposal, Uses};

/// Fewer objects are no long chain.
const LEAST_OBJECTS: u64 = 64;

/// The part of an object's waiting that is for jumps, at least.
const JUMPING: f64 = 0.5;

pub(super) fn proposals(uses: &[Uses]) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = Vec::new();
    for used in uses {
        let Some(record) = &used.record else { continue };
        let jumping: f64 = used.by_function.values().map(|waits| waits.jumping).sum();
        let are_nodes = used.objects >= LEAST_OBJECTS && used.bytes == used.objects * used.element_bytes;
        if are_nodes
            && jumping >= JUMPING * used.wait()
            && !found.iter().any(|known| known.subject == *record)
        {
            let edits = vec![Edit::Pack { structure: record.clone() }];
            found.push(Proposal { subject: record.clone(), edits });
        }
    }
    found
}
