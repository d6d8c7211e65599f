//! # Rows that fall into the same sets
//!
//! **What it proposes.** `pad`: records whose size is a multiple of 256 bytes get one line more.
//!
//! **Why it gains.** A walk down a column of such rows uses only a few sets of a cache, however
//! large it is.
//!
//! **When it is wrong.** They take more room, which is replayed.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// The smallest row of which few sets are used.
const ROW: u64 = 256;

/// Rows that are a line longer.
pub(crate) struct Pad;

impl Remedy for Pad {
    const META: RemedyMeta = RemedyMeta { id: "pad", rank: 130, program: "gallery/column-walk" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, machine, .. } = case.subject else { return Vec::new() };
        let Some(first) = machine.levels.first() else { return Vec::new() };
        let mut found: Vec<Proposal> = Vec::new();
        for used in uses {
            let Some(record) = &used.record else { continue };
            let bytes = used.element_bytes;
            let is_known = found.iter().any(|known| known.subject == *record);
            if bytes < ROW || !bytes.is_multiple_of(ROW) || is_known {
                continue;
            }
            let to = bytes + u64::from(first.line_bytes);
            found.push(Proposal::one(Edit::Pad { subject: record.clone(), of: None, to }));
        }
        found
    }
}
