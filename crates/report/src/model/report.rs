//! The contents of a report.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use memlode_machine::Provenance;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Access, ConstantMember, Data, Detail, Everything, Finding, Function, Note, Object, Sample, Thread,
    Transfers, Type, Word,
};

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The recording.
    pub trace: Recording,
    /// The simulated machine, and the counts of its caches.
    pub machine: Simulated,
    /// All accesses.
    pub total: Row<Everything>,
    /// The shares of accesses that have a name.
    pub coverage: Shares,
    /// Findings, the costliest first.
    pub findings: Vec<Finding>,
    /// Data and the line that touches it; like the other tables, the costliest first.
    pub lines: Vec<Row<Access>>,
    /// Rows by member of a type, or by variable or array without members, over all lines.
    pub data: Vec<Row<Data>>,
    /// Rows by member of a type, over all lines.
    pub fields: Vec<Row<Data>>,
    /// Types.
    pub types: Vec<Row<Type>>,
    /// Objects: by allocating call and call path, global variable, or stack variable.
    pub objects: Vec<Row<Object>>,
    /// Functions whose text holds the accesses.
    pub functions: Vec<Row<Function>>,
    /// Threads.
    pub threads: Vec<Row<Thread>>,
    /// Losses of threads to lines that they take from each other; `None` where that is not known, or there is one.
    pub sharing: Option<Transfers>,
    /// Accesses that the memory of another node served, where memory has nodes.
    pub remote: Option<u64>,
    /// Instructions that the accesses stand among; none where nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Modelled cycles of the run, as `whatif` and `diff` have them: instructions, waiting, fresh memory
    /// with the kernel's work for it, and losses of threads to each other.
    pub run_cycles: f64,
    /// Edits that `memlode advise` found to be worth it on the whole run, the best first; none where
    /// it was not asked. They are put beside a report when it is shown.
    #[serde(skip)]
    pub advised: Vec<AdvisedEdit>,
}

/// Edits that are worth it.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvisedEdit {
    /// The edits in their short form, which are made together.
    pub edits: Vec<String>,
    /// The part of the run's cycles that they gain.
    pub gain: f64,
    /// The data and the line that gain most.
    pub at: Option<Access>,
    /// Members that they take away although code reads them, since they had one value.
    pub constants: Vec<ConstantMember>,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row<S> {
    /// The subject of its numbers.
    #[serde(flatten)]
    pub subject: S,
    /// The counts.
    #[serde(flatten)]
    pub numbers: Numbers,
    /// Why its accesses missed, if the simulation was a detailed one.
    #[serde(flatten)]
    pub detail: Option<Detail>,
}

/// A recording: its command and its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The trace directory.
    pub directory: String,
    /// The command as typed.
    pub command: Vec<String>,
    /// True if everything that was recorded could be read.
    pub complete: bool,
    /// Traced processes.
    pub processes: usize,
    /// Traced threads.
    pub threads: usize,
    /// Notes on missing data, and on the program's end if it was abnormal.
    pub notes: Vec<Note>,
    /// The part of the program that all numbers are of, and their errors, where recording was off for a while.
    pub sample: Option<Sample>,
}

/// The simulated machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulated {
    /// Short name.
    pub name: String,
    /// One line.
    pub description: String,
    /// Cores.
    pub cores: u32,
    /// Cycles until memory serves a load.
    pub memory_latency_cycles: u32,
    /// The confidence in the latencies.
    pub latencies: Provenance,
    /// The first twelve hexadecimal digits of the SHA-256 of the machine file; none without a file.
    pub file_hash: Option<String>,
    /// Caches, innermost first.
    pub levels: Vec<Level>,
}

/// One level of cache, all its caches together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Level {
    /// The machine's name for it: the key used in `misses`. A name that comes twice gets a number.
    pub name: String,
    /// Bytes of one cache.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Cores that share one.
    pub shared_by: u32,
    /// Cycles until it serves a load.
    pub latency_cycles: u32,
    /// Reads that looked it up.
    pub reads: u64,
    /// Writes that looked it up.
    pub writes: u64,
    /// Reads that missed it.
    pub read_misses: u64,
    /// Writes that missed it.
    pub write_misses: u64,
    /// Dirty lines that it passed to the next level.
    pub write_backs: u64,
}

/// Counts of some accesses. A range (`memcpy`) counts once for each cache line it touches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// All of them.
    pub accesses: u64,
    /// Reads.
    pub reads: u64,
    /// Writes, atomic updates included.
    pub writes: u64,
    /// Accesses that missed a level.
    pub misses: ByLevel<u64>,
    /// Modelled cycles beyond the first level's latency: an upper bound, since misses overlap.
    pub stall_cycles: u64,
    /// Their part of the whole program's, 0 to 1.
    pub stall_share: f64,
    /// Cycles that they cost by the cost model, which tables and findings are ranked by.
    pub wait: Wait,
    /// Their part of all waiting, 0 to 1.
    pub wait_share: f64,
    /// The standard errors of these; only where the trace is a sample in bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_errors: Option<StandardErrors>,
}

