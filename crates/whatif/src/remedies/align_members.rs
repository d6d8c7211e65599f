//! # Members of threads that share a line
//!
//! **What it proposes.** `align` of members, to a line: members of one record that different threads
//! use, and at least one writes, such as the two ends of a queue.
//!
//! **Why it gains.** Each write of one thread takes the line of the other member from the other.
//!
//! **When it is wrong.** Of a record with many objects, each gets lines more, which is replayed.

use memlode_attribute::ClassId;
use memlode_attribute::sharing::{Sharer, SharingProfile};
use memlode_layout::{Edit, Structure};
use memlode_trace::sites::StringId;

use crate::contended::is_between;
use crate::heat::first_component;
use crate::plan::{PlanInputs, record_of};
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};
use crate::structures::structure;

/// Pairs of accesses that lose a smaller part of what an object loses part no members.
const LEAST: f64 = 0.01;

/// Members on lines of their own.
pub(crate) struct AlignMembers;

impl Remedy for AlignMembers {
    const META: RemedyMeta =
        RemedyMeta { id: "align-members", rank: 215, program: "tests/corpus/remedies/ends.c" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Contended { class, sharing, is_falsely: true } = case.subject else {
            return Vec::new();
        };
        members_apart(case.inputs, sharing, class).map(Proposal::one).into_iter().collect()
    }
}

/// Parts the members of a record, in their order, where one shares a line falsely with one before it.
fn members_apart(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Option<Edit> {
    let (record, _) = record_of(known.names, &known.profile.classes[class.0 as usize])?;
    let name = known.names.layouts().layout(record).name?;
    let shape = structure(known.names, record)?;
    let within = || sharing.pairs.iter().filter(|pair| is_between(pair, class));
    let least = within().map(|pair| pair.cycles).sum::<f64>() * LEAST;
    let place = |sharer: &Sharer| place_of(known, sharer, (class, name, &shape));
    let pairs: Vec<(usize, usize)> = within()
        .filter(|pair| pair.cycles >= least)
        .filter_map(|pair| Some((place(&pair.missed)?, place(pair.other.as_ref()?)?)))
        .collect();
    let is_apart = |one: usize, other: usize| pairs.contains(&(one, other)) || pairs.contains(&(other, one));
    let mut order: Vec<usize> = (0..shape.members.len()).filter(|&at| shape.members[at].bytes > 0).collect();
    order.sort_by_key(|&at| shape.members[at].offset);
    let mut members = Vec::new();
    let mut beside: Vec<usize> = Vec::new();
    for at in order {
        if beside.iter().any(|&other| is_apart(at, other)) {
            members.push(shape.members[at].name.clone());
            beside.clear();
        }
        beside.push(at);
    }
    let structure = shape.name;
    (!members.is_empty()).then_some(Edit::AlignMembers { structure, members, to: sharing.line_bytes })
}

/// The member of a record that an access touches.
fn place_of(
    known: &PlanInputs<'_>,
    sharer: &Sharer,
    (class, record, shape): (ClassId, StringId, &Structure),
) -> Option<usize> {
    let site = known.names.site(sharer.site);
    let member = match sharer.member {
        Some(own) => (own.ty == record).then_some(own.member),
        None => site.member.filter(|_| site.ty.is_some_and(|ty| known.names.ty(ty).name == record)),
    };
    let name = first_component(known.names.string(member.filter(|_| sharer.class == class)?));
    shape.members.iter().position(|member| member.name == name)
}
