//! Causes, use of lines and who took them, over models with any rules: against their definitions,
//! and by hand.

mod common;
#[path = "oracle/model.rs"]
mod oracle;
#[path = "oracle/rules.rs"]
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use common::{Access, cases};
use memlode_simulate::{
    Cause, Coherence, Detailed, Details, Found, Inclusion, LevelDetail, LevelSpec, MemRef, Model, ModelLevel,
    ModelSpec, Prefetch, SharedLine, Sharing, Tag, Write,
};
use oracle::{Event, NaiveModel};
use proptest::prelude::*;
use rules::{rules, spec, walks};

/// A line of one cache of one level.
type Key = (usize, usize, u64);

/// Figures computed by their definitions from the events of a naive model.
struct Definitions {
    spec: ModelSpec,
    /// Fully associative LRU caches as lists, most recent first.
    twins: HashMap<(usize, usize), VecDeque<u64>>,
    /// Lines that a cache was looked up for or got.
    known: HashSet<Key>,
    /// Tag of the fetch and bytes used since.
    held: HashMap<Key, (u32, BTreeSet<u64>)>,
    left_by: HashMap<Key, u32>,
    counts: BTreeMap<(usize, u32), LevelDetail>,
    evictions: BTreeMap<(usize, u32, u32), u64>,
    /// Misses by tag, tag of the write, is true, address of the line.
    sharing: BTreeMap<(u32, u32, bool, u64), u64>,
    core: usize,
    tag: u32,
    /// Bytes of the current line.
    piece: Option<(u64, u64)>,
}

impl Definitions {
    fn new(spec: &ModelSpec) -> Definitions {
        Definitions {
            spec: spec.clone(),
            twins: HashMap::new(),
            known: HashSet::new(),
            held: HashMap::new(),
            left_by: HashMap::new(),
            counts: BTreeMap::new(),
            evictions: BTreeMap::new(),
            sharing: BTreeMap::new(),
            core: 0,
            tag: 0,
            piece: None,
        }
    }

    fn line_bytes(&self, level: usize) -> u64 {
        self.spec.levels[level].shape.line_bytes.into()
    }

    fn is_exclusive(&self, level: usize) -> bool {
        self.spec.levels[level].inclusion == Inclusion::Exclusive
    }

    fn is_sectored(&self, level: usize) -> bool {
        self.spec.levels[level].sector_bytes.is_some()
    }

    fn count(&mut self, level: usize, tag: u32) -> &mut LevelDetail {
        self.counts.entry((level, tag)).or_default()
    }

    /// Simulates one access; returns the causes of its misses by level.
    fn access(&mut self, events: &[Event], access: &Access, tag: u32) -> BTreeMap<usize, Cause> {
        (self.core, self.tag) = (access.core, tag);
        let end = access.address.saturating_add(u64::from(access.bytes.max(1)) - 1);
        let mut causes = BTreeMap::new();
        let (mut lost, mut held, mut is_held) = (None, None, false);
        let mut shared: Vec<(Sharing, u64)> = Vec::new();
        for event in events {
            match *event {
                Event::Lost(level, _, line, sharing) => {
                    lost = Some(sharing);
                    let size = self.line_bytes(0);
                    let at = if level == 0 { line * size } else { self.piece.unwrap().0 / size * size };
                    if shared.iter().all(|(_, other)| *other != at) {
                        shared.push((sharing, at));
                    }
                }
                Event::HeldElsewhere(line) => held = Some(line),
                Event::Asked(level, cache, line, found) => {
                    if level == 0 {
                        is_held = held.take() == Some(line);
                        self.use_piece();
                        let start = line * self.line_bytes(0);
                        let last = start + (self.line_bytes(0) - 1);
                        self.piece = Some((access.address.max(start), end.min(last)));
                    }
                    if let Some(cause) = self.asked((level, cache, line), found, lost.take(), is_held) {
                        causes.entry(level).or_insert(cause);
                    }
                }
                Event::Entered(level, cache, line) => {
                    self.touch_twin((level, cache, line));
                    self.known.insert((level, cache, line));
                    self.begin((level, cache, line));
                }
                Event::Reused(level, cache, line) if !self.is_exclusive(level) => {
                    self.touch_twin((level, cache, line));
                }
                Event::Reused(..) => {}
                Event::Filled(level, _, _, bytes) if !self.is_exclusive(level) => {
                    self.count(level, tag).fetched_bytes += bytes;
                }
                Event::Filled(..) => {}
                Event::Evicted(level, cache, line) | Event::BackInvalidated(level, cache, line) => {
                    self.end((level, cache, line), Some(tag));
                }
                Event::MovedInwards(level, cache, line) => {
                    self.end((level, cache, line), None);
                    self.twins.entry((level, cache)).or_default().retain(|held| *held != line);
                }
                Event::Invalidated(level, cache, line, _, by) => {
                    self.end((level, cache, line), Some(by));
                    self.count(level, by).invalidations += 1;
                }
            }
        }
        self.use_piece();
        let first = shared.first().copied();
        if let Some((sharing, at)) = shared.into_iter().find(|(sharing, _)| sharing.is_true).or(first) {
            *self.sharing.entry((tag, sharing.by_tag.number(), sharing.is_true, at)).or_default() += 1;
        }
        for (level, cause) in &causes {
            let counts = self.count(*level, tag);
            match cause {
                Cause::Cold => counts.cold += 1,
                Cause::Capacity => counts.capacity += 1,
                Cause::Conflict => counts.conflict += 1,
                Cause::HeldElsewhere => counts.held_elsewhere += 1,
                Cause::TrueSharing => counts.true_sharing += 1,
                Cause::FalseSharing => counts.false_sharing += 1,
            }
        }
        causes
    }

