//! The comparison of a unit before and after: all but the edited definition is the same.

use std::path::PathBuf;

use clang_sys::*;
use memlode_layout::Layout;

use crate::clang::{Node, Tree};
use crate::record::{Record, records};
use crate::rewrite::PADDING;

/// Checks that an edited unit has the same meaning, and that the definition has the layout.
pub fn is_kept(before: &Tree, record: &Record, after: &Tree, layout: &Layout) -> Result<(), String> {
    if let Some(error) = after.errors.first() {
        return Err(format!("edited, it does not compile: {}", error.escape_debug()));
    }
    let order = |text: &&String| {
        text.contains("will be initialized after") || text.contains("is uninitialized when used here")
    };
    let known: Vec<_> = before.warnings.iter().filter(order).collect();
    if let Some(new) = after.warnings.iter().filter(order).find(|text| !known.contains(text)) {
        return Err(format!("members would be initialised in another order: {}", new.escape_debug()));
    }
    let found = records(after, &layout.structure().name);
    let [now] = &found[..] else { return Err("edited, it is not found again".to_string()) };
    let part = &layout.parts()[0];
    let ty = &after.nodes[now.node].ty;
    if u64::try_from(ty.bytes) != Ok(part.stride) || u64::try_from(ty.align) != Ok(part.align) {
        let (bytes, align) = (part.stride, part.align);
        return Err(format!(
            "edited, it has {} bytes aligned to {}, not {bytes} aligned to {align}",
            ty.bytes, ty.align
        ));
    }
    let mut left = now.fields.iter().filter(|field| after.nodes[**field].name != PADDING).count();
    for slot in &part.slots {
        for name in &slot.names {
            let find = |tree: &Tree, fields: &[usize]| {
                fields.iter().map(|field| tree.nodes[*field].clone()).find(|node| node.name == *name)
            };
            let Some(was) = find(before, &record.fields) else { continue };
            let is = find(after, &now.fields).ok_or_else(|| format!("edited, it has no {name}"))?;
            let ((was_at, was_width), (is_at, is_width)) =
                (was.member.unwrap_or((-1, -1)), is.member.unwrap_or((-1, -1)));
            let moved = slot.offset as i64 - slot.was.unwrap_or(0) as i64;
            let same_type =
                spelling(&was.ty.spelling) == spelling(&is.ty.spelling) && was.ty.align == is.ty.align;
            if is_at != was_at + moved * 8 || is_width != was_width || !same_type {
                return Err(format!("edited, its member {name} is not where the layout has it"));
            }
            left -= 1;
        }
    }
    if let Some(tail) = layout.tail() {
        let is_there = |node: &Node| {
            let at = node.member.map(|(bits, _)| bits / 8);
            node.name == tail.name && at.and_then(|at| u64::try_from(at).ok()) == Some(tail.now)
        };
        if !now.fields.iter().any(|field| is_there(&after.nodes[*field])) {
            return Err(format!("edited, its member {} is not where the layout has it", tail.name));
        }
        left -= 1;
    }
    if left != 0 {
        return Err("edited, it has members more".to_string());
    }
    match outside(before, record) == outside(after, now) {
        true => Ok(()),
        false => Err("edited, the source around it would mean something else".to_string()),
    }
}

/// A type without the lines at which types that have no name are defined.
fn spelling(text: &str) -> &str {
    text.split(" at ").next().unwrap_or(text)
}

/// All that is no part of a definition, without places.
fn outside(tree: &Tree, record: &Record) -> Vec<(CXCursorKind, String, String, i32)> {
    let inside = tree.inside(record.node);
    let nodes = tree.nodes.iter().enumerate().filter(|(at, node)| {
        !inside.contains(at)
            && !(CXCursor_PreprocessingDirective..=CXCursor_InclusionDirective).contains(&node.kind)
    });
    nodes
        .map(|(_, node)| {
            (
                node.kind,
                spelling(&node.name).to_string(),
                spelling(&node.ty.spelling).to_string(),
                node.operator,
            )
        })
        .collect()
}

/// The text with an additional first member that cannot be initialised, for C++: code that depends
/// on the position of members does not compile.
pub fn probe(tree: &Tree, record: &Record, text: &str, is_cxx: bool) -> Option<(String, PathBuf)> {
    if !is_cxx {
        return None;
    }
    let at = tree.nodes[record.fields[0]].extent.start;
    let probe = "struct memlode_probe_type; int memlode_probe_type::*memlode_probe; ";
    let text = format!("{}{probe}{}", text.get(..at)?, text.get(at..)?);
    Some((text, tree.files[record.spot.file].clone()))
}
