//! Chunks to batches (SPEC §4.3).

use rustc_hash::FxHashMap;

use std::sync::Arc;

use crate::bytes::{Malformed, Reader};
use crate::event::{Access, Batch, Frame, Loop, Mark, Stride};
use crate::flatten::{Code, Template};
use crate::format::{ChunkHeader, limit};
use crate::pack::{UnpackError, Unpacker};
use crate::sites::{FunctionId, SiteId, SiteTable};
use crate::table::{Op, Place, Source};
use crate::varints::read_varints;
use crate::words::{TAIL_BYTES, read_words};

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
    #[error("a range has {0} bytes")]
    Range(u64),
    #[error("its header promises {expected} {what}, it has {found}")]
    Count { what: &'static str, expected: u64, found: u64 },
}

/// What becomes of a loop that is one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loops {
    /// All its accesses are written out.
    Unrolled,
    /// It stays one [`Loop`].
    Kept,
}

/// Decodes chunks; reuses its memory from one to the next.
pub(crate) struct Decoder {
    loops: Loops,
    unpacker: Unpacker,
    unpacked: Vec<u8>,
    words: Vec<u64>,
    last: Vec<u64>,
    bases: Vec<u32>,
    plain: Vec<Plain>,
    filled: Vec<Filled>,
}

/// A dictionary entry.
struct Local<'t> {
    function: FunctionId,
    templates: &'t [Template],
    ops: &'t [Op],
    accesses: u32,
    words: u16,
    /// First of its last words.
    base: usize,
    /// Where in the list of bases its own is; those of its sources follow.
    first_base: usize,
}

/// What the hot loop needs of a dictionary entry, most of which have plain accesses only.
#[derive(Clone, Copy)]
struct Plain {
    /// First of its last words.
    base: u32,
    words: u32,
    /// Its accesses in the list of templates that are filled in. [`UNFILLED`] of them if it was not executed yet, [`OPS`] if it has
    /// other ops, too.
    first: u32,
    accesses: u32,
    /// The entry that followed it last.
    next: u32,
}

const NONE: u32 = u32::MAX;
const UNFILLED: u32 = u32::MAX;
const OPS: u32 = u32::MAX - 1;

/// A [`Template`] that knows where its word is in this chunk.
#[derive(Clone, Copy)]
struct Filled {
    offset: u64,
    word: u32,
    bytes: u32,
    site: SiteId,
}

impl Filled {
    /// The access, with the last words as they are.
    #[inline(always)]
    fn access(&self, last: &[u64]) -> Access {
        let address = last[self.word as usize].wrapping_add(self.offset);
        Access { address, bytes: self.bytes, site: self.site }
    }
}

impl Decoder {
    pub fn new(loops: Loops) -> Self {
        Decoder {
            loops,
            unpacker: Unpacker::new(),
            unpacked: Vec::new(),
            words: Vec::new(),
            last: Vec::new(),
            bases: Vec::new(),
            plain: Vec::new(),
            filled: Vec::new(),
        }
    }

