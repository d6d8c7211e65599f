//! State that the chunks of a stream take over from those before them: the calls in progress, and
//! words that addresses are derived from.
//!
//! Chunks can be encoded in any order, and by any thread; they meet their history one after the
//! other.

use rustc_hash::FxHashMap;

use super::chunk::{FullChunk, LooseChunk};
use crate::bytes::{put_svarint, put_varint};
use crate::format::{ChunkHeader, chunk_flag, magic, version};
use crate::module::ModuleId;
use crate::sections::put_sections;
use crate::stack::ShadowStack;

/// A segment, independent of who executed it: its module, and its anchor there.
pub(super) type SegmentName = (ModuleId, u32);

/// A frame's function, and the segment that entered it: the dictionary names that one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<Segment> {
    /// Module, and number of the function in it.
    pub function: (ModuleId, u32),
    pub segment: Segment,
}

impl<Segment> PartialEq for Caller<Segment> {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

/// A segment whose words are needed, and are not in the chunk.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// It, over all images.
    pub(super) segment: SegmentName,
    /// The word that heads each of its executions.
    pub header: u64,
    /// Number of words that follow that.
    pub words: u16,
}

/// A stream up to some chunk's beginning.
#[derive(Default)]
pub struct History {
    stack: ShadowStack<Caller<SegmentName>>,
    /// Words of the last execution of segments that others refer to, unless words of the stream
    /// were lost since.
    sources: FxHashMap<SegmentName, Vec<u64>>,
    /// The last chunk begins and ends here.
    stamps: (u64, u64),
    /// Recording was off before the next chunk.
    was_off: bool,
    /// Recording is off.
    dormant: bool,
}

impl History {
    /// The last words of a segment.
    pub fn words_of(&self, wanted: &Wanted) -> Option<&[u64]> {
        self.sources.get(&wanted.segment).map(Vec::as_slice)
    }

    /// Returns the stamp, but not before that of the stream's last chunk, whatever the thread's
    /// clock says.
    pub(super) fn not_before(&self, stamp: u64) -> u64 {
        stamp.max(self.stamps.0)
    }

    /// Words of the stream are lost here: addresses that follow must not be derived from words
    /// before.
    pub(super) fn gap(&mut self) {
        self.sources.clear();
    }

    /// Begins a later time: recording was off in between.
    pub(super) fn resume_after_off(&mut self) {
        self.gap();
        self.stack.reset([]);
        self.was_off = true;
    }

    pub(super) fn is_dormant(&self) -> bool {
        self.dormant
    }

    pub(super) fn set_dormant(&mut self, dormant: bool) {
        self.resume_after_off();
        self.dormant = dormant;
    }

    /// Returns whether a chunk that was encoded ahead of its predecessors took words for granted
    /// that are the right ones.
    pub(super) fn agrees(&self, chunk: &LooseChunk) -> bool {
        let is_right = |(local, words): &(u32, Vec<u64>)| {
            self.sources.get(&chunk.dictionary[*local as usize]).is_some_and(|known| known == words)
        };
        chunk.inherited.iter().all(is_right)
    }

    /// Completes the stream's next chunk, and is the history of the one after it then.
    pub(super) fn join(&mut self, chunk: LooseChunk) -> FullChunk {
        let mut before = Vec::with_capacity(chunk.dictionary.len() * 8 + chunk.control.len() + 1024);
        put_sections(&mut before, &[]);
        self.put_dictionary_and_stack(&chunk, &mut before);
        put_varint(&mut before, chunk.control.len() as u64);
        before.extend_from_slice(&chunk.control);

        chunk.stack.apply(&mut self.stack);
        let mut left = &chunk.left_words[..];
        for (local, count) in chunk.left {
            let words;
            (words, left) = left.split_at(count.into());
            let known = self.sources.entry(chunk.dictionary[local as usize]).or_default();
            known.clear();
            known.extend_from_slice(words);
        }
        let first = self.not_before(chunk.stamps.0);
        self.stamps = (first, chunk.stamps.1.max(first));
        let flags = match self.dormant {
            true => chunk_flag::DORMANT,
            false if std::mem::take(&mut self.was_off) => chunk_flag::AFTER_GAP,
            false => 0,
        };
        let header = ChunkHeader {
            flags,
            magic: magic::CHUNK,
            version: version::TRACE,
            raw_words: chunk.raw_words,
            segments: chunk.segments,
            unpacked_bytes: (before.len() + chunk.words.bytes()) as u32,
            accesses: chunk.accesses,
            first_stamp: self.stamps.0,
            last_stamp: self.stamps.1,
            ..Default::default()
        };
        FullChunk { header, before, words: chunk.words, expanded: chunk.expanded }
    }

    /// The segments of the chunk, and the frames that were there when it began, which are of
    /// segments, too.
    fn put_dictionary_and_stack(&self, chunk: &LooseChunk, out: &mut Vec<u8>) {
        let frames = self.stack.snapshot();
        let mut locals: FxHashMap<SegmentName, Option<u32>> =
            frames.iter().map(|(caller, _)| (caller.segment, None)).collect();
        for (local, name) in chunk.dictionary.iter().enumerate() {
            if let Some(found) = locals.get_mut(name) {
                *found = Some(local as u32);
            }
        }
        let mut others = Vec::new();
        for (caller, _) in frames {
            let found = locals.entry(caller.segment).or_default();
            if found.is_none() {
                *found = Some((chunk.dictionary.len() + others.len()) as u32);
                others.push(caller.segment);
            }
        }
        put_varint(out, (chunk.dictionary.len() + others.len()) as u64);
        let mut inherited = chunk.inherited.iter().peekable();
        for (local, (module, anchor)) in chunk.dictionary.iter().chain(&others).enumerate() {
            let words = inherited.next_if(|next| next.0 as usize == local);
            put_varint(out, module.0.into());
            put_varint(out, u64::from(*anchor) << 1 | u64::from(words.is_some()));
            let mut before = 0;
            for &word in words.into_iter().flat_map(|(_, words)| words) {
                put_svarint(out, word.wrapping_sub(before) as i64);
                before = word;
            }
        }
        put_varint(out, frames.len() as u64);
        let mut below = 0u64;
        for (caller, address) in frames {
            put_varint(out, locals[&caller.segment].unwrap_or_default().into());
            put_svarint(out, address.wrapping_sub(below) as i64);
            below = *address;
        }
    }
}
