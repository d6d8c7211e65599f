//! First in, first out: use does not keep a line.

use super::Policy;

pub struct Fifo {
    ways: usize,
    /// When each way was filled.
    filled: Vec<u64>,
    clock: u64,
}

impl Fifo {
    pub fn new(sets: usize, ways: usize) -> Fifo {
        Fifo { ways, filled: vec![0; sets * ways], clock: 0 }
    }
}

impl Policy for Fifo {
    fn hit(&mut self, _set: usize, _way: usize) {}

    fn filled(&mut self, set: usize, way: usize) {
        self.clock += 1;
        self.filled[set * self.ways + way] = self.clock;
    }

    fn victim(&mut self, set: usize) -> usize {
        super::oldest(&self.filled[set * self.ways..][..self.ways])
    }
}
