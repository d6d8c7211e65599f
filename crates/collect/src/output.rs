//! Destinations of the streams.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memlode_trace::error::Error;
use memlode_trace::log::Event;
use memlode_trace::manifest::{ManifestInfo, Summary};
use memlode_trace::module::{Module, ModuleId, ModuleImage};
use memlode_trace::write::{DirectoryStore, EncodedChunk, Form, Store, TraceWriter};

/// The destination of the words.
pub enum Destination {
    /// A trace.
    Trace {
        /// The store that takes them.
        store: Box<dyn Store>,
        /// The command, and where it was run.
        info: ManifestInfo,
    },
    /// Words are counted and dropped, unread: the cost of recording alone.
    Discard,
}

impl Destination {
    /// A trace directory, which must not yet be there unless a trace in it is to be replaced.
    pub fn directory(path: &Path, replace: bool, info: ManifestInfo) -> Result<Destination, Error> {
        Ok(Destination::Trace { store: Box::new(DirectoryStore::create(path, replace)?), info })
    }
}

/// The destination while recording. Once writing fails it takes no more, but the program goes on:
/// words are dropped and counted, and chunks that were written stay readable.
pub struct Output {
    writer: Mutex<Option<TraceWriter>>,
    discards: bool,
    /// The consumer of the chunks needs the bounds of later ones.
    live: bool,
    form: Form,
    failed: AtomicBool,
    failure: Mutex<Option<String>>,
    notes: Mutex<BTreeSet<String>>,
    /// Files of code that processes had mapped, and that has no site tables.
    plain: Mutex<BTreeSet<PathBuf>>,
    /// Counts so far.
    pub counters: Counters,
}

/// Counted while recording.
#[derive(Default)]
pub struct Counters {
    pub words: AtomicU64,
    pub accesses: AtomicU64,
    pub bytes: AtomicU64,
    pub processes: AtomicU64,
    pub threads: AtomicU64,
    pub torn_segments: AtomicU64,
    pub unfinished: AtomicU64,
    pub unknown_words: AtomicU64,
    pub unwritten_words: AtomicU64,
    pub unregistered_threads: AtomicU64,
    pub given_up: AtomicU64,
    pub refused_processes: AtomicU64,
}

/// Files of code without site tables that a manifest names, at most.
const MOST_PLAIN: usize = 256;

/// Adds to a counter.
pub fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// Data behind a lock stay usable when another thread panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    /// Opens the destination.
    pub fn open(destination: Destination) -> Result<Output, Error> {
        let mut writer = match destination {
            Destination::Trace { store, info } => Some(TraceWriter::new(store, info)?),
            Destination::Discard => None,
        };
        Ok(Output {
            discards: writer.is_none(),
            form: writer.as_ref().map_or(Form::default(), TraceWriter::form),
            live: writer.as_mut().is_some_and(|writer| writer.bounds().is_some()),
            writer: Mutex::new(writer),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            notes: Mutex::default(),
            plain: Mutex::default(),
            counters: Counters::default(),
        })
    }

    /// Returns whether the words are dropped unread.
    pub fn discards(&self) -> bool {
        self.discards
    }

    /// Returns whether a consumer waits for the chunks: they must not be late, and need
    /// [`Output::bound`].
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Returns how the words of chunks are to be.
    pub fn form(&self) -> Form {
        self.form
    }

    /// No chunk of a stream that was not appended yet begins before `stamp`; `None` when there will
    /// be none.
    pub fn bound(&self, process: u32, thread: u32, stream: u8, stamp: Option<u64>) {
        self.write(|writer| {
            writer.bounds().into_iter().for_each(|store| store.bound(process, thread, stream, stamp));
            Ok(())
        });
    }

    /// No stream for which [`Output::bound`] was not called yet begins before `stamp`.
    pub fn all_known(&self, stamp: u64) {
        self.write(|writer| {
            writer.bounds().into_iter().for_each(|store| store.all_known(stamp));
            Ok(())
        });
    }

    /// Does something with the writer, `None` if there is none or it failed, now or before.
    fn write<T>(&self, action: impl FnOnce(&mut TraceWriter) -> Result<T, Error>) -> Option<T> {
        if self.has_failed() {
            return None;
        }
        match action(lock(&self.writer).as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                lock(&self.failure).get_or_insert(error.to_string());
                self.failed.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Appends to `events.ndjson`.
    pub fn event(&self, event: &Event) {
        self.write(|writer| writer.event(event));
    }

    /// Adds an image. An image with damaged tables is no failure of the destination: its words will
    /// be unknown.
    pub fn add_module(&self, image: ModuleImage) -> Option<(ModuleId, Arc<Module>)> {
        let mut damaged = None;
        let added = self.write(|writer| match writer.add_module(image) {
            Err(Error::Damaged { path, what }) => {
                damaged = Some(format!("{}: {what}; it is not recorded", path.display()));
                Ok(None)
            }
            other => other.map(Some),
        });
        if let Some(note) = damaged {
            self.note(note);
        }
        added.flatten()
    }

    /// Appends a chunk to a thread's file.
    pub fn append(&self, process: u32, thread: u32, stream: u8, chunk: EncodedChunk) {
        let (words, accesses, bytes) = (u64::from(chunk.raw_words()), chunk.expanded(), chunk.bytes());
        let written = self.write(|writer| {
            writer.append(process, thread, chunk.of_stream(stream))?;
            Ok(())
        });
        match written {
            Some(()) => {
                count(&self.counters.accesses, accesses);
                count(&self.counters.bytes, bytes);
            }
            None => count(&self.counters.unwritten_words, words),
        }
    }

    /// Counts a segment if it lacked words. Once writing has failed, the rest is not examined
    /// closely.
    pub fn count_torn(&self, is_torn: bool) {
        count(&self.counters.torn_segments, u64::from(is_torn && !self.has_failed()));
    }

    /// A sentence for the user about something that is missing.
    pub fn note(&self, note: String) {
        lock(&self.notes).insert(note);
    }

    /// Adds files of code that nothing is recorded of, as far as there is room in the manifest.
    pub fn add_plain(&self, files: BTreeSet<PathBuf>) {
        let mut plain = lock(&self.plain);
        plain.extend(files);
        while plain.len() > MOST_PLAIN {
            plain.pop_last();
        }
    }

    /// Returns the files of code that nothing is recorded of, in alphabetical order.
    pub fn plain(&self) -> Vec<String> {
        lock(&self.plain).iter().map(|file| file.to_string_lossy().into_owned()).collect()
    }

    /// Returns whether writing has stopped.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Why writing stopped, if it did.
    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// The notes so far.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).iter().cloned().collect()
    }

    /// Completes the trace; after a failure that leaves it incomplete.
    pub fn finish(&self, summary: Summary) -> Result<(), Error> {
        match lock(&self.writer).take() {
            Some(writer) => writer.finish(summary),
            None => Ok(()),
        }
    }
}
