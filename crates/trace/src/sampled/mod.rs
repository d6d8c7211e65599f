//! Traces of samples (SPEC §4.5): a few accesses, and the other instructions that a program was met at, each with what
//! the kernel and the processor said of it.
//!
//! Sites are made from the instructions of programs that nobody rebuilt. Nothing in such a trace says what was done
//! between two samples, so nothing can be simulated on it: [`Trace::open`](crate::Trace::open) refuses it.

mod chunk;
mod columns;
mod instructions;
mod recording;

use serde::{Deserialize, Serialize};

use crate::format::untyped;

pub(crate) use chunk::{ChunkSamples, Contents, samples as chunk_samples};
pub use instructions::SampledCode;
pub(crate) use instructions::{read, section};
pub use recording::{KnownBlocks, KnownPaths};

/// The circumstances of samples, in a trace's manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledInfo {
    /// The thing that was sampled: a command, a process or a file.
    pub subject: String,
    /// Events that were sampled; none where it is the clock.
    #[serde(default)]
    pub events: Vec<String>,
    /// The samples are of time, not of events of another kind.
    pub is_time: bool,
    /// Nanoseconds of CPU time between two samples; 0 if it is not known.
    #[serde(default)]
    pub period_ns: u64,
    /// Instructions from the one that waited to the one that the kernel named. Samples have the former.
    #[serde(default)]
    pub skid: u8,
    /// Nanoseconds that were watched, by the clock on the wall; 0 if it is not known.
    #[serde(default)]
    pub watched_ns: u64,
    /// Samples of the kernel itself, which are left out.
    #[serde(default)]
    pub kernel: u64,
    /// Samples that the kernel could not hand over.
    #[serde(default)]
    pub lost: u64,
    /// Times that the kernel took no samples for a while.
    #[serde(default)]
    pub throttled: u64,
    /// Bytes of the smallest blocks of memory that were noted; none if no program noted any.
    #[serde(default)]
    pub least_block: Option<u64>,
    /// Changes of blocks that could not be noted.
    #[serde(default)]
    pub lost_blocks: u64,
}

/// A file of code that was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledModule {
    /// Its path; empty for memory that no file is mapped to.
    pub path: String,
    /// Its GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// It has debug information.
    pub has_debug: bool,
    /// Why it could not be read.
    pub unread: Option<String>,
    /// Instructions that were sampled, or from which functions were called.
    pub instructions: Vec<SampledInstruction>,
}

/// An instruction of a program, and the names of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledInstruction {
    /// Its link-time address; of a file that could not be read, its place in that.
    pub address: u64,
    /// The function whose machine code it is, as linkers know it; empty if none is known.
    pub symbol: String,
    /// The line, and the calls that it was inlined through, the innermost first.
    pub frames: Vec<InstructionFrame>,
    /// The memory that it touches, if any.
    pub access: Option<InstructionAccess>,
    /// Why its data has neither type nor variable, `untyped.*` of the format.
    pub untyped: u8,
    /// The variable that is touched.
    pub variable: Option<String>,
    /// The type that holds the member, or of the object.
    pub ty: Option<String>,
    /// The member.
    pub member: Option<String>,
    /// These names are those that memlode's compiler wrote down, and not found by debug information.
    pub is_compiled: bool,
}

impl SampledInstruction {
    /// The function that its line is in, as linkers know it; empty if none is known.
    pub fn function(&self) -> &str {
        let inner = self.frames.first().map(|frame| &frame.function[..]).filter(|name| !name.is_empty());
        inner.unwrap_or(&self.symbol)
    }
}

/// The reason for which data has no type (`untyped.*` of the format) as a word: that of `Untyped` in `memlode-symbols`.
/// `None`: it has one, or there is no data.
pub fn untyped_word(why: u8) -> Option<&'static str> {
    let word = match why {
        untyped::TYPED | untyped::NO_MEMORY => return None,
        untyped::NO_DEBUG_INFORMATION => "NoDebugInformation",
        untyped::NO_FUNCTION => "NoFunction",
        untyped::NO_INSTRUCTION => "NoInstruction",
        untyped::UNKNOWN_POINTER => "UnknownPointer",
        untyped::UNTYPED_POINTER => "UntypedPointer",
        untyped::FRAME => "Frame",
        untyped::OTHER_MEMORY => "OtherMemory",
        untyped::STACK => "Stack",
        _ => "Static",
    };
    Some(word)
}

