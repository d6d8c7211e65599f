//! Replacement policies: which line of a full set makes room.
//!
//! A policy knows sets and ways and nothing of lines. All of its state is kept per set, so sets
//! never influence each other, whatever the policy.

mod fifo;
mod lru;
mod random;
mod rrip;
mod tree_plru;

use super::spec::Replacement;

/// The order of replacement of one cache.
///
/// A cache calls `filled` when a line enters a way and `hit` when it is used again. It calls
/// `victim` only while every way of the set is in use. A line that leaves for another reason leaves
/// an empty way, which is filled first.
pub(super) trait Policy: Send {
    /// The line in this way was used again.
    fn hit(&mut self, set: usize, way: usize);
    /// A line entered this way.
    fn filled(&mut self, set: usize, way: usize);
    /// Returns the way whose line is to leave. May change the state: a `filled` of this way
    /// follows.
    fn victim(&mut self, set: usize) -> usize;
}

/// The state of an empty cache.
pub(super) fn new(replacement: Replacement, sets: usize, ways: usize) -> Box<dyn Policy> {
    match replacement {
        Replacement::Lru => Box::new(lru::Lru::new(sets, ways)),
        Replacement::TreePlru => Box::new(tree_plru::TreePlru::new(sets, ways)),
        Replacement::Srrip => Box::new(rrip::Rrip::srrip(sets, ways)),
        Replacement::Brrip => Box::new(rrip::Rrip::brrip(sets, ways)),
        Replacement::Fifo => Box::new(fifo::Fifo::new(sets, ways)),
        Replacement::Random => Box::new(random::Random::new(sets, ways)),
    }
}

/// The ways of each set in an order: a way's rank is the number of ways before it. Ways are at most
/// 2^16.
struct Ranks {
    ways: usize,
    ranks: Vec<u16>,
}

impl Ranks {
    fn new(sets: usize, ways: usize) -> Ranks {
        Ranks { ways, ranks: (0..sets).flat_map(|_| (0..ways).map(|way| way as u16)).collect() }
    }

    #[inline]
    fn put_first(&mut self, set: usize, way: usize) {
        let ranks = &mut self.ranks[set * self.ways..][..self.ways];
        let from = ranks[way];
        for rank in ranks.iter_mut() {
            *rank += u16::from(*rank < from);
        }
        ranks[way] = 0;
    }

    fn last(&self, set: usize) -> usize {
        let ranks = &self.ranks[set * self.ways..][..self.ways];
        ranks.iter().position(|rank| usize::from(*rank) == self.ways - 1).unwrap_or(0)
    }
}
