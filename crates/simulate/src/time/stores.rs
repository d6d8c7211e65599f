//! The store buffer: stores that have committed and wait for their lines, in order.

/// Bytes of the parts of memory that remember their last store, and places for them.
const GRANULE: u64 = 8;
const GRANULES: usize = 1024;

/// A store.
#[derive(Clone, Copy, Default)]
struct Store {
    address: u64,
    bytes: u32,
    /// Times at which its data are there, and at which it leaves.
    complete: u64,
    leaves: u64,
}

/// Contents of the buffer for a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing of it.
    Nothing,
    /// All of it; its data are there at this time.
    All(u64),
    /// Some of it, by a store that leaves at this time.
    Some(u64),
}

/// The stores of one thread.
pub(super) struct StoreBuffer {
    /// The last ones, by number modulo the length, which is a power of two.
    last: Vec<Store>,
    size: u64,
    /// Number of stores so far.
    stored: u64,
    /// Time at which the last one leaves.
    drained: u64,
    /// Stores, by granule modulo their number, up to the last one that overlaps it.
    granules: Box<[u64; GRANULES]>,
    /// Ticks from one that leaves to the next.
    apart: u64,
}

impl StoreBuffer {
    /// Makes a buffer of `size` entries, at least one.
    pub fn new(size: usize, apart: u64) -> StoreBuffer {
        let size = size.max(1);
        StoreBuffer {
            last: vec![Store::default(); size.next_power_of_two()],
            size: size as u64,
            stored: 0,
            drained: 0,
            granules: Box::new([0; GRANULES]),
            apart,
        }
    }

    fn store(&self, number: u64) -> &Store {
        &self.last[number as usize & (self.last.len() - 1)]
    }

    /// Returns when there is room for one more.
    pub fn room(&self) -> u64 {
        if self.stored < self.size { 0 } else { self.store(self.stored - self.size).leaves }
    }

    /// Returns when all have left.
    pub fn drained(&self) -> u64 {
        self.drained
    }

    /// Adds a store whose data are there at `complete`, which commits at `committed` and has its
    /// line at `arrives`.
    pub fn push(&mut self, address: u64, bytes: u32, complete: u64, committed: u64, arrives: u64) {
        let leaves = (self.drained + self.apart).max(committed).max(arrives);
        self.drained = leaves;
        let place = self.stored as usize & (self.last.len() - 1);
        self.last[place] = Store { address, bytes, complete, leaves };
        self.stored += 1;
        for granule in granules(address, bytes) {
            self.granules[granule] = self.stored;
        }
    }

    /// Returns what the youngest store that overlaps a load, and has not left by `time`, can
    /// forward to it.
    #[inline]
    pub fn held(&self, address: u64, bytes: u32, time: u64) -> Held {
        if self.drained <= time {
            return Held::Nothing;
        }
        let youngest = granules(address, bytes).map(|granule| self.granules[granule]).max().unwrap_or(0);
        let oldest = self.stored.saturating_sub(self.size);
        for number in (oldest..youngest).rev() {
            let store = self.store(number);
            // Those before it have left, too.
            if store.leaves <= time {
                break;
            }
            let begins = address.wrapping_sub(store.address);
            if begins < u64::from(store.bytes) && begins + u64::from(bytes) <= u64::from(store.bytes) {
                return Held::All(store.complete);
            }
            if begins < u64::from(store.bytes) || store.address.wrapping_sub(address) < u64::from(bytes) {
                return Held::Some(store.leaves);
            }
        }
        Held::Nothing
    }
}

/// Places of the granules that a range of bytes overlaps.
#[inline]
fn granules(address: u64, bytes: u32) -> impl Iterator<Item = usize> {
    let first = address / GRANULE;
    let count = (address % GRANULE + u64::from(bytes)).div_ceil(GRANULE).min(GRANULES as u64);
    (first..first + count).map(|granule| granule as usize % GRANULES)
}
