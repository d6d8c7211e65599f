//! What `memlode sim` says: a report's tables with why their accesses missed.

use std::hash::Hash;
use std::sync::Arc;

use memlode_attribute::detail::{CellDetail, DetailRow, DetailedProfile};
use memlode_attribute::run::latencies;
use memlode_attribute::tables::{Tables, What};
use memlode_attribute::{Cell, ClassId};
use memlode_machine::Machine;
use memlode_trace::sites::StringId;
use memlode_trace::{Replayed, Trace};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::build::{Builder, build, level_names};
use crate::model::{Data, Line, Position, Report, VERSION};
use crate::rules::{self, CoherenceNumbers, LevelBesides, RulesUsed};
use crate::sharing::{Sharing, sharing};
use crate::terminal::{name, object, place as place_of};
use crate::text::brief;

/// At most so many things that pushed lines out are told of each row and level.
const EVICTORS: usize = 10;

/// A report, and what was found of its rows.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The report.
    pub report: Report,
    /// Of all accesses.
    pub total: Detail,
    /// Of each row of the report's `lines`.
    pub lines: Vec<Detail>,
    /// Of its `fields`.
    pub fields: Vec<Detail>,
    /// Of its `types`.
    pub types: Vec<Detail>,
    /// Of its `objects`.
    pub objects: Vec<Detail>,
    /// Loads that a store to another address may hold up, the most frequent first.
    pub aliases: Vec<Alias>,
    /// What was simulated and assumed.
    pub rules: RulesUsed,
    /// What coherence took; `None` if it was not simulated.
    pub coherence: Option<CoherenceNumbers>,
    /// What happened at the levels besides demand; empty if none of their rules were simulated.
    pub besides: Vec<LevelBesides>,
    /// Misses because of other cores' writes, the most frequent first.
    pub sharing: Vec<Sharing>,
}

/// What was found of some accesses.
#[derive(Clone, Debug, Serialize)]
pub struct Detail {
    /// Why they missed: cache levels, innermost first.
    pub causes: Vec<LevelCauses>,
    /// Their translations; `None` if the machine says nothing of TLBs.
    pub translation: Option<Translation>,
    /// Loads that agreed with a store in flight in the low 12 bits of another address; `None` if the machine does not say
    /// what is in flight.
    pub alias_conflicts: Option<u64>,
    /// Which node's memory answered; `None` if there is one node.
    pub memory: Option<Memory>,
}

/// Misses of one level.
#[derive(Clone, Debug, Serialize)]
pub struct LevelCauses {
    /// The level.
    pub level: String,
    /// Misses of lines that the cache had never been asked for.
    pub cold: u64,
    /// Misses that a fully associative cache of the same size would have had, too.
    pub capacity: u64,
    /// Misses that it would not have had.
    pub conflict: u64,
    /// Misses because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Misses because of another core's write of other bytes of the line.
    pub false_sharing: u64,
    /// Lines that these accesses' writes took from the level's caches of other cores.
    pub invalidations: u64,
    /// Bytes of the lines fetched.
    pub fetched_bytes: u64,
    /// Those that nothing used before the line was dropped.
    pub unused_bytes: u64,
    /// Whose accesses had pushed out the lines that were missed, the most frequent first, up to ten.
    pub evicted_by: Vec<Evictor>,
}

impl LevelCauses {
    /// All of them.
    pub fn misses(&self) -> u64 {
        self.cold + self.capacity + self.conflict + self.true_sharing + self.false_sharing
    }
}

/// What pushed lines out.
#[derive(Clone, Debug, Serialize)]
pub struct Evictor {
    /// As the terminal names rows of the same table; `None` for what has no such name.
    pub by: Option<String>,
    /// Misses of such lines.
    pub misses: u64,
}

/// Translations.
#[derive(Clone, Debug, Serialize)]
pub struct Translation {
    /// Accesses whose translation the second level had.
    pub second_level_hits: u64,
    /// Accesses that walked the page tables.
    pub walks: u64,
    /// Cycles beyond those of first-level translations, which are part of `stall_cycles`.
    pub cycles: u64,
    /// Bytes of the pages visited, once for each visit.
    pub visited_bytes: u64,
    /// Those of 64ths of pages that nothing used during the visit.
    pub unused_bytes: u64,
}

/// Accesses that memory answered.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// That of the core's own node.
    pub local: u64,
    /// That of another.
    pub remote: u64,
}

/// Loads that a store to another address may hold up.
#[derive(Clone, Debug, Serialize)]
pub struct Alias {
    /// The loads.
    pub load: Access,
    /// The stores.
    pub store: Access,
    /// How many loads.
    pub conflicts: u64,
    /// The least distance from a store to its load, in accesses of the thread.
    pub least_accesses: u32,
}

