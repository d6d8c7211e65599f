//! Words of a stream to chunks (SPEC §4.3), each for itself.

mod loops;

use rustc_hash::FxHashMap;

use self::loops::Parted;
use super::AddressSpace;
use super::chunk::{Chunk, LooseChunk};
use super::history::{Caller, SegmentName, Wanted};
use super::known::{
    Amount, Hot, ImageSegments, Known, NO_HEADER, NONE, STACK_OPS, StackOp, UNEVEN, fits, follow_stack,
    is_last,
};
use super::payload::Form;
use super::relative::RelativeStack;
use super::space::Resolved;
use crate::bytes::put_varint;
use crate::format::stream;
use crate::module::{Module, ModuleId};
use crate::table::Op;
use crate::words::subtract;

/// A chunk is full from here on: small enough to decode into cache-friendly batches and to
/// interleave threads finely, large enough that its dictionary does not count.
pub const FULL_WORDS: u32 = 128 << 10;
const FULL_ACCESSES: u64 = 1 << 20;

/// Words whose differences are gathered before they are written: enough to write them eight at a
/// time, few enough to stay in the first cache.
const SPAN_WORDS: usize = 512;

/// The end of the words: their own, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The program handed the words over; every one of them counts.
    HandedOver,
    /// The program may still be writing, or died: the first zero where a header is expected is the
    /// end, and a last segment with a zero word in it may lack words.
    Open,
}

/// The progress of [`Encoder::append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Words that are in the chunk now.
    pub consumed: usize,
    /// Why it stopped there.
    pub stop: Stop,
}

/// Why [`Encoder::append`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All words are consumed.
    End,
    /// The chunk is full: [`Encoder::finish`] it, then append the rest.
    Full,
    /// The first unwritten word of an open tail.
    Unwritten,
    /// The last segment lacks words. In an open tail it may still be completed.
    Torn,
    /// The last segment of an open tail is a loop, or copies or fills memory: it may not have been
    /// carried out completely.
    Promise,
    /// A segment whose addresses are derived from words that are lost, or were never recorded.
    Orphan {
        /// Words it has, its header included.
        words: usize,
    },
    /// The word is no header of a known module, so the words that follow cannot be interpreted.
    Unknown {
        /// The word.
        header: u64,
    },
}

/// Encodes parts of streams of one process.
///
/// Each word is stored as its difference from the word at the same place in the previous execution
/// of its segment, and a header only if the segment did not follow its predecessor the last time.
/// All of that starts anew in each chunk, so that a chunk decodes alone.
pub struct Encoder {
    /// Segments that were ever executed here; the first entry is [`NONE`].
    segments: Vec<Known>,
    /// The part of the same segments that each execution needs.
    hot: Vec<Hot>,
    /// Indexed by the address of their anchors.
    images: Vec<ImageSegments>,
    by_anchor: FxHashMap<SegmentName, u32>,
    /// Generation of the address space `images` is valid for.
    generation: u64,
    stack_ops: Vec<StackOp>,
    /// Anchors of the segments whose words others refer to, and the number of those words.
    sources: Vec<(u32, u16)>,
    /// The step of each word of segments that repeat strides.
    steps: Vec<(u16, u64)>,
    /// The amounts of segments whose words have the number of their accesses.
    amounts: Vec<Amount>,
    /// Part that is in chunks already of the first segment that has not been consumed yet.
    parted: Parted,
    /// Previous value of each word of each segment.
    last: Vec<u64>,
    /// Differences of words that are not in the chunk yet; has room for [`SPAN_WORDS`], and the
    /// segment that begins within these.
    differences: Vec<u64>,
    /// Since the chunk's beginning.
    stack: RelativeStack<Caller<u32>>,
    chunk: Chunk,
    /// Words with which a chunk is full.
    full_words: u32,
}

/// A source for words of segments that the chunk needs and does not have.
pub type Before<'a> = &'a mut dyn FnMut(&Wanted) -> Option<Vec<u64>>;

impl Default for Encoder {
    fn default() -> Self {
        Self::new(FULL_WORDS, Form::default())
    }
}

