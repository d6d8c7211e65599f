//! Exact reuse distances (LRU stack distances).
//!
//! The reuse distance of an access is the number of *other* lines touched since its line was last
//! touched. A fully associative LRU cache of c lines hits exactly the accesses of distance below c,
//! so one pass gives the miss ratio of every size at once (Mattson, Gecsei, Slutz, Traiger,
//! "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970).
//!
//! Bennett and Kruskal ("LRU stack processing", IBM Journal of R&D 19(4), 1975) count with a tree
//! over time: each line has a mark at the time of its last touch, and the distance is the number of
//! marks after the line's own. Here the leaves are words of 512 marks counted by population count,
//! and time is renumbered when the slots are used up, so memory follows the number of lines and not
//! the trace's length. The few lines that were touched last are a list and have no marks: most
//! accesses touch one of them, and its place in the list is the distance.
//!
//! ```text
//!   time      0 1 2 3 4 5 6 7            touch A again: 3 marks (B, C, D) after A's
//!   line      A B A C B D . .     →      A's mark moves to 6
//!   mark      . . 1 1 1 1 . .
//! ```

use crate::by_block::ByBlock;

/// Words of 64 marks under one leaf of the tree.
const LEAF_WORDS: usize = 8;
/// Marks under one leaf.
const LEAF_SLOTS: usize = 64 * LEAF_WORDS;
/// The most slots: each has a number below [`NO_SLOT`].
const MOST_SLOTS: usize = (1 << 32) - LEAF_SLOTS;
/// The slot of a line that was never touched.
const NO_SLOT: u32 = u32::MAX;

/// Lines that were touched last, and have no mark: most accesses touch one of these again.
const FRONT: usize = 8;

/// Measures reuse distances over one stream of line numbers.
#[derive(Clone, Debug)]
pub struct ReuseDistance {
    /// The lines touched last, the most recent first. Their order is their distance.
    front: [u64; FRONT],
    /// Their places in `slots`.
    front_places: [u32; FRONT],
    /// Their number.
    front_lines: usize,
    /// The time slot of each other line's mark.
    slots: ByBlock<u32, 64>,
    /// Lines that were touched.
    lines: u64,
    /// Indexed by time slot: the place in `slots` of the line whose mark is, or was, there.
    owners: Vec<u32>,
    /// Indexed by time slot: one bit.
    marks: Vec<u64>,
    /// Fenwick tree of marks per leaf.
    tree: Vec<u32>,
    /// Next free time slot.
    now: usize,
}

impl Default for ReuseDistance {
    fn default() -> ReuseDistance {
        ReuseDistance::new()
    }
}

impl ReuseDistance {
    /// Nothing seen yet.
    pub fn new() -> ReuseDistance {
        let slots = 16 * LEAF_SLOTS;
        ReuseDistance {
            front: [0; FRONT],
            front_places: [0; FRONT],
            front_lines: 0,
            slots: ByBlock::new(NO_SLOT),
            lines: 0,
            owners: vec![0; slots],
            marks: vec![0; slots / 64],
            tree: vec![0; slots / LEAF_SLOTS + 1],
            now: 0,
        }
    }

    /// Touches a line and returns its reuse distance; `None` if it was never touched before.
    ///
    /// # Panics
    /// Beyond 2^30 distinct lines, or if they lie in more than 2^26 blocks of 64.
    #[inline]
    pub fn touch(&mut self, line: u64) -> Option<u64> {
        match self.front[..self.front_lines].iter().position(|known| *known == line) {
            Some(0) => Some(0),
            Some(distance) => {
                self.front[..=distance].rotate_right(1);
                self.front_places[..=distance].rotate_right(1);
                Some(distance as u64)
            }
            None => self.touch_other(line),
        }
    }

