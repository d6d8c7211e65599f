//! Roll-ups of a profile: the same counts by line, field, type, object, function or thread.

use std::hash::Hash;
use std::sync::OnceLock;

use memlode_simulate::MAX_LEVELS;
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{Site, SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::counts::Counts;
use crate::objects::classes::{Class, ClassId};
use crate::profile::{Cell, Profile};
use crate::read::cost::{CostModel, Wait, fresh_touches};
use crate::read::place::{Place, What, place, what};
use crate::read::standard_errors::{Sampled, Shares, StandardErrors};
use crate::residencies::Residencies;
use crate::sampled::sample::covered;

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<K> {
    /// The subject of the row.
    pub key: K,
    /// The counts.
    pub counts: Counts,
    /// Their cost; zero without a cost model ([`Tables::costing`]).
    pub wait: Wait,
    /// Their errors, if they are a sample's ([`Tables::of_sample`]).
    pub errors: Option<StandardErrors>,
}

/// Returns a table's rows in their order: by their cost, then by cycles beyond the first level,
/// then by accesses.
fn ordered<K: Ord>(rows: Vec<Row<K>>, latencies: &[u32]) -> Vec<Row<K>> {
    let weight =
        |row: &Row<K>| (row.wait.cycles(), row.counts.stall_cycles(latencies), row.counts.accesses());
    // Weights are long to work out, and rows to move.
    let mut places: Vec<_> = rows.iter().map(weight).zip(0..).collect();
    places.sort_by(|&((a, a_counts, a_accesses), at), &((b, b_counts, b_accesses), other)| {
        let weights = b.total_cmp(&a).then_with(|| (b_counts, b_accesses).cmp(&(a_counts, a_accesses)));
        weights.then_with(|| rows[at].key.cmp(&rows[other].key))
    });
    let mut rows: Vec<Option<Row<K>>> = rows.into_iter().map(Some).collect();
    places.into_iter().filter_map(|(_, at)| rows[at].take()).collect()
}

/// The tables of a profile.
pub struct Tables<'a> {
    profile: &'a Profile,
    names: &'a SiteTable,
    latencies: &'a [u32],
    costs: Option<&'a CostModel>,
    sample: Option<Sampled<'a>>,
    /// Indexed by site: what it touches, and where. Long names take time to compare, and each is
    /// needed often.
    keys: Box<[OnceLock<(What, Place)>]>,
}

impl<'a> Tables<'a> {
    /// `latencies` orders the rows: cycles of each level, innermost first, memory last.
    pub fn new(profile: &'a Profile, names: &'a SiteTable, latencies: &'a [u32]) -> Tables<'a> {
        let keys = names.sites().iter().map(|_| OnceLock::new()).collect();
        Tables { profile, names, latencies, costs: None, sample: None, keys }
    }

    /// The tables of a run with their costs, and with their errors where they are a random
    /// sample's.
    pub fn of_run(
        trace: &'a Trace,
        profile: &'a Profile,
        latencies: &'a [u32],
        costs: &'a CostModel,
    ) -> Tables<'a> {
        let tables = Tables::new(profile, trace.sites(), latencies).costing(costs);
        // What was switched by hand is no random sample: its errors are unknown.
        let is_random = profile.gaps.is_some() && trace.manifest().burst().is_some();
        match if is_random { covered(trace) } else { None } {
            Some(covered) => tables.of_sample(covered.accesses.value),
            None => tables,
        }
    }

    /// Rows have costs, and are ordered by them. To be called before [`Tables::of_sample`].
    pub fn costing(self, costs: &'a CostModel) -> Tables<'a> {
        Tables { costs: Some(costs), ..self }
    }

    /// Returns the cost model, if there is one.
    pub fn costs(&self) -> Option<&'a CostModel> {
        self.costs
    }

