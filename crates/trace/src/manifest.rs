//! `manifest.json`: what was recorded, and whether it is complete.

use std::path::Path;

use memlode_files::Folder;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::foreign;
use crate::format::{limit, version};
use crate::log::{is_sealed, seal};
use crate::sampled::SampledInfo;

/// Name of the file.
pub(crate) const FILE: &str = "manifest.json";

/// The value of `format` by which a trace directory is recognised.
pub const FORMAT: &str = "memlode trace";

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `"memlode trace"`
    pub format: String,
    /// Version of the format.
    pub version: u64,
    /// The program that wrote it, with its version.
    pub writer: String,
    /// The command that was recorded, and its surroundings.
    #[serde(flatten)]
    pub info: ManifestInfo,
    /// True if the collector finished: if not, it was killed, and data that it had not written are
    /// missing.
    pub complete: bool,
    /// Present when complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The contents of each file when complete, in order of process and thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadTotals>,
    /// Files in `modules/`, when complete.
    #[serde(default)]
    pub modules: u32,
    /// Lines in `events.ndjson`, when complete.
    #[serde(default)]
    pub events: u64,
}

/// Facts that are known when recording starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestInfo {
    /// The command as typed.
    #[serde(default)]
    pub command: Vec<String>,
    /// The directory where it was started.
    #[serde(default)]
    pub working_directory: String,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub started_unix_ms: u64,
    /// Name of the machine.
    #[serde(default)]
    pub host: String,
    /// Processor as the kernel names it.
    #[serde(default)]
    pub cpu: String,
    /// Bytes of a page.
    #[serde(default)]
    pub page_bytes: u64,
    /// The user's wish to switch recording on and off, if in bursts: see [`Manifest::burst`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// The circumstances of samples: if there are any, the trace holds these, and not every access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Box<SampledInfo>>,
    /// Sentences about which part of the program was to be recorded. Empty: all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

/// A duty cycle: recording is on for a while, then off, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Microseconds for which it is on.
    pub on_us: u64,
    /// Microseconds from one beginning to the next.
    pub period_us: u64,
}

/// Facts that are known when recording ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Milliseconds since 1970.
    pub finished_unix_ms: u64,
    /// Exit code of the command, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Speed of the time stamp counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks_per_second: Option<u64>,
    /// True if the user stopped or started recording, or changed its duty cycle, while the program
    /// ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub switched: bool,
    /// Last segments that lacked words and were dropped: one per thread that was killed, or per
    /// signal handler that was left for good, at most.
    pub torn_segments: u64,
    /// Loops, copies and fills of memory that were the last things that a killed program, a thread
    /// of an ended one, or an abandoned signal handler had begun. The first access of each counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// Words dropped because no known module explains them.
    pub unknown_words: u64,
    /// Threads that found no room in the shared memory and were not recorded.
    pub unregistered_threads: u64,
    /// Processes that went on unrecorded, because the collector had shown no sign of life for too
    /// long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_up: u64,
    /// Files of code that processes had mapped when they began or ended, and that has no site
    /// tables: nothing it does is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<String>,
    /// Sentences about anything else that is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Summary {
    /// A sentence for each thing that happened and is not in the trace.
    pub fn losses(&self) -> Vec<String> {
        let counted = [
            (
                self.torn_segments,
                "unfinished segments were discarded: threads were killed while writing, or signal handlers jumped away",
            ),
            (
                self.unfinished,
                "loops or copies had been begun last when the program was killed or ended; of each the first access counts",
            ),
            (self.unknown_words, "words were dropped because no known module explains them"),
            (self.unregistered_threads, "threads found no room in the shared memory and were not recorded"),
            (
                self.given_up,
                "processes went on unrecorded, after memlode had shown no sign of life for too long",
            ),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, what)| format!("{count} {what}")).chain(self.notes.iter().cloned()).collect()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Totals of one thread's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTotals {
    /// Index of the process.
    pub process: u32,
    /// Index in the process.
    pub thread: u32,
    /// Chunks.
    pub chunks: u32,
    /// Bytes.
    pub bytes: u64,
    /// Words of the stream.
    pub raw_words: u64,
    /// Access, range, masked and gather ops.
    pub accesses: u64,
}

