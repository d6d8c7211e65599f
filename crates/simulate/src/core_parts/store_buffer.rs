//! Loads that are held up by a store to another address: 4K aliasing.
//!
//! A store waits in the store buffer until it may change the cache. A later load must know whether
//! one of the waiting stores writes what it reads; Intel's processors compare the low 12 bits of
//! the addresses first, and a load that agrees in these with a store to another address is held up
//! as if it depended on it (Intel 64 and IA-32 Architectures Optimization Reference Manual, event
//! `LD_BLOCKS_PARTIAL.ADDRESS_ALIAS`; Melhus and Jensen, "Measurement bias from address aliasing").
//!
//! A load *conflicts* if the youngest store in flight that overlaps it in the low 12 bits does not
//! overlap it in the whole address. If it does, the store's value is forwarded and nothing is
//! wrong.
//!
//! A trace has no time, so order alone decides which stores are in flight: the last stores of the
//! core, as many as the store buffer has entries, unless as many accesses as the reorder buffer has
//! entries have come since. These bounds are generous (stores leave as soon as the cache takes
//! them, and other instructions need entries, too): a conflict is a pair that can collide, not a
//! collision that was seen.

use crate::fragment::Fragment;
use crate::mem_ref::MemRef;
use crate::tag::Tag;
use crate::watch::pairs::Pairs;

/// The part of an address that is compared first.
const LOW: u64 = 0xfff;
/// Bytes of the parts of a page that remember their last store.
const GRANULE: u64 = 8;
const GRANULES: usize = 512;

/// A load that agreed in the low 12 bits with a store to another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasConflict {
    /// Tag of the store.
    pub store_tag: Tag,
    /// Its first byte.
    pub store_address: u64,
    /// Accesses of the core from the store to the load; 1 if the load came next.
    pub accesses: u32,
}

/// All conflicts of loads of one tag with stores of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasPair {
    /// Tag of the loads.
    pub load_tag: Tag,
    /// Tag of the stores.
    pub store_tag: Tag,
    /// Number of loads.
    pub conflicts: u64,
    /// The least distance of them, in accesses.
    pub least_accesses: u32,
}

/// The store buffers of all cores.
#[derive(Clone, Debug)]
pub struct StoreBuffer {
    entries: u64,
    window: u64,
    cores: Vec<Core>,
    conflicts: Conflicts,
}

#[derive(Clone, Debug, Default)]
struct Conflicts {
    pairs: Pairs,
    /// Indexed by pair.
    least_accesses: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Core {
    /// The last stores, by number modulo the length.
    stores: Vec<Store>,
    /// Indexed by part of a page: the number of the last store into it, +1.
    last: Box<[u64; GRANULES]>,
    /// Stores and accesses so far.
    stored: u64,
    accessed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Store {
    address: u64,
    bytes: u32,
    tag: Tag,
    /// Number of the access.
    access: u64,
}

impl StoreBuffer {
    /// Empty buffers of `entries` stores, for cores `0..cores` that keep `window` accesses in
    /// flight.
    pub fn new(entries: u32, window: u32, cores: u32) -> StoreBuffer {
        let core = Core {
            stores: vec![Store::default(); entries.max(1).next_power_of_two() as usize],
            last: Box::new([0; GRANULES]),
            stored: 0,
            accessed: 0,
        };
        StoreBuffer {
            entries: entries.into(),
            window: window.into(),
            cores: vec![core; cores as usize],
            conflicts: Conflicts::default(),
        }
    }

    /// One access; returns whether it is a load that conflicts. An atomic update counts as a store.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> Option<AliasConflict> {
        let conflict = self.cores[access.core()].access(access, self.entries, self.window)?;
        self.conflicts.count(access.tag, conflict, 1);
        Some(conflict)
    }

    /// [`StoreBuffer::access`] for an access that consists of fragments, in this order: the first
    /// of its conflicts counts.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    pub fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> Option<AliasConflict> {
        let (entries, window) = (self.entries, self.window);
        let core = &mut self.cores[access.core()];
        let mut found = None;
        for (number, &Fragment { address, bytes, is_write }) in fragments.iter().enumerate() {
            // They are one access.
            core.accessed -= u64::from(number > 0);
            let conflict = core.access(MemRef { address, bytes, is_write, ..access }, entries, window);
            found = found.or(conflict);
        }
        self.conflicts.count(access.tag, found?, 1);
        found
    }

    /// Accesses of one core, as many as there are. Their conflicts are counted `times` times.
    ///
    /// # Panics
    /// If `core` is not below the number of cores.
    pub(crate) fn access_all(&mut self, core: usize, times: u64, accesses: impl Iterator<Item = MemRef>) {
        let core = &mut self.cores[core];
        for access in accesses {
            if let Some(conflict) = core.access(access, self.entries, self.window) {
                self.conflicts.count(access.tag, conflict, times);
            }
        }
    }

