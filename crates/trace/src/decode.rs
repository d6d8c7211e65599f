//! Chunks to batches (SPEC §4.3).

mod dictionary;
mod marks;
mod ops;
mod plain;
mod samples;

use std::sync::Arc;

use crate::bytes::{Malformed, Reader};
use crate::error::Error;
use crate::event::{Batch, Frame};
use crate::flatten::Code;
use crate::format::{ChunkHeader, limit};
use crate::grow::Meanings;
use crate::index::ChunkRef;
use crate::pack::{UnpackError, Unpacker};
use crate::read::Trace;
use crate::sections::Sections;
use crate::sites::SiteTable;
use crate::varints::read_varints;
use crate::words::{TAIL_BYTES, read_words};
use crate::write::{Payload, TraceFile};

use dictionary::{Local, dictionary};
use plain::{Filled, Plan};

/// Why a chunk could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("the payload fails its checksum")]
    Checksum,
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("module {0} is missing or damaged")]
    Module(u64),
    #[error("anchor {anchor} of module {module} stands for no segment")]
    Anchor { module: u64, anchor: u64 },
    #[error("a segment takes addresses from another that is not in the dictionary")]
    Source,
    #[error("a segment is said to be followed by its usual successor, but has none yet")]
    NoSuccessor,
    #[error("the words end too early or one of them has more than 64 bits")]
    Words,
    #[error("expands to more than {0} events")]
    TooMany(u64),
    #[error("its header promises {expected} {what}, it has {found}")]
    Count { what: &'static str, expected: u64, found: u64 },
}

/// The treatment of a loop that is one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    /// All its accesses are written out.
    Unrolled,
    /// It stays one [`Loop`](crate::event::Loop).
    Kept,
}

/// The bytes of a payload that there are.
#[derive(Clone, Copy)]
enum Bytes<'p> {
    /// All of them: this many bytes, and [`TAIL_BYTES`] behind them.
    All(&'p [u8], usize),
    /// The bytes before the words, which are read already.
    Before(&'p [u8]),
}

impl<'p> Bytes<'p> {
    fn bytes(self) -> &'p [u8] {
        match self {
            Bytes::All(bytes, count) => &bytes[..count],
            Bytes::Before(bytes) => bytes,
        }
    }
}

/// Decodes chunks; reuses its memory from one to the next.
pub struct Decoder {
    loops: Loops,
    /// Bytes of a file.
    packed: Vec<u8>,
    unpacker: Unpacker,
    unpacked: Vec<u8>,
    words: Vec<u64>,
    last: Vec<u64>,
    bases: Vec<u32>,
    plans: Vec<Plan>,
    filled: Vec<Filled>,
    executed: Vec<u64>,
}

impl Decoder {
    /// A decoder that has decoded nothing.
    pub fn new(loops: Loops) -> Self {
        Decoder {
            loops,
            packed: Vec::new(),
            unpacker: Unpacker::new(),
            unpacked: Vec::new(),
            words: Vec::new(),
            last: Vec::new(),
            bases: Vec::new(),
            plans: Vec::new(),
            filled: Vec::new(),
            executed: Vec::new(),
        }
    }

    /// Fills a batch with the events of a chunk of a trace directory.
    ///
    /// # Errors
    /// If the file cannot be read or the chunk is damaged.
    pub fn stored(&mut self, trace: &Trace, chunk: &ChunkRef, batch: &mut Batch) -> Result<(), Error> {
        let mut packed = std::mem::take(&mut self.packed);
        let path = trace.read_payload(chunk, &mut packed);
        let decoded = path.and_then(|path| {
            self.decode(&chunk.header, &packed, &trace.codes, &trace.sites, batch)
                .map_err(|why| Error::damaged(&path, format!("chunk {}: {why}", chunk.header.sequence)))
        });
        self.packed = packed;
        decoded.map(|()| chunk.label(batch))
    }

    /// The same for a chunk of a trace that is still being written, whose payload has come.
    ///
    /// # Errors
    /// If the chunk is damaged.
    pub fn arrived(
        &mut self,
        chunk: &ChunkRef,
        payload: Payload,
        meanings: &Meanings,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let header = &chunk.header;
        let file = TraceFile::Thread { process: header.process, thread: header.thread };
        self.decode_payload(header, payload, &meanings.codes, &meanings.sites, batch)
            .map_err(|why| Error::damaged(&file.path(), format!("chunk {}: {why}", header.sequence)))?;
        chunk.label(batch);
        Ok(())
    }

