//! From ids and counts to names and shares.

mod cells;
mod comparison;
pub mod compiled;
pub(crate) mod handles;
pub mod instructions;
pub mod listing;
mod miss_causes;
pub mod naming;
pub mod notes;
mod page_rows;
mod ratios;
mod records;
mod rules;
mod sample;
pub mod sampled_listing;
mod sharing;
mod simulation;
pub mod source;
mod tables;
mod timing;
mod transfers;
mod unrecorded;
pub mod what_if;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use memlode_analyses as analyses;
use memlode_attribute::place::{Line, Place, What, place, what};
use memlode_attribute::sharing::SharingProfile;
use memlode_attribute::tables::{Row, Tables};
use memlode_attribute::{Cell, ClassId, CostModel, Counts, Coverage, PathId, Profile, StandardErrors, Wait};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteTable, StringId};
use memlode_whatif::cost::Cycles;
use rustc_hash::FxHashMap;

use crate::build::naming::{Borrowed, Naming};
use crate::model::{self, ByLevel, Numbers, Report};

pub use cells::cells;
pub use comparison::comparison;
pub use miss_causes::miss_causes;
pub use page_rows::{Limit, Rest, page_rows};
pub use ratios::{SimulatedRatios, simulated_functions, simulated_ratios, simulated_region};
pub use records::records;
pub use simulation::simulation;
pub use tables::{analysis, analysis_in_parts};
pub use timing::timing;

/// A replayed run and what was found in it: all that a report is made of.
pub struct Inputs<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The machine that it was replayed on.
    pub machine: &'a Machine,
    /// The counts.
    pub profile: &'a Profile,
    /// The cost of the accesses.
    pub costs: &'a CostModel,
    /// The chunks that were read, and those that could not be decoded.
    pub replayed: &'a Replayed,
    /// The time that threads lose to each other, if that was looked at.
    pub sharing: Option<&'a SharingProfile>,
    /// The findings of analyses of the counts, the costliest first
    /// ([`memlode_analyses::findings_of`]).
    pub findings: Vec<analyses::Finding>,
}

/// Builds the report of a replayed run.
pub fn report(inputs: Inputs<'_>) -> Report {
    let Inputs { trace, machine, profile, costs, replayed, sharing, findings } = inputs;
    let latencies = machine.latencies();
    let names = trace.sites();
    let levels = machine.level_names();
    let sample = sample::sample(trace, profile, &levels);
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let total = tables.whole();
    let builder = Builder {
        names,
        profile,
        latencies: &latencies,
        levels: &levels,
        total_stall: tables.stall_cycles(&total.counts),
        total_wait: total.wait.cycles(),
        borrowed: &borrowed(&tables, names),
    };
    let access = |(what, place): &(What, Place)| builder.access(what, place);
    let lost = sharing.map_or(0.0, SharingProfile::lost_cycles);
    let run_cycles = Cycles::of_run(profile, costs, machine).with_lost(lost).run;
    let mut report = Report {
        trace: builder.recording(trace, replayed, sample),
        machine: simulated(machine, &levels, profile),
        total: builder.row(model::Everything {}, &total),
        coverage: shares(&Coverage::of(profile, names.sites(), |site| place(names, site).line.line > 0)),
        findings: findings
            .into_iter()
            .map(|finding| {
                let analyses::Subject::Line { ref place, .. } = finding.subject;
                let beside = unrecorded::beside(names, replayed, place);
                let mut made = builder.finding(finding);
                made.evidence.extend(beside);
                made
            })
            .collect(),
        lines: builder.rows(&tables.lines(), access),
        data: builder.rows(&tables.data(), |what| builder.data(what)),
        fields: builder.rows(&tables.fields(), |what| builder.data(what)),
        types: builder.rows(&tables.types(), |ty| model::Type { name: builder.string(*ty) }),
        objects: builder.rows(&tables.objects(), |class| builder.object(*class)),
        functions: builder.rows(&tables.functions(), |name| model::Function {
            function: builder.written(*name),
            linkage_name: builder.string(*name),
        }),
        threads: builder.rows(&tables.threads(), |id| builder.thread(trace, machine, *id)),
        sharing: sharing.map(|found| builder.transfers(found, machine, run_cycles)),
        remote: profile.remote,
        instructions: costs.knows_instructions().then(|| instructions(profile, names)),
        run_cycles: rounded(run_cycles),
        advised: Vec::new(),
    };
    handles::name_findings(names, &mut report);
    report
}

