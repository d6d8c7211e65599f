//! Which private caches hold a line, and which lost it to another core's write.
//!
//! Lines are tracked in *granules*: the longest line of the levels of which there are several
//! caches. A level with only one cache is on every core's way, so it need not be tracked.

use rustc_hash::FxHashMap;

use super::spec::{ModelLevel, ModelSpec};
use crate::spec::MAX_LEVELS;
use crate::tag::Tag;

/// A cache lost a granule to a write of another core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub cache: u32,
    /// The core whose write took it, and that access's tag.
    pub by_core: u32,
    pub by_tag: Tag,
    /// Bytes of the granule that cores not using the cache wrote since, the write that took it
    /// included.
    pub written: u64,
}

/// Holders and losses of every granule that has any.
pub(super) struct Directory {
    /// Address bits within a granule.
    shift: u32,
    /// Caches `0..caches` are tracked, with one bit each in `words` words.
    caches: usize,
    words: usize,
    entries: FxHashMap<u64, u32>,
    /// The last granule looked up and its entry: an access looks up the same one several times.
    memo: (u64, Option<u32>),
    /// `words` for each entry.
    holders: Vec<u64>,
    losses: Vec<Vec<Loss>>,
    free: Vec<u32>,
    /// `words` for each core: the caches on its way.
    ways: Vec<u64>,
}

impl Directory {
    /// Over the levels of which there are several caches; none if there are no such levels.
    /// `paths`: by core, its caches.
    pub fn of(spec: &ModelSpec, paths: &[[u32; MAX_LEVELS]]) -> Option<Directory> {
        let several = |level: &&ModelLevel| level.shape.shared_by < spec.cores;
        let levels: Vec<&ModelLevel> = spec.levels.iter().take_while(several).collect();
        let shift = levels.last()?.shape.line_shift();
        let caches = levels.iter().map(|level| spec.cores.div_ceil(level.shape.shared_by) as usize).sum();
        let path =
            |path: &[u32; MAX_LEVELS]| path[..levels.len()].iter().map(|cache| *cache as usize).collect();
        Some(Directory::new(shift, caches, &paths.iter().map(path).collect::<Vec<_>>()))
    }

    /// `paths`: by core, its caches at the tracked levels.
    fn new(shift: u32, caches: usize, paths: &[Vec<usize>]) -> Directory {
        let words = caches.div_ceil(64);
        let mut ways = vec![0; paths.len() * words];
        for (core, path) in paths.iter().enumerate() {
            for cache in path {
                ways[core * words + cache / 64] |= 1 << (cache % 64);
            }
        }
        Directory {
            shift,
            caches,
            words,
            entries: FxHashMap::default(),
            memo: (u64::MAX, None), // no granule: they have at least 4 bytes
            holders: Vec::new(),
            losses: Vec::new(),
            free: Vec::new(),
            ways,
        }
    }

    /// Number of caches that are tracked, the first ones.
    pub fn tracked(&self) -> usize {
        self.caches
    }

    /// Returns whether a cache is tracked.
    #[inline]
    pub fn tracks(&self, cache: usize) -> bool {
        cache < self.caches
    }

    /// First and last address of the granule around an address.
    #[inline]
    pub fn granule(&self, address: u64) -> (u64, u64) {
        let first = address >> self.shift << self.shift;
        (first, first | ((1 << self.shift) - 1))
    }

    /// A bit for each of the bytes `first..=last`, which lie in one granule; in granules of more
    /// than 64 bytes a bit stands for 2, 4, … of them.
    fn bytes(&self, first: u64, last: u64) -> u64 {
        let bit = |address: u64| (address & ((1 << self.shift) - 1)) >> self.shift.saturating_sub(6);
        (u64::MAX >> (63 - (bit(last) - bit(first)))) << bit(first)
    }

