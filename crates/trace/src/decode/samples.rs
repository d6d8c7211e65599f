//! Chunks of samples.

use super::{DecodeError, Decoder};
use crate::error::Error;
use crate::event::Batch;
use crate::index::ChunkRef;
use crate::read::Trace;
use crate::sampled::{ChunkSamples, InstructionId, chunk_samples};

impl Decoder {
    /// The samples of a chunk, whose indices are those of the lists beside them. `is_access` is `None` for what is no
    /// instruction of the trace.
    pub(crate) fn samples(
        &mut self,
        trace: &Trace,
        chunk: &ChunkRef,
        is_access: impl Fn(InstructionId) -> Option<bool>,
    ) -> Result<ChunkSamples, Error> {
        let mut batch = Batch::default();
        self.stored(trace, chunk, &mut batch)?;
        let mut packed = Vec::new();
        let path = trace.read_payload(chunk, &mut packed)?;
        let damaged =
            |why: DecodeError| Error::damaged(&path, format!("chunk {}: {why}", chunk.header.sequence));
        let bytes = chunk.header.unpacked_bytes.into();
        self.unpacker
            .unpack(chunk.header.codec, &packed, bytes, &mut self.unpacked)
            .map_err(|why| damaged(why.into()))?;
        chunk_samples(&self.unpacked, &batch, is_access).map_err(damaged)
    }
}
