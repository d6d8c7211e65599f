//! Why a collector could not start or finish.

use std::io;
use std::path::PathBuf;

/// Why a collector could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No socket for programs to connect to.
    #[error(
        "cannot open a socket at {path}: {source}; set TMPDIR to a directory with a short path that you may write to",
        path = .path.display()
    )]
    Socket {
        /// The path where it was tried.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The trace directory.
    #[error(transparent)]
    Trace(#[from] memlode_trace::error::Error),
    /// Something the system could not spare.
    #[error("the collector cannot {what}: {source}")]
    System {
        /// The operation that was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}
