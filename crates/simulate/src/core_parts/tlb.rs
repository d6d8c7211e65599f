//! Translation look-aside buffers: which accesses wait for a page table, and how much of each page
//! is used.
//!
//! A core has arrays of translations in two levels. An array holds pages of certain sizes, is
//! set-associative with exact LRU replacement, and is indexed by the low bits of the page's number.
//! A translation that the first level lacks is looked up in the second and, if that lacks it too,
//! found by a walk of the page tables; every array that was looked up keeps it. A walk costs a
//! fixed number of cycles: page tables are not sent through the caches.
//!
//! A *visit* of a page begins with a walk and ends when the outermost array that holds such pages
//! drops it. Of each page the parts used during a visit are kept in 64 bits: the 64-byte lines of a
//! 4 KiB page, 32 KiB of a 2 MiB page. They are charged to the tag of the access that made the
//! walk. (Drepper, "Understanding application memory performance", 2008, counts the use of pages
//! among what decides, next to that of lines: a program that uses a part of each page needs more
//! translations than it could.)

use std::ops::AddAssign;

use thiserror::Error;

use crate::fragment::Fragment;
use crate::lru::cache::Cache;
use crate::mem_ref::MemRef;
use crate::ranges::Ranges;
use crate::spec::LevelSpec;
use crate::table::{At, Table};
use crate::tag::Tag;

/// An array of translations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlbSpec {
    /// 1: looked up for every access. 2: looked up when level 1 has no translation.
    pub level: u32,
    /// Translations it holds.
    pub entries: u32,
    /// Translations in a set; `entries` means fully associative.
    pub ways: u32,
    /// Sizes of the pages it holds translations of, in bytes.
    pub page_bytes: Vec<u64>,
    /// Cycles that a translation from here costs beyond one from level 1.
    pub latency_cycles: u32,
}

/// The sizes of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// Bytes of a page outside all ranges, a power of two.
    pub page_bytes: u64,
    /// Addresses from the first up to, not including, the second lie in pages of the third's bytes,
    /// in every address space: the bits of addresses above the 48 low ones do not matter. A range
    /// that holds a part of a page decides for that part; where ranges overlap, the later one does.
    pub ranges: Vec<(u64, u64, u64)>,
    /// Bytes of pages that only [`Tlb::set_pages_of`] uses.
    pub of_tags: Vec<u64>,
}

impl Pages {
    /// One size for all.
    pub fn of(page_bytes: u64) -> Pages {
        Pages { page_bytes, ranges: Vec::new(), of_tags: Vec::new() }
    }

    fn sizes(&self) -> impl Iterator<Item = u64> {
        let ranges = self.ranges.iter().map(|(_, _, bytes)| bytes);
        std::iter::once(&self.page_bytes).chain(ranges).chain(&self.of_tags).copied()
    }
}

/// The level that had the translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Translation {
    /// A first-level array.
    #[default]
    First,
    /// A second-level array.
    Second,
    /// The page tables.
    Walk,
}

/// Counts of one tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlbDetail {
    /// Accesses whose translation the second level had. An access over two pages counts once, for
    /// the slower translation.
    pub second_level_hits: u64,
    /// Accesses that walked the page tables.
    pub walks: u64,
    /// Cycles beyond first-level translations.
    pub cycles: u64,
    /// Bytes of the pages visited for this tag's accesses: a page counts once for each visit.
    pub visited_bytes: u64,
    /// Bytes that were used during the visits, in 64ths of pages.
    pub used_bytes: u64,
}

impl AddAssign<&TlbDetail> for TlbDetail {
    fn add_assign(&mut self, other: &TlbDetail) {
        self.second_level_hits += other.second_level_hits;
        self.walks += other.walks;
        self.cycles += other.cycles;
        self.visited_bytes += other.visited_bytes;
        self.used_bytes += other.used_bytes;
    }
}

/// Why there cannot be such TLBs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImpossibleTlb {
    /// A page size is no power of two from 4 KiB to 1 GiB.
    #[error("a page of {0} bytes: expected a power of two from 4096 to 1073741824")]
    PageSize(u64),
    /// Nothing to ask.
    #[error("no first-level TLB holds pages of {0} bytes")]
    NoFirstLevel(u64),
    /// Two arrays to ask.
    #[error("two TLBs of level {0} hold pages of {1} bytes")]
    Two(u32, u64),
    /// Neither 1 nor 2.
    #[error("a TLB is of level 1 or 2, not {0}")]
    Level(u32),
    /// The entries are no power of two of sets.
    #[error("{0} entries of {1} ways: expected a power of two of sets")]
    Shape(u32, u32),
}

