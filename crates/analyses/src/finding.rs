//! Findings of analyses, as data: numbers, ids of names, and the change that the evidence carries.

use memlode_attribute::place::{Line, Place, What};
use memlode_attribute::tables::Row;
use memlode_attribute::{ClassId, Counts, Estimate, StandardErrors, Wait, WaitKind};
use memlode_trace::sites::{Dependence, StringId};

/// One thing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The id of the analysis.
    pub analysis: &'static str,
    /// Its subject.
    pub subject: Subject,
    /// The accesses of the subject.
    pub counts: Counts,
    /// Their cost.
    pub wait: Wait,
    /// The errors of their figures, if they are a sample's.
    pub errors: Option<StandardErrors>,
    /// Its cost: findings are ranked by this.
    pub cost: Cost,
    /// The facts, the most telling first.
    pub evidence: Vec<Evidence>,
    /// The change to make, where the evidence carries one.
    pub edit: Option<Suggestion>,
    /// Reasons to doubt it.
    pub doubt: Vec<Doubt>,
}

/// The subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Data, and a line that touches it.
    Line {
        /// The data.
        what: What,
        /// The line.
        place: Place,
    },
}

/// The cost of a finding, with all lines that one change would serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Their wait by the cost model, in cycles; findings are ranked by this.
    pub wait: Wait,
    /// Its part of all waiting, 0 to 1.
    pub wait_share: f64,
    /// Modelled cycles beyond the first level; an upper bound, since misses overlap.
    pub stall_cycles: u64,
    /// Their part of the whole program's, 0 to 1.
    pub stall_share: f64,
    /// The standard error of [`Cost::wait_share`], if the counts are a sample's.
    pub standard_error: Option<f64>,
}

/// A fact that a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Other lines that touch the same type, the costliest first: of the same function, or of any
    /// if each has too little. One change of layout serves them all. None of them is a separate
    /// finding.
    Together(Vec<RankedLine>),
    /// The calls that the line was inlined at.
    Callers(Callers),
    /// The object classes touched, the costliest first.
    Objects(Vec<Row<ClassId>>),
    /// The source of the addresses in the code, where most of the cost is.
    Addresses(Dependence),
    /// In what way these accesses wait, as far as that was seen while the program ran.
    Waits(WaitKind),
    /// The accesses store past the caches.
    PastCaches,
    /// The accesses are software prefetches.
    SoftwarePrefetch,
    /// Prefetching can help: addresses are known some accesses before.
    Prefetch(PrefetchDistance),
    /// The density with which the type is used around the line.
    Density(Density),
}

/// The distance at which an access has to be prefetched for its line to be there in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefetchDistance {
    /// The accesses of the line before.
    pub accesses: u32,
    /// Cycles until a miss is served, by the outermost level that serves a tenth of them.
    pub latency_cycles: u32,
    /// Cycles of instructions that the function executes for each access.
    pub access_cycles: f64,
}

/// A line that belongs to a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedLine {
    /// The data.
    pub what: What,
    /// The line.
    pub place: Place,
    /// The accesses there.
    pub counts: Counts,
    /// Their cost.
    pub wait: Wait,
    /// The errors of their figures, if they are a sample's.
    pub errors: Option<StandardErrors>,
}

/// The calls that a line was inlined at.
#[derive(Clone, Debug, PartialEq)]
pub struct Callers {
    /// Calls that all of its wait goes through, the innermost first.
    pub through: Vec<Line>,
    /// Calls at which they divide, and their parts of the wait, 0 to 1, the costliest first. `None` is the function that the
    /// last of [`Callers::through`] stands in where it was not inlined itself. Empty if they do not divide.
    pub divided: Vec<(Option<Line>, f64)>,
}

/// Which part of each object of a type is used while its lines are in the level whose misses cost most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Density {
    /// The type.
    pub ty: StringId,
    /// Its size in bytes.
    pub type_bytes: u64,
    /// Bytes of the members that are used, at most `type_bytes`.
    pub used_bytes: u64,
    /// The members that are used, most used first.
    pub members: Vec<StringId>,
    /// The members that are used in at least half of the residencies in which the finding's own
    /// member is used, including itself. All members if only counts are known, or the finding has
    /// no member.
    pub used_with: Vec<StringId>,
    /// Bytes of these.
    pub used_with_bytes: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Mean bytes used of a line of the type during a residency; `line_bytes` if the lines have
    /// other data, too.
    pub line_used_bytes: u64,
    /// The level that is meant, 0 being the innermost.
    pub level: usize,
    /// Stays of lines that were followed and say so. `None` if counts alone do: then both are upper bounds.
    pub stays: Option<u64>,
}

/// A change of layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// Store these members apart from the rest of the type: in arrays of their own (structure of
    /// arrays), or by moving the rest out behind a pointer (splitting).
    Split {
        /// The type.
        ty: StringId,
        /// The members that belong together.
        members: Vec<StringId>,
    },
}

/// A reason to doubt a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// In a sample: the difference between its share and the next finding's.
    Lead(Estimate),
}

impl Finding {
    /// The other lines that one change would serve.
    pub fn together(&self) -> &[RankedLine] {
        let lines = self.evidence.iter().find_map(|evidence| match evidence {
            Evidence::Together(lines) => Some(&lines[..]),
            _ => None,
        });
        lines.unwrap_or_default()
    }
}
