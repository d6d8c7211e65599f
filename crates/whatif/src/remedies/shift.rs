//! # Arrays that fall into the same sets
//!
//! **What it proposes.** `shift`: of arrays that one function uses side by side, each begins some lines
//! later than the one before.
//!
//! **Why it gains.** Arrays that begin at the same place of a page compete for one set of a cache after
//! the other, if there are more of them than the set has ways.
//!
//! **When it is wrong.** Another allocator or linker may put them elsewhere anyway.

use memlode_layout::Edit;

use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::uses::ObjectUses;

/// Bytes behind which a first level has the same set again, at most: those of a page.
const PAGE: u64 = 4096;

/// Arrays that begin some lines apart.
pub(crate) struct Shift;

impl Remedy for Shift {
    const META: RemedyMeta =
        RemedyMeta { id: "shift", rank: 140, program: "tests/corpus/remedies/columns.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, machine, .. } = case.subject else { return Vec::new() };
        let Some(first) = machine.levels.first() else { return Vec::new() };
        let line = u64::from(first.line_bytes);
        let mut found = Vec::new();
        for function in ObjectUses::functions(uses) {
            let is_array = |used: &&ObjectUses| {
                used.objects == 1 && used.bytes >= PAGE && used.by_function.contains_key(&function)
            };
            let arrays: Vec<&ObjectUses> = uses.iter().filter(is_array).collect();
            // Fewer than the ways of a set never drive each other out.
            if arrays.len() * 2 <= first.ways as usize {
                continue;
            }
            let apart = (PAGE / arrays.len() as u64 / line * line).max(line);
            let shift = |(number, used): (u64, &&ObjectUses)| Edit::Shift {
                object: used.name.clone(),
                by: number * apart,
            };
            let edits: Vec<Edit> = (1..).zip(&arrays[1..]).map(shift).collect();
            let names: Vec<&str> = arrays.iter().map(|used| used.name.as_str()).collect();
            found.push(Proposal { subject: names.join(", "), edits });
        }
        found
    }
}
