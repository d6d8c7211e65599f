//! Findings of an analysis, with names.

use memlode_attribute::WaitKind;
use memlode_trace::sites::Dependence;
use serde::{Deserialize, Serialize};

use super::{Access, NotRecorded, Numbers, Object, Position, Row, SourceText, Word};

/// One finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// A short name of analysis, data, function and file, which other recordings of the program give it, too.
    pub handle: String,
    /// The analysis that found it.
    pub analysis: Word,
    /// The data and the line that it is about.
    #[serde(flatten)]
    pub subject: Access,
    /// The accesses of that line.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Its cost: findings are ranked by this.
    pub cost: Cost,
    /// The facts, the most telling first.
    pub evidence: Vec<Evidence>,
    /// A division of the type that the evidence suggests; no replay has tried it, as `memlode advise`
    /// does.
    pub edit: Option<Edit>,
    /// Reasons to doubt it.
    pub doubt: Vec<Doubt>,
    /// The source line, if sources were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceText>,
}

/// The cost of a finding, with all lines that one change would serve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Cycles of waiting by the cost model: findings are ranked by this.
    pub wait_cycles: f64,
    /// Their part of all waiting, 0 to 1.
    pub wait_share: f64,
    /// Modelled cycles beyond the first level's latency.
    pub stall_cycles: u64,
    /// Their part of the whole program's, 0 to 1.
    pub stall_share: f64,
    /// The standard error of `wait_share`; only where the trace is a sample in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

/// A fact that a finding rests on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// Other lines that touch the same type: of the same function, or of any if each has too little.
    Together {
        /// The costliest first.
        lines: Vec<Row<Access>>,
    },
    /// The calls that the line was inlined at.
    Callers {
        /// Calls that all of its wait goes through, the innermost first.
        through: Vec<Position>,
        /// Calls at which they divide, the costliest first; empty if they do not.
        divided: Vec<Caller>,
    },
    /// The objects touched.
    Objects {
        /// The costliest first.
        objects: Vec<Row<Object>>,
    },
    /// The way in which the accesses of the line wait, as far as it was observed while the program
    /// ran.
    Waits {
        /// The way of most of the wait.
        how: WaitKind,
        /// Its part of the wait, 0 to 1.
        share: f64,
    },
    /// The accesses of the line store past the caches: their lines go to memory, and nothing is read for them.
    PastCaches {},
    /// The accesses of the line are software prefetches: only later accesses wait for the lines
    /// that they fetch.
    SoftwarePrefetch {},
    /// The source of the addresses, as the compiler saw it.
    Addresses {
        /// The compiler's word on it.
        from: Dependence,
    },
    /// Prefetching can help: addresses are known some accesses before.
    Prefetch {
        /// The distance in accesses.
        accesses_ahead: u32,
        /// Cycles until memory serves a load.
        latency_cycles: u32,
        /// Cycles of instructions for each access.
        access_cycles: f64,
    },
    /// The part of the type that the code around the line uses.
    Density(Density),
    /// Places that were executed at the line and are not recorded: their accesses are in no number here.
    Unrecorded {
        /// The most executed first.
        places: Vec<NotRecorded>,
    },
}

/// One of several calls that a line was inlined at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caller {
    /// The call; `None` where the function was not inlined.
    pub call: Option<Position>,
    /// Its part of the line's wait, 0 to 1.
    pub share: f64,
}

/// The part of each object of a type that is used while its lines are in a level of cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Density {
    /// The type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size.
    pub type_bytes: u64,
    /// Bytes of the members that are used.
    pub used_bytes: u64,
    /// The members that are used, most used first.
    pub members: Vec<String>,
    /// The members that are used in at least half of the residencies in which the finding's own
    /// member is used, including itself. All members if only counts are known.
    pub used_with: Vec<String>,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Mean bytes used of a line of the type during a residency. The whole line if its lines have
    /// other data, too.
    pub line_used_bytes: u64,
    /// The level whose misses cost most.
    pub level: String,
    /// Residencies of followed lines that show the use. `None` if only counts do: then the use is
    /// an upper bound.
    pub stays: Option<u64>,
}

/// A change of layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Edit {
    /// Move the members into storage of their own, or the others out.
    Split {
        /// The type.
        #[serde(rename = "type")]
        ty: String,
        /// The members that stay together.
        members: Vec<String>,
    },
}

/// A reason to doubt a finding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// In a sample: the difference between its share and the next finding's.
    Lead {
        /// The difference.
        value: f64,
        /// Its standard error; `None` if there are less than two bursts, or no duty cycle.
        standard_error: Option<f64>,
    },
}
