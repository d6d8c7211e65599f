//! A report on samples, with names: data for people and programs.

use serde::Serialize;

/// A number of samples, and the part of all that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleShare {
    /// Samples.
    pub samples: u64,
    /// The part of all samples, 0 to 1.
    pub share: f64,
    /// Distance from the share within which the part of the time lies in 95 of 100 recordings.
    pub error: f64,
}

impl SampleShare {
    /// A part of all samples.
    pub fn of(samples: u64, all: u64) -> SampleShare {
        // Half of Wilson's interval: it is right near 0 and 1, too.
        const Z: f64 = 1.96;
        if all == 0 {
            return SampleShare::default();
        }
        let (n, share) = (all as f64, samples as f64 / all as f64);
        let spread = (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        SampleShare { samples, share, error: Z / (1.0 + Z * Z / n) * spread }
    }
}

/// The time at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledLine {
    /// The source file, as the compiler wrote it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function whose text has the line, as linkers know it.
    pub function: String,
    /// The functions that it was inlined into, the nearest first.
    pub inlined_into: Vec<String>,
    /// The data that most of its samples wait for, if that is known.
    pub data: Option<String>,
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
    /// The time.
    #[serde(flatten)]
    pub time: SampleShare,
}

impl SampledData {
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
    /// Has a line.
    pub line: SampleShare,
    /// Is at an instruction that touches memory.
    pub memory: SampleShare,
    /// Is at one whose data has a variable or a type.
    pub typed: SampleShare,
    /// Is at one whose data has a member.
    pub member: SampleShare,
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

/// All that samples say of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleReport {
    /// The thing that was sampled: a command, a process or a file.
    pub subject: String,
    /// Events that were sampled; none where it is the clock.
    pub events: Vec<String>,
    /// Seconds that were watched; 0 if it is not known.
    pub seconds: f64,
    /// Nanoseconds of a thread's CPU time between two samples; 0 if it is not known.
    pub period_ns: u64,
    /// Samples of the program.
    pub samples: u64,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_shrink_with_the_root_of_samples_and_never_vanish() {
        let half = SampleShare::of(5_000, 10_000);
        assert!((half.error - 0.0098).abs() < 0.0001, "{half:?}");
        assert!((SampleShare::of(50, 100).error / half.error - 10.0).abs() < 0.3);
        let all = SampleShare::of(100, 100);
        assert!(all.share == 1.0 && all.error > 0.015, "{all:?}");
        assert_eq!(SampleShare::of(0, 0), SampleShare::default());
    }
}