    /// The runs of the trace are a sample that covers this part of the program's accesses. Rows
    /// have standard errors, if there are at least two runs.
    pub fn of_sample(self, covered: f64) -> Tables<'a> {
        let gaps = self.profile.gaps.as_ref();
        let sample = gaps.and_then(|gaps| Sampled::new(&gaps.cells, self.latencies, self.costs, covered));
        Tables { sample, ..self }
    }

    /// The finest counts.
    pub fn cells(&self) -> &'a [Cell] {
        &self.profile.cells
    }

    /// The residencies of some lines in the caches.
    pub fn residencies(&self) -> &'a Residencies {
        &self.profile.residencies
    }

    /// Returns the description of a class of objects.
    ///
    /// # Panics
    /// If the profile has no such class.
    pub fn class(&self, class: ClassId) -> &'a Class {
        &self.profile.classes[class.0 as usize]
    }

    /// Modelled cycles beyond the first level ([`Counts::stall_cycles`]).
    pub fn stall_cycles(&self, counts: &Counts) -> u64 {
        counts.stall_cycles(self.latencies)
    }

    /// Returns the level whose misses in some cells cost most, 0 being the innermost; `None` for a
    /// machine without levels. First touches of fresh memory cost almost nothing, and do not count.
    pub fn costliest_level<'c>(&self, cells: impl Iterator<Item = &'c Cell>) -> Option<usize> {
        let levels = self.latencies.len().saturating_sub(1).min(MAX_LEVELS);
        let (mut counts, mut fresh) = (Counts::default(), 0);
        for cell in cells {
            counts += &cell.counts;
            fresh += fresh_touches(self.profile, cell);
        }
        let first = self.latencies.first().copied().unwrap_or(0);
        let cost = |level: &usize| {
            let served = counts.misses(*level) - counts.misses(*level + 1);
            let served = served.saturating_sub(if *level + 1 == levels { fresh } else { 0 });
            let latency = self.latencies.get(*level + 1).copied().unwrap_or(first);
            served * u64::from(latency.saturating_sub(first))
        };
        // Of equal ones, the outermost: it is missed least.
        (0..levels).max_by_key(cost)
    }

    /// Rows by object and source line.
    pub fn lines(&self) -> Vec<Row<(What, Place)>> {
        self.roll(|cell| Some(self.key_of(cell)))
    }

    /// Rows by member of a type, or by variable or array without members, over all lines.
    pub fn data(&self) -> Vec<Row<What>> {
        self.roll(|cell| Some(self.data_of(cell)))
    }

    /// Rows by member of a type, over all lines.
    pub fn fields(&self) -> Vec<Row<What>> {
        self.roll(|cell| self.field_of(cell))
    }

    /// Types.
    pub fn types(&self) -> Vec<Row<StringId>> {
        self.roll(|cell| self.type_of(cell))
    }

    /// Object classes.
    pub fn objects(&self) -> Vec<Row<ClassId>> {
        self.roll(|cell| Some(cell.class))
    }

    /// Functions whose text holds the access: an inlined callee counts for itself.
    pub fn functions(&self) -> Vec<Row<StringId>> {
        self.roll(|cell| Some(self.key_of(cell).1.line.function))
    }

    /// Threads.
    pub fn threads(&self) -> Vec<Row<ThreadId>> {
        self.roll(|cell| Some(cell.thread))
    }

    /// Any other grouping: cells for which `key` has an answer, summed by it, the costliest first.
    pub fn roll<K: Hash + Eq + Ord>(&self, key: impl Fn(&Cell) -> Option<K>) -> Vec<Row<K>> {
        let mut sums: FxHashMap<K, (Counts, Wait)> = FxHashMap::default();
        for (number, cell) in self.profile.cells.iter().enumerate() {
            if let Some(key) = key(cell) {
                let (counts, wait) = sums.entry(key).or_default();
                *counts += &cell.counts;
                self.costs.iter().for_each(|costs| *wait += costs.of(number));
            }
        }
        let row = |(key, (counts, wait))| Row { key, counts, wait, errors: None };
        let mut rows: Vec<Row<K>> = ordered(sums.into_iter().map(row).collect(), self.latencies);
        if let Some(sample) = &self.sample {
            let numbers: FxHashMap<&K, usize> =
                rows.iter().enumerate().map(|(i, row)| (&row.key, i)).collect();
            let row_of = self.by_tag(|cell| key(cell).and_then(|key| numbers.get(&key).copied()));
            let errors = sample.errors(rows.len(), &row_of);
            rows.iter_mut().zip(errors).for_each(|(row, errors)| row.errors = Some(errors));
        }
        rows
    }

    /// The parts of all waiting that `groups` groups of cells have, with their errors if they are a
    /// sample's.
    pub fn shares(&self, groups: usize, group: impl Fn(&Cell) -> Option<usize>) -> Option<Shares> {
        self.sample.as_ref().map(|sample| sample.shares(groups, &self.by_tag(group)))
    }

    /// A number of each cell, by its tag.
    fn by_tag(&self, number: impl Fn(&Cell) -> Option<usize>) -> Vec<Option<usize>> {
        let mut numbers = vec![None; self.profile.cells.len()];
        for cell in &self.profile.cells {
            if let Some(place) = numbers.get_mut(cell.tag.index()) {
                *place = number(cell);
            }
        }
        numbers
    }

    /// Everything.
    pub fn total(&self) -> Counts {
        let mut sum = Counts::default();
        for cell in &self.profile.cells {
            sum += &cell.counts;
        }
        sum
    }

    /// The same as a row.
    pub fn whole(&self) -> Row<()> {
        let whole = self.roll(|_| Some(())).pop();
        whole.unwrap_or(Row { key: (), counts: Counts::default(), wait: Wait::default(), errors: None })
    }

    fn what(&self, site: &Site, with_variable: bool) -> What {
        what(self.names, site, with_variable)
    }

    /// Returns what a cell's accesses touch, and where: its row in [`Tables::lines`].
    pub fn key_of(&self, cell: &Cell) -> (What, Place) {
        *self.keys[cell.site.0 as usize].get_or_init(|| {
            let site = self.site(cell);
            (self.what(site, true), place(self.names, site))
        })
    }

    /// The data that a cell's accesses touch: its row in [`Tables::data`].
    pub fn data_of(&self, cell: &Cell) -> What {
        self.what(self.site(cell), false)
    }

    /// The member that a cell's accesses touch: its row in [`Tables::fields`], if it has one.
    pub fn field_of(&self, cell: &Cell) -> Option<What> {
        let site = self.site(cell);
        site.member.is_some().then(|| self.what(site, false))
    }

    /// The type that a cell's accesses touch: its row in [`Tables::types`], if it has one.
    pub fn type_of(&self, cell: &Cell) -> Option<StringId> {
        self.site(cell).ty.map(|ty| self.names.ty(ty).name)
    }

    fn site(&self, cell: &Cell) -> &'a Site {
        self.names.site(cell.site)
    }
}
