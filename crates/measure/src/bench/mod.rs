//! Programs compared at the layout given and over random ones.
//!
//! A round runs each program once at the given layout and twice at random ones, all in random
//! order. Everything is computed from differences within a round: slow changes (frequency,
//! neighbours) cancel, and the random order decides the sign of the rest.

mod analyse;
mod csv;
mod measure;
mod parameters;

pub use analyse::{BenchNote, CodeVariation, Comparison, Contestant, Result, Spread, Trust};
pub use csv::csv;
pub use measure::{
    BenchPlace, BenchPlan, BenchRun, LEAST_ROUNDS, Measured, Metric, Progress, RANDOM_RUNS, measure,
};
pub use parameters::{Parameter, expand};
