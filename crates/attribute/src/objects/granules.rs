//! The class or block of memory, in units of eight bytes: a cache of results that took longer to find.
//!
//! Almost every access needs the class of its memory, and most repeat an earlier question. A page
//! that was looked up has a table of its granules here, so the result is two loads away; entries
//! are removed when memory gets another owner. Pages in the middle of one block share the table of
//! its class, so a large array costs almost nothing.

use rustc_hash::FxHashMap;

/// Bytes of a granule. Blocks start at multiples of it, except globals and those of odd allocators.
pub const GRANULE: u64 = 8;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
const ENTRIES: usize = (PAGE / GRANULE) as usize;

/// Nothing is known.
pub const UNSET: u32 = u32::MAX;

/// Pages whose tables are found without a hash: a power of two.
const RECENT: usize = 8192;

/// The table of a page of which nothing is known.
const UNKNOWN: u32 = 0;

/// Classes by granule.
pub struct Granules {
    /// Tables of a fixed number of entries, one behind the other.
    tables: Vec<u32>,
    /// Indexed by table: whether several pages may use it.
    shared: Vec<bool>,
    /// Tables that no page has any more.
    unused: Vec<u32>,
    pages: FxHashMap<u64, u32>,
    /// Keyed by class: the table of pages that belong to it completely.
    uniform: FxHashMap<u32, u32>,
    /// Page, and where its table begins.
    recent: Box<[(u64, usize); RECENT]>,
}

/// Facts that need no hash.
#[derive(Clone, Copy)]
pub struct Known<'g> {
    tables: &'g [u32],
    recent: &'g [(u64, usize); RECENT],
}

impl Known<'_> {
    /// Like [`Granules::at`], but [`UNSET`] if its page is not found at once.
    #[inline(always)]
    pub fn at(self, address: u64) -> u32 {
        let page = address / PAGE;
        let (recent, first) = self.recent[page as usize % RECENT];
        if recent == page { self.tables[first + granule(address)] } else { UNSET }
    }
}

/// Returns where a table begins.
fn first(table: u32) -> usize {
    table as usize * ENTRIES
}

/// The place of an address in its page's table.
fn granule(address: u64) -> usize {
    (address % PAGE / GRANULE) as usize
}

impl Default for Granules {
    fn default() -> Granules {
        Granules {
            tables: vec![UNSET; ENTRIES],
            shared: vec![true],
            unused: Vec::new(),
            pages: FxHashMap::default(),
            uniform: FxHashMap::default(),
            // No address has this page.
            recent: Box::new([(u64::MAX, first(UNKNOWN)); RECENT]),
        }
    }
}

impl Granules {
    /// The class at an address, [`UNSET`] at first.
    #[inline(always)]
    pub fn at(&mut self, address: u64) -> u32 {
        let page = address / PAGE;
        let (recent, first) = self.recent[page as usize % RECENT];
        let first = if recent == page { first } else { self.find(page) };
        self.tables[first + granule(address)]
    }

    /// Returns a view for many lookups while nothing changes.
    pub fn known(&self) -> Known<'_> {
        Known { tables: &self.tables, recent: &self.recent }
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, page: u64) -> usize {
        let table = self.pages.get(&page).copied().unwrap_or(UNKNOWN);
        self.recent[page as usize % RECENT] = (page, first(table));
        first(table)
    }

    /// Sets the class of an address's granule, or of all of its page.
    pub fn keep(&mut self, address: u64, answer: u32, is_of_page: bool) {
        if is_of_page {
            self.put_page(address, answer);
        } else {
            self.put(address, answer);
        }
    }

    /// Sets the class of one granule.
    fn put(&mut self, address: u64, answer: u32) {
        let table = self.own(address / PAGE);
        self.tables[first(table) + granule(address)] = answer;
    }

    /// Sets one class for all of an address's page.
    fn put_page(&mut self, address: u64, answer: u32) {
        let page = address / PAGE;
        let table = match self.uniform.get(&answer) {
            Some(&table) => table,
            None => {
                let table = self.new_table(true);
                self.table(table).fill(answer);
                self.uniform.insert(answer, table);
                table
            }
        };
        self.assign(page, table);
    }

    /// Sets the class of the granules inside `base..end`, which is not empty, and resets those that
    /// lie in it partly. Pages without any class stay so.
    pub fn set(&mut self, base: u64, end: u64, answer: u32) {
        let (first, last) = (base / PAGE, (end - 1) / PAGE);
        let known: Vec<u64> = if last - first < self.pages.len() as u64 {
            (first..=last).filter(|page| self.pages.contains_key(page)).collect()
        } else {
            self.pages.keys().copied().filter(|page| (first..=last).contains(page)).collect()
        };
        for page in known {
            let table = self.own(page);
            fill(self.table(table), page, base, end, answer);
        }
    }

    /// The table of a page, which is no other's.
    fn own(&mut self, page: u64) -> u32 {
        let table = self.pages.get(&page).copied().unwrap_or(UNKNOWN);
        if !self.shared[table as usize] {
            return table;
        }
        let own = self.new_table(false);
        self.tables.copy_within(first(table)..first(table) + ENTRIES, first(own));
        self.assign(page, own);
        own
    }

    fn assign(&mut self, page: u64, table: u32) {
        if let Some(old) = self.pages.insert(page, table)
            && !self.shared[old as usize]
        {
            self.unused.push(old);
        }
        self.recent[page as usize % RECENT] = (page, first(table));
    }

    fn table(&mut self, table: u32) -> &mut [u32] {
        &mut self.tables[first(table)..][..ENTRIES]
    }

    /// A table to be filled.
    fn new_table(&mut self, shared: bool) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.shared[number as usize] = shared;
            return number;
        }
        self.tables.resize(self.tables.len() + ENTRIES, UNSET);
        self.shared.push(shared);
        (self.shared.len() - 1) as u32
    }
}

/// The part of `base..end` in one page.
fn fill(table: &mut [u32], page: u64, base: u64, end: u64, answer: u32) {
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
