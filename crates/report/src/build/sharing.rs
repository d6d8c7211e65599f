//! Which data threads take from each other, by name.

use memlode_attribute::ClassId;
use memlode_attribute::DetailedProfile;
use memlode_attribute::detail::SharingRow;
use memlode_attribute::place::{Place, What};
use memlode_attribute::tables::Tables;

use crate::build::Builder;
use crate::model::{Sharing, Side};

/// The key by which each side is distinguished.
type Key = ((What, Place), ClassId);

/// Returns the conflicts of threads about lines, the most frequent first.
pub(crate) fn sharing(
    detailed: &DetailedProfile,
    tables: &Tables<'_>,
    builder: &Builder<'_>,
) -> Vec<Sharing> {
    let side = |((what, place), class): &Key, threads: &std::collections::BTreeSet<_>| Side {
        access: builder.access(what, place),
        object: builder.object(*class),
        threads: threads.iter().map(|thread: &memlode_trace::event::ThreadId| thread.0).collect(),
    };
    let row = |row: SharingRow<Key>| Sharing {
        kind: if row.is_true { "true" } else { "false" }.into(),
        missed: side(&row.missed, &row.missed_by),
        written: side(&row.written, &row.written_by),
        misses: row.misses,
        lines: row.lines.len(),
    };
    detailed.sharing(|cell| (tables.key_of(cell), cell.class)).into_iter().map(row).collect()
}
