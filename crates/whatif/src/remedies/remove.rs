//! # Members that nothing reads
//!
//! **What it proposes.** `remove`: no code of the program reads these members, executed or not, or
//! has their address. A member that merely was not read in this run is moved out of the way by a
//! split.
//!
//! **Why it gains.** They take room in the lines of the others, and stores to them fetch lines.
//!
//! **When it is wrong.** Code that memlode did not compile may read them, or a program that gets
//! the record as bytes.

use memlode_attribute::Cell;
use memlode_layout::{AddressUse, Edit, StructureMember};
use memlode_trace::sites::{Site, SiteKind, StringId};
use rustc_hash::FxHashMap;

use crate::heat::{first_component, members_with, record_names};
use crate::named::records_named;
use crate::plan::PlanInputs;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::structures::structure;

/// Fewer bytes are not worth a change.
const LEAST_BYTES: u64 = 4;

/// A record without members that nothing reads.
pub(crate) struct Remove;

impl Remedy for Remove {
    const META: RemedyMeta = RemedyMeta { id: "remove", rank: 110, program: "tests/corpus/remedies/item.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, .. } = case.subject else { return Vec::new() };
        let mut records: Vec<&String> = uses.iter().filter_map(|used| used.record.as_ref()).collect();
        records.dedup();
        let mut found: Vec<Proposal> = Vec::new();
        for record in records {
            if found.iter().any(|known| known.subject == *record) {
                continue;
            }
            let Some(members) = unread(case.inputs, record) else { continue };
            found.push(Proposal::one(Edit::Remove { structure: record.clone(), members }));
        }
        found
    }
}

/// The members of a record that nothing reads. `None` if there are none, or if something reads the record whole.
fn unread(known: &PlanInputs<'_>, record: &str) -> Option<Vec<String>> {
    let names = known.names;
    let id = *records_named(names, record).first()?;
    let shape = structure(names, id)?;
    // Whoever has the address of a member may read it.
    let is_kept = |member: &StructureMember| member.address == AddressUse::Kept;
    let mut read: Vec<bool> = shape.members.iter().map(|member| !is_kept(member)).collect();
    let mut by_type: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    let reads = |site: &Site| !site.is_prefetch() && matches!(site.kind, SiteKind::Load | SiteKind::Update);
    for site in names.sites().iter().filter(|site| reads(site)) {
        let Some(ty) = site.ty.map(|ty| names.ty(ty).name) else { continue };
        if names.string(ty) == record {
            // What is read without a member's name may be any member.
            let first = first_component(names.string(site.member?));
            let at = shape.members.iter().position(|member| member.name == first)?;
            read[at] = true;
        } else if site.member.is_some() {
            let holders = by_type.entry(ty).or_insert_with(|| members_with(names, id, ty));
            holders.iter().for_each(|&at| read[at] = true);
        }
    }
    // Reads of its objects that name neither the record nor one in it may be of any member, too.
    let name = names.layouts().layout(id).name;
    let of_classes = record_names(names, known.profile);
    let is_nameless = |cell: &Cell| {
        let site = names.site(cell.site);
        let ty = site.ty.map(|ty| names.ty(ty).name);
        let is_known = ty == name || ty.is_some_and(|ty| by_type.get(&ty).is_some_and(|at| !at.is_empty()));
        of_classes[cell.class.0 as usize] == name && reads(site) && !is_known && cell.counts.accesses() > 0
    };
    if known.profile.cells.iter().any(is_nameless) {
        return None;
    }
    let unread =
        shape.members.iter().zip(read).filter(|(member, is_read)| !is_read && !member.name.is_empty());
    let (names, bytes): (Vec<String>, Vec<u64>) =
        unread.map(|(member, _)| (member.name.clone(), member.bytes)).unzip();
    let is_some = !names.is_empty() && names.len() < shape.members.len();
    (is_some && bytes.iter().sum::<u64>() >= LEAST_BYTES).then_some(names)
}
