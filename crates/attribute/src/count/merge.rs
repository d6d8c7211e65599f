//! The shards of a profile, put together.

use memlode_replay::Walk;
use memlode_trace::sites::{Site, SiteId};

use crate::objects::classes::Classes;
use crate::objects::paths::Paths;
use crate::profile::{Cell, Profile, level_counters};
use crate::residencies::Residencies;
use crate::sampled::sample::Gaps;

/// Counts of one profiler.
pub(crate) struct Part {
    /// All that it knew.
    pub sites: Vec<Site>,
    pub cells: Vec<Cell>,
    pub classes: Classes,
    /// Numbers that all parts agree on, for every shard sees every call and every allocation.
    pub paths: Paths,
    /// Dirty lines that each level passed to the next.
    pub write_backs: Vec<u64>,
    pub gaps: Option<Gaps>,
    /// Indexed by site; all of them from one shard.
    pub walks: Vec<Walk>,
    pub has_translations: bool,
    pub residencies: Residencies,
}

/// Adds up parts, at least one. Classes and cells are in an order that does not depend on the
/// number of parts.
pub(crate) fn merge(parts: Vec<Part>) -> Profile {
    let mut parts = parts.into_iter();
    let first = parts.next().expect("at least one part");
    let Part { mut sites, mut classes, paths, mut write_backs, mut cells, gaps, mut walks, .. } = first;
    let (has_translations, mut residencies) = (first.has_translations, first.residencies);
    for part in parts {
        // One may have learnt of more than another before its last event.
        if part.sites.len() > sites.len() {
            sites = part.sites;
        }
        if part.walks.len() > walks.len() {
            walks = part.walks;
        }
        let numbers = classes.take_in(part.classes);
        let mut more = part.residencies;
        more.renumber(&numbers);
        residencies.add(more);
        cells.extend(
            part.cells.into_iter().map(|cell| Cell { class: numbers[cell.class.0 as usize], ..cell }),
        );
        for (sum, more) in write_backs.iter_mut().zip(part.write_backs) {
            *sum += more;
        }
    }
    let numbers = classes.sort();
    residencies.renumber(&numbers);
    for cell in &mut cells {
        cell.class = numbers[cell.class.0 as usize];
    }
    cells.sort_unstable_by_key(|cell| (cell.thread, cell.site, cell.class, cell.path));
    cells.dedup_by(|next, sum| {
        let key = |cell: &Cell| (cell.thread, cell.site, cell.class, cell.path);
        let same = key(next) == key(sum);
        if same {
            sum.counts += &next.counts;
        }
        same
    });
    let ty = |site: SiteId| sites[site.0 as usize].ty;
    let uses = cells.iter().map(|cell| (cell.class, ty(cell.site), cell.counts.accesses()));
    Profile {
        classes: classes.into_vec(uses),
        levels: level_counters(&cells, &write_backs),
        cells,
        paths,
        gaps,
        walks,
        has_translations,
        remote: None,
        residencies,
    }
}
