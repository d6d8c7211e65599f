//! Work between accesses, and what these wait for, from ops to sites.

use std::collections::BTreeSet;

use crate::sites::SiteId;
use crate::table::{OpFeeds, Table};
use crate::work::{Feeds, Work};

/// Collects the facts of ops by their sites.
#[derive(Default)]
pub(super) struct WorkBook {
    sites: Vec<Gathered>,
}

#[derive(Default)]
struct Gathered {
    ops: u32,
    before: u64,
    after: u64,
    address: BTreeSet<BTreeSet<SiteId>>,
    data: BTreeSet<BTreeSet<SiteId>>,
    branches: BTreeSet<BTreeSet<SiteId>>,
    /// Set where it is not known what its branches hang on.
    is_undecided: bool,
}

impl WorkBook {
    /// Adds the ops of a table that have sites of the whole trace: those whose anchors were kept.
    pub fn add(&mut self, table: &Table, sites: &[Option<SiteId>]) {
        if table.work.before.is_empty() {
            return;
        }
        for (number, segment) in table.segments.iter().enumerate() {
            let mut last = None;
            let ops = segment.ops.start as usize..segment.ops.end as usize;
            let facts = table.ops[ops.clone()].iter().zip(&sites[ops.clone()]).zip(&table.work.before[ops]);
            for ((op, site), &before) in facts {
                let Some(site) = site.filter(|_| op.touches_memory()) else { continue };
                let of_site = self.of(site);
                of_site.ops += 1;
                of_site.before += u64::from(before);
                of_site.is_undecided |= table.work.branches.is_none();
                last = Some(site);
            }
            if let Some(site) = last {
                self.of(site).after += u64::from(table.work.rest[number]);
            }
        }
        let group = |ops: &Vec<u32>| -> BTreeSet<SiteId> {
            ops.iter().filter_map(|&op| sites[op as usize]).collect()
        };
        for (op, groups) in table.work.branches.iter().flatten() {
            let Some(site) = sites[*op as usize] else { continue };
            let of_site = self.of(site);
            of_site.is_undecided |= groups.is_empty();
            of_site.branches.extend(groups.iter().map(group).filter(|group| !group.is_empty()));
        }
        for OpFeeds { op, address, data } in &table.work.feeds {
            let Some(site) = sites[*op as usize] else { continue };
            let of_site = self.of(site);
            of_site.address.extend(address.iter().map(group).filter(|group| !group.is_empty()));
            of_site.data.extend(data.iter().map(group).filter(|group| !group.is_empty()));
        }
    }

    fn of(&mut self, site: SiteId) -> &mut Gathered {
        let at = site.0 as usize;
        if self.sites.len() <= at {
            self.sites.resize_with(at + 1, Gathered::default);
        }
        &mut self.sites[at]
    }

    /// Returns what is known, by site, as far as anything is.
    pub fn work(&self) -> Vec<Work> {
        let feeds = |groups: &BTreeSet<BTreeSet<SiteId>>| -> Feeds {
            groups.iter().map(|group| group.iter().copied().collect()).collect()
        };
        let work = self.sites.iter().map(|site| {
            let mean = |sum: u64| sum as f32 / site.ops.max(1) as f32;
            Work {
                before: mean(site.before),
                after: mean(site.after),
                address: feeds(&site.address),
                data: feeds(&site.data),
                branches: (!site.is_undecided || !site.branches.is_empty()).then(|| feeds(&site.branches)),
            }
        });
        work.collect()
    }
}
