//! Tables of a report and of analyses, as `memlode export` writes them.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use memlode_analyses::{Arguments, BadArgument, Reads, Run, all, findings_of};
use memlode_attribute::sharing::Order;
use memlode_attribute::{CostModel, Profile};
use memlode_export::over_time::{OverTime, every, over_time};
use memlode_export::tables::{Counted, ExportedTable, ReportTable, of_analysis};
use memlode_machine::Machine;
use memlode_report::render::note;
use memlode_report::{Report, build, only};
use memlode_trace::Trace;

use crate::accesses;
use crate::analyse::{Analysed, Found, Job, Wanted};
use crate::args::only::OnlyArgs;
use crate::term;

/// The requested tables, each once.
pub struct Wishes {
    of_report: Vec<ReportTable>,
    /// Analyses of every access, by name, all tables of which are meant.
    analyses: Vec<&'static str>,
}

impl Wishes {
    /// Finds tables by name; those of lines if none is named, and those of the report for `all`.
    pub fn of(names: &[String]) -> Result<Wishes> {
        let mut wishes = Wishes { of_report: Vec::new(), analyses: Vec::new() };
        for name in names {
            let analysis = || accesses::known(name).filter(|known| known.meta.reads == Reads::Rows);
            if name == "all" {
                wishes.of_report.extend(ReportTable::ALL);
            } else if let Some(table) = ReportTable::ALL.into_iter().find(|table| table.name() == name) {
                wishes.of_report.push(table);
            } else if let Some(known) = analysis() {
                wishes.analyses.push(known.meta.id);
            } else {
                bail!("{}", unknown(name));
            }
        }
        if names.is_empty() {
            wishes.of_report.push(ReportTable::Lines);
        }
        keep_first(&mut wishes.of_report);
        keep_first(&mut wishes.analyses);
        Ok(wishes)
    }

    /// Returns whether one table is meant, and no folder of them.
    pub fn is_one(&self) -> bool {
        self.names().len() == 1
    }

    /// The name of each table.
    pub fn names(&self) -> Vec<&'static str> {
        let of_analysis = |id: &&str| accesses::known(id).map_or(&[][..], |known| known.meta.tables);
        let of_analyses = self.analyses.iter().flat_map(of_analysis).map(|table| table.id);
        self.of_report.iter().map(|table| table.name()).chain(of_analyses).collect()
    }

    /// Makes the tables. Tables of the report take one replay, those of analyses another one.
    pub fn make(
        &self,
        trace: &Arc<Trace>,
        machine: &str,
        order: Option<Order>,
        wanted: &OnlyArgs,
    ) -> Result<Vec<ExportedTable>> {
        ensure!(
            wanted.only.is_empty() || self.analyses.is_empty(),
            "--only is for tables of the report: those of analyses are of every access"
        );
        let mut tables = Vec::new();
        if !self.of_report.is_empty() {
            let found = Reported::of(trace, machine, order, false)?.only(wanted)?;
            tables.extend(self.of_report.iter().map(|table| table.of(&found.counted())));
        }
        if !self.analyses.is_empty() {
            let mut run = Run::default();
            for id in &self.analyses {
                let known = accesses::known(id).with_context(|| unknown(id))?;
                let added = run.add(&known, &Arguments::default());
                added.map_err(|BadArgument(why)| anyhow!("--table {id}: {why}"))?;
            }
            let analysed = Job::new(machine, |_| Ok(Wanted::Accesses(run)))?.run(trace.clone())?;
            if let Found::Accesses(found) = &analysed.found {
                let analysis = build::analysis(&analysed.trace, &analysed.machine, found, &analysed.replayed);
                let kinds = found.iter().map(|table| &table.holds[..]);
                tables.extend(
                    analysis.tables.iter().zip(kinds).map(|(table, holds)| of_analysis(table, holds)),
                );
            }
        }
        Ok(tables)
    }
}

/// Returns the counts of a trace over the time of its run.
pub fn counters(trace: &Arc<Trace>, machine: &str) -> Result<Vec<OverTime>> {
    let accesses = trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
    let mut run = Run::default();
    let timeline = accesses::known("timeline").context("there is no analysis `timeline`")?;
    let added = run.add(&timeline, &Arguments::one("every", every(accesses)));
    added.map_err(|BadArgument(why)| anyhow!("timeline: {why}"))?;
    let analysed = Job::new(machine, |_| Ok(Wanted::Accesses(run)))?.run(trace.clone())?;
    match &analysed.found {
        Found::Accesses(tables) => Ok(tables.iter().flat_map(over_time).collect()),
        _ => bail!("a time line was asked for, and something else was found"),
    }
}

/// Keeps the first of equal ones.
fn keep_first<T: PartialEq + Copy>(wishes: &mut Vec<T>) {
    let mut known = Vec::new();
    wishes.retain(|wish| {
        let is_new = !known.contains(wish);
        known.push(*wish);
        is_new
    });
}

fn unknown(name: &str) -> String {
    let tables = ReportTable::ALL.map(ReportTable::name).join(", ");
    let of_rows = all().into_iter().filter(|known| known.meta.reads == Reads::Rows);
    let analyses: Vec<&str> = of_rows.map(|known| known.meta.id).collect();
    format!(
        "--table {name}: there is no such table; choose from all, {tables}, and the analyses of every access: {}",
        analyses.join(", ")
    )
}

/// A report on a trace, with the counts that it was made of.
pub struct Reported {
    trace: Arc<Trace>,
    machine: Machine,
    profile: Box<Profile>,
    costs: CostModel,
    report: Report,
    /// Only some findings are meant.
    is_part: bool,
}

impl Reported {
    /// Replays a trace for a report, whose counts distinguish call paths if `by_path`.
    pub fn of(trace: &Arc<Trace>, machine: &str, order: Option<Order>, by_path: bool) -> Result<Reported> {
        let job = Job::new(machine, |_| Ok(Wanted::Report(order)))?;
        let analysed = Job { by_path, ..job }.run(trace.clone())?;
        let Analysed { trace, machine, found, replayed } = analysed;
        let Found::Report(profile, _, sharing) = found else {
            bail!("a report was asked for, and something else was found");
        };
        let costs = CostModel::new(&profile, trace.sites(), &machine);
        let report = build::report(build::Inputs {
            trace: &trace,
            machine: &machine,
            profile: &profile,
            costs: &costs,
            replayed: &replayed,
            sharing: sharing.as_deref(),
            findings: findings_of(&trace, &machine, &profile, &costs),
        });
        for note in report.trace.notes.iter().map(note) {
            term::note(&note);
        }
        Ok(Reported { trace, machine, profile, costs, report, is_part: false })
    }

    /// Leaves the findings that are meant, and what they are about.
    pub fn only(mut self, wanted: &OnlyArgs) -> Result<Reported> {
        only(&mut self.report, &wanted.only).context("--only")?;
        self.is_part = !wanted.only.is_empty();
        Ok(self)
    }

    /// Returns the counts for exports.
    pub fn counted(&self) -> Counted<'_> {
        let Reported { trace, machine, profile, costs, report, is_part } = self;
        Counted { trace, machine, profile, costs, report, is_part: *is_part }
    }
}
