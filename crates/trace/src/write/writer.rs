//! Contents of the files of a trace, wherever they go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::directory::DirectoryStore;
use super::store::{Store, TraceFile};
use super::{EncodedChunk, Form, Payload};
use crate::error::Error;
use crate::format::ChunkHeader;
use crate::log::{Event, seal};
use crate::manifest::{Manifest, ManifestInfo, Summary, ThreadTotals};
use crate::module::{Module, ModuleId, ModuleImage};

/// Writes one trace. Everything handed to it is in the store when the call returns, so a trace
/// whose writer is killed lacks at most what was not handed over.
pub struct TraceWriter {
    store: Box<dyn Store>,
    manifest: Manifest,
    events_bytes: u64,
    /// Bytes of the index; `None` once it could not be written: readers find the chunks without it.
    index_bytes: Option<u64>,
    modules: FxHashMap<ModuleImageKey, (ModuleId, Arc<Module>)>,
    threads: BTreeMap<(u32, u32), ThreadTotals>,
}

/// Two loads of the same file are one module.
type ModuleImageKey = (String, Vec<u8>, u32);

impl TraceWriter {
    /// Creates a trace directory. An existing trace is replaced only if requested, and a directory
    /// that is neither empty nor a trace never.
    pub fn create(directory: &Path, info: ManifestInfo, replace: bool) -> Result<TraceWriter, Error> {
        TraceWriter::new(Box::new(DirectoryStore::create(directory, replace)?), info)
    }

    /// Begins a trace in an empty store.
    pub fn new(mut store: Box<dyn Store>, info: ManifestInfo) -> Result<TraceWriter, Error> {
        let manifest = Manifest::new(info);
        store.put(TraceFile::Manifest, &manifest.to_bytes()?)?;
        store.append(TraceFile::Events, 0, &[])?;
        Ok(TraceWriter {
            store,
            manifest,
            events_bytes: 0,
            index_bytes: Some(0),
            modules: FxHashMap::default(),
            threads: BTreeMap::new(),
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
        self.store.put(TraceFile::Module(id.0), &module.image().to_file())?;
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
            self.store.close(TraceFile::Thread { process, thread });
        }
        let json =
            serde_json::to_string(event).map_err(|error| Error::damaged(&TraceFile::Events.path(), error))?;
        let line = seal(&json) + "\n";
        self.store.append(TraceFile::Events, self.events_bytes, line.as_bytes())?;
        self.events_bytes += line.len() as u64;
        self.manifest.events += 1;
        Ok(())
    }

    /// Appends a chunk to its thread's file. If that fails (a full disk, say), the file is cut back
    /// to its last whole chunk.
    pub fn append(&mut self, process: u32, thread: u32, chunk: EncodedChunk) -> Result<(), Error> {
        let EncodedChunk { mut header, payload, .. } = chunk;
        let file_bytes = (ChunkHeader::BYTES + payload.bytes()) as u64;
        let totals = *self.totals(process, thread);
        (header.process, header.thread, header.sequence) = (process, thread, totals.chunks);
        header.header_crc32 = 0;
        header.header_crc32 = crc32fast::hash(&header.to_bytes());
        match payload {
            Payload::Packed(payload) => {
                let bytes = [&header.to_bytes()[..], &payload].concat();
                self.store.append(TraceFile::Thread { process, thread }, totals.bytes, &bytes)?;
                self.index(&header);
            }
            Payload::Plain { before, words } => self.store.replay(header, before, words)?,
        }
        let totals = self.totals(process, thread);
        totals.chunks += 1;
        totals.bytes += file_bytes;
        totals.raw_words += u64::from(header.raw_words);
        totals.accesses += header.accesses;
        Ok(())
    }

    /// Adds a chunk that is in its thread's file to the index.
    fn index(&mut self, header: &ChunkHeader) {
        let Some(bytes) = self.index_bytes else { return };
        let added = self.store.append(TraceFile::Index, bytes, &header.to_bytes());
        self.index_bytes = added.is_ok().then_some(bytes + ChunkHeader::BYTES as u64);
    }

    /// Returns how the words of chunks are to be.
    pub fn form(&self) -> Form {
        self.store.form()
    }

    /// Returns the store, if it needs the bounds of later chunks.
    pub fn bounds(&mut self) -> Option<&mut dyn Store> {
        self.store.wants_bounds().then_some(&mut *self.store as &mut dyn Store)
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
        self.store.put(TraceFile::Manifest, &self.manifest.to_bytes()?)?;
        self.store.finish()
    }

    fn totals(&mut self, process: u32, thread: u32) -> &mut ThreadTotals {
        let fresh = ThreadTotals { process, thread, ..Default::default() };
        self.threads.entry((process, thread)).or_insert(fresh)
    }
}
