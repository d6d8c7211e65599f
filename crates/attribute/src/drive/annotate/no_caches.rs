//! Stands in the place of caches for who does not ask which level served an access.

use memlode_simulate::{Hierarchy, LevelCounters, LevelSpec, MemRef};

use crate::count::engine::{Engine, LoopMode, NoLane};
use crate::drive::annotate::Why;
use crate::drive::annotate::recorder::Answers;

/// Serves every access at once. Lines and cores are the machine's, so rows are those of a
/// simulation.
pub(super) struct NoCaches {
    first_level: LevelSpec,
    levels: usize,
    cores: u32,
}

impl NoCaches {
    /// The place of these caches.
    pub fn of(caches: &Hierarchy) -> NoCaches {
        NoCaches {
            first_level: *Engine::first_level(caches),
            levels: Engine::counters(caches).len(),
            cores: Engine::cores(caches),
        }
    }
}

impl Answers for NoCaches {
    const KNOWS_WHY: bool = false;

    #[inline(always)]
    fn answer(&mut self, _access: MemRef) -> (u8, Option<Why>) {
        (0, None)
    }

    fn shape(&self) -> (usize, u32) {
        (self.levels, 0)
    }

    fn written_back(&self) -> u64 {
        0
    }
}

impl Engine for NoCaches {
    const LOOPS: LoopMode = LoopMode::Unrolled;
    type Lane<'e> = NoLane;

    fn access(&mut self, _access: MemRef) -> Option<u8> {
        Some(0)
    }

    fn lane(&mut self, _core: usize) -> Option<NoLane> {
        None
    }

    fn counters(&self) -> Vec<LevelCounters> {
        vec![LevelCounters::default(); self.levels]
    }

    fn first_level(&self) -> &LevelSpec {
        &self.first_level
    }

    fn cores(&self) -> u32 {
        self.cores
    }
}