impl Encoder {
    /// An encoder without segments. Its chunks are full with this many words, which are of this
    /// form then.
    pub fn new(full_words: u32, form: Form) -> Self {
        let none = Known {
            chunk: 0,
            fresh: false,
            is_source: false,
            stack_ops: (0, 0),
            sources: (0, 0),
            steps: (0, 0),
            amounts: (0, 0),
            strides: 0,
            stamp: None,
            promises: false,
            function: (ModuleId(u32::MAX), 0),
            module: ModuleId(u32::MAX),
            anchor: 0,
        };
        let hot = Hot {
            next_header: NO_HEADER,
            next: NONE,
            executed: 0,
            local: 0,
            base: 0,
            accesses: 0,
            words: 0,
            is_special: true,
            traits: 0,
        };
        Encoder {
            segments: vec![none],
            hot: vec![hot],
            images: Vec::new(),
            by_anchor: FxHashMap::default(),
            generation: 0,
            stack_ops: Vec::new(),
            sources: Vec::new(),
            steps: Vec::new(),
            amounts: Vec::new(),
            parted: Parted::default(),
            last: Vec::new(),
            differences: vec![0; SPAN_WORDS + stream::MAX_SEGMENT_WORDS as usize],
            stack: RelativeStack::default(),
            chunk: Chunk::new(form),
            full_words,
        }
    }

    /// Returns whether there is nothing to finish.
    pub fn is_empty(&self) -> bool {
        self.chunk.raw_words == 0
    }

    /// When the memory of the chunk's first words was taken, if it has been begun.
    pub fn begun(&self) -> Option<u64> {
        self.chunk.open.then_some(self.chunk.stamps.0)
    }

    /// Adds words to the chunk. They begin with a header; `stamps` are the times when their memory
    /// was taken and handed over.
    pub fn append(
        &mut self,
        words: &[u64],
        tail: Tail,
        stamps: (u64, u64),
        space: &AddressSpace,
        before: Before,
    ) -> Appended {
        if space.generation() != self.generation {
            self.images.clear();
            // Predictions are header words, too; to name a segment that would have been predicted does no harm.
            self.chunk.dictionary.iter().for_each(|&id| self.hot[id as usize].forget_next());
            self.generation = space.generation();
        }
        if !self.chunk.open {
            self.begin(stamps.0.max(self.parted.time));
        }
        self.chunk.stamps.1 = self.chunk.stamps.1.max(stamps.1);
        self.chunk.words.make_room(words.len());
        let (consumed, stop) = match tail {
            Tail::HandedOver => self.segments::<false>(words, space, before),
            Tail::Open => self.segments::<true>(words, space, before),
        };
        self.chunk.raw_words += consumed as u32;
        Appended { consumed, stop }
    }

    /// Adds segment by segment; most of them go by in [`Self::plain`].
    fn segments<const OPEN: bool>(
        &mut self,
        words: &[u64],
        space: &AddressSpace,
        before: Before,
    ) -> (usize, Stop) {
        let mut at = 0;
        loop {
            at = self.plain::<OPEN>(words, at);
            let Some(&header) = words.get(at) else { return (at, Stop::End) };
            if self.chunk.raw_words + at as u32 >= self.full_words || self.chunk.accesses >= FULL_ACCESSES {
                return (at, Stop::Full);
            }
            let previous = self.hot[self.chunk.previous as usize];
            let predicted = header == previous.next_header && previous.next != NONE;
            let id = if predicted {
                previous.next
            } else {
                match self.look_up::<OPEN>(header, space) {
                    Ok(id) => id,
                    Err(stop) => return (at, stop),
                }
            };
            let (start, end) = (at + 1, at + 1 + self.hot[id as usize].words as usize);
            let Some(operands) = words.get(start..end) else { return (at, Stop::Torn) };
            if OPEN && is_last(words, end) {
                if operands.contains(&0) {
                    return (at, Stop::Torn);
                }
                if self.segments[id as usize].promises {
                    return (at, Stop::Promise);
                }
            }
            if predicted {
                self.chunk.run += 1;
            } else if let Err(stop) = self.explicit(header, id, space, before) {
                return (at, stop);
            }
            let Hot { base, accesses, is_special, traits, .. } = self.hot[id as usize];
            if is_special {
                match self.repeat(id, operands, &words[end..], space) {
                    true => at = end,
                    false => self.chunk.raw_words += (end - at) as u32,
                }
                continue;
            }
            let last = &mut self.last[base as usize..][..operands.len()];
            self.chunk.put(operands, last, &mut self.differences);
            self.chunk.segments += 1;
            self.chunk.accesses += u64::from(accesses);
            self.chunk.previous = id;
            let segment = &self.segments[id as usize];
            if traits & STACK_OPS != 0 {
                follow_stack(&mut self.stack, segment, id, &self.stack_ops, operands);
            }
            if traits & UNEVEN != 0 {
                self.chunk.more = self.chunk.more.wrapping_add(segment.more(&self.amounts, operands));
            }
            at = end;
        }
    }

