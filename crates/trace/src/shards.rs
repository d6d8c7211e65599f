//! Chunks dealt out to shards by address.
//!
//! Lines of different sets never meet in a cache, so pieces of a trace that touch different sets can be simulated apart
//! from each other. Marks and loops go to every shard; of an access, each shard gets the lines that are its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::event::{Access, Batch, Loop, Stride};

/// Which shard an address belongs to.
#[derive(Clone, Debug)]
pub struct Shards {
    count: usize,
    /// From address to the number of its line, at the first level.
    line_shift: u32,
    /// From address to the bits that choose the shard.
    shift: u32,
    /// The shard for each value of these bits.
    of: Vec<u8>,
}

/// Most bits that a shard is chosen by.
const MOST_BITS: u32 = 12;

impl Shards {
    /// Everything in one.
    pub fn one() -> Shards {
        Shards { count: 1, line_shift: 6, shift: 0, of: vec![0] }
    }

    /// At most `count` shards by the address bits `bits`; fewer where there are not as many values of the bits. Accesses are cut
    /// at multiples of `line_bytes`, a power of two that is not above the value of the lowest bit.
    pub fn new(count: usize, bits: std::ops::Range<u32>, line_bytes: u32) -> Shards {
        let width = bits.len().min(MOST_BITS as usize) as u32;
        let count = count.clamp(1, (1 << width).min(usize::from(u8::MAX)));
        // The sum of the digits: neighbours and most strides are dealt out evenly.
        let shard = |mut value: usize| {
            let mut sum = 0;
            while value > 0 && count > 1 {
                sum += value % count;
                value /= count;
            }
            (sum % count) as u8
        };
        let of = (0..1usize << width).map(shard).collect();
        Shards { count, line_shift: line_bytes.trailing_zeros(), shift: bits.start, of }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whose an address is.
    #[inline(always)]
    pub fn of(&self, address: u64) -> usize {
        self.of[(address >> self.shift) as usize & (self.of.len() - 1)].into()
    }

    /// Deals a chunk out, to as many batches as there are shards.
    pub fn deal(&self, whole: &Batch, parts: &mut [Batch]) {
        for part in parts.iter_mut() {
            part.clear();
            part.clone_header(whole);
            part.accesses.reserve(whole.accesses.len() / self.count + whole.accesses.len() / 8);
        }
        let mut cuts = 0;
        let mut done = 0;
        let mut loops = whole.loops.iter().peekable();
        for (mark, &(at, event)) in whole.marks.iter().enumerate() {
            while let Some(next) = loops.next_if(|next| next.mark as usize <= mark) {
                self.accesses(&whole.accesses[done..next.access as usize], parts, &mut cuts);
                done = next.access as usize;
                self.repeat(next, &whole.strides, parts, &mut cuts);
            }
            self.accesses(&whole.accesses[done..at as usize], parts, &mut cuts);
            done = at as usize;
            for part in parts.iter_mut() {
                part.marks.push((part.accesses.len() as u32, event));
            }
        }
        for next in loops {
            self.accesses(&whole.accesses[done..next.access as usize], parts, &mut cuts);
            done = next.access as usize;
            self.repeat(next, &whole.strides, parts, &mut cuts);
        }
        self.accesses(&whole.accesses[done..], parts, &mut cuts);
        let depths = (0..cuts).map(|_| AtomicU8::new(0)).collect();
        let cuts = Arc::new(Cuts { depths, shards: self.count, done: AtomicUsize::new(0) });
        for part in parts {
            part.cuts = Some(cuts.clone());
        }
    }

    fn accesses(&self, accesses: &[Access], parts: &mut [Batch], cuts: &mut u32) {
        let line = (1u64 << self.line_shift) - 1;
        for &access in accesses {
            if (access.address & line) + u64::from(access.bytes) <= line + 1 {
                parts[self.of(access.address)].accesses.push(access);
            } else {
                self.cut(access, parts, cuts);
            }
        }
    }

    /// A loop. Each shard finds its own lines in it, if no access ever has several.
    fn repeat(&self, repeated: &Loop, strides: &[Stride], parts: &mut [Batch], cuts: &mut u32) {
        let strides = &strides[repeated.strides.start as usize..repeated.strides.end as usize];
        let line_bytes = 1u64 << self.line_shift;
        if strides.iter().all(|stride| stride.is_aligned(line_bytes)) {
            for part in parts {
                let (access, mark) = (part.accesses.len() as u32, part.marks.len() as u32);
                part.loops.push(Loop { access, mark, ..repeated.clone() });
            }
            return;
        }
        let mut strides = strides.to_vec();
        for _ in 0..repeated.turns {
            for Stride { access, step } in &mut strides {
                self.accesses(&[*access], parts, cuts);
                access.address = access.address.wrapping_add(*step);
            }
        }
    }

    /// An access of several lines.
    #[cold]
    fn cut(&self, access: Access, parts: &mut [Batch], cuts: &mut u32) {
        let line_bytes = 1u64 << self.line_shift;
        let last = access.address.saturating_add(u64::from(access.bytes) - 1);
        let second = (access.address | (line_bytes - 1)) + 1;
        if u64::from(access.bytes) <= line_bytes {
            let (of_first, of_second) = (self.of(access.address), self.of(second));
            if of_first == of_second {
                parts[of_first].accesses.push(access);
                return;
            }
            let bytes = (second - access.address) as u32;
            let halves = [
                (of_first, Access { bytes, ..access }, true),
                (of_second, Access { address: second, bytes: (last - second + 1) as u32, ..access }, false),
            ];
            for (shard, half, is_first) in halves {
                let part = &mut parts[shard];
                part.halves.push(Half { access: part.accesses.len() as u32, cut: *cuts, is_first });
                part.accesses.push(half);
            }
            *cuts += 1;
            return;
        }
        let mut address = access.address;
        loop {
            let end = (address | (line_bytes - 1)).min(last);
            let bytes = (end - address + 1) as u32;
            parts[self.of(address)].accesses.push(Access { address, bytes, ..access });
            if end == last {
                return;
            }
            address = end + 1;
        }
    }
}

/// One shard's part of an access that has lines of two.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// Which access of the batch.
    pub access: u32,
    /// Which of the chunk's [`Cuts`].
    pub cut: u32,
    /// Whether the access begins here.
    pub is_first: bool,
}

/// What the shards tell each other of a chunk's accesses that have lines of two of them.
#[derive(Debug)]
pub struct Cuts {
    depths: Vec<AtomicU8>,
    shards: usize,
    done: AtomicUsize,
}

impl Cuts {
    /// For the shard with the second half: how deep it went.
    pub fn tell(&self, cut: u32, depth: u8) {
        self.depths[cut as usize].store(depth, Ordering::Relaxed);
    }

    /// A shard is through the chunk.
    pub fn finish(&self) {
        // Release: who sees it sees the depths.
        self.done.fetch_add(1, Ordering::Release);
    }

    /// How deep the second half went, once all shards are through.
    pub fn told(&self, cut: u32) -> u8 {
        self.depths[cut as usize].load(Ordering::Relaxed)
    }

    /// Whether all shards are through.
    pub fn are_told(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.shards
    }
}
