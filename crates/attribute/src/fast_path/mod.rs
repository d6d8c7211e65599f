//! The ways of most accesses: to one line of a class that is known, and in loops that are one record.

pub mod loops;
pub mod single_line;
pub mod straddling;
