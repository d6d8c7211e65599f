//! The result of `memlode stat`, as data: also the file that it writes.

use serde::{Deserialize, Serialize};

use crate::ratio::Ratio;
use crate::refusal::CountRefusal;
use crate::software::Software;

/// The word that a file of this kind begins with.
pub const FORMAT: &str = "memlode stat";
/// The version of its fields: within one, fields are added, and none is renamed or removed.
pub const VERSION: u32 = 1;

/// Counts and ratios of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The command, or none of a process that ran already.
    pub command: Vec<String>,
    /// The process that ran already.
    pub pid: Option<u32>,
    /// The region of the program that was counted; none if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Name of the table of events, if there is one of this processor.
    pub processor: Option<String>,
    /// Seconds of each run, or of each stretch of a process that ran already.
    pub seconds: Vec<f64>,
    /// Events of the kernel; values by run.
    pub software: Vec<SoftwareCount>,
    /// Ratios, in the order of [`Ratio::ALL`].
    pub ratios: Vec<RatioFound>,
    /// Events of the processor that were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventCount>,
    /// The simulation, if some ratios are simulated.
    pub simulated: Option<SimulatedRun>,
    /// Ratios of functions, if they were asked for: a table for each source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionTable>,
}

/// Ratios function by function, from one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionTable {
    /// The source of all values.
    pub source: FunctionSource,
    /// Functions, those with the largest share first.
    pub rows: Vec<FunctionRatios>,
}

/// The origin of a table of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionSource {
    /// Samples: one event in a fixed number of them interrupted the program.
    Sampled,
    /// Simulated from a trace.
    Simulated,
}

/// Ratios of one function, without those that it calls; a function that was inlined counts for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionRatios {
    /// The function's name.
    pub function: String,
    /// Its part of the program's time: of the samples of the task clock, or of the modelled cycles.
    pub share: f64,
    /// Samples of the task clock in it; none where it is simulated.
    pub samples: Option<u64>,
    /// Page faults that needed no disk, estimated from samples of them; none where it is simulated.
    pub minor_faults: Option<f64>,
    /// Ratios that are known of it, in the order of [`Ratio::ALL`].
    pub ratios: Vec<FunctionRatio>,
}

/// The value of one ratio in one function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionRatio {
    /// The ratio.
    pub ratio: Ratio,
    /// Its value.
    pub value: f64,
    /// Its standard error, from the numbers of samples; 0 where it is simulated.
    pub error: f64,
}

/// A simulation that ratios come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// The machine's name.
    pub machine: String,
    /// The trace; none if it was made for this and is gone.
    pub trace: Option<String>,
    /// Recorded accesses.
    pub accesses: u64,
    /// Instructions, estimated by the pass from the machine code between accesses; code that was
    /// not compiled with memlode is not included.
    pub instructions: u64,
    /// Modelled cycles.
    pub cycles: f64,
    /// Recorded threads.
    pub threads: usize,
    /// Present if a region was recorded alone.
    #[serde(default)]
    pub region: Option<SimulatedRegion>,
}

/// A region that was recorded alone: the contents of the caches are unknown where it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedRegion {
    /// Stretches of the run in which a thread was in it.
    pub stretches: usize,
    /// Bounds of misses, by level of the caches, the nearest first.
    pub misses: Vec<MissBounds>,
}

/// The least and the most misses of a level, for any contents of the caches at the beginning of
/// each stretch, in caches that replace the line used least recently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissBounds {
    /// The level's name.
    pub level: String,
    /// If each line that may have been there was.
    pub least: u64,
    /// If none was.
    pub most: u64,
}

/// An event of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoftwareCount {
    /// The event.
    pub event: Software,
    /// Its counts.
    #[serde(flatten)]
    pub found: ValueSource,
}

/// An event of the processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCount {
    /// Its name in the table of events.
    pub event: String,
    /// Its count in a run, in the mean.
    pub count: f64,
}

/// A ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioFound {
    /// The ratio.
    pub ratio: Ratio,
    /// The formula with names of events; empty where it was not counted.
    pub formula: String,
    /// A note on the formula on this processor.
    pub note: Option<String>,
    /// A second source has the codes of its events, too.
    pub checked: bool,
    /// Its values.
    #[serde(flatten)]
    pub found: ValueSource,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "source")]
pub enum ValueSource {
    /// Counted.
    Measured {
        /// Values by run.
        values: Vec<f64>,
        /// The location of these, with its interval.
        interval: Interval,
        /// Events in the kernel are not in it.
        user_only: bool,
    },
    /// Simulated from a trace: the same each time.
    Simulated {
        /// The value.
        value: f64,
    },
    /// Nothing is known.
    Missing {
        /// The reason.
        refusal: CountRefusal,
    },
}

impl Stat {
    /// Puts simulated values where nothing was counted.
    pub fn simulate(&mut self, values: &[(Ratio, f64)], run: SimulatedRun) {
        for ratio in &mut self.ratios {
            let value = values.iter().find(|(known, _)| *known == ratio.ratio);
            if let (ValueSource::Missing { .. }, Some((_, value))) = (&ratio.found, value) {
                ratio.found = ValueSource::Simulated { value: *value };
                self.simulated = Some(run.clone());
            }
        }
    }

    /// Returns whether some ratio has no value.
    pub fn lacks_ratios(&self) -> bool {
        self.ratios.iter().any(|ratio| matches!(ratio.found, ValueSource::Missing { .. }))
    }
}

impl ValueSource {
    /// Returns the value with its interval, if there is one.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            ValueSource::Measured { interval, .. } => Some(*interval),
            ValueSource::Simulated { value } => Some(Interval { middle: *value, ends: None }),
            ValueSource::Missing { .. } => None,
        }
    }
}

/// A location and its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the means of all pairs of values.
    pub middle: f64,
    /// The ends of its interval; none of too few values, or of a simulation.
    pub ends: Option<(f64, f64)>,
}

/// Two files side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatComparison {
    /// The command before.
    pub before: Vec<String>,
    /// The command after.
    pub after: Vec<String>,
    /// Seconds of a run.
    pub seconds: Option<Improvement>,
    /// Events of the kernel that both have.
    pub software: Vec<(Software, Change)>,
    /// Ratios.
    pub ratios: Vec<(Ratio, Change)>,
}

/// A change from one file to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Change {
    /// Both sides were measured, or both were simulated.
    Compared {
        /// Both were simulated.
        simulated: bool,
        /// The values.
        #[serde(flatten)]
        improvement: Improvement,
    },
    /// One side was measured and the other simulated.
    Unlike,
    /// One side has no value, or both.
    Missing {
        /// The reason, of the side before if it has none.
        refusal: CountRefusal,
    },
}

/// Two values and the improvement between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Improvement {
    /// The value before.
    pub before: Interval,
    /// The value after.
    pub after: Interval,
    /// Per cent by which the second is less than the first; none if the first is zero.
    pub percent: Option<Interval>,
}