    /// The caches off a core's way that hold the granule, innermost first, into `off`.
    pub fn off_way(&mut self, core: usize, address: u64, off: &mut Vec<usize>) {
        off.clear();
        let Some(entry) = self.entry(address) else { return };
        let ways = &self.ways[core * self.words..][..self.words];
        let holders = &self.holders[entry * self.words..][..self.words];
        for (word, (holders, ways)) in holders.iter().zip(ways).enumerate() {
            let mut rest = holders & !ways;
            while rest != 0 {
                off.push(word * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// A cache got a line of the granule: it has not lost it any more.
    pub fn enters(&mut self, cache: usize, address: u64) {
        let entry = match self.entry(address) {
            Some(entry) => entry,
            None => self.make(address),
        };
        self.holders[entry * self.words + cache / 64] |= 1 << (cache % 64);
        self.losses[entry].retain(|loss| loss.cache as usize != cache);
    }

    /// A cache holds no line of the granule any more.
    pub fn leaves(&mut self, cache: usize, address: u64) {
        if let Some(entry) = self.entry(address) {
            self.holders[entry * self.words + cache / 64] &= !(1 << (cache % 64));
            self.forget_empty(entry, address);
        }
    }

    /// A cache left because of a core's write of the bytes `first..=last`.
    pub fn lost(&mut self, cache: usize, by_core: usize, by_tag: Tag, first: u64, last: u64) {
        let written = self.bytes(first, last);
        let entry = match self.entry(first) {
            Some(entry) => entry,
            None => self.make(first),
        };
        let (cache, by_core) = (cache as u32, by_core as u32);
        self.losses[entry].push(Loss { cache, by_core, by_tag, written });
    }

    /// The loss that a cache's miss is due to; the cache is then even.
    pub fn take_loss(&mut self, cache: usize, address: u64) -> Option<Loss> {
        let entry = self.entry(address)?;
        let place = self.losses[entry].iter().position(|loss| loss.cache as usize == cache)?;
        let loss = self.losses[entry].swap_remove(place);
        self.forget_empty(entry, address);
        Some(loss)
    }

    /// Returns whether some cache has lost the granule and not come back.
    pub fn is_contested(&mut self, address: u64) -> bool {
        self.entry(address).is_some_and(|entry| !self.losses[entry].is_empty())
    }

    /// A core wrote the bytes `first..=last`: the caches that lost the granule do not have them.
    pub fn written(&mut self, core: usize, first: u64, last: u64) {
        let Some(entry) = self.entry(first) else { return };
        let bytes = self.bytes(first, last);
        let ways = &self.ways[core * self.words..][..self.words];
        for loss in &mut self.losses[entry] {
            if ways[loss.cache as usize / 64] >> (loss.cache % 64) & 1 == 0 {
                loss.written |= bytes;
            }
        }
    }

    /// Returns whether one of the bytes `first..=last` was written since the loss.
    pub fn touches_written(&self, loss: &Loss, first: u64, last: u64) -> bool {
        loss.written & self.bytes(first, last) != 0
    }

    #[inline]
    fn entry(&mut self, address: u64) -> Option<usize> {
        let granule = address >> self.shift;
        if self.memo.0 != granule {
            self.memo = (granule, self.entries.get(&granule).copied());
        }
        self.memo.1.map(|entry| entry as usize)
    }

    fn make(&mut self, address: u64) -> usize {
        let entry = self.free.pop().unwrap_or_else(|| {
            self.holders.resize(self.holders.len() + self.words, 0);
            self.losses.push(Vec::new());
            self.losses.len() as u32 - 1
        });
        self.entries.insert(address >> self.shift, entry);
        self.memo = (address >> self.shift, Some(entry));
        entry as usize
    }

    fn forget_empty(&mut self, entry: usize, address: u64) {
        let holders = &self.holders[entry * self.words..][..self.words];
        if self.losses[entry].is_empty() && holders.iter().all(|word| *word == 0) {
            self.entries.remove(&(address >> self.shift));
            self.memo = (address >> self.shift, None);
            self.free.push(entry as u32);
        }
    }
}
