//! Reading counts: what they cost, and their sums by line, member, type, object, function or thread.

pub mod cost;
pub mod coverage;
pub mod detail;
pub mod libraries;
pub mod place;
pub mod standard_errors;
pub mod tables;
pub mod timed;
pub mod touched;
