//! Values of members, where a program was built to record them: whether fewer bytes would do. They are those of one run.

use std::ops::ControlFlow;

use memlode_attribute::inside::{Inside, alternatives, inside};
use memlode_attribute::values::{Number, SeenValues};
use memlode_layout::{Edit, Role, StructureMember};
use memlode_replay::Replay;
use memlode_trace::Trace;
use memlode_trace::event::Batch;
use memlode_trace::format::flag;
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::{Site, SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::named::records_named;
use crate::structures::structure;

/// After this many chunks with accesses and without values, no more are searched.
const LOOKED_AT: usize = 4;

/// Fewer recorded values of a member mean nothing.
const LEAST_VALUES: u64 = 100;

/// Sizes that a member can have, the least first.
const SIZES: [u64; 3] = [1, 2, 4];

/// The values of the members of a trace's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedValues(FxHashMap<(StringId, String), SeenValues>);

impl RecordedValues {
    /// Looks at all values of a trace.
    pub fn of(trace: &Trace, workers: usize) -> RecordedValues {
        let names = trace.sites();
        let mut found: FxHashMap<u32, SeenValues> = FxHashMap::default();
        let (mut without, mut has_some) = (0, false);
        trace.replay(workers, |batch| {
            has_some |= !batch.values.is_empty();
            without += usize::from(!batch.accesses.is_empty());
            if !has_some && without >= LOOKED_AT {
                return ControlFlow::Break(());
            }
            look(batch, names, &mut found);
            ControlFlow::Continue(())
        });
        let mut members = RecordedValues::default();
        for (site, seen) in found {
            let site = &names.sites()[site as usize];
            for member in members_of_site(names, site) {
                members.0.entry(member).or_default().join(&seen);
            }
        }
        members
    }

    /// Returns the values of a member of a type.
    pub fn of_member(&self, names: &SiteTable, ty: &str, member: &str) -> Option<SeenValues> {
        let of_it = |(other, name): &(StringId, String)| names.string(*other) == ty && name == member;
        let mut all = self.0.iter().filter(|(key, _)| of_it(key)).map(|(_, seen)| *seen);
        let mut sum = all.next()?;
        all.for_each(|other| sum.join(&other));
        Some(sum)
    }

    /// Returns the one value that a member of a type had, and how often it was recorded. `None` if
    /// it had others, was seldom recorded, or not as a whole.
    pub fn constant(&self, names: &SiteTable, ty: &str, member: &str) -> Option<(Number, u64)> {
        let members = members_of(names, ty);
        let member = members.iter().find(|other| other.name == member && other.role == Role::Value)?;
        let seen = self.of_member(names, ty, &member.name)?;
        let is_whole = seen.bytes == member.bytes && seen.count >= LEAST_VALUES;
        seen.only().filter(|_| is_whole).map(|value| (value, seen.count))
    }

    /// Returns the members of a type that had one value in the whole run.
    pub fn constants(&self, names: &SiteTable, ty: &str) -> Vec<String> {
        let all = members_of(names, ty).into_iter().map(|member| member.name);
        all.filter(|member| self.constant(names, ty, member).is_some()).collect()
    }

    /// Returns an edit for each number of a type of which fewer bytes would do.
    pub fn narrower(&self, names: &SiteTable, ty: &str) -> Vec<Edit> {
        let members = members_of(names, ty);
        let edit = |member: &StructureMember| {
            let seen = self.of_member(names, ty, &member.name)?;
            // What is accessed in parts, or together with others, is not known as a whole.
            let to = SIZES.into_iter().find(|&to| seen.fits(to)).filter(|&to| to < member.bytes)?;
            (member.role == Role::Value && seen.bytes == member.bytes).then(|| Edit::Narrow {
                structure: ty.to_string(),
                member: member.name.clone(),
                to,
            })
        };
        members.iter().filter_map(edit).collect()
    }
}

fn members_of(names: &SiteTable, ty: &str) -> Vec<StructureMember> {
    let shape = records_named(names, ty).first().and_then(|&record| structure(names, record));
    shape.map_or(Vec::new(), |shape| shape.members)
}

fn look(batch: &Batch, names: &SiteTable, found: &mut FxHashMap<u32, SeenValues>) {
    for (access, bytes) in batch.values.iter() {
        let access = &batch.accesses[access];
        let site = names.site(access.site);
        if site.member.is_none() || site.ty.is_none() || !matches!(access.bytes, 1 | 2 | 4 | 8) {
            continue;
        }
        let seen = found.entry(access.site.0).or_default();
        // Of an update, what was there before, and what is there after.
        for value in bytes.chunks_exact(access.bytes as usize) {
            seen.add(value, site.flags & flag::FLOAT != 0);
        }
    }
}

/// The members that a site touches, or may: that of the type that it names, and those of records inside.
fn members_of_site(names: &SiteTable, site: &Site) -> Vec<(StringId, String)> {
    let (Some(ty), Some(paths)) = (site.ty, site.member) else { return Vec::new() };
    // Members of members have types of their own.
    let is_whole = |path: &str| !path.contains(['.', '[']);
    let is_record = |id: LayoutId| names.layouts().layout(id).is_record();
    let mut found = Vec::new();
    for mut path in alternatives(names.string(paths)) {
        found.extend(is_whole(path).then(|| (names.ty(ty).name, path.to_string())));
        let Some(mut outer) = names.layouts().of_type(ty) else { continue };
        while let Inside::Member(inner, rest) = inside(names, outer, path, &is_record) {
            let name = names.layouts().layout(inner).name.filter(|_| is_whole(rest));
            found.extend(name.map(|name| (name, rest.to_string())));
            (outer, path) = (inner, rest);
        }
    }
    found
}