    /// The hot loop: adds segments from the word `at` on as [`Self::segments`] does, as long as
    /// each was executed in this chunk before and is not special. Returns the place where it
    /// stopped.
    #[inline(never)]
    fn plain<const OPEN: bool>(&mut self, words: &[u64], at: usize) -> usize {
        let full_words = self.full_words;
        let Chunk { number, raw_words, mut previous, mut run, mut accesses, .. } = self.chunk;
        let (hot, last) = (&mut self.hot[..], &mut self.last[..]);
        let differences = &mut self.differences[..];
        let Chunk { words: gathered, control, more, .. } = &mut self.chunk;
        let before = gathered.len();
        // No segment begins where so many words are left.
        let beyond = words.len().saturating_sub(full_words.saturating_sub(raw_words) as usize);
        let mut left = &words[at..];
        let Hot { mut next_header, mut next, .. } = hot[previous as usize];
        let mut goes_on = true;
        while goes_on && left.len() > beyond && accesses < FULL_ACCESSES {
            let here = beyond.max(left.len().saturating_sub(SPAN_WORDS));
            let mut count = 0;
            while left.len() > here && accesses < FULL_ACCESSES {
                let (header, behind) = (left[0], &left[1..]);
                let id = if header == next_header {
                    goes_on = fits::<OPEN>(&hot[next as usize], behind);
                    if !goes_on {
                        break;
                    }
                    run += 1;
                    next
                } else {
                    let found = self.images.iter().find_map(|image| image.segment(header));
                    let Some(id) = found.filter(|&id| {
                        let segment = &hot[id as usize];
                        segment.executed == number && fits::<OPEN>(segment, behind)
                    }) else {
                        goes_on = false;
                        break;
                    };
                    name(control, &hot[id as usize], (previous != NONE).then_some(run));
                    hot[previous as usize].foretell(header, id);
                    run = 0;
                    id
                };
                let segment = hot[id as usize];
                let operands;
                (operands, left) = behind.split_at(segment.words.into());
                let last = &mut last[segment.base as usize..][..operands.len()];
                subtract(operands, last, &mut differences[count..][..operands.len()]);
                count += operands.len();
                accesses += u64::from(segment.accesses);
                (previous, next_header, next) = (id, segment.next_header, segment.next);
                if segment.traits != 0 {
                    let known = &self.segments[id as usize];
                    if segment.traits & STACK_OPS != 0 {
                        follow_stack(&mut self.stack, known, id, &self.stack_ops, operands);
                    }
                    if segment.traits & UNEVEN != 0 {
                        *more = more.wrapping_add(known.more(&self.amounts, operands));
                    }
                }
            }
            gathered.put(&differences[..count]);
        }
        let end = words.len() - left.len();
        // Whatever is no word of a segment was a header.
        let segments = (end - at) - (gathered.len() - before);
        let chunk = &mut self.chunk;
        (chunk.previous, chunk.run, chunk.accesses) = (previous, run, accesses);
        chunk.segments += segments as u32;
        end
    }

    /// The segment a header word stands for.
    fn look_up<const OPEN: bool>(&mut self, header: u64, space: &AddressSpace) -> Result<u32, Stop> {
        if let Some(id) = self.images.iter().find_map(|image| image.segment(header)) {
            return Ok(id);
        }
        if OPEN && header == 0 {
            return Err(Stop::Unwritten);
        }
        let unknown = Stop::Unknown { header };
        let Resolved { id: module_id, module, start, anchor } = space.resolve(header).ok_or(unknown)?;
        let id = match self.by_anchor.get(&(module_id, anchor)) {
            Some(&id) => id,
            None => self.learn(module_id, module, anchor).ok_or(unknown)?,
        };
        let image = match self.images.iter().position(|image| image.start == start) {
            Some(known) => &mut self.images[known],
            None => self.images.push_mut(ImageSegments::new(start, module.anchor_count())),
        };
        image.segments[anchor as usize] = id;
        Ok(id)
    }