    /// Number of distinct lines touched.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The lines touched, the most recent last.
    pub fn by_recency(&self) -> Vec<u64> {
        let marked = (0..self.now).filter(|slot| self.is_marked(*slot));
        let behind = marked.map(|slot| self.slots.number(self.owners[slot] as usize));
        behind.chain(self.front[..self.front_lines].iter().rev().copied()).collect()
    }

    /// Touches a line that is not in front.
    fn touch_other(&mut self, line: u64) -> Option<u64> {
        let place = self.slots.place(line);
        let old = self.slots[place];
        let distance = if old == NO_SLOT {
            assert!(self.lines < 1 << 30, "reuse distances are kept for at most 2^30 lines");
            self.lines += 1;
            None
        } else {
            // Lines in front have no mark. Marks up to and including the line's own stay before it; the others came after.
            let distance = self.lines - self.rank(old as usize);
            self.marks[old as usize / 64] &= !(1 << (old % 64));
            self.add(old as usize, u32::MAX);
            Some(distance)
        };
        let place = u32::try_from(place).expect("lines lie in at most 2^26 blocks");
        if self.front_lines == FRONT {
            self.mark(self.front_places[FRONT - 1]);
        } else {
            self.front_lines += 1;
        }
        self.front.copy_within(..FRONT - 1, 1);
        self.front_places.copy_within(..FRONT - 1, 1);
        (self.front[0], self.front_places[0]) = (line, place);
        distance
    }

    /// Marks the line at a place of `slots` as the most recent of those that are not in front.
    fn mark(&mut self, place: u32) {
        if self.now == self.owners.len() {
            self.renumber();
        }
        let slot = self.now;
        self.now += 1;
        self.slots[place as usize] = slot as u32;
        self.owners[slot] = place;
        self.marks[slot / 64] |= 1 << (slot % 64);
        self.add(slot, 1);
    }

    fn is_marked(&self, slot: usize) -> bool {
        self.marks[slot / 64] >> (slot % 64) & 1 != 0
    }

    /// Marks at slots up to and including `slot`.
    fn rank(&self, slot: usize) -> u64 {
        let leaf = slot / LEAF_SLOTS;
        let words = &self.marks[leaf * LEAF_WORDS..=slot / 64];
        let (last, before) = words.split_last().expect("a slot has its word");
        let mut rank: u64 = before.iter().map(|word| u64::from(word.count_ones())).sum();
        rank += u64::from((last << (63 - slot % 64)).count_ones());
        let mut node = leaf;
        while node > 0 {
            rank += u64::from(self.tree[node]);
            node &= node - 1;
        }
        rank
    }

    /// Adds to the leaf of `slot`, modulo 2^32.
    fn add(&mut self, slot: usize, amount: u32) {
        let mut node = slot / LEAF_SLOTS + 1;
        while node < self.tree.len() {
            self.tree[node] = self.tree[node].wrapping_add(amount);
            node += node & node.wrapping_neg();
        }
    }

    /// Moves the marks to the first slots, in order, so that at least three times as many are free.
    fn renumber(&mut self) {
        let mut next = 0;
        for slot in 0..self.now {
            if self.is_marked(slot) {
                let owner = self.owners[slot];
                self.owners[next] = owner;
                self.slots[owner as usize] = next as u32;
                next += 1;
            }
        }
        self.now = next;
        let slots = self.owners.len().max((4 * next).next_multiple_of(LEAF_SLOTS)).min(MOST_SLOTS);
        self.owners.resize(slots, 0);
        self.marks.clear();
        self.marks.resize(slots / 64, 0);
        self.marks[..next / 64].fill(u64::MAX);
        if next % 64 != 0 {
            self.marks[next / 64] = (1 << (next % 64)) - 1;
        }
        // A Fenwick tree from its leaves: each node passes its sum on to the next that covers it.
        let leaves = slots / LEAF_SLOTS;
        self.tree.clear();
        self.tree.resize(leaves + 1, 0);
        for leaf in 0..leaves {
            let filled = next.saturating_sub(leaf * LEAF_SLOTS).min(LEAF_SLOTS);
            let node = leaf + 1;
            self.tree[node] += filled as u32;
            let above = node + (node & node.wrapping_neg());
            if above <= leaves {
                self.tree[above] += self.tree[node];
            }
        }
    }
}

