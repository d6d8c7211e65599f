//! The trace directory, written.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::EncodedChunk;
use crate::error::Error;
use crate::log::{Event, seal};
use crate::manifest::{self, Manifest, ManifestInfo, Summary, ThreadTotals};
use crate::module::{Module, ModuleId, ModuleImage};
use crate::names;

/// Files kept open; a program with more threads than this has them reopened.
const OPEN_FILES: usize = 128;

/// Writes one trace directory. Everything handed to it is in the file system when the call returns, so that a trace
/// whose writer is killed lacks at most what was not handed over.
pub struct TraceWriter {
    directory: PathBuf,
    manifest: Manifest,
    events: File,
    modules: FxHashMap<ModuleImageKey, (ModuleId, Arc<Module>)>,
    threads: BTreeMap<(u32, u32), ThreadTotals>,
    files: FxHashMap<(u32, u32), File>,
}

/// Two loads of the same file are one module.
type ModuleImageKey = (String, Vec<u8>, u32);

impl TraceWriter {
    /// Creates the directory. An existing trace is replaced only if told so, anything else that is not an empty directory never.
    pub fn create(directory: &Path, info: ManifestInfo, replace: bool) -> Result<TraceWriter, Error> {
        clear(directory, replace)?;
        for directory in [directory, &directory.join(names::THREADS), &directory.join(names::MODULES)] {
            fs::create_dir_all(directory).map_err(Error::io(directory))?;
        }
        let manifest = Manifest::new(info);
        manifest.write(directory)?;
        let path = directory.join(names::EVENTS);
        let events =
            OpenOptions::new().create_new(true).append(true).open(&path).map_err(Error::io(&path))?;
        Ok(TraceWriter {
            directory: directory.to_owned(),
            manifest,
            events,
            modules: FxHashMap::default(),
            threads: BTreeMap::new(),
            files: FxHashMap::default(),
        })
    }

    /// Writes an image's file, unless the same image was added before.
    pub fn add_module(&mut self, image: ModuleImage) -> Result<(ModuleId, Arc<Module>), Error> {
        let mut contents = crc32fast::Hasher::new();
        contents.update(&image.anchors.bytes);
        contents.update(&image.tables.bytes);
        let key = (image.path.clone(), image.build_id.clone(), contents.finalize());
        if let Some((id, module)) = self.modules.get(&key) {
            return Ok((*id, module.clone()));
        }
        let path = image.path.clone();
        let module = Module::parse(image).map_err(|error| Error::damaged(Path::new(&path), error))?;
        let id = ModuleId(self.modules.len() as u32);
        Module::write(module.image(), &self.directory.join(names::module(id.0)))?;
        let module = Arc::new(module);
        self.modules.insert(key, (id, module.clone()));
        Ok((id, module))
    }

    /// Appends a line to `events.ndjson`.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        if let Event::ThreadStart { process, thread, .. } = *event {
            self.totals(process, thread);
        }
        if let Event::ThreadEnd { process, thread, .. } = *event {
            self.files.remove(&(process, thread));
        }
        let path = self.directory.join(names::EVENTS);
        let json = serde_json::to_string(event).map_err(|error| Error::damaged(&path, error))?;
        self.events.write_all((seal(&json) + "\n").as_bytes()).map_err(Error::io(&path))?;
        self.manifest.events += 1;
        Ok(())
    }

    /// Appends a chunk to its thread's file. When that fails, a full disk say, the file is cut back to its last whole chunk.
    pub fn append(&mut self, process: u32, thread: u32, chunk: EncodedChunk) -> Result<(), Error> {
        let EncodedChunk { mut header, payload } = chunk;
        let totals = *self.totals(process, thread);
        (header.process, header.thread, header.sequence) = (process, thread, totals.chunks);
        header.header_crc32 = 0;
        header.header_crc32 = crc32fast::hash(&header.to_bytes());
        let bytes = [&header.to_bytes()[..], &payload].concat();

        let path = self.directory.join(names::thread(process, thread));
        let file = self.file(process, thread, &path)?;
        if let Err(error) = file.write_all(&bytes) {
            // Best effort: a reader skips a partial chunk as well.
            let _ = file.set_len(totals.bytes);
            return Err(Error::Io { path, source: error });
        }
        let totals = self.totals(process, thread);
        totals.chunks += 1;
        totals.bytes += bytes.len() as u64;
        totals.raw_words += u64::from(header.raw_words);
        totals.accesses += header.accesses;
        Ok(())
    }

    /// Totals so far, by process and thread.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadTotals> {
        self.threads.values()
    }

    /// Completes the trace.
    pub fn finish(mut self, summary: Summary) -> Result<(), Error> {
        self.manifest.complete = true;
        self.manifest.summary = Some(summary);
        self.manifest.threads = self.threads.values().copied().collect();
        self.manifest.modules = self.modules.len() as u32;
        self.manifest.write(&self.directory)
    }

    fn totals(&mut self, process: u32, thread: u32) -> &mut ThreadTotals {
        let fresh = ThreadTotals { process, thread, ..Default::default() };
        self.threads.entry((process, thread)).or_insert(fresh)
    }

    fn file(&mut self, process: u32, thread: u32, path: &Path) -> Result<&mut File, Error> {
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(&(process, thread)) {
            self.files.clear();
        }
        Ok(match self.files.entry((process, thread)) {
            std::collections::hash_map::Entry::Occupied(file) => file.into_mut(),
            std::collections::hash_map::Entry::Vacant(room) => {
                let file =
                    OpenOptions::new().create(true).append(true).open(path).map_err(Error::io(path))?;
                room.insert(file)
            }
        })
    }
}

/// Makes the path free for a new trace, or refuses.
fn clear(directory: &Path, replace: bool) -> Result<(), Error> {
    let occupied = |what| Err(Error::Occupied { path: directory.to_owned(), what });
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return occupied("is not a directory");
        }
        entries => entries.map_err(Error::io(directory))?,
    };
    if entries.count() == 0 {
        return Ok(());
    }
    match manifest::is_ours(directory) {
        false => occupied("is not a memlode trace"),
        true if !replace => occupied("already holds a trace"),
        true => {
            // Only what a trace consists of: a file the user put beside it survives, and stops nothing.
            for part in [names::THREADS, names::MODULES] {
                let part = directory.join(part);
                fs::remove_dir_all(&part).or_else(missing_is_fine).map_err(Error::io(&part))?;
            }
            for part in [names::EVENTS, manifest::FILE] {
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
