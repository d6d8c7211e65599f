//! Chunks of a thread's file, and the damage between and behind them.
//!
//! A trace's own index has the headers of all chunks in the order in which they were written (SPEC
//! §4.3), so that no thread's file has to be walked through. Chunks that it lacks, or has wrong,
//! are searched in the files.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memlode_files::Folder;
use rustc_hash::FxHashMap;
use rustix::fs::SeekFrom;

use crate::error::Error;
use crate::event::{Batch, ProcessId, ThreadId};
use crate::format::{ChunkHeader, chunk_flag, limit, magic, version};
use crate::names;

/// One chunk of a trace. Its header has passed its checksum; its payload is checked when it is
/// decoded.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRef {
    /// The process.
    pub process: ProcessId,
    /// The thread.
    pub thread: ThreadId,
    /// Offset of the payload in the thread's file.
    pub(crate) payload_at: u64,
    pub(crate) header: ChunkHeader,
}

impl ChunkRef {
    /// Position in its thread's stream.
    pub fn sequence(&self) -> u32 {
        self.header.sequence
    }

    /// Which of its thread's streams it belongs to.
    pub fn stream(&self) -> u8 {
        self.header.stream
    }

    /// Words of the stream.
    pub fn raw_words(&self) -> u32 {
        self.header.raw_words
    }

    /// Access, range, masked and gather ops: the accesses, but for ranges that are split and lanes.
    pub fn accesses(&self) -> u64 {
        self.header.accesses
    }

    /// Bytes in the file, header included.
    pub fn file_bytes(&self) -> u64 {
        (ChunkHeader::BYTES as u64) + u64::from(self.header.payload_bytes)
    }

    /// Returns whether recording had been off between this chunk and the one before of its stream.
    pub fn is_after_gap(&self) -> bool {
        self.header.flags & chunk_flag::AFTER_GAP != 0
    }

    /// Returns whether recording was off: the chunk has allocations only.
    pub fn is_dormant(&self) -> bool {
        self.header.flags & chunk_flag::DORMANT != 0
    }

    /// Returns whether its program was compiled to record its releases and their times.
    pub fn tells_releases(&self) -> bool {
        self.header.version > 3
    }

    /// Sets the identity of the chunk in a batch.
    pub(crate) fn label(&self, batch: &mut Batch) {
        batch.process = Some(self.process);
        batch.thread = Some(self.thread);
        batch.sequence = self.header.sequence;
        batch.stream = self.header.stream;
        batch.after_gap = self.is_after_gap();
        batch.dormant = self.is_dormant();
        batch.stamps = self.stamps();
    }

    /// Time stamp counter when the chunk's first word could be written and when it was handed over.
    pub fn stamps(&self) -> (u64, u64) {
        (self.header.first_stamp, self.header.last_stamp)
    }
}

/// A missing or damaged part. Everything that is not named is intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The fault.
    pub what: String,
    /// Bytes that could not be read.
    pub bytes: u64,
    /// Chunks known to be missing.
    pub chunks: u32,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)?;
        match (self.bytes, self.chunks) {
            (0, 0) => Ok(()),
            (bytes, 0) => write!(f, " ({bytes} bytes unreadable)"),
            (0, chunks) => write!(f, " ({chunks} chunks missing)"),
            (bytes, chunks) => write!(f, " ({bytes} bytes unreadable, {chunks} chunks missing)"),
        }
    }
}

/// The chunks of one thread's file.
pub(crate) struct Index {
    pub chunks: Vec<ChunkRef>,
    pub damage: Vec<Damage>,
    /// Length of the file.
    pub bytes: u64,
}

/// Bytes that are searched for the next header behind damage. It is often near, so the search
/// begins with few bytes and doubles them.
const SEARCH_BYTES: (usize, usize) = (1 << 10, 1 << 20);

/// The headers that a trace's index has, by process and thread.
pub(crate) type Indexed = FxHashMap<(u32, u32), Vec<ChunkHeader>>;

/// A trace's index.
#[derive(Default)]
pub(crate) struct TraceIndex {
    pub headers: Indexed,
    /// Length of the file; `None` if there is none, as in traces of earlier versions.
    bytes: Option<u64>,
    /// The reason why a file of its name is not read.
    pub refused: Option<String>,
}

impl TraceIndex {
    /// Returns whether the index does not belong to these chunks, which are all chunks of a trace.
    pub fn contradicts(&self, chunks: &[ChunkRef]) -> bool {
        let Some(bytes) = self.bytes else { return false };
        let mut placed: Vec<&ChunkRef> = chunks.iter().collect();
        placed.sort_unstable_by_key(|chunk| chunk.payload_at);
        let mut found = Indexed::default();
        for ChunkRef { header, .. } in placed {
            found.entry((header.process, header.thread)).or_default().push(*header);
        }
        bytes != (chunks.len() * ChunkHeader::BYTES) as u64 || found != self.headers
    }
}

