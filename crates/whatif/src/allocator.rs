//! The places of blocks: the calls of a program's allocator, made again.
//!
//! [`AllocatorModel`] models the places that glibc's malloc chooses: blocks of multiples of 16
//! bytes behind a header word; freed ones are reused by the next call for their size, others come
//! from the end of the heap, and large ones have their own pages. Where a caller has a process for
//! it, the C library's own `malloc` makes the calls ([`Allocator`] is the interface of both).

use std::collections::BTreeMap;

use memlode_trace::event::ThreadId;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

/// A block by number, chosen by the caller.
pub type BlockId = u64;

/// A call of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `malloc`, or `aligned_alloc` if the alignment is more than 16.
    Make {
        /// The block.
        block: BlockId,
        /// Its size.
        bytes: u64,
        /// A power of two.
        align: u64,
    },
    /// `realloc`: one block ends, the other begins.
    Resize {
        /// The block that ends.
        old: BlockId,
        /// The block that begins.
        block: BlockId,
        /// Its size.
        bytes: u64,
    },
    /// `free`.
    End {
        /// The block.
        block: BlockId,
    },
}

/// Places blocks of one process.
pub trait Allocator: Send {
    /// Makes a call by a thread. A block that cannot be had gets no place.
    fn call(&mut self, thread: ThreadId, call: Call);

    /// The addresses of all blocks by number; 0 for those that have none.
    ///
    /// # Errors
    /// The reason why the calls could not be made.
    fn places(self: Box<Self>) -> Result<Vec<u64>, String>;
}

/// Blocks from here on are mapped, each in pages of its own (`M_MMAP_THRESHOLD`).
pub(crate) const MAPPED: u64 = 128 << 10;
/// `DEFAULT_MMAP_THRESHOLD_MAX`: a larger block never raises the threshold.
const MOST_MAPPED: u64 = 32 << 20;
const PAGE: u64 = 4096;
/// The heap of the first thread begins about here, and those of others at this distance. No unmoved
/// object lies there or at [`MAPPINGS`]: the kernel puts programs and libraries elsewhere.
const HEAP: u64 = 1 << 44;
const ARENA: u64 = 1 << 34;
/// Mappings grow downwards from here.
const MAPPINGS: u64 = 0x3f00_0000_0000;

/// glibc's malloc in a few lines.
pub struct AllocatorModel {
    places: Vec<u64>,
    /// The size of its chunk and its arena, or the bytes of its pages, of each live block.
    live: FxHashMap<BlockId, (u64, Home)>,
    arenas: BTreeMap<u32, Arena>,
    /// The end of the next mapping: they grow downwards.
    mapped: u64,
    threshold: u64,
    random: Option<ChaCha8Rng>,
}

#[derive(Clone, Copy)]
enum Home {
    Arena(u32),
    Pages,
}

/// A heap, and its free chunks by size, the last freed first.
struct Arena {
    top: u64,
    free: BTreeMap<u64, Vec<u64>>,
}

impl AllocatorModel {
    /// An empty heap. A seed varies the places that the loader and the kernel choose: the beginning
    /// of each heap, and each mapping.
    pub fn new(seed: Option<u64>) -> AllocatorModel {
        AllocatorModel {
            places: Vec::new(),
            live: FxHashMap::default(),
            arenas: BTreeMap::new(),
            mapped: MAPPINGS,
            threshold: MAPPED,
            random: seed.map(ChaCha8Rng::seed_from_u64),
        }
    }

    /// The address of a block, if it is the first one.
    pub(crate) fn first_place(mut self, bytes: u64) -> u64 {
        self.make(ThreadId(0), 0, bytes, 16);
        self.place(0)
    }

    /// A random number below a bound; 0 without a seed.
    fn below(&mut self, bound: u64) -> u64 {
        self.random.as_mut().map_or(0, |random| random.random_range(0..bound))
    }

    fn set(&mut self, block: BlockId, address: u64) {
        let at = block as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        self.places[at] = address;
    }

