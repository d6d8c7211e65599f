//! The node whose memory serves an access: the core's own, or another.
//!
//! Memory is spread over nodes by pages. A page belongs to the node whose core touches it first,
//! the default of operating systems, unless [`Homes`] says otherwise. The first touch of a page
//! misses every cache, unless a prefetcher fetched it before. So it is enough to look at the
//! accesses that memory serves.

use std::ops::AddAssign;

use crate::mem_ref::MemRef;
use crate::ranges::Ranges;
use crate::table::Table;
use crate::tag::Tag;

/// Accesses of one tag that memory served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaDetail {
    /// Accesses that the memory of the core's node served.
    pub local: u64,
    /// From another node.
    pub remote: u64,
}

impl AddAssign<&NumaDetail> for NumaDetail {
    fn add_assign(&mut self, other: &NumaDetail) {
        self.local += other.local;
        self.remote += other.remote;
    }
}

/// The placement of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In the node whose core touches them first.
    #[default]
    FirstTouch,
    /// In all nodes alternately, by the page's number.
    Interleave,
    /// In one node.
    Node(u32),
}

/// Which node has which page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// The placement of addresses that lie in no range.
    pub placement: Placement,
    /// Addresses from the first up to, not including, the second are in the third, a node, in every
    /// address space as for [`Pages`](crate::Pages). Where ranges overlap, the later one holds.
    pub ranges: Vec<(u64, u64, u32)>,
}

/// The nodes of a machine, and which pages they hold.
#[derive(Clone, Debug)]
pub struct Numa {
    cores_per_node: u32,
    page_shift: u32,
    nodes: u64,
    placement: Placement,
    ranges: Ranges<u32>,
    /// The node of each page.
    pages: Table,
    /// Extra cycles of memory of another node.
    farther_cycles: u64,
    counts: Vec<NumaDetail>,
}

/// Word of a page's record: node + 1, or 0 before the first touch.
const NODE: usize = 1;

impl Numa {
    /// `nodes` nodes of `cores_per_node` cores, and pages of `page_bytes`, a power of two.
    pub fn new(nodes: u32, cores_per_node: u32, page_bytes: u64, homes: &Homes) -> Numa {
        Numa {
            cores_per_node: cores_per_node.max(1),
            page_shift: page_bytes.trailing_zeros(),
            nodes: u64::from(nodes.max(1)),
            placement: homes.placement,
            ranges: Ranges::new(homes.ranges.iter().copied()),
            pages: Table::new(2),
            farther_cycles: 0,
            counts: Vec::new(),
        }
    }

    /// Sets the cycles that memory of another node takes beyond those of the core's own node.
    pub fn with_farther_cycles(self, farther_cycles: u32) -> Numa {
        Numa { farther_cycles: farther_cycles.into(), ..self }
    }

    /// An access that memory served; returns whether it was another node's memory.
    #[inline]
    pub fn access(&mut self, access: MemRef) -> bool {
        let node = u64::from(access.core / self.cores_per_node);
        let remote = self.home(node, access.address) != node;
        let tag = access.tag.index();
        if self.counts.len() <= tag {
            self.counts.resize(tag + 1, NumaDetail::default());
        }
        let counts = &mut self.counts[tag];
        counts.local += u64::from(!remote);
        counts.remote += u64::from(remote);
        remote
    }

    /// The node of an address that a core of `node` touches.
    fn home(&mut self, node: u64, address: u64) -> u64 {
        if let Some(given) = self.ranges.of(address) {
            return u64::from(given);
        }
        let page = address >> self.page_shift;
        match self.placement {
            Placement::FirstTouch => {
                let at = self.pages.find(page);
                let home = self.pages.word(at, NODE);
                if *home == 0 {
                    *home = node + 1;
                }
                *home - 1
            }
            Placement::Interleave => page % self.nodes,
            Placement::Node(node) => u64::from(node),
        }
    }

    /// Cycles that a tag's accesses waited for memory of another node.
    pub fn cycles(&self, tag: Tag) -> u64 {
        self.counts.get(tag.index()).map_or(0, |counts| counts.remote * self.farther_cycles)
    }

    /// Returns the details by tag.
    pub fn finish(self) -> Vec<NumaDetail> {
        self.counts
    }
}
