//! # Variables of threads that share a line
//!
//! **What it proposes.** `align … of=object`, to a line: global variables that different threads write.
//!
//! **Why it gains.** Each write of one thread takes the line of the other variable from the other.
//!
//! **When it is wrong.** Another linker may put them on lines of their own anyway.

use memlode_attribute::sharing::SharingProfile;
use memlode_attribute::{ClassId, Home};
use memlode_layout::{Edit, Scope};

use crate::contended::{array_of_records, is_between};
use crate::named::name_of;
use crate::plan::PlanInputs;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Variables on lines of their own.
pub(crate) struct AlignVariables;

impl Remedy for AlignVariables {
    const META: RemedyMeta =
        RemedyMeta { id: "align-variables", rank: 240, program: "tests/corpus/remedies/neighbours.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, is_falsely: true } = case.subject else {
            return Vec::new();
        };
        if array_of_records(case.inputs, class).is_some() {
            return Vec::new();
        }
        let edits = variables_apart(case.inputs, sharing, class).filter(|edits| !edits.is_empty());
        let proposal = |edits: Vec<Edit>| Proposal { subject: edits[0].subject().to_string(), edits };
        edits.map(proposal).into_iter().collect()
    }
}

/// Gives variables that share lines one each.
fn variables_apart(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Option<Vec<Edit>> {
    // One of the two is enough to part them; both also part from whatever stands beside.
    let others = sharing.pairs.iter().filter(|pair| is_between(pair, class));
    let mut classes: Vec<ClassId> = others.filter_map(|pair| Some(pair.other?.class)).collect();
    classes.push(class);
    classes.sort_unstable();
    classes.dedup();
    let is_variable =
        |class: &ClassId| matches!(known.profile.classes[class.0 as usize].home, Home::Global { .. });
    if classes.len() < 2 || !classes.iter().all(is_variable) {
        return None;
    }
    let align = |class: ClassId| {
        let subject = name_of(known, &known.profile.classes[class.0 as usize].home)?;
        Some(Edit::Align { subject, of: Some(Scope::Object), to: sharing.line_bytes })
    };
    classes.into_iter().map(align).collect()
}
