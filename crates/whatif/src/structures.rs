//! Types as the trace describes them, as `crates/layout` wants them.

use memlode_layout::{AddressUse, Role, Structure, StructureMember};
use memlode_trace::layouts::{Form, LayoutId, Layouts, Member, MemberKind, TypeLayout};
use memlode_trace::sites::SiteTable;

/// The largest alignment that a type has by itself: `max_align_t` of x86-64.
const MOST: u64 = 16;

/// A record of the trace as compiled. `None` if it is no structure or class, or only its
/// declaration is known.
pub fn structure(names: &SiteTable, id: LayoutId) -> Option<Structure> {
    let layouts = names.layouts();
    let layout = layouts.layout(id);
    if layout.is_incomplete || !matches!(layout.form, Form::Structure(_) | Form::Class(_)) {
        return None;
    }
    let uses = layouts.uses(id);
    let last = layout.members().len().saturating_sub(1);
    let members = layout.members().iter().enumerate().map(|(at, member)| StructureMember {
        name: member.name.map_or_else(String::new, |name| names.string(name).to_owned()),
        offset: member.first_bit / 8,
        bytes: bytes(member),
        align: align_of_member(layouts, member),
        role: role(layouts, member, at == last),
        address: match () {
            // Any member may be what the other type reaches.
            () if uses.is_cast() => AddressUse::Cast,
            () if uses.escapes(at) => AddressUse::Taken,
            () => AddressUse::Kept,
        },
    });
    Some(Structure {
        name: layout.name.map_or_else(String::new, |name| names.string(name).to_owned()),
        bytes: layout.bytes,
        align: align(layouts, layout),
        members: members.collect(),
    })
}

/// The record that a type is, or that an array of it holds, and how many of them.
pub fn elements(layouts: &Layouts, id: LayoutId) -> (LayoutId, u64) {
    let (mut id, mut count) = (id, 1_u64);
    // A layout contains only layouts before it.
    while let Form::Array { element: Some(element), extents } = &layouts.layout(id).form {
        count = extents.iter().fold(count, |all, &extent| all.saturating_mul(extent));
        id = *element;
    }
    (id, count)
}

/// Bytes that a member has bits in.
fn bytes(member: &Member) -> u64 {
    let first = member.first_bit / 8;
    (member.first_bit + member.bits).div_ceil(8) - first
}

fn role(layouts: &Layouts, member: &Member, is_last: bool) -> Role {
    let form = member.ty.map(|ty| &layouts.layout(ty).form);
    match (member.kind, form) {
        (MemberKind::Base | MemberKind::VirtualBase, _) => Role::Base,
        (MemberKind::Vptr, _) => Role::VirtualTable,
        _ if member.is_bit_field => Role::Bits,
        (_, Some(Form::Pointer)) => Role::Pointer,
        (_, Some(Form::Array { extents, .. })) if is_last && extents.contains(&0) => Role::FlexibleArray,
        (_, Some(Form::Array { .. })) => Role::Several,
        // An atomic or another wrapper of a number is as good as that.
        (_, Some(form)) if !matches!(form, Form::Scalar | Form::Enumeration) && bytes(member) > 8 => {
            Role::Several
        }
        _ => Role::Value,
    }
}

/// Returns the alignment that a member needs: that of its type, as far as its place agrees.
fn align_of_member(layouts: &Layouts, member: &Member) -> u64 {
    let of_type = match member.ty {
        Some(ty) => align(layouts, layouts.layout(ty)),
        None => power_within(bytes(member)).min(8),
    };
    if member.is_bit_field { of_type } else { of_type.min(power_within(member.first_bit / 8)) }
}

/// The trace has no alignments: a scalar has its size's, a record that of the member with the
/// largest.
fn align(layouts: &Layouts, layout: &TypeLayout) -> u64 {
    let natural = match &layout.form {
        Form::Scalar | Form::Pointer | Form::Enumeration => power_within(layout.bytes),
        Form::Descriptor => 8,
        Form::Array { element: Some(element), .. } => align(layouts, layouts.layout(*element)),
        Form::Array { element: None, .. } => 1,
        Form::Structure(members) | Form::Class(members) | Form::Union(members) | Form::Variants(members) => {
            members.iter().map(|member| align_of_member(layouts, member)).max().unwrap_or(1)
        }
    };
    natural.min(MOST).min(power_within(layout.bytes))
}

/// The largest power of two that divides a number; bounded for 0.
fn power_within(number: u64) -> u64 {
    1 << number.trailing_zeros().min(6)
}
