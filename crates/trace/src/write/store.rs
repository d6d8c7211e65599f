//! Places for the files of a trace.

use std::path::PathBuf;

use super::payload::Form;
use crate::error::Error;
use crate::format::ChunkHeader;
use crate::{manifest, names};

/// One file of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceFile {
    /// `manifest.json`
    Manifest,
    /// `events.ndjson`
    Events,
    /// `chunks.mlx`
    Index,
    /// `modules/NNNN.mlm`
    Module(u32),
    /// `threads/pPPPP-tTTTT.mlt`
    Thread {
        /// Index of the process in the trace.
        process: u32,
        /// Index of the thread in the process.
        thread: u32,
    },
}

impl TraceFile {
    /// Returns where it is in a trace directory.
    pub fn path(self) -> PathBuf {
        match self {
            TraceFile::Manifest => manifest::FILE.into(),
            TraceFile::Events => names::EVENTS.into(),
            TraceFile::Index => names::INDEX.into(),
            TraceFile::Module(module) => names::module(module).into(),
            TraceFile::Thread { process, thread } => names::thread(process, thread).into(),
        }
    }
}

/// A destination: all of them get the same bytes of the same files in the same order.
pub trait Store: Send {
    /// Appends to a file, which exists from the first time on. `at` is the number of bytes that it
    /// has: if only a part of `bytes` fits, that part is taken back.
    fn append(&mut self, file: TraceFile, at: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Makes or replaces a file as a whole: a reader finds the old one or the new one.
    fn put(&mut self, file: TraceFile, bytes: &[u8]) -> Result<(), Error>;

    /// Nothing is going to be appended to the file.
    fn close(&mut self, file: TraceFile) {
        let _ = file;
    }

    /// Returns how the words of chunks are to be. If plain, chunks come by [`Store::replay`].
    fn form(&self) -> Form {
        Form::Coded
    }

    /// Takes a chunk with plain words, and the part of its payload before them. Its header
    /// describes no payload of a file.
    ///
    /// # Errors
    /// If the store takes coded words only.
    fn replay(&mut self, header: ChunkHeader, _before: Vec<u8>, _words: Vec<u64>) -> Result<(), Error> {
        let file = TraceFile::Thread { process: header.process, thread: header.thread };
        Err(Error::damaged(&file.path(), "plain words are no part of a file"))
    }

    /// Returns whether it needs the bounds of later chunks: [`Store::bound`] and
    /// [`Store::all_known`].
    fn wants_bounds(&self) -> bool {
        false
    }

    /// No chunk of a stream that is not appended yet begins before `stamp`; `None` when there will
    /// be none.
    fn bound(&mut self, process: u32, thread: u32, stream: u8, stamp: Option<u64>) {
        let _ = (process, thread, stream, stamp);
    }

    /// No stream for which [`Store::bound`] was not called yet begins before `stamp`.
    fn all_known(&mut self, stamp: u64) {
        let _ = stamp;
    }

    /// No more data come: returns when all of them are stored.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
