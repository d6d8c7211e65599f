//! Members that no code of the program reads, executed or not: they take room in the lines of the others.
//!
//! A member that merely was not read in this run is no such member; a split moves it out of the way.

use memlode_layout::Edit;
use memlode_trace::sites::SiteKind;

use super::{Proposal, Uses};
use crate::candidates::first_component;
use crate::plan::{PlanInputs, records_named};
use crate::structures::structure;

/// Fewer bytes are not worth a change.
const LEAST_BYTES: u64 = 4;

pub(super) fn proposals(known: &PlanInputs<'_>, uses: &[Uses]) -> Vec<Proposal> {
    let mut records: Vec<&String> = uses.iter().filter_map(|used| used.record.as_ref()).collect();
    records.dedup();
    let mut found: Vec<Proposal> = Vec::new();
    for record in records {
        if found.iter().any(|known| known.subject == *record) {
            continue;
        }
        let Some(members) = unread(known, record) else { continue };
        let edit = Edit::Remove { structure: record.clone(), members };
        found.push(Proposal { subject: record.clone(), edits: vec![edit] });
    }
    found
}

/// The members of a record that nothing reads. `None` if there are none, or if something reads the record whole.
fn unread(known: &PlanInputs<'_>, record: &str) -> Option<Vec<String>> {
    let names = known.names;
    let shape = structure(names, *records_named(names, record).first()?)?;
    let mut read = vec![false; shape.members.len()];
    for site in names.sites() {
        let is_of_record = site.ty.is_some_and(|ty| names.string(names.ty(ty).name) == record);
        if !is_of_record || site.is_prefetch() || !matches!(site.kind, SiteKind::Load | SiteKind::Update) {
            continue;
        }
        // What is read without a member's name may be any member.
        let first = first_component(names.string(site.member?));
        let at = shape.members.iter().position(|member| member.name == first)?;
        read[at] = true;
    }
    let unread =
        shape.members.iter().zip(read).filter(|(member, is_read)| !is_read && !member.name.is_empty());
    let (names, bytes): (Vec<String>, Vec<u64>) =
        unread.map(|(member, _)| (member.name.clone(), member.bytes)).unzip();
    let is_some = !names.is_empty() && names.len() < shape.members.len();
    (is_some && bytes.iter().sum::<u64>() >= LEAST_BYTES).then_some(names)
}
