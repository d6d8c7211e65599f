//! Roll-ups of a profile: the same counts by line, field, type, object, function or thread.

use std::hash::Hash;

use memlode_trace::event::ThreadId;
use memlode_trace::sites::{FunctionId, Site, StringId, TypeId};
use rustc_hash::FxHashMap;

use crate::classes::ClassId;
use crate::counts::Counts;
use crate::profile::{Cell, Profile};

/// What an access touches, as far as it has a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct What {
    /// Type that holds the member, or of the object.
    pub ty: Option<StringId>,
    /// Member path in it.
    pub member: Option<StringId>,
    /// Variable through which it is reached; `None` where the member says enough and rows of several variables are one.
    pub variable: Option<StringId>,
}

/// A source position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Directory and file name.
    pub file: Option<(StringId, StringId)>,
    /// Line, 0 when unknown.
    pub line: u32,
    /// The function whose text holds the line.
    pub function: StringId,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<K> {
    /// What the row is about.
    pub key: K,
    /// The counts.
    pub counts: Counts,
}

/// How a table's rows are ordered: by cycles beyond the first level, then by misses of each level from the last
/// to the first, then by accesses.
fn order<K: Ord>(rows: &mut [Row<K>], latencies: &[u32]) {
    rows.sort_by(|a, b| {
        let weight = |row: &Row<K>| (row.counts.stall_cycles(latencies), row.counts.accesses());
        weight(b).cmp(&weight(a)).then_with(|| a.key.cmp(&b.key))
    });
}

/// The names that tables need of a trace.
pub trait Names {
    /// The sites, by id.
    fn sites(&self) -> &[Site];
    /// Where a site stands.
    fn place(&self, site: &Site) -> Place;
    /// Name of a function, and so an id that is equal for copies of it in several modules.
    fn function_name(&self, function: FunctionId) -> StringId;
    /// Name of a type, likewise.
    fn type_name(&self, ty: TypeId) -> StringId;
}

/// The tables of a profile.
pub struct Tables<'p, N> {
    profile: &'p Profile,
    names: &'p N,
    latencies: &'p [u32],
}

impl<'p, N: Names> Tables<'p, N> {
    /// `latencies` orders the rows: cycles of each level, memory last.
    pub fn new(profile: &'p Profile, names: &'p N, latencies: &'p [u32]) -> Tables<'p, N> {
        Tables { profile, names, latencies }
    }

    /// What is touched, at which line.
    pub fn lines(&self) -> Vec<Row<(What, Place)>> {
        self.roll(|cell| {
            let site = self.site(cell);
            Some((self.what(site, true), self.names.place(site)))
        })
    }

    /// Members of types, wherever they are touched.
    pub fn fields(&self) -> Vec<Row<What>> {
        self.roll(|cell| {
            let site = self.site(cell);
            site.member.is_some().then(|| self.what(site, false))
        })
    }

    /// Types.
    pub fn types(&self) -> Vec<Row<StringId>> {
        self.roll(|cell| self.site(cell).ty.map(|ty| self.names.type_name(ty)))
    }

    /// Object classes.
    pub fn objects(&self) -> Vec<Row<ClassId>> {
        self.roll(|cell| Some(cell.class))
    }

    /// Functions whose text holds the access: an inlined callee counts for itself.
    pub fn functions(&self) -> Vec<Row<StringId>> {
        self.roll(|cell| Some(self.names.place(self.site(cell)).function))
    }

    /// Threads.
    pub fn threads(&self) -> Vec<Row<ThreadId>> {
        self.roll(|cell| Some(cell.thread))
    }

    /// Any other grouping: cells for which `key` has an answer, summed by it, the costliest first.
    pub fn roll<K: Hash + Eq + Ord>(&self, key: impl Fn(&Cell) -> Option<K>) -> Vec<Row<K>> {
        let mut sums: FxHashMap<K, Counts> = FxHashMap::default();
        for cell in &self.profile.cells {
            if let Some(key) = key(cell) {
                *sums.entry(key).or_default() += &cell.counts;
            }
        }
        let mut rows: Vec<Row<K>> = sums.into_iter().map(|(key, counts)| Row { key, counts }).collect();
        order(&mut rows, self.latencies);
        rows
    }

    /// Everything.
    pub fn total(&self) -> Counts {
        let mut sum = Counts::default();
        for cell in &self.profile.cells {
            sum += &cell.counts;
        }
        sum
    }

    /// What a site touches. Where it is a member, the variable is left out unless asked for.
    pub fn what(&self, site: &Site, with_variable: bool) -> What {
        let ty = site.ty.map(|ty| self.names.type_name(ty));
        let variable = site.variable.filter(|_| with_variable || site.member.is_none());
        What { ty, member: site.member, variable }
    }

    fn site(&self, cell: &Cell) -> &Site {
        &self.names.sites()[cell.site.0 as usize]
    }
}