    /// Fills a batch with the events of a chunk. `codes` are the modules, `None` for one that could
    /// not be read.
    fn decode(
        &mut self,
        header: &ChunkHeader,
        packed: &[u8],
        codes: &[Option<Arc<Code>>],
        sites: &SiteTable,
        batch: &mut Batch,
    ) -> Result<(), DecodeError> {
        batch.clear();
        if crc32fast::hash(packed) != header.payload_crc32 {
            return Err(DecodeError::Checksum);
        }
        self.unpacker.unpack(header.codec, packed, header.unpacked_bytes.into(), &mut self.unpacked)?;
        let payload_bytes = self.unpacked.len();
        // Tails are read eight bytes at a time.
        self.unpacked.extend([0; TAIL_BYTES]);
        let unpacked = std::mem::take(&mut self.unpacked);
        let decoded = self.events(header, Bytes::All(&unpacked, payload_bytes), codes, sites, batch);
        self.unpacked = unpacked;
        decoded
    }

    /// The same for a chunk that need not have been in a file.
    fn decode_payload(
        &mut self,
        header: &ChunkHeader,
        payload: Payload,
        codes: &[Option<Arc<Code>>],
        sites: &SiteTable,
        batch: &mut Batch,
    ) -> Result<(), DecodeError> {
        match payload {
            Payload::Packed(packed) => self.decode(header, &packed, codes, sites, batch),
            Payload::Plain { before, words } => {
                batch.clear();
                self.words = words;
                self.events(header, Bytes::Before(&before), codes, sites, batch)
            }
        }
    }

    /// Fills an empty batch with the events of the payload.
    fn events(
        &mut self,
        header: &ChunkHeader,
        payload: Bytes<'_>,
        codes: &[Option<Arc<Code>>],
        sites: &SiteTable,
        batch: &mut Batch,
    ) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload.bytes());
        if header.version > 3 {
            Sections::read(&mut reader)?;
        }
        let locals = dictionary(&mut reader, codes, &mut self.last, &mut self.bases)?;
        self.filled.clear();
        Plan::all(&locals, &mut self.plans);
        self.executed.clear();
        self.executed.resize(locals.len(), 0);
        let depth = reader.count()?;
        let mut address = 0u64;
        for _ in 0..depth {
            let local = &locals[reader.index(locals.len())? as usize];
            address = address.wrapping_add_signed(reader.svarint()?);
            batch.stack.push(Frame { function: local.function, address });
        }
        let control = reader.blob()?;
        let count = header.raw_words.checked_sub(header.segments).ok_or(DecodeError::Words)? as usize;
        let word_bytes = reader.left();
        let read = match payload {
            Bytes::All(unpacked, _) => {
                // Each has a byte at least.
                if count > word_bytes {
                    return Err(DecodeError::Words);
                }
                self.words.resize(count, 0);
                let read = match header.version {
                    1 | 2 => read_varints(reader.take(word_bytes)?, &mut self.words),
                    _ => {
                        let heads = reader.take(count)?;
                        let tails = read_words(heads, &unpacked[reader.position()..], &mut self.words);
                        tails.map(|tails| count + tails)
                    }
                };
                read.ok_or(DecodeError::Words)?
            }
            Bytes::Before(_) if self.words.len() == count => 0,
            Bytes::Before(_) => return Err(DecodeError::Words),
        };

        batch.accesses.reserve(header.accesses.min(limit::CHUNK_ACCESSES) as usize);
        let mut run = Run {
            words: &self.words,
            last: &mut self.last,
            bases: &self.bases,
            locals: &locals,
            filled: &mut self.filled,
            executed: &mut self.executed,
            loops: self.loops,
            sites,
            batch,
            accesses: 0,
            others: 0,
            repeated: 0,
            kept: 0,
        };
        run.control(control, header.segments, &mut self.plans).map_err(|error| *error)?;
        let beside = locals.iter().zip(&*run.executed);
        let beside = beside.filter_map(|(local, &times)| Some((local.unrecorded?, times)));
        run.batch.unrecorded.extend(beside.filter(|&(_, times)| times > 0));
        let accesses = run.accesses + run.batch.accesses.len() as u64 - run.others + run.repeated;
        for (what, expected, found) in [
            ("bytes of words", word_bytes as u64, read as u64),
            ("words", count as u64, (count - run.words.len()) as u64),
            ("accesses", header.accesses, accesses),
        ] {
            if expected != found {
                return Err(DecodeError::Count { what, expected, found });
            }
        }
        Ok(())
    }
}

/// Executes the control stream.
struct Run<'a> {
    /// The remaining words.
    words: &'a [u64],
    last: &'a mut [u64],
    bases: &'a [u32],
    locals: &'a [Local<'a>],
    filled: &'a mut Vec<Filled>,
    /// Executions of each dictionary entry beside which something is not recorded.
    executed: &'a mut [u64],
    loops: Loops,
    sites: &'a SiteTable,
    batch: &'a mut Batch,
    /// Access, range, masked and gather ops of segments that are not plain, so far.
    accesses: u64,
    /// Rows that these and loops wrote into the batch.
    others: u64,
    /// Accesses of loops so far.
    repeated: u64,
    /// The number of loops that were kept.
    kept: u64,
}

/// An error in a box: the hot loop can only afford a result that fits a register.
type Fallible = Result<(), Box<DecodeError>>;
