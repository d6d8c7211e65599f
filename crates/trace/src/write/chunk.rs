//! A chunk on its way from the encoder to the file (SPEC §4.3).

use crate::format::ChunkHeader;
use crate::pack::Packer;

/// A chunk that takes no more words, not packed yet.
#[derive(Clone, Debug)]
pub struct FullChunk {
    pub(super) header: ChunkHeader,
    pub(super) unpacked: Vec<u8>,
}

impl FullChunk {
    /// Packs it.
    pub fn pack(self, packer: &mut Packer) -> EncodedChunk {
        let (codec, payload) = packer.pack(&self.unpacked);
        let header = ChunkHeader {
            codec,
            payload_bytes: payload.len() as u32,
            payload_crc32: crc32fast::hash(&payload),
            ..self.header
        };
        EncodedChunk { header, payload }
    }
}

/// A chunk ready to be written.
#[derive(Clone, Debug)]
pub struct EncodedChunk {
    pub(super) header: ChunkHeader,
    pub(super) payload: Vec<u8>,
}

impl EncodedChunk {
    /// Words of the stream in it.
    pub fn raw_words(&self) -> u32 {
        self.header.raw_words
    }

    /// Access, range, masked and gather ops executed in it.
    pub fn accesses(&self) -> u64 {
        self.header.accesses
    }

    /// The same chunk as one of another of its thread's streams; without this it belongs to stream 0.
    pub fn of_stream(mut self, stream: u8) -> EncodedChunk {
        self.header.stream = stream;
        self
    }

    /// Bytes it takes in a file.
    pub fn bytes(&self) -> u64 {
        (ChunkHeader::BYTES + self.payload.len()) as u64
    }
}
