//! # Tables larger than what translations reach
//!
//! **What it proposes.** `pages`: a large object that the program jumps about in lies in large
//! pages, by `madvise(MADV_HUGEPAGE)` or by the allocator.
//!
//! **Why it gains.** One translation covers hundreds of ordinary pages, which saves page walks, and
//! faults at first touches.
//!
//! **When it is wrong.** A kernel may have no large pages left.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::uses::ObjectUses;

/// The large page of the processors that there are descriptions of, and of `madvise(MADV_HUGEPAGE)`.
const LARGE: u64 = 2 << 20;

/// The part of an object's waiting that is for jumps, at least: streams go to the next page seldom.
const JUMPING: f64 = 0.5;

/// Objects in large pages.
pub(crate) struct Pages;

impl Remedy for Pages {
    const META: RemedyMeta = RemedyMeta { id: "pages", rank: 170, program: "tests/corpus/sick/table.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, machine, .. } = case.subject else { return Vec::new() };
        let kept = machine.tlbs.iter().any(|tlb| tlb.page_bytes.contains(&LARGE));
        if !kept || machine.page_bytes >= LARGE {
            return Vec::new();
        }
        let reach = machine.tlbs.iter().filter(|tlb| tlb.page_bytes.contains(&machine.page_bytes));
        let reach = reach.map(|tlb| u64::from(tlb.entries) * machine.page_bytes).max().unwrap_or(u64::MAX);
        let is_spread = |used: &&ObjectUses| {
            used.bytes > reach
                && used.bytes / used.objects.max(1) >= LARGE
                && used.jumping() >= JUMPING * used.wait()
        };
        let edit = |used: &ObjectUses| Proposal::one(Edit::Pages { object: used.name.clone(), to: LARGE });
        uses.iter().filter(is_spread).map(edit).collect()
    }
}
