//! Findings and tables for people and for programs.
//!
//! ```text
//! Trace, Machine, Profile ──build──► Report ──serde──► JSON (its fields are the schema)
//!                                      └───terminal──► text
//! ```
//! `memlode sim` has a [`Simulation`] instead: a report, and why the accesses of its rows missed.
//!
//! A [`Report`] is plain data with every name spelled out; both outputs are views of it. Nothing here prints.

pub mod build;
pub mod causes;
pub mod findings;
pub mod model;
pub mod naming;
pub mod notes;
pub mod rules;
pub mod sample;
pub mod sharing;
pub mod simulation;
pub mod terminal;
pub mod text;

pub use build::build;
pub use model::Report;
pub use simulation::{Simulation, simulation};
