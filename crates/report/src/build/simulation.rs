//! The model of `memlode sim`: a report's tables with why their accesses missed.

use std::hash::Hash;
use std::sync::Arc;

use memlode_attribute::detail::{AliasRow, CellDetail, DetailRow};
use memlode_attribute::place::{Place, What};
use memlode_attribute::tables::Tables;
use memlode_attribute::{Cell, DetailedProfile};
use memlode_machine::Machine;
use rustc_hash::FxHashMap;

use crate::build::sharing::sharing;
use crate::build::{Builder, Inputs, borrowed, report, rules};
use crate::model::{Alias, Detail, Evictor, LevelCauses, Memory, Row, Simulation, Translation};

/// The most evicting rows that are listed for each row and level.
const EVICTORS: usize = 10;

/// Builds what `memlode sim` says of a run whose accesses say why they missed. The profile of
/// `inputs` is that of `detailed`.
pub fn simulation(inputs: Inputs<'_>, detailed: &DetailedProfile) -> Simulation {
    let Inputs { trace, machine, costs, .. } = inputs;
    let mut report = report(inputs);
    for thread in &mut report.threads {
        let cores = &detailed.setup.cores;
        thread.subject.core = cores[thread.subject.thread as usize % cores.len()];
    }
    let latencies = machine.latencies();
    let names = trace.sites();
    // In the order of the report's rows, to which what was found of them is added one by one.
    let tables = Tables::new(&detailed.profile, names, &latencies).costing(costs);
    let levels = machine.level_names();
    let builder = Builder {
        names,
        profile: &detailed.profile,
        latencies: &latencies,
        levels: &levels,
        total_stall: tables.stall_cycles(&tables.total()),
        total_wait: 0.0,
        borrowed: &borrowed(&tables, names),
    };
    let maker = Maker { machine, levels: &levels, detailed, tables: &tables };
    report.total.detail = Some(maker.detail(&detailed.total(), Vec::new()));
    maker.add(&mut report.lines, |cell| Some(tables.key_of(cell)));
    maker.add(&mut report.data, |cell| Some(tables.data_of(cell)));
    maker.add(&mut report.fields, |cell| tables.field_of(cell));
    maker.add(&mut report.types, |cell| tables.type_of(cell));
    maker.add(&mut report.objects, |cell| Some(cell.class));
    let alias = |row: AliasRow<(What, Place)>| Alias {
        load: builder.access(&row.load.0, &row.load.1),
        store: builder.access(&row.store.0, &row.store.1),
        conflicts: row.conflicts,
        least_accesses: row.least_accesses,
    };
    Simulation {
        aliases: detailed.aliases(|cell| tables.key_of(cell)).into_iter().map(alias).collect(),
        rules: rules::rules_used(machine, &levels, detailed),
        coherence: rules::coherence(machine, detailed),
        besides: rules::besides(machine, &levels, detailed),
        sharing: sharing(detailed, &tables, &builder),
        report,
    }
}

struct Maker<'a> {
    machine: &'a Machine,
    levels: &'a [Arc<str>],
    detailed: &'a DetailedProfile,
    tables: &'a Tables<'a>,
}

impl Maker<'_> {
    /// Adds the causes of misses to the rows of a table, which are those of `key`.
    fn add<S, K: Hash + Eq + Ord + Clone>(&self, rows: &mut [Row<S>], key: impl Fn(&Cell) -> Option<K>) {
        let found = self.detailed.roll(self.tables, key);
        let numbers: FxHashMap<K, usize> =
            found.iter().enumerate().map(|(number, found)| (found.row.key.clone(), number)).collect();
        for (row, DetailRow { detail, evicted_by, .. }) in rows.iter_mut().zip(found) {
            let evictors = |level: Vec<(Option<K>, u64)>| {
                let first = level.into_iter().take(EVICTORS);
                let row = |by: Option<K>| by.and_then(|by| numbers.get(&by).copied());
                first.map(|(by, misses)| Evictor { row: row(by), misses }).collect()
            };
            row.detail = Some(self.detail(&detail, evicted_by.into_iter().map(evictors).collect()));
        }
    }

    fn detail(&self, found: &CellDetail, evicted_by: Vec<Vec<Evictor>>) -> Detail {
        let mut evicted_by = evicted_by.into_iter();
        let causes = self.levels.iter().enumerate().map(|(i, name)| {
            let counts = found.levels.get(i).copied().unwrap_or_default();
            LevelCauses {
                level: name.to_string(),
                cold: counts.cold,
                capacity: counts.capacity,
                conflict: counts.conflict,
                held_elsewhere: counts.held_elsewhere,
                true_sharing: counts.true_sharing,
                false_sharing: counts.false_sharing,
                invalidations: counts.invalidations,
                fetched_bytes: counts.fetched_bytes,
                unused_bytes: counts.fetched_bytes.saturating_sub(counts.used_bytes()),
                evicted_by: evicted_by.next().unwrap_or_default(),
            }
        });
        let tlb = &found.tlb;
        Detail {
            causes: causes.collect(),
            translation: (!self.machine.tlbs.is_empty()).then(|| Translation {
                second_level_hits: tlb.second_level_hits,
                walks: tlb.walks,
                cycles: tlb.cycles,
                visited_bytes: tlb.visited_bytes,
                unused_bytes: tlb.visited_bytes - tlb.used_bytes,
            }),
            alias_conflicts: self.machine.in_flight.map(|_| found.alias_conflicts),
            memory: (self.machine.nodes > 1)
                .then_some(Memory { local: found.numa.local, remote: found.numa.remote }),
        }
    }
}
