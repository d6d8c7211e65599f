//! A trace as a directory of files.

use std::collections::hash_map::Entry;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use memlode_files::Folder;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::store::{Store, TraceFile};
use crate::error::Error;
use crate::{manifest, names};

/// Files kept open; a program with more threads than this has them reopened.
const OPEN_FILES: usize = 128;

/// A trace shows where a program keeps its data, so only its user may read it.
const PRIVATE_DIRECTORY: u32 = 0o700;

/// Writes a trace directory. Everything handed over is in the file system when a call returns.
pub struct DirectoryStore {
    /// The directory, locked as long as this lives: two traces in one would be none.
    folder: Folder,
    files: FxHashMap<TraceFile, File>,
    /// Files that were appended to, and so are ours.
    begun: FxHashSet<TraceFile>,
    /// Bytes that may still be written, and how many they were.
    room: u64,
    limit: u64,
}

impl DirectoryStore {
    /// Creates the directory. An existing trace is replaced only if requested. A directory that is
    /// neither empty nor a trace is never replaced, nor one that another store uses.
    pub fn create(directory: &Path, replace: bool) -> Result<DirectoryStore, Error> {
        if directory.exists() && !directory.is_dir() {
            let (path, what) = (directory.to_owned(), "is not a directory");
            return Err(Error::Occupied { path, what, by_trace: false });
        }
        make(directory)?;
        let folder = Folder::open(directory).map_err(Error::io(directory))?;
        // A file system without locks leaves it at what is there.
        if flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let what = "another memlode is writing its trace there";
            return Err(Error::Occupied { path: directory.to_owned(), what, by_trace: false });
        }
        clear(directory, replace)?;
        for part in [names::THREADS, names::MODULES] {
            folder.make(part.as_ref()).map_err(Error::io(&directory.join(part)))?;
        }
        Ok(DirectoryStore {
            folder,
            files: FxHashMap::default(),
            begun: FxHashSet::default(),
            room: u64::MAX,
            limit: u64::MAX,
        })
    }

    /// Creates a directory that was not there before; `None` if it was. Of several that try, one
    /// succeeds.
    pub fn create_new(directory: &Path) -> Result<Option<DirectoryStore>, Error> {
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make(parent)?;
        }
        match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(directory) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            made => made
                .map_err(Error::io(directory))
                .and_then(|()| DirectoryStore::create(directory, false).map(Some)),
        }
    }

    /// Refuses to hold more than this many bytes.
    pub fn limited_to(self, bytes: u64) -> DirectoryStore {
        DirectoryStore { room: bytes, limit: bytes, ..self }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn take_room(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let full = || Error::Full { path: self.path().to_owned(), limit: self.limit };
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or_else(full)?;
        Ok(())
    }

    fn file(&mut self, file: TraceFile, path: &Path) -> Result<&mut File, Error> {
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(&file) {
            self.files.clear();
        }
        Ok(match self.files.entry(file) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(room) => {
                let opened = match self.begun.contains(&file) {
                    true => self.folder.append(&file.path()),
                    false => self.folder.create(&file.path()),
                };
                let opened = room.insert(opened.map_err(Error::io(path))?);
                self.begun.insert(file);
                opened
            }
        })
    }
}

impl Store for DirectoryStore {
    fn append(&mut self, file: TraceFile, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.take_room(bytes)?;
        let path = self.path().join(file.path());
        let file = self.file(file, &path)?;
        if let Err(source) = file.write_all(bytes) {
            // Best effort: a reader skips a partial chunk as well.
            let _ = file.set_len(at);
            return Err(unwritten(path, source));
        }
        Ok(())
    }

    fn put(&mut self, file: TraceFile, bytes: &[u8]) -> Result<(), Error> {
        // The manifest is what tells that the others are incomplete: it always has room.
        if file != TraceFile::Manifest {
            self.take_room(bytes)?;
        }
        let mut written = self.folder.write(&file.path(), bytes);
        let is_full = written
            .as_ref()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded));
        // On a full disk there is the room that the first manifest took.
        if file == TraceFile::Manifest && is_full {
            written = self.folder.overwrite(&file.path(), bytes);
        }
        written.map_err(|source| unwritten(self.path().join(file.path()), source))
    }

    fn close(&mut self, file: TraceFile) {
        self.files.remove(&file);
    }
}

/// Makes a directory, and those above it.
fn make(directory: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(directory);
    made.map_err(Error::io(directory))
}

fn unwritten(path: PathBuf, source: std::io::Error) -> Error {
    let source = match source.kind() {
        ErrorKind::FileTooLarge => std::io::Error::new(
            ErrorKind::FileTooLarge,
            "no file may become larger (`ulimit -f`, or the file system)",
        ),
        _ => source,
    };
    Error::Io { path, source }
}

/// Makes the path free for a new trace, or refuses.
fn clear(directory: &Path, replace: bool) -> Result<(), Error> {
    let occupied = |what| Err(Error::Occupied { path: directory.to_owned(), what, by_trace: false });
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return occupied("is not a directory");
        }
        entries => entries.map_err(Error::io(directory))?,
    };
    if fs::metadata(directory).map_err(Error::io(directory))?.permissions().mode() & 0o002 != 0 {
        // Whoever may write there may put links in the way of our files.
        return occupied("everybody may write to it");
    }
    if entries.count() == 0 {
        return Ok(());
    }
    match manifest::is_ours(directory) {
        false => occupied("is not a memlode trace"),
        true if !replace => {
            let (path, what) = (directory.to_owned(), "already holds a trace");
            Err(Error::Occupied { path, what, by_trace: true })
        }
        true => {
            // Only what a trace consists of: a file the user put beside it survives, and stops nothing.
            for part in [names::THREADS, names::MODULES] {
                let part = directory.join(part);
                fs::remove_dir_all(&part).or_else(missing_is_fine).map_err(Error::io(&part))?;
            }
            for part in [names::EVENTS, names::INDEX, manifest::FILE] {
                let part = directory.join(part);
                fs::remove_file(&part).or_else(missing_is_fine).map_err(Error::io(&part))?;
            }
            Ok(())
        }
    }
}

fn missing_is_fine(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