/// Data and where it is touched.
#[derive(Clone, Debug, Serialize)]
pub struct Access {
    /// The data.
    #[serde(flatten)]
    pub data: Data,
    /// The line.
    #[serde(flatten)]
    pub position: Position,
}

/// Builds what `memlode sim` says of a profile of `trace` on `machine`.
pub fn simulation(
    trace: &Trace,
    machine: &Machine,
    detailed: &DetailedProfile,
    replayed: &Replayed,
) -> Simulation {
    let mut report = build(trace, machine, &detailed.profile, replayed);
    for thread in &mut report.threads {
        let cores = &detailed.setup.cores;
        thread.core = cores[thread.thread as usize % cores.len()];
    }
    let latencies = latencies(machine);
    let names = trace.sites();
    let tables = Tables::new(&detailed.profile, names, &latencies);
    let levels = level_names(machine);
    let builder = Builder {
        names,
        profile: &detailed.profile,
        latencies: &latencies,
        levels: &levels,
        total_stall: tables.stall_cycles(&tables.total()),
    };
    let maker = Maker { machine, levels: &levels, detailed, tables: &tables };
    let data = |what: &What| name(&builder.data(what));
    let access = |cell: &Cell| tables.key_of(cell);
    let alias = |row: memlode_attribute::detail::AliasRow<_>| {
        let access = |(what, place)| Access { data: builder.data(&what), position: builder.position(&place) };
        Alias {
            load: access(row.load),
            store: access(row.store),
            conflicts: row.conflicts,
            least_accesses: row.least_accesses,
        }
    };
    Simulation {
        total: maker.detail(&detailed.total(), Vec::new()),
        lines: maker.rows(
            |cell| Some(tables.key_of(cell)),
            |(what, place)| format!("{} {}", data(what), place_of(&builder.position(place))),
        ),
        fields: maker.rows(|cell| tables.field_of(cell), data),
        types: maker.rows(|cell| tables.type_of(cell), |ty: &StringId| brief(names.string(*ty))),
        objects: maker.rows(|cell| Some(cell.class), |class: &ClassId| object(&builder.object(*class))),
        aliases: detailed.aliases(access).into_iter().map(alias).collect(),
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
    /// Of the rows of a table, in its order.
    fn rows<K: Hash + Eq + Ord + Clone>(
        &self,
        key: impl Fn(&Cell) -> Option<K>,
        label: impl Fn(&K) -> String,
    ) -> Vec<Detail> {
        let rows = self.detailed.roll(self.tables, key).into_iter();
        rows.map(|DetailRow { detail, evicted_by, .. }| {
            let evictors = |level: Vec<(Option<K>, u64)>| {
                let first = level.into_iter().take(EVICTORS);
                first.map(|(by, misses)| Evictor { by: by.as_ref().map(&label), misses }).collect()
            };
            self.detail(&detail, evicted_by.into_iter().map(evictors).collect())
        })
        .collect()
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

/// A row of a report with what was found of it.
#[derive(Serialize)]
struct Row<'a, R> {
    #[serde(flatten)]
    row: &'a R,
    #[serde(flatten)]
    detail: &'a Detail,
}

fn rows<'a, R>(rows: &'a [R], details: &'a [Detail]) -> Vec<Row<'a, R>> {
    rows.iter().zip(details).map(|(row, detail)| Row { row, detail }).collect()
}

/// `memlode sim --json`.
impl Serialize for Simulation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = &self.report;
        let mut out = serializer.serialize_struct("Simulation", 15)?;
        out.serialize_field("format", "memlode sim")?;
        out.serialize_field("version", &VERSION)?;
        out.serialize_field("trace", &report.trace)?;
        out.serialize_field("machine", &report.machine)?;
        out.serialize_field("total", &Row { row: &report.total, detail: &self.total })?;
        out.serialize_field("threads", &report.threads)?;
        out.serialize_field("lines", &rows::<Line>(&report.lines, &self.lines))?;
        out.serialize_field("fields", &rows(&report.fields, &self.fields))?;
        out.serialize_field("types", &rows(&report.types, &self.types))?;
        out.serialize_field("objects", &rows(&report.objects, &self.objects))?;
        out.serialize_field("aliases", &self.aliases)?;
        out.serialize_field("rules", &self.rules)?;
        out.serialize_field("coherence", &self.coherence)?;
        out.serialize_field("besides", &self.besides)?;
        out.serialize_field("sharing", &self.sharing)?;
        out.end()
    }
}
