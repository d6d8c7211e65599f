//! Misses of the first level that wait, and then go outwards together.
//!
//! What a level is asked follows from what the level inside it missed and dropped, in that order, and from nothing else. So the
//! levels need not take turns: the first one can go ahead, and each of the others then answers all that has come up meanwhile.
//!
//! ```text
//!   level 0   hit  hit  MISS a  hit  MISS b (dropped x, which was written)  hit  MISS c …
//!   level 1   asked for a, given x, asked for b, asked for c …         the rows of those to come are fetched meanwhile
//!   level 2   what of these level 1 had not
//! ```
//! The tables of outer levels do not fit into the caches of the machine we run on. Here it is known early which rows will be
//! needed, and they are needed one right after the other, so that it can wait for many of them at a time.

use crate::cache::Rows;
use crate::hierarchy::Hierarchy;
use crate::row::DIRTY;

/// Requests whose rows are on their way.
const AHEAD: usize = 12;

/// Marks the tag of an access with several lines that missed: the rest is its number among those.
const SEVERAL: u32 = 1 << 31;

/// Something that goes outwards.
#[derive(Clone, Copy)]
struct Request {
    /// Of a line of the level it comes from; what the request is stands in the lowest bits, as lines have at least four bytes.
    address: u64,
    tag: u32,
    core: u32,
}

/// The access writes.
const WRITE: u64 = 1;
/// It is no access, but a line that was written and then dropped.
const DROPPED: u64 = 2;

/// Requests that wait.
#[derive(Clone, Default)]
pub(crate) struct Waiting {
    requests: Vec<Request>,
    /// What the level at hand passes on.
    further: Vec<Request>,
    /// Of accesses with several lines: the tag, whether they write, and the deepest level asked so far.
    several: Vec<(u32, bool, u8)>,
}

/// A core and its first level, for many accesses in a row.
pub struct Front<'h> {
    /// By value, apart from what misses need: so that the compiler keeps it in registers.
    rows: Rows,
    shift: u32,
    core: u32,
    /// The number of its first level.
    cache: u32,
    hierarchy: &'h mut Hierarchy,
}

/// What the first level had of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Its line. It is to be counted ([`Front::count_hits`]).
    Hit,
    /// Not its line: the access waits for [`Hierarchy::settle`].
    Waits,
    /// Nothing was done: it touches several lines, or no byte.
    Several,
}

impl Front<'_> {
    /// [`Hierarchy::access_later`] of an access to one line, but that hits are not counted: the caller knows of many at once.
    #[inline(always)]
    pub fn access(&mut self, address: u64, bytes: u32, is_write: bool, tag: u32) -> Asked {
        let line = address >> self.shift;
        // Of no bytes, the last one is 4 GiB away.
        if address.wrapping_add(u64::from(bytes.wrapping_sub(1))) >> self.shift != line {
            return Asked::Several;
        }
        // SAFETY: the cache is the hierarchy's, which is borrowed.
        let is_front =
            unsafe { self.rows.is_front(line, is_write) || is_write && self.rows.touch_front(line, true) };
        match is_front || self.hierarchy.behind_front(self.cache, self.core, line, is_write, tag) {
            true => Asked::Hit,
            false => Asked::Waits,
        }
    }

    /// Counts accesses that hit.
    pub fn count_hits(&mut self, is_write: bool, accesses: u64) {
        self.hierarchy.hit_again(is_write, accesses);
    }

    /// How many requests wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.hierarchy.waiting()
    }
}

