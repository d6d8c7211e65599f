//! Work between accesses, and the loads that these wait for, from ops to sites.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::sites::SiteId;
use crate::table::{OpFeed, OpFeeds, Table};
use crate::work::{Feed, Feeds, Work};

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
    address: BTreeSet<BTreeSet<Feed>>,
    data: BTreeSet<BTreeSet<Feed>>,
    branches: BTreeSet<BTreeSet<Feed>>,
    /// Set where the loads on which its branches depend are unknown.
    is_undecided: bool,
}

impl WorkBook {
    /// Adds the ops of a table that have sites in the whole trace, because their anchors were kept.
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
        let order = Order::of(table, sites);
        let groups_at = |groups: &[Vec<OpFeed>], here: Here| -> Vec<BTreeSet<Feed>> {
            let feed = |&feed: &OpFeed| Some(order.feed(sites[feed.op as usize]?, feed, here));
            let group = |group: &Vec<OpFeed>| -> BTreeSet<Feed> { group.iter().filter_map(feed).collect() };
            groups.iter().map(group).filter(|group| !group.is_empty()).collect()
        };
        for (op, groups) in table.work.branches.iter().flatten() {
            let Some(site) = sites[*op as usize] else { continue };
            let of_site = self.of(site);
            of_site.is_undecided |= groups.is_empty();
            of_site.branches.extend(groups_at(groups, Here { op: *op, place: op + 1 }));
        }
        for OpFeeds { op, address, data } in &table.work.feeds {
            let Some(site) = sites[*op as usize] else { continue };
            let of_site = self.of(site);
            let here = Here { op: *op, place: *op };
            of_site.address.extend(groups_at(address, here));
            of_site.data.extend(groups_at(data, here));
        }
    }

    fn of(&mut self, site: SiteId) -> &mut Gathered {
        let at = site.0 as usize;
        if self.sites.len() <= at {
            self.sites.resize_with(at + 1, Gathered::default);
        }
        &mut self.sites[at]
    }

    /// Returns the work by site, as far as it is known.
    pub fn work(&self) -> Vec<Work> {
        let feeds = |groups: &BTreeSet<BTreeSet<Feed>>| -> Feeds {
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

/// The place of the waiting work: at an op, or in front of an op (by number) of the same segment or
/// of its end.
#[derive(Clone, Copy)]
struct Here {
    op: u32,
    place: u32,
}

/// The order in which the ops of a table are executed.
struct Order {
    /// First op of the segment of each op, and the first behind that segment.
    segments: Vec<(u32, u32)>,
    /// Ops of a site that touch memory, in order.
    of_site: FxHashMap<SiteId, Vec<u32>>,
}

impl Order {
    fn of(table: &Table, sites: &[Option<SiteId>]) -> Order {
        let segments = table.segments.iter().flat_map(|segment| {
            let ops = segment.ops.start..segment.ops.end;
            ops.clone().map(move |_| (ops.start, ops.end))
        });
        let mut of_site: FxHashMap<SiteId, Vec<u32>> = FxHashMap::default();
        for (op, site) in (0..).zip(sites) {
            if let Some(site) = site.filter(|_| table.ops[op as usize].touches_memory()) {
                of_site.entry(site).or_default().push(op);
            }
        }
        Order { segments: segments.collect(), of_site }
    }

    /// Returns which execution of its site a load is, counted back from `here`. One site may stand
    /// for several ops, so all executions in between are counted.
    fn feed(&self, site: SiteId, feed: OpFeed, here: Here) -> Feed {
        let ops = self.of_site.get(&site).map_or(&[][..], Vec::as_slice);
        let count = |from: u32, to: u32| {
            let before = |end: u32| ops.partition_point(|&op| op < end);
            before(to).saturating_sub(before(from))
        };
        let (there, (begin, _)) = (self.segments[feed.op as usize], self.segments[here.op as usize]);
        let since = if there.0 != begin {
            let again = if feed.is_earlier { count(there.0, there.1) } else { 0 };
            count(feed.op + 1, there.1) + again + count(begin, here.place)
        } else if feed.op < here.place && !feed.is_earlier {
            count(feed.op + 1, here.place)
        } else {
            count(feed.op + 1, there.1) + count(begin, here.place)
        };
        Feed { site, back: since.min(Feed::MOST_BACK.into()) as u8 }
    }
}
