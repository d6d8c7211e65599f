//! A type inside another one: whose member an access of the outer one touches.
//!
//! Accesses are named by the outermost type: `indexmap::Bucket<u64, Order>.value.open`. What a user
//! can change is `Order`, whose `open` that is.

use memlode_trace::layouts::{Form, LayoutId, Layouts};
use memlode_trace::sites::{Site, SiteTable, StringId};

use crate::read::libraries::FetchedCrates;

/// The part of an inner type that a member of an outer one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside<'p> {
    /// A member of it, by its path there.
    Member(LayoutId, &'p str),
    /// The outer member may be one inner object whole, or have one or several in it.
    Whole,
    /// No part of one.
    Outside,
}

/// The members that an access may be to, or is to at once, where its site names several (`left|right`).
pub fn alternatives(path: &str) -> impl Iterator<Item = &str> {
    path.split('|')
}

/// Follows the path of a member of a type (`value.open`, `vals[].at`) up to the first type that is
/// looked for.
pub fn inside<'p>(
    names: &SiteTable,
    outer: LayoutId,
    path: &'p str,
    is_inner: &dyn Fn(LayoutId) -> bool,
) -> Inside<'p> {
    let layouts = names.layouts();
    let whole = |ty: LayoutId| match is_inner(ty) || holds(layouts, ty, is_inner) {
        true => Inside::Whole,
        false => Inside::Outside,
    };
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let Some(found) = member_named(names, outer, &path[..end]) else { return whole(outer) };
    let Some(ty) = found.map(|ty| element(layouts, ty)) else { return Inside::Outside };
    match path[end..].split_once('.') {
        Some((_, rest)) if is_inner(ty) => Inside::Member(ty, rest),
        Some((_, rest)) => inside(names, ty, rest, is_inner),
        None => whole(ty),
    }
}

/// The type of a member by its name, which may be in a part that has none; `Some(None)` if its type
/// is not known.
fn member_named(names: &SiteTable, outer: LayoutId, name: &str) -> Option<Option<LayoutId>> {
    let members = names.layouts().layout(outer).members();
    let direct = members.iter().find(|member| member.name.is_some_and(|id| names.string(id) == name));
    let nameless = members.iter().filter(|member| member.name.is_none()).filter_map(|member| member.ty);
    direct
        .map(|member| member.ty)
        .or_else(|| nameless.map(|ty| member_named(names, ty, name)).find_map(|ty| ty))
}

/// Returns whether a type has some of an inner one by value, at any depth.
pub fn holds(layouts: &Layouts, outer: LayoutId, is_inner: &dyn Fn(LayoutId) -> bool) -> bool {
    let members = layouts.layout(outer).members().iter().filter_map(|member| member.ty);
    members.map(|ty| element(layouts, ty)).any(|ty| is_inner(ty) || holds(layouts, ty, is_inner))
}

/// The type of an array's elements; of anything else the type itself.
fn element(layouts: &Layouts, mut ty: LayoutId) -> LayoutId {
    while let Form::Array { element: Some(element), .. } = &layouts.layout(ty).form {
        ty = *element;
    }
    ty
}

impl FetchedCrates {
    /// Returns whether a type is one that the user can change: no library's, and no tuple.
    pub fn is_own(&self, names: &SiteTable, ty: LayoutId) -> bool {
        let layout = names.layouts().layout(ty);
        layout.is_record() && layout.name.is_some_and(|name| !self.is_foreign(names.string(name)))
    }

    fn is_foreign(&self, name: &str) -> bool {
        self.has_type(name) || name.starts_with('(')
    }

    /// Finds the types of the user's own that a site may touch inside one of a library: their names,
    /// and the members there.
    pub fn own_inside<'n>(&self, names: &'n SiteTable, site: &Site) -> Vec<(StringId, &'n str)> {
        let layouts = names.layouts();
        let library = site.ty.filter(|ty| self.is_foreign(names.string(names.ty(*ty).name)));
        let (Some(outer), Some(path)) = (library.and_then(|ty| layouts.of_type(ty)), site.member) else {
            return Vec::new();
        };
        let is_own = |id: LayoutId| self.is_own(names, id);
        let own = |path: &'n str| match inside(names, outer, path, &is_own) {
            Inside::Member(own, path) => Some((layouts.layout(own).name?, path)),
            Inside::Whole | Inside::Outside => None,
        };
        alternatives(names.string(path)).filter_map(own).collect()
    }
}
