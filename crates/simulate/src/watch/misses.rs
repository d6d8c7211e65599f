//! Counts of misses: by access, by tag and level, and by evicting tag.

use std::ops::AddAssign;

use crate::spec::MAX_LEVELS;
use crate::tag::Tag;
use crate::watch::pairs::Pairs;

/// Why a cache missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The cache was never looked up for the line before, and never prefetched it.
    Cold,
    /// Too many other lines were used since.
    Capacity,
    /// Too many other lines of the same set were used since; or a rule of the level dropped it.
    Conflict,
    /// Another core had written to the line and held it; this cache did not lose the line by that
    /// write.
    HeldElsewhere,
    /// Another core wrote what the access touches.
    TrueSharing,
    /// Another core wrote to the line, but not to what the access touches.
    FalseSharing,
}

/// Counts of one tag at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelDetail {
    /// Misses of lines that the cache never had before.
    pub cold: u64,
    /// Misses that full associativity would not have avoided.
    pub capacity: u64,
    /// Misses that full associativity would have avoided.
    pub conflict: u64,
    /// Misses of lines of which another core held newer bytes, and which this cache did not lose to
    /// that core.
    pub held_elsewhere: u64,
    /// Misses because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Misses because of another core's write of other bytes of the line.
    pub false_sharing: u64,
    /// Lines that writes took from caches of other cores.
    pub invalidations: u64,
    /// Lines found although a fully associative cache would have lost them: not misses, and counted
    /// per line, not per access.
    pub spared: u64,
    /// Bytes of the lines, or of their sectors, that were fetched.
    pub fetched_bytes: u64,
    /// Lines fetched and since evicted.
    pub evicted_lines: u64,
    /// Bytes of the evicted lines that were used.
    pub evicted_used_bytes: u64,
    /// Lines fetched and not evicted: they might yet be used more.
    pub resident_lines: u64,
    /// Bytes of the resident lines that were used so far.
    pub resident_used_bytes: u64,
}

impl AddAssign<&LevelDetail> for LevelDetail {
    fn add_assign(&mut self, other: &LevelDetail) {
        self.cold += other.cold;
        self.capacity += other.capacity;
        self.conflict += other.conflict;
        self.held_elsewhere += other.held_elsewhere;
        self.true_sharing += other.true_sharing;
        self.false_sharing += other.false_sharing;
        self.invalidations += other.invalidations;
        self.spared += other.spared;
        self.fetched_bytes += other.fetched_bytes;
        self.evicted_lines += other.evicted_lines;
        self.evicted_used_bytes += other.evicted_used_bytes;
        self.resident_lines += other.resident_lines;
        self.resident_used_bytes += other.resident_used_bytes;
    }
}

impl LevelDetail {
    /// Accesses that missed.
    pub fn misses(&self) -> u64 {
        let alone = self.cold + self.capacity + self.conflict;
        alone + self.held_elsewhere + self.true_sharing + self.false_sharing
    }

    /// Counts a miss.
    #[inline]
    pub(crate) fn count(&mut self, cause: Cause) {
        match cause {
            Cause::Cold => self.cold += 1,
            Cause::Capacity => self.capacity += 1,
            Cause::Conflict => self.conflict += 1,
            Cause::HeldElsewhere => self.held_elsewhere += 1,
            Cause::TrueSharing => self.true_sharing += 1,
            Cause::FalseSharing => self.false_sharing += 1,
        }
    }

    /// Lines fetched.
    pub fn lines(&self) -> u64 {
        self.evicted_lines + self.resident_lines
    }

    /// Bytes used of the lines fetched.
    pub fn used_bytes(&self) -> u64 {
        self.evicted_used_bytes + self.resident_used_bytes
    }
}

/// Misses of lines that accesses with a tag had evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Tag of the accesses that missed.
    pub tag: Tag,
    /// Tag of the accesses that evicted the lines.
    pub by: Tag,
    /// Number of misses.
    pub misses: u64,
}

/// The causes of the misses of one access: by level, the first missing line's.
pub(crate) type CausesByLevel = [Option<Cause>; MAX_LEVELS];

/// Returns, per level: missing tag, evicting tag, misses.
pub(crate) fn evictions(pairs: &[Pairs]) -> Vec<Vec<Eviction>> {
    let eviction = |(tag, by, misses, _)| Eviction { tag, by, misses };
    pairs.iter().map(|pairs| pairs.sorted().into_iter().map(eviction).collect()).collect()
}