    fn asked(&mut self, key: Key, found: Found, lost: Option<Sharing>, is_held: bool) -> Option<Cause> {
        let (level, cache, line) = key;
        let twin = self.twins.entry((level, cache)).or_default();
        let has = twin.contains(&line);
        if self.is_exclusive(level) {
            if found == Found::Passed {
                self.twins.get_mut(&(level, cache)).unwrap().retain(|held| *held != line);
            }
        } else if has || found != Found::Passed {
            self.touch_twin(key);
        }
        let known = !self.known.insert(key);
        if found == Found::Hit {
            self.count(level, self.tag).spared += u64::from(!has);
            return None;
        }
        let cause = match lost {
            Some(Sharing { is_true: true, .. }) => Cause::TrueSharing,
            Some(_) => Cause::FalseSharing,
            None if is_held => Cause::HeldElsewhere,
            None if !known || found == Found::Part => Cause::Cold,
            None if has => Cause::Conflict,
            None => Cause::Capacity,
        };
        let by = match lost {
            Some(sharing) => Some(sharing.by_tag.number()),
            None if matches!(cause, Cause::Cold | Cause::HeldElsewhere) => None,
            None => self.left_by.get(&key).copied(),
        };
        if let Some(by) = by {
            *self.evictions.entry((level, self.tag, by)).or_default() += 1;
        }
        if found == Found::Miss {
            self.begin(key);
        }
        Some(cause)
    }

    fn touch_twin(&mut self, (level, cache, line): Key) {
        let shape = &self.spec.levels[level].shape;
        let list = self.twins.entry((level, cache)).or_default();
        list.retain(|held| *held != line);
        list.push_front(line);
        list.truncate((shape.bytes / u64::from(shape.line_bytes)) as usize);
    }

    fn begin(&mut self, key: Key) {
        assert!(self.held.insert(key, (self.tag, BTreeSet::new())).is_none());
        if !self.is_exclusive(key.0) && !self.is_sectored(key.0) {
            self.count(key.0, self.tag).fetched_bytes += self.line_bytes(key.0);
        }
    }

    fn end(&mut self, key: Key, by: Option<u32>) {
        // The access under way has had it.
        self.use_piece();
        let (fetched_by, bytes) = self.held.remove(&key).unwrap();
        match by {
            Some(by) => self.left_by.insert(key, by),
            None => self.left_by.remove(&key),
        };
        if !self.is_exclusive(key.0) {
            let used = self.used_bytes(key.0, &bytes);
            let counts = self.count(key.0, fetched_by);
            counts.evicted_lines += 1;
            counts.evicted_used_bytes += used;
        }
    }

