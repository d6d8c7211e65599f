//! # Counters of which each thread can have a copy
//!
//! **What it proposes.** `per-thread`: each thread has a copy, and readers add the copies up. Only
//! for data that threads merely add to while several of them run, as the compiler saw.
//!
//! **Why it gains.** Each addition takes the counter's line from the thread that added last.
//!
//! **When it is wrong.** A thread that reads while others run would need the sum of all copies.
//! Copies of locks, flags and data that others read would change the program: none are proposed.
//! Programs that an older memlode compiled have no such proposals; build them again.

use memlode_attribute::ClassId;
use memlode_attribute::sharing::SharingProfile;
use memlode_layout::Edit;
use memlode_trace::format::flag;

use crate::named::name_of;
use crate::plan::PlanInputs;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// A copy for each thread.
pub(crate) struct PerThread;

impl Remedy for PerThread {
    const META: RemedyMeta =
        RemedyMeta { id: "per-thread", rank: 250, program: "tests/corpus/sick/statistics.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, .. } = case.subject else { return Vec::new() };
        copied(case.inputs, sharing, class).map(Proposal::one).into_iter().collect()
    }
}

/// Gives each thread a copy of data that threads merely add to while several run. Copies of a lock,
/// a flag, or data that others read would change the program.
fn copied(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Option<Edit> {
    let beside = known.profile.cells.iter().filter(|cell| cell.class == class);
    let mut beside = beside.filter(|cell| sharing.is_beside_others(cell.thread, cell.site)).peekable();
    beside.peek()?;
    if beside.any(|cell| known.names.site(cell.site).flags & flag::ADDS == 0) {
        return None;
    }
    let object = name_of(known, &known.profile.classes[class.0 as usize].home)?;
    Some(Edit::PerThread { object })
}
