//! The counts of a trace, as data: written by counting, read by `read/`.

use memlode_replay::Walk;
use memlode_simulate::{Charged, Details, LevelCounters, MAX_LEVELS, Tag};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::SiteId;

use crate::counts::Counts;
use crate::objects::classes::{Class, ClassId};
use crate::objects::paths::{PathId, Paths};
use crate::residencies::Residencies;
use crate::sampled::sample::Gaps;
use crate::setup::Setup;

/// The accesses of one thread, at one site, to objects of one class.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// The call path of the accesses; the root where paths are not distinguished.
    pub path: PathId,
    /// Its counts.
    pub counts: Counts,
    /// Its tag in the simulation, if one alone counted it.
    pub tag: Tag,
}

/// All counts of a trace. Ids are those of the trace's site table.
pub struct Profile {
    /// The finest counts; every table is a sum of these.
    pub cells: Vec<Cell>,
    /// Object classes, by id.
    pub classes: Vec<Class>,
    /// The call paths that classes and cells refer to.
    pub paths: Paths,
    /// Counters of the cache levels, innermost first.
    pub levels: Vec<LevelCounters>,
    /// The counts of each run and bounds of misses, if the trace has gaps.
    pub gaps: Option<Gaps>,
    /// Indexed by site, perhaps shorter: its walk, in the chunks that were examined.
    pub walks: Vec<Walk>,
    /// True if translations were simulated: waits for them are among the other cycles.
    pub has_translations: bool,
    /// Accesses that the memory of another node served; `None` where memory has no nodes.
    pub remote: Option<u64>,
    /// The residencies of some lines in the caches; empty for a sample, or if objects were moved.
    pub residencies: Residencies,
}

/// A profile with the results of a detailed simulation.
pub struct DetailedProfile {
    /// The counts.
    pub profile: Profile,
    /// Details besides, by [`Cell::tag`].
    pub details: Details,
    /// The setup of the simulation, with the cores that threads ran on.
    pub setup: Setup,
}

/// A profile with the times of accesses.
pub struct TimedProfile {
    /// The counts.
    pub profile: Profile,
    /// Charges of accesses, by [`Cell::tag`]; may end before the last tags, which were charged
    /// nothing then.
    pub charged: Vec<Charged>,
    /// Ticks of each thread until its last access committed ([`TICKS`] are a cycle).
    pub threads: Vec<u64>,
    /// Calls that took a lock or gave one back. What they access is not recorded and not timed.
    pub lock_calls: u64,
    /// Setup of the machine, with the cores that threads ran on.
    pub setup: Setup,
}

impl Profile {
    /// Removes cells, and their part of the levels' counts. Write-backs belong to no cell, and
    /// stay.
    pub fn retain(&mut self, keep: impl Fn(&Cell) -> bool) {
        self.cells.retain(keep);
        let write_backs: Vec<u64> = self.levels.iter().map(|level| level.write_backs).collect();
        self.recount(&write_backs);
    }

    /// Recomputes the levels' counts from the cells, with these write-backs.
    pub(crate) fn recount(&mut self, write_backs: &[u64]) {
        self.levels = level_counters(&self.cells, write_backs);
    }
}

/// Returns each level's counters: the sums over the cells.
pub(crate) fn level_counters(cells: &[Cell], write_backs: &[u64]) -> Vec<LevelCounters> {
    let (mut reads, mut writes) = ([0u64; MAX_LEVELS + 1], [0u64; MAX_LEVELS + 1]);
    for cell in cells {
        for depth in 0..=MAX_LEVELS {
            reads[depth] += cell.counts.reads[depth];
            writes[depth] += cell.counts.writes[depth];
        }
    }
    let level = |(level, &write_backs): (usize, &u64)| LevelCounters {
        reads: reads[level..].iter().sum(),
        writes: writes[level..].iter().sum(),
        read_misses: reads[level + 1..].iter().sum(),
        write_misses: writes[level + 1..].iter().sum(),
        write_backs,
    };
    write_backs.iter().enumerate().map(level).collect()
}
