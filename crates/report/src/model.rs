//! What a report says. Serialised, this is `memlode report --json`; fields are added, never renamed, within one
//! [`VERSION`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Version of the schema.
pub const VERSION: u32 = 1;

/// A report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `memlode report`.
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// What was recorded.
    pub trace: Recording,
    /// The simulated machine, and what its caches counted.
    pub machine: Simulated,
    /// All accesses.
    pub total: Numbers,
    /// How much of what ran has a name.
    pub coverage: Shares,
    /// What is wrong, the costliest first.
    pub findings: Vec<Finding>,
    /// What is touched, at which line; like the other tables, the costliest first.
    pub lines: Vec<Line>,
    /// Members of types, wherever they are touched.
    pub fields: Vec<Field>,
    /// Types.
    pub types: Vec<Type>,
    /// Objects: by allocating call and call path, global variable, or stack variable.
    pub objects: Vec<ObjectRow>,
    /// Functions whose text holds the accesses.
    pub functions: Vec<Function>,
    /// Threads.
    pub threads: Vec<Thread>,
}

/// What was recorded.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// The trace directory.
    pub directory: String,
    /// The command as typed.
    pub command: Vec<String>,
    /// Whether everything that was recorded could be read.
    pub complete: bool,
    /// Traced processes.
    pub processes: usize,
    /// Traced threads.
    pub threads: usize,
    /// Sentences about what is missing, and how the program ended if not well.
    pub notes: Vec<String>,
    /// Where recording was off for a while: what part of the program all numbers are of, and how far they may be off.
    pub sample: Option<Sample>,
}

/// What part of a program was recorded. All counts of the report are those of that part.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The duty cycle; `None` if recording was switched in another way, and the part is not chosen at random.
    pub burst: Option<Burst>,
    /// Stretches in which recording was on.
    pub runs: usize,
    /// Part of the threads' time that they cover, 0 to 1.
    pub time_share: f64,
    /// Part of the accesses, 0 to 1, if threads go on in between as in them; recording slows a program down, so the upper
    /// end of what it may be. `None` without a duty cycle.
    pub access_share: Option<Estimated>,
    /// Cache levels, innermost first.
    pub levels: Vec<SampledLevel>,
}

/// A duty cycle.
#[derive(Clone, Debug, Serialize)]
pub struct Burst {
    /// Seconds for which recording is on.
    pub on_seconds: f64,
    /// Seconds from one beginning to the next.
    pub period_seconds: f64,
}

/// An estimate from a sample.
#[derive(Clone, Debug, Serialize)]
pub struct Estimated {
    /// Its value.
    pub value: f64,
    /// Its standard error, from the differences between bursts; `None` if there are less than two, or no duty cycle.
    pub standard_error: Option<f64>,
}

/// The misses of a level in a sample, as parts of all accesses, 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct SampledLevel {
    /// What the machine calls it.
    pub name: String,
    /// As simulated, with caches that keep over gaps what they held.
    pub miss_ratio: Estimated,
    /// The least it can be, whatever caches held behind gaps; `None` if other rules than exact LRU were simulated.
    pub least: Option<f64>,
    /// The most.
    pub most: Option<f64>,
}

/// The simulated machine.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Short name.
    pub name: String,
    /// One line.
    pub description: String,
    /// Cores.
    pub cores: u32,
    /// Cycles until memory answers.
    pub memory_latency_cycles: u32,
    /// Caches, innermost first.
    pub levels: Vec<Level>,
}

/// One level of cache, all its caches together.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// What the machine calls it: the key used in `misses`. A name that comes twice gets a number.
    pub name: String,
    /// Bytes of one cache.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Cores that share one.
    pub shared_by: u32,
    /// Cycles until it answers.
    pub latency_cycles: u32,
    /// Reads that asked it.
    pub reads: u64,
    /// Writes that asked it.
    pub writes: u64,
    /// Reads it could not answer.
    pub read_misses: u64,
    /// Writes it could not answer.
    pub write_misses: u64,
    /// Dirty lines that went outwards past it.
    pub write_backs: u64,
}

/// Counts of some accesses. A range (`memcpy`) counts once for each cache line it touches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// All of them.
    pub accesses: u64,
    /// Reads.
    pub reads: u64,
    /// Writes, atomic updates included.
    pub writes: u64,
    /// Accesses that a level could not answer.
    pub misses: ByLevel<u64>,
    /// Modelled cycles beyond the first level's latency: an upper bound, since misses overlap.
    pub stall_cycles: u64,
    /// Their part of the whole program's, 0 to 1.
    pub stall_share: f64,
    /// How far these may be off; only where the trace is a sample in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_errors: Option<StandardErrors>,
}

/// Standard errors of the numbers of the same names, each in the unit of its number. Those of counts are of what a part of the
/// program with as many accesses as the sample has may have instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StandardErrors {
    /// Of all accesses.
    pub accesses: f64,
    /// Of the misses of each level.
    pub misses: ByLevel<f64>,
    /// Of the misses as parts of the accesses, 0 to 1; `None` where the row was met in one burst alone.
    pub miss_ratios: Option<ByLevel<f64>>,
    /// Of the modelled cycles.
    pub stall_cycles: f64,
    /// Of their part.
    pub stall_share: f64,
}

/// Something of each level, innermost first; in JSON an object with the levels' names as keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByLevel<T>(pub Vec<(Arc<str>, T)>);