    /// Enters the current bytes as used in every cache on the way that has them.
    fn use_piece(&mut self) {
        let Some((first, last)) = self.piece else { return };
        for (level, rules) in self.spec.levels.iter().enumerate() {
            let (line_bytes, users) = (u64::from(rules.shape.line_bytes), rules.shape.shared_by as usize);
            let before: usize = self.spec.levels[..level]
                .iter()
                .map(|inner| self.spec.cores.div_ceil(inner.shape.shared_by) as usize)
                .sum();
            if let Some((_, used)) =
                self.held.get_mut(&(level, before + self.core / users, first / line_bytes))
            {
                used.extend(first..=last);
            }
        }
    }

    /// Bytes of a level, counted in parts of 1/64 of a line.
    fn used_bytes(&self, level: usize, bytes: &BTreeSet<u64>) -> u64 {
        let grain = self.line_bytes(level).div_ceil(64);
        bytes.iter().map(|byte| byte / grain).collect::<BTreeSet<_>>().len() as u64 * grain
    }

    /// Counts every fetch that has not ended.
    fn finish(&mut self) {
        for ((level, _, _), (tag, bytes)) in std::mem::take(&mut self.held) {
            if !self.is_exclusive(level) {
                let used = self.used_bytes(level, &bytes);
                let counts = self.count(level, tag);
                counts.resident_lines += 1;
                counts.resident_used_bytes += used;
            }
        }
        self.counts.retain(|_, counts| *counts != LevelDetail::default());
    }
}

fn run(spec: &ModelSpec, trace: impl IntoIterator<Item = (Access, u32)>) {
    let mut naive = NaiveModel::new(spec);
    let mut definitions = Definitions::new(spec);
    let mut detailed = Detailed::of_model(Model::new(spec).unwrap());
    for (i, (a, tag)) in trace.into_iter().enumerate() {
        naive.log.events.clear();
        let answer = naive.access(a.core, a.address, a.bytes, a.write, tag);
        definitions.piece = None;
        let causes = definitions.access(&naive.log.events, &a, tag);
        let outcome = detailed.access(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(tag));
        assert_eq!((outcome.depth, outcome.sharing), (answer.depth, answer.sharing), "access {i} {a:?}");
        assert_eq!(
            outcome.causes().collect::<Vec<_>>(),
            causes.into_values().collect::<Vec<_>>(),
            "access {i}"
        );
    }
    let counters = detailed.counters();
    let details = detailed.finish();
    for (level, counters) in counters.iter().enumerate() {
        let misses: u64 = details.levels.iter().map(|of| of[level].misses()).sum();
        assert_eq!(misses, counters.read_misses + counters.write_misses);
    }
    definitions.finish();
    let found = details.levels.iter().enumerate().flat_map(|(tag, levels)| {
        levels.iter().enumerate().map(move |(level, counts)| ((level, tag as u32), *counts))
    });
    let found: BTreeMap<_, _> = found.filter(|(_, counts)| *counts != LevelDetail::default()).collect();
    assert_eq!(found, definitions.counts);
    let found = details.evictions.iter().enumerate().flat_map(|(level, evictions)| {
        evictions.iter().map(move |e| ((level, e.tag.number(), e.by.number()), e.misses))
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), definitions.evictions);
    check_model(spec, &details, definitions, &naive);
}

