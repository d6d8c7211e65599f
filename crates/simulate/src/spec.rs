//! The shape of a cache level, and which shapes can exist.

use std::ops::Range;

use thiserror::Error;

/// Most levels a hierarchy may have.
pub const MAX_LEVELS: usize = 8;

/// Most lines all caches of a hierarchy may hold together: a bound on this process's memory (1
/// GiB).
const MAX_LINES: u64 = 1 << 27;

/// The shape of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSpec {
    /// Bytes of one cache of this level.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of a line, a power of two.
    pub line_bytes: u32,
    /// Number of cores that share one cache of this level; 1 is private.
    pub shared_by: u32,
}

impl LevelSpec {
    /// Number of sets: any number, not only powers of two.
    pub fn sets(&self) -> u64 {
        self.bytes / (u64::from(self.ways) * u64::from(self.line_bytes))
    }

    /// Returns how far to shift an address to get its line number.
    pub fn line_shift(&self) -> u32 {
        self.line_bytes.trailing_zeros()
    }

    /// Lines of one cache.
    fn lines(&self) -> u64 {
        self.bytes / u64::from(self.line_bytes)
    }

    /// Returns the reason why no such cache can be built, if there is one.
    pub fn check(&self) -> Result<(), Problem> {
        if !self.line_bytes.is_power_of_two() || self.line_bytes < 4 {
            return Err(Problem::Line(self.line_bytes));
        }
        if self.ways == 0 {
            return Err(Problem::Ways);
        }
        if self.shared_by == 0 {
            return Err(Problem::SharedByNone);
        }
        let set_bytes = u64::from(self.ways) * u64::from(self.line_bytes);
        if self.bytes == 0 || !self.bytes.is_multiple_of(set_bytes) {
            return Err(Problem::Size { bytes: self.bytes, ways: self.ways, line_bytes: self.line_bytes });
        }
        if self.sets() > u64::from(u32::MAX) {
            return Err(Problem::Sets(self.sets()));
        }
        Ok(())
    }
}

/// Checks levels, innermost first, and how they fit together.
pub(crate) fn check_all(levels: &[LevelSpec], cores: u32) -> Result<(), ImpossibleHierarchy> {
    if levels.is_empty() || levels.len() > MAX_LEVELS {
        return Err(ImpossibleHierarchy::LevelCount(levels.len()));
    }
    if cores == 0 {
        return Err(ImpossibleHierarchy::NoCores);
    }
    let mut lines = 0u64;
    for (i, level) in levels.iter().enumerate() {
        let fail = |problem| ImpossibleHierarchy::Level { level: i + 1, problem };
        level.check().map_err(fail)?;
        if let Some(inner) = i.checked_sub(1).map(|inner| &levels[inner]) {
            if level.line_bytes < inner.line_bytes {
                return Err(fail(Problem::LineShrinks(level.line_bytes, inner.line_bytes)));
            }
            if !level.shared_by.is_multiple_of(inner.shared_by) {
                return Err(fail(Problem::Sharing(level.shared_by, inner.shared_by)));
            }
        }
        let caches = u64::from(cores.div_ceil(level.shared_by));
        lines = lines.saturating_add(caches.saturating_mul(level.lines()));
    }
    if lines > MAX_LINES { Err(ImpossibleHierarchy::TooManyLines(lines)) } else { Ok(()) }
}

/// The address bits that take part in choosing the set at every level and lie above every line.
///
/// A number of sets s · 2^k keeps the low k bits of the line number in its remainder, so the law
/// also serves caches whose number of sets is no power of two.
pub(crate) fn shard_bits(levels: &[LevelSpec]) -> Range<u32> {
    let start = levels.iter().map(LevelSpec::line_shift).max().unwrap_or(0);
    let end = levels.iter().map(|s| s.line_shift() + s.sets().trailing_zeros()).min().unwrap_or(0);
    start..end.max(start)
}

/// Why a hierarchy cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImpossibleHierarchy {
    /// No level, or more than [`MAX_LEVELS`].
    #[error("a cache hierarchy has 1 to {MAX_LEVELS} levels, not {0}")]
    LevelCount(usize),
    /// No core.
    #[error("a cache hierarchy needs at least one core")]
    NoCores,
    /// One level is at fault.
    #[error("cache level {level}: {problem}")]
    Level {
        /// Which level, 1 being the innermost.
        level: usize,
        /// The fault.
        problem: Problem,
    },
    /// The tables would not fit in a sensible amount of memory.
    #[error("the caches of all cores hold {0} lines together; at most {MAX_LINES} can be simulated")]
    TooManyLines(u64),
    /// The page is no power of two, or shorter than a line.
    #[error("a page of {0} bytes is not a power of two that holds every line")]
    Page(u64),
}

/// A fault of one level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The line size is not a power of two of at least 4.
    #[error("a line of {0} bytes is not a power of two of at least 4")]
    Line(u32),
    /// Zero ways.
    #[error("a set needs at least one way")]
    Ways,
    /// The number of sharing cores is 0.
    #[error("a cache is used by at least one core")]
    SharedByNone,
    /// The size is no whole number of sets.
    #[error("{bytes} bytes are no whole number of sets of {ways} ways × {line_bytes} bytes")]
    Size {
        /// Bytes of the cache.
        bytes: u64,
        /// Ways of a set.
        ways: u32,
        /// Bytes of a line.
        line_bytes: u32,
    },
    /// More than 2³² − 1 sets.
    #[error("{0} sets are more than can be simulated")]
    Sets(u64),
    /// An outer line is shorter than an inner one.
    #[error("its lines of {0} bytes are shorter than the {1} bytes of the level inside it")]
    LineShrinks(u32, u32),
    /// The groups of cores do not nest.
    #[error("it is shared by {0} cores, no multiple of the {1} that share the level inside it")]
    Sharing(u32, u32),
    /// A tree of bits over a number of ways that is no power of two.
    #[error("`replacement`: tree-plru needs a power of two of ways, not {0}")]
    TreeWays(u32),
    /// More ways than a model orders.
    #[error("`ways`: a model orders at most 65536 ways, not {0}")]
    ModelWays(u32),
    /// Sectors that do not divide the line.
    #[error(
        "`sector`: {0} bytes are no power of two that divides a line of {1} bytes into at most 64 sectors"
    )]
    Sector(u32, u32),
    /// The innermost level has nothing to include or exclude.
    #[error("`inclusion`: no level is inside the innermost one, so it can only be non-inclusive")]
    NothingInside,
    /// Lines cannot move between the levels as they are.
    #[error("`inclusion`: an exclusive level needs the lines and sectors of the level inside it")]
    ExclusiveLines,
    /// An exclusive level is filled by evictions only.
    #[error("`prefetch`: an exclusive level fetches nothing itself")]
    ExclusivePrefetch,
}
