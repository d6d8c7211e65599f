//! The codecs of payloads (`codec.*` of the format).

use std::io::Read;

use crate::format::codec;

/// zstd's fastest regular level: the delta coding before it has done most of the work. SPEC §4.3 has the figures.
const LEVEL: i32 = 1;

/// Packs payloads; reuses its tables from one to the next.
pub struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

/// Unpacks payloads.
pub(crate) struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
}

/// Why a payload could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("unknown codec {0}")]
    Codec(u8),
    #[error("the packed data are damaged")]
    Zstd,
    #[error("unpacks to {found} bytes, its header promises {expected}")]
    Length { found: u64, expected: u64 },
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl Packer {
    /// A packer that packs.
    pub fn new() -> Self {
        // Fails only when memory is exhausted, like every allocation.
        Packer { zstd: Some(zstd::bulk::Compressor::new(LEVEL).expect("memory for a zstd context")) }
    }

    /// A packer that leaves payloads as they are: larger files for less time.
    pub fn storing() -> Self {
        Packer { zstd: None }
    }

    /// Codec and packed bytes; what does not shrink is stored.
    pub(crate) fn pack(&mut self, payload: &[u8]) -> (u8, Vec<u8>) {
        match self.zstd.as_mut().map(|zstd| zstd.compress(payload)) {
            Some(Ok(packed)) if packed.len() < payload.len() => (codec::ZSTD, packed),
            _ => (codec::STORED, payload.to_vec()),
        }
    }
}

impl Unpacker {
    pub fn new() -> Self {
        Unpacker { zstd: zstd::bulk::Decompressor::new().expect("memory for a zstd context") }
    }

    /// Unpacks to exactly `expected` bytes. Memory grows with what the data give, not with what the header promises.
    pub fn unpack(
        &mut self,
        codec: u8,
        packed: &[u8],
        expected: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), UnpackError> {
        out.clear();
        match codec {
            codec::STORED => out.extend_from_slice(packed),
            // A zstd frame says its length; a small one is unpacked in one go into memory reserved for it.
            codec::ZSTD if expected <= (packed.len() as u64).saturating_mul(64).max(1 << 20) => {
                out.reserve(expected as usize);
                self.zstd.decompress_to_buffer(packed, out).map_err(|_| UnpackError::Zstd)?;
            }
            codec::ZSTD => {
                let stream =
                    zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| UnpackError::Zstd)?;
                stream.take(expected.saturating_add(1)).read_to_end(out).map_err(|_| UnpackError::Zstd)?;
            }
            other => return Err(UnpackError::Codec(other)),
        }
        match out.len() as u64 {
            found if found == expected => Ok(()),
            found => Err(UnpackError::Length { found, expected }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_survive() {
        let noise: Vec<u8> =
            (0..5000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let zeros = vec![0; 3_000_000];
        for payload in [&b""[..], b"a", &noise, &zeros] {
            let (codec, packed) = Packer::new().pack(payload);
            let mut out = Vec::new();
            Unpacker::new().unpack(codec, &packed, payload.len() as u64, &mut out).unwrap();
            assert_eq!(out, payload);
            let short = payload.len() as u64 + 1;
            assert!(Unpacker::new().unpack(codec, &packed, short, &mut out).is_err());
        }
    }

    #[test]
    fn a_bomb_stops_at_what_its_header_promised() {
        let (codec, packed) = Packer::new().pack(&vec![0; 1 << 26]);
        let mut out = Vec::new();
        let error = Unpacker::new().unpack(codec, &packed, 2 << 20, &mut out).unwrap_err();
        assert!(matches!(error, UnpackError::Length { .. } | UnpackError::Zstd), "{error}");
        assert!(out.capacity() <= 8 << 20, "{}", out.capacity());
        assert!(Unpacker::new().unpack(9, &packed, 1, &mut out).is_err());
    }
}
