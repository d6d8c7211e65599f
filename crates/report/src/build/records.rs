//! The records of a trace, with names.

use memlode_trace::layouts::{Form, LayoutId, Member, MemberKind, TypeLayout};
use memlode_trace::sites::SiteTable;

use crate::model::{RecordLayout, RecordPart};

/// All records that a trace describes, by name.
pub fn records(sites: &SiteTable) -> Vec<RecordLayout> {
    let ids = (0..sites.layouts().all().len() as u32).map(LayoutId);
    let mut records: Vec<RecordLayout> =
        ids.filter(|&id| sites.layouts().layout(id).is_record()).map(|id| record(sites, id)).collect();
    records.sort_by(|a, b| a.name.cmp(&b.name));
    records
}

fn name(sites: &SiteTable, layout: &TypeLayout) -> String {
    layout.name.map_or_else(String::new, |id| sites.string(id).to_owned())
}

/// A layout with the names of its members.
pub fn record(sites: &SiteTable, id: LayoutId) -> RecordLayout {
    let (layout, uses) = (sites.layouts().layout(id), sites.layouts().uses(id));
    let form = match layout.form {
        Form::Class(_) => "class",
        Form::Union(_) => "union",
        Form::Variants(_) => "variants",
        _ => "struct",
    };
    let members = layout.members().iter().enumerate();
    RecordLayout {
        name: name(sites, layout),
        form: form.into(),
        bytes: layout.bytes,
        incomplete: layout.is_incomplete,
        watched: uses.is_watched(),
        cast: uses.is_cast(),
        members: members.map(|(at, member)| part(sites, member, uses.escapes(at))).collect(),
    }
}

fn part(sites: &SiteTable, member: &Member, escapes: bool) -> RecordPart {
    let (kind, value) = match member.kind {
        MemberKind::Field => ("field", None),
        MemberKind::Base => ("base", None),
        MemberKind::VirtualBase => ("virtual base", None),
        MemberKind::Vptr => ("vptr", None),
        MemberKind::Discriminant => ("discriminant", None),
        MemberKind::Variants => ("variants", None),
        MemberKind::Variant(value) => ("variant", value),
    };
    let layout = member.ty.map(|id| (id, sites.layouts().layout(id)));
    let is_unnamed = |layout: &TypeLayout| member.name.is_none() && layout.is_record();
    let inside = layout.filter(|(_, layout)| {
        member.kind == MemberKind::Variants || (member.kind == MemberKind::Field && is_unnamed(layout))
    });
    RecordPart {
        name: member.name.map_or_else(String::new, |id| sites.string(id).to_owned()),
        kind: kind.into(),
        first_bit: member.first_bit,
        bits: member.bits,
        ty: layout.map_or_else(String::new, |(_, layout)| name(sites, layout)),
        bit_field: member.is_bit_field,
        escapes,
        value,
        inside: inside.map(|(id, _)| Box::new(record(sites, id))),
    }
}
