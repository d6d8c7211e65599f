//! Large objects that lie in the memory of the node whose thread touched them first, and are used from others: spread over the nodes, page by
//! page or in as many parts, all memory serves them, and in parts each thread may have its own nearby.

use memlode_layout::{Edit, PagePlacement};
use memlode_machine::Machine;

use super::{Proposal, Uses};
use crate::plan::PlanInputs;

/// The part of an object's waiting that must be for memory further away, or for translations, which the simulation does not tell apart.
const BEYOND: f64 = 0.1;

/// Fewer pages for a node are no work.
const LEAST_PAGES: u64 = 4;

pub(super) fn proposals(known: &PlanInputs<'_>, machine: &Machine, uses: &[Uses]) -> Vec<Proposal> {
    let Some(nodes) = known.nodes.filter(|nodes| *nodes > 1) else { return Vec::new() };
    let least = machine.page_bytes * LEAST_PAGES * u64::from(nodes);
    let is_spread = |used: &&Uses| {
        used.bytes / used.objects.max(1) >= least && used.beyond_levels as f64 >= BEYOND * used.wait()
    };
    let on = |used: &Uses| {
        let edit = |on| Proposal {
            subject: used.name.clone(),
            edits: vec![Edit::Place { object: used.name.clone(), on }],
        };
        [PagePlacement::Blockwise, PagePlacement::Interleave].map(edit)
    };
    uses.iter().filter(is_spread).flat_map(on).collect()
}