impl Numbers {
    /// Adds the numbers of other accesses. The errors of the sum are not known.
    pub fn add(&mut self, other: &Numbers) {
        self.accesses = self.accesses.saturating_add(other.accesses);
        self.reads = self.reads.saturating_add(other.reads);
        self.writes = self.writes.saturating_add(other.writes);
        self.misses.add(&other.misses);
        self.stall_cycles = self.stall_cycles.saturating_add(other.stall_cycles);
        self.stall_share += other.stall_share;
        self.wait.add(&other.wait);
        self.wait_share += other.wait_share;
        self.standard_errors = None;
    }

    /// The sum of several.
    pub fn sum<'n>(all: impl Iterator<Item = &'n Numbers>) -> Numbers {
        all.fold(Numbers::default(), |mut sum, numbers| {
            sum.add(numbers);
            sum
        })
    }
}

impl Wait {
    /// Adds the cost of other accesses.
    pub fn add(&mut self, other: &Wait) {
        let sums = [
            (&mut self.cycles, other.cycles),
            (&mut self.stored, other.stored),
            (&mut self.streamed, other.streamed),
            (&mut self.chained, other.chained),
            (&mut self.overlapping, other.overlapping),
            (&mut self.first_touch_cycles, other.first_touch_cycles),
            (&mut self.instruction_cycles, other.instruction_cycles),
        ];
        // Tenths of cycles stay what they are.
        sums.into_iter().for_each(|(sum, more)| *sum = ((*sum + more) * 10.0).round() / 10.0);
    }
}

/// The cost of accesses by the cost model, in cycles of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Waiting for data: the sum of the next four.
    pub cycles: f64,
    /// Cycles of stores.
    pub stored: f64,
    /// Cycles of loads of lines that can have been fetched ahead.
    pub streamed: f64,
    /// Cycles of loads that wait for the one before.
    pub chained: f64,
    /// Cycles of loads that can wait together.
    pub overlapping: f64,
    /// For the first touches of lines in fresh memory; not part of `cycles`.
    pub first_touch_cycles: f64,
    /// Cycles of the instructions up to the accesses; not part of `cycles`. 0 where they are
    /// unknown.
    pub instruction_cycles: f64,
}

/// Standard errors of the numbers of the same names, each in the unit of its number. For counts:
/// how much the count would vary between parts of the program with as many accesses as the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StandardErrors {
    /// The error of all accesses.
    pub accesses: f64,
    /// The error of the misses of each level.
    pub misses: ByLevel<f64>,
    /// The error of the misses as parts of the accesses, 0 to 1; `None` where the row was found in one burst alone.
    pub miss_ratios: Option<ByLevel<f64>>,
    /// The error of the modelled cycles.
    pub stall_cycles: f64,
    /// The error of their part.
    pub stall_share: f64,
    /// The error of the part of all waiting.
    pub wait_share: f64,
}

/// Something of each level, innermost first; in JSON an object with the levels' names as keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByLevel<T>(pub Vec<(Arc<str>, T)>);

impl<T: Copy + Default> ByLevel<T> {
    /// Returns that of the level with this index, 0 the innermost.
    pub fn of(&self, level: usize) -> T {
        self.0.get(level).map_or_else(T::default, |(_, value)| *value)
    }
}

impl ByLevel<u64> {
    /// Adds other counts of the levels, by name.
    fn add(&mut self, other: &ByLevel<u64>) {
        for (name, more) in &other.0 {
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum = sum.saturating_add(*more),
                None => self.0.push((name.clone(), *more)),
            }
        }
    }
}

impl<T: Serialize> Serialize for ByLevel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&**name, value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByLevel<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LevelVisitor(PhantomData))
    }
}

/// Reads levels in the order in which they stand.
struct LevelVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LevelVisitor<T> {
    type Value = ByLevel<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the levels' names as keys")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ByLevel<T>, M::Error> {
        let mut levels = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            levels.push((name.into(), value));
        }
        Ok(ByLevel(levels))
    }
}

/// Parts of the executed accesses, 0 to 1.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// The part of the accesses to an object whose allocation, symbol or stack frame is known.
    pub object: f64,
    /// Objects allocated on the heap.
    pub allocations: u64,
    /// The share of those with an element type from the allocation.
    pub typed_allocations: f64,
    /// The share of those with an element type from the accesses to them alone.
    pub typed_by_use: f64,
    /// Keyed by how the names were found: `source`, `debug`, `tbaa`, `partial`, `none`.
    pub by_evidence: BTreeMap<Word, f64>,
}