/// The TLBs of all cores.
#[derive(Clone)]
pub struct Tlb {
    /// Indexed by core and array.
    arrays: Vec<Cache>,
    arrays_per_core: usize,
    latencies: Vec<u32>,
    walk_cycles: u32,
    sizes: Vec<Size>,
    /// Index in `sizes` of the size outside all ranges.
    size: usize,
    /// Indices in `sizes`.
    ranges: Ranges<usize>,
    /// Index in `sizes` by tag, where it goes before ranges; may end before the last tags.
    of_tags: Vec<Option<usize>>,
    /// Indexed by core: pages, and the visits they are in.
    pages: Vec<Table>,
    counts: Vec<TlbDetail>,
    /// Indexed by core, first-level array and set: the page that was touched last, which is the
    /// most recent one of its set.
    recent: Vec<Recent>,
    /// Number of these that a core has.
    recent_per_core: usize,
}

/// A page size in use.
#[derive(Clone, Debug)]
struct Size {
    shift: u32,
    /// The arrays that hold such pages.
    first: usize,
    second: Option<usize>,
    /// A core's [`Recent`] page of the first array's first set; and the bits of a page's number
    /// that are its set's.
    recent: usize,
    sets: u64,
}

/// A page touched not long ago, and uses of it that are not in its record yet.
#[derive(Clone, Copy)]
struct Recent {
    key: u64,
    at: At,
    used: u64,
}

/// Words of a page's record. The tag of the visit + 1, 0 without one.
const TAG: usize = 1;
const USED: usize = 2;

/// Page sizes are encoded in the bits above those of any page number.
const SIZE_SHIFT: u32 = 54;

/// A core's pages that were touched last, where all pages are of one size.
pub(crate) struct RecentPages<'t> {
    pages: &'t mut [Recent],
    shift: u32,
    sets: u64,
    /// The part of a page's key besides its number.
    of_size: u64,
}

impl RecentPages<'_> {
    /// An access. Does nothing unless it is to the last-touched page of its set, which is the most
    /// recent one and remains it.
    #[inline(always)]
    pub fn access(&mut self, address: u64, bytes: u32) -> bool {
        let last = address.wrapping_add(u64::from(bytes.max(1)) - 1);
        // Most accesses lie in one of the page's parts, and so in one page.
        let (part, last_part) = (address >> (self.shift - PARTS), last >> (self.shift - PARTS));
        let page = part >> PARTS;
        let recent = &mut self.pages[(page & self.sets) as usize];
        if recent.key != page | self.of_size {
            return false;
        }
        if part == last_part {
            recent.used |= 1 << (part & PART);
            return true;
        }
        let is_here = last_part >> PARTS == page;
        if is_here {
            recent.used |= parts(self.shift, address, last);
        }
        is_here
    }

    /// Returns whether the page of an address is the most recent one of its set.
    #[inline(always)]
    pub fn has(&self, address: u64) -> bool {
        let page = address >> self.shift;
        self.pages[(page & self.sets) as usize].key == page | self.of_size
    }

    /// Uses the parts that hold the bytes `first..=last` of such a page.
    #[inline(always)]
    pub fn use_parts(&mut self, first: u64, last: u64) {
        let page = first >> self.shift;
        self.pages[(page & self.sets) as usize].used |= parts(self.shift, first, last);
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// Bytes of a part of a page.
    pub fn part_bytes(&self) -> u64 {
        1 << (self.shift - PARTS)
    }
}