    /// Accesses of a core that its stores may be in flight for.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Skips accesses of a core whose conflicts are not needed.
    pub(crate) fn skip(&mut self, core: usize, accesses: u64) {
        self.cores[core].accessed += accesses;
    }

    /// An access of a core whose conflicts are not needed.
    #[inline(always)]
    pub(crate) fn pass(&mut self, access: MemRef) {
        let core = &mut self.cores[access.core()];
        core.accessed += 1;
        if access.is_write && access.bytes > 0 {
            core.store(access.address, access.bytes, access.tag);
        }
    }

    /// Returns the pairs by load tag, the most frequent store first.
    pub fn finish(self) -> Vec<AliasPair> {
        let Conflicts { pairs, least_accesses } = self.conflicts;
        let pair = |(load_tag, store_tag, conflicts, slot)| {
            let least_accesses = least_accesses[slot as usize];
            AliasPair { load_tag, store_tag, conflicts, least_accesses }
        };
        pairs.sorted().into_iter().map(pair).collect()
    }
}

impl Conflicts {
    fn count(&mut self, tag: Tag, conflict: AliasConflict, times: u64) {
        let slot = self.pairs.add_times(tag, conflict.store_tag, times) as usize;
        if slot == self.least_accesses.len() {
            self.least_accesses.push(conflict.accesses);
        }
        self.least_accesses[slot] = self.least_accesses[slot].min(conflict.accesses);
    }
}

impl Core {
    #[inline(always)]
    fn access(&mut self, access: MemRef, entries: u64, window: u64) -> Option<AliasConflict> {
        let MemRef { address, bytes, tag, is_write, .. } = access;
        self.accessed += 1;
        if bytes == 0 {
            return None;
        }
        if is_write {
            self.store(address, bytes, tag);
            return None;
        }
        // No store younger than this overlaps the load.
        let last = &self.last;
        let youngest = match two_granules(address, bytes) {
            Some((first, second)) => last[first].max(last[second]),
            None => granules(address, bytes).map(|granule| last[granule]).max().unwrap_or(0),
        };
        if youngest + entries <= self.stored || youngest == 0 {
            return None;
        }
        self.conflict(address, bytes, youngest, entries, window)
    }

    #[inline(always)]
    fn store(&mut self, address: u64, bytes: u32, tag: Tag) {
        let slot = self.stored as usize & (self.stores.len() - 1);
        self.stores[slot] = Store { address, bytes, tag, access: self.accessed };
        self.stored += 1;
        match two_granules(address, bytes) {
            Some((first, second)) => (self.last[first], self.last[second]) = (self.stored, self.stored),
            None => granules(address, bytes).for_each(|granule| self.last[granule] = self.stored),
        }
    }

    /// Returns the conflict of a load with the stores numbered below `youngest`, the youngest
    /// first.
    fn conflict(
        &self,
        address: u64,
        bytes: u32,
        youngest: u64,
        entries: u64,
        window: u64,
    ) -> Option<AliasConflict> {
        let oldest = self.stored.saturating_sub(entries);
        for number in (oldest..youngest).rev() {
            let store = self.stores[number as usize & (self.stores.len() - 1)];
            let accesses = self.accessed - store.access;
            if accesses > window {
                return None;
            }
            if overlap(address, bytes, store.address, store.bytes, LOW) {
                let same = overlap(address, bytes, store.address, store.bytes, u64::MAX);
                let conflict = AliasConflict {
                    store_tag: store.tag,
                    store_address: store.address,
                    accesses: accesses as u32,
                };
                return (!same).then_some(conflict);
            }
        }
        None
    }
}

/// Returns whether two ranges of bytes overlap if only the low bits of addresses count.
fn overlap(a: u64, a_bytes: u32, b: u64, b_bytes: u32, mask: u64) -> bool {
    a.wrapping_sub(b) & mask < u64::from(b_bytes) || b.wrapping_sub(a) & mask < u64::from(a_bytes)
}

/// The first and the last part of a page that a range of bytes touches, modulo the page, if there
/// are no others between them.
#[inline(always)]
fn two_granules(address: u64, bytes: u32) -> Option<(usize, usize)> {
    let granule = |address: u64| (address / GRANULE) as usize % GRANULES;
    let last = address.wrapping_add(u64::from(bytes) - 1);
    (u64::from(bytes) <= GRANULE + 1).then(|| (granule(address), granule(last)))
}

/// Parts of a page that a range of bytes touches, modulo the page.
#[inline]
fn granules(address: u64, bytes: u32) -> impl Iterator<Item = usize> {
    let first = (address & LOW) / GRANULE;
    let count = ((address % GRANULE + u64::from(bytes) - 1) / GRANULE + 1).min(GRANULES as u64);
    (first..first + count).map(|granule| granule as usize % GRANULES)
}