    /// Fills a batch with the events of a chunk. `codes` are the modules, `None` for one that could not be read.
    pub fn decode(
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
        let mut reader = Reader::new(&self.unpacked[..payload_bytes]);
        let locals = dictionary(&mut reader, codes, &mut self.last, &mut self.bases)?;
        self.filled.clear();
        self.plain.clear();
        self.plain.extend(locals.iter().map(|local| Plain {
            base: local.base as u32,
            words: local.words.into(),
            first: 0,
            accesses: if local.ops.is_empty() { UNFILLED } else { OPS },
            next: NONE,
        }));
        let depth = reader.count()?;
        let mut address = 0u64;
        for _ in 0..depth {
            let local = &locals[reader.index(locals.len())? as usize];
            address = address.wrapping_add_signed(reader.svarint()?);
            batch.stack.push(Frame { function: local.function, address });
        }
        let control = reader.blob()?;
        // Each has a byte at least.
        let count = header.raw_words.checked_sub(header.segments).ok_or(DecodeError::Words)? as usize;
        if count > reader.left() {
            return Err(DecodeError::Words);
        }
        self.words.resize(count, 0);
        let word_bytes = reader.left();
        let read = match header.version {
            1 | 2 => read_varints(reader.take(word_bytes)?, &mut self.words),
            _ => {
                let heads = reader.take(count)?;
                let tails = read_words(heads, &self.unpacked[reader.position()..], &mut self.words);
                tails.map(|tails| count + tails)
            }
        };
        let read = read.ok_or(DecodeError::Words)?;

        batch.accesses.reserve(header.accesses.min(limit::CHUNK_ACCESSES) as usize);
        let mut run = Run {
            words: &self.words,
            last: &mut self.last,
            bases: &self.bases,
            locals: &locals,
            filled: &mut self.filled,
            loops: self.loops,
            sites,
            batch,
            accesses: 0,
            others: 0,
            repeated: 0,
        };
        run.control(control, header.segments, &mut self.plain).map_err(|error| *error)?;
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

/// The segments of a chunk; their words before its first segment, 0 if it does not say; and for each segment where its
/// own words and those of its sources are.
fn dictionary<'t>(
    reader: &mut Reader<'_>,
    codes: &'t [Option<Arc<Code>>],
    last: &mut Vec<u64>,
    bases: &mut Vec<u32>,
) -> Result<Vec<Local<'t>>, DecodeError> {
    let count = reader.count()?;
    let mut locals: Vec<Local<'_>> = Vec::with_capacity(count);
    let mut numbers = FxHashMap::default();
    let mut derived: Vec<(usize, u64, u32, &[Source])> = Vec::new();
    last.clear();
    bases.clear();
    for number in 0..count {
        let (module, word) = (reader.varint()?, reader.varint()?);
        let (anchor, inherits) = (word >> 1, word & 1 == 1);
        let code = usize::try_from(module).ok().and_then(|module| codes.get(module)?.as_ref());
        let code = code.ok_or(DecodeError::Module(module))?;
        let segment = u32::try_from(anchor).ok().and_then(|anchor| code.segment(anchor));
        let segment = segment.ok_or(DecodeError::Anchor { module, anchor })?;
        let sources = code.sources(segment);
        let base = last.len();
        last.resize(base + segment.words as usize, 0);
        if inherits {
            let mut before = 0u64;
            for word in &mut last[base..] {
                before = before.wrapping_add_signed(reader.svarint()?);
                *word = before;
            }
        }
        if !sources.is_empty() {
            derived.push((number, module, anchor as u32, sources));
        }
        numbers.insert((module, anchor as u32), number);
        locals.push(Local {
            function: segment.function,
            templates: code.templates(segment),
            ops: code.ops(segment),
            accesses: segment.accesses,
            words: segment.words,
            base,
            first_base: 0,
        });
    }
    for (number, module, anchor, sources) in derived {
        let first = bases.len();
        bases.push(locals[number].base as u32);
        bases.extend(sources.iter().map_while(|source| {
            let number = numbers.get(&(module, anchor.checked_sub(source.back)?))?;
            Some(&locals[*number]).filter(|found| found.words >= source.words).map(|found| found.base as u32)
        }));
        // One that is not executed, but has a frame on the stack, may lack them.
        let complete = bases.len() == first + 1 + sources.len();
        locals[number].first_base = if complete { first } else { usize::MAX };
    }
    Ok(locals)
}

/// Executes the control stream.
struct Run<'a> {
    /// Those that are left.
    words: &'a [u64],
    last: &'a mut [u64],
    bases: &'a [u32],
    locals: &'a [Local<'a>],
    filled: &'a mut Vec<Filled>,
    loops: Loops,
    sites: &'a SiteTable,
    batch: &'a mut Batch,
    /// Access, range, masked and gather ops of segments that are not plain, so far.
    accesses: u64,
    /// What these and loops wrote into the batch.
    others: u64,
    /// Accesses of loops so far.
    repeated: u64,
}

/// In a box: a result that fits a register is what the hot loop can afford.
type Fallible = Result<(), Box<DecodeError>>;

#[inline(always)]
fn add(words: &mut [u64], deltas: &[u64]) {
    for (word, delta) in words.iter_mut().zip(deltas) {
        *word = word.wrapping_add(*delta);
    }
}

