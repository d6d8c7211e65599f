//! Programs compared at the layout given and over random ones.
//!
//! A round runs each program once at the given layout and twice at random ones, all in random order. Differences within
//! a round are what everything is computed from: what changes slowly (frequency, neighbours) cancels, and the order
//! decides the sign of what is left.

mod analyse;
mod measure;
mod parameters;
mod render;
mod verdict;

pub use analyse::{Comparison, Contestant, Result, Spread, Trust};
pub use measure::{
    BenchPlace, BenchPlan, BenchRun, LEAST_ROUNDS, Measured, Metric, Progress, RANDOM_RUNS, measure,
};
pub use parameters::{Parameter, expand};
pub use render::{csv, markdown, text};
pub use verdict::sentence;
