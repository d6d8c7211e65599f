//! Records of distinct lines (or pages), found by number.
//!
//! ```text
//!   index   . 7 . . 2 9 . 0 …        open addressing; an entry is a record's number and part of the key's hash
//!   words   | key … | key … | …      records of a fixed number of words, in the order of first use
//! ```
//! An entry is 32 bits. Of an index of 2^k entries, k bits hold a record's number and the other 32
//! − k a part of the hash, so that a probe seldom loads a wrong record. Neighbouring keys have
//! neighbouring entries: four lines in a row share one line of the index.

/// Words of all records together are fewer than this.
const MOST_WORDS: usize = 1 << 32;

/// Keys whose entries lie side by side: the binary logarithm of their number.
const BLOCK: u32 = 2;

/// Lines whose records are found without the index, a power of two.
const RECENT: usize = 1 << 9;

/// The beginning of a record in a [`Table`].
pub(crate) type At = u32;

/// Records of `stride` words, of which the first is the key; the others are 0 at first.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Indexed by the low bits of the key: the last such key, and its record.
    recent: Vec<(u64, At)>,
    /// 0 is an empty entry, else the record's number + 1.
    index: Vec<u32>,
    words: Vec<u64>,
    stride: u32,
}

impl Table {
    /// No record yet.
    pub fn new(stride: usize) -> Table {
        // No key is u64::MAX: lines have at least 4 bytes.
        let recent = vec![(u64::MAX, 0); RECENT];
        Table { recent, index: vec![0; 1 << 10], words: Vec::new(), stride: stride as u32 }
    }

    /// The key's record, which is made if there is none.
    ///
    /// # Panics
    /// Beyond 2^29 distinct keys.
    #[inline]
    pub fn find(&mut self, key: u64) -> At {
        match self.recent[key as usize % RECENT] {
            (recent, at) if recent == key => at,
            _ => {
                let at = self.find_other(key);
                self.recent[key as usize % RECENT] = (key, at);
                at
            }
        }
    }

    /// [`Table::find`] of a key that was not used of late.
    #[inline(never)]
    fn find_other(&mut self, key: u64) -> At {
        let (mut place, part) = self.place(key);
        let low = self.index.len() as u32 - 1;
        loop {
            let entry = self.index[place];
            if entry == 0 {
                return self.add(place, part, key);
            }
            let at = ((entry & low) - 1) * self.stride;
            if entry & !low == part & !low && self.words[at as usize] == key {
                return at;
            }
            place = (place + 1) & low as usize;
        }
    }

    /// The key of a record.
    #[inline]
    pub fn key(&self, at: At) -> u64 {
        self.words[at as usize]
    }

    /// Word `word` of a record; word 0 is its key.
    #[inline]
    pub fn word(&mut self, at: At, word: usize) -> &mut u64 {
        &mut self.words[at as usize + word]
    }

    /// Returns word `word` of a record.
    #[inline]
    pub fn get(&self, at: At, word: usize) -> u64 {
        self.words[at as usize + word]
    }

    /// Records, in the order of first use.
    pub fn records(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.stride as usize)
    }

    /// Bytes that the records and the index take.
    pub fn bytes(&self) -> usize {
        8 * self.words.len() + 4 * self.index.len()
    }

    /// Prefetches a record.
    #[inline]
    pub fn prefetch(&self, at: At) {
        let record = self.words.get(at as usize..).unwrap_or_default();
        if let [first, rest @ ..] = record {
            prefetch(first);
            prefetch(rest.get(self.stride as usize - 2).unwrap_or(first));
        }
    }

    /// Prefetches a key's place in the index.
    #[inline]
    pub fn prefetch_index(&self, key: u64) {
        prefetch(&self.index[self.place(key).0]);
    }

    /// Prefetches a key's record, if there is one: the first that may be it.
    #[inline]
    pub fn prefetch_record(&self, key: u64) {
        let (mut place, part) = self.place(key);
        let low = self.index.len() as u32 - 1;
        loop {
            match self.index[place] {
                0 => return,
                entry if entry & !low == part & !low => {
                    return self.prefetch(((entry & low) - 1) * self.stride);
                }
                _ => place = (place + 1) & low as usize,
            }
        }
    }

    /// Returns where to look for a key first, and the part of its hash that its entry holds.
    #[inline]
    fn place(&self, key: u64) -> (usize, u32) {
        // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): the high bits depend on all of the key.
        let hash = (key >> BLOCK).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let blocks = self.index.len().trailing_zeros() - BLOCK;
        let within = key & ((1 << BLOCK) - 1);
        let place = (hash >> (64 - blocks)) << BLOCK | within;
        (place as usize, (hash >> 8) as u32 ^ (within as u32) << (32 - BLOCK))
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, place: usize, part: u32, key: u64) -> At {
        let number = self.words.len() / self.stride as usize;
        let at = number * self.stride as usize;
        assert!(at + (self.stride as usize) < MOST_WORDS, "details are kept of at most 2^29 distinct lines");
        self.words.push(key);
        self.words.resize(at + self.stride as usize, 0);
        let low = self.index.len() as u32 - 1;
        self.index[place] = part & !low | (number as u32 + 1);
        if (number + 1) * 5 > self.index.len() * 3 {
            self.grow();
        }
        at as At
    }

    fn grow(&mut self) {
        let entries = 2 * self.index.len();
        self.index = Vec::new(); // before the new one is there, for less memory at once
        self.index = vec![0; entries];
        let low = entries - 1;
        for (number, at) in (0..self.words.len()).step_by(self.stride as usize).enumerate() {
            let (mut place, part) = self.place(self.words[at]);
            while self.index[place] != 0 {
                place = (place + 1) & low;
            }
            self.index[place] = part & !(low as u32) | (number as u32 + 1);
        }
    }
}

/// Prefetches something that will be needed soon.
#[inline(always)]
pub(crate) fn prefetch<T>(soon: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((soon as *const T).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = soon;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each key has one record, which is found again at any size of the table.
        #[test]
        fn a_table_equals_a_map(keys in prop::collection::vec((0u64..4, 0u64..3000), 1..6000)) {
            let mut table = Table::new(3);
            let mut map = std::collections::HashMap::new();
            for (high, low) in keys {
                let key = high << 42 | low;
                let next = 3 * map.len() as At;
                let at = *map.entry(key).or_insert(next);
                prop_assert_eq!(table.find(key), at);
                prop_assert_eq!(table.key(at), key);
                *table.word(at, 2) += 1;
            }
            prop_assert_eq!(table.records().count(), map.len());
            prop_assert!(table.records().all(|record| record[2] > 0));
        }
    }
}
