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
    /// By set: the slot for the next line. A line goes only when one has come in, so it is the one that was left last, or, as long as
    /// none was, the next one.
    vacant: Vec<u32>,
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
            vacant: vec![0; spec.sets() as usize],
        }
    }

    /// A line came in.
    #[inline]
    pub fn enter(&mut self, line: u64, at: At) {
        let set = self.sets.of(line);
        let slot = set * self.slots_per_set + self.vacant[set] as usize;
        debug_assert_eq!(self.lines[slot], EMPTY, "a line goes for each that comes in");
        (self.lines[slot], self.records[slot]) = (line, at);
        self.vacant[set] += 1;
    }

    /// A line went.
    #[inline]
    pub fn leave(&mut self, line: u64) -> At {
        let set = self.sets.of(line);
        let first = set * self.slots_per_set;
        let mut slots = self.lines[first..first + self.slots_per_set].iter();
        let place = slots.position(|held| *held == line).expect("a cache holds what came in and did not go");
        self.vacant[set] = place as u32;
        self.lines[first + place] = EMPTY;
        self.records[first + place]
    }

    /// Asks the processor we run on for the slots of a line's set.
    #[inline]
    pub fn prefetch(&self, line: u64) {
        let set = self.sets.of(line);
        let first = set * self.slots_per_set;
        prefetch(&self.vacant[set]);
        prefetch(&self.lines[first]);
        prefetch(&self.lines[first + self.slots_per_set - 1]);
    }
}
