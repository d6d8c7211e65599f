//! A report on samples, with names: data for people and programs.

use std::collections::BTreeMap;

use memlode_symbols::typing::TypedData;
use serde::Serialize;

use crate::data_source::{DataLevel, DataSource};
use crate::share::{SampleShare, SourceCount};

/// Sources of the data of samples, and their latencies, from the processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledCost {
    /// Samples that have a source of their data.
    pub samples: u64,
    /// Samples that have the latency of the access.
    pub timed: u64,
    /// Mean cycles of these; `None` if there are none.
    pub cycles: Option<f64>,
    /// The part of the cycles of all samples, 0 to 1; none if there are none.
    pub share: Option<f64>,
    /// The sources, the most frequent first.
    pub sources: Vec<SampledSource>,
}

/// One source of data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampledSource {
    /// The cache or memory.
    pub level: DataLevel,
    /// Another core had changed the line.
    pub is_modified: bool,
    /// Stores, not loads.
    pub is_store: bool,
    /// Samples.
    pub samples: u64,
    /// Samples whose address was in no translation buffer.
    pub tlb_misses: u64,
    /// Samples of locked accesses.
    pub locked: u64,
    /// Loads that waited for a store to an address that looked alike.
    pub blocked: u64,
    /// Mean cycles of the samples that have a latency; `None` if there are none.
    pub cycles: Option<f64>,
}

impl SampledCost {
    /// Sums up sources; all samples together took this many cycles. `None` if there are none.
    pub(crate) fn of(counts: &BTreeMap<DataSource, SourceCount>, all_cycles: u128) -> Option<SampledCost> {
        let mut whole = SourceCount::default();
        let mut sources: Vec<(SampledSource, SourceCount)> = Vec::new();
        for (source, count) in counts {
            whole.add(*count);
            let DataSource { level, is_modified, is_store, .. } = *source;
            let key = |found: &SampledSource| (found.level, found.is_modified, found.is_store);
            let known = sources.iter().position(|(found, _)| key(found) == (level, is_modified, is_store));
            let at = known.unwrap_or_else(|| {
                let (samples, cycles) = (0, None);
                let (tlb_misses, locked, blocked) = (0, 0, 0);
                let new = SampledSource {
                    level,
                    is_modified,
                    is_store,
                    samples,
                    tlb_misses,
                    locked,
                    blocked,
                    cycles,
                };
                sources.push((new, SourceCount::default()));
                sources.len() - 1
            });
            let (found, sum) = &mut sources[at];
            sum.add(*count);
            let if_so = |is_so: bool| if is_so { count.samples } else { 0 };
            found.tlb_misses += if_so(source.misses_tlb);
            found.locked += if_so(source.is_locked);
            found.blocked += if_so(source.is_blocked);
        }
        let mut sources: Vec<SampledSource> = sources
            .into_iter()
            .map(|(found, sum)| SampledSource { samples: sum.samples, cycles: sum.mean(), ..found })
            .collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.samples));
        (whole.samples > 0).then(|| SampledCost {
            samples: whole.samples,
            timed: whole.timed,
            cycles: whole.mean(),
            share: (all_cycles > 0).then(|| whole.cycles as f64 / all_cycles as f64),
            sources,
        })
    }
}

/// Functions that called each other and then the one with a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledCaller {
    /// Their names as linkers know them, the nearest first; inlined ones, too.
    pub functions: Vec<String>,
    /// The part of the line's time that they led to, 0 to 1.
    pub share: f64,
}

/// A call on the way to an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct AllocationCall {
    /// The function that calls, as linkers know it; empty if it is not known.
    pub function: String,
    /// The source file, as the compiler wrote it; empty if it is not known.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
}

/// Calls that allocated memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct SampledAllocation {
    /// The innermost call that is no library's, and those behind it; inlined ones, too.
    pub calls: Vec<AllocationCall>,
    /// The memory was mapped, and is no block of the heap.
    pub is_mapped: bool,
    /// The process had this memory before the recording: its blocks are older, or too small to be
    /// noted.
    pub is_older: bool,
}

/// The time at blocks that the same calls allocated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledBlocks {
    /// These calls.
    pub allocated: SampledAllocation,
    /// Blocks that samples lie in.
    pub blocks: usize,
    /// Bytes of these.
    pub bytes: u64,
    /// The data that most of the samples wait for, if that is known.
    pub data: Option<String>,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

/// The time at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledLine {
    /// The source file, as the compiler wrote it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function whose text has the line, by its linkage name.
    pub function: String,
    /// The functions that it was inlined into, the nearest first.
    pub inlined_into: Vec<String>,
    /// The ways by which it was come to, the most frequent first, as far as frame pointers lead.
    pub callers: Vec<SampledCaller>,
    /// The data that most of its samples wait for, if that is known.
    pub data: Option<String>,
    /// Sources of its data, if the samples have them.
    pub cost: Option<SampledCost>,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

