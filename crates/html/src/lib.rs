//! A report as one page for a browser, which loads nothing from anywhere.
//!
//! ```
//! use memlode_html::{Page, render};
//! use memlode_report::{Sources, render::page::{Bandwidth, Commands}};
//!
//! # use memlode_attribute::{CostModel, Simulation, Source};
//! # let trace = std::sync::Arc::new(memlode_trace::Trace::open("../analyses/fixtures/offenders/trace".as_ref())?);
//! # let (source, machine) = (Source::Stored(trace.clone()), memlode_machine::Machine::find("generic")?);
//! # let (profile, replayed) = Simulation::of(&source, &machine).count(|_| std::ops::ControlFlow::Continue(()))?;
//! # let costs = CostModel::new(&profile, trace.sites(), &machine);
//! # let report = memlode_report::build::report(memlode_report::build::Inputs {
//! #     trace: &trace, machine: &machine, profile: &profile, costs: &costs, replayed: &replayed,
//! #     sharing: None, findings: Vec::new(),
//! # });
//! let page = Page {
//!     report, bandwidth: Bandwidth::of(&machine), advice: None, records: &[], code: None, rows: None, cells: None,
//!     causes: None, timing: None, comparison: None,
//! };
//! let commands = Commands { of: &|command| format!("memlode {command} DIR"), quoted: &str::to_owned };
//! let page = render(page, &mut Sources::new(&trace, 0), &commands)?;
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! Report, Advice, records, sources ──► data: numbers, words, links between them ──┐
//! assets: HTML, CSS, JavaScript ──────────────────────────────────────────────────┴──► one file
//! ```
//! Numbers are those of the report's JSON, and words come from [`memlode_report::render::page`]. What belongs
//! together (members and their bytes, source lines and their cycles) is joined here; the scripts draw.

mod calls;
mod cells;
mod colours;
mod cut;
mod listing;
mod memory;
mod names;
mod pack;
mod phases;
mod ranges;
mod side_by_side;
mod structures;
mod tables;

use memlode_report::build::Limit;
use memlode_report::render::json;
use memlode_report::render::page::{Bandwidth, Commands, words};
use memlode_report::{
    Advice, Cells, MissCauses, NamedComparison, NamedListing, NamedRecord, PageRows, Report, Sources,
    TimeReport,
};

/// The contents of a page.
pub struct Page<'a> {
    /// The report; rows that matter least may be left out.
    pub report: Report,
    /// The traffic that the machine's memory carries.
    pub bandwidth: Bandwidth,
    /// The edits that were tried, if any were.
    pub advice: Option<&'a Advice>,
    /// Layouts of the program's records.
    pub records: &'a [NamedRecord],
    /// The instructions beneath source lines.
    pub code: Option<&'a NamedListing>,
    /// Analyses of every access: the time line, working sets, reuse and strides.
    pub rows: Option<&'a PageRows>,
    /// Cells of the counts, from which filters choose.
    pub cells: Option<&'a Cells>,
    /// Causes of misses, for the filters, too.
    pub causes: Option<&'a MissCauses>,
    /// Times by a model of the core; rows that matter least are left out.
    pub timing: Option<TimeReport>,
    /// Changes from another trace; rows that matter least are left out.
    pub comparison: Option<NamedComparison>,
}

/// The rows that a page has of a table of an analysis of every access, whose rows do not belong together.
pub fn limit(table: &str) -> Limit {
    match table {
        "contexts" => calls::LIMIT,
        "heap" => memory::LIMIT,
        "ranges" | "ranges_over_time" => ranges::LIMIT,
        _ => tables::LIMIT,
    }
}

/// A page cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as JSON: {0}")]
pub struct Unwritable(#[from] serde_json::Error);

/// Makes the page. Source lines are looked up in `sources`, and `commands` are those that it shows.
///
/// # Errors
/// Fails if a number of the report has no form in JSON.
pub fn render(page: Page<'_>, sources: &mut Sources, commands: &Commands<'_>) -> Result<String, Unwritable> {
    let Page {
        mut report,
        bandwidth,
        advice,
        records,
        code,
        rows,
        cells,
        causes,
        mut timing,
        mut comparison,
    } = page;
    let words = words(&report, advice, comparison.as_ref(), bandwidth, commands);
    let mut calls = rows.and_then(|rows| calls::calls(&report, rows));
    let ranges = rows.map_or_else(Vec::new, |rows| ranges::ranges(&report, rows));
    let mut memory = rows.and_then(memory::memory);
    memory.iter_mut().for_each(|memory| memory.find_rows(&report));
    let (left_out, kept) = cut::cut(&mut report);
    calls.iter_mut().for_each(|calls| calls.refer_to(&kept));
    memory.iter_mut().for_each(|memory| memory.refer_to(&kept));
    let ranges: Vec<_> = ranges.into_iter().filter_map(|of| of.refer_to(&kept)).collect();
    let cells = cells.and_then(|cells| cells::cells(&report, &kept, cells, causes));
    let functions = listing::functions(&report, code, sources);
    let structures = structures::structures(&report, records, advice);
    timing.iter_mut().for_each(tables::cut_timing);
    comparison.iter_mut().for_each(tables::cut_comparison);
    let edited: Vec<_> =
        advice.iter().flat_map(|advice| &advice.worth_it).map(|item| &item.layouts).collect();
    let null = || Ok("null".to_string());
    let parts = [
        ("report", json::embedded_report(&report)?),
        ("words", serde_json::to_string(&words)?),
        ("names", serde_json::to_string(&names::names(&report))?),
        ("structures", serde_json::to_string(&structures)?),
        ("functions", serde_json::to_string(&functions)?),
        ("calls", serde_json::to_string(&calls)?),
        ("phases", serde_json::to_string(&rows.map_or_else(Vec::new, phases::phases))?),
        ("ranges", serde_json::to_string(&ranges)?),
        ("memory", serde_json::to_string(&memory)?),
        ("edited", serde_json::to_string(&edited)?),
        ("cells", serde_json::to_string(&cells)?),
        ("left_out", serde_json::to_string(&left_out)?),
        ("tables", rows.map_or(serde_json::json!([]), tables::analysed).to_string()),
        ("timing", timing.as_ref().map_or_else(null, json::embedded_timing)?),
        ("timing_names", serde_json::to_string(&timing.as_ref().map(tables::timing_names))?),
        ("comparison", serde_json::to_string(&comparison)?),
        ("comparison_names", serde_json::to_string(&comparison.as_ref().map(tables::comparison_names))?),
    ];
    let members: Vec<String> = parts.iter().map(|(name, text)| format!("\"{name}\":{text}")).collect();
    Ok(pack::page(&words.title, &words.sentence, &format!("{{{}}}", members.join(","))))
}
