//! From an address to its object: which block of memory holds this byte?
//!
//! Blocks under [`LARGE`] live in *pages*, one per 4 KiB of address space in use: a bit for each
//! eight bytes at which a block starts, and the blocks' slots in the order of their starts.
//!
//! ```text
//!           page 0x7f…4000                         page 0x7f…5000
//! starts    1 0 0 0 1 0 0 1 0 0 …  0 1 0 0         0 0 1 0 …
//! slots     [ A,      B,    C, …     Z ]           [ D, … ]
//! carry     none                                   Z: it runs on from the page before
//! ```
//! The block of an address is the last start at or below it (a popcount gives its place in
//! `slots`), or the carry. Larger blocks and globals are few and live in an ordered map.
//!
//! A freed block can be found until another takes its place: where threads synchronise in code that
//! is not recorded, an access may come after a `free` that it preceded. An access to memory that is
//! really dead is an error of the program.

pub mod classes;
pub(crate) mod granules;
pub mod paths;
pub(crate) mod stacks;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::objects::classes::ClassId;
use crate::objects::granules::{GRANULE, Granules, Known, PAGE, UNSET};

/// Blocks of at least this many bytes are kept in an ordered map.
pub const LARGE: u64 = 64 << 10;

/// No block is there.
pub(crate) const NOBODY: u32 = UNSET - 1;
/// Several blocks have parts of these eight bytes.
const SHARED: u32 = UNSET - 2;

/// Index of a block in [`Objects`]. A slot is used again once its block has been overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockSlot(pub u32);

/// The place of an access in its object. All are 0 where no object is known, as for stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithinObject {
    /// Its offset in bytes.
    pub offset: u64,
    /// The object's size in bytes.
    pub bytes: u64,
    /// The number of the object's block among those of its class, in order of allocation, from 0.
    /// Globals are the only ones of their class.
    pub block: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    base: u64,
    /// 0 when the slot is not in use.
    bytes: u64,
    class: ClassId,
    live: bool,
}

#[derive(Default)]
struct Page {
    starts: [u64; 8],
    slots: Vec<BlockSlot>,
    carry: Option<BlockSlot>,
}

/// The blocks of one process's address space.
pub struct Objects {
    blocks: Vec<Block>,
    unused: Vec<BlockSlot>,
    pages: FxHashMap<u64, Page>,
    large: BTreeMap<u64, BlockSlot>,
    /// Classes already found.
    found: Granules,
    /// Slots already found.
    slots: Granules,
    /// First and last address of ranges that are all of one class.
    uniform: [(u64, u64); 4],
    /// The order of allocation of each slot's block, as far as it was set.
    orders: Vec<u64>,
    /// The slot of the block that was added last.
    latest: BlockSlot,
}

/// A range that has no address.
const NOWHERE: (u64, u64) = (1, 0);

impl Default for Objects {
    fn default() -> Objects {
        let nowhere = Block { base: 0, bytes: 0, class: ClassId(0), live: false };
        Objects {
            blocks: vec![nowhere],
            unused: Vec::new(),
            pages: FxHashMap::default(),
            large: BTreeMap::new(),
            found: Granules::default(),
            slots: Granules::default(),
            uniform: [NOWHERE; 4],
            orders: Vec::new(),
            latest: BlockSlot(0),
        }
    }
}

impl Objects {
    /// Adds a block. It ends every block that it overlaps, except that a small block inside a live
    /// large one leaves that one alive: a program's pool takes its blocks out of one that `malloc`
    /// returned.
    ///
    /// Blocks of zero bytes, or past the last address, are not recorded.
    pub fn insert(&mut self, base: u64, bytes: u64, class: ClassId) -> Option<BlockSlot> {
        let end = base.checked_add(bytes).filter(|&end| end > base)?;
        self.remove_large(base, end);
        self.remove_small(base, end);
        self.found.set(base, end, class.0);
        self.uniform = [NOWHERE; 4];
        let slot = self.new_slot(Block { base, bytes, class, live: true });
        self.slots.set(base, end, slot.0);
        if bytes >= LARGE {
            self.large.insert(base, slot);
        } else {
            let first = base / PAGE;
            self.pages.entry(first).or_default().insert(granule(base), slot);
            for page in first + 1..=(end - 1) / PAGE {
                self.pages.entry(page).or_default().carry = Some(slot);
            }
        }
        Some(slot)
    }