/// The instructions that accesses of a profile stand among.
fn instructions(profile: &Profile, names: &SiteTable) -> u64 {
    let of_cell = |cell: &Cell| {
        let each = names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after));
        cell.counts.accesses() as f64 * each
    };
    profile.cells.iter().map(of_cell).sum::<f64>().round() as u64
}

/// Sums a profile up by a key of its cells, as the tables of its report are: the costliest first, without cells that have no key.
pub fn rows_by<K: Hash + Eq + Ord + Clone>(
    trace: &Trace,
    machine: &Machine,
    profile: &Profile,
    costs: &CostModel,
    key: impl Fn(&Cell) -> Option<K>,
) -> Vec<model::Row<K>> {
    let (latencies, levels) = (machine.latencies(), machine.level_names());
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let total = tables.whole();
    let builder = Builder {
        names: trace.sites(),
        profile,
        latencies: &latencies,
        levels: &levels,
        total_stall: tables.stall_cycles(&total.counts),
        total_wait: total.wait.cycles(),
        borrowed: &Borrowed::default(),
    };
    builder.rows(&tables.roll(key), K::clone)
}

fn simulated(machine: &Machine, names: &[Arc<str>], profile: &Profile) -> model::Simulated {
    let levels =
        machine.levels.iter().zip(&profile.levels).zip(names).map(|((level, counted), name)| model::Level {
            name: name.to_string(),
            bytes: level.bytes,
            ways: level.ways,
            line_bytes: level.line_bytes,
            shared_by: level.shared_by,
            latency_cycles: level.latency_cycles,
            reads: counted.reads,
            writes: counted.writes,
            read_misses: counted.read_misses,
            write_misses: counted.write_misses,
            write_backs: counted.write_backs,
        });
    model::Simulated {
        name: machine.name.clone(),
        description: machine.description.clone(),
        cores: machine.cores,
        memory_latency_cycles: machine.memory_latency_cycles,
        latencies: machine.known(),
        file_hash: machine.file_hash.clone(),
        levels: levels.collect(),
    }
}

fn shares(coverage: &Coverage) -> model::Shares {
    let share = |part: u64| part as f64 / coverage.accesses.max(1) as f64;
    let evidence = &coverage.evidence;
    model::Shares {
        accesses: coverage.accesses,
        line: share(coverage.line),
        approximate_line: share(coverage.approximate_line),
        variable_or_type: share(coverage.variable_or_type),
        member: share(coverage.member),
        object: share(coverage.object),
        allocations: coverage.allocations,
        typed_allocations: coverage.typed_allocations as f64 / coverage.allocations.max(1) as f64,
        typed_by_use: coverage.typed_by_use as f64 / coverage.allocations.max(1) as f64,
        by_evidence: BTreeMap::from([
            ("source".into(), share(evidence.source)),
            ("debug".into(), share(evidence.debug)),
            ("tbaa".into(), share(evidence.tbaa)),
            ("partial".into(), share(evidence.partial)),
            ("none".into(), share(evidence.none)),
        ]),
    }
}

fn waited(wait: &Wait) -> model::Wait {
    let [stored, streamed, chained, overlapping] = wait.kinds.map(rounded);
    model::Wait {
        cycles: rounded(wait.cycles()),
        stored,
        streamed,
        chained,
        overlapping,
        first_touch_cycles: rounded(wait.first_touches),
        instruction_cycles: rounded(wait.instructions),
    }
}

/// Rounds to tenths of a cycle: further digits of a model mean nothing.
fn rounded(cycles: f64) -> f64 {
    (cycles * 10.0).round() / 10.0
}

pub(crate) struct Builder<'a> {
    pub names: &'a SiteTable,
    pub profile: &'a Profile,
    pub latencies: &'a [u32],
    pub levels: &'a [Arc<str>],
    pub total_stall: u64,
    pub total_wait: f64,
    /// Accesses whose line is that of a neighbouring instruction ([`borrowed`]).
    pub borrowed: &'a Borrowed,
}

