//! Least recently used, exactly.

use super::Policy;

pub struct Lru {
    ways: usize,
    /// When each way was last used. One clock serves all sets: only the order within a set matters.
    used: Vec<u64>,
    clock: u64,
}

impl Lru {
    pub fn new(sets: usize, ways: usize) -> Lru {
        Lru { ways, used: vec![0; sets * ways], clock: 0 }
    }
}

impl Policy for Lru {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        self.clock += 1;
        self.used[set * self.ways + way] = self.clock;
    }

    fn filled(&mut self, set: usize, way: usize) {
        self.hit(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        super::oldest(&self.used[set * self.ways..][..self.ways])
    }
}
