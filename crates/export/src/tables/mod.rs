//! Tables of a report as columns, under names that do not change.
//!
//! Within one version of the report's JSON, tables and columns are added, and none is renamed or
//! removed. Columns of cache levels have their machine's names: `misses_L1d`.

mod analysis;
mod numbers;
mod results;
mod sites;
mod subjects;

use memlode_attribute::place::{place, what};
use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;
use memlode_report::build::naming::Naming;
use memlode_report::{Report, build, has_line};
use memlode_trace::Trace;
use memlode_trace::sites::Site;

pub use crate::columns::ExportedTable;
pub use crate::tables::analysis::of_analysis;

/// A replayed trace: its counts, and the report on it.
pub struct Counted<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The machine that was simulated.
    pub machine: &'a Machine,
    /// The counts.
    pub profile: &'a Profile,
    /// The cost of each of its cells.
    pub costs: &'a CostModel,
    /// The report, with names.
    pub report: &'a Report,
    /// The report has lost what is not about some findings, and counts of other lines are left out, too.
    pub is_part: bool,
}

impl Counted<'_> {
    /// Returns whether the report has a row for what the site does.
    pub(crate) fn has(&self, site: &Site) -> bool {
        let names = self.trace.sites();
        let access = || Naming::new(names).access(&what(names, site, true), &place(names, site));
        !self.is_part || has_line(self.report, &access())
    }
}

/// A table that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportTable {
    /// One row: all accesses.
    Total,
    /// Cache levels of the machine.
    Levels,
    /// Data and the line that touches it.
    Lines,
    /// Members of types, and variables and arrays that have none.
    Data,
    /// Members of types.
    Members,
    /// Types.
    Types,
    /// Layouts of the program's types, member by member.
    Layouts,
    /// Classes of objects.
    Objects,
    /// Functions.
    Functions,
    /// Threads.
    Threads,
    /// Findings.
    Findings,
    /// Losses of threads to lines that they take from each other.
    Sharing,
    /// Places in the code that make an access.
    Sites,
}

impl ReportTable {
    /// All of them, in the order of the documentation.
    pub const ALL: [ReportTable; 13] = [
        ReportTable::Total,
        ReportTable::Levels,
        ReportTable::Lines,
        ReportTable::Data,
        ReportTable::Members,
        ReportTable::Types,
        ReportTable::Layouts,
        ReportTable::Objects,
        ReportTable::Functions,
        ReportTable::Threads,
        ReportTable::Findings,
        ReportTable::Sharing,
        ReportTable::Sites,
    ];

    /// Its name, stable.
    pub fn name(self) -> &'static str {
        match self {
            ReportTable::Total => "total",
            ReportTable::Levels => "levels",
            ReportTable::Lines => "lines",
            ReportTable::Data => "data",
            ReportTable::Members => "members",
            ReportTable::Types => "types",
            ReportTable::Layouts => "layouts",
            ReportTable::Objects => "objects",
            ReportTable::Functions => "functions",
            ReportTable::Threads => "threads",
            ReportTable::Findings => "findings",
            ReportTable::Sharing => "sharing",
            ReportTable::Sites => "sites",
        }
    }

    /// Makes it.
    pub fn of(self, counted: &Counted<'_>) -> ExportedTable {
        let of_counts = || sites::sites(counted, &levels(counted.report)).named(self.name());
        self.of_report(counted.trace, counted.report).unwrap_or_else(of_counts)
    }

    /// Makes the table from a report, perhaps a kept one; `None` for tables that need the counts,
    /// such as that of sites.
    pub fn of_report(self, trace: &Trace, report: &Report) -> Option<ExportedTable> {
        let levels = levels(report);
        let columns = match self {
            ReportTable::Total => numbers::rows(&levels, std::slice::from_ref(&report.total), |_, _| ()),
            ReportTable::Levels => numbers::levels(&report.machine),
            ReportTable::Lines => numbers::rows(&levels, &report.lines, subjects::accesses),
            ReportTable::Data => numbers::rows(&levels, &report.data, subjects::data),
            ReportTable::Members => numbers::rows(&levels, &report.fields, subjects::data),
            ReportTable::Types => numbers::rows(&levels, &report.types, subjects::types),
            ReportTable::Layouts => subjects::layouts(&build::records(trace.sites())),
            ReportTable::Objects => numbers::rows(&levels, &report.objects, subjects::objects),
            ReportTable::Functions => numbers::rows(&levels, &report.functions, subjects::functions),
            ReportTable::Threads => numbers::rows(&levels, &report.threads, subjects::threads),
            ReportTable::Findings => results::findings(&levels, &report.findings),
            ReportTable::Sharing => results::sharing(report.sharing.as_ref()),
            ReportTable::Sites => return None,
        };
        Some(columns.named(self.name()))
    }
}

/// The names of the machine's caches.
fn levels(report: &Report) -> Vec<&str> {
    report.machine.levels.iter().map(|level| &level.name[..]).collect()
}
