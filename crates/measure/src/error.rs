//! Reasons for which nothing could be measured.

use std::path::PathBuf;

/// Why a measurement was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started.
    #[error("cannot run {program}")]
    NotStarted {
        /// The program, as it was named.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The program ended, but not with success.
    #[error(
        "`{command}` {how}, and a program that fails is not measured: --show-output shows what it says, and a program \
         that reads standard input needs --input FILE"
    )]
    Failed {
        /// The words of the command.
        command: String,
        /// "exited with status 3", or "was ended by signal 11".
        how: String,
    },
    /// The program had not ended when its time was over.
    #[error("`{command}` had not ended after {seconds} s: give a shorter input, or a longer --time-limit")]
    TooLong {
        /// The words of the command.
        command: String,
        /// The time that it had.
        seconds: f64,
    },
    /// The time that was given does not suffice for any claim.
    #[error(
        "one round of these programs takes {round_seconds:.1} s, and a claim needs {rounds} of them: give --time-limit \
         {needed_seconds:.0}s, or a shorter input"
    )]
    LimitTooShort {
        /// Seconds that one round takes.
        round_seconds: f64,
        /// The least number of rounds.
        rounds: usize,
        /// Seconds that these take.
        needed_seconds: f64,
    },
    /// It was stopped before there was a result.
    #[error("interrupted before there was a result")]
    Interrupted,
    /// A line or list that was given could not be understood.
    #[error("{0}")]
    Usage(String),
    /// The machine could not be measured.
    #[error("{0}")]
    Machine(String),
    /// A program cannot be read, or not its debug information.
    #[error(transparent)]
    Program(#[from] memlode_symbols::Error),
    /// Samples cannot be taken, or are useless.
    #[error(transparent)]
    Sampling(#[from] memlode_sample::Error),
    /// A file could not be read or written.
    #[error("cannot use {path}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("{doing}")]
    System {
        /// The operation that was attempted.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}
