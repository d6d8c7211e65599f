//! A chunk from its first word to the file (SPEC §4.3).

use super::history::{Caller, SegmentName};
use super::payload::{Form, Gathered, Payload, Words};
use super::relative::StackChange;
use crate::format::{ChunkHeader, magic, version};
use crate::pack::{Packer, Part};
use crate::sampled::Contents;
use crate::words::subtract;

/// The chunk being built.
pub(super) struct Chunk {
    pub number: u32,
    pub open: bool,
    pub dictionary: Vec<u32>,
    /// Entries of the dictionary that others refer to before they are executed, and their words.
    pub inherited: Vec<(u32, Vec<u64>)>,
    pub control: Vec<u8>,
    pub words: Gathered,
    pub previous: u32,
    /// Segments since the last explicit one that followed as predicted.
    pub run: u64,
    pub raw_words: u32,
    pub segments: u32,
    pub accesses: u64,
    /// Number of accesses more that readers count, modulo 2^64.
    pub more: u64,
    pub stamps: (u64, u64),
}

impl Chunk {
    /// An empty chunk, whose words are to be of this form.
    pub fn new(form: Form) -> Chunk {
        Chunk {
            number: 0,
            open: false,
            dictionary: Vec::new(),
            inherited: Vec::new(),
            control: Vec::new(),
            words: Gathered::new(form),
            previous: 0,
            run: 0,
            raw_words: 0,
            segments: 0,
            accesses: 0,
            more: 0,
            stamps: (0, 0),
        }
    }

    /// Adds words for which there is room, here and in `differences`.
    pub fn put(&mut self, operands: &[u64], last: &mut [u64], differences: &mut [u64]) {
        let differences = &mut differences[..operands.len()];
        subtract(operands, last, differences);
        self.words.put(differences);
    }
}

/// A chunk that takes no more words, and does not know the chunks before it.
#[derive(Clone, Debug)]
pub struct LooseChunk {
    /// The segments in it, or whose words it needs.
    pub(super) dictionary: Vec<SegmentName>,
    /// Words that were before the chunk, indexed as the dictionary.
    pub(super) inherited: Vec<(u32, Vec<u64>)>,
    pub(super) stack: StackChange<Caller<SegmentName>>,
    /// Which segments that others refer to have left how many words.
    pub(super) left: Vec<(u32, u16)>,
    pub(super) left_words: Vec<u64>,
    pub(super) control: Vec<u8>,
    pub(super) words: Words,
    pub(super) raw_words: u32,
    pub(super) segments: u32,
    pub(super) accesses: u64,
    pub(super) expanded: u64,
    pub(super) stamps: (u64, u64),
}

/// A chunk that is complete and not packed yet.
#[derive(Clone, Debug)]
pub struct FullChunk {
    pub(super) header: ChunkHeader,
    /// Everything that is before the words.
    pub(super) before: Vec<u8>,
    pub(super) words: Words,
    pub(super) expanded: u64,
}

impl FullChunk {
    /// Packs it; plain words stay as they are.
    pub fn pack(self, packer: &mut Packer) -> EncodedChunk {
        let (bytes, heads) = match self.words {
            Words::Coded { bytes, heads } => (bytes, heads),
            Words::Plain(words) => {
                let payload = Payload::Plain { before: self.before, words };
                return EncodedChunk { header: self.header, payload, expanded: self.expanded };
            }
        };
        let (heads, tails) = bytes.split_at(heads);
        let (codec, payload) =
            packer.pack(&[Part::Matched(&self.before), Part::Sampled(heads), Part::Matched(tails)]);
        let header = ChunkHeader {
            codec,
            payload_bytes: payload.len() as u32,
            payload_crc32: crc32fast::hash(&payload),
            ..self.header
        };
        EncodedChunk { header, payload: Payload::Packed(payload), expanded: self.expanded }
    }
}

/// A chunk ready to be written, or to be replayed if its words are plain.
#[derive(Clone, Debug)]
pub struct EncodedChunk {
    pub(super) header: ChunkHeader,
    pub(super) payload: Payload,
    expanded: u64,
}

impl EncodedChunk {
    /// A chunk of samples.
    pub(crate) fn of_samples(contents: Contents, packer: &mut Packer) -> EncodedChunk {
        let Contents { before, differences, accesses, stamps, samples } = contents;
        let mut words = Gathered::new(Form::Coded);
        words.make_room(differences.len());
        words.put(&differences);
        let words = words.take();
        let header = ChunkHeader {
            magic: magic::CHUNK,
            version: version::SAMPLED_TRACE,
            raw_words: (samples + differences.len()) as u32,
            segments: samples as u32,
            unpacked_bytes: (before.len() + words.bytes()) as u32,
            accesses,
            first_stamp: stamps.0,
            last_stamp: stamps.1,
            ..Default::default()
        };
        FullChunk { header, before, words, expanded: accesses }.pack(packer)
    }

    /// Words of the stream in it.
    pub fn raw_words(&self) -> u32 {
        self.header.raw_words
    }

    /// Access, range, masked and gather ops executed in it.
    pub fn accesses(&self) -> u64 {
        self.header.accesses
    }

    /// Accesses as readers count them: one a lane that is not masked, and none of a range that has
    /// no bytes.
    pub fn expanded(&self) -> u64 {
        self.expanded
    }

    /// The same chunk as one of another of its thread's streams; without this it belongs to stream
    /// 0.
    pub fn of_stream(mut self, stream: u8) -> EncodedChunk {
        self.header.stream = stream;
        self
    }

    /// Bytes it takes, in a file if its words are coded.
    pub fn bytes(&self) -> u64 {
        (ChunkHeader::BYTES + self.payload.bytes()) as u64
    }
}
