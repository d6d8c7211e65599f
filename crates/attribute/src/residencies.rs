//! The bytes of lines that were used while the lines were in a cache, of some lines that were
//! followed through the whole run.

use memlode_simulate::{Followed, LevelSpec};
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::objects::classes::ClassId;

/// The fetch of a line for a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFetch {
    /// The block's first byte, beside the addresses of other processes.
    pub base: u64,
    /// Its size.
    pub bytes: u64,
    /// The class of objects that it is one of.
    pub class: ClassId,
    /// The site that fetched the line.
    pub site: SiteId,
    /// The distance from the block's first byte to the first one that the site touched, to a 64th
    /// part of the line.
    pub offset: u64,
}

/// A stay of a line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineResidency {
    /// The line's first address.
    pub line: u64,
    /// Its bits that any core touched meanwhile: each stands for a 64th part, or a byte if the line
    /// has fewer.
    pub touched: u64,
    /// Its fetch, if it was by an access to this line alone, for a known block.
    pub fetch: Option<LineFetch>,
}

/// The stays of some lines in the first level, and how far each fetch had to go.
#[derive(Clone, Debug, Default)]
pub struct Residencies {
    followed: Followed,
    /// Indexed by labels, less 1.
    fetches: Vec<LineFetch>,
    /// Bytes of a line.
    line_bytes: u32,
    /// Indexed by level: the number of cores that share a cache.
    shared_by: Vec<u32>,
}

impl Residencies {
    /// Stays in caches of these shapes, and the fetches that they are labelled with.
    pub(crate) fn new(followed: Followed, fetches: Vec<LineFetch>, levels: &[LevelSpec]) -> Residencies {
        Residencies {
            followed,
            fetches,
            line_bytes: levels.first().map_or(0, |level| level.line_bytes),
            shared_by: levels.iter().map(|level| level.shared_by).collect(),
        }
    }

    /// Adds those of another shard.
    pub(crate) fn add(&mut self, mut other: Residencies) {
        let known = self.fetches.len() as u32;
        self.fetches.append(&mut other.fetches);
        for residency in &mut other.followed.residencies {
            residency.label += if residency.label > 0 { known } else { 0 };
        }
        self.followed.add(other.followed);
    }

    /// Classes have other numbers from now on.
    pub(crate) fn renumber(&mut self, numbers: &[ClassId]) {
        self.fetches.iter_mut().for_each(|fetch| fetch.class = numbers[fetch.class.0 as usize]);
    }

    /// Bytes that a bit of a line stands for.
    pub fn bytes_of_bit(&self) -> u64 {
        u64::from(self.line_bytes.div_ceil(64))
    }

    /// Returns the stays in the caches of a level, 0 being the innermost: of each line, from one
    /// fetch to the next one.
    pub fn at(&self, level: usize) -> Vec<LineResidency> {
        let Some(&shared_by) = self.shared_by.get(level) else { return Vec::new() };
        let mut found: Vec<LineResidency> = Vec::new();
        // The one that goes on, by cache and line.
        let mut open: FxHashMap<(u32, u64), usize> = FxHashMap::default();
        for residency in &self.followed.residencies {
            let at = open.entry((residency.core / shared_by, residency.line)).or_insert(usize::MAX);
            if usize::from(residency.depth) > level || *at == usize::MAX {
                *at = found.len();
                let fetch = residency.label.checked_sub(1).map(|label| self.fetches[label as usize]);
                found.push(LineResidency { line: residency.line, touched: 0, fetch });
            }
            found[*at].touched |= residency.touched;
        }
        found
    }
}
