//! Traces with gaps: what they cover, what each cell did in each run, and how far figures may be off.

pub mod cell_runs;
pub mod errors;
pub mod gaps;
pub mod sample;
