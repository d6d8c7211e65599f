//! Notes that a reader must know before trusting the numbers.

use serde::{Deserialize, Serialize};

use super::Word;

/// A kind of places that touch memory and are not recorded: calls of one function, or another reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRecorded {
    /// Why it is not recorded, as a name.
    pub reason: Word,
    /// The function that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Places in the code.
    pub places: u64,
    /// Executions of them while recording was on; absent where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed: Option<u64>,
}

/// Something that a trace lacks, or how its program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Note {
    /// Part of the program was compiled with a filter.
    Filtered,
    /// Code that touches memory was executed and is not recorded.
    NotRecorded {
        /// The kinds of places, most executed first.
        places: Vec<NotRecorded>,
    },
    /// Code was loaded from outside the system's folders that was not built by memlode.
    Plain {
        /// Its files.
        files: Vec<String>,
    },
    /// An image has functions that memlode did not compile: their accesses are not recorded.
    Foreign {
        /// The file of the image.
        file: String,
        /// Number of functions.
        functions: u64,
        /// Length of their code.
        bytes: u64,
        /// Some of their names, that of the longest first.
        names: Vec<String>,
        /// The program is linked statically: functions of the C library are among them.
        has_libraries: bool,
    },
    /// Part of the program was compiled without names of variables, types and members.
    Nameless,
    /// Rules or names that were given when compiling matched nothing.
    Unmatched {
        /// Each with its file.
        rules: Vec<String>,
    },
    /// Recording was narrowed down when it was started.
    Narrowed {
        /// The end, in the recorder's words.
        to: String,
    },
    /// Only some accesses are counted; all went through the caches.
    Part {
        /// The interval, as requested: `10M..20M`, `1s..2s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        between: Option<String>,
        /// In these functions, if there are any.
        functions: Vec<String>,
        /// In these files, if there are any.
        files: Vec<String>,
        /// The threads concerned, if there are any.
        threads: Vec<String>,
    },
    /// Waits are sums of latencies, of which the report's model makes less, since misses overlap.
    SumOfLatencies {
        /// Cycles of all latencies.
        cycles: u64,
        /// Cycles of the report's wait.
        report_cycles: u64,
    },
    /// Recording did not finish.
    Unfinished,
    /// Part of the program was compiled with `--fidelity=source`.
    AsWritten,
    /// Part of the trace cannot be read.
    Damaged {
        /// Which part, and why.
        part: String,
    },
    /// A chunk could not be decoded and was left out.
    LeftOut {
        /// Which chunk, and why.
        part: String,
    },
    /// Recording was switched while the program ran.
    Switched,
    /// The recorder lost something and counted it.
    Lost {
        /// The recorder's description of the loss.
        loss: String,
    },
    /// A signal ended the program.
    Signal {
        /// Its number.
        signal: i32,
    },
}
