//! The bytes of lines that were used while the lines were in a cache, of some lines that were followed through the whole run.

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
    /// The site that asked for the line.
    pub site: SiteId,
    /// From the block's first byte to the first one that the site touched, to a 64th part of the line.
    pub offset: u64,
}

/// A stay of a line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStay {
    /// The line's first address.
    pub line: u64,
    /// The bits of it that were touched meanwhile, by anybody: each stands for a 64th part, or a byte if the line has fewer.
    pub touched: u64,
    /// Its fetch, if that was by an access to this line alone, and for a block that is known.
    pub fetch: Option<LineFetch>,
}

/// The stays of some lines in the first level, and how far each fetch had to go.
#[derive(Clone, Debug, Default)]
pub struct Stays {
    followed: Followed,
    /// Indexed by labels, less 1.
    fetches: Vec<LineFetch>,
    /// Bytes of a line.
    line_bytes: u32,
    /// Indexed by level: so many cores have a cache together.
    shared_by: Vec<u32>,
}

impl Stays {
    /// Stays in caches of these shapes, and the fetches that they are labelled with.
    pub(crate) fn new(followed: Followed, fetches: Vec<LineFetch>, levels: &[LevelSpec]) -> Stays {
        Stays {
            followed,
            fetches,
            line_bytes: levels.first().map_or(0, |level| level.line_bytes),
            shared_by: levels.iter().map(|level| level.shared_by).collect(),
        }
    }

    /// Adds those of another shard.
    pub(crate) fn add(&mut self, mut other: Stays) {
        let known = self.fetches.len() as u32;
        self.fetches.append(&mut other.fetches);
        for stay in &mut other.followed.stays {
            stay.label += if stay.label > 0 { known } else { 0 };
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

    /// Returns the stays in the caches of a level, 0 being the innermost: of each line, from one fetch to the next one.
    pub fn at(&self, level: usize) -> Vec<LineStay> {
        let Some(&shared_by) = self.shared_by.get(level) else { return Vec::new() };
        let mut found: Vec<LineStay> = Vec::new();
        // The one that goes on, by cache and line.
        let mut open: FxHashMap<(u32, u64), usize> = FxHashMap::default();
        for stay in &self.followed.stays {
            let at = open.entry((stay.core / shared_by, stay.line)).or_insert(usize::MAX);
            if usize::from(stay.depth) > level || *at == usize::MAX {
                *at = found.len();
                let fetch = stay.label.checked_sub(1).map(|label| self.fetches[label as usize]);
                found.push(LineStay { line: stay.line, touched: 0, fetch });
            }
            found[*at].touched |= stay.touched;
        }
        found
    }
}
