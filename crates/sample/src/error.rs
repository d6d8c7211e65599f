//! Reasons for which nothing could be sampled.

use std::io;

/// Why no samples were taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The samples of this machine's timer are useless.
    #[error("{0}")]
    Machine(String),
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The process is somebody else's.
    #[error(
        "process {pid} belongs to user {owner}, and this is user {own}: sample it as that user, or as root"
    )]
    OtherUser {
        /// Its number.
        pid: u32,
        /// The user that it runs for.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// Another process reads the notes of blocks that a process makes.
    #[error("process {reader} reads the blocks of process {pid}; end it first")]
    OtherReader {
        /// The process that notes.
        pid: u32,
        /// The one that reads.
        reader: u32,
    },
    /// The kernel's setting forbids sampling.
    #[error(
        "the kernel does not let this user sample programs: /proc/sys/kernel/perf_event_paranoid is {level}, and must be \
         2 or less (`sudo sysctl kernel.perf_event_paranoid=2`)"
    )]
    Forbidden {
        /// The setting.
        level: i32,
    },
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
        let level =
            memlode_files::read_text("/proc/sys/kernel/perf_event_paranoid".as_ref(), memlode_files::SMALL)
                .ok();
        match level.and_then(|level| level.trim().parse().ok()) {
            Some(level) if level > 2 => Error::Forbidden { level },
            _ => Error::System {
                doing: "the kernel does not let this user sample programs (perf_event_open, cpu-clock); in a container, \
                        its rules for system calls must allow it",
                source,
            },
        }
    }
}
