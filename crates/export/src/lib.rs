//! Annotated accesses, tables, stacks and findings for other programs.
//!
//! ```
//! use memlode_export::{formats::csv, tables::ReportTable};
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
//! // A report's table of types, as CSV.
//! let table = ReportTable::Types.of_report(&trace, &report).ok_or("no such table")?;
//! let mut out = Vec::new();
//! csv::write(&mut out, &table)?;
//! assert!(String::from_utf8(out)?.lines().count() > 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! attribute::annotate ──► Events, Cells ──► Encoder ──► Table ──► ipc: an Arrow stream, Python's capsules
//!                                              └── Names ───────► ndjson: one object a line
//! Report, Profile ──┬──► tables ──► Table ──► ipc, formats::csv
//!                   ├──► stacks ──► formats::{callgrind, folded, pprof, firefox ◄── over_time}
//!                   └──► formats::sarif
//! ```
//! An [`ArrowTable`] is a record batch in the layout of the Arrow columnar format, without a library of arrays: its columns are moved here
//! from where they were recorded, and names are dictionaries that all batches share.

mod columns;
mod encoder;
pub mod formats;
pub mod ipc;
mod names;
pub mod ndjson;
pub mod over_time;
pub mod request;
pub mod samples;
pub mod stacks;
pub mod table;
pub mod tables;

pub use encoder::BatchEncoder;
pub use request::{ExportRequest, Refused};
pub use table::{ArrowTable, BatchColumn, ColumnType, ColumnValues, Field, ListItems, Strings, Validity};
