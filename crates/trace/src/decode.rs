//! Chunks to batches (SPEC §4.3).

use crate::bytes::{Malformed, Reader, unzigzag};
use crate::event::{Access, Batch, Frame, Mark};
use crate::flatten::{Code, Template};
use crate::format::{ChunkHeader, limit};
use crate::pack::{UnpackError, Unpacker};
use crate::sites::{FunctionId, SiteId, SiteTable};
use crate::table::{Op, Place};

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
    #[error("a segment is said to be followed by its usual successor, but has none yet")]
    NoSuccessor,
    #[error("the words end too early or one of them has more than 64 bits")]
    Words,
    #[error("expands to more than {0} events")]
    TooMany(u64),
    #[error("a range has {0} bytes")]
    Range(u64),
    #[error("its header promises {expected} {what}, it has {found}")]
    Count { what: &'static str, expected: u64, found: u64 },
}

/// Decodes chunks; reuses its memory from one to the next.
pub(crate) struct Decoder {
    unpacker: Unpacker,
    unpacked: Vec<u8>,
    last: Vec<u64>,
}

/// A dictionary entry: all that executing it takes, in one place.
struct Local<'t> {
    function: FunctionId,
    templates: &'t [Template],
    ops: &'t [Op],
    accesses: u32,
    words: u16,
    /// First of its last words.
    base: usize,
    /// The entry that followed it last.
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Decoder {
    pub fn new() -> Self {
        Decoder { unpacker: Unpacker::new(), unpacked: Vec::new(), last: Vec::new() }
    }

    /// Fills a batch with the events of a chunk. `codes` are the modules, `None` for one that could not be read.
    pub fn decode(
        &mut self,
        header: &ChunkHeader,
        packed: &[u8],
        codes: &[Option<Code>],
        sites: &SiteTable,
        batch: &mut Batch,
    ) -> Result<(), DecodeError> {
        batch.accesses.clear();
        batch.marks.clear();
        batch.stack.clear();
        if crc32fast::hash(packed) != header.payload_crc32 {
            return Err(DecodeError::Checksum);
        }
        self.unpacker.unpack(header.codec, packed, header.unpacked_bytes.into(), &mut self.unpacked)?;
        let mut reader = Reader::new(&self.unpacked);
        let mut locals = dictionary(&mut reader, codes)?;
        let depth = reader.count()?;
        let mut address = 0u64;
        for _ in 0..depth {
            let local = &locals[reader.index(locals.len())? as usize];
            address = address.wrapping_add_signed(reader.svarint()?);
            batch.stack.push(Frame { function: local.function, address });
        }
        let control = reader.blob()?;
        let words = reader.take(reader.left())?;

        let last_words = locals.last().map_or(0, |local| local.base + local.words as usize);
        self.last.clear();
        self.last.resize(last_words, 0);
        batch.accesses.reserve(header.accesses.min(limit::CHUNK_ACCESSES) as usize);
        let mut run =
            Run { words: Words { bytes: words, at: 0 }, last: &mut self.last, sites, batch, accesses: 0 };
        let raw_words = run.control(control, header.segments, &mut locals)?;
        for (what, expected, found) in [
            ("words", header.raw_words.into(), raw_words),
            ("accesses", header.accesses, run.accesses),
            ("bytes of words", words.len() as u64, run.words.at as u64),
        ] {
            if expected != found {
                return Err(DecodeError::Count { what, expected, found });
            }
        }
        Ok(())
    }
}

fn dictionary<'t>(reader: &mut Reader<'_>, codes: &'t [Option<Code>]) -> Result<Vec<Local<'t>>, DecodeError> {
    let count = reader.count()?;
    let mut locals = Vec::with_capacity(count);
    let mut base = 0;
    for _ in 0..count {
        let (module, anchor) = (reader.varint()?, reader.varint()?);
        let code = usize::try_from(module).ok().and_then(|module| codes.get(module)?.as_ref());
        let code = code.ok_or(DecodeError::Module(module))?;
        let segment = u32::try_from(anchor).ok().and_then(|anchor| code.segment(anchor));
        let segment = segment.ok_or(DecodeError::Anchor { module, anchor })?;
        locals.push(Local {
            function: segment.function,
            templates: code.templates(segment),
            ops: code.ops(segment),
            accesses: segment.accesses,
            words: segment.words,
            base,
            next: NONE,
        });
        base += segment.words as usize;
    }
    Ok(locals)
}

