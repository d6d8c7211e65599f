//! Iterations of waiting loops: how often a thread looked in vain is the schedule's doing, so only
//! the last look counts.

use memlode_trace::event::{Batch, Mark, SyncKind};
use memlode_trace::format::flag;
use memlode_trace::sites::SiteTable;

/// The most accesses between two looks of a waiting loop: its iterations are short.
const LONGEST_ITERATION: usize = 16;

/// Returns whether an access of a batch is a look in vain: its loop looks again at the same address
/// in the same way, and between the two are only such looks and what they learnt. A loop's first
/// look may have a separate site.
pub(super) fn is_in_vain(sites: &SiteTable, batch: &Batch, at: usize) -> bool {
    let access = batch.accesses[at];
    let site = sites.site(access.site);
    if site.flags & flag::POLL == 0 {
        return false;
    }
    let mut mark = batch.marks.partition_point(|&(place, _)| place as usize <= at);
    let next_loop = batch.loops.partition_point(|next| next.access as usize <= at);
    let end = batch.loops.get(next_loop).map_or(batch.accesses.len(), |next| next.access as usize);
    for (number, next) in batch.accesses[..end].iter().enumerate().skip(at + 1).take(LONGEST_ITERATION) {
        while let Some((place, between)) = batch.marks.get(mark)
            && *place as usize <= number
        {
            if !matches!(
                between,
                Mark::Sync { kind: SyncKind::Acquire | SyncKind::Release, .. } | Mark::Stamp { .. }
            ) {
                return false;
            }
            mark += 1;
        }
        let looks = sites.site(next.site);
        if looks.flags & flag::POLL == 0 {
            return false;
        }
        if next.address == access.address && (next.site == access.site || looks.kind == site.kind) {
            return true;
        }
    }
    false
}

/// Returns whether a mark of a batch is something that the access in front of it learnt.
pub(super) fn is_learnt_by(batch: &Batch, mark: usize, at: usize) -> bool {
    let is_first = |before: usize| batch.marks[before].0 as usize <= at;
    mark.checked_sub(1).is_none_or(is_first) && batch.marks.get(mark).is_some_and(|(place, mark)| {
        *place as usize == at + 1
            && matches!(mark, Mark::Sync { kind: SyncKind::Acquire, object, .. } if *object == batch.accesses[at].address)
    })
}

/// Returns whether a mark of a batch is the release that the access behind it is.
pub(super) fn is_release_of(batch: &Batch, mark: usize, at: usize) -> bool {
    let Some(access) = batch.accesses.get(at) else { return false };
    batch.marks.get(mark).is_some_and(|(place, mark)| {
        *place as usize == at
            && matches!(mark, Mark::Sync { kind: SyncKind::Release, object, .. } if *object == access.address)
    })
}

#[cfg(test)]
mod tests {
    use memlode_trace::event::{Access, Batch, Mark, SyncKind};
    use memlode_trace::sites::SiteId;

    use super::is_learnt_by;

    #[test]
    fn a_look_learns_of_what_it_looks_at_right_behind_it() {
        let looks = |address| Access { address, bytes: 4, site: SiteId(0) };
        let learns = |object| Mark::Sync { kind: SyncKind::Acquire, object, stamp: 1 };
        let marks = vec![(1, learns(8)), (2, learns(16)), (2, learns(16))];
        let batch = Batch { accesses: vec![looks(8), looks(16)], marks, ..Batch::default() };
        assert!(is_learnt_by(&batch, 0, 0) && is_learnt_by(&batch, 1, 1));
        assert!(!is_learnt_by(&batch, 2, 1) && !is_learnt_by(&batch, 1, 0) && !is_learnt_by(&batch, 3, 1));
    }
}