impl<T: Copy + Default> ByLevel<T> {
    /// Of the level with this index, 0 the innermost.
    pub fn of(&self, level: usize) -> T {
        self.0.get(level).map_or_else(T::default, |(_, value)| *value)
    }
}

impl<T: Serialize> Serialize for ByLevel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&**name, value)))
    }
}

/// Parts of the executed accesses, 0 to 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Shares {
    /// Accesses that the parts are of.
    pub accesses: u64,
    /// With a source line.
    pub line: f64,
    /// With the line of a neighbouring instruction only (contained in `line`).
    pub approximate_line: f64,
    /// With a variable or a type.
    pub variable_or_type: f64,
    /// With a member path. Scalars and plain arrays rightly have none.
    pub member: f64,
    /// To an object whose allocation, symbol or stack frame is known.
    pub object: f64,
    /// Objects allocated on the heap.
    pub allocations: u64,
    /// Of those, with an element type from the allocation.
    pub typed_allocations: f64,
    /// Of those, with an element type from the accesses to them alone.
    pub typed_by_use: f64,
    /// By how the names were found: `source`, `debug`, `tbaa`, `partial`, `none`.
    pub by_evidence: BTreeMap<&'static str, f64>,
}

/// A source position.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Position {
    /// Path as the compiler saw it.
    pub file: Option<String>,
    /// Line; `None` when unknown.
    pub line: Option<u32>,
    /// Function whose text holds the line, demangled.
    pub function: String,
    /// The same, mangled.
    pub linkage_name: String,
    /// Where the line is a library's: the nearest line outside libraries that it was inlined into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<Box<Position>>,
}

/// What is touched.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Data {
    /// Type that holds the member, or of the object.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Member path, array indices as `[]`.
    pub member: Option<String>,
    /// Variable through which it is reached.
    pub variable: Option<String>,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Which analysis found it.
    pub analysis: &'static str,
    /// The data.
    #[serde(flatten)]
    pub data: Data,
    /// The line.
    #[serde(flatten)]
    pub position: Position,
    /// The accesses there.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Other lines of the same function that touch the same type, the costliest first.
    pub also: Vec<Line>,
    /// Part of all modelled stall cycles, 0 to 1, with those lines.
    pub whole_share: f64,
    /// Its standard error; only where the trace is a sample in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_share_standard_error: Option<f64>,
    /// By how much it is larger than that of the next finding; only where the trace is a sample in bursts, and not of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Estimated>,
    /// The objects touched, the costliest first.
    pub objects: Vec<ObjectRow>,
    /// What the addresses come out of: `chased`, `loaded` or `computed`.
    pub dependence: Option<&'static str>,
    /// How much of the type the code around the line uses.
    pub density: Option<Density>,
    /// A change of layout, where the evidence is plain.
    pub suggestion: Option<Suggestion>,
}

/// How much of each object of a type is used.
#[derive(Clone, Debug, Serialize)]
pub struct Density {
    /// The type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size.
    pub type_bytes: u64,
    /// Bytes of the members that are used.
    pub used_bytes: u64,
    /// Those members, the most used first.
    pub members: Vec<String>,
}

/// A change of layout.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Suggestion {
    /// Keep the members apart from the rest of the type.
    Separate {
        /// The type.
        #[serde(rename = "type")]
        ty: String,
        /// The members.
        members: Vec<String>,
    },
}

/// What is touched, at which line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The data.
    #[serde(flatten)]
    pub data: Data,
    /// The line.
    #[serde(flatten)]
    pub position: Position,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// A member of a type.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// The member.
    #[serde(flatten)]
    pub data: Data,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// A type.
#[derive(Clone, Debug, Serialize)]
pub struct Type {
    /// Its name.
    #[serde(rename = "type")]
    pub ty: String,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// A class of objects and its accesses.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectRow {
    /// The objects.
    #[serde(flatten)]
    pub object: Object,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// A class of objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Object {
    /// Where they live.
    #[serde(flatten)]
    pub home: Home,
    /// Element type.
    pub element: Option<String>,
    /// Whether the allocation did not say it, but more than half of the accesses to the objects do.
    pub element_by_use: bool,
    /// Objects made.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Where objects live.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Home {
    /// Allocated outside instrumented code, or before the recorder was there.
    Unknown,
    /// Allocated by one call on one call path.
    Heap {
        /// The allocating call.
        allocated_at: Position,
        /// Functions on the stack, the innermost first, demangled, without parameters; a library's functions in
        /// front of the program's are left out.
        path: Vec<String>,
        /// Whether these are all that were recorded of it; false if it was allocated while recording was off, when
        /// only the allocating function is known.
        path_complete: bool,
    },
    /// A global or static variable.
    Global {
        /// Its symbol, demangled.
        symbol: String,
        /// File name of the image.
        image: String,
    },
    /// On the stack.
    Stack {
        /// The function.
        function: String,
        /// The variable, where it is known.
        variable: Option<String>,
    },
}

/// A function.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Demangled.
    pub function: String,
    /// Mangled.
    pub linkage_name: String,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Index over the whole trace.
    pub thread: u32,
    /// Index of its process.
    pub process: u32,
    /// The kernel's ids.
    pub pid: u32,
    /// The thread's.
    pub tid: u32,
    /// The core whose caches it used.
    pub core: u32,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
}