/// Finds the data at a place, and the places, whose accesses mostly have no line of their own, but
/// that of a neighbouring instruction.
pub(crate) fn borrowed(tables: &Tables<'_>, names: &SiteTable) -> Borrowed {
    let cells = tables.cells().iter();
    most_borrowed(names, cells.map(|cell| (names.site(cell.site), cell.counts.accesses())))
}

/// Finds the same where accesses are not counted: by sites.
pub(crate) fn borrowed_by_site(names: &SiteTable) -> Borrowed {
    most_borrowed(names, names.sites().iter().map(|site| (site, 1)))
}

fn most_borrowed<'s>(names: &SiteTable, weighted: impl Iterator<Item = (&'s Site, u64)>) -> Borrowed {
    let mut sums: FxHashMap<(Option<What>, Place), (u64, u64)> = FxHashMap::default();
    for (site, weight) in weighted {
        let place = place(names, site);
        for what in [None, Some(what(names, site, true))] {
            let sum = sums.entry((what, place)).or_default();
            sum.0 += weight;
            sum.1 += if site.flags & flag::APPROXIMATE != 0 { weight } else { 0 };
        }
    }
    sums.into_iter().filter(|(_, (all, borrowed))| 2 * borrowed > *all).map(|(key, _)| key).collect()
}

