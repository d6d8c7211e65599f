//! The model as plainly as it can be said: a deque per set, most recent in front.
#![allow(dead_code)] // each test program uses its part

use std::collections::{HashMap, VecDeque};

use memlode_simulate::{LevelCounters, LevelSpec, Straddle};

/// One cache.
#[derive(Clone)]
pub struct NaiveCache {
    pub sets: u64,
    pub ways: usize,
    /// (line, dirty) by set.
    pub content: HashMap<u64, VecDeque<(u64, bool)>>,
}

impl NaiveCache {
    pub fn new(spec: &LevelSpec) -> NaiveCache {
        NaiveCache { sets: spec.sets(), ways: spec.ways as usize, content: HashMap::new() }
    }

    /// (hit, evicted).
    pub fn touch(&mut self, line: u64, write: bool) -> (bool, Option<(u64, bool)>) {
        let set = self.content.entry(line % self.sets).or_default();
        let place = set.iter().position(|(held, _)| *held == line);
        let dirty = place.map(|place| set.remove(place).unwrap().1);
        set.push_front((line, write || dirty == Some(true)));
        let evicted = if set.len() > self.ways { set.pop_back() } else { None };
        (dirty.is_some(), evicted)
    }

    pub fn mark_dirty(&mut self, line: u64) -> bool {
        let set = self.content.entry(line % self.sets).or_default();
        let entry = set.iter_mut().find(|(held, _)| *held == line);
        entry.map(|(_, dirty)| *dirty = true).is_some()
    }
}

/// All levels.
pub struct Naive {
    pub specs: Vec<LevelSpec>,
    pub caches: Vec<Vec<NaiveCache>>,
    pub straddle: Straddle,
    pub counters: Vec<LevelCounters>,
}

impl Naive {
    pub fn new(specs: &[LevelSpec], cores: u32, straddle: Straddle) -> Naive {
        let caches = |spec: &LevelSpec| vec![NaiveCache::new(spec); cores.div_ceil(spec.shared_by) as usize];
        Naive {
            specs: specs.to_vec(),
            caches: specs.iter().map(caches).collect(),
            straddle,
            counters: vec![LevelCounters::default(); specs.len()],
        }
    }

    pub fn access(&mut self, core: usize, address: u64, bytes: u32, write: bool) -> u8 {
        if bytes == 0 {
            return 0;
        }
        let last = u128::from(address) + u128::from(bytes) - 1;
        let last = u64::try_from(last).unwrap_or(u64::MAX);
        let depth = match self.straddle {
            Straddle::Apart => {
                let line_bytes = u64::from(self.specs[0].line_bytes);
                let lines = address / line_bytes..=last / line_bytes;
                lines
                    .map(|line| self.outwards(core, line * line_bytes, line * line_bytes, write))
                    .max()
                    .unwrap()
            }
            Straddle::Together => self.outwards(core, address, last, write),
        };
        for (level, counters) in self.counters.iter_mut().enumerate() {
            let asked = u64::from(level <= depth);
            let missed = u64::from(level < depth);
            if write {
                counters.writes += asked;
                counters.write_misses += missed;
            } else {
                counters.reads += asked;
                counters.read_misses += missed;
            }
        }
        depth as u8
    }

    /// All lines of first..=last at each level until a level holds them all.
    fn outwards(&mut self, core: usize, first: u64, last: u64, write: bool) -> usize {
        for level in 0..self.specs.len() {
            let spec = self.specs[level];
            let line_bytes = u64::from(spec.line_bytes);
            let mut all = true;
            for line in first / line_bytes..=last / line_bytes {
                let cache = &mut self.caches[level][core / spec.shared_by as usize];
                let (hit, evicted) = cache.touch(line, write && level == 0);
                all &= hit;
                if let Some((line, true)) = evicted {
                    self.write_back(core, level, line * line_bytes);
                }
            }
            if all {
                return level;
            }
        }
        self.specs.len()
    }

    fn write_back(&mut self, core: usize, level: usize, address: u64) {
        self.counters[level].write_backs += 1;
        for outer in level + 1..self.specs.len() {
            let spec = self.specs[outer];
            let cache = &mut self.caches[outer][core / spec.shared_by as usize];
            if cache.mark_dirty(address / u64::from(spec.line_bytes)) {
                return;
            }
            self.counters[outer].write_backs += 1;
        }
    }
}