/// The time at a function's own lines, inlined into others or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledFunction {
    /// The function, as linkers know it.
    pub function: String,
    /// The program or library.
    pub image: String,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

/// The time at instructions that touch one member, or one variable or kind of object without members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledData {
    /// The type of the object.
    pub kind: Option<String>,
    /// The member.
    pub member: Option<String>,
    /// The variable, where it is one of the stack or static.
    pub variable: Option<String>,
    /// The lines with most of its samples: file, line, function.
    pub lines: Vec<(String, u32, String)>,
    /// The part of its samples, of those with known addresses, that touch the stack.
    pub on_stack: Option<f64>,
    /// The calls that allocated the block with most of its samples, if that is known.
    pub allocated: Option<SampledAllocation>,
    /// Sources of it, if the samples have them.
    pub cost: Option<SampledCost>,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

impl SampledData {
    /// Data of which nothing but the name is known.
    pub(crate) fn named(data: TypedData) -> SampledData {
        let TypedData { kind, member, variable } = data;
        let time = SampleShare::default();
        let (lines, on_stack, allocated, cost) = (Vec::new(), None, None, None);
        SampledData { kind, member, variable, lines, on_stack, allocated, cost, time }
    }

    /// "arc.state", "table", "double".
    pub fn name(&self) -> String {
        match (&self.kind, &self.member, &self.variable) {
            (Some(kind), Some(member), _) => format!("{kind}.{member}"),
            (None, Some(member), Some(variable)) => format!("{variable}.{member}"),
            (_, None, Some(variable)) => variable.clone(),
            (Some(kind), None, None) => kind.clone(),
            (None, Some(member), None) => member.clone(),
            (None, None, None) => String::new(),
        }
    }
}

/// The parts of the time that have names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleCoverage {
    /// The share of time at instructions with a line.
    pub line: SampleShare,
    /// Is at an instruction that touches memory.
    pub memory: SampleShare,
    /// The share of time at instructions whose data has a variable or a type.
    pub typed: SampleShare,
    /// The share of time at instructions whose data has a member.
    pub member: SampleShare,
    /// The share of time at instructions whose data has the names that memlode's compiler wrote down.
    pub compiled: SampleShare,
    /// The share of time at instructions that save or restore registers and return addresses: these can have no type.
    pub stack: SampleShare,
}

/// The time at memory instructions whose data has no type, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UntypedShare {
    /// The reason: a word of [`memlode_symbols::typing::Untyped`].
    pub why: String,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

/// The time in a program or library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledImage {
    /// Its file.
    pub path: String,
    /// It has debug information.
    pub has_debug: bool,
    /// Why it could not be read.
    pub unread: Option<String>,
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

/// All results of the samples of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleReport {
    /// The thing that was sampled: a command, a process or a file.
    pub subject: String,
    /// Events that were sampled; none where it is the clock.
    pub events: Vec<String>,
    /// Shares are those of time; else those of the events.
    pub is_time: bool,
    /// Seconds of the observation; 0 if unknown.
    pub seconds: f64,
    /// Nanoseconds of a thread's CPU time between two samples; 0 if it is not known.
    pub period_ns: u64,
    /// Samples of the program.
    pub samples: u64,
    /// Samples of one weight that would say as much: fewer than there are, if they stand for different numbers of events.
    pub effective: f64,
    /// Samples of the kernel, which are in no share.
    pub kernel: u64,
    /// Samples that the kernel could not hand over.
    pub lost: u64,
    /// Times that the kernel took no samples for a while.
    pub throttled: u64,
    /// Threads that were met.
    pub threads: usize,
    /// Instructions from the one that waits to the one that a sample names.
    pub skid: u8,
    /// Sources of the data of all samples, if they have them.
    pub cost: Option<SampledCost>,
    /// The parts that have names.
    pub coverage: SampleCoverage,
    /// Why the data of memory instructions has no type, the most frequent reason first.
    pub untyped: Vec<UntypedShare>,
    /// Programs and libraries, the slowest first.
    pub images: Vec<SampledImage>,
    /// Data, that which is waited for longest first.
    pub data: Vec<SampledData>,
    /// Lines, the slowest first.
    pub lines: Vec<SampledLine>,
    /// Functions, the slowest first.
    pub functions: Vec<SampledFunction>,
    /// Blocks by the calls that allocated them, those that are waited for longest first.
    pub blocks: Vec<SampledBlocks>,
    /// Bytes of the smallest blocks that were noted; none if the program noted none.
    pub least_block: Option<u64>,
    /// Changes of blocks that could not be noted.
    pub lost_blocks: u64,
}
