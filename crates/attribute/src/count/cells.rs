//! The counts of each cell, and finding a cell by thread, site and class.

use memlode_simulate::MAX_LEVELS;
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::count::contexts::Context;
use crate::counts::Counts;
use crate::objects::classes::ClassId;

/// A class that no object has.
pub(crate) const ANY: ClassId = ClassId(u32::MAX);

/// Packs a context and a class into one number.
#[inline(always)]
pub(crate) fn key(context: Context, class: ClassId) -> u64 {
    u64::from(context.0) << 32 | u64::from(class.0)
}

/// The cells of a profiler, numbered in the order of their first access, and their counts.
#[derive(Default)]
pub(crate) struct CellCounts {
    /// Meaning of each cell.
    pub keys: Vec<(Context, SiteId, ClassId)>,
    /// Indexed by cell: accesses that the first level served, or that wait. In one shard the count
    /// may be below zero (wrapped), because another shard may have counted as hits the accesses
    /// that missed here.
    pub hits: Vec<u64>,
    /// Indexed by cell: accesses by the level that served them, from the second level on; the last
    /// column that is used counts first touches of lines.
    deeper: Vec<[u64; MAX_LEVELS + 1]>,
    pub index: FxHashMap<(Context, SiteId, ClassId), u32>,
    pub found: FoundCells,
}

impl CellCounts {
    /// Adds a cell, and returns its number.
    pub fn add(&mut self, cell: (Context, SiteId, ClassId)) -> u32 {
        let number = self.keys.len() as u32;
        self.keys.push(cell);
        self.hits.push(0);
        self.deeper.push([0; MAX_LEVELS + 1]);
        self.index.insert(cell, number);
        number
    }

    /// Counts an access that missed as many levels as `depth`.
    #[inline(always)]
    pub fn count(&mut self, cell: u32, depth: u8) {
        match depth {
            0 => self.count_hits(cell, 1),
            _ => self.deeper[cell as usize][usize::from(depth) - 1] += 1,
        }
    }

    /// Counts accesses that the first level served, or that wait.
    #[inline(always)]
    pub fn count_hits(&mut self, cell: u32, accesses: u64) {
        let hits = &mut self.hits[cell as usize];
        *hits = hits.wrapping_add(accesses);
    }

    /// Corrects accesses that were counted as hits when they came.
    #[inline(always)]
    pub fn count_late(&mut self, cell: usize, depth: u8, times: u64) {
        if depth > 0 {
            // Another shard may have counted them.
            self.hits[cell] = self.hits[cell].wrapping_sub(times);
            self.deeper[cell][usize::from(depth) - 1] += times;
        }
    }

    /// Returns the counts of a cell, in caches of this many levels.
    pub fn counts(&self, cell: u32, is_write: bool, levels: usize) -> Counts {
        let number = cell as usize;
        let deeper = &self.deeper[number];
        let mut counts = Counts { first_touches: deeper[levels], ..Counts::default() };
        counts.add(0, is_write, self.hits[number]);
        counts.add(levels as u8, is_write, counts.first_touches);
        for (depth, &n) in (1u8..).zip(&deeper[..levels]) {
            counts.add(depth, is_write, n);
        }
        counts
    }
}

/// A cell that was found not long ago. Sites that go from one class to another do so again and
/// again.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Context and class.
    pub key: u64,
    pub site: SiteId,
    pub cell: u32,
}

/// Places for [`Found`].
const PLACES: usize = 512;

/// Cells by where their keys fall.
pub(crate) struct FoundCells(Box<[Found; PLACES]>);

impl Default for FoundCells {
    fn default() -> FoundCells {
        let nothing = Found { key: key(Context::NONE, ANY), site: SiteId(0), cell: 0 };
        FoundCells(Box::new([nothing; PLACES]))
    }
}

impl FoundCells {
    /// Returns the place of a key at a site.
    #[inline(always)]
    pub fn place(&mut self, key: u64, site: SiteId) -> &mut Found {
        let sum = (key as u32).wrapping_mul(31).wrapping_add(site.0);
        &mut self.0[sum as usize % PLACES]
    }
}
