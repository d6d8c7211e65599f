//! A trace directory, opened.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memlode_files::Folder;
use rustc_hash::FxHashMap;

use crate::decode::{Decoder, Loops};
use crate::error::Error;
use crate::event::{Batch, ProcessId, ThreadId};
use crate::flatten::{Code, Flattener};
use crate::format::{limit, version};
use crate::index::{ChunkRef, Damage, Scanner, read_index};
use crate::log::{Event, is_sealed};
use crate::manifest::Manifest;
use crate::module::{Global, Module, ModuleId, ModuleImage};
use crate::names;
use crate::sites::SiteTable;

/// A trace directory, opened for reading. Damage does not prevent opening: everything intact is
/// read, and [`Trace::damage`] lists the rest.
pub struct Trace {
    directory: PathBuf,
    /// The same, open: all its files are read through this. None of a trace that is still written.
    folder: Option<Folder>,
    pub(crate) manifest: Manifest,
    pub(crate) sites: Arc<SiteTable>,
    pub(crate) codes: Vec<Option<Arc<Code>>>,
    pub(crate) modules: Vec<ModuleImage>,
    processes: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    images: Vec<Image>,
    /// Keyed by process, module and bias: images that were not unloaded, the latest last.
    loaded: FxHashMap<(u32, u32, u64), Vec<usize>>,
    pub(crate) chunks: Vec<ChunkRef>,
    damage: Vec<Damage>,
    /// The index of a finished recording is not the one that was written: nothing is missing, for
    /// the chunks' own files were read.
    index_fault: Option<Damage>,
}

/// A traced process. After exec, the same process is another one here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The kernel's id, 0 if unknown.
    pub pid: u32,
    /// The traced process that forked it.
    pub parent: Option<ProcessId>,
    /// Its arguments, if known.
    pub command: Vec<String>,
    /// Time stamp counter at its start.
    pub started: Option<u64>,
    /// Time stamp counter at its end; `None` if the trace does not have it.
    pub ended: Option<u64>,
    /// True if it ran its exit handlers.
    pub clean: bool,
}

/// A traced thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// Index in its process, as in the name of its file.
    pub index: u32,
    /// The kernel's id, 0 if unknown.
    pub tid: u32,
    /// Time stamp counter at its start.
    pub started: Option<u64>,
    /// Time stamp counter at its end; `None` if the trace does not have it.
    pub ended: Option<u64>,
    /// Chunks of its stream.
    pub chunks: u32,
    /// Bytes of its file.
    pub bytes: u64,
}

/// A module at an address of a process, for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The process.
    pub process: ProcessId,
    /// The module.
    pub module: ModuleId,
    /// Run-time minus link-time address, modulo 2^64.
    pub load_bias: u64,
    /// Time stamp counter when it was loaded.
    pub loaded: u64,
    /// Time stamp counter when it was unloaded; `None` if it stayed.
    pub unloaded: Option<u64>,
}

/// Time by stamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// When the first process started.
    start: u64,
    ns_per_tick: f64,
}

impl Clock {
    /// Nanoseconds since the first process started.
    #[inline]
    pub fn ns(&self, stamp: u64) -> u64 {
        (stamp.saturating_sub(self.start) as f64 * self.ns_per_tick) as u64
    }
}

impl Trace {
    /// Opens a trace directory that holds every access.
    ///
    /// # Errors
    /// If it is none, or holds samples.
    pub fn open(directory: &Path) -> Result<Trace, Error> {
        let path = directory.to_owned();
        let trace = Trace::open_any(directory)?;
        if trace.is_sampled() { Err(Error::Sampled { path }) } else { Ok(trace) }
    }

    /// Opens a trace directory, whatever it holds. Of one that holds samples the events are these.
    ///
    /// # Errors
    /// If it is none.
    pub fn open_any(directory: &Path) -> Result<Trace, Error> {
        let (manifest, folder) = Manifest::read_and_open(directory)?;
        let mut trace = Trace::empty(directory, manifest);
        let mut threads = trace.read_events(&folder)?;
        trace.read_modules(&folder)?;
        trace.read_threads(&folder, &mut threads)?;
        trace.folder = Some(folder);
        trace.drop_strays();
        let sampled = |chunk: &ChunkRef| chunk.header.version == version::SAMPLED_TRACE;
        match trace.is_sampled() || !trace.chunks.iter().any(sampled) {
            true => Ok(trace),
            false => {
                Err(Error::damaged(directory, "has samples, and its manifest says that it has every access"))
            }
        }
    }

