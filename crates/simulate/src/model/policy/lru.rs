//! Least recently used, exactly.

use super::{Policy, Ranks};

pub struct Lru(Ranks);

impl Lru {
    pub fn new(sets: usize, ways: usize) -> Lru {
        Lru(Ranks::new(sets, ways))
    }
}

impl Policy for Lru {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        self.0.put_first(set, way);
    }

    fn filled(&mut self, set: usize, way: usize) {
        self.0.put_first(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0.last(set)
    }
}
