//! Annotated accesses for other programs.
//!
//! ```text
//! attribute::annotate ──► Events, Cells ──► Encoder ──► Table ──► ipc: an Arrow stream, Python's capsules
//!                                              └── Names ───────► ndjson: one object a line
//! ```
//! A [`ArrowTable`] is a record batch in the layout of the Arrow columnar format, without a library of arrays: its columns are moved here
//! from where they were recorded, and names are dictionaries that all batches share.

mod encoder;
pub mod ipc;
mod names;
pub mod ndjson;
pub mod request;
pub mod table;

pub use encoder::{BatchEncoder, level_names};
pub use request::{ExportRequest, Refused};
pub use table::{ArrowTable, BatchColumn, ColumnType, ColumnValues, Field, Strings, Validity};