impl Tlb {
    /// Returns the state that most accesses of a core need, if pages are of one size.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    pub(crate) fn recent(&mut self, core: usize) -> Option<RecentPages<'_>> {
        let Size { shift, recent, sets, .. } = self.sizes[self.size];
        let first = core * self.recent_per_core + recent;
        let pages = &mut self.recent[first..=first + sets as usize];
        let is_one = self.of_tags.is_empty() && self.ranges.is_empty();
        is_one.then_some(RecentPages { pages, shift, sets, of_size: key(self.size, 0) })
    }

    /// Empty arrays for cores `0..cores`.
    pub fn new(specs: &[TlbSpec], walk_cycles: u32, pages: &Pages, cores: u32) -> Result<Tlb, ImpossibleTlb> {
        let mut arrays = Vec::new();
        for spec in specs {
            if !(1..=2).contains(&spec.level) {
                return Err(ImpossibleTlb::Level(spec.level));
            }
            let bytes = u64::from(spec.entries) * 64;
            let shape = LevelSpec { bytes, ways: spec.ways, line_bytes: 64, shared_by: 1 };
            let array = Cache::of_wide(&shape).ok().filter(|_| shape.sets().is_power_of_two());
            arrays.push(array.ok_or(ImpossibleTlb::Shape(spec.entries, spec.ways))?);
        }
        let mut bytes_of: Vec<u64> = pages.sizes().collect();
        bytes_of.sort_unstable();
        bytes_of.dedup();
        let mut sizes = Vec::new();
        for &bytes in &bytes_of {
            if !bytes.is_power_of_two() || !(1 << 12..=1 << 30).contains(&bytes) {
                return Err(ImpossibleTlb::PageSize(bytes));
            }
            let array = |level: u32| {
                let holds = |spec: &&TlbSpec| spec.level == level && spec.page_bytes.contains(&bytes);
                match specs.iter().filter(holds).count() {
                    0 | 1 => Ok(specs.iter().position(|spec| holds(&spec))),
                    _ => Err(ImpossibleTlb::Two(level, bytes)),
                }
            };
            let first = array(1)?.ok_or(ImpossibleTlb::NoFirstLevel(bytes))?;
            let recent = specs[..first].iter().map(sets).sum::<u64>() as usize;
            let shift = bytes.trailing_zeros();
            sizes.push(Size { shift, first, second: array(2)?, recent, sets: sets(&specs[first]) - 1 });
        }
        let recent_per_core = specs.iter().map(sets).sum::<u64>() as usize;
        let index = |bytes: u64| bytes_of.iter().position(|b| *b == bytes).unwrap_or(0);
        let ranges = pages.ranges.iter().map(|&(first, end, bytes)| (first, end, index(bytes)));
        Ok(Tlb {
            arrays_per_core: arrays.len(),
            arrays: (0..cores).flat_map(|_| arrays.iter().cloned()).collect(),
            latencies: specs.iter().map(|spec| spec.latency_cycles).collect(),
            walk_cycles,
            sizes,
            size: index(pages.page_bytes),
            ranges: Ranges::new(ranges),
            of_tags: Vec::new(),
            pages: vec![Table::new(3); cores as usize],
            counts: Vec::new(),
            // No page has this key.
            recent: vec![Recent { key: u64::MAX, at: 0, used: 0 }; recent_per_core * cores as usize],
            recent_per_core,
        })
    }

    /// Sets that everything a tag's accesses touch lies in pages of this size ([`Pages`]). To be
    /// called before the first of them.
    pub fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        let tag = tag.index();
        self.of_tags.resize(self.of_tags.len().max(tag + 1), None);
        self.of_tags[tag] = self.sizes.iter().position(|size| 1 << size.shift == page_bytes);
    }

    /// Translates one access; an access over a page's end translates both pages.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> Translation {
        let MemRef { address, tag, .. } = access;
        let (core, last) = (access.core(), access.last());
        let (size, page) = self.page_of(address, tag);
        let shift = self.sizes[size].shift;
        let key = key(size, page);
        let place = self.place(core, size, key);
        let recent = &mut self.recent[place];
        // As in `RecentPages`.
        if recent.key == key && last >> shift == page {
            recent.used |= parts(shift, address, last);
            return Translation::First;
        }
        self.access_other(core, address, last, tag)
    }

    /// Cycles that a tag's accesses took so far beyond first-level translations.
    pub fn cycles(&self, tag: Tag) -> u64 {
        self.counts.get(tag.index()).map_or(0, |counts| counts.cycles)
    }

    /// Returns the details by tag.
    pub fn finish(mut self) -> Vec<TlbDetail> {
        for place in 0..self.recent.len() {
            self.settle(place / self.recent_per_core, place);
        }
        for pages in &self.pages {
            for record in pages.records() {
                if let Some(tag) = record[TAG].checked_sub(1) {
                    let shift = self.sizes[(record[0] >> SIZE_SHIFT) as usize].shift;
                    self.counts[tag as usize].visited_bytes += 1 << shift;
                    self.counts[tag as usize].used_bytes +=
                        u64::from(record[USED].count_ones()) << (shift - PARTS);
                }
            }
        }
        self.counts
    }

    #[inline(always)]
    fn page_of(&self, address: u64, tag: Tag) -> (usize, u64) {
        if self.of_tags.is_empty() && self.ranges.is_empty() {
            return (self.size, address >> self.sizes[self.size].shift);
        }
        let of_tag = self.of_tags.get(tag.index()).copied().flatten();
        let size = of_tag.or_else(|| self.ranges.of(address)).unwrap_or(self.size);
        (size, address >> self.sizes[size].shift)
    }

    /// Returns where a page would be among the recent ones.
    #[inline(always)]
    fn place(&self, core: usize, size: usize, key: u64) -> usize {
        let Size { recent, sets, .. } = self.sizes[size];
        core * self.recent_per_core + recent + (key & sets) as usize
    }

    /// [`Tlb::access`] for an access that consists of fragments, in this order: the slowest of its
    /// translations counts.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    pub fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> Translation {
        let (core, tag) = (access.core(), access.tag);
        let each = |fragment: &Fragment| self.worst(core, fragment.address, fragment.last(), tag);
        let worst = fragments.iter().map(each).max().unwrap_or((Translation::First, 0));
        self.count(worst, tag)
    }

    #[inline(never)]
    fn access_other(&mut self, core: usize, address: u64, last: u64, tag: Tag) -> Translation {
        let worst = self.worst(core, address, last, tag);
        self.count(worst, tag)
    }

    /// Translates the pages of `address..=last`; returns the source of the slowest translation, and
    /// its cost.
    #[inline(always)]
    fn worst(&mut self, core: usize, address: u64, last: u64, tag: Tag) -> (Translation, u32) {
        if self.counts.len() <= tag.index() {
            self.counts.resize(tag.index() + 1, TlbDetail::default());
        }
        let mut worst = (Translation::First, 0);
        let mut from = address;
        loop {
            let (size, page) = self.page_of(from, tag);
            let shift = self.sizes[size].shift;
            let key = key(size, page);
            worst = worst.max(self.translate(core, size, key, tag));
            let end = (page << shift) + ((1 << shift) - 1);
            let place = self.place(core, size, key);
            self.recent[place].used |= parts(shift, from, last.min(end));
            if last <= end {
                break;
            }
            from = end + 1;
        }
        worst
    }

    #[inline(always)]
    fn count(&mut self, worst: (Translation, u32), tag: Tag) -> Translation {
        let counts = &mut self.counts[tag.index()];
        match worst.0 {
            Translation::First => {}
            Translation::Second => counts.second_level_hits += 1,
            Translation::Walk => counts.walks += 1,
        }
        counts.cycles += u64::from(worst.1);
        worst.0
    }

    /// Returns which level has the page's translation, and its cost in cycles. The page is among
    /// the recent ones then.
    fn translate(&mut self, core: usize, size: usize, key: u64, tag: Tag) -> (Translation, u32) {
        let place = self.place(core, size, key);
        let mut at = self.recent[place].at;
        if self.recent[place].key != key {
            self.settle(core, place);
            at = self.pages[core].find(key);
            self.recent[place] = Recent { key, at, used: 0 };
        }
        let Size { first, second, .. } = self.sizes[size];
        let mut array = core * self.arrays_per_core + first;
        let mut touch = self.arrays[array].touch(key, false);
        if touch.hit {
            return (Translation::First, 0);
        }
        if let Some(second) = second {
            array = core * self.arrays_per_core + second;
            touch = self.arrays[array].touch(key, false);
            if touch.hit {
                return (Translation::Second, self.latencies[second]);
            }
        }
        if let Some(evicted) = touch.evicted {
            let at = self.pages[core].find(evicted.line);
            self.leave(core, at, evicted.line);
        }
        self.recent[place].used = 0;
        *self.pages[core].word(at, TAG) = u64::from(tag.number()) + 1;
        // The first level may have kept the page in use after its last visit.
        *self.pages[core].word(at, USED) = 0;
        (Translation::Walk, self.walk_cycles)
    }

    /// Ends a page's visit, if it is in one.
    fn leave(&mut self, core: usize, at: At, key: u64) {
        let size = (key >> SIZE_SHIFT) as usize;
        let place = self.place(core, size, key);
        if self.recent[place].key == key {
            self.settle(core, place);
        }
        let pages = &mut self.pages[core];
        let shift = self.sizes[size].shift;
        let used = std::mem::take(pages.word(at, USED));
        if let Some(tag) = std::mem::take(pages.word(at, TAG)).checked_sub(1) {
            let counts = &mut self.counts[tag as usize];
            counts.visited_bytes += 1 << shift;
            counts.used_bytes += u64::from(used.count_ones()) << (shift - PARTS);
        }
    }

    /// Enters the uses of a recent page.
    fn settle(&mut self, core: usize, place: usize) {
        let Recent { at, used, .. } = self.recent[place];
        if used != 0 {
            *self.pages[core].word(at, USED) |= used;
            self.recent[place].used = 0;
        }
    }
}

/// Sets of an array.
fn sets(spec: &TlbSpec) -> u64 {
    u64::from(spec.entries / spec.ways)
}

/// Returns the key of a page in arrays and tables.
#[inline(always)]
fn key(size: usize, page: u64) -> u64 {
    page | (size as u64) << SIZE_SHIFT
}

/// Parts of a page whose use is counted separately, as a power of two; and the bits of a part's
/// number.
const PARTS: u32 = 6;
const PART: u64 = (1 << PARTS) - 1;

/// The parts of a page that hold the bytes `first..=last`, which lie in it.
#[inline]
fn parts(shift: u32, first: u64, last: u64) -> u64 {
    let part = |address: u64| address >> (shift - PARTS) & PART;
    (u64::MAX >> (63 - (part(last) - part(first)))) << part(first)
}