/// Reads a trace's index, up to the first invalid header. A trace need not have one.
pub(crate) fn read_index(folder: &Folder) -> TraceIndex {
    let mut indexed = Indexed::default();
    let file = match folder.file(names::INDEX.as_ref()) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return TraceIndex::default(),
        Err(error) => return TraceIndex { refused: Some(error.to_string()), ..TraceIndex::default() },
    };
    let length = file.metadata().map(|metadata| metadata.len()).ok();
    let mut entries = BufReader::with_capacity(1 << 16, file);
    let mut bytes = [0; ChunkHeader::BYTES];
    while entries.read_exact(&mut bytes).is_ok() {
        let header = ChunkHeader::from_bytes(&bytes);
        if !is_header(&header) || header.version > version::SAMPLED_TRACE {
            break;
        }
        indexed.entry((header.process, header.thread)).or_default().push(header);
    }
    TraceIndex { headers: indexed, bytes: length, refused: None }
}

/// Returns whether the bytes have the mark of a header, valid or not.
fn is_header(header: &ChunkHeader) -> bool {
    header.magic == magic::CHUNK
        && crc32fast::hash(&ChunkHeader { header_crc32: 0, ..*header }.to_bytes()) == header.header_crc32
}

/// Finds the chunks of files.
#[derive(Default)]
pub(crate) struct Scanner {
    /// The bytes that are looked through.
    block: Vec<u8>,
}

impl Scanner {
    /// Finds the chunks of a file, the first of which may be `indexed`, and reads the headers of
    /// the others. After damage the next header is searched, so only the damaged chunk is lost.
    pub fn scan(
        &mut self,
        folder: &Folder,
        name: &str,
        process: (ProcessId, u32),
        thread: (ThreadId, u32),
        indexed: &[ChunkHeader],
    ) -> Result<Index, Error> {
        let path = &folder.path().join(name);
        let file = folder.file(name.as_ref()).map_err(Error::io(path))?;
        let bytes = file.metadata().map_err(Error::io(path))?.len();
        let mut scan = Scan {
            path,
            file,
            identity: (process.1, thread.1),
            bytes,
            expected: 0,
            index: Index { chunks: Vec::new(), damage: Vec::new(), bytes },
            again: None,
            block: &mut self.block,
        };
        let mut at = scan.indexed(indexed, process.0, thread.0)?;
        while at < bytes {
            at = match scan.header(at)? {
                Ok(header) => scan.chunk(at, header, process.0, thread.0),
                Err(what) => {
                    scan.tell_repeated();
                    let next = scan.search(at + 1)?;
                    scan.damaged(format!("at byte {at}, {what}"), next - at, 0);
                    next
                }
            };
        }
        scan.tell_repeated();
        Ok(scan.index)
    }
}

impl Index {
    /// The number the next chunk would have.
    pub fn next_sequence(&self) -> u32 {
        self.chunks.last().map_or(0, |chunk| chunk.header.sequence.saturating_add(1))
    }
}

struct Scan<'a> {
    path: &'a Path,
    file: File,
    identity: (u32, u32),
    bytes: u64,
    expected: u32,
    index: Index,
    /// Chunks that were there before, one behind the other.
    again: Option<Again>,
    block: &'a mut Vec<u8>,
}

/// Chunks that are repeated, reported as one.
struct Again {
    at: u64,
    bytes: u64,
    first: u32,
    count: u64,
}

