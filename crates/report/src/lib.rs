//! Findings and tables for people and for programs.
//!
//! ```text
//! Trace, Machine, Profile ──build──► Report ──serde──► JSON (its fields are the schema)
//!                                      └───terminal──► text
//! ```
//! A [`Report`] is plain data with every name spelled out; both outputs are views of it. Nothing here prints.

pub mod build;
pub mod model;
pub mod notes;
pub mod sample;
pub mod terminal;
pub mod text;

pub use build::build;
pub use model::Report;
