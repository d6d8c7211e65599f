//! Reasons for which nothing could be sampled.

use std::io;

/// Why no samples were taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The samples of this machine's timer say nothing.
    #[error("{0}")]
    Machine(String),
    /// The system refused.
    #[error("{doing}")]
    System {
        /// The operation that was attempted.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// The kernel does not let this user sample.
    pub(crate) fn refused(source: io::Error) -> Error {
        Error::System {
            doing: "the kernel does not let this user sample programs (perf_event_open, cpu-clock): \
                    /proc/sys/kernel/perf_event_paranoid must be 2 or less, and a container must allow the call",
            source,
        }
    }
}