impl Builder<'_> {
    fn rows<K, S>(&self, rows: &[Row<K>], subject: impl Fn(&K) -> S) -> Vec<model::Row<S>> {
        rows.iter().map(|row| self.row(subject(&row.key), row)).collect()
    }

    fn row<K, S>(&self, subject: S, row: &Row<K>) -> model::Row<S> {
        model::Row {
            subject,
            numbers: self.numbers(&row.counts, &row.wait, row.errors.as_ref()),
            detail: None,
        }
    }

    fn numbers(&self, counts: &Counts, wait: &Wait, errors: Option<&StandardErrors>) -> Numbers {
        let stall_cycles = counts.stall_cycles(self.latencies);
        Numbers {
            accesses: counts.accesses(),
            reads: counts.reads.iter().sum(),
            writes: counts.writes.iter().sum(),
            misses: self.by_level(|level| counts.misses(level)),
            stall_cycles,
            stall_share: stall_cycles as f64 / self.total_stall.max(1) as f64,
            wait: waited(wait),
            wait_share: if self.total_wait > 0.0 { wait.cycles() / self.total_wait } else { 0.0 },
            standard_errors: errors.map(|errors| model::StandardErrors {
                accesses: errors.accesses,
                misses: self.by_level(|level| errors.misses[level]),
                miss_ratios: errors.miss_ratios.map(|ratios| self.by_level(|level| ratios[level])),
                stall_cycles: errors.stall_cycles,
                stall_share: errors.stall_share,
                wait_share: errors.wait_share,
            }),
        }
    }

    fn recording(
        &self,
        trace: &Trace,
        replayed: &Replayed,
        sample: Option<model::Sample>,
    ) -> model::Recording {
        model::Recording {
            directory: trace.directory().display().to_string(),
            command: trace.manifest().info.command.clone(),
            complete: notes::is_complete(trace, Some(replayed)),
            processes: trace.processes().len(),
            threads: trace.threads().len(),
            notes: notes::notes(trace, Some(replayed)),
            sample,
        }
    }

    /// A thread, on its core.
    fn thread(&self, trace: &Trace, machine: &Machine, id: ThreadId) -> model::Thread {
        let thread = &trace.threads()[id.0 as usize];
        let process = trace.processes().get(thread.process.0 as usize);
        model::Thread {
            thread: id.0,
            process: thread.process.0,
            pid: process.map_or(0, |process| process.pid),
            tid: thread.tid,
            core: id.0 % machine.cores.max(1),
        }
    }

    fn by_level<T>(&self, value: impl Fn(usize) -> T) -> ByLevel<T> {
        ByLevel(self.levels.iter().enumerate().map(|(level, name)| (name.clone(), value(level))).collect())
    }

    fn naming(&self) -> Naming<'_> {
        Naming::new(self.names).borrowing(self.borrowed)
    }

    fn written(&self, linkage: StringId) -> String {
        self.naming().written(linkage)
    }

    fn string(&self, id: StringId) -> String {
        self.naming().string(id)
    }

    fn strings(&self, ids: &[StringId]) -> Vec<String> {
        ids.iter().map(|&id| self.string(id)).collect()
    }

    pub fn data(&self, what: &What) -> model::Data {
        self.naming().data(what)
    }

    pub fn access(&self, what: &What, place: &Place) -> model::Access {
        self.naming().access(what, place)
    }

    pub fn object(&self, class: ClassId) -> model::Object {
        use memlode_attribute::Home;
        let class = &self.profile.classes[class.0 as usize];
        let path = match class.home {
            Home::Heap { path, .. } => path,
            _ => PathId::ROOT,
        };
        model::Object {
            home: self.naming().home(&class.home, self.profile.paths.steps(path)),
            element: class.element.map(|ty| self.string(self.names.ty(ty).name)),
            element_by_use: class.element_by_use,
            count: class.objects,
            bytes: class.bytes,
        }
    }

    fn finding(&self, finding: analyses::Finding) -> model::Finding {
        let analyses::Subject::Line { what, place } = finding.subject;
        let cost = finding.cost;
        model::Finding {
            handle: String::new(),
            analysis: finding.analysis.into(),
            subject: self.access(&what, &place),
            numbers: self.numbers(&finding.counts, &finding.wait, finding.errors.as_ref()),
            cost: model::Cost {
                wait_cycles: cost.wait.cycles(),
                wait_share: cost.wait_share,
                stall_cycles: cost.stall_cycles,
                stall_share: cost.stall_share,
                standard_error: cost.standard_error,
            },
            evidence: finding
                .evidence
                .iter()
                .map(|evidence| self.evidence(evidence, &finding.wait))
                .collect(),
            edit: finding.edit.map(|analyses::Suggestion::Split { ty, members }| model::Edit::Split {
                ty: self.string(ty),
                members: self.strings(&members),
            }),
            doubt: finding
                .doubt
                .iter()
                .map(|analyses::Doubt::Lead(lead)| model::Doubt::Lead {
                    value: lead.value,
                    standard_error: lead.standard_error,
                })
                .collect(),
            source: None,
        }
    }

    fn evidence(&self, evidence: &analyses::Evidence, wait: &Wait) -> model::Evidence {
        match evidence {
            analyses::Evidence::Together(lines) => model::Evidence::Together {
                lines: lines
                    .iter()
                    .map(|line| model::Row {
                        subject: self.access(&line.what, &line.place),
                        numbers: self.numbers(&line.counts, &line.wait, line.errors.as_ref()),
                        detail: None,
                    })
                    .collect(),
            },
            analyses::Evidence::Callers(callers) => {
                let naming = Naming::new(self.names);
                let call = |line: Option<Line>| line.map(|line| naming.line(&line));
                let divided = callers.divided.iter();
                model::Evidence::Callers {
                    through: callers.through.iter().map(|line| naming.line(line)).collect(),
                    divided: divided
                        .map(|&(line, share)| model::Caller { call: call(line), share })
                        .collect(),
                }
            }
            analyses::Evidence::Objects(objects) => {
                model::Evidence::Objects { objects: self.rows(objects, |class| self.object(*class)) }
            }
            analyses::Evidence::Waits(kind) => {
                model::Evidence::Waits { how: *kind, share: wait.of(*kind) / wait.cycles() }
            }
            analyses::Evidence::PastCaches => model::Evidence::PastCaches {},
            analyses::Evidence::SoftwarePrefetch => model::Evidence::SoftwarePrefetch {},
            analyses::Evidence::Addresses(dependence) => model::Evidence::Addresses { from: *dependence },
            analyses::Evidence::Prefetch(distance) => model::Evidence::Prefetch {
                accesses_ahead: distance.accesses,
                latency_cycles: distance.latency_cycles,
                access_cycles: (distance.access_cycles * 10.0).round() / 10.0,
            },
            analyses::Evidence::Density(density) => model::Evidence::Density(model::Density {
                ty: self.string(density.ty),
                type_bytes: density.type_bytes,
                used_bytes: density.used_bytes,
                members: self.strings(&density.members),
                used_with: self.strings(&density.used_with),
                line_bytes: density.line_bytes,
                line_used_bytes: density.line_used_bytes,
                level: self.levels.get(density.level).map(|name| name.to_string()).unwrap_or_default(),
                stays: density.stays,
            }),
        }
    }
}
