//! # Members that nothing reads
//!
//! **What it proposes.** `remove`: no code of the program reads these members, executed or not, or
//! has their address. A member that merely was not read in this run is moved out of the way by a
//! split. If the program was built with `--values`, also members that had one value in the whole
//! run: a constant does what they do.
//!
//! **Why it gains.** They take room in the lines of the others, and stores to them fetch lines.
//!
//! **When it is wrong.** Code that memlode did not compile may read them, or a program that gets
//! the record as bytes. A member that had one value in this run may have another in the next.

use memlode_attribute::inside::{Inside, alternatives, holds, inside};
use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::{Cell, Class};
use memlode_layout::{AddressUse, Edit, StructureMember};
use memlode_trace::layouts::{Form, LayoutId};
use memlode_trace::sites::{Site, SiteKind, SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::embedded::holds_any;
use crate::heat::{RecordNames, first_component, members_with};
use crate::named::records_named;
use crate::plan::{PlanInputs, record_of};
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::structures::{elements, structure};

/// Fewer bytes are not worth a change.
const LEAST_BYTES: u64 = 4;

/// A record without members that nothing reads.
pub(crate) struct Remove;

impl Remedy for Remove {
    const META: RemedyMeta = RemedyMeta { id: "remove", rank: 110, program: "tests/corpus/remedies/item.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Objects { uses, values, .. } = case.subject else { return Vec::new() };
        let mut records: Vec<String> = Vec::new();
        for record in uses.iter().filter_map(|used| used.record.as_ref()) {
            let own = own_records(case.inputs.names, record);
            records.extend(own.into_iter().filter(|own| !records.contains(own)).collect::<Vec<_>>());
        }
        let names = case.inputs.names;
        let edits = |record: String| {
            let unread = unread(case.inputs, &record).unwrap_or_default();
            let constants = values.constants(names, &record);
            let more = constants.iter().filter(|member| !unread.contains(member)).cloned();
            let all: Vec<String> = unread.iter().cloned().chain(more).collect();
            let is_more = all.len() > unread.len() && leaves_some(names, &record, &all);
            let edits = [(!unread.is_empty()).then_some(unread), is_more.then_some(all)];
            edits
                .into_iter()
                .flatten()
                .map(move |members| Proposal::one(Edit::Remove { structure: record.clone(), members }))
        };
        records.into_iter().flat_map(edits).collect()
    }
}

/// The record, or those of the user's own in it, if it is a library's.
fn own_records(names: &SiteTable, record: &str) -> Vec<String> {
    let fetched = FetchedCrates::of(names);
    let is_own = |id: LayoutId| fetched.is_own(names, id);
    let Some(&outer) = records_named(names, record).first() else { return Vec::new() };
    if is_own(outer) {
        return vec![record.to_string()];
    }
    let layouts = names.layouts();
    let all = (0..layouts.all().len() as u32).map(LayoutId).filter(|&id| is_own(id));
    let inner = all.filter(|&id| holds_any(names, outer, &|held| held == id));
    inner.filter_map(|id| layouts.layout(id).name).map(|name| names.string(name).to_string()).collect()
}

/// Returns whether a record has members besides these, and these have bytes worth a change.
fn leaves_some(names: &SiteTable, record: &str, members: &[String]) -> bool {
    let shape = records_named(names, record).first().and_then(|&id| structure(names, id));
    shape.is_some_and(|shape| {
        let (gone, left): (Vec<_>, Vec<_>) =
            shape.members.iter().partition(|member| members.contains(&member.name));
        !left.is_empty() && gone.iter().map(|member| member.bytes).sum::<u64>() >= LEAST_BYTES
    })
}

/// The members of a record that nothing reads. `None` if there are none, or if something reads the record whole.
pub(crate) fn unread(known: &PlanInputs<'_>, record: &str) -> Option<Vec<String>> {
    let names = known.names;
    let id = *records_named(names, record).first()?;
    let shape = structure(names, id)?;
    // Whoever has the address of a member may read it.
    let is_kept = |member: &StructureMember| member.address == AddressUse::Kept;
    let mut read: Vec<bool> = shape.members.iter().map(|member| !is_kept(member)).collect();
    let member = |path: &str| shape.members.iter().position(|member| member.name == first_component(path));
    let mut by_type: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    let name = names.layouts().layout(id).name;
    let is_record = |id: LayoutId| names.layouts().layout(id).name == name;
    let reads = |site: &Site| !site.is_prefetch() && matches!(site.kind, SiteKind::Load | SiteKind::Update);
    for site in names.sites().iter().filter(|site| reads(site)) {
        let Some(ty) = site.ty.map(|ty| names.ty(ty).name) else { continue };
        if names.string(ty) == record {
            // What is read without a member's name may be any member.
            for path in alternatives(names.string(site.member?)) {
                read[member(path)?] = true;
            }
        } else if let Some(path) = site.member {
            // Inside another type, by that one's name.
            let outer = site.ty.and_then(|ty| names.layouts().of_type(ty));
            for path in alternatives(names.string(path)) {
                match outer.map(|outer| inside(names, outer, path, &is_record)) {
                    Some(Inside::Whole) => return None,
                    Some(Inside::Member(_, path)) => read[member(path)?] = true,
                    Some(Inside::Outside) | None => {}
                }
            }
            let holders = by_type.entry(ty).or_insert_with(|| members_with(names, id, ty));
            holders.iter().for_each(|&at| read[at] = true);
        }
    }
    // Reads of its objects that name neither the record nor one in it may be of any member, too; those of a
    // pointer, by a pointer to it, of any that is one or holds one.
    let records = RecordNames::of(names, known.profile);
    let mut outer: FxHashMap<LayoutId, bool> = FxHashMap::default();
    let mut has_one = |class: &Class| {
        let record = record_of(names, class).map(|(record, _)| record);
        record.is_some_and(|record| {
            *outer.entry(record).or_insert_with(|| holds_any(names, record, &is_record))
        })
    };
    let mut is_nameless = |cell: &Cell| {
        let site = names.site(cell.site);
        let ty = site.ty.map(|ty| names.ty(ty).name);
        let is_known = ty == name || ty.is_some_and(|ty| by_type.get(&ty).is_some_and(|at| !at.is_empty()));
        if is_known || !reads(site) || cell.counts.accesses() == 0 {
            return false;
        }
        let is_of_class = records.of_classes[cell.class.0 as usize] == name;
        is_of_class || (site.member.is_none() && has_one(&known.profile.classes[cell.class.0 as usize]))
    };
    let layouts = names.layouts();
    let is_pointer = |id: LayoutId| matches!(layouts.layout(id).form, Form::Pointer);
    for cell in known.profile.cells.iter().filter(|cell| is_nameless(cell)) {
        let ty = names.site(cell.site).ty.map(|ty| names.ty(ty).name)?;
        let mut of_name = layouts.all().iter().filter(|layout| layout.name == Some(ty));
        of_name.find(|layout| matches!(layout.form, Form::Pointer))?;
        for (at, member) in layouts.layout(id).members().iter().enumerate() {
            let ty = member.ty.map(|ty| elements(layouts, ty).0);
            read[at] |= ty.is_none_or(|ty| is_pointer(ty) || holds(layouts, ty, &is_pointer));
        }
    }
    let unread =
        shape.members.iter().zip(read).filter(|(member, is_read)| !is_read && !member.name.is_empty());
    let (names, bytes): (Vec<String>, Vec<u64>) =
        unread.map(|(member, _)| (member.name.clone(), member.bytes)).unzip();
    let is_some = !names.is_empty() && names.len() < shape.members.len();
    (is_some && bytes.iter().sum::<u64>() >= LEAST_BYTES).then_some(names)
}
