//! Source lines with the numbers of their accesses.

use serde::Serialize;

use super::{LevelCauses, Numbers, Recording, Simulated};

/// Lines of a program's sources, each with the counts of its accesses.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// The recording.
    pub trace: Recording,
    /// The simulated machine.
    pub machine: Simulated,
    /// All accesses of the run.
    pub total: Numbers,
    /// Lines have the causes of their misses.
    pub has_causes: bool,
    /// Functions or files, the costliest first.
    pub parts: Vec<ListedPart>,
    /// Functions that are left out because each costs too little.
    pub left_out: usize,
}

/// The lines of a function, or of a file.
#[derive(Clone, Debug, Serialize)]
pub struct ListedPart {
    /// Path of the file as the compiler saw it.
    pub file: Option<String>,
    /// The function whose lines these are, demangled; `None` if the lines are those of the whole file.
    pub function: Option<String>,
    /// The same, mangled.
    pub linkage_name: Option<String>,
    /// The sum of its accesses, including those without a line. Errors of sums are not known.
    pub numbers: Numbers,
    /// Modelled cycles: instructions up to the accesses, waiting, and first touches.
    pub cycles: f64,
    /// Their part of the run's, 0 to 1.
    pub share: f64,
    /// Functions whose instructions are listed below the lines; empty if instructions were not
    /// requested.
    pub code: Vec<ListedCode>,
    /// Lines in the order of the file: those that are accessed, and their neighbours.
    pub lines: Vec<ListedLine>,
    /// The reason why there is no text, if so.
    pub no_text: Option<String>,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct ListedLine {
    /// Its number, from 1; `None` for the accesses of a function that have no line.
    pub line: Option<u32>,
    /// Its text; `None` if it cannot be shown.
    pub text: Option<String>,
    /// The sum of its accesses; `None` if it has none.
    pub numbers: Option<Numbers>,
    /// Modelled cycles, as of the part; 0 without accesses.
    pub cycles: f64,
    /// Why its accesses missed: cache levels, innermost first; empty where that is not known.
    pub causes: Vec<LevelCauses>,
    /// Names of the data that it touches, the costliest first.
    pub data: Vec<super::Data>,
    /// Instructions of the line, by function and address; empty if they were not requested.
    pub instructions: Vec<ListedInstruction>,
}

/// A function whose instructions are listed.
#[derive(Clone, Debug, Serialize)]
pub struct ListedCode {
    /// The function, demangled.
    pub function: String,
    /// The version of it: `plain`, compiled without memlode; `dormant`, the side of a recorded function that records nothing;
    /// `recording`, where it has no other side.
    pub version: super::Word,
}

/// An instruction.
#[derive(Clone, Debug, Serialize)]
pub struct ListedInstruction {
    /// The function in whose code it stands, demangled.
    pub function: String,
    /// Its address, as the file has it.
    pub address: u64,
    /// Its text, in Intel's syntax.
    pub text: String,
    /// Precision of its accesses; `None` if none of them could be the line's.
    pub counted: Option<Precision>,
    /// Its accesses, where they are known exactly.
    pub numbers: Option<Numbers>,
}

/// Precision of the accesses of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// No other instruction has the line, column, calls, kind and size of this access of the source.
    Exact,
    /// Other instructions share them, so only the line's sum is known.
    Line,
}
