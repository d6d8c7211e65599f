//! # Records of threads that share a line
//!
//! **What it proposes.** `align` to a line, of records in an array, if different threads write
//! neighbours.
//!
//! **Why it gains.** A record that begins in the middle of a line shares it with the next one, and
//! each write of one thread takes the line from the other.
//!
//! **When it is wrong.** Some processors fetch lines in pairs. The cost of that is reported
//! separately.

use memlode_layout::Edit;

use crate::contended::array_of_records;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Records on lines of their own.
pub(crate) struct AlignRecords;

impl Remedy for AlignRecords {
    const META: RemedyMeta =
        RemedyMeta { id: "align-records", rank: 210, program: "tests/corpus/sick/regression.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, is_falsely: true } = case.subject else {
            return Vec::new();
        };
        let align = |name: &str| {
            Proposal::one(Edit::Align { subject: name.to_string(), of: None, to: sharing.line_bytes })
        };
        array_of_records(case.inputs, class).map(align).into_iter().collect()
    }
}