impl Run<'_> {
    fn control(&mut self, control: &[u8], segments: u32, entries: &mut [Plain]) -> Fallible {
        let mut control = Reader::new(control);
        let mut left = u64::from(segments);
        let mut previous: Option<u32> = None;
        while left > 0 {
            let mut current = control.index(entries.len()).map_err(DecodeError::from)?;
            if let Some(previous) = previous {
                entries[previous as usize].next = current;
            }
            let mut run = control.up_to(left - 1).map_err(DecodeError::from)?;
            left -= 1 + run;
            loop {
                let entry = entries.get_mut(current as usize).ok_or(DecodeError::NoSuccessor)?;
                let next = entry.next;
                if entry.accesses < OPS {
                    self.plain(entry)?;
                } else {
                    self.other(entry, current)?;
                }
                if run == 0 {
                    break;
                }
                run -= 1;
                current = next;
            }
            previous = Some(current);
        }
        match control.left() as u64 {
            0 => Ok(()),
            found => {
                Err(DecodeError::Count { what: "left-over bytes of control", expected: 0, found }.into())
            }
        }
    }

    /// An execution of a segment of plain accesses.
    #[inline(always)]
    fn plain(&mut self, entry: &Plain) -> Fallible {
        let (base, first) = (entry.base as usize, entry.first as usize);
        let own = &mut self.last[base..base + entry.words as usize];
        let (deltas, words) = self.words.split_at_checked(own.len()).ok_or(DecodeError::Words)?;
        self.words = words;
        // Most have one word and one access, and loops cost more than their one turn.
        if let ([word], [delta]) = (&mut *own, deltas) {
            *word = word.wrapping_add(*delta);
        } else {
            add(own, deltas);
        }
        let filled = &self.filled[first..first + entry.accesses as usize];
        if self.batch.accesses.len() + filled.len() > limit::CHUNK_ACCESSES as usize {
            return Err(DecodeError::TooMany(limit::CHUNK_ACCESSES).into());
        }
        let last = &*self.last;
        if let [filled] = filled {
            self.batch.accesses.push(filled.access(last));
        } else {
            self.batch.accesses.extend(filled.iter().map(|filled| filled.access(last)));
        }
        Ok(())
    }

    /// An execution of a segment that is not plain, or not known to be.
    #[inline(never)]
    fn other(&mut self, entry: &mut Plain, current: u32) -> Fallible {
        let local = &self.locals[current as usize];
        if entry.accesses == UNFILLED {
            self.fill(entry, local)?;
            return self.plain(entry);
        }
        self.accesses += u64::from(local.accesses);
        let before = self.batch.accesses.len();
        self.read_words(local)?;
        match *local.ops {
            [Op::Repeat { count }, ref body @ ..] => self.repeat(local.base, count, body)?,
            _ => self.ops(local)?,
        }
        self.others += (self.batch.accesses.len() - before) as u64;
        Ok(())
    }

    /// Finds the words of a plain segment that is executed for the first time.
    fn fill(&mut self, entry: &mut Plain, local: &Local<'_>) -> Fallible {
        entry.first = self.filled.len() as u32;
        entry.accesses = local.templates.len() as u32;
        for template in local.templates {
            let base = match template.source {
                0 => Some(local.base as u32),
                source => {
                    let bases = self.bases.get(local.first_base..).ok_or(DecodeError::Source)?;
                    bases.get(source as usize).copied()
                }
            };
            let word = base.ok_or(DecodeError::Source)? + u32::from(template.word);
            if word as usize >= self.last.len() {
                return Err(DecodeError::Source.into());
            }
            let Template { offset, bytes, site, .. } = *template;
            self.filled.push(Filled { offset, word, bytes, site });
        }
        Ok(())
    }

    fn read_words(&mut self, local: &Local<'_>) -> Fallible {
        let own = &mut self.last[local.base..local.base + local.words as usize];
        let (deltas, words) = self.words.split_at_checked(own.len()).ok_or(DecodeError::Words)?;
        self.words = words;
        add(own, deltas);
        Ok(())
    }

    fn room_for(&self, accesses: u64) -> Fallible {
        match (self.batch.accesses.len() as u64).saturating_add(accesses) <= limit::CHUNK_ACCESSES {
            true => Ok(()),
            false => Err(DecodeError::TooMany(limit::CHUNK_ACCESSES).into()),
        }
    }

    /// Strides, by turns, as often as the segment's word says.
    fn repeat(&mut self, base: usize, count: u16, body: &[Op]) -> Fallible {
        let turns = self.last[base + count as usize];
        let accesses = turns.saturating_mul(body.len() as u64);
        let kept = if self.loops == Loops::Kept { self.repeated } else { 0 };
        self.room_for(accesses.saturating_add(kept))?;
        self.repeated += accesses;
        let first = self.batch.strides.len();
        for op in body {
            let Op::Stride { site, at, step } = *op else { unreachable!("the table's parser has looked") };
            let address = self.last[base + at.word as usize].wrapping_add(at.offset);
            let access = Access { address, bytes: self.bytes(site), site: SiteId(site) };
            self.batch.strides.push(Stride {
                access,
                step,
                is_write: self.sites.site(SiteId(site)).kind.is_write(),
            });
        }
        if self.loops == Loops::Kept {
            let strides = first as u32..self.batch.strides.len() as u32;
            let (access, mark) = (self.batch.accesses.len() as u32, self.batch.marks.len() as u32);
            self.batch.loops.push(Loop { access, mark, turns, strides, dealt: None });
            return Ok(());
        }
        self.batch.accesses.reserve(accesses as usize);
        for _ in 0..turns {
            for Stride { access, step, .. } in &mut self.batch.strides[first..] {
                self.batch.accesses.push(*access);
                access.address = access.address.wrapping_add(*step);
            }
        }
        self.batch.strides.truncate(first);
        Ok(())
    }

    fn ops(&mut self, local: &Local<'_>) -> Fallible {
        let base = local.base;
        let function = local.function;
        for &op in local.ops {
            let word = |run: &Self, word: u16| run.last[base + word as usize];
            let place = |run: &Self, at: Place| word(run, at.word).wrapping_add(at.offset);
            let mark = match op {
                Op::Repeat { .. } | Op::Stride { .. } => unreachable!("a segment with these has no others"),
                Op::Access { site, at } => {
                    let address = place(self, at);
                    self.access(SiteId(site), address, self.bytes(site))?;
                    continue;
                }
                Op::Derived { site, source, at } => {
                    let bases = self.bases.get(local.first_base..).ok_or(DecodeError::Source)?;
                    let base = bases[1 + source as usize] as usize;
                    let address = self.last[base + at.word as usize].wrapping_add(at.offset);
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
                Op::Value { first, bytes, lanes, mask, both } => {
                    let mask = if lanes == 0 { 1 } else { word(self, mask) };
                    self.values(base + first as usize, bytes, lanes, mask, both);
                    continue;
                }
                Op::Stamp { word: stamp } => match word(self, stamp) {
                    0 | 1 => continue, // nobody to learn from yet
                    stamp => Mark::Stamp { stamp },
                },
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
                return Err(DecodeError::TooMany(limit::CHUNK_ACCESSES).into());
            }
            self.batch.marks.push((self.batch.accesses.len() as u32, mark));
        }
        Ok(())
    }

    fn bytes(&self, site: u32) -> u32 {
        self.sites.site(SiteId(site)).bytes
    }

    fn access(&mut self, site: SiteId, address: u64, bytes: u32) -> Fallible {
        self.room_for(1)?;
        self.batch.accesses.push(Access { address, bytes, site });
        Ok(())
    }

    /// The values of the accesses that the op before made: as many as bits are set in the mask.
    fn values(&mut self, first: usize, bytes: u32, lanes: u8, mask: u64, both: bool) {
        let bytes = bytes as usize;
        let lanes = usize::from(lanes.max(1));
        let words = (bytes * lanes).div_ceil(8);
        let set = |lane: &usize| mask >> lane & 1 == 1;
        let accesses = self.batch.accesses.len() - (0..lanes).filter(set).count();
        for (lane, access) in (0..lanes).filter(set).zip(accesses..) {
            self.batch.values.push(access as u32, |out| {
                for copy in 0..1 + usize::from(both) {
                    let from = 8 * (first + copy * words) + lane * bytes;
                    out.extend((from..from + bytes).map(|at| self.last[at / 8].to_le_bytes()[at % 8]));
                }
            });
        }
    }

    /// A range longer than an access can say becomes several.
    fn range(&mut self, site: SiteId, mut address: u64, length: u64) -> Fallible {
        if length > limit::RANGE_BYTES {
            return Err(DecodeError::Range(length).into());
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