    /// A segment that is met for the first time.
    fn learn(&mut self, module_id: ModuleId, module: &Module, anchor: u32) -> Option<u32> {
        let at = module.segment(anchor)?;
        let segment = module.segment_of(at);
        let first_source = self.sources.len() as u32;
        let sources = module.sources_of(at).iter();
        self.sources.extend(sources.map(|source| (anchor.saturating_sub(source.back), source.words)));
        let first = self.stack_ops.len() as u32;
        let ops = &module.tables[at.0].ops[segment.ops.start as usize..segment.ops.end as usize];
        self.stack_ops.extend(ops.iter().filter_map(|op| match *op {
            Op::Enter { frame } => Some(StackOp::Enter(frame)),
            Op::Exit => Some(StackOp::Exit),
            Op::Resume { frame } => Some(StackOp::Resume(frame)),
            _ => None,
        }));
        let first_step = self.steps.len() as u32;
        let strides = ops.iter().filter_map(|op| match *op {
            Op::Stride { at, step, .. } => Some((at.word, step)),
            _ => None,
        });
        let mut steps: Vec<(u16, u64)> = strides.collect();
        let strides = steps.len() as u32;
        steps.sort_unstable();
        steps.dedup();
        self.steps.extend(steps);
        let first_amount = self.amounts.len() as u32;
        self.amounts.extend(ops.iter().filter_map(|op| match *op {
            Op::Masked { mask, lanes, .. } | Op::Gather { mask, lanes, .. } => {
                Some(Amount::Mask(mask, lanes))
            }
            Op::Range { length, .. } => Some(Amount::Bytes(length)),
            _ => None,
        }));
        let amounts = (first_amount, self.amounts.len() as u32);
        let id = self.segments.len() as u32;
        let stack_ops = (first, self.stack_ops.len() as u32);
        self.segments.push(Known {
            chunk: 0,
            fresh: false,
            is_source: module.is_source(anchor),
            stack_ops,
            sources: (first_source, self.sources.len() as u32),
            steps: (first_step, self.steps.len() as u32),
            amounts,
            strides,
            stamp: ops.iter().rev().find_map(|op| match *op {
                Op::Stamp { word } | Op::Sync { word, .. } => Some(word),
                _ => None,
            }),
            promises: strides != 0 || ops.iter().any(|op| matches!(op, Op::Range { .. })),
            function: (module_id, module.function_number(at)),
            module: module_id,
            anchor,
        });
        self.hot.push(Hot {
            next_header: NO_HEADER,
            next: NONE,
            executed: 0,
            local: 0,
            base: self.last.len() as u32,
            accesses: segment.accesses,
            words: segment.words,
            is_special: strides != 0,
            traits: if stack_ops.0 != stack_ops.1 { STACK_OPS } else { 0 }
                | if amounts.0 != amounts.1 { UNEVEN } else { 0 },
        });
        self.last.resize(self.last.len() + segment.words as usize, 0);
        self.by_anchor.insert((module_id, anchor), id);
        Some(id)
    }

    /// Names a segment in the control stream, and predicts it from now on.
    fn explicit(&mut self, header: u64, id: u32, space: &AddressSpace, before: Before) -> Result<(), Stop> {
        if self.hot[id as usize].executed != self.chunk.number {
            self.first_in_chunk(header, id, space, before)?;
        }
        self.local(id);
        let run = (self.chunk.previous != NONE).then_some(self.chunk.run);
        name(&mut self.chunk.control, &self.hot[id as usize], run);
        self.hot[self.chunk.previous as usize].foretell(header, id);
        self.chunk.run = 0;
        Ok(())
    }

    /// A segment's words are differences from 0 at first, if another has not needed them before,
    /// and the words it refers to have to be in the chunk. A segment that was not executed in the
    /// chunk cannot have been predicted.
    fn first_in_chunk(
        &mut self,
        header: u64,
        id: u32,
        space: &AddressSpace,
        before: Before,
    ) -> Result<(), Stop> {
        let Known { sources, module, anchor, .. } = self.segments[id as usize];
        let Hot { base, words, .. } = self.hot[id as usize];
        let orphan = Stop::Orphan { words: usize::from(words) + 1 };
        let mut inherited = Vec::new();
        for at in sources.0 as usize..sources.1 as usize {
            let (source_anchor, least) = self.sources[at];
            let back = anchor.wrapping_sub(source_anchor);
            let source_header = header.wrapping_sub(u64::from(back) * u64::from(stream::ANCHOR_BYTES));
            let source = self.look_up::<false>(source_header, space).map_err(|_| orphan)?;
            let Hot { words, .. } = self.hot[source as usize];
            if words < least {
                return Err(orphan);
            }
            let Known { chunk, fresh, .. } = self.segments[source as usize];
            if chunk != self.chunk.number || fresh {
                let wanted = Wanted { segment: (module, source_anchor), header: source_header, words };
                let found = before(&wanted).filter(|found| found.len() == usize::from(words));
                inherited.push((source, found.ok_or(orphan)?));
            }
        }
        for (source, words) in inherited {
            let local = self.local(source);
            // Two words may be of one source.
            if std::mem::take(&mut self.segments[source as usize].fresh) {
                self.last[self.hot[source as usize].base as usize..][..words.len()].copy_from_slice(&words);
                self.chunk.inherited.push((local, words));
            }
        }
        self.local(id);
        self.hot[id as usize].executed = self.chunk.number;
        if std::mem::take(&mut self.segments[id as usize].fresh) {
            self.last[base as usize..][..usize::from(words)].fill(0);
        }
        Ok(())
    }

