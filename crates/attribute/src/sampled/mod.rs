//! Traces with gaps: the part of the program that they cover, and the counts of each cell in each
//! run.

pub mod cell_runs;
pub mod sample;
