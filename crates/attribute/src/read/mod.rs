//! Reading counts: what they cost, and their sums by line, member, type, object, function or
//! thread.
//!
//! Rows are ranked by what they cost ([`cost`]): a formula on counts by cell, on the walks of sites
//! (`crates/replay/src/walks.rs`, in some of the chunks), on loads that depend on themselves
//! (`cost/chains.rs`), and on first touches of lines, which the caches report one level deeper than
//! memory.

pub mod cost;
pub mod coverage;
pub mod detail;
pub mod inside;
pub mod libraries;
pub mod place;
pub mod stack;
pub mod standard_errors;
pub mod tables;
pub mod timed;
pub mod touched;
