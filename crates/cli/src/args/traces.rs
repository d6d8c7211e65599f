//! Which trace a command speaks of.

use std::fs::{self, DirEntry};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_files::Folder;
use memlode_trace::Trace;
use memlode_trace::manifest::FORMAT;
use memlode_trace::write::TraceFile;

use crate::term;

/// The trace that is meant.
#[derive(Debug, Parser)]
pub struct TraceArgs {
    /// The trace directory that `run` or `record` made [default: the newest one here]
    #[arg(value_name = "DIR")]
    trace: Option<PathBuf>,
}

impl TraceArgs {
    /// The trace in a directory, or the newest one here.
    pub fn of(trace: Option<PathBuf>) -> TraceArgs {
        TraceArgs { trace }
    }

    /// Returns its directory. Reports which one, if none is named.
    pub fn find(&self) -> Result<PathBuf> {
        if let Some(directory) = &self.trace {
            return Ok(directory.clone());
        }
        let Some(newest) = newest(Path::new("."))? else {
            bail!(
                "there is no trace in this directory: name one, or record one with `memlode run -- PROGRAM`"
            );
        };
        term::line(&format!("{} is the newest trace here", newest.display()));
        Ok(newest)
    }

    /// Opens it.
    pub fn open(&self) -> Result<Trace> {
        Ok(Trace::open(&self.find()?)?)
    }
}

/// The trace among the entries of a directory whose manifest was written last.
fn newest(directory: &Path) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let dated = entries.flatten().filter_map(|entry| Some((written(&entry)?, entry.file_name())));
    Ok(dated.max().map(|(_, name)| PathBuf::from(name)))
}

/// When the manifest of a trace was written; nothing if it is no trace.
fn written(entry: &DirEntry) -> Option<SystemTime> {
    let manifest = Folder::open(&entry.path()).ok()?.file(&TraceFile::Manifest.path()).ok()?;
    let written = manifest.metadata().ok()?.modified().ok()?;
    // Others have files of this name, too.
    let mut head = Vec::new();
    manifest.take(256).read_to_end(&mut head).ok()?;
    String::from_utf8_lossy(&head).contains(FORMAT).then_some(written)
}
