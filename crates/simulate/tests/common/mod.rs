//! The simplest form of the model, a deque per set with the most recent line in front; and random
//! hierarchies and traces to compare it on.
#![allow(dead_code)] // each test program uses its part

use std::collections::{HashMap, VecDeque};

use memlode_simulate::{LevelCounters, LevelSpec, Straddle};
use proptest::prelude::*;

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

/// An event of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Hit,
    Miss,
    Evicted,
}

/// All levels.
pub struct Naive {
    pub specs: Vec<LevelSpec>,
    pub caches: Vec<Vec<NaiveCache>>,
    pub straddle: Straddle,
    pub counters: Vec<LevelCounters>,
    /// (event, level, cache of that level, line), in their order.
    pub events: Vec<(Event, usize, usize, u64)>,
}

impl Naive {
    pub fn new(specs: &[LevelSpec], cores: u32, straddle: Straddle) -> Naive {
        let caches = |spec: &LevelSpec| vec![NaiveCache::new(spec); cores.div_ceil(spec.shared_by) as usize];
        Naive {
            specs: specs.to_vec(),
            caches: specs.iter().map(caches).collect(),
            straddle,
            counters: vec![LevelCounters::default(); specs.len()],
            events: Vec::new(),
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
                    .map(|line| self.look_up_outer(core, line * line_bytes, line * line_bytes, write))
                    .max()
                    .unwrap()
            }
            Straddle::Together => self.look_up_outer(core, address, last, write),
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
    fn look_up_outer(&mut self, core: usize, first: u64, last: u64, write: bool) -> usize {
        for level in 0..self.specs.len() {
            let spec = self.specs[level];
            let line_bytes = u64::from(spec.line_bytes);
            let mut all = true;
            for line in first / line_bytes..=last / line_bytes {
                let cache = core / spec.shared_by as usize;
                let (hit, evicted) = self.caches[level][cache].touch(line, write && level == 0);
                all &= hit;
                self.events.push((if hit { Event::Hit } else { Event::Miss }, level, cache, line));
                if let Some((line, _)) = evicted {
                    self.events.push((Event::Evicted, level, cache, line));
                }
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

/// One access of a trace.
#[derive(Clone, Debug)]
pub struct Access {
    pub core: usize,
    pub address: u64,
    pub bytes: u32,
    pub write: bool,
}

/// 1 to 4 levels: any number of sets, 1 to 40 ways (beyond 32 is another code path); lines and
/// groups of cores grow from level to level. Small, so that random traces overflow them.
fn hierarchies() -> impl Strategy<Value = (Vec<LevelSpec>, u32)> {
    let level = (1u64..=24, 1u32..=40, 0u32..=1, 1u32..=2);
    (prop::collection::vec(level, 1..=4), 2u32..=5, 1u32..=5).prop_map(|(shapes, line_shift, cores)| {
        let mut line_bytes = 1 << line_shift;
        let mut shared_by = 1;
        let spec = |(sets, ways, grow, share): (u64, u32, u32, u32)| {
            line_bytes <<= grow;
            shared_by *= share;
            LevelSpec { bytes: sets * u64::from(ways) * u64::from(line_bytes), ways, line_bytes, shared_by }
        };
        (shapes.into_iter().map(spec).collect(), cores)
    })
}

/// Accesses to a few regions, one of them at the end of the address space. They often stay in one
/// region whose lines have narrow entries.
fn traces(cores: u32, most_bytes: u32) -> impl Strategy<Value = Vec<Access>> {
    let region = prop_oneof![
        3 => Just(1u64 << 20),
        1 => Just(0u64),
        1 => Just(0x7fff_ffff_e000),
        1 => Just(u64::MAX - 4095),
        1 => any::<u64>().prop_map(|a| a & !0xfff)
    ];
    let regions = prop::collection::vec((region, prop_oneof![Just(256u64), Just(4096), Just(32768)]), 1..4);
    regions.prop_flat_map(move |regions| {
        let access = (0..regions.len(), any::<u64>(), 0..=most_bytes, any::<bool>(), 0..cores as usize);
        prop::collection::vec(access, 1..1500).prop_map(move |accesses| {
            let place = |(region, offset, bytes, write, core): (usize, u64, u32, bool, usize)| {
                let (base, size) = regions[region];
                Access { core, address: base.saturating_add(offset % size), bytes, write }
            };
            accesses.into_iter().map(place).collect()
        })
    })
}

/// Levels, cores, accesses.
pub fn cases() -> impl Strategy<Value = (Vec<LevelSpec>, u32, Vec<Access>)> {
    hierarchies().prop_flat_map(|(levels, cores)| (Just(levels), Just(cores), traces(cores, 40)))
}
