//! Which members of a type are touched while its lines are in the cache: one answer for each type.
//!
//! A line of the type is brought into the cache as often as its accesses miss there, whoever makes
//! them. A member that is touched fewer times than that can be touched in so many of these stays at
//! most. So counts alone carry the statement that a member is *not* used while its lines are in the
//! cache; that it is used they cannot prove, and a member of which that is open counts as used. What was
//! used of each line is known where every stay is followed, which `memlode sim` does.

use std::cmp::Reverse;

use memlode_attribute::Counts;
use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::tables::Tables;
use memlode_trace::layouts::{LayoutId, Member};
use memlode_trace::sites::{SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::Density;

/// A member that is touched in a smaller part of the stays of its lines than this one in so many is left alone.
const ONE_OF: u64 = 10;

/// Divides a type's members by all accesses to all its objects. Nothing is said of types of libraries, which nobody can
/// change, of one whose layout is not known, and of objects that are often touched without naming a member, such as when
/// they are copied whole.
pub(crate) fn density(
    tables: &Tables<'_>,
    names: &SiteTable,
    fetched: &FetchedCrates,
    ty: StringId,
) -> Option<Density> {
    if fetched.has_type(names.string(ty)) {
        return None;
    }
    let mut members: FxHashMap<StringId, u64> = FxHashMap::default();
    let (mut type_bytes, mut layout) = (0, None);
    let (mut all, mut nameless) = (Counts::default(), 0);
    for cell in tables.cells() {
        let site = names.site(cell.site);
        let of_type = site.ty.filter(|id| names.ty(*id).name == ty);
        let in_objects = || tables.class(cell.class).element.is_some_and(|id| names.ty(id).name == ty);
        if of_type.is_none() && !in_objects() {
            continue;
        }
        all += &cell.counts;
        // It brings a line, whatever of it is needed.
        if site.is_prefetch() {
            continue;
        }
        match of_type.zip(site.member) {
            Some((id, member)) => {
                type_bytes = type_bytes.max(names.ty(id).bytes);
                layout = layout.or_else(|| names.layouts().of_type(id));
                *members.entry(member).or_default() += cell.counts.accesses();
            }
            None => nameless += cell.counts.accesses(),
        }
    }
    let least = tables.costliest_misses(&all).div_ceil(ONE_OF).max(1);
    if nameless >= least {
        return None;
    }
    let mut members: Vec<_> = members.into_iter().filter(|(_, touched)| *touched >= least).collect();
    members.sort_by_key(|&(member, touched)| (Reverse(touched), member));
    let mut used: Vec<(u64, u64)> = Vec::new();
    for (member, _) in &members {
        used.push(bits(names, layout?, names.string(*member))?);
    }
    used.sort_unstable();
    used.dedup();
    let used_bytes = used.iter().map(|(_, bits)| bits.div_ceil(8)).sum::<u64>().min(type_bytes);
    let members: Vec<_> = members.into_iter().map(|(member, _)| member).collect();
    (type_bytes > 0 && !members.is_empty()).then_some(Density { ty, type_bytes, used_bytes, members })
}

/// Returns where a member lies, by its path (`at.x`, `grid[].z`): its first bit and how many it has. Of an array all of it,
/// whichever elements are touched: it stays whole. `None` if it is not in the layout.
fn bits(names: &SiteTable, layout: LayoutId, path: &str) -> Option<(u64, u64)> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let named = |member: &&Member| member.name.is_some_and(|name| names.string(name) == &path[..end]);
    let member = names.layouts().layout(layout).members().iter().find(named)?;
    let rest = path[end..].strip_prefix('.');
    let inner = rest.zip(member.ty).and_then(|(rest, ty)| bits(names, ty, rest));
    Some(inner.map_or((member.first_bit, member.bits), |(first, bits)| (member.first_bit + first, bits)))
}
