//! Stores past the caches: the lines that are being written, whose bytes go to memory together.

use memlode_simulate::{Fragment, MemRef, Shape};
use rustc_hash::FxHashMap;

use crate::count::engine::Engine;
use crate::count::profiler::Profiler;

/// Lines of a set that are written at the same time. Processors have ten or twelve buffers for all
/// lines. Here they are divided by sets, so that shards of a trace, which know only their own sets,
/// give the same result as one simulation.
const LINES: usize = 4;

/// The lines that each core is writing.
pub(crate) struct Combining {
    sets: u64,
    /// Keyed by core and set: the lines, the one that was begun last in front.
    lines: FxHashMap<(u32, u64), [u64; LINES]>,
}

impl Combining {
    /// Nothing is being written.
    pub fn new(first_level: Shape) -> Combining {
        Combining { sets: first_level.sets, lines: FxHashMap::default() }
    }

    /// Writes to a line; returns whether it begins with that.
    pub fn begins(&mut self, core: u32, line: u64) -> bool {
        let lines = self.lines.entry((core, line % self.sets)).or_insert([u64::MAX; LINES]);
        if lines.contains(&line) {
            return false;
        }
        lines.rotate_right(1);
        lines[0] = line;
        true
    }
}

impl<E: Engine> Profiler<E> {
    /// One store, in one or several places. It counts as served by memory where it begins a line,
    /// and as a hit where its lines are being written already.
    #[cold]
    pub(crate) fn store_past_caches(&mut self, cell: u32, access: MemRef, fragments: &[Fragment]) {
        let (depth, begun) = self.begin_lines(access.core, fragments);
        self.cells.count(cell, depth);
        self.caches.store_past(access, depth, begun);
        if let Some(gaps) = &mut self.gaps {
            gaps.ledger.touch(cell);
        }
        if self.caches.is_full() {
            self.settle();
        }
    }

    /// Writes to lines; returns how many levels count as missed, and how many lines begin with it.
    pub(crate) fn begin_lines(&mut self, core: u32, fragments: &[Fragment]) -> (u8, u32) {
        let line_bytes = u64::from(self.line_bytes);
        let lines = fragments.iter().flat_map(|fragment| {
            let last = fragment.address.saturating_add(u64::from(fragment.bytes.max(1)) - 1);
            fragment.address / line_bytes..=last / line_bytes
        });
        let begun = lines.map(|line| u32::from(self.combining.begins(core, line))).sum();
        (if begun > 0 { self.levels as u8 } else { 0 }, begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_begun_once_while_few_others_of_its_set_are() {
        let mut combining = Combining::new(Shape { line_bytes: 64, sets: 4, ways: 1 });
        assert!(combining.begins(0, 8), "a first store begins it");
        assert!(!combining.begins(0, 8), "and a second one goes on");
        assert!(combining.begins(1, 8), "another core has a buffer of its own");
        for line in [12, 16, 20, 9] {
            assert!(combining.begins(0, line));
        }
        assert!(!combining.begins(0, 8), "three more of its set, and one of another");
        assert!(combining.begins(0, 24) && combining.begins(0, 8), "the fourth takes its place");
    }
}