fn check_model(spec: &ModelSpec, details: &Details, definitions: Definitions, naive: &NaiveModel) {
    let model = details.model.as_ref().expect("a model's details");
    assert_eq!(model.traffic, naive.traffic);
    assert_eq!(model.prefetch, naive.prefetch);
    assert_eq!(model.coherence, naive.coherence);
    let line = |l: &SharedLine| ((l.tag.number(), l.by.number(), l.is_true, l.address), l.misses);
    assert_eq!(model.sharing.iter().map(line).collect::<BTreeMap<_, _>>(), definitions.sharing);
    let misses: u64 = model.sharing.iter().map(|line| line.misses).sum();
    assert_eq!(misses, model.coherence.true_sharing + model.coherence.false_sharing);
    for (level, traffic) in model.traffic.iter().enumerate() {
        let taken: u64 = details.levels.iter().map(|levels| levels[level].invalidations).sum();
        assert_eq!(taken, traffic.invalidations, "level {level} of {spec:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn details_of_any_rules_are_as_defined(
        (shapes, cores, trace) in cases(),
        rules in rules(3),
        mesi in any::<bool>(),
    ) {
        run(&spec(&shapes, cores, &rules, mesi), trace.into_iter().zip((0..7).cycle()));
    }

    #[test]
    fn details_with_prefetchers_are_as_defined(
        ((shapes, cores, _), walks) in cases().prop_flat_map(|case| { let walks = walks(case.1); (Just(case), walks) }),
        rules in rules(15),
        mesi in any::<bool>(),
    ) {
        run(&spec(&shapes, cores, &rules, mesi), walks);
    }

    /// Without any of its rules, a model has the details of the hierarchy.
    #[test]
    fn plain_rules_have_the_details_of_a_hierarchy((shapes, cores, trace) in cases()) {
        let levels = shapes.iter().map(|shape| ModelLevel::from(*shape)).collect();
        let mut general = Detailed::of_model(Model::new(&ModelSpec::new(levels, cores)).unwrap());
        let mut plain = Detailed::new(memlode_simulate::Hierarchy::new(&shapes, cores).unwrap());
        for (a, tag) in trace.iter().zip((0..5).cycle()) {
            let outcome = general.access(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(tag));
            prop_assert_eq!(outcome, plain.access(MemRef::read(a.core, a.address, a.bytes).writing(a.write).tagged(tag)));
        }
        let (general, plain) = (general.finish(), plain.finish());
        prop_assert_eq!(general.levels, plain.levels);
        prop_assert_eq!(general.evictions, plain.evictions);
    }
}

fn level(sets: u64, ways: u32, shared_by: u32) -> ModelLevel {
    ModelLevel::from(LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by })
}

/// Two threads count in neighbouring words; a third counter is read by one thread and written by
/// the other.
#[test]
fn who_takes_whose_line_is_told_by_tag() {
    let levels = vec![level(8, 4, 1), level(64, 8, 2)];
    let spec = ModelSpec { coherence: Coherence::Mesi, ..ModelSpec::new(levels, 2) };
    let mut detailed = Detailed::of_model(Model::new(&spec).unwrap());
    let (mine, yours, flag_write, flag_read) = (10, 20, 30, 40);
    for _ in 0..100 {
        detailed.access(MemRef::write(0, 0, 8).tagged(mine));
        detailed.access(MemRef::write(1, 8, 8).tagged(yours));
        detailed.access(MemRef::write(0, 4096, 8).tagged(flag_write));
        detailed.access(MemRef::read(1, 4096, 8).tagged(flag_read));
    }
    let details = detailed.finish();
    let causes = |tag: u32| {
        let found = details.levels[tag as usize][0];
        (found.cold, found.held_elsewhere, found.true_sharing, found.false_sharing, found.invalidations)
    };
    assert_eq!(causes(mine), (1, 0, 0, 99, 99));
    // The other has it, at first.
    assert_eq!(causes(yours), (0, 1, 0, 99, 100));
    // A write finds its line shared, takes the copy, and misses nothing.
    assert_eq!(causes(flag_write), (1, 0, 0, 0, 99));
    assert_eq!(causes(flag_read), (0, 1, 99, 0, 0));
    let line = |tag, by, is_true, address| SharedLine {
        tag: Tag::new(tag),
        by: Tag::new(by),
        is_true,
        address,
        misses: 99,
    };
    let expected =
        [line(mine, yours, false, 0), line(yours, mine, false, 0), line(flag_read, flag_write, true, 4096)];
    assert_eq!(details.model.unwrap().sharing, expected);
}

/// Lines that are only prefetched take room, too: misses because of them are capacity misses, not
/// conflicts. Every second line of 128 is read, again and again, through a fully associative cache
/// of 64 lines, which each time gets the other line of the pair.
#[test]
fn prefetched_lines_take_room() {
    let one_set = ModelLevel { prefetch: vec![Prefetch::AdjacentLine], ..level(1, 64, 1) };
    let mut detailed = Detailed::of_model(Model::new(&ModelSpec::new(vec![one_set], 1)).unwrap());
    for _ in 0..3 {
        for pair in 0..64 {
            detailed.access(MemRef::read(0, pair * 128, 8));
        }
    }
    // Which was prefetched and lost is not cold.
    detailed.access(MemRef::read(0, 64, 8).tagged(1));
    let details = detailed.finish();
    let causes = |tag: usize| {
        let LevelDetail { cold, capacity, conflict, .. } = details.levels[tag][0];
        (cold, capacity, conflict)
    };
    assert_eq!([causes(0), causes(1)], [(64, 128, 0), (0, 1, 0)]);
}