    /// A trace of which only the manifest is known.
    pub(crate) fn empty(directory: &Path, manifest: Manifest) -> Trace {
        Trace {
            directory: directory.to_owned(),
            folder: None,
            manifest,
            sites: Arc::default(),
            codes: Vec::new(),
            modules: Vec::new(),
            processes: Vec::new(),
            threads: Vec::new(),
            images: Vec::new(),
            loaded: FxHashMap::default(),
            chunks: Vec::new(),
            damage: Vec::new(),
            index_fault: None,
        }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory, open, by which anything else in it is to be read and written; `None` of a
    /// trace that is still written.
    pub fn folder(&self) -> Option<&Folder> {
        self.folder.as_ref()
    }

    /// Returns the manifest: what was recorded, and whether it is complete.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the fault of the index of chunks, if there is one. A faulty index costs only time.
    pub fn index_fault(&self) -> Option<&Damage> {
        self.index_fault.as_ref()
    }

    /// Returns the missing or damaged parts, as far as they show without decoding.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The names behind the events.
    pub fn sites(&self) -> &SiteTable {
        &self.sites
    }

    /// The same, to keep.
    pub fn sites_kept(&self) -> Arc<SiteTable> {
        self.sites.clone()
    }

    /// Processes, by [`ProcessId`].
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Returns the clock of this trace's stamps; `None` if their rate is unknown.
    pub fn clock(&self) -> Option<Clock> {
        let ticks_per_second = self.manifest.summary.as_ref()?.ticks_per_second?;
        let start = self.processes.iter().filter_map(|process| process.started).min()?;
        Some(Clock { start, ns_per_tick: 1e9 / ticks_per_second as f64 })
    }

    /// Threads, by [`ThreadId`].
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Modules, by [`ModuleId`], their globals sorted by address; an empty one stands for a file
    /// that could not be read.
    pub fn modules(&self) -> &[ModuleImage] {
        &self.modules
    }

    /// Returns where modules were loaded, in the order in which it happened.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// The global object that lies at an address of a process at a time, and the module that
    /// defines it.
    pub fn global_at(&self, process: ProcessId, address: u64, stamp: u64) -> Option<(ModuleId, &Global)> {
        let at_the_time = |image: &&Image| {
            image.process == process
                && image.loaded <= stamp
                && image.unloaded.is_none_or(|unloaded| stamp <= unloaded)
        };
        self.images.iter().filter(at_the_time).find_map(|image| {
            let link_address = address.wrapping_sub(image.load_bias);
            let globals = &self.modules.get(image.module.0 as usize)?.globals;
            let before = globals.partition_point(|global| global.address <= link_address);
            let global = &globals[before.checked_sub(1)?];
            (link_address - global.address < global.bytes).then_some((image.module, global))
        })
    }

    /// The chunks in the order in which they began, each stream's in its own order.
    pub fn chunks(&self) -> &[ChunkRef] {
        &self.chunks
    }

    /// Keeps only the chunks at these places in [`Trace::chunks`]. A replay is then of a part: the
    /// allocations and the order that the other chunks have are unknown.
    pub fn keep_chunks(&mut self, places: Range<usize>) {
        let end = places.end.min(self.chunks.len());
        self.chunks.truncate(end);
        self.chunks.drain(..places.start.min(end));
    }

    /// Decodes one chunk; any chunk decodes without the others.
    pub fn decode(&self, chunk: &ChunkRef, batch: &mut Batch) -> Result<(), Error> {
        Decoder::new(Loops::Unrolled).stored(self, chunk, batch)
    }

    /// The same, but loops that are one record stay one record.
    pub fn decode_kept(&self, chunk: &ChunkRef, batch: &mut Batch) -> Result<(), Error> {
        Decoder::new(Loops::Kept).stored(self, chunk, batch)
    }

    /// Reads the payload of a chunk; returns the file it came from.
    pub(crate) fn read_payload(&self, chunk: &ChunkRef, packed: &mut Vec<u8>) -> Result<PathBuf, Error> {
        let thread = &self.threads[chunk.thread.0 as usize];
        let name = names::thread(thread.process.0, thread.index);
        let path = self.directory.join(&name);
        packed.resize(chunk.header.payload_bytes as usize, 0);
        let closed = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let file = self.folder.as_ref().ok_or_else(closed).and_then(|folder| folder.file(name.as_ref()));
        let file = file.map_err(Error::io(&path))?;
        file.read_exact_at(packed, chunk.payload_at).map_err(Error::io(&path))?;
        Ok(path)
    }

    fn damaged(&mut self, path: &Path, what: impl Into<String>, bytes: u64, chunks: u32) {
        self.damage.push(Damage { path: path.to_owned(), what: what.into(), bytes, chunks });
    }

    /// Processes and images; returns the threads by process and index.
    fn read_events(&mut self, folder: &Folder) -> Result<Threads, Error> {
        let mut threads = Threads::default();
        let path = self.directory.join(names::EVENTS);
        let file = match folder.file(names::EVENTS.as_ref()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.damaged(&path, "is missing: processes, threads and load addresses are unknown", 0, 0);
                return Ok(threads);
            }
            file => file.map_err(Error::io(&path))?,
        };
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let (mut line, mut count) = (Vec::new(), 0u64);
        let mut damage = DamagedLines::default();
        loop {
            line.clear();
            // Memory is for what a line can have, not for what a file promises.
            let most = limit::EVENT_BYTES + 1;
            if lines.by_ref().take(most).read_until(b'\n', &mut line).map_err(Error::io(&path))? == 0 {
                break;
            }
            if line.len() as u64 == most && line.last() != Some(&b'\n') {
                let what = format!("line {} is longer than any can be; what follows is not read", count + 1);
                self.damaged(&path, what, line.len() as u64, 0);
                break;
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if line.is_empty() {
                continue;
            }
            count += 1;
            let event = std::str::from_utf8(line).ok().filter(|line| is_sealed(line));
            match event.and_then(|line| serde_json::from_str::<Event>(line).ok()) {
                Some(event) => {
                    self.damage.extend(damage.take(&path));
                    self.follow(event, &mut threads);
                }
                None => damage.add(count, line.len() as u64),
            }
        }
        if !self.manifest.complete {
            // A line that its writer could not finish is the last one of an unfinished trace.
            damage.forget_last();
        }
        self.damage.extend(damage.take(&path));
        if self.manifest.complete && self.manifest.events != count {
            let expected = self.manifest.events;
            self.damaged(&path, format!("has {count} lines, the manifest promises {expected}"), 0, 0);
        }
        Ok(threads)
    }

    /// Applies an event. Threads get their numbers later.
    pub(crate) fn follow(&mut self, event: Event, threads: &mut Threads) {
        match event {
            Event::ProcessStart { process, pid, parent, command, stamp } => {
                let parent = parent.map(ProcessId);
                let started = Process { pid, parent, command, started: Some(stamp), ..Default::default() };
                if let Some(process) = self.process(process) {
                    *process = started;
                }
            }
            Event::ProcessEnd { process, clean, stamp } => {
                if let Some(process) = self.process(process) {
                    (process.ended, process.clean) = (Some(stamp), clean);
                }
            }
            Event::ThreadStart { process, thread, tid, stamp } => {
                let started = Thread { tid, started: Some(stamp), ..Thread::unknown(process, thread) };
                threads.start(process, thread, started);
            }
            Event::ThreadEnd { process, thread, stamp } => {
                threads.know(process, thread).ended = Some(stamp);
            }
            Event::ModuleLoad { process, module, load_bias, stamp } => {
                self.loaded.entry((process, module, load_bias)).or_default().push(self.images.len());
                self.images.push(Image {
                    process: ProcessId(process),
                    module: ModuleId(module),
                    load_bias,
                    loaded: stamp,
                    unloaded: None,
                });
            }
            Event::ModuleUnload { process, module, load_bias, stamp } => {
                let loaded = self.loaded.get_mut(&(process, module, load_bias));
                if let Some(image) = loaded.and_then(Vec::pop) {
                    self.images[image].unloaded = Some(stamp);
                }
            }
        }
    }

    /// A process, known from now on. A number out of all proportion is not one of a trace.
    fn process(&mut self, process: u32) -> Option<&mut Process> {
        const MOST: usize = 1 << 16;
        let index = process as usize;
        if index >= MOST {
            return None;
        }
        if index >= self.processes.len() {
            self.processes.resize(index + 1, Process::default());
        }
        Some(&mut self.processes[index])
    }

    /// Leaves no index that leads nowhere.
    fn drop_strays(&mut self) {
        let (processes, modules) = (self.processes.len(), self.modules.len());
        let path = self.directory.join(names::EVENTS);
        for process in &mut self.processes {
            process.parent = process.parent.filter(|parent| (parent.0 as usize) < processes);
        }
        let known =
            |image: &Image| (image.process.0 as usize) < processes && (image.module.0 as usize) < modules;
        for image in self.images.extract_if(.., |image| !known(image)) {
            let what = format!(
                "module {} is loaded into process {}, one of which does not exist",
                image.module.0, image.process.0
            );
            self.damage.push(Damage { path: path.clone(), what, bytes: 0, chunks: 0 });
        }
    }

    fn read_modules(&mut self, folder: &Folder) -> Result<(), Error> {
        let found = numbered(folder, names::MODULES, |name| name.strip_suffix(".mlm")?.parse::<u32>().ok())?;
        // Modules are numbered as they are first loaded, so no number is beyond the count of loads.
        let loads = self.images.len() as u32;
        let loaded =
            self.images.iter().map(|image| image.module.0.saturating_add(1)).filter(|&count| count <= loads);
        let count = (found.len() as u32).max(self.manifest.modules.min(loads)).max(loaded.max().unwrap_or(0));
        let mut flattener = Flattener::default();
        for module in 0..count {
            let path = self.directory.join(names::module(module));
            let (code, image) = match Module::read(folder, &names::module(module)) {
                Ok(mut module) => {
                    module.image.globals.sort_by_key(|global| global.address);
                    (Some(Arc::new(flattener.add(&module))), module.image)
                }
                Err(newer @ Error::Newer { .. }) => return Err(newer),
                Err(error) => {
                    self.damaged(&path, format!("unreadable: {error}"), 0, 0);
                    (None, ModuleImage::default())
                }
            };
            self.codes.push(code);
            self.modules.push(image);
        }
        self.sites = Arc::new(flattener.table());
        Ok(())
    }

    fn read_threads(&mut self, folder: &Folder, threads: &mut Threads) -> Result<(), Error> {
        let files = numbered(folder, names::THREADS, |name| {
            let (process, thread) = name.strip_prefix('p')?.strip_suffix(".mlt")?.split_once("-t")?;
            Some((process.parse().ok()?, thread.parse().ok()?))
        })?;
        let promised: BTreeMap<_, _> =
            self.manifest.threads.iter().map(|totals| ((totals.process, totals.thread), *totals)).collect();
        for (process, thread) in files.iter().copied().chain(promised.keys().copied()) {
            threads.know(process, thread);
        }
        let (mut scanner, indexed) = (Scanner::default(), read_index(folder));
        for known in &mut threads.in_order {
            let (process, thread) = (known.process.0, known.index);
            if self.process(process).is_none() {
                let path = self.directory.join(names::EVENTS);
                self.damaged(&path, format!("there cannot be a process {process}"), 0, 0);
                continue;
            }
            let id = ThreadId(self.threads.len() as u32);
            let name = names::thread(process, thread);
            let path = self.directory.join(&name);
            let chunks = promised.get(&(process, thread)).map_or(0, |totals| totals.chunks);
            if files.contains(&(process, thread)) {
                let headers = indexed.headers.get(&(process, thread)).map_or(&[][..], |headers| headers);
                let index =
                    match scanner.scan(folder, &name, (ProcessId(process), process), (id, thread), headers) {
                        Ok(index) => index,
                        Err(newer @ Error::Newer { .. }) => return Err(newer),
                        Err(error) => {
                            let what = match error {
                                Error::Io { source, .. } => source.to_string(),
                                other => other.to_string(),
                            };
                            self.damaged(&path, format!("cannot be read: {what}"), 0, chunks);
                            self.threads.push(known.clone());
                            continue;
                        }
                    };
                let found = index.next_sequence();
                known.chunks = index.chunks.len() as u32;
                known.bytes = index.bytes;
                self.chunks.extend(index.chunks);
                self.damage.extend(index.damage);
                if found < chunks {
                    self.damaged(
                        &path,
                        format!("ends before its last chunks, {found} of {chunks}"),
                        0,
                        chunks - found,
                    );
                }
            } else if chunks > 0 {
                self.damaged(&path, "is missing", 0, chunks);
            }
            self.threads.push(known.clone());
        }
        self.sort_chunks();
        if self.manifest.complete && self.damage.is_empty() && indexed.contradicts(&self.chunks) {
            let what = "is damaged: it does not have the headers of all chunks, which were found in their threads' files";
            let path = self.directory.join(names::INDEX);
            self.index_fault = Some(Damage { path, what: what.to_owned(), bytes: 0, chunks: 0 });
        }
        if let Some(why) = &indexed.refused {
            let path = self.directory.join(names::INDEX);
            self.index_fault = Some(Damage { path, what: why.clone(), bytes: 0, chunks: 0 });
        }
        Ok(())
    }

    /// Puts chunks in order. A stamp that runs backwards within a stream cannot change that
    /// stream's order.
    fn sort_chunks(&mut self) {
        let mut latest: FxHashMap<(ThreadId, u8), u64> = FxHashMap::default();
        let begin = |chunk: ChunkRef| {
            let begins = latest.entry((chunk.thread, chunk.header.stream)).or_default();
            *begins = chunk.header.first_stamp.max(*begins);
            (*begins, chunk)
        };
        let mut keyed: Vec<_> = self.chunks.drain(..).map(begin).collect();
        keyed.sort_by_key(|(begins, chunk)| (*begins, chunk.thread, chunk.header.sequence));
        self.chunks = keyed.into_iter().map(|(_, chunk)| chunk).collect();
    }
}

/// Consecutive damaged lines, reported as one.
#[derive(Default)]
struct DamagedLines {
    /// First and last.
    lines: Option<(u64, u64)>,
    bytes: u64,
    bytes_of_last: u64,
}

impl DamagedLines {
    fn add(&mut self, line: u64, bytes: u64) {
        let first = self.lines.map_or(line, |(first, _)| first);
        self.lines = Some((first, line));
        self.bytes += bytes;
        self.bytes_of_last = bytes;
    }

