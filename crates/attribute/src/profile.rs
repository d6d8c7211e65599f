//! The counts of a trace, as data: what counting makes and reading takes.

use memlode_replay::Walk;
use memlode_simulate::{Charged, Details, LevelCounters, MAX_LEVELS, Tag};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::SiteId;

use crate::counts::Counts;
use crate::objects::classes::{Class, ClassId};
use crate::objects::paths::{PathId, Paths};
use crate::sampled::sample::Gaps;
use crate::setup::Setup;
use crate::stays::Stays;

/// The accesses of one thread, at one site, to objects of one class.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the objects.
    pub class: ClassId,
    /// The call path of the accesses; the root where paths are not told apart.
    pub path: PathId,
    /// Its counts.
    pub counts: Counts,
    /// Its tag in the simulation, if one alone counted it.
    pub tag: Tag,
}

/// Everything that was counted of a trace. Ids are those of the trace's site table.
pub struct Profile {
    /// The finest counts; every table is a sum of these.
    pub cells: Vec<Cell>,
    /// Object classes, by id.
    pub classes: Vec<Class>,
    /// The call paths that classes and cells refer to.
    pub paths: Paths,
    /// Counters of the cache levels, innermost first.
    pub levels: Vec<LevelCounters>,
    /// If the trace has gaps, what that means for these.
    pub gaps: Option<Gaps>,
    /// Indexed by site, as far as it goes: how it walked, in the chunks in which that was looked at.
    pub walks: Vec<Walk>,
    /// Translations were simulated: what accesses waited for them is among their other cycles.
    pub has_translations: bool,
    /// Accesses that the memory of another node answered; none where memory has no nodes.
    pub remote: Option<u64>,
    /// The stays of some lines in the caches; none of a sample, or of accesses that lie elsewhere.
    pub stays: Stays,
}

/// A profile whose simulation was a detailed one.
pub struct DetailedProfile {
    /// The counts.
    pub profile: Profile,
    /// Details besides, by [`Cell::tag`].
    pub details: Details,
    /// The setup of the simulation, with the cores that threads ran on.
    pub setup: Setup,
}

/// A profile whose accesses were timed.
pub struct TimedProfile {
    /// The counts.
    pub profile: Profile,
    /// Charges of accesses, by [`Cell::tag`]; may end before the last tags, which were charged nothing then.
    pub charged: Vec<Charged>,
    /// Ticks of each thread until its last access committed ([`TICKS`] are a cycle).
    pub threads: Vec<u64>,
    /// Setup of the machine, with the cores that threads ran on.
    pub setup: Setup,
}

impl Profile {
    /// Leaves out the cells that are not to be kept, and what the levels count of them. What was written back is nobody's, and stays.
    pub fn retain(&mut self, keep: impl Fn(&Cell) -> bool) {
        self.cells.retain(keep);
        let write_backs: Vec<u64> = self.levels.iter().map(|level| level.write_backs).collect();
        self.recount(&write_backs);
    }

    /// Has the levels count what the cells do, and write back so often.
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
