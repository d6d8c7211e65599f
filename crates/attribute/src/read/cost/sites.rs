//! The way in which each site of a profile waits, and the misses around it that can overlap with
//! its own.

use memlode_machine::Machine;
use memlode_trace::sites::{SiteId, SiteTable, StringId};
use rustc_hash::FxHashMap;

use super::{Constants, Density, Parallelism, Parts, UnderEdit, chains};
use crate::profile::{Cell, Profile};
use crate::read::place::place;
use crate::read::touched::FirstTouches;

/// Sites of a profile, under an edit of the layout if there is one.
pub(super) struct SiteWaits<'a> {
    profile: &'a Profile,
    names: &'a SiteTable,
    edit: Option<&'a UnderEdit>,
    /// Indexed by site: the part of its accesses that waits for the one before in a chain.
    chained: Vec<f64>,
    /// Misses that could overlap, by function.
    functions: FxHashMap<StringId, Density>,
    /// Indexed by site: its own misses that could overlap.
    own: Vec<f64>,
    /// Bytes that the program ever touched: no object has more, however much was allocated for it.
    touched: u64,
}

impl<'a> SiteWaits<'a> {
    pub(super) fn of(
        profile: &'a Profile,
        names: &'a SiteTable,
        machine: &Machine,
        edit: Option<&'a UnderEdit>,
    ) -> SiteWaits<'a> {
        let chained = chains::chained(names, &seen(profile, names));
        let touched = FirstTouches::of_all(profile);
        let touched =
            touched.map_or(u64::MAX, |all| all.most_bytes(machine.line_bytes.into(), machine.page_bytes));
        let touched = edit.and_then(|edit| edit.touched_bytes).unwrap_or(touched);
        let (functions, own) = (FxHashMap::default(), vec![0.0; names.sites().len()]);
        let mut sites = SiteWaits { profile, names, edit, chained, functions, own, touched };
        sites.count_overlapping();
        sites
    }

    /// Counts misses that could overlap, and instructions, by function and by site.
    fn count_overlapping(&mut self) {
        let (profile, names) = (self.profile, self.names);
        for cell in &profile.cells {
            let free = self.free_misses(cell);
            let sum = self.functions.entry(place(names, names.site(cell.site)).line.function).or_default();
            let work = names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after));
            sum.instructions += cell.counts.accesses() as f64 * work;
            sum.misses += free;
            self.own[cell.site.0 as usize] += free;
        }
    }

    /// Returns how many misses of a cell from behind the second level could overlap.
    fn free_misses(&self, cell: &Cell) -> f64 {
        if self.names.site(cell.site).kind.is_write() {
            return 0.0;
        }
        let free = (1.0 - self.streamed(cell.site)) * (1.0 - self.chained[cell.site.0 as usize]);
        cell.counts.misses(1) as f64 * free
    }

    /// The part of a site's lines that a prefetcher can have fetched: as it was seen to walk, or as
    /// the code says where it was not seen. All of them where the program fetches ahead itself.
    fn streamed(&self, site: SiteId) -> f64 {
        let names = self.names;
        if names.site(site).is_prefetch() {
            return 1.0;
        }
        let seen = self.profile.walks.get(site.0 as usize).and_then(|walk| walk.near_share());
        seen.unwrap_or_else(|| f64::from(u8::from(names.site(site).dependence().is_none())))
    }

    /// Misses around a site that could overlap, for each instruction.
    fn overlapping(&self, site: SiteId) -> f64 {
        let function = place(self.names, self.names.site(site)).line.function;
        let all = self.functions.get(&function).copied().unwrap_or_default();
        let Some(UnderEdit { parallelism: known, .. }) = self.edit else { return all.each() };
        let most = known.0.get(&function).copied().unwrap_or(0.0);
        let own = Density { misses: self.own[site.0 as usize], ..all };
        all.each().min(most).max(own.each())
    }

    /// Returns what is known of the accesses of a cell.
    pub(super) fn parts(&self, cell: &Cell) -> Parts {
        let site = self.names.site(cell.site);
        let work = self.names.work(cell.site);
        Parts {
            is_write: site.kind.is_write(),
            is_past_caches: site.is_past_caches(),
            streamed: self.streamed(cell.site),
            chained: self.chained[cell.site.0 as usize],
            overlapping_misses: self.overlapping(cell.site),
            instructions: work.map_or(0.0, |work| f64::from(work.before + work.after)),
        }
    }

    /// Cycles that a miss of a cell takes longer because its translation is not kept; none where
    /// translations are simulated.
    pub(super) fn walk(&self, constants: &Constants, cell: &Cell) -> f64 {
        let class = &self.profile.classes[cell.class.0 as usize];
        let page_bytes = self.edit.and_then(|edit| edit.pages.get(&class.home)).copied();
        match self.profile.has_translations {
            true => 0.0,
            false => constants.walk(class.bytes.min(self.touched), page_bytes),
        }
    }

    /// Bytes that the program ever touched, at most.
    pub(super) fn touched_bytes(&self) -> u64 {
        self.touched
    }

    /// Returns how parallel the misses of each function are taken to be.
    pub(super) fn parallelism(self) -> Parallelism {
        let each = self.functions.into_iter().map(|(function, density)| (function, density.each()));
        Parallelism(each.collect())
    }
}

/// Returns how often sites were executed and missed, and whether they stayed at their first line.
fn seen(profile: &Profile, names: &SiteTable) -> chains::Seen {
    let sites = names.sites().len();
    let mut seen =
        chains::Seen { executed: vec![0; sites], missed: vec![0; sites], stays: vec![false; sites] };
    for cell in &profile.cells {
        seen.executed[cell.site.0 as usize] += cell.counts.accesses();
        seen.missed[cell.site.0 as usize] += cell.counts.misses(0);
    }
    for (stays, walk) in seen.stays.iter_mut().zip(&profile.walks) {
        *stays = walk.near_share().is_none();
    }
    seen
}