/// A place in a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionFrame {
    /// The function whose text has the line, as linkers know it; empty if it is not known.
    pub function: String,
    /// The file, as the compiler wrote it; empty if it is not known.
    pub file: String,
    /// From 1; 0 if it is not known.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
}

/// Memory that an instruction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstructionAccess {
    /// It writes.
    pub is_store: bool,
    /// Bytes, 1 or more.
    pub bytes: u32,
}

/// An instruction of a recording: indices into [`SampledRecording::modules`] and [`SampledModule::instructions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionId {
    /// The module.
    pub module: u32,
    /// The instruction in it.
    pub instruction: u32,
}

/// A call, and the calls that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPath {
    /// The call behind it: an earlier index into [`SampledRecording::paths`].
    pub parent: Option<u32>,
    /// The instruction that calls.
    pub call: InstructionId,
}

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredSample {
    /// Its thread: an index into [`SampledRecording::threads`].
    pub thread: u32,
    /// Nanoseconds of the kernel's clock.
    pub time: u64,
    /// The instruction.
    pub at: InstructionId,
    /// Events, or nanoseconds, that it stands for; 0 if that is not known.
    pub weight: u64,
    /// The first byte that was touched, if it is known.
    pub address: Option<u64>,
    /// The address lies in the thread's stack, if that is known.
    pub on_stack: Option<bool>,
    /// Cycles that the access took.
    pub latency: Option<u64>,
    /// The source of the data: the kernel's `perf_mem_data_src`.
    pub source: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
    /// Bytes of the data's page.
    pub page_bytes: Option<u64>,
    /// The calls that led to it: an index into [`SampledRecording::paths`].
    pub path: Option<u32>,
    /// The block that the address lies in: an index into [`SampledRecording::blocks`].
    pub block: Option<u32>,
}

/// A block of memory that a program took, in which samples lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SampledBlock {
    /// Its first byte.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// Nanoseconds of the kernel's clock when it was taken. 0: this is memory from before the recording, where blocks are
    /// older, or too small to be noted.
    pub begun: u64,
    /// The memory was mapped, and is no block of the heap.
    pub is_mapped: bool,
    /// The calls that took it: an index into [`SampledRecording::paths`].
    pub path: Option<u32>,
}

/// A thread that was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledThread {
    /// The kernel's number of its process.
    pub pid: u32,
    /// The kernel's number of it.
    pub tid: u32,
}

/// All that a trace of samples holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledRecording {
    /// The circumstances.
    pub info: SampledInfo,
    /// Files of code.
    pub modules: Vec<SampledModule>,
    /// Threads, those of a process one behind the other.
    pub threads: Vec<SampledThread>,
    /// Calls that led to samples and to their blocks, in the order in which [`SampledRecording::samples`] need them.
    pub paths: Vec<CallPath>,
    /// Blocks of samples, in the order in which [`SampledRecording::samples`] need them.
    pub blocks: Vec<SampledBlock>,
    /// Samples: those of a thread together, in the order of threads, and in the order of time.
    pub samples: Vec<StoredSample>,
}

impl SampledRecording {
    /// An instruction.
    pub fn instruction(&self, at: InstructionId) -> &SampledInstruction {
        &self.modules[at.module as usize].instructions[at.instruction as usize]
    }

    /// The calls that led to a sample, the innermost first.
    pub fn callers(&self, sample: &StoredSample) -> impl Iterator<Item = &SampledInstruction> {
        self.calls(sample.path)
    }

    /// The calls of a path, the innermost first.
    pub fn calls(&self, path: Option<u32>) -> impl Iterator<Item = &SampledInstruction> {
        let of = |path: Option<u32>| path.map(|path| &self.paths[path as usize]);
        std::iter::successors(of(path), move |path| of(path.parent)).map(|path| self.instruction(path.call))
    }
}
