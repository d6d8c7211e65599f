//! Answers of commands, kept beside their trace, so that a repeated question has its answer at
//! once.
//!
//! ```
//! use memlode_results::{MachineIdentity, Question};
//!
//! let machine = MachineIdentity::of("generic", &["L1d", "32 KiB"]);
//! let question = Question { command: "report".into(), machines: vec![machine], ..Question::default() };
//! // Another machine of the same name is another question.
//! let other = MachineIdentity::of("generic", &["L1d", "48 KiB"]);
//! assert_ne!(question.machines[0], other);
//! ```
//!
//! ```text
//! DIR/results/report-5f0c1e77a2b94d36.json     the command, and a hash of the question
//!
//! { "format": "memlode result", "version": 1,
//!   "question": command, options that change the answer, machines,
//!   "memlode":  version and fingerprint of the code,
//!   "traces":   for each trace the names, sizes, dates and checksum of its files,
//!   "answer":   …,
//!   "crc32":    checksum of all bytes before it }
//! ```
//!
//! An answer is used if all of that is unchanged. A copied trace has other dates: then its files
//! are read and their checksum decides. An answer may come from a stranger, and is read like all
//! files of a trace (`memlode_files`). A file is written whole and then takes its name, so if two
//! commands answer at the same time, the last one's file stays.
//!
//! Analyses in parts keep tables there, too ([`tables()`]). One that is damaged, or is of other code
//! or another trace, is made again.

mod file;
mod identity;
mod question;
mod tables;

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use memlode_trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use file::{Listed, Unusable, Why, list};
pub use question::{MachineIdentity, Question, fingerprint};
pub use tables::tables;

use file::Head;
use identity::TraceIdentity;

/// Name of the folder in a trace directory.
pub const FOLDER: &str = "results";

/// Version and fingerprint of the code that answers.
pub const MEMLODE: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("MEMLODE_SOURCES"));

/// Returns whether the environment forbids looking up and keeping answers: `MEMLODE_RESULTS=off`.
pub fn is_off() -> bool {
    std::env::var_os("MEMLODE_RESULTS").is_some_and(|value| value == "off")
}

/// A question about traces, and the place where its answer is kept: beside the first of them.
pub struct Lookup<'a> {
    question: Question,
    traces: Vec<(&'a Trace, TraceIdentity)>,
}

/// An answer that was kept.
pub struct Kept<A> {
    /// The answer.
    pub answer: A,
    /// Its file.
    pub path: PathBuf,
    /// When it was found out.
    pub answered: SystemTime,
}

impl<'a> Lookup<'a> {
    /// Asks about traces, of which there is at least one.
    ///
    /// `None` if no answer about them can be kept: a trace is not stored or not finished, or its
    /// files cannot be read.
    pub fn new(mut question: Question, traces: &[&'a Trace]) -> Option<Lookup<'a>> {
        let known = |trace: &&'a Trace| Some((*trace, TraceIdentity::of(trace)?));
        let traces: Vec<_> = traces.iter().map(known).collect::<Option<_>>()?;
        let (_, others) = traces.split_first()?;
        question.beside = others.iter().map(|(_, identity)| identity.name()).collect();
        Some(Lookup { question, traces })
    }

    /// Looks for an answer. `Ok(None)` if there is none.
    ///
    /// # Errors
    /// The reason why the file with the question's name is unusable.
    pub fn find<A: DeserializeOwned>(&self) -> Result<Option<Kept<A>>, Unusable> {
        let Some(folder) = self.traces[0].0.folder() else { return Ok(None) };
        let name = self.question.file();
        let unusable = |why| Unusable { path: folder.path().join(&name), why };
        let Some(text) = file::read(folder, &name).map_err(unusable)? else { return Ok(None) };
        let head = file::head(&text).map_err(unusable)?;
        if head.question != self.question {
            return Err(unusable(file::Why::OtherQuestion));
        }
        if head.memlode != MEMLODE {
            return Err(unusable(file::Why::OtherVersion(head.memlode)));
        }
        let is_same = head.traces.len() == self.traces.len()
            && head.traces.iter().zip(&self.traces).all(|(kept, (trace, now))| kept.is_of(trace, now));
        if !is_same {
            return Err(unusable(file::Why::OtherTrace));
        }
        let answer = file::answer(&text).map_err(unusable)?;
        Ok(Some(Kept { answer, path: folder.path().join(&name), answered: head.answered() }))
    }

    /// Keeps an answer, and replaces an earlier one. `Ok(None)` if a trace was changed in the
    /// meantime, or the answer is larger than files that are read.
    ///
    /// # Errors
    /// It returns the error of the system, such as that the directory cannot be written.
    pub fn keep(&self, answer: &impl Serialize) -> io::Result<Option<PathBuf>> {
        let mut traces = Vec::new();
        for (trace, before) in &self.traces {
            match TraceIdentity::of(trace).filter(|now| now == before) {
                Some(now) => traces.push(now.with_checksum(trace)?),
                None => return Ok(None),
            }
        }
        let Some(folder) = self.traces[0].0.folder() else { return Ok(None) };
        let head = Head::new(self.question.clone(), traces);
        file::write(folder, &self.question.file(), &head, answer)
    }
}