impl Scan<'_> {
    /// Takes the chunks that the index has, up to the first that cannot be; returns the offset
    /// behind them. None if the last of them is not where it has to be: then the index is another
    /// file's.
    fn indexed(
        &mut self,
        headers: &[ChunkHeader],
        process: ProcessId,
        thread: ThreadId,
    ) -> Result<u64, Error> {
        let (mut at, mut last) = (0, 0);
        for &header in headers {
            if header.sequence != self.expected || self.checked(header, at)?.is_err() {
                break;
            }
            last = at;
            at = self.chunk(at, header, process, thread);
        }
        let known = self.index.chunks.last().map(|chunk| chunk.header);
        if known.is_some() && self.header(last)?.ok() != known {
            (self.index.chunks, self.expected, at) = (Vec::new(), 0, 0);
        }
        Ok(at)
    }

    /// The header at an offset, or the fault of it.
    fn header(&self, at: u64) -> Result<Result<ChunkHeader, &'static str>, Error> {
        let mut bytes = [0; ChunkHeader::BYTES];
        if self.bytes - at < bytes.len() as u64 {
            return Ok(Err("the file ends in a chunk's header"));
        }
        self.file.read_exact_at(&mut bytes, at).map_err(Error::io(self.path))?;
        self.checked(ChunkHeader::from_bytes(&bytes), at)
    }

    /// A header at an offset, or the fault of it.
    fn checked(&self, header: ChunkHeader, at: u64) -> Result<Result<ChunkHeader, &'static str>, Error> {
        if header.magic != magic::CHUNK {
            return Ok(Err("there is no chunk"));
        }
        if !is_header(&header) {
            return Ok(Err("a chunk's header fails its checksum"));
        }
        if header.version > version::SAMPLED_TRACE {
            let (found, supported) = (header.version.into(), version::SAMPLED_TRACE.into());
            return Err(Error::Newer { path: self.path.to_owned(), found, supported });
        }
        if (header.process, header.thread) != self.identity {
            return Ok(Err("a chunk belongs to another thread"));
        }
        if header.version == 0
            || u64::from(header.raw_words) > limit::CHUNK_WORDS
            || u64::from(header.unpacked_bytes) > limit::CHUNK_UNPACKED_BYTES
            || header.accesses > limit::CHUNK_ACCESSES
            || header.segments > header.raw_words
        {
            return Ok(Err("a chunk's header exceeds the limits of the format"));
        }
        if u64::from(header.payload_bytes) + ChunkHeader::BYTES as u64 > self.bytes.saturating_sub(at) {
            return Ok(Err("the file ends in a chunk"));
        }
        Ok(Ok(header))
    }

    /// Takes a chunk; returns the offset behind it.
    fn chunk(&mut self, at: u64, header: ChunkHeader, process: ProcessId, thread: ThreadId) -> u64 {
        let payload_at = at + ChunkHeader::BYTES as u64;
        let next = payload_at + u64::from(header.payload_bytes);
        if header.sequence < self.expected {
            let first = header.sequence;
            let again = self.again.get_or_insert(Again { at, bytes: 0, first, count: 0 });
            again.bytes += next - at;
            again.count += 1;
            return next;
        }
        self.tell_repeated();
        if header.sequence > self.expected {
            let (found, expected) = (header.sequence, self.expected);
            let what = format!("at byte {at}, chunk {found} follows where {expected} was expected");
            self.damaged(what, 0, found - expected);
        }
        self.expected = header.sequence.saturating_add(1);
        self.index.chunks.push(ChunkRef { process, thread, payload_at, header });
        next
    }

    fn tell_repeated(&mut self) {
        let Some(Again { at, bytes, first, count }) = self.again.take() else { return };
        let what = match count {
            1 => format!("at byte {at}, chunk {first} comes again"),
            _ => format!("at byte {at}, {count} chunks come again, the first of them chunk {first}"),
        };
        self.damaged(what, bytes, 0);
    }

    /// The next offset with a good header, or the end of the file.
    fn search(&mut self, at: u64) -> Result<u64, Error> {
        let mut block = std::mem::take(self.block);
        let found = self.search_in(at, &mut block);
        *self.block = block;
        found
    }

    fn search_in(&self, mut at: u64, block: &mut Vec<u8>) -> Result<u64, Error> {
        let needle = magic::CHUNK.to_le_bytes();
        let mut most = SEARCH_BYTES.0;
        while self.bytes - at >= ChunkHeader::BYTES as u64 {
            // A hole holds nothing, however large it is.
            at = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Err(rustix::io::Errno::NXIO) => return Ok(self.bytes),
                Ok(data) if self.bytes.saturating_sub(data) < ChunkHeader::BYTES as u64 => break,
                data => data.map_or(at, |data| data.max(at)),
            };
            let length = most.min((self.bytes - at) as usize);
            block.resize(length.max(block.len()), 0);
            let block = &mut block[..length];
            self.file.read_exact_at(block, at).map_err(Error::io(self.path))?;
            for found in block.windows(4).enumerate().filter(|(_, four)| *four == needle) {
                let candidate = at + found.0 as u64;
                if self.header(candidate)?.is_ok() {
                    return Ok(candidate);
                }
            }
            // A magic number may straddle two blocks.
            at += length as u64 - 3;
            most = (2 * most).min(SEARCH_BYTES.1);
        }
        Ok(self.bytes)
    }

    fn damaged(&mut self, what: String, bytes: u64, chunks: u32) {
        self.index.damage.push(Damage { path: self.path.to_owned(), what, bytes, chunks });
    }
}
