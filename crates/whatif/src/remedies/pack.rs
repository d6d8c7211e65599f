//! # Objects that a walk jumps between
//!
//! **What it proposes.** `pack`: objects allocated one by one lie behind each other, in the order
//! in which the function that misses most on them first reads them.
//!
//! **Why it gains.** They were allocated in another order than that in which the program follows
//! their pointers, so each step waits for a line from far away. Packed, they share lines, and the
//! next ones are fetched ahead.
//!
//! **When it is wrong.** The cost of putting them in order is not counted. Objects that come and go
//! are refused: an order of them would not last.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Fewer objects are no long chain.
const LEAST_OBJECTS: u64 = 64;

/// The part of an object's waiting that is for jumps, at least.
const JUMPING: f64 = 0.5;

/// Objects in the order of a walk.
pub(crate) struct Pack;

impl Remedy for Pack {
    const META: RemedyMeta = RemedyMeta { id: "pack", rank: 160, program: "gallery/list-payload" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, .. } = case.subject else { return Vec::new() };
        let mut found: Vec<Proposal> = Vec::new();
        for used in uses {
            let Some(record) = &used.record else { continue };
            let are_nodes = used.objects >= LEAST_OBJECTS && used.bytes == used.objects * used.element_bytes;
            if are_nodes
                && used.jumping() >= JUMPING * used.wait()
                && !found.iter().any(|known| known.subject == *record)
            {
                found.push(Proposal::one(Edit::Pack { structure: record.clone() }));
            }
        }
        found
    }
}