/// The word stream.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    /// The next varint, unless there is none or it has more than 64 bits.
    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte < 0x80 {
            return Some(byte.into());
        }
        self.rest(byte)
    }

    /// A varint of several bytes. Lengths vary without a pattern a branch predictor could learn, so up to eight
    /// bytes are taken at once: find the last byte, then close the gaps that the flag bits leave.
    #[inline]
    fn rest(&mut self, first: u8) -> Option<u64> {
        if let Some(eight) = self.bytes.get(self.at - 1..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            let ends = !eight & 0x8080_8080_8080_8080;
            if ends != 0 {
                let through_last = ends ^ (ends - 1);
                let x = eight & through_last & 0x7f7f_7f7f_7f7f_7f7f;
                let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
                let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
                let x = (x & 0x0000_0000_0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4;
                self.at += ends.trailing_zeros() as usize / 8;
                return Some(x);
            }
        }
        self.bytewise(first)
    }

    #[cold]
    fn bytewise(&mut self, first: u8) -> Option<u64> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..70).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Executes the control stream.
struct Run<'a> {
    words: Words<'a>,
    last: &'a mut [u64],
    sites: &'a SiteTable,
    batch: &'a mut Batch,
    /// Access, range, masked and gather ops so far.
    accesses: u64,
}