    /// Begins a gap: the next words do not follow the last ones.
    pub fn gap(&mut self) {
        self.parted = Parted::default();
    }

    /// Index in the chunk's dictionary; entering it clears what the segment remembers of earlier
    /// chunks.
    fn local(&mut self, id: u32) -> u32 {
        let segment = &mut self.segments[id as usize];
        if segment.chunk != self.chunk.number {
            (segment.chunk, segment.fresh) = (self.chunk.number, true);
            let hot = &mut self.hot[id as usize];
            hot.forget_next();
            (hot.local, hot.executed) = (self.chunk.dictionary.len() as u32, 0);
            self.chunk.dictionary.push(id);
        }
        self.hot[id as usize].local
    }

    fn begin(&mut self, stamp: u64) {
        let chunk = &mut self.chunk;
        chunk.open = true;
        chunk.number = match chunk.number.checked_add(1) {
            Some(number) => number,
            None => {
                self.segments.iter_mut().for_each(|segment| segment.chunk = 0);
                self.hot.iter_mut().for_each(|segment| segment.executed = 0);
                1
            }
        };
        chunk.dictionary.clear();
        chunk.inherited.clear();
        chunk.control.clear();
        chunk.words.clear();
        (chunk.previous, chunk.run, chunk.raw_words, chunk.segments) = (0, 0, 0, 0);
        (chunk.accesses, chunk.more) = (0, 0);
        chunk.stamps = (stamp, stamp);
        self.hot[NONE as usize].forget_next();
    }

    /// Closes the chunk; `None` if nothing was appended.
    pub fn finish(&mut self) -> Option<LooseChunk> {
        self.chunk.open = false;
        let stack = self.stack.take();
        if self.is_empty() {
            return None;
        }
        put_varint(&mut self.chunk.control, self.chunk.run);
        let mut inherited = std::mem::take(&mut self.chunk.inherited);
        inherited.sort_unstable_by_key(|&(local, _)| local);
        let words = self.chunk.words.take();
        let (segments, chunk) = (&self.segments, &self.chunk);
        let name = |id: u32| (segments[id as usize].module, segments[id as usize].anchor);
        let (mut left, mut left_words) = (Vec::new(), Vec::new());
        for (local, &id) in chunk.dictionary.iter().enumerate() {
            let Hot { base, words, executed, .. } = self.hot[id as usize];
            if segments[id as usize].is_source && executed == chunk.number {
                left.push((local as u32, words));
                left_words.extend_from_slice(&self.last[base as usize..][..words.into()]);
            }
        }
        let loose = LooseChunk {
            dictionary: chunk.dictionary.iter().map(|&id| name(id)).collect(),
            inherited,
            stack: stack.map(|caller| Caller { function: caller.function, segment: name(caller.segment) }),
            left,
            left_words,
            control: chunk.control.clone(),
            words,
            raw_words: chunk.raw_words,
            segments: chunk.segments,
            accesses: chunk.accesses,
            expanded: chunk.accesses.wrapping_add(chunk.more),
            stamps: chunk.stamps,
        };
        self.chunk.raw_words = 0;
        Some(loose)
    }
}

/// Ends the run of the segment that was named last, if there is one, and names another.
#[inline(never)]
fn name(control: &mut Vec<u8>, segment: &Hot, run: Option<u64>) {
    if let Some(run) = run {
        put_varint(control, run);
    }
    put_varint(control, segment.local.into());
}

/// A segment must fit the position type of its words.
const _: () = assert!(stream::MAX_SEGMENT_WORDS <= u16::MAX as u32);
