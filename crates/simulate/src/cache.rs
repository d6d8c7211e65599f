//! One set-associative cache with exact least-recently-used replacement.

use crate::row::{self, DIRTY, EMPTY, Moved, Portable, Rows};
use crate::sets::SetIndex;
use crate::spec::{LevelSpec, Problem};

/// Most ways the vector form handles; wider rows are not padded.
const VECTOR_WAYS: usize = 32;

/// What a touch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The line was in the cache.
    pub hit: bool,
    /// The line that made room, if one had to.
    pub evicted: Option<Evicted>,
}

/// A line that left a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Its line number.
    pub line: u64,
    /// It was written while it was here.
    pub dirty: bool,
}

/// The rows' memory, aligned so that an 8-way row is one line of the machine we run on.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u64; 8]);

/// One cache. Addressed by *line numbers* (address divided by the line size).
#[derive(Clone)]
pub struct Cache {
    blocks: Vec<Block>,
    stride: usize,
    ways: usize,
    sets: SetIndex,
    vectors: bool,
}

impl Cache {
    /// An empty cache of the given shape (`shared_by` plays no part).
    pub fn new(spec: &LevelSpec) -> Result<Cache, Problem> {
        spec.check()?;
        let ways = spec.ways as usize;
        let stride = if ways <= VECTOR_WAYS { ways.next_multiple_of(4) } else { ways };
        let entries = spec.sets() as usize * stride;
        Ok(Cache {
            blocks: vec![Block([EMPTY; 8]); entries.div_ceil(8)],
            stride,
            ways,
            sets: SetIndex::new(spec.sets()),
            vectors: row::have_avx2(),
        })
    }

    /// Looks the line up, brings it in if it is missing, and makes it the most recent of its set.
    ///
    /// Line numbers are below 2^62, as lines have at least 4 bytes.
    #[inline]
    pub fn touch(&mut self, line: u64, is_write: bool) -> Touch {
        if self.touch_front(line, is_write) {
            return Touch { hit: true, evicted: None };
        }
        #[cfg(target_arch = "x86_64")]
        let moved = if self.vectors {
            // SAFETY: `vectors` says that the processor has AVX2.
            unsafe { self.touch_avx2(line, u64::from(is_write)) }
        } else {
            // SAFETY: `Portable` runs anywhere.
            unsafe { self.move_to_front::<Portable>(line, u64::from(is_write)) }
        };
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: `Portable` runs anywhere.
        let moved = unsafe { self.move_to_front::<Portable>(line, u64::from(is_write)) };
        let evicted = (!moved.hit && moved.last != EMPTY)
            .then_some(Evicted { line: moved.last >> 1, dirty: moved.last & DIRTY != 0 });
        Touch { hit: moved.hit, evicted }
    }

    /// Whether the cache holds the line, changing nothing.
    pub fn holds(&self, line: u64) -> bool {
        self.row(line).iter().any(|entry| entry >> 1 == line)
    }

    /// Marks a line that is here as written without making it recent; says whether it was here.
    pub fn mark_dirty(&mut self, line: u64) -> bool {
        let start = self.start(line);
        for way in start..start + self.ways {
            let entry = &mut self.entries_mut()[way];
            if *entry >> 1 == line {
                *entry |= DIRTY;
                return true;
            }
        }
        false
    }

    /// Lines of the set that `line` belongs to, most recent first, with their dirty marks.
    pub fn set_of(&self, line: u64) -> impl Iterator<Item = Evicted> + '_ {
        let row = self.row(line).iter().take_while(|entry| **entry != EMPTY);
        row.map(|entry| Evicted { line: entry >> 1, dirty: entry & DIRTY != 0 })
    }

    /// The hit path: true if the line is already the most recent of its set.
    #[inline(always)]
    pub(crate) fn touch_front(&mut self, line: u64, is_write: bool) -> bool {
        let start = self.start(line);
        // SAFETY: `start` is the first entry of a row.
        let front = unsafe { &mut *self.blocks.as_mut_ptr().cast::<u64>().add(start) };
        if *front >> 1 != line {
            return false;
        }
        // Stores only when the mark changes: a row that was just stored to in part stalls a vector load.
        if is_write && *front & DIRTY == 0 {
            *front |= DIRTY;
        }
        true
    }

    /// The general path. `dirty` is [`DIRTY`] or 0.
    ///
    /// # Safety
    /// The processor must have what `R` needs.
    #[inline(always)]
    pub(crate) unsafe fn move_to_front<R: Rows>(&mut self, line: u64, dirty: u64) -> Moved {
        let start = self.start(line);
        // SAFETY: a row of `stride` entries starts at `start`, see `start`.
        unsafe {
            let row = self.blocks.as_mut_ptr().cast::<u64>().add(start);
            R::to_front(row, self.stride, self.ways, line, dirty)
        }
    }

    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn touch_avx2(&mut self, line: u64, dirty: u64) -> Moved {
        // SAFETY: the caller's promise.
        unsafe { self.move_to_front::<row::Avx2>(line, dirty) }
    }

    /// Index of the first entry of the line's row. With `stride` more it is within `blocks`, because
    /// the set is below the number of sets for which `new` made room.
    #[inline(always)]
    fn start(&self, line: u64) -> usize {
        self.sets.of(line) * self.stride
    }

    fn row(&self, line: u64) -> &[u64] {
        let start = self.start(line);
        let entries = self.blocks.as_ptr().cast::<u64>();
        // SAFETY: `Block` is eight `u64` without padding.
        let entries = unsafe { std::slice::from_raw_parts(entries, self.blocks.len() * 8) };
        &entries[start..start + self.ways]
    }

    fn entries_mut(&mut self) -> &mut [u64] {
        let entries = self.blocks.as_mut_ptr().cast::<u64>();
        // SAFETY: `Block` is eight `u64` without padding.
        unsafe { std::slice::from_raw_parts_mut(entries, self.blocks.len() * 8) }
    }
}