/// A core drops a line for lack of room, and another core writes to it. The line comes from that
/// core, whatever the size of the cache. A line that was taken away is shared; a line that no core
/// wrote misses for lack of room.
#[test]
fn a_line_that_another_core_has_written_to_is_held_by_it() {
    use Cause::{Capacity, Cold, HeldElsewhere, TrueSharing};
    let spec =
        ModelSpec { coherence: Coherence::Mesi, ..ModelSpec::new(vec![level(1, 1, 1), level(1, 8, 2)], 2) };
    let mut detailed = Detailed::of_model(Model::new(&spec).unwrap());
    let mut causes = |core, line: u64, is_write| {
        let at = if is_write { MemRef::write } else { MemRef::read };
        detailed.access(at(core, line * 64, 8)).causes().collect::<Vec<_>>()
    };
    assert_eq!(causes(0, 0, false), [Cold, Cold]);
    assert_eq!(causes(1, 8, true), [Cold, Cold]);
    assert_eq!(causes(0, 1, false), [Cold, Cold]);
    assert_eq!(causes(0, 0, false), [Capacity]);
    assert_eq!(causes(0, 1, false), [Capacity]);
    assert_eq!(causes(1, 0, true), [Cold]);
    assert_eq!(causes(0, 0, false), [HeldElsewhere]);
    assert_eq!(causes(0, 0, false), []);
    // Now it is taken away, and read where it was written.
    assert_eq!(causes(1, 0, true), []);
    assert_eq!(causes(0, 0, false), [TrueSharing]);
    // Nobody has written to it since it was dropped.
    assert_eq!(causes(0, 1, false), [Capacity]);
    assert_eq!(causes(0, 0, false), [Capacity]);
}

/// Shows the effect of rules on a line in its causes: an exclusive level gets what the first level
/// drops, a write bypasses a level that does not allocate, and a missing sector is cold.
#[test]
fn rules_show_in_causes() {
    use Cause::{Capacity, Cold};
    // One line inside, three outside: three lines in turn are outside when they come again.
    let victims = ModelLevel { inclusion: Inclusion::Exclusive, ..level(1, 3, 1) };
    let mut detailed =
        Detailed::of_model(Model::new(&ModelSpec::new(vec![level(1, 1, 1), victims], 1)).unwrap());
    let mut causes = |line: u64| detailed.access(MemRef::read(0, line * 64, 8)).causes().collect::<Vec<_>>();
    assert_eq!([0, 1, 2].map(&mut causes), [[Cold, Cold], [Cold, Cold], [Cold, Cold]]);
    assert_eq!([0, 1, 2].map(&mut causes), [[Capacity], [Capacity], [Capacity]]);
    let outer = detailed.finish().levels[0][1];
    assert_eq!((outer.fetched_bytes, outer.lines(), outer.cold), (0, 0, 3));

    let past = ModelLevel { write_allocate: false, write: Write::Through, ..level(1, 1, 1) };
    let mut detailed = Detailed::of_model(Model::new(&ModelSpec::new(vec![past], 1)).unwrap());
    let writes = [0, 1, 2].map(|_| detailed.access(MemRef::write(0, 0, 8)).causes().next());
    assert_eq!(writes, [Some(Cold), Some(Capacity), Some(Capacity)]);
    assert_eq!(detailed.finish().levels[0][0].fetched_bytes, 0);

    let sectors = ModelLevel { sector_bytes: Some(16), ..level(1, 1, 1) };
    let mut detailed = Detailed::of_model(Model::new(&ModelSpec::new(vec![sectors], 1)).unwrap());
    let reads = [0, 8, 32, 40].map(|at| detailed.access(MemRef::read(0, at, 8)).causes().next());
    assert_eq!(reads, [Some(Cold), None, Some(Cold), None]);
    let only = detailed.finish().levels[0][0];
    assert_eq!((only.fetched_bytes, only.lines(), only.used_bytes()), (32, 1, 32));
}
