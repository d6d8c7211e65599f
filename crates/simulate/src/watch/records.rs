//! Which caches keep what they know of a line in one record.
//!
//! ```text
//!   record of a line     line │ outer │ stamp, tag │ used │ stamp, tag │ used │ …
//!                                       ╰─ innermost level ─╯
//! ```
//! Levels with the same lines and the same users (all levels, if there is one core) share the records. Where more cores
//! share the outer level, or its lines are longer, it has records of its own, which `outer` leads to.

use crate::spec::LevelSpec;

/// Word of a record that leads to the outer level's, if there are any: its place + 1, 0 if there is none yet.
pub(crate) const OUTER: usize = 1;

/// The place of a cache's part in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub table: usize,
    /// Word of a record: stamp below, tag above. Behind it, the bytes used.
    pub word: usize,
    /// That of the innermost level whose uses count for this one as well.
    pub first_word: usize,
    /// The next level has the same records, and uses are handed to it.
    pub has_next: bool,
}

/// Says where uses of a line are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uses {
    /// With the innermost level of a record alone, which hands them outwards when it misses the line. An outer
    /// level fetches a line only when the inner ones miss it, so whatever an inner level has seen since its last
    /// fetch, the outer one has had the line for.
    HandedOutwards,
    /// With every level that has the line.
    AtEachLevel,
}

/// Returns the places by cache, counted over all levels, innermost level first; and by table, the words of a record.
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
    let is_handed = uses == Uses::HandedOutwards;
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
