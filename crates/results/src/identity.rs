//! The identity of a trace: names, sizes, dates and checksum of its files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use memlode_files::Folder;
use memlode_trace::Trace;
use memlode_trace::write::TraceFile;
use serde::{Deserialize, Serialize};

use crate::fingerprint;

/// A trace, as it was when an answer was computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceIdentity {
    /// A hash of the names and sizes of its files.
    sizes: String,
    /// A hash of their dates, which a copy of the trace has not.
    dates: String,
    /// The checksum of their contents, in order of their names. `None` while it is not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<u32>,
}

impl TraceIdentity {
    /// Looks at a finished trace that is stored.
    pub fn of(trace: &Trace) -> Option<TraceIdentity> {
        let folder = trace.folder().filter(|_| trace.manifest().complete)?;
        let (mut sizes, mut dates) = (String::new(), String::new());
        for name in files(folder).ok()? {
            let about = folder.file(&name).and_then(|file| file.metadata()).ok()?;
            let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            sizes += &format!("{} {}\n", name.display(), about.len());
            dates += &format!("{}\n", modified.as_nanos());
        }
        let [sizes, dates] = [sizes, dates].map(|text| fingerprint(text.as_bytes()));
        Some(TraceIdentity { sizes, dates, crc32: None })
    }

    /// A name for it as it is now, which a copy does not have.
    pub fn now(&self) -> String {
        format!("{} {}", self.sizes, self.dates)
    }

    /// A name for it that a copy has, too.
    pub fn name(&self) -> String {
        self.sizes.clone()
    }

    /// Reads all files for their checksum.
    pub fn with_checksum(self, trace: &Trace) -> io::Result<TraceIdentity> {
        Ok(TraceIdentity { crc32: checksum(trace).map(Some)?, ..self })
    }

    /// Returns whether this, which was kept, is the identity of a trace that looks like `now`.
    pub fn is_of(&self, trace: &Trace, now: &TraceIdentity) -> bool {
        let has_same_contents = || self.crc32.is_some() && checksum(trace).ok() == self.crc32;
        self.sizes == now.sizes && (self.dates == now.dates || has_same_contents())
    }
}

fn checksum(trace: &Trace) -> io::Result<u32> {
    let folder = trace.folder().ok_or(io::ErrorKind::NotFound)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    for name in files(folder)? {
        let mut file = folder.file(&name)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            }
        }
    }
    Ok(hasher.finalize())
}

/// The files of a trace, sorted; other files beside them are left out.
fn files(folder: &Folder) -> io::Result<Vec<PathBuf>> {
    let alone = [TraceFile::Manifest, TraceFile::Events, TraceFile::Index].map(TraceFile::path);
    let there = folder.names(None)?;
    let mut files: Vec<PathBuf> =
        alone.into_iter().filter(|name| there.iter().any(|entry| Path::new(entry) == name)).collect();
    for one in [TraceFile::Module(0), TraceFile::Thread { process: 0, thread: 0 }] {
        let path = one.path();
        let below = path.parent().unwrap_or(Path::new(""));
        files.extend(folder.names(Some(below))?.into_iter().map(|name| below.join(name)));
    }
    files.sort();
    Ok(files)
}
