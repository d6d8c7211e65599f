//! The records of the lines that a cache holds, found without the index: there are few places to look.
//!
//! The lines of a set stand in no order in one slot more than the cache has ways, since a line comes in before the one
//! that makes room goes.

use crate::sets::SetIndex;
use crate::spec::LevelSpec;
use crate::table::{At, prefetch};

/// An empty slot: no line has this number, as lines have at least 4 bytes.
const EMPTY: u64 = u64::MAX;

/// By set: lines, and their records.
#[derive(Clone, Debug)]
pub(crate) struct Residents {
    sets: SetIndex,
    lines: Vec<u64>,
    records: Vec<At>,
    slots_per_set: usize,
}

impl Residents {
    /// Of an empty cache.
    pub fn new(spec: &LevelSpec) -> Residents {
        let slots_per_set = spec.ways as usize + 1;
        let slots = spec.sets() as usize * slots_per_set;
        Residents {
            sets: SetIndex::new(spec.sets()),
            lines: vec![EMPTY; slots],
            records: vec![0; slots],
            slots_per_set,
        }
    }

    /// A line came in.
    #[inline]
    pub fn enter(&mut self, line: u64, at: At) {
        let slot = self.slot(line, EMPTY);
        (self.lines[slot], self.records[slot]) = (line, at);
    }

    /// A line went.
    #[inline]
    pub fn leave(&mut self, line: u64) -> At {
        let slot = self.slot(line, line);
        self.lines[slot] = EMPTY;
        self.records[slot]
    }

    /// Asks the processor we run on for the slots of a line's set.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        let first = self.sets.of(line) * self.slots_per_set;
        prefetch(&self.lines[first]);
        prefetch(&self.lines[first + self.slots_per_set - 1]);
    }

    /// Where, in the set of `line`, `wanted` is. Of lines that come in before others go, and go once, there is always a
    /// place.
    #[inline]
    fn slot(&self, line: u64, wanted: u64) -> usize {
        let first = self.sets.of(line) * self.slots_per_set;
        let set = &self.lines[first..first + self.slots_per_set];
        let slot = set.iter().position(|held| *held == wanted);
        first + slot.expect("a cache holds what came in and did not go")
    }
}
