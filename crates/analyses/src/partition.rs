//! Which members of a type are touched while its lines are in the cache: one answer for each type.
//!
//! Some lines are followed from fetch to fetch ([`memlode_attribute::Residencies`]): of each it is
//! known what anybody touched meanwhile, and for which block it was fetched. Where objects of the
//! type lie in a block is known by the accesses that name a member. So it is seen in which part of
//! the stays of its lines each member was touched, and with which others.
//!
//! Counts alone must do where too few lines of the type were followed. A line of the type is
//! brought into the cache as often as its accesses miss there, by any thread. A member that is
//! touched fewer times than that can be touched in at most that many of these residencies. So
//! counts can prove that a member is *not* used while its lines are in the cache. They cannot prove
//! that it is used; in case of doubt it counts as used.
//!
//! Counts also bound what the mean stay uses: no more than all bytes that were touched, shared out
//! among the stays, and of each member no more than a line has of it. So loops that use one member
//! each, one loop after the other, are seen to use little of every line, although none of the
//! members is left alone. This figure is for arrays of the type: other lines also have other data.

use std::cmp::Reverse;
use std::ops::AddAssign;

use memlode_attribute::inside::alternatives;
use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::tables::Tables;
use memlode_attribute::{Cell, ClassId, Counts, LineFetch};
use memlode_simulate::touched_bits;
use memlode_trace::layouts::{LayoutId, Member};
use memlode_trace::sites::{SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::Density;

/// Stays of lines of a type from which on they say what is used of it: of a tenth, the standard error is 3% then.
const ENOUGH: u64 = 100;

/// A member that is touched in a smaller part of its lines' residencies than one in this many is
/// left alone.
const ONE_OF: u64 = 10;

/// Divides a type's members by all accesses to all its objects, and finds those that are used with
/// this one. `None` for types of libraries, which the user cannot change, for types of unknown
/// layout, and for objects that are often touched without naming a member, such as when they are
/// copied whole.
pub(crate) fn density(
    tables: &Tables<'_>,
    names: &SiteTable,
    fetched: &FetchedCrates,
    ty: StringId,
    member: Option<StringId>,
) -> Option<Density> {
    if fetched.has_type(names.string(ty)) {
        return None;
    }
    let costs = tables.costs()?;
    let uses = Uses::of(tables, names, ty, costs.line_bytes(0).into());
    let level = uses.level?;
    let stays = uses.all.misses(level);
    let least = stays.div_ceil(ONE_OF).max(1);
    let type_bytes = uses.type_bytes;
    if type_bytes == 0 || uses.nameless.accesses >= least {
        return None;
    }
    let followed = Followed::of(tables, names, ty, &uses);
    let of_followed = followed.as_ref().and_then(Followed::bytes_of_line);
    // Lines of the first level are followed; misses are of the level's.
    let line_bytes = u64::from(costs.line_bytes(if of_followed.is_some() { 0 } else { level }));
    let mut members: Vec<_> = uses.members.into_iter().collect();
    members.sort_by_key(|&(member, touched)| (Reverse(touched.accesses), member));
    let mut bytes_of_stays = uses.nameless.bytes;
    let mut left_alone: Vec<StringId> = Vec::new();
    for (member, touched) in &members {
        let (_, bits) = bits(names, uses.layout?, names.string(*member))?;
        // A flexible array member: objects are as large as they were allocated, and it cannot be moved.
        if bits == 0 {
            return None;
        }
        let share = followed.as_ref().and_then(|followed| followed.share(*member));
        let is_used = match share {
            Some(share) => share * ONE_OF as f64 >= 1.0,
            None => touched.accesses >= least,
        };
        left_alone.extend((!is_used).then_some(*member));
        // As many as lie in a line at once where elements follow each other.
        let bytes = bits.div_ceil(8);
        let in_line = line_bytes / type_bytes * bytes + bytes.min(line_bytes % type_bytes);
        bytes_of_stays += touched.bytes.min(in_line.saturating_mul(stays));
    }
    members.retain(|(member, _)| !left_alone.contains(member));
    let members: Vec<_> = members.into_iter().map(|(member, _)| member).collect();
    let line_used_bytes = match uses.elsewhere.misses(level) < least {
        true => of_followed.unwrap_or_else(|| bytes_of_stays.div_ceil(stays.max(1)).min(line_bytes)),
        false => line_bytes,
    };
    // What counts alone tell of any of it is a bound.
    let is_measured = |followed: &Followed| {
        let are_seen = members.iter().chain(&left_alone).all(|&member| followed.share(member).is_some());
        are_seen && (line_used_bytes == line_bytes || of_followed.is_some())
    };
    let followed = followed.filter(is_measured);
    let used_with = match followed.as_ref().zip(member) {
        Some((followed, member)) => followed.used_with(member, &members),
        None => members.clone(),
    };
    let bytes_of = |members: &[StringId]| {
        let at = |&member: &StringId| bits(names, uses.layout?, names.string(member));
        let mut places: Vec<(u64, u64)> = members.iter().filter_map(at).collect();
        places.sort_unstable();
        places.dedup();
        places.iter().map(|(_, bits)| bits.div_ceil(8)).sum::<u64>().min(type_bytes)
    };
    let density = Density {
        ty,
        type_bytes,
        used_bytes: bytes_of(&members),
        used_with_bytes: bytes_of(&used_with),
        members,
        used_with,
        line_bytes,
        line_used_bytes,
        level,
        stays: followed.map(|followed| followed.stays),
    };
    (!density.members.is_empty()).then_some(density)
}

/// Accesses, and the bytes of them all.
#[derive(Clone, Copy, Default)]
struct Touched {
    accesses: u64,
    bytes: u64,
}

impl AddAssign for Touched {
    fn add_assign(&mut self, other: Touched) {
        self.accesses += other.accesses;
        self.bytes += other.bytes;
    }
}

/// The accesses to all objects of a type.
#[derive(Default)]
struct Uses {
    type_bytes: u64,
    layout: Option<LayoutId>,
    /// Accesses to each member. Prefetches are left out: they bring a line, whatever of it is needed.
    members: FxHashMap<StringId, Touched>,
    /// Accesses without a member's name.
    nameless: Touched,
    all: Counts,
    /// The level whose misses of them cost most.
    level: Option<usize>,
    /// Accesses that are not to an array of the type.
    elsewhere: Counts,
}

impl Uses {
    fn of(tables: &Tables<'_>, names: &SiteTable, ty: StringId, line_bytes: u64) -> Uses {
        let of_type = |cell: &Cell| names.site(cell.site).ty.filter(|id| names.ty(*id).name == ty);
        let element = |cell: &Cell| {
            let element = tables.class(cell.class).element.map(|id| names.ty(id));
            element.filter(|element| element.name == ty)
        };
        let cells =
            || tables.cells().iter().filter(|cell| of_type(cell).is_some() || element(cell).is_some());
        let mut uses = Uses { level: tables.costliest_level(cells()), ..Uses::default() };
        for cell in cells() {
            let (site, class) = (names.site(cell.site), tables.class(cell.class));
            let (of_type, element) = (of_type(cell), element(cell));
            uses.all += &cell.counts;
            if element.is_none_or(|element| class.bytes < 2 * class.objects * element.bytes) {
                uses.elsewhere += &cell.counts;
            }
            if site.is_prefetch() {
                continue;
            }
            let accesses = cell.counts.accesses();
            // A range is an access for each of its lines.
            let bytes = if site.bytes > 0 { u64::from(site.bytes).min(line_bytes) } else { line_bytes };
            let touched = Touched { accesses, bytes: accesses * bytes };
            let Some((id, member)) = of_type.zip(site.member) else {
                uses.nameless += touched;
                continue;
            };
            uses.type_bytes = uses.type_bytes.max(names.ty(id).bytes);
            uses.layout = uses.layout.or_else(|| names.layouts().of_type(id));
            match uses.layout.and_then(|layout| candidates(names, layout, member)) {
                Some(all) => all.into_iter().for_each(|one| *uses.members.entry(one).or_default() += touched),
                None => *uses.members.entry(member).or_default() += touched,
            }
        }
        uses
    }
}

/// The members of a type that an access may mean, if several are possible (`dx|dy`).
fn candidates(names: &SiteTable, layout: LayoutId, path: StringId) -> Option<Vec<StringId>> {
    let members = names.layouts().layout(layout).members();
    let named = |path: &str| {
        let first = path.split(['.', '[']).next().unwrap_or(path);
        members.iter().filter_map(|member| member.name).find(|&name| names.string(name) == first)
    };
    let path = Some(names.string(path)).filter(|path| path.contains('|'))?;
    let mut all: Vec<StringId> = alternatives(path).map(named).collect::<Option<_>>()?;
    all.sort_unstable();
    all.dedup();
    (all.len() > 1).then_some(all)
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

/// The stays of lines that were fetched for blocks of a type and followed.
struct Followed {
    /// Number of them.
    stays: u64,
    /// Stays in which a member was touched, of lines that have some of it, and the number of those; by member.
    members: FxHashMap<StringId, (u64, u64)>,
    /// Bytes touched of lines of arrays, and the number of those.
    of_arrays: (u64, u64),
    /// The bits of members, for the first ones.
    bits: FxHashMap<StringId, u128>,
    /// The members that were touched in each stay of an array's line, and those that have some of it.
    together: Vec<(u128, u128)>,
}

impl Followed {
    /// Follows the lines of a type, in the level whose misses of its accesses cost most. `None` if there are too few, or if it is not
    /// known where objects lie in their blocks.
    fn of(tables: &Tables<'_>, names: &SiteTable, ty: StringId, uses: &Uses) -> Option<Followed> {
        let residencies = tables.residencies().at(uses.level?);
        let (unit, line_bytes) = (tables.residencies().bytes_of_bit(), tables.costs()?.line_bytes(0));
        let type_bytes = uses.type_bytes;
        let layout = uses.layout?;
        let member_at = |path: StringId| bits(names, layout, names.string(path));
        let mut places = Places::default();
        for fetch in residencies.iter().filter_map(|residency| residency.fetch) {
            places.see(&fetch, names, ty, type_bytes, member_at);
        }
        let ends = |(first, bits): (u64, u64)| (first / 8, (first + bits).div_ceil(8));
        let members: Vec<_> =
            uses.members.keys().filter_map(|&member| Some((member, ends(member_at(member)?)))).collect();
        let numbered = members.iter().take(u128::BITS as usize).enumerate();
        let mut followed = Followed {
            stays: 0,
            members: FxHashMap::default(),
            of_arrays: (0, 0),
            bits: numbered.map(|(number, &(member, _))| (member, 1 << number)).collect(),
            together: Vec::new(),
        };
        for residency in &residencies {
            let Some(fetch) = residency.fetch else { continue };
            let Some(first) = places.first(fetch.class).map(|first| fetch.base.saturating_add(first)) else {
                continue;
            };
            // Objects that end in the line or behind it, and begin in front of its end.
            let (line, line_end) = (residency.line, residency.line.saturating_add(line_bytes.into()));
            let objects = fetch.base.saturating_add(fetch.bytes).saturating_sub(first) / type_bytes;
            let from = line.saturating_sub(first) / type_bytes;
            let to = line_end.saturating_sub(first).div_ceil(type_bytes).min(objects);
            if from >= to {
                continue;
            }
            followed.stays += 1;
            if objects > 1 {
                followed.of_arrays.0 += u64::from(residency.touched.count_ones()) * unit;
                followed.of_arrays.1 += 1;
            }
            let (mut touched, mut there) = (0, 0);
            for object in (from..to).map(|number| first + number * type_bytes) {
                for &(member, (begin, end)) in &members {
                    let bits = touched_bits(line, line_bytes, object + begin, end - begin);
                    let seen = followed.members.entry(member).or_default();
                    let (is_touched, is_there) = (residency.touched & bits != 0, bits != 0);
                    seen.0 += u64::from(is_touched);
                    seen.1 += u64::from(is_there);
                    let bit = followed.bits.get(&member).copied().unwrap_or(0);
                    touched |= if is_touched { bit } else { 0 };
                    there |= if is_there { bit } else { 0 };
                }
            }
            if objects > 1 {
                followed.together.push((touched, there));
            }
        }
        (followed.stays >= ENOUGH).then_some(followed)
    }

    /// The part of the stays in which a member was touched, of lines that have some of it; none if there were too few.
    fn share(&self, member: StringId) -> Option<f64> {
        let &(touched, of) = self.members.get(&member)?;
        (of >= ENOUGH).then(|| touched as f64 / of as f64)
    }

    /// Returns those of some members that were touched in half of the stays or more in which this one was, itself among them, and those
    /// of which too few stays tell.
    fn used_with(&self, member: StringId, members: &[StringId]) -> Vec<StringId> {
        let Some(own) = self.bits.get(&member) else { return members.to_vec() };
        let is_used = |other: &&StringId| {
            let Some(other) = self.bits.get(*other) else { return true };
            let stays =
                || self.together.iter().filter(|(touched, there)| touched & own != 0 && there & other != 0);
            let (with, all) = (stays().filter(|(touched, _)| touched & other != 0).count(), stays().count());
            (all as u64) < ENOUGH || 2 * with >= all
        };
        members.iter().filter(is_used).copied().collect()
    }

    /// The bytes touched of a line of an array in the mean stay.
    fn bytes_of_line(&self) -> Option<u64> {
        let (bytes, lines) = self.of_arrays;
        (lines >= ENOUGH).then(|| bytes.div_ceil(lines))
    }
}

/// The places of objects of a type in blocks, by class: the offset of the first one; the others
/// follow it.
#[derive(Default)]
struct Places(FxHashMap<ClassId, Option<u64>>);

impl Places {
    /// Looks at the fetch of a line by a site that names a member of the type; or anything else, and then the class has other objects.
    fn see(
        &mut self,
        fetch: &LineFetch,
        names: &SiteTable,
        ty: StringId,
        type_bytes: u64,
        member_at: impl Fn(StringId) -> Option<(u64, u64)>,
    ) {
        let site = names.site(fetch.site);
        let (Some(site_ty), Some(member)) = (site.ty, site.member) else { return };
        let is_of_type = names.ty(site_ty).name == ty;
        // The element of an array may be any.
        if is_of_type && names.string(member).contains('[') {
            return;
        }
        let first = member_at(member).filter(|_| is_of_type).and_then(|(bit, _)| {
            let object = fetch.offset.checked_sub(bit / 8)?;
            Some(object % type_bytes)
        });
        let known = self.0.entry(fetch.class).or_insert(first);
        if *known != first {
            *known = None;
        }
    }

    /// Bytes from the first one of a block of a class to its first object.
    fn first(&self, class: ClassId) -> Option<u64> {
        self.0.get(&class).copied().flatten()
    }
}