impl Manifest {
    pub(crate) fn new(info: ManifestInfo) -> Self {
        Manifest {
            format: FORMAT.to_owned(),
            version: if info.sampled.is_some() { version::SAMPLED_TRACE } else { version::TRACE }.into(),
            writer: concat!("memlode ", env!("CARGO_PKG_VERSION")).to_owned(),
            info,
            complete: false,
            summary: None,
            threads: Vec::new(),
            modules: 0,
            events: 0,
        }
    }

    /// The duty cycle that was kept from beginning to end, if one was. Only then is the trace a
    /// systematic sample.
    pub fn burst(&self) -> Option<Burst> {
        self.info.burst.filter(|_| self.summary.as_ref().is_none_or(|summary| !summary.switched))
    }

    /// The file.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let json =
            serde_json::to_string_pretty(self).map_err(|error| Error::damaged(Path::new(FILE), error))?;
        Ok((seal(&json) + "\n").into_bytes())
    }

    /// Reads the manifest of a trace directory.
    pub fn read(directory: &Path) -> Result<Manifest, Error> {
        Manifest::read_and_open(directory).map(|(manifest, _)| manifest)
    }

    /// Reads the manifest of a trace directory; returns that open, too.
    pub(crate) fn read_and_open(directory: &Path) -> Result<(Manifest, Folder), Error> {
        let path = directory.join(FILE);
        let not_a_trace = |why: String| Error::NotATrace { path: directory.to_owned(), why };
        if !directory.is_dir() {
            let why = match foreign::what_it_is(directory) {
                Some(what) => what,
                None if directory.exists() => "it is not a directory".to_owned(),
                None => "there is no such directory".to_owned(),
            };
            return Err(not_a_trace(why));
        }
        let folder = Folder::open(directory).map_err(Error::io(directory))?;
        let bytes = match folder.read(FILE.as_ref(), limit::MANIFEST_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let what = foreign::what_it_is(directory);
                return Err(not_a_trace(what.unwrap_or_else(|| "it has no manifest.json".to_owned())));
            }
            read => read.map_err(Error::io(&path))?,
        };
        let text = String::from_utf8(bytes).map_err(|_| Error::damaged(&path, "is not text"))?;
        let damaged = |error| Error::damaged(&path, format!("is damaged: {error}"));
        // A newer version may have members of other types: look at the version alone first.
        let head: Head = serde_json::from_str(&text).map_err(damaged)?;
        if head.format != FORMAT {
            return Err(not_a_trace("its manifest.json is not one of memlode's".to_owned()));
        }
        if !is_sealed(&text) {
            return Err(Error::damaged(&path, "fails its checksum"));
        }
        match head.version.as_u64() {
            Some(found) if found > u64::from(version::SAMPLED_TRACE) => {
                return Err(Error::Newer { path, found, supported: version::SAMPLED_TRACE.into() });
            }
            Some(1..) => {}
            _ => return Err(Error::damaged(&path, "has no version")),
        }
        let manifest: Manifest = serde_json::from_str(&text).map_err(damaged)?;
        // Whoever takes samples for all accesses gets wrong numbers: the version alone tells older readers.
        match manifest.info.sampled.is_some() == (manifest.version == u64::from(version::SAMPLED_TRACE)) {
            true => Ok((manifest, folder)),
            false => {
                Err(Error::damaged(&path, "contradicts itself: its version is not that of what it holds"))
            }
        }
    }
}

/// The members by which a manifest is distinguished from other files, and from later versions.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: serde_json::Value,
    #[serde(default)]
    version: serde_json::Value,
}

/// Returns whether a directory was written by memlode, be its manifest damaged or newer.
pub(crate) fn is_ours(directory: &Path) -> bool {
    let text =
        Folder::open(directory).and_then(|folder| folder.read_text(FILE.as_ref(), limit::MANIFEST_BYTES));
    text.is_ok_and(|text| text.contains(FORMAT))
}
