//! Lines of a program that was sampled.

use memlode_sample::PlaceSamples;
use serde::Serialize;

/// Lines of a program's sources, each with its samples.
#[derive(Clone, Debug, Serialize)]
pub struct SampledListing {
    /// The thing that was sampled: a command, a process or a file.
    pub subject: String,
    /// Events that were sampled; none where it is the clock.
    pub events: Vec<String>,
    /// Shares are of time; else of samples of another kind.
    pub is_time: bool,
    /// All samples of the program.
    pub total: PlaceSamples,
    /// Functions or files, those with the largest share first.
    pub parts: Vec<SampledPart>,
    /// Functions that are left out because each has too small a share.
    pub left_out: usize,
}

/// The lines of a function, or of a file.
#[derive(Clone, Debug, Serialize)]
pub struct SampledPart {
    /// Path of the file as the compiler saw it; `None` if it is not known.
    pub file: Option<String>,
    /// The function whose lines these are, demangled; `None` if the lines are those of the whole file.
    pub function: Option<String>,
    /// The same, mangled.
    pub linkage_name: Option<String>,
    /// All samples of it, including those without a line.
    pub samples: PlaceSamples,
    /// Lines in the order of the file: those with samples, and their neighbours.
    pub lines: Vec<SampledListedLine>,
    /// The reason why there is no text, if so.
    pub no_text: Option<String>,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct SampledListedLine {
    /// Its number, from 1; `None` for the samples of a function that have no line.
    pub line: Option<u32>,
    /// Its text; `None` if it cannot be shown.
    pub text: Option<String>,
    /// Its samples; `None` if it has none.
    pub samples: Option<PlaceSamples>,
    /// Names of the data that it touches, those with the largest share first.
    pub data: Vec<super::Data>,
    /// Instructions of the line, by function and address; empty if they were not requested.
    pub instructions: Vec<SampledListedInstruction>,
}

/// An instruction, with the samples that are exactly its own.
#[derive(Clone, Debug, Serialize)]
pub struct SampledListedInstruction {
    /// The function in whose code it stands, demangled.
    pub function: String,
    /// Its address, as the file has it.
    pub address: u64,
    /// Its text, in Intel's syntax.
    pub text: String,
    /// Its samples; `None` if it has none.
    pub samples: Option<PlaceSamples>,
}
