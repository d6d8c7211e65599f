//! Traces with gaps: what they cover, and what each cell did in each run.

pub mod cell_runs;
pub mod sample;
