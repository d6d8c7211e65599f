//! Annotated accesses, tables, stacks and findings for other programs.
//!
//! ```text
//! attribute::annotate ──► Events, Cells ──► Encoder ──► Table ──► ipc: an Arrow stream, Python's capsules
//!                                              └── Names ───────► ndjson: one object a line
//! Report, Profile ──┬──► tables ──► Table ──► ipc, formats::csv
//!                   ├──► stacks ──► formats::{callgrind, folded, pprof, firefox}
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
pub mod request;
pub mod samples;
pub mod stacks;
pub mod table;
pub mod tables;

pub use encoder::{BatchEncoder, level_names};
pub use request::{ExportRequest, Refused};
pub use table::{ArrowTable, BatchColumn, ColumnType, ColumnValues, Field, ListItems, Strings, Validity};
