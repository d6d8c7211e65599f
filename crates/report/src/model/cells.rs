//! The accesses of a run by thread, line, object and time at once.

use serde::{Deserialize, Serialize};

/// The accesses of a run by thread, line and object, and when they happen. What happens to the same
/// three in another stretch of the run is another cell.
///
/// Threads, lines and objects are rows of the tables of the report on the same trace and machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// Accesses of a stretch; the last one may have fewer.
    pub stretch_accesses: u64,
    /// Stretches of the run, at most 64.
    pub stretches: usize,
    /// The combinations that occur.
    pub groups: Vec<CellGroup>,
    /// The costliest cells, by group and then by stretch.
    pub cells: CellColumns,
    /// All other cells together.
    pub others: OtherCells,
}

/// A thread at a line at an object, and the price of an access there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellGroup {
    /// Its row in the table of threads.
    pub thread: usize,
    /// Its row in the table of lines.
    pub line: usize,
    /// Its row in the table of objects.
    pub object: usize,
    /// Modelled cycles that an access waits, by the number of levels that it misses, from one on.
    /// First touches of fresh memory wait for nothing here, and are among the accesses that miss
    /// all levels.
    pub wait: Vec<f64>,
    /// Modelled cycles of the instructions up to an access.
    pub instructions: f64,
    /// Modelled cycles for first touches, of an access that misses all levels.
    pub first_touch: f64,
}

/// Numbers of cells, column by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellColumns {
    /// The group of each.
    pub group: Vec<usize>,
    /// The stretch of each.
    pub stretch: Vec<usize>,
    /// Accesses.
    pub accesses: Vec<u64>,
    /// Misses, by level.
    pub misses: Vec<Vec<u64>>,
}

/// Cells that are not distinguished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherCells {
    /// Cells.
    pub cells: usize,
    /// Accesses.
    pub accesses: u64,
    /// Misses, by level.
    pub misses: Vec<u64>,
    /// Modelled cycles of waiting.
    pub wait_cycles: f64,
    /// Modelled cycles of waiting, of instructions, and for first touches.
    pub cycles: f64,
}

impl Cells {
    /// Returns whether all references lead somewhere, as they may not in a table that was read from
    /// a file: in a report with this many threads, lines, objects and levels.
    pub fn is_sound(&self, threads: usize, lines: usize, objects: usize, levels: usize) -> bool {
        let CellColumns { group, stretch, accesses, misses } = &self.cells;
        let count = group.len();
        let of_group = |of: &CellGroup| {
            of.thread < threads && of.line < lines && of.object < objects && of.wait.len() == levels
        };
        self.groups.iter().all(of_group)
            && group.iter().all(|&group| group < self.groups.len())
            && stretch.iter().all(|&stretch| stretch < self.stretches)
            && [stretch.len(), accesses.len()] == [count; 2]
            && misses.len() == levels
            && misses.iter().all(|level| level.len() == count)
            && self.others.misses.len() == levels
    }
}
