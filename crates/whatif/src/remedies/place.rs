//! # Objects that threads of other memory nodes use
//!
//! **What it proposes.** `place`: a large object is spread over the memory nodes, in as many parts or page
//! by page. Only with `--sim`, on a machine with several nodes.
//!
//! **Why it gains.** It lies in the memory of the node whose thread touched it first, and others use it:
//! spread, all memory serves it, and in parts each thread may have its own nearby.
//!
//! **When it is wrong.** Threads must run on the cores that `--cores` says, in every run.

use memlode_layout::{Edit, PagePlacement};

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::uses::ObjectUses;

/// The part of an object's waiting that must be for memory further away, or for translations: the
/// simulation does not separate the two.
const BEYOND: f64 = 0.1;

/// Fewer pages for a node are no work.
const LEAST_PAGES: u64 = 4;

/// Objects spread over memory nodes.
pub(crate) struct Place;

impl Remedy for Place {
    const META: RemedyMeta =
        RemedyMeta { id: "place", rank: 180, program: "tests/corpus/sick/first_touch.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, machine, .. } = case.subject else { return Vec::new() };
        let Some(nodes) = case.inputs.nodes.filter(|nodes| *nodes > 1) else { return Vec::new() };
        let least = machine.page_bytes * LEAST_PAGES * u64::from(nodes);
        let is_spread = |used: &&ObjectUses| {
            used.bytes / used.objects.max(1) >= least && used.beyond_levels as f64 >= BEYOND * used.wait()
        };
        let on = |used: &ObjectUses| {
            let edit = |on| Proposal::one(Edit::Place { object: used.name.clone(), on });
            [PagePlacement::Blockwise, PagePlacement::Interleave].map(edit)
        };
        uses.iter().filter(is_spread).flat_map(on).collect()
    }
}
