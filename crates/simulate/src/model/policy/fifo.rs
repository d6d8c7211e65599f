//! First in, first out: use does not keep a line.

use super::{Policy, Ranks};

pub struct Fifo(Ranks);

impl Fifo {
    pub fn new(sets: usize, ways: usize) -> Fifo {
        Fifo(Ranks::new(sets, ways))
    }
}

impl Policy for Fifo {
    fn hit(&mut self, _set: usize, _way: usize) {}

    fn filled(&mut self, set: usize, way: usize) {
        self.0.put_first(set, way);
    }

    fn victim(&mut self, set: usize) -> usize {
        self.0.last(set)
    }
}
