//! Read and write memlode trace directories.
//!
//! ```text
//! threads/*.mlt ──► chunk ──decode──► Batch ──► simulate, attribute, dump
//! modules/*.mlm ──► SiteTable, globals ────────────┘
//! ```
//! The format is described in `format/SPEC.md`. This crate prints nothing and never exits.

pub mod event;
#[path = "../../../format/generated/format.rs"]
#[rustfmt::skip]
pub mod format;
pub mod sites;
