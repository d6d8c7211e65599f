//! Analyses of a trace: from counts and accesses to findings and tables.
//!
//! ```
//! use memlode_attribute::{CostModel, Simulation, Source};
//!
//! let trace = std::sync::Arc::new(memlode_trace::Trace::open("fixtures/offenders/trace".as_ref())?);
//! let (source, machine) = (Source::Stored(trace.clone()), memlode_machine::Machine::find("generic")?);
//! let (profile, _) = Simulation::of(&source, &machine).count(|_| std::ops::ControlFlow::Continue(()))?;
//! let costs = CostModel::new(&profile, trace.sites(), &machine);
//! let findings = memlode_analyses::findings_of(&trace, &machine, &profile, &costs);
//! assert_eq!(findings[0].analysis, "offenders");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! counted cells ──────────────┐
//! accesses with their answers ┴─► Analysis: observe, merge, finish ──► Found: tables, findings
//! ```
//! An analysis is one file in `analyses/`. Its doc comment is the user's page on it, its [`Analysis`]
//! says what it reads, how it may be split and what it finds. `cargo xtask gen` puts it into the
//! registry ([`all`]) and its page into `docs/analyses/`. What it finds is data: numbers, and ids of
//! names.
//!
//! `partition` finds where the members of a type lie in the blocks that lines were fetched for, by accesses that name a member
//! ([`memlode_attribute::Residencies`]).

mod addresses;
mod analyses;
mod analysis;
mod arguments;
mod bins;
mod bytes;
mod callers;
mod carried;
mod finding;
mod pairs;
mod partition;
pub mod parts;
mod run;
mod served;
mod shadow;
mod table;
mod variables;
mod view;

pub use analyses::all;
pub use analysis::{Analysis, Argument, Blocks, Findings, Meta, Reads, Registered, Running, Splits};
pub use arguments::{Arguments, BadArgument};
pub use bytes::BadPart;
pub use carried::{BadNumber, CellPacker, CellUnpacker, Merged};
pub use finding::{
    Callers, Cost, Density, Doubt, Evidence, Finding, PrefetchDistance, RankedLine, Subject, Suggestion,
};
pub use run::Run;
pub use table::{Column, Holds, Table, TableMeta, Value};
pub use view::View;

pub use analyses::timeline::Every;

use memlode_attribute::annotate::Cells;
use memlode_attribute::place::{Place, What};
use memlode_attribute::tables::Tables;
use memlode_attribute::{Cell, CostModel, Profile};
use memlode_machine::Machine;
use memlode_trace::Trace;
use rustc_hash::FxHashMap;

/// Returns what all analyses of counted cells find in the counts of a run, the costliest first.
pub fn findings_of(trace: &Trace, machine: &Machine, profile: &Profile, costs: &CostModel) -> Vec<Finding> {
    let (levels, latencies) = (machine.served_by(), machine.latencies());
    let tables = Tables::of_run(trace, profile, &latencies, costs);
    let cells = Cells::default();
    findings(&View { counted: Some(&tables), ..View::of(trace, machine, (&levels, &latencies), &cells) })
}

/// Returns what all analyses of counted cells find in the counts of a view, the costliest first.
fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for known in all().iter().filter(|known| known.meta.reads == Reads::Cells) {
        if let Ok(running) = known.begin(&Arguments::default()) {
            found.extend(running.finish(view).findings);
        }
    }
    found.sort_by(|a, b| b.cost.wait_share.total_cmp(&a.cost.wait_share));
    doubt(view, &mut found);
    found
}

/// In a sample: the errors of the shares of findings, and of the differences from one to the next.
fn doubt(view: &View<'_>, findings: &mut [Finding]) {
    let Some(tables) = view.counted else { return };
    let mut number_of: FxHashMap<(What, Place), usize> = FxHashMap::default();
    for (number, finding) in findings.iter().enumerate() {
        let Subject::Line { what, place } = finding.subject;
        number_of.insert((what, place), number);
        number_of.extend(finding.together().iter().map(|line| ((line.what, line.place), number)));
    }
    let group = |cell: &Cell| number_of.get(&tables.key_of(cell)).copied();
    let Some(shares) = tables.shares(findings.len(), group) else { return };
    let count = findings.len();
    for (number, finding) in findings.iter_mut().enumerate() {
        finding.cost.standard_error = shares.of(number).standard_error;
        if number + 1 < count {
            finding.doubt.push(Doubt::Lead(shares.difference(number, number + 1)));
        }
    }
}