    fn forget_last(&mut self) {
        self.bytes -= std::mem::take(&mut self.bytes_of_last);
        self.lines = self.lines.filter(|(first, last)| first < last).map(|(first, last)| (first, last - 1));
    }

    fn take(&mut self, path: &Path) -> Option<Damage> {
        let DamagedLines { lines, bytes, .. } = std::mem::take(self);
        let what = match lines? {
            (first, last) if first == last => format!("line {first} is damaged"),
            (first, last) => format!("lines {first} to {last} are damaged"),
        };
        Some(Damage { path: path.to_owned(), what, bytes, chunks: 0 })
    }
}

/// Threads in the order in which the trace speaks of them.
#[derive(Default)]
pub(crate) struct Threads {
    pub in_order: Vec<Thread>,
    numbers: FxHashMap<(u32, u32), usize>,
}

impl Threads {
    /// A thread that may be new.
    pub fn know(&mut self, process: u32, thread: u32) -> &mut Thread {
        let number = *self.numbers.entry((process, thread)).or_insert_with(|| {
            self.in_order.push(Thread::unknown(process, thread));
            self.in_order.len() - 1
        });
        &mut self.in_order[number]
    }

    fn start(&mut self, process: u32, thread: u32, started: Thread) {
        *self.know(process, thread) = started;
    }

    /// The number of a thread that may be new.
    pub fn number(&mut self, process: u32, thread: u32) -> usize {
        self.know(process, thread);
        self.numbers[&(process, thread)]
    }
}

impl Thread {
    fn unknown(process: u32, index: u32) -> Self {
        Thread { process: ProcessId(process), index, tid: 0, started: None, ended: None, chunks: 0, bytes: 0 }
    }
}

/// Returns the content of the names in a directory of a trace; empty if there is no such directory.
fn numbered<T: Ord>(
    folder: &Folder,
    below: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<BTreeSet<T>, Error> {
    let names = folder.names(Some(below.as_ref())).map_err(Error::io(&folder.path().join(below)))?;
    Ok(names.iter().filter_map(|name| parse(name.to_str()?)).collect())
}
