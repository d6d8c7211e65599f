//! Rules of the levels of a [`Model`](super::Model), and which combinations can exist.

use crate::spec::{self, ImpossibleHierarchy, LevelSpec, Problem};

/// Which line of a full set makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used one, exactly.
    #[default]
    Lru,
    /// Least recently used, by a binary tree of bits; needs a power of two of ways.
    TreePlru,
    /// Static re-reference interval prediction, two bits.
    Srrip,
    /// Bimodal re-reference interval prediction, two bits: one fill in 32 is expected to be used
    /// again.
    Brrip,
    /// The one that came first.
    Fifo,
    /// Any; the same one in each run.
    Random,
}

/// A level's relation to the lines that the levels inside it hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inclusion {
    /// It keeps what passes through it; lines that it drops may stay inside.
    #[default]
    NonInclusive,
    /// Everything: a line it drops leaves the caches inside it, too.
    Inclusive,
    /// A victim cache: it keeps nothing on its way to the next inner level, and is filled by what
    /// that level evicts. A line found here moves inwards. Where several inner caches share it, a
    /// line that one of them evicted may still be in another.
    Exclusive,
}

/// The treatment of a write that finds its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Write {
    /// The write stays in the line, which is written out when it leaves.
    #[default]
    Back,
    /// It goes on to the next level as well.
    Through,
}

/// The protocol that keeps the private caches of different cores the same, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coherence {
    /// They are independent of each other.
    #[default]
    None,
    /// Modified, exclusive, shared, invalid.
    Mesi,
}

/// A prefetcher: it fetches lines before they are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// The line after one that misses, or that was prefetched and is used for the first time.
    NextLine,
    /// The other line of an aligned pair, when one misses.
    AdjacentLine,
    /// The next lines of a site with a constant stride.
    Stride,
    /// The lines ahead of a run of lines within a page.
    Stream,
}

/// One level of a [`Model`](super::Model).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelLevel {
    /// Size, ways, lines, and who shares it.
    pub shape: LevelSpec,
    /// The policy that makes room.
    pub replacement: Replacement,
    /// Its relation to the lines of the level inside it. The innermost level is
    /// [`Inclusion::NonInclusive`].
    pub inclusion: Inclusion,
    /// The treatment of a write that finds its line here.
    pub write: Write,
    /// True if a write that misses fetches the line; else the write goes on to the next level.
    pub write_allocate: bool,
    /// Lines have one tag but are fetched in sectors of this size; `None`: whole.
    pub sector_bytes: Option<u32>,
    /// The prefetchers of each cache of the level; an exclusive level has none.
    pub prefetch: Vec<Prefetch>,
}

/// The rules of [`Hierarchy`](crate::Hierarchy): LRU, non-inclusive, write-back, write-allocate,
/// whole lines.
impl From<LevelSpec> for ModelLevel {
    fn from(shape: LevelSpec) -> ModelLevel {
        ModelLevel {
            shape,
            replacement: Replacement::default(),
            inclusion: Inclusion::default(),
            write: Write::default(),
            write_allocate: true,
            sector_bytes: None,
            prefetch: Vec::new(),
        }
    }
}

impl ModelLevel {
    /// Bytes that are valid or missing together: a sector, or the line.
    pub(super) fn unit_bytes(&self) -> u32 {
        self.sector_bytes.unwrap_or(self.shape.line_bytes)
    }

    fn check(&self, inner: Option<&ModelLevel>) -> Result<(), Problem> {
        let LevelSpec { ways, line_bytes, .. } = self.shape;
        if ways > 1 << 16 {
            return Err(Problem::ModelWays(ways));
        }
        if self.replacement == Replacement::TreePlru && !ways.is_power_of_two() {
            return Err(Problem::TreeWays(ways));
        }
        if let Some(sector) = self.sector_bytes
            && (!sector.is_power_of_two() || sector > line_bytes || line_bytes / sector > 64)
        {
            return Err(Problem::Sector(sector, line_bytes));
        }
        if self.inclusion == Inclusion::Exclusive && !self.prefetch.is_empty() {
            return Err(Problem::ExclusivePrefetch);
        }
        match (self.inclusion, inner) {
            (Inclusion::NonInclusive, _) | (Inclusion::Inclusive, Some(_)) => Ok(()),
            (_, None) => Err(Problem::NothingInside),
            (Inclusion::Exclusive, Some(inner)) => {
                let same = inner.shape.line_bytes == line_bytes && inner.unit_bytes() == self.unit_bytes();
                if same { Ok(()) } else { Err(Problem::ExclusiveLines) }
            }
        }
    }
}

/// The levels and cores of a [`Model`](super::Model).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    /// From the innermost on.
    pub levels: Vec<ModelLevel>,
    /// Cores `0..cores`; core `c` uses cache number `c / shared_by` of each level.
    pub cores: u32,
    /// The protocol that keeps private caches the same, if any.
    pub coherence: Coherence,
    /// Bytes of a page, a power of two: prefetchers do not leave it.
    pub page_bytes: u64,
    /// Number of accesses that each active core makes while a prefetched line is on its way. The
    /// model has no time: a prefetched line counts as late if it is used before all cores together
    /// have made that many. It counts as useful as well.
    pub fill_accesses: u32,
}

impl ModelSpec {
    /// Levels without coherence, pages of 4 KiB, and prefetched lines that are there at once.
    pub fn new(levels: Vec<ModelLevel>, cores: u32) -> ModelSpec {
        ModelSpec { levels, cores, coherence: Coherence::None, page_bytes: 4096, fill_accesses: 0 }
    }

    pub(super) fn check(&self) -> Result<(), ImpossibleHierarchy> {
        let shapes: Vec<LevelSpec> = self.levels.iter().map(|level| level.shape).collect();
        spec::check_all(&shapes, self.cores)?;
        let longest = shapes.iter().map(|shape| u64::from(shape.line_bytes)).max().unwrap_or(0);
        if !self.page_bytes.is_power_of_two() || self.page_bytes < longest {
            return Err(ImpossibleHierarchy::Page(self.page_bytes));
        }
        for (i, level) in self.levels.iter().enumerate() {
            let inner = i.checked_sub(1).map(|inner| &self.levels[inner]);
            level.check(inner).map_err(|problem| ImpossibleHierarchy::Level { level: i + 1, problem })?;
        }
        Ok(())
    }
}
