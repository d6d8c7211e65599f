//! The codecs of payloads (`codec.*` of the format).

use std::io::{Cursor, Read};

use zstd::zstd_safe::{CCtx, CParameter, ErrorCode, ParamSwitch, Strategy, compress_bound};

use crate::format::codec;

/// zstd's fastest regular level: the delta coding before it has done most of the work. SPEC §4.3
/// has the figures.
const LEVEL: i32 = 1;

/// Bytes from the middle of a part by which it is judged; parts smaller than four times that are
/// not judged.
const SAMPLE_BYTES: usize = 4096;

/// A part of a payload, which has symbols of its own and gets a frame of its own.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Bytes that are searched in earlier data.
    Matched(&'a [u8]),
    /// It is looked for if a sample says that it pays.
    Sampled(&'a [u8]),
}

impl Part<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Matched(bytes) | Part::Sampled(bytes) => bytes,
        }
    }
}

/// Packs payloads; reuses its tables from one to the next.
pub struct Packer {
    contexts: Option<Contexts>,
}

/// Both write frames that any zstd reads.
struct Contexts {
    /// Finds repetitions of earlier data, then codes.
    matching: CCtx<'static>,
    /// Codes symbols by how frequent they are, and nothing else.
    coding: CCtx<'static>,
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
        Packer { contexts: Some(Contexts::new()) }
    }

    /// A packer that leaves payloads as they are: larger files for less time.
    pub fn storing() -> Self {
        Packer { contexts: None }
    }

    /// Codec and packed bytes of a payload; what does not shrink is stored.
    pub(crate) fn pack(&mut self, parts: &[Part<'_>]) -> (u8, Vec<u8>) {
        let unpacked = parts.iter().map(|part| part.bytes().len()).sum();
        match self.contexts.as_mut().map(|contexts| contexts.frames(parts)) {
            Some(Ok(packed)) if packed.len() < unpacked => (codec::ZSTD, packed),
            _ => (codec::STORED, parts.iter().map(Part::bytes).collect::<Vec<_>>().concat()),
        }
    }
}

impl Contexts {
    fn new() -> Contexts {
        let context = |parameters: &[CParameter]| {
            let mut context = CCtx::create();
            for &parameter in parameters {
                context.set_parameter(parameter).expect("a parameter that zstd has");
            }
            context
        };
        let coding = [
            CParameter::CompressionLevel(LEVEL),
            CParameter::Strategy(Strategy::ZSTD_fast),
            // Bytes to skip where nothing matches: all of a block.
            CParameter::TargetLength(1 << 17),
            CParameter::LiteralCompressionMode(ParamSwitch::Enable),
        ];
        Contexts { matching: context(&[CParameter::CompressionLevel(LEVEL)]), coding: context(&coding) }
    }

    /// A frame for each part.
    fn frames(&mut self, parts: &[Part<'_>]) -> Result<Vec<u8>, ErrorCode> {
        let room = parts.iter().map(|part| compress_bound(part.bytes().len())).sum();
        let mut out = Cursor::new(Vec::with_capacity(room));
        for part in parts.iter().filter(|part| !part.bytes().is_empty()) {
            let context = match *part {
                Part::Sampled(bytes) if !self.has_matches(bytes)? => &mut self.coding,
                _ => &mut self.matching,
            };
            let bytes = context.compress2(&mut out, part.bytes())?;
            out.set_position(out.position() + bytes as u64);
        }
        Ok(out.into_inner())
    }

    /// Returns whether looking for matches is worth while. Where words are random it finds some
    /// that cost more than they save, in three times the time.
    fn has_matches(&mut self, part: &[u8]) -> Result<bool, ErrorCode> {
        if part.len() < 4 * SAMPLE_BYTES {
            return Ok(true);
        }
        let sample = &part[part.len() / 2..][..SAMPLE_BYTES];
        let mut out = Vec::with_capacity(compress_bound(SAMPLE_BYTES));
        let matched = self.matching.compress2(&mut out, sample)?;
        let coded = self.coding.compress2(&mut out, sample)?;
        // A code has a bit a symbol at least: what took less there was one symbol repeated.
        Ok(matched < coded - coded / 32 || coded < SAMPLE_BYTES / 8)
    }
}

impl Unpacker {
    pub fn new() -> Self {
        Unpacker { zstd: zstd::bulk::Decompressor::new().expect("memory for a zstd context") }
    }

    /// Unpacks to exactly `expected` bytes. Memory grows with what the data give, not with what the
    /// header promises.
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
            let (codec, packed) = Packer::new().pack(&[Part::Matched(payload)]);
            let mut out = Vec::new();
            Unpacker::new().unpack(codec, &packed, payload.len() as u64, &mut out).unwrap();
            assert_eq!(out, payload);
            let short = payload.len() as u64 + 1;
            assert!(Unpacker::new().unpack(codec, &packed, short, &mut out).is_err());
        }
    }

    #[test]
    fn parts_become_one_again_and_noise_is_coded_only() {
        // Four symbols without order, two bits each: whatever matches there are save nothing.
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let noise: Vec<u8> = (0..100_000).map(|_| [3, 5, 128, 255][random() as usize & 3]).collect();
        let order: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        let mut packer = Packer::new();
        for (part, most) in [(&noise, 100_000 / 4 + 200), (&order, 1000)] {
            let parts = [Part::Matched(b"before"), Part::Sampled(part), Part::Matched(&order)];
            let (codec, packed) = packer.pack(&parts);
            let mut out = Vec::new();
            let whole: Vec<u8> = parts.iter().flat_map(Part::bytes).copied().collect();
            Unpacker::new().unpack(codec, &packed, whole.len() as u64, &mut out).unwrap();
            assert_eq!(out, whole);
            let (_, alone) = packer.pack(&[Part::Sampled(part)]);
            assert!(alone.len() <= most, "{}", alone.len());
        }
    }

    #[test]
    fn a_bomb_stops_at_what_its_header_promised() {
        let (codec, packed) = Packer::new().pack(&[Part::Matched(&vec![0; 1 << 26])]);
        let mut out = Vec::new();
        let error = Unpacker::new().unpack(codec, &packed, 2 << 20, &mut out).unwrap_err();
        assert!(matches!(error, UnpackError::Length { .. } | UnpackError::Zstd), "{error}");
        assert!(out.capacity() <= 8 << 20, "{}", out.capacity());
        assert!(Unpacker::new().unpack(9, &packed, 1, &mut out).is_err());
    }
}
