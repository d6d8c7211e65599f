//! Types of libraries and others whose objects hold some of an edited type: buckets, nodes, pairs.

use memlode_layout::{Layout, Structure};
use memlode_trace::layouts::{LayoutId, Layouts};
use memlode_trace::sites::SiteTable;

use crate::named::records_named;
use crate::structures::{elements, structure};

/// More in one object are no longer looked at one by one.
const MOST: u64 = 64;

/// Room for an element that libstdc++ declares as bytes: in nodes of lists, maps and hash tables.
const ROOMS: [&str; 2] = ["__gnu_cxx::__aligned_membuf<", "__gnu_cxx::__aligned_buffer<"];

/// Returns the layout of a type that holds elements of edited ones; `edited` knows theirs. None if
/// it holds none, or too many of them, or in a way that [`Layout::around`] cannot make.
pub fn around<'l>(
    names: &SiteTable,
    outer: LayoutId,
    edited: impl Fn(LayoutId) -> Option<&'l Layout>,
) -> Option<Layout> {
    let outer_structure: Structure = structure(names, outer)?;
    let mut held = Vec::new();
    collect(names, outer, (0, &outer_structure.name), &|id| edited(id).is_some(), &mut held)?;
    // Of variants and unions several may begin at one place.
    held.sort_unstable();
    held.dedup();
    let held: Vec<_> =
        held.iter().filter_map(|(at, id, name)| Some((*at, edited(*id)?, &name[..]))).collect();
    Layout::around(outer_structure, &held)
}

/// Returns whether a record holds one of these by value, at any depth.
pub fn holds_any(names: &SiteTable, outer: LayoutId, is_inner: &dyn Fn(LayoutId) -> bool) -> bool {
    let mut held = Vec::new();
    collect(names, outer, (0, ""), is_inner, &mut held).is_none() || !held.is_empty()
}

/// Finds the elements in a record: offset, type, and the member that they are in. None if there are
/// too many.
fn collect(
    names: &SiteTable,
    outer: LayoutId,
    (base, path): (u64, &str),
    is_inner: &dyn Fn(LayoutId) -> bool,
    held: &mut Vec<(u64, LayoutId, String)>,
) -> Option<()> {
    let layouts = names.layouts();
    for (offset, id, count, name) in parts(names, outer) {
        let (bytes, at) = (layouts.layout(id).bytes, base + offset);
        let is_held = is_inner(id);
        if !is_held && !may_hold(layouts, id) {
            continue;
        }
        let name = name.unwrap_or(path);
        if count > MOST || held.len() as u64 > MOST {
            let mut one = Vec::new();
            collect(names, id, (0, name), is_inner, &mut one)?;
            if is_held || !one.is_empty() {
                return None;
            }
            continue;
        }
        for number in 0..count {
            let at = at + number * bytes;
            match is_held {
                true => held.push((at, id, name.to_string())),
                false => collect(names, id, (at, name), is_inner, held)?,
            }
        }
    }
    Some(())
}

/// The records that a record has: offset, type, how many of them, and the member.
fn parts(names: &SiteTable, outer: LayoutId) -> Vec<(u64, LayoutId, u64, Option<&str>)> {
    let layouts = names.layouts();
    let outer = layouts.layout(outer);
    if let Some(inner) = outer.name.and_then(|name| room(names, names.string(name), outer.bytes)) {
        return vec![(0, inner, 1, None)];
    }
    let members = outer.members().iter().filter(|member| !member.is_bit_field);
    let part = members.filter_map(|member| {
        let (id, count) = elements(layouts, member.ty?);
        Some((member.first_bit / 8, id, count, member.name.map(|name| names.string(name))))
    });
    part.collect()
}

/// The record for which a type is room, by the type's name.
fn room(names: &SiteTable, name: &str, bytes: u64) -> Option<LayoutId> {
    let element = ROOMS.iter().find_map(|room| name.strip_prefix(room))?.strip_suffix('>')?;
    let records = records_named(names, element.trim_end());
    records.into_iter().find(|&record| names.layouts().layout(record).bytes <= bytes)
}

fn may_hold(layouts: &Layouts, id: LayoutId) -> bool {
    !layouts.layout(id).members().is_empty()
}