/// Number of times that each reuse distance occurred: exact below 64, then eight buckets for each
/// doubling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReuseHistogram {
    first_touches: u64,
    buckets: Vec<u64>,
}

impl ReuseHistogram {
    /// The histogram of a number of first touches, and of `(distance, count)`s, as
    /// [`ReuseHistogram::buckets`] gives them.
    pub fn of(first_touches: u64, counts: impl IntoIterator<Item = (u64, u64)>) -> ReuseHistogram {
        let mut histogram = ReuseHistogram { first_touches, buckets: Vec::new() };
        for (distance, count) in counts {
            histogram.add_times(Some(distance), count);
        }
        histogram
    }

    /// Adds one access with the distance that [`ReuseDistance::touch`] gave.
    #[inline]
    pub fn add(&mut self, distance: Option<u64>) {
        self.add_times(distance, 1);
    }

    #[inline]
    fn add_times(&mut self, distance: Option<u64>, times: u64) {
        match distance {
            None => self.first_touches += times,
            Some(distance) => {
                let bucket = bucket(distance);
                if bucket >= self.buckets.len() {
                    self.buckets.resize(bucket + 1, 0);
                }
                self.buckets[bucket] += times;
            }
        }
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &ReuseHistogram) {
        self.first_touches += other.first_touches;
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (count, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += other;
        }
    }

    /// Accesses counted.
    pub fn accesses(&self) -> u64 {
        self.first_touches + self.buckets.iter().sum::<u64>()
    }

    /// Accesses to lines never touched before.
    pub fn first_touches(&self) -> u64 {
        self.first_touches
    }

    /// `(smallest distance, count)` of each bucket that is not empty; a bucket ends where the next
    /// begins ([`ReuseHistogram::bucket_end`]).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (bucket_start(bucket), *count))
    }

    /// First distance behind the bucket that holds `distance`.
    pub fn bucket_end(distance: u64) -> u64 {
        bucket_start(bucket(distance) + 1)
    }

    /// Misses of a fully associative LRU cache of `lines` lines. Exact for up to 64 lines and for
    /// every number at which a bucket starts, so for every power of two; otherwise an upper bound.
    pub fn misses(&self, lines: u64) -> u64 {
        let first = self.buckets.len().min(bucket(lines));
        self.first_touches + self.buckets[first..].iter().sum::<u64>()
    }
}

/// 0, 1, …, 63, then 64–71, 72–79, …, 120–127, 128–143, …
fn bucket(distance: u64) -> usize {
    if distance < 64 {
        return distance as usize;
    }
    let log = 63 - distance.leading_zeros();
    let eighth = (distance >> (log - 3)) as usize & 7;
    64 + (log as usize - 6) * 8 + eighth
}

fn bucket_start(bucket: usize) -> u64 {
    if bucket < 64 {
        return bucket as u64;
    }
    let log = (bucket - 64) / 8 + 6;
    let eighth = (bucket - 64) as u64 % 8;
    // Only the end of the very last bucket does not fit.
    (8 + eighth).checked_shl(log as u32 - 3).filter(|start| *start > 0).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_start_at_powers_of_two() {
        for distance in (0..10_000).chain((14..64).flat_map(|k| (1u64 << k) - 2..=(1 << k) + 2)) {
            let bucket = bucket(distance);
            let end = ReuseHistogram::bucket_end(distance);
            assert!(bucket_start(bucket) <= distance && distance < end, "{distance}");
        }
        for k in 0..64 {
            assert_eq!(bucket_start(bucket(1 << k)), 1 << k);
        }
    }
}
