//! Which memory answers: that of the core's own node, or another's.
//!
//! Memory is spread over nodes by pages. A page belongs to the node whose core touches it first, as operating systems
//! have it unless they are told otherwise. The first touch of a page misses every cache, so it is enough to look at
//! the accesses that memory answers.

use std::ops::AddAssign;

use crate::table::Table;

/// Accesses of one tag that memory answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumaDetail {
    /// From the node of the core.
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

/// The nodes of a machine, and which pages they hold.
#[derive(Clone, Debug)]
pub struct Numa {
    cores_per_node: u32,
    page_shift: u32,
    /// By page: its node.
    pages: Table,
    counts: Vec<NumaDetail>,
}

/// Word of a page's record: node + 1, 0 if nobody has touched it.
const NODE: usize = 1;

impl Numa {
    /// Nodes of `cores_per_node` cores, and pages of `page_bytes`, a power of two.
    pub fn new(cores_per_node: u32, page_bytes: u64) -> Numa {
        Numa {
            cores_per_node: cores_per_node.max(1),
            page_shift: page_bytes.trailing_zeros(),
            pages: Table::new(2),
            counts: Vec::new(),
        }
    }

    /// An access that memory answered; says whether it was another node's.
    #[inline]
    pub fn access(&mut self, core: usize, address: u64, tag: u32) -> bool {
        let node = u64::from(core as u32 / self.cores_per_node) + 1;
        let at = self.pages.find(address >> self.page_shift);
        let home = self.pages.word(at, NODE);
        if *home == 0 {
            *home = node;
        }
        let remote = *home != node;
        if self.counts.len() <= tag as usize {
            self.counts.resize(tag as usize + 1, NumaDetail::default());
        }
        let counts = &mut self.counts[tag as usize];
        counts.local += u64::from(!remote);
        counts.remote += u64::from(remote);
        remote
    }

    /// By tag.
    pub fn finish(self) -> Vec<NumaDetail> {
        self.counts
    }
}
