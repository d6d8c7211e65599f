//! A fully associative cache with exact least-recently-used replacement, of any size.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

/// A list in order of use over a table of slots, and a map from line to slot.
#[derive(Clone, Debug)]
pub struct FullyAssociative {
    capacity: usize,
    places: FxHashMap<u64, u32>,
    slots: Vec<Slot>,
    /// Most recent slot.
    head: u32,
    /// Least recent slot.
    tail: u32,
}

#[derive(Clone, Debug)]
struct Slot {
    line: u64,
    newer: u32,
    older: u32,
}

impl FullyAssociative {
    /// An empty cache of `lines` lines, at least one and fewer than 2^32.
    ///
    /// # Panics
    /// If `lines` is out of that range.
    pub fn new(lines: u64) -> FullyAssociative {
        assert!((1..u64::from(u32::MAX)).contains(&lines), "{lines} lines");
        FullyAssociative {
            capacity: lines as usize,
            places: FxHashMap::default(),
            slots: Vec::new(),
            head: NONE,
            tail: NONE,
        }
    }

    /// Makes a line the most recent, bringing it in if it is missing; says whether it was here.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        match self.slots.get(self.head as usize) {
            Some(head) if head.line == line => true,
            _ => self.touch_other(line),
        }
    }

    fn touch_other(&mut self, line: u64) -> bool {
        if let Some(&slot) = self.places.get(&line) {
            self.unlink(slot);
            self.link(slot);
            return true;
        }
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(Slot { line, newer: NONE, older: NONE });
            self.slots.len() as u32 - 1
        } else {
            let slot = self.tail;
            self.unlink(slot);
            let old = std::mem::replace(&mut self.slots[slot as usize].line, line);
            self.places.remove(&old);
            slot
        };
        self.places.insert(line, slot);
        self.link(slot);
        false
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.head = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.tail = newer,
        }
    }

    fn link(&mut self, slot: u32) {
        let older = std::mem::replace(&mut self.head, slot);
        self.slots[slot as usize].newer = NONE;
        self.slots[slot as usize].older = older;
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = slot,
            None => self.tail = slot,
        }
    }
}
