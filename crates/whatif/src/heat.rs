//! The use of the members of a record.

use memlode_attribute::inside::alternatives;
use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::{Class, Profile};
use memlode_layout::Structure;
use memlode_trace::layouts::{LayoutId, Layouts};
use memlode_trace::sites::{FunctionId, Site, SiteTable, StringId, TypeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::plan::record_of;
use crate::structures::{elements, structure};

/// The heat of a record: how much its members are used.
pub struct Heat {
    /// The record.
    pub structure: Structure,
    /// Accesses, by member of it.
    pub accesses: Vec<u64>,
    /// Misses of the first level, by member.
    pub misses: Vec<u64>,
    /// Members among which accesses do not tell which they are to: those that hold what a pointer
    /// leads to.
    pub unclear: Vec<Vec<usize>>,
    /// Accesses by function, of each member.
    by_function: FxHashMap<FunctionId, Vec<u64>>,
}

/// The names of records, as a profile's classes and sites have them.
pub struct RecordNames<'n> {
    /// The record that the objects of each class are, or are arrays of.
    pub of_classes: Vec<Option<StringId>>,
    /// Types of the user's own, and their members, which sites touch inside types of libraries.
    inside: FxHashMap<(TypeId, StringId), Vec<(StringId, &'n str)>>,
}

impl<'n> RecordNames<'n> {
    /// Finds them for the sites of a profile.
    pub fn of(names: &'n SiteTable, profile: &Profile) -> RecordNames<'n> {
        let layouts = names.layouts();
        let name = |class: &Class| layouts.layout(record_of(names, class)?.0).name;
        let fetched = FetchedCrates::of(names);
        let mut inside = FxHashMap::default();
        let mut seen = FxHashSet::default();
        for cell in &profile.cells {
            let site = names.site(cell.site);
            let Some(key) = site.ty.zip(site.member).filter(|&key| seen.insert(key)) else { continue };
            let own = fetched.own_inside(names, site);
            inside.extend((!own.is_empty()).then_some((key, own)));
        }
        RecordNames { of_classes: profile.classes.iter().map(name).collect(), inside }
    }

    /// The record of the user's own that a site touches, and the path of the member, if it has one.
    /// Several, if it may be one of these.
    pub fn touched(&self, names: &'n SiteTable, site: &Site) -> Vec<(StringId, Option<&'n str>)> {
        let Some(ty) = site.ty else { return Vec::new() };
        let name = names.ty(ty).name;
        let Some(member) = site.member else { return vec![(name, None)] };
        match self.inside.get(&(ty, member)) {
            Some(own) => own.iter().map(|&(ty, path)| (ty, Some(path))).collect(),
            None => alternatives(names.string(member)).map(|path| (name, Some(path))).collect(),
        }
    }
}

/// Counts the uses of a record's members, by the names of sites. A site that knows only the type of
/// its data, in a record of a class with one of these names, counts for all members that are, or
/// contain, data of that type: it is unknown which of them it means. One that names several
/// (`left|right`) counts for these in equal parts.
pub fn heat(
    names: &SiteTable,
    profile: &Profile,
    (record, records): (LayoutId, &RecordNames<'_>),
) -> Option<Heat> {
    let structure = structure(names, record)?;
    let layouts = names.layouts();
    let name = layouts.layout(record).name?;
    let count = structure.members.len();
    let (accesses, misses) = (vec![0; count], vec![0; count]);
    let (unclear, by_function) = (Vec::new(), FxHashMap::default());
    let mut heat = Heat { accesses, misses, unclear, by_function, structure };
    let mut holders: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    for cell in &profile.cells {
        let site = names.site(cell.site);
        let touched = records.touched(names, site);
        let Some(&(ty, _)) = touched.first() else { continue };
        let mut named: Vec<usize> = Vec::new();
        let members: &[usize] = if touched.iter().any(|&(ty, _)| ty == name) {
            let paths = touched.iter().filter(|&&(ty, _)| ty == name).filter_map(|&(_, path)| path);
            let members = &heat.structure.members;
            let at = |path: &str| members.iter().position(|member| member.name == first_component(path));
            named.extend(paths.filter_map(at));
            named.sort_unstable();
            named.dedup();
            &named
        } else if records.of_classes[cell.class.0 as usize] == Some(name) {
            holders.entry(ty).or_insert_with(|| members_with(names, record, ty))
        } else {
            continue;
        };
        let by_function = heat.by_function.entry(site.function).or_insert_with(|| vec![0; count]);
        for &at in members {
            let accesses = cell.counts.accesses() / members.len() as u64;
            heat.accesses[at] += accesses;
            heat.misses[at] += cell.counts.misses(0) / members.len() as u64;
            by_function[at] += accesses;
        }
    }
    let mut unclear: Vec<Vec<usize>> = holders.into_values().filter(|members| members.len() > 1).collect();
    unclear.sort();
    heat.unclear = unclear;
    Some(heat)
}

/// Finds the members of a record that are of a type by this name, or hold a record that is.
pub fn members_with(names: &SiteTable, record: LayoutId, name: StringId) -> Vec<usize> {
    let layouts = names.layouts();
    let members = layouts.layout(record).members().iter().enumerate();
    let holds = |ty: Option<LayoutId>| ty.is_some_and(|ty| is_or_holds(layouts, ty, name));
    members.filter(|(_, member)| holds(member.ty)).map(|(at, _)| at).collect()
}

/// Returns whether a type, or the element of an array type, has this name, or contains a record
/// that has it.
fn is_or_holds(layouts: &Layouts, outer: LayoutId, name: StringId) -> bool {
    let outer = layouts.layout(elements(layouts, outer).0);
    let mut members = outer.members().iter().filter_map(|member| member.ty);
    outer.name == Some(name) || members.any(|ty| is_or_holds(layouts, ty, name))
}

/// `grid` of `grid[].z`.
pub fn first_component(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

impl Heat {
    /// Members with a name, the most used first.
    pub fn hottest_first(&self) -> Vec<usize> {
        let members = &self.structure.members;
        // What takes no room, such as an array of unknown length at the end, has no other place.
        let mut order: Vec<usize> = (0..self.accesses.len())
            .filter(|&at| !members[at].name.is_empty() && members[at].bytes > 0)
            .collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(self.accesses[at]), at));
        order
    }

    /// The names of some members.
    pub fn names(&self, members: &[usize]) -> Vec<String> {
        members.iter().map(|&at| self.structure.members[at].name.clone()).collect()
    }

    /// For each function that uses the record much, the members that it uses: at least a tenth as often as the one it uses most.
    pub fn sets(&self) -> Vec<Vec<usize>> {
        let mut functions: Vec<(&FunctionId, &Vec<u64>)> = self.by_function.iter().collect();
        functions.sort_by_key(|(function, uses)| (std::cmp::Reverse(uses.iter().sum::<u64>()), function.0));
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for (_, uses) in functions.into_iter().take(4) {
            let most = uses.iter().copied().max().unwrap_or(0);
            let set: Vec<usize> =
                (0..uses.len()).filter(|&at| uses[at] > 0 && uses[at] * 10 >= most).collect();
            if !set.is_empty() && !sets.contains(&set) {
                sets.push(set);
            }
        }
        sets
    }
}
