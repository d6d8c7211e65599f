//! Which members of a type are touched while its lines are in the cache: one answer for each type.
//!
//! A line of the type is brought into the cache as often as its accesses miss there, whoever makes
//! them. A member that is touched fewer times than that can be touched in so many of these stays at
//! most. So counts alone carry the statement that a member is *not* used while its lines are in the
//! cache; that it is used they cannot prove, and a member of which that is open counts as used. What was
//! used of each line is known where every stay is followed, which `memlode sim` does.
//!
//! Counts also bound what the mean stay uses: no more than all bytes that were touched, shared out among the stays, and of
//! each member no more than a line has of it. So loops that use one member each, one loop after the other, are seen to
//! use little of every line, although none of the members is left alone. That is told of arrays of the type: other lines
//! have data of others.

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
    let line_bytes = u64::from(tables.costs()?.line_bytes());
    let uses = Uses::of(tables, names, ty, line_bytes);
    let stays = tables.costliest_misses(&uses.all);
    let least = stays.div_ceil(ONE_OF).max(1);
    let type_bytes = uses.type_bytes;
    if type_bytes == 0 || uses.nameless.accesses >= least {
        return None;
    }
    let mut members: Vec<_> = uses.members.into_iter().collect();
    members.sort_by_key(|&(member, touched)| (Reverse(touched.accesses), member));
    let mut used: Vec<(u64, u64)> = Vec::new();
    let mut bytes_of_stays = uses.nameless.bytes;
    for (member, touched) in &members {
        let (first, bits) = bits(names, uses.layout?, names.string(*member))?;
        if touched.accesses >= least {
            used.push((first, bits));
        }
        // As many as lie in a line at once where elements follow each other.
        let bytes = bits.div_ceil(8);
        let in_line = line_bytes / type_bytes * bytes + bytes.min(line_bytes % type_bytes);
        bytes_of_stays += touched.bytes.min(in_line.saturating_mul(stays));
    }
    members.retain(|(_, touched)| touched.accesses >= least);
    used.sort_unstable();
    used.dedup();
    let used_bytes = used.iter().map(|(_, bits)| bits.div_ceil(8)).sum::<u64>().min(type_bytes);
    let members: Vec<_> = members.into_iter().map(|(member, _)| member).collect();
    let line_used_bytes = match tables.costliest_misses(&uses.elsewhere) < least {
        true => bytes_of_stays.div_ceil(stays.max(1)).min(line_bytes),
        false => line_bytes,
    };
    let density = Density { ty, type_bytes, used_bytes, members, line_bytes, line_used_bytes };
    (!density.members.is_empty()).then_some(density)
}

/// Accesses, and the bytes of them all.
#[derive(Clone, Copy, Default)]
struct Touched {
    accesses: u64,
    bytes: u64,
}

/// The accesses to all objects of a type.
#[derive(Default)]
struct Uses {
    type_bytes: u64,
    layout: Option<LayoutId>,
    /// Accesses to each member. Prefetches are left out: they bring a line, whatever of it is needed.
    members: FxHashMap<StringId, Touched>,
    /// Those that name no member.
    nameless: Touched,
    all: Counts,
    /// Those that are not to an array of the type.
    elsewhere: Counts,
}

impl Uses {
    fn of(tables: &Tables<'_>, names: &SiteTable, ty: StringId, line_bytes: u64) -> Uses {
        let mut uses = Uses::default();
        for cell in tables.cells() {
            let (site, class) = (names.site(cell.site), tables.class(cell.class));
            let of_type = site.ty.filter(|id| names.ty(*id).name == ty);
            let element = class.element.map(|id| names.ty(id)).filter(|element| element.name == ty);
            if of_type.is_none() && element.is_none() {
                continue;
            }
            uses.all += &cell.counts;
            if element.is_none_or(|element| class.bytes < 2 * class.objects * element.bytes) {
                uses.elsewhere += &cell.counts;
            }
            if site.is_prefetch() {
                continue;
            }
            let touched = match of_type.zip(site.member) {
                Some((id, member)) => {
                    uses.type_bytes = uses.type_bytes.max(names.ty(id).bytes);
                    uses.layout = uses.layout.or_else(|| names.layouts().of_type(id));
                    uses.members.entry(member).or_default()
                }
                None => &mut uses.nameless,
            };
            let accesses = cell.counts.accesses();
            // A range is an access for each of its lines.
            let bytes = if site.bytes > 0 { u64::from(site.bytes).min(line_bytes) } else { line_bytes };
            touched.accesses += accesses;
            touched.bytes += accesses * bytes;
        }
        uses
    }
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
