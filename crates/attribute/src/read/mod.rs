//! Reading counts: what they cost, and their sums by line, member, type, object, function or thread.
//!
//! Rows are ranked by what they cost ([`cost`]): a formula on counts by cell, on how sites were seen to walk
//! (`crates/replay/src/walks.rs`, in some of the chunks), on which loads lie on a cycle of feeders (`cost/chains.rs`), and on first
//! touches of lines, which the caches tell one level deeper than memory.

pub mod cost;
pub mod coverage;
pub mod detail;
pub mod libraries;
pub mod place;
pub mod stack;
pub mod standard_errors;
pub mod tables;
pub mod timed;
pub mod touched;
