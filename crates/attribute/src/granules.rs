//! The class of memory, eight bytes at a time: a memory of answers that took longer to find.
//!
//! Almost every access asks whose memory it touches, and most ask again what was asked before. A page that was ever asked
//! about has a table of its granules here, so that the answer is two loads away; what changes hands is forgotten.

use rustc_hash::FxHashMap;

/// Bytes under one answer. Blocks start at multiples of it, but for globals and odd allocators.
pub const GRANULE: u64 = 8;

const PAGE: u64 = 4096;
const ENTRIES: usize = (PAGE / GRANULE) as usize;

/// Nothing is known.
pub const UNSET: u32 = u32::MAX;

/// Pages whose tables are found without a hash: a power of two.
const RECENT: usize = 512;

/// Answers by granule.
pub struct Granules {
    tables: Vec<[u32; ENTRIES]>,
    pages: FxHashMap<u64, u32>,
    /// Page and its table.
    recent: Box<[(u64, u32); RECENT]>,
}

impl Default for Granules {
    fn default() -> Granules {
        // No address has this page.
        Granules {
            tables: Vec::new(),
            pages: FxHashMap::default(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
        }
    }
}

impl Granules {
    /// The place of an address's answer, [`UNSET`] at first.
    #[inline(always)]
    pub fn at(&mut self, address: u64) -> &mut u32 {
        let page = address / PAGE;
        let (recent, table) = self.recent[page as usize % RECENT];
        let table = if recent == page { table } else { self.find(page) };
        &mut self.tables[table as usize][(address % PAGE / GRANULE) as usize]
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, page: u64) -> u32 {
        let fresh = self.tables.len() as u32;
        let table = *self.pages.entry(page).or_insert(fresh);
        if table == fresh {
            self.tables.push([UNSET; ENTRIES]);
        }
        self.recent[page as usize % RECENT] = (page, table);
        table
    }

    /// Sets the answer for the granules that lie in `base..end`, which is not empty, and forgets that for those which do in part.
    pub fn set(&mut self, base: u64, end: u64, answer: u32) {
        let (first, last) = (base / PAGE, (end - 1) / PAGE);
        if last - first < self.pages.len() as u64 {
            for page in first..=last {
                if let Some(&table) = self.pages.get(&page) {
                    fill(&mut self.tables[table as usize], page, base, end, answer);
                }
            }
        } else {
            for (&page, &table) in self.pages.iter().filter(|(page, _)| (first..=last).contains(*page)) {
                fill(&mut self.tables[table as usize], page, base, end, answer);
            }
        }
    }
}

/// The part of `base..end` in one page.
fn fill(table: &mut [u32; ENTRIES], page: u64, base: u64, end: u64, answer: u32) {
    let start = page * PAGE;
    // Offsets in the page; its end may be that of the address space.
    let (from, to) = (base.max(start) - start, (end - 1).min(start + (PAGE - 1)) - start + 1);
    let (first, last) = ((from / GRANULE) as usize, to.div_ceil(GRANULE) as usize);
    table[first..last].fill(answer);
    if !from.is_multiple_of(GRANULE) {
        table[first] = UNSET;
    }
    if !to.is_multiple_of(GRANULE) {
        table[last - 1] = UNSET;
    }
}