    fn place(&mut self, block: BlockId) -> u64 {
        self.places.get(block as usize).copied().unwrap_or(0)
    }

    fn make(&mut self, thread: ThreadId, block: BlockId, bytes: u64, align: u64) {
        let chunk = chunk_bytes(bytes);
        if bytes >= self.threshold {
            let whole = (chunk + 8).next_multiple_of(PAGE);
            let skipped = self.below(256) * PAGE;
            let Some(start) = self.mapped.checked_sub(whole.saturating_add(skipped)) else { return };
            self.mapped = start;
            let address = (start + 16).next_multiple_of(align.max(16));
            self.set(block, address);
            self.live.insert(block, (whole, Home::Pages));
            return;
        }
        let number = thread.0;
        if !self.arenas.contains_key(&number) {
            let offset = self.below(PAGE / 16) * 16;
            let top = HEAP + u64::from(number) * ARENA + 16 + offset;
            self.arenas.insert(number, Arena { top, free: BTreeMap::new() });
        }
        let Some(arena) = self.arenas.get_mut(&number) else { return };
        let taken = if align <= 16 { arena.take(chunk) } else { None };
        let address = taken.unwrap_or_else(|| {
            let address = arena.top.next_multiple_of(align.max(16));
            arena.top = address + chunk;
            address
        });
        self.set(block, address);
        self.live.insert(block, (chunk, Home::Arena(number)));
    }

    fn end(&mut self, block: BlockId) {
        let Some((bytes, home)) = self.live.remove(&block) else { return };
        match home {
            // What was mapped and freed raises the threshold, so that its like comes from the heap next time.
            Home::Pages if bytes <= MOST_MAPPED => self.threshold = self.threshold.max(bytes),
            Home::Pages => {}
            Home::Arena(number) => {
                let address = self.place(block);
                if let Some(arena) = self.arenas.get_mut(&number) {
                    arena.give(address, bytes);
                }
            }
        }
    }
}

impl Arena {
    /// A free chunk of this size, or a larger one's beginning.
    fn take(&mut self, chunk: u64) -> Option<u64> {
        // As bins are searched: the size itself, or the smallest that leaves a chunk over.
        let (&size, _) = self.free.range(chunk..).find(|(size, _)| **size == chunk || **size >= 1024)?;
        let chunks = self.free.get_mut(&size)?;
        let address = chunks.pop()?;
        if chunks.is_empty() {
            self.free.remove(&size);
        }
        if size - chunk >= 32 {
            self.give(address + chunk, size - chunk);
        }
        Some(address)
    }

    fn give(&mut self, address: u64, bytes: u64) {
        if address + bytes == self.top && bytes >= 1024 {
            self.top = address;
        } else {
            self.free.entry(bytes).or_default().push(address);
        }
    }
}

/// Bytes from a block to its neighbour.
fn chunk_bytes(bytes: u64) -> u64 {
    bytes.saturating_add(8).checked_next_multiple_of(16).unwrap_or(1 << 46).clamp(32, 1 << 46)
}

impl Allocator for AllocatorModel {
    fn call(&mut self, thread: ThreadId, call: Call) {
        match call {
            Call::Make { block, bytes, align } => self.make(thread, block, bytes, align),
            Call::End { block } => self.end(block),
            Call::Resize { old, block, bytes } => {
                let chunk = chunk_bytes(bytes);
                let stays = self.live.get(&old).copied().filter(|&(room, home)| match home {
                    Home::Arena(_) => chunk <= room && bytes < self.threshold,
                    Home::Pages => (chunk + 8).next_multiple_of(PAGE) == room,
                });
                let Some(known) = stays else {
                    self.make(thread, block, bytes, 16);
                    self.end(old);
                    return;
                };
                let address = self.place(old);
                self.live.remove(&old);
                self.live.insert(block, known);
                self.set(block, address);
            }
        }
    }

    fn places(self: Box<Self>) -> Result<Vec<u64>, String> {
        Ok(self.places)
    }
}
