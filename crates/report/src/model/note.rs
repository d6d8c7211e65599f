//! Notes that a reader must know before trusting the numbers.

use serde::Serialize;

/// One reason, and how often it stands in the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRecorded {
    /// The kind of place, as a name.
    pub reason: &'static str,
    /// Places in the code, however often they ran.
    pub places: u64,
}

/// Something that a trace lacks, or how its program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Note {
    /// Part of the program was compiled with a filter.
    Filtered,
    /// Code of the program touches memory and is not recorded.
    NotRecorded {
        /// Numbers of places in the code of the images that were loaded, by reason.
        places: Vec<NotRecorded>,
    },
    /// Code was loaded that was not built by memlode. The usual libraries of a language are not among it.
    Plain {
        /// Its files.
        files: Vec<String>,
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
        /// As the recorder wrote it down.
        to: String,
    },
    /// Only some accesses are counted; all went through the caches.
    Part {
        /// Which ones, as they were asked for: `10M..20M`, `1s..2s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        between: Option<String>,
        /// In these functions, if there are any.
        functions: Vec<String>,
        /// In these files, if there are any.
        files: Vec<String>,
        /// The threads concerned, if there are any.
        threads: Vec<String>,
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
        /// As the recorder tells it.
        loss: String,
    },
    /// A signal ended the program.
    Signal {
        /// Its number.
        signal: i32,
    },
}
