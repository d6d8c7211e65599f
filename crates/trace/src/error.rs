//! Errors of traces.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace, or a part of it, could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is not a trace directory.
    #[error("{path} is not a memlode trace: {why}", path = .path.display())]
    NotATrace {
        /// The path that was given.
        path: PathBuf,
        /// The part that was missing.
        why: String,
    },
    /// It holds samples, and every access is needed.
    #[error(
        "{path} holds samples, and this needs every access: build the program with `memlode cc`, and record it with \
         `memlode run -- PROGRAM`",
        path = .path.display()
    )]
    Sampled {
        /// The directory.
        path: PathBuf,
    },
    /// It holds every access, and samples are needed.
    #[error("{path} holds every access, and no samples", path = .path.display())]
    NotSampled {
        /// The directory.
        path: PathBuf,
    },
    /// Written by a later memlode.
    #[error(
        "{path} has format version {found}, this memlode reads up to version {supported}; read it with a newer memlode",
        path = .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u64,
        /// Newest version known here.
        supported: u64,
    },
    /// The bytes contradict the format.
    #[error("{path}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A sentence.
        what: String,
    },
    /// The directory to write to already holds something else.
    #[error("{path} exists and {what}; choose another directory", path = .path.display())]
    Occupied {
        /// The path that was given.
        path: PathBuf,
        /// Its contents.
        what: &'static str,
        /// True if it holds a trace, which may be replaced.
        by_trace: bool,
    },
    /// The store may not hold more.
    #[error("{path} may hold {limit} bytes, and they are used up", path = .path.display())]
    Full {
        /// The directory of the trace.
        path: PathBuf,
        /// Bytes that it may hold.
        limit: u64,
    },
    /// The other end of a connection.
    #[error("{address}: {what}")]
    Remote {
        /// Its address.
        address: String,
        /// A sentence.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.to_string() }
    }
}
