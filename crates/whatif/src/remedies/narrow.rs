//! # Members of fewer bytes
//!
//! **What it proposes.** `narrow`: each value that a member had in this run fits into fewer bytes, all
//! as unsigned numbers, all as signed ones, or all as shorter floating-point ones without losing a
//! digit. Only where the program was built with `--values`.
//!
//! **Why it gains.** More records share a line.
//!
//! **When it is wrong.** Another run may have larger values.

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Members of fewer bytes.
pub(crate) struct Narrow;

impl Remedy for Narrow {
    const META: RemedyMeta =
        RemedyMeta { id: "narrow", rank: 120, program: "tests/corpus/remedies/samples.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, values, .. } = case.subject else { return Vec::new() };
        let mut found: Vec<Proposal> = Vec::new();
        for record in uses.iter().filter_map(|used| used.record.as_ref()) {
            let edits = values.narrower(case.inputs.names, record);
            if !edits.is_empty() && found.iter().all(|known| known.subject != *record) {
                found.push(Proposal { subject: record.clone(), edits });
            }
        }
        found
    }
}
