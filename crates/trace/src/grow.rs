//! A trace of which more comes, as far as a reader knows it.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::event::{ProcessId, ThreadId};
use crate::flatten::{Code, Flattener};
use crate::format::ChunkHeader;
use crate::index::ChunkRef;
use crate::log::Event;
use crate::manifest::Manifest;
use crate::module::{Module, ModuleImage};
use crate::read::{Threads, Trace};
use crate::sites::SiteTable;

/// A trace that is still being written: it adds the bytes of its files as they come, and is a
/// [`Trace`] of everything so far.
pub struct GrowingTrace {
    trace: Trace,
    threads: Threads,
    flattener: Flattener,
}

/// Meanings of the words of chunks, at some time. Cheap to copy.
#[derive(Clone)]
pub struct Meanings {
    pub(crate) codes: Vec<Option<Arc<Code>>>,
    pub(crate) sites: Arc<SiteTable>,
}

impl GrowingTrace {
    /// A trace with a directory's name of which nothing has come.
    pub fn new(directory: &Path) -> GrowingTrace {
        GrowingTrace {
            trace: Trace::empty(directory, Manifest::new(Default::default())),
            threads: Threads::default(),
            flattener: Flattener::default(),
        }
    }

    /// Takes up lines of the file of events.
    pub fn events(&mut self, bytes: &[u8]) {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if let Ok(event) = serde_json::from_slice::<Event>(line) {
                self.trace.follow(event, &mut self.threads);
            }
        }
    }

    /// Takes up the next module's file. Chunks need it only after it has come.
    pub fn module(&mut self, bytes: &[u8]) {
        // The writer made it out of this module a moment ago.
        let module = Module::from_file(self.trace.directory(), bytes);
        let (code, image) = match module {
            Ok(mut module) => {
                module.image.globals.sort_by_key(|global| global.address);
                (Some(Arc::new(self.flattener.add(&module))), module.image)
            }
            Err(_) => (None, ModuleImage::default()),
        };
        self.trace.codes.push(code);
        self.trace.modules.push(image);
        self.trace.sites = Arc::new(self.flattener.table());
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// If it is no manifest.
    pub fn manifest(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.trace.manifest =
            serde_json::from_slice(bytes).map_err(|error| Error::damaged(self.trace.directory(), error))?;
        Ok(())
    }

    /// A thread, by its process and its number there.
    pub fn thread(&mut self, process: u32, thread: u32) -> ThreadId {
        ThreadId(self.threads.number(process, thread) as u32)
    }

    /// The chunk of a header that came with this many bytes of payload; counts it for its thread.
    pub fn arrives(&mut self, header: ChunkHeader, payload_bytes: usize) -> ChunkRef {
        let thread = self.thread(header.process, header.thread);
        let known = &mut self.threads.in_order[thread.0 as usize];
        known.chunks += 1;
        known.bytes += (ChunkHeader::BYTES + payload_bytes) as u64;
        ChunkRef { process: ProcessId(header.process), thread, payload_at: 0, header }
    }

    /// Appends a chunk to [`Trace::chunks`].
    pub fn push(&mut self, chunk: ChunkRef) {
        self.trace.chunks.push(chunk);
    }

    /// Its chunks that were pushed.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.trace.chunks
    }

    /// Returns the tables with which the chunks so far are decoded.
    pub fn meanings(&self) -> Meanings {
        Meanings { codes: self.trace.codes.clone(), sites: self.trace.sites.clone() }
    }

    /// Returns the trace so far.
    pub fn trace(&mut self) -> &Trace {
        self.trace.threads.clone_from(&self.threads.in_order);
        &self.trace
    }

    /// Takes the trace so far, and leaves an empty one.
    pub fn take(&mut self) -> Trace {
        self.trace();
        std::mem::replace(self, GrowingTrace::new(Path::new(""))).trace
    }
}