impl Hierarchy {
    /// A core and its first level, if that has a power of two of sets.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline]
    pub fn front(&mut self, core: usize) -> Option<Front<'_>> {
        let cache = self.paths[core][0];
        let rows = self.caches[cache as usize].rows()?;
        Some(Front { rows, shift: self.shifts[0], core: core as u32, cache, hierarchy: self })
    }

    /// A line that is not the most recent one of its set: says whether the first level has it, else the request waits.
    #[inline(never)]
    fn behind_front(&mut self, cache: u32, core: u32, line: u64, is_write: bool, tag: u32) -> bool {
        let moved = self.caches[cache as usize].move_to_front(line, u64::from(is_write));
        if !moved.hit {
            let shift = self.shifts[0];
            let request = Request { address: line << shift | u64::from(is_write), tag, core };
            // An unused way is never dirty.
            if moved.last & DIRTY != 0 {
                self.write_backs[0] += 1;
                let dropped = Request { address: (moved.last >> 1) << shift | DROPPED, ..request };
                self.waiting.requests.push(dropped);
            }
            self.waiting.requests.push(request);
        }
        moved.hit
    }

    /// [`Hierarchy::access`] of which the answer may come later: true if the first level held every line, which is counted. Else
    /// the access waits for [`Hierarchy::settle`] under a tag, which is below 2^31. Whatever the rule for accesses
    /// that straddle lines, this is [`Straddle::Apart`](crate::Straddle).
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    #[inline(always)]
    pub fn access_later(&mut self, core: usize, address: u64, bytes: u32, is_write: bool, tag: u32) -> bool {
        if bytes == 0 {
            return true;
        }
        let shift = self.shifts[0];
        let line = address >> shift;
        let last = address.saturating_add(u64::from(bytes) - 1);
        if last >> shift == line && self.caches[self.paths[core][0] as usize].touch_front(line, is_write) {
            self.answered[usize::from(is_write)][0] += 1;
            return true;
        }
        self.wait(core, line..=last >> shift, is_write, tag)
    }

    /// The same for one line of the first level, by its number.
    ///
    /// # Panics
    /// As [`Hierarchy::access_later`].
    #[inline(always)]
    pub fn line_later(&mut self, core: usize, line: u64, is_write: bool, tag: u32) -> bool {
        let cache = self.paths[core][0];
        let hit = self.caches[cache as usize].touch_front(line, is_write)
            || self.behind_front(cache, core as u32, line, is_write, tag);
        self.answered[usize::from(is_write)][0] += u64::from(hit);
        hit
    }

    /// Makes a line that the first level holds the most recent one of its set. The access that does so is counted elsewhere
    /// ([`Hierarchy::hit_again`]).
    ///
    /// # Panics
    /// As [`Hierarchy::access_later`].
    #[inline(always)]
    pub fn show_line(&mut self, core: usize, line: u64, is_write: bool) {
        let cache = &mut self.caches[self.paths[core][0] as usize];
        if !cache.touch_front(line, is_write) {
            let moved = cache.move_to_front(line, u64::from(is_write));
            debug_assert!(moved.hit, "line {line:#x} is there");
        }
    }

    #[inline(never)]
    fn wait(&mut self, core: usize, lines: std::ops::RangeInclusive<u64>, is_write: bool, tag: u32) -> bool {
        let mut tag = tag;
        if lines.start() != lines.end() {
            self.waiting.several.push((tag, is_write, 0));
            tag = SEVERAL | (self.waiting.several.len() - 1) as u32;
        }
        let mut hit = true;
        for line in lines {
            hit &= self.behind_front(self.paths[core][0], core as u32, line, is_write, tag);
        }
        if hit {
            self.answered[usize::from(is_write)][0] += 1;
            if tag & SEVERAL != 0 {
                self.waiting.several.pop();
            }
        }
        hit
    }

    /// How many requests wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.waiting.requests.len()
    }

    /// Lets the outer levels answer what waits: `told` learns the tag of each access and the deepest level that had to be asked, as
    /// [`Hierarchy::access`] says it, in any order.
    pub fn settle(&mut self, mut told: impl FnMut(u32, u8)) {
        let Waiting { mut requests, mut further, mut several } = std::mem::take(&mut self.waiting);
        let answered = &mut self.answered;
        let mut tell = |request: &Request, depth: u8| match request.tag & SEVERAL {
            0 => {
                answered[(request.address & WRITE) as usize][usize::from(depth)] += 1;
                told(request.tag, depth);
            }
            _ => {
                let deepest = &mut several[(request.tag & !SEVERAL) as usize].2;
                *deepest = depth.max(*deepest);
            }
        };
        let levels = self.specs.len();
        for level in 1..levels {
            let shift = self.shifts[level];
            further.clear();
            for run in requests.chunk_by(|a, b| a.core == b.core) {
                let Some(first) = run.first() else { continue };
                let cache = &mut self.caches[self.paths[first.core as usize][level] as usize];
                for (number, request) in run.iter().enumerate() {
                    if let Some(later) = run.get(number + AHEAD) {
                        cache.prefetch(later.address >> shift);
                    }
                    let line = request.address >> shift;
                    if request.address & DROPPED != 0 {
                        if !cache.mark_dirty(line) {
                            self.write_backs[level] += 1;
                            further.push(*request);
                        }
                        continue;
                    }
                    // Only the first level keeps the write; what it hands outwards later makes outer copies dirty.
                    let moved = cache.move_to_front(line, 0);
                    if moved.hit {
                        tell(request, level as u8);
                        continue;
                    }
                    if moved.last & DIRTY != 0 {
                        self.write_backs[level] += 1;
                        further.push(Request { address: (moved.last >> 1) << shift | DROPPED, ..*request });
                    }
                    further.push(*request);
                }
            }
            std::mem::swap(&mut requests, &mut further);
        }
        for request in requests.iter().filter(|request| request.address & DROPPED == 0) {
            tell(request, levels as u8);
        }
        for (tag, is_write, depth) in several.drain(..) {
            self.answered[usize::from(is_write)][usize::from(depth)] += 1;
            told(tag, depth);
        }
        requests.clear();
        self.waiting = Waiting { requests, further, several };
    }
}
