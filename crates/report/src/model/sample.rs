//! The part of a program that was recorded, and the errors of its figures.

use serde::{Deserialize, Serialize};

/// The part of a program that was recorded. All counts of the report are those of that part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// The duty cycle; `None` if recording was switched in another way, and the part is not chosen at random.
    pub burst: Option<Burst>,
    /// Stretches in which recording was on.
    pub runs: usize,
    /// Part of the threads' time that they cover, 0 to 1.
    pub time_share: f64,
    /// Part of the accesses that was recorded, 0 to 1, assuming that threads go on between the runs
    /// as in them. Recording slows a program down, so the true part is at most this. `None` without
    /// a duty cycle.
    pub access_share: Option<Estimated>,
    /// Cache levels, innermost first.
    pub levels: Vec<SampledLevel>,
}

/// A duty cycle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Burst {
    /// Seconds for which recording is on.
    pub on_seconds: f64,
    /// Seconds from one beginning to the next.
    pub period_seconds: f64,
}

/// An estimate from a sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Estimated {
    /// Its value.
    pub value: f64,
    /// Its standard error, from the differences between bursts; `None` if there are less than two, or no duty cycle.
    pub standard_error: Option<f64>,
}

/// The misses of a level in a sample, as parts of all accesses, 0 to 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SampledLevel {
    /// The machine's name for it.
    pub name: String,
    /// The simulated ratio, with caches that keep their contents over gaps.
    pub miss_ratio: Estimated,
    /// The lower bound, for any contents of caches behind gaps; `None` if rules other than exact
    /// LRU were simulated.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
}