    /// A global variable. Globals may be small and adjacent, so they are kept in the ordered map.
    pub fn insert_global(&mut self, base: u64, bytes: u64, class: ClassId) {
        if bytes != 0 && base.checked_add(bytes).is_some() {
            self.found.set(base, base + bytes, UNSET);
            self.slots.set(base, base + bytes, UNSET);
            self.uniform = [NOWHERE; 4];
            let slot = self.new_slot(Block { base, bytes, class, live: true });
            if let Some(alias) = self.large.insert(base, slot) {
                self.retire(alias);
            }
        }
    }

    /// The block at `base` was freed. Returns whether there was one.
    pub fn free(&mut self, base: u64) -> bool {
        let found = self.find(base).filter(|&slot| self.blocks[slot.0 as usize].base == base);
        if let Some(slot) = found {
            self.blocks[slot.0 as usize].live = false;
        }
        found.is_some()
    }

    /// Returns whether a block of a class lies there that has not been freed.
    pub(crate) fn is_live(&self, base: u64, bytes: u64, class: ClassId) -> bool {
        self.find(base).is_some_and(|slot| {
            let block = self.blocks[slot.0 as usize];
            block.live && (block.base, block.bytes, block.class) == (base, bytes, class)
        })
    }

    /// Pages were unmapped: the blocks inside them are dead.
    pub fn unmap(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        for (_, slot) in self.large.range(base..end) {
            self.blocks[slot.0 as usize].live = false;
        }
    }

    /// The class of the block at an address, from a cache of earlier results.
    ///
    /// If only one block has a part of an address's eight bytes, all eight count as the block's:
    /// allocators round sizes up to at least eight.
    #[inline(always)]
    pub fn class_at(&mut self, address: u64) -> Option<ClassId> {
        match self.found.at(address) {
            UNSET | SHARED => self.look(address),
            NOBODY => None,
            known => Some(ClassId(known)),
        }
    }

