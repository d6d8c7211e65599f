//! A victim at random. Each set has a generator of its own (xorshift64*, Vigna 2016, seeded by the
//! set's number through SplitMix64), so a run can be repeated, and sets do not influence each
//! other.

use super::Policy;

pub struct Random {
    ways: usize,
    state: Vec<u64>,
}

impl Random {
    pub fn new(sets: usize, ways: usize) -> Random {
        Random { ways, state: (0..sets as u64).map(seed).collect() }
    }
}

/// SplitMix64 of the set's number; never 0 for numbers of sets, which xorshift could not leave.
fn seed(set: u64) -> u64 {
    let mixed = (set + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Policy for Random {
    fn hit(&mut self, _set: usize, _way: usize) {}

    fn filled(&mut self, _set: usize, _way: usize) {}

    fn victim(&mut self, set: usize) -> usize {
        let state = &mut self.state[set];
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        let drawn = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((drawn * self.ways as u64) >> 32) as usize
    }
}
