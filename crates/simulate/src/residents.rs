//! The records of the lines that a cache holds, found without the index: there are few places to look.
//!
//! The lines of a set stand in no order in one slot more than the cache has ways, since a line comes in before the one
//! that makes room goes.

use crate::sets::SetIndex;
use crate::spec::LevelSpec;
use crate::table::At;

/// An empty slot: no record begins here.
const EMPTY: At = At::MAX;

/// By set: lines, as far as their low half tells them apart, and their records.
#[derive(Clone, Debug)]
pub(crate) struct Residents {
    sets: SetIndex,
    slots: Vec<(u32, At)>,
    slots_per_set: usize,
}

impl Residents {
    /// Of an empty cache.
    pub fn new(spec: &LevelSpec) -> Residents {
        let slots_per_set = spec.ways as usize + 1;
        let slots = vec![(0, EMPTY); spec.sets() as usize * slots_per_set];
        Residents { sets: SetIndex::new(spec.sets()), slots, slots_per_set }
    }

    /// A line came in.
    #[inline]
    pub fn enter(&mut self, line: u64, at: At) {
        let slot = self.set(line).iter_mut().find(|(_, at)| *at == EMPTY);
        *slot.expect("a line comes in, then one goes") = (line as u32, at);
    }

    /// A line went; `is_its` says whether a record is the line's, asked where lines look alike.
    #[inline]
    pub fn leave(&mut self, line: u64, is_its: impl Fn(At) -> bool) -> At {
        let mut slots = self.set(line).iter_mut();
        let slot = slots.find(|(low, at)| *low == line as u32 && *at != EMPTY && is_its(*at));
        std::mem::replace(slot.expect("what goes had come in"), (0, EMPTY)).1
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [(u32, At)] {
        let first = self.sets.of(line) * self.slots_per_set;
        &mut self.slots[first..first + self.slots_per_set]
    }
}