    /// Classes that were found before, and where [`NOBODY`] has anything; every other question
    /// needs [`Objects::class_at`].
    pub fn known(&self) -> Known<'_> {
        self.found.known()
    }

    /// Slots that were found before, as in [`Objects::known`]; every other question needs
    /// [`Objects::slot_at`].
    pub(crate) fn known_slots(&self) -> Known<'_> {
        self.slots.known()
    }

    /// The slot of the block that was added last.
    pub(crate) fn latest(&self) -> BlockSlot {
        self.latest
    }

    /// Looks a class up for [`Objects::class_at`] and caches it if all eight bytes have it in
    /// common.
    #[cold]
    #[inline(never)]
    fn look(&mut self, address: u64) -> Option<ClassId> {
        let (answer, is_of_page) = self.owner(address, |slot| self.class(slot).0);
        self.found.keep(address, answer, is_of_page);
        if let Some((base, end)) = self.granules_around(address).filter(|_| answer < SHARED) {
            self.found.set(base, end, answer);
        }
        match answer {
            NOBODY => None,
            SHARED => self.find(address).map(|slot| self.class(slot)),
            class => Some(ClassId(class)),
        }
    }

    /// Value that all blocks with a part of an address's eight bytes have in common, [`NOBODY`] or
    /// [`SHARED`]; and whether all of the page has it.
    fn owner(&self, address: u64, common: impl Fn(BlockSlot) -> u32) -> (u32, bool) {
        let first = address - address % GRANULE;
        let last = first + (GRANULE - 1);
        let starting = self.pages.get(&(first / PAGE)).and_then(|page| page.starting_at(granule(first)));
        let mut owners = self.find(first).into_iter().chain(starting).chain(self.find(last));
        let owners = owners.by_ref().chain(self.large.range(first..=last).map(|(_, &slot)| slot));
        let mut found = owners.filter(|&slot| self.reaches(slot, first, last)).map(common);
        let one = found.next().unwrap_or(NOBODY);
        let answer = if found.all(|other| other == one) { one } else { SHARED };
        let page = first - first % PAGE;
        let in_the_middle = |slot: BlockSlot| self.covers(slot, page, page + (PAGE - 1));
        (answer, !self.pages.contains_key(&(page / PAGE)) && self.find(first).is_some_and(in_the_middle))
    }

    /// Returns whether a block has all bytes of `first..=last`.
    fn covers(&self, slot: BlockSlot, first: u64, last: u64) -> bool {
        let block = &self.blocks[slot.0 as usize];
        block.bytes > 0 && block.base <= first && block.base + (block.bytes - 1) >= last
    }

    /// Returns whether a block has a byte of `first..=last`.
    fn reaches(&self, slot: BlockSlot, first: u64, last: u64) -> bool {
        let block = &self.blocks[slot.0 as usize];
        block.bytes > 0 && block.base <= last && block.base + (block.bytes - 1) >= first
    }

    /// Returns whether [`Objects::class_at`] is certain to give one class for all of
    /// `first..=last`.
    #[inline]
    pub fn are_one(&mut self, first: u64, last: u64) -> bool {
        self.uniform.iter().any(|range| range.0 <= first && last <= range.1)
            || self.look_whether_one(first, last)
    }

    /// Looks it up for [`Objects::are_one`], and remembers the range for which it holds, if that is
    /// found quickly.
    #[inline(never)]
    fn look_whether_one(&mut self, first: u64, last: u64) -> bool {
        let small = self.pages.get(&(first / PAGE)).and_then(|page| page.find(granule(first)));
        let (block, around) = if let Some(slot) = small.filter(|&slot| self.contains(slot, first)) {
            let Block { base, bytes, .. } = self.blocks[slot.0 as usize];
            ((base, base + (bytes - 1)), (0, u64::MAX))
        } else {
            // The last one that begins before the end is the only one, and nothing small is inside it.
            let Some((&base, &slot)) = self.large.range(..=last).next_back() else { return false };
            let bytes = self.blocks[slot.0 as usize].bytes;
            let behind =
                self.large.range(last.saturating_add(1)..).next().map_or(u64::MAX, |next| next.0 - 1);
            let far = (last - first).max(PAGE);
            let near = (first.saturating_sub(far).max(base), last.saturating_add(far).min(behind));
            let around = [near, (first, last)].into_iter().find(|&(first, last)| !self.any_page(first, last));
            ((base, base.saturating_add(bytes.saturating_sub(1))), around.unwrap_or(NOWHERE))
        };
        let range = (block.0.max(around.0), block.1.min(around.1));
        let is_one = range.0 <= first && last <= range.1;
        if is_one {
            self.uniform.rotate_right(1);
            self.uniform[0] = range;
        }
        is_one
    }

    /// Returns whether the pages of any address of `first..=last` have small blocks.
    fn any_page(&self, first: u64, last: u64) -> bool {
        let (first, last) = (first / PAGE, last / PAGE);
        if last - first < self.pages.len() as u64 {
            return (first..=last).any(|number| self.pages.contains_key(&number));
        }
        self.pages.keys().any(|number| (first..=last).contains(number))
    }

    /// First byte and size of a slot's block.
    pub fn block(&self, slot: BlockSlot) -> (u64, u64) {
        let Block { base, bytes, .. } = self.blocks[slot.0 as usize];
        (base, bytes)
    }

    /// Sets the number of a slot's block among those of its class, in order of allocation.
    pub fn set_order(&mut self, slot: BlockSlot, order: u64) {
        let index = slot.0 as usize;
        if self.orders.len() <= index {
            self.orders.resize(index + 1, 0);
        }
        self.orders[index] = order;
    }

    /// Returns the number that [`Objects::set_order`] set; 0 if none was set.
    pub fn order(&self, slot: BlockSlot) -> u64 {
        self.orders.get(slot.0 as usize).copied().unwrap_or(0)
    }

    /// Returns where the next block begins behind an address that no block has, up to the address
    /// `last`.
    pub fn next_block(&self, address: u64, last: u64) -> Option<u64> {
        let first = address.checked_add(1).filter(|first| *first <= last)?;
        let large = self.large.range(first..=last).next().map(|(base, _)| *base);
        let mut pages = self.pages_between(address / PAGE, last / PAGE);
        pages.sort_unstable();
        let begins = |slot: &BlockSlot| {
            Some(self.blocks[slot.0 as usize].base).filter(|base| (first..=last).contains(base))
        };
        let small = pages.iter().find_map(|number| self.pages[number].slots.iter().filter_map(begins).min());
        [large, small].into_iter().flatten().min()
    }

    /// The class of a slot's block.
    pub fn class(&self, slot: BlockSlot) -> ClassId {
        self.blocks[slot.0 as usize].class
    }

    /// The block that holds an address.
    pub fn find(&self, address: u64) -> Option<BlockSlot> {
        let small = self.pages.get(&(address / PAGE)).and_then(|page| page.find(granule(address)));
        if let Some(slot) = small.filter(|&slot| self.contains(slot, address)) {
            return Some(slot);
        }
        let (_, &slot) = self.large.range(..=address).next_back()?;
        self.contains(slot, address).then_some(slot)
    }

    /// The block that holds an address, as [`Objects::find`] finds it, from a cache of earlier results.
    #[inline]
    pub fn slot_at(&mut self, address: u64) -> Option<BlockSlot> {
        match self.slots.at(address) {
            NOBODY => None,
            UNSET | SHARED => self.look_for_slot(address),
            // A block may end within its last eight bytes.
            slot => Some(BlockSlot(slot)).filter(|&slot| self.contains(slot, address)),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_for_slot(&mut self, address: u64) -> Option<BlockSlot> {
        let (answer, is_of_page) = self.owner(address, |slot| slot.0);
        self.slots.keep(address, answer, is_of_page);
        if let Some((base, end)) = self.granules_around(address).filter(|_| answer < SHARED) {
            self.slots.set(base, end, answer);
        }
        self.find(address)
    }

    /// Returns where the granules that the small block with an address has to itself begin and end, if
    /// nothing else begins in it: all of them are known at once.
    fn granules_around(&self, address: u64) -> Option<(u64, u64)> {
        let slot = self.pages.get(&(address / PAGE)).and_then(|page| page.find(granule(address)))?;
        let Block { base, bytes, .. } = *self.blocks.get(slot.0 as usize)?;
        let is_alone = |end: u64| self.large.range(base..end).next().is_none();
        let first = base.checked_next_multiple_of(GRANULE)?;
        let last = (base + bytes) / GRANULE * GRANULE;
        (self.contains(slot, address) && first < last && is_alone(base + bytes)).then_some((first, last))
    }

    #[inline]
    fn contains(&self, slot: BlockSlot, address: u64) -> bool {
        let block = &self.blocks[slot.0 as usize];
        address.wrapping_sub(block.base) < block.bytes
    }

    fn new_slot(&mut self, block: Block) -> BlockSlot {
        self.latest = match self.unused.pop() {
            Some(slot) => {
                self.blocks[slot.0 as usize] = block;
                slot
            }
            None => {
                self.blocks.push(block);
                BlockSlot((self.blocks.len() - 1) as u32)
            }
        };
        self.latest
    }

    fn retire(&mut self, slot: BlockSlot) {
        let block = &mut self.blocks[slot.0 as usize];
        self.found.set(block.base, block.base + block.bytes, UNSET);
        self.slots.set(block.base, block.base + block.bytes, UNSET);
        block.bytes = 0;
        if let Some(order) = self.orders.get_mut(slot.0 as usize) {
            *order = 0;
        }
        self.unused.push(slot);
    }

    /// Ends the large blocks that `base..end` overlaps, except a live one around a small one. Large
    /// blocks never overlap each other, so that one is the only one.
    fn remove_large(&mut self, base: u64, end: u64) {
        while let Some((&start, &slot)) = self.large.range(..end).next_back() {
            let block = self.blocks[slot.0 as usize];
            let block_end = block.base + block.bytes;
            let around = start <= base && end <= block_end && end - base < LARGE;
            if block_end <= base || (around && block.live) {
                return;
            }
            self.large.remove(&start);
            self.retire(slot);
        }
    }

    /// Ends the small blocks that `base..end` overlaps.
    fn remove_small(&mut self, base: u64, end: u64) {
        for number in self.pages_between(base / PAGE, (end - 1) / PAGE) {
            let page = &self.pages[&number];
            let page_base = number * PAGE;
            let from = base.max(page_base);
            // What starts inside, and what starts before and reaches in.
            let mut ended: Vec<BlockSlot> = page.find(granule(from)).into_iter().collect();
            let last = granule((end - 1).min(page_base + (PAGE - 1)));
            ended.extend((granule(from) + 1..=last).filter_map(|g| page.starting_at(g)));
            for slot in ended {
                let block = self.blocks[slot.0 as usize];
                if block.base < end && base < block.base + block.bytes {
                    self.remove_block(slot, block);
                } else if block.base / GRANULE == base / GRANULE {
                    // Two blocks that start within the same eight bytes cannot both be kept.
                    self.remove_block(slot, block);
                }
            }
        }
    }

    /// The pages in use among `first..=last`, found in the shorter of two ways.
    fn pages_between(&self, first: u64, last: u64) -> Vec<u64> {
        if last - first < self.pages.len() as u64 {
            (first..=last).filter(|number| self.pages.contains_key(number)).collect()
        } else {
            self.pages.keys().copied().filter(|number| (first..=last).contains(number)).collect()
        }
    }

    fn remove_block(&mut self, slot: BlockSlot, block: Block) {
        let first = block.base / PAGE;
        if let Some(page) = self.pages.get_mut(&first) {
            page.remove(granule(block.base));
        }
        for number in first + 1..=(block.base + block.bytes - 1) / PAGE {
            if let Some(page) = self.pages.get_mut(&number) {
                page.carry = None;
            }
        }
        self.retire(slot);
    }
}

fn granule(address: u64) -> usize {
    (address % PAGE / GRANULE) as usize
}

impl Page {
    /// Number of starts below a granule.
    fn rank(&self, granule: usize) -> usize {
        let (word, bit) = (granule / 64, granule % 64);
        let before: u32 = self.starts[..word].iter().map(|w| w.count_ones()).sum();
        (before + (self.starts[word] & ((1 << bit) - 1)).count_ones()) as usize
    }

    fn starts_at(&self, granule: usize) -> bool {
        self.starts[granule / 64] >> (granule % 64) & 1 != 0
    }

    fn starting_at(&self, granule: usize) -> Option<BlockSlot> {
        self.starts_at(granule).then(|| self.slots[self.rank(granule)])
    }

    /// The block with the last start at or below a granule, else the carry.
    fn find(&self, granule: usize) -> Option<BlockSlot> {
        let starts = self.rank(granule) + usize::from(self.starts_at(granule));
        if starts == 0 { self.carry } else { Some(self.slots[starts - 1]) }
    }

    fn insert(&mut self, granule: usize, slot: BlockSlot) {
        let rank = self.rank(granule);
        if self.starts_at(granule) {
            self.slots[rank] = slot;
        } else {
            self.starts[granule / 64] |= 1 << (granule % 64);
            self.slots.insert(rank, slot);
        }
    }

    fn remove(&mut self, granule: usize) {
        if self.starts_at(granule) {
            let rank = self.rank(granule);
            self.slots.remove(rank);
            self.starts[granule / 64] &= !(1 << (granule % 64));
        }
    }
}