impl Run<'_> {
    /// Returns the number of words of the stream.
    fn control(
        &mut self,
        control: &[u8],
        segments: u32,
        locals: &mut [Local<'_>],
    ) -> Result<u64, DecodeError> {
        let mut control = Reader::new(control);
        let mut left = u64::from(segments);
        let mut raw_words = 0;
        let mut previous = None;
        while left > 0 {
            let mut current = control.index(locals.len())?;
            if let Some(previous) = previous {
                let previous: &mut Local<'_> = &mut locals[previous as usize];
                previous.next = current;
            }
            raw_words += self.segment(&locals[current as usize])?;
            let run = control.up_to(left - 1)?;
            for _ in 0..run {
                current = locals[current as usize].next;
                let local = locals.get(current as usize).ok_or(DecodeError::NoSuccessor)?;
                raw_words += self.segment(local)?;
            }
            left -= 1 + run;
            previous = Some(current);
        }
        match control.left() {
            0 => Ok(raw_words),
            found => Err(DecodeError::Count {
                what: "left-over bytes of control",
                expected: 0,
                found: found as u64,
            }),
        }
    }

    /// One execution; returns its words with the header.
    #[inline]
    fn segment(&mut self, local: &Local<'_>) -> Result<u64, DecodeError> {
        self.room_for(local.templates.len() as u64)?;
        let count = local.words as usize;
        let last = &mut self.last[local.base..local.base + count];
        for word in last.iter_mut() {
            *word = word.wrapping_add_signed(unzigzag(self.words.next().ok_or(DecodeError::Words)?));
        }
        self.accesses += u64::from(local.accesses);
        self.batch.accesses.extend(local.templates.iter().map(|template| Access {
            address: last[template.word as usize].wrapping_add(template.offset),
            bytes: template.bytes,
            site: template.site,
        }));
        if !local.ops.is_empty() {
            self.ops(local)?;
        }
        Ok(1 + count as u64)
    }

    fn room_for(&self, accesses: u64) -> Result<(), DecodeError> {
        match self.batch.accesses.len() as u64 + accesses <= limit::CHUNK_ACCESSES {
            true => Ok(()),
            false => Err(DecodeError::TooMany(limit::CHUNK_ACCESSES)),
        }
    }

    fn ops(&mut self, local: &Local<'_>) -> Result<(), DecodeError> {
        let base = local.base;
        let function = local.function;
        for &op in local.ops {
            let word = |run: &Self, word: u16| run.last[base + word as usize];
            let place = |run: &Self, at: Place| word(run, at.word).wrapping_add(at.offset);
            let mark = match op {
                Op::Access { site, at } => {
                    let address = place(self, at);
                    self.access(SiteId(site), address, self.bytes(site))?;
                    continue;
                }
                Op::Range { site, at, length } => {
                    self.range(SiteId(site), place(self, at), word(self, length))?;
                    continue;
                }
                Op::Masked { site, at, lanes, mask } => {
                    let (address, mask, bytes) = (place(self, at), word(self, mask), self.bytes(site));
                    for lane in (0..u64::from(lanes)).filter(|lane| mask >> lane & 1 == 1) {
                        self.access(SiteId(site), address.wrapping_add(lane * u64::from(bytes)), bytes)?;
                    }
                    continue;
                }
                Op::Gather { site, lanes, first, mask } => {
                    let (mask, bytes) = (word(self, mask), self.bytes(site));
                    for lane in (0..u16::from(lanes)).filter(|lane| mask >> lane & 1 == 1) {
                        self.access(SiteId(site), word(self, first + lane), bytes)?;
                    }
                    continue;
                }
                Op::Enter { frame } => Mark::Enter { function, frame: word(self, frame) },
                Op::Exit => Mark::Exit { function },
                Op::Resume { frame } => Mark::Resume { function, frame: word(self, frame) },
                Op::Alloc { site, first } => Mark::Alloc {
                    site: SiteId(site),
                    base: word(self, first),
                    count: 1,
                    element_bytes: word(self, first + 1),
                },
                Op::AllocArray { site, first } => Mark::Alloc {
                    site: SiteId(site),
                    base: word(self, first),
                    count: word(self, first + 1),
                    element_bytes: word(self, first + 2),
                },
                Op::Realloc { site, first } => Mark::Realloc {
                    site: SiteId(site),
                    base: word(self, first),
                    bytes: word(self, first + 1),
                    old: word(self, first + 2),
                },
                Op::Free { site, first } => Mark::Free { site: SiteId(site), base: word(self, first) },
                Op::Unmap { site, first } => {
                    Mark::Unmap { site: SiteId(site), base: word(self, first), bytes: word(self, first + 1) }
                }
            };
            if self.batch.marks.len() as u64 == limit::CHUNK_ACCESSES {
                return Err(DecodeError::TooMany(limit::CHUNK_ACCESSES));
            }
            self.batch.marks.push((self.batch.accesses.len() as u32, mark));
        }
        Ok(())
    }

    fn bytes(&self, site: u32) -> u32 {
        self.sites.site(SiteId(site)).bytes
    }

    fn access(&mut self, site: SiteId, address: u64, bytes: u32) -> Result<(), DecodeError> {
        self.room_for(1)?;
        self.batch.accesses.push(Access { address, bytes, site });
        Ok(())
    }

    /// A range longer than an access can say becomes several.
    fn range(&mut self, site: SiteId, mut address: u64, length: u64) -> Result<(), DecodeError> {
        if length > limit::RANGE_BYTES {
            return Err(DecodeError::Range(length));
        }
        let mut left = length;
        while left > 0 {
            let bytes = left.min(u32::MAX.into()) as u32;
            self.access(site, address, bytes)?;
            address = address.wrapping_add(bytes.into());
            left -= u64::from(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_of_all_lengths_are_read(values in prop::collection::vec((any::<u64>(), 0..64u32), 0..20)) {
            let mut bytes = Vec::new();
            let values: Vec<u64> = values.into_iter().map(|(value, shift)| value >> shift).collect();
            values.iter().for_each(|&value| crate::bytes::put_varint(&mut bytes, value));
            let mut words = Words { bytes: &bytes, at: 0 };
            for value in values {
                prop_assert_eq!(words.next(), Some(value));
            }
            prop_assert_eq!((words.next(), words.at), (None, bytes.len()));
        }
    }
}
