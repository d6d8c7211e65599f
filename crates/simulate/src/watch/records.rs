//! Records of lines, and which caches share them.
//!
//! ```text
//!   record of a line     line │ outer │ stamp, tag │ used │ stamp, tag │ used │ …
//!                                       ╰─ innermost level ─╯
//! ```
//! Levels with lines of one length and the same cores (all levels, if there is one core) share
//! records. An outer level that is shared by more cores, or has longer lines, has separate records,
//! to which `outer` points.

use crate::spec::LevelSpec;

/// Word of a record with the place of the outer level's record + 1, or 0 if there is none yet.
pub(crate) const OUTER: usize = 1;

/// The place of a cache's part in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub table: usize,
    /// Word of a record: stamp below, tag above. Behind it, the bytes used.
    pub word: usize,
    /// Word of the innermost level whose uses count for this level as well.
    pub first_word: usize,
    /// The next level has the same records, and uses are handed to it.
    pub has_next: bool,
}

/// The record in which uses of a line are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uses {
    /// With the innermost level of a record alone, which passes them to the next level when it
    /// misses the line. An outer level fetches a line only when the inner ones miss it, so all that
    /// an inner level has seen since its last fetch happened while the outer level had the line.
    PassedOn,
    /// With every level that has the line.
    AtEachLevel,
}

/// Returns the places by cache, counted over all levels, innermost level first; and by table, the
/// words of a record.
pub(crate) fn places(specs: &[LevelSpec], cores: u32, uses: Uses) -> (Vec<Place>, Vec<usize>) {
    // Whether a cache of a level has the same users as that of the level inside, and the same lines.
    let same = |level: usize, first_core: u32| {
        let users = |spec: &LevelSpec| spec.shared_by.min(cores - first_core);
        let inner = level.checked_sub(1).map(|inner| &specs[inner]);
        let spec = &specs[level];
        inner.is_some_and(|i| i.line_bytes == spec.line_bytes && users(i) == users(spec))
    };
    let first_cores = |level: usize| (0..cores).step_by(specs[level].shared_by as usize);
    let one_table = (1..specs.len()).all(|level| first_cores(level).all(|core| same(level, core)));
    let first_word = if one_table { OUTER } else { OUTER + 1 };
    let (mut places, mut strides): (Vec<Place>, Vec<usize>) = (Vec::new(), Vec::new());
    let is_handed = uses == Uses::PassedOn;
    let mut first_inner = 0;
    for level in 0..specs.len() {
        let first = places.len();
        for core in first_cores(level) {
            let table = if same(level, core) {
                let inner = first_inner + (core / specs[level - 1].shared_by) as usize;
                places[inner].has_next = is_handed;
                places[inner].table
            } else {
                strides.push(first_word);
                strides.len() - 1
            };
            let word = strides[table];
            let first_word = if is_handed { first_word } else { word };
            places.push(Place { table, word, first_word, has_next: false });
            strides[table] += 2;
        }
        first_inner = first;
    }
    (places, strides)
}
