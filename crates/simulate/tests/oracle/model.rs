//! The simplest form of the general model: sets are vectors of ways, coherence looks at every
//! cache, and a log of all writes shows which bytes were written since a line was lost.

#[path = "cache.rs"]
mod cache;
#[path = "prefetch.rs"]
mod prefetch;

use self::cache::{Cache, Line};
use self::prefetch::Seen;
use std::collections::{BTreeSet, HashMap, VecDeque};

use memlode_simulate::{
    Answer, Coherence, CoherenceCounters, Found, Inclusion, LevelCounters, LevelTraffic, ModelSpec, Observer,
    PrefetchCounters, Sharing, Tag, Write,
};

/// An event that an observer received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Asked(usize, usize, u64, Found),
    Lost(usize, usize, u64, Sharing),
    HeldElsewhere(u64),
    Filled(usize, usize, u64, u64),
    Evicted(usize, usize, u64),
    Entered(usize, usize, u64),
    Reused(usize, usize, u64),
    MovedInwards(usize, usize, u64),
    BackInvalidated(usize, usize, u64),
    Invalidated(usize, usize, u64, u32, u32),
}

#[derive(Default)]
pub struct Log {
    pub events: Vec<Event>,
    /// The line that came last.
    pub came: u64,
    /// True of a hierarchy, which has no room for notes.
    pub of_hierarchy: bool,
}

impl Log {
    /// Checks that the observer of a line gets back the note that it made when the line came.
    fn left(&mut self, event: Event, line: u64, note: u32) {
        assert_eq!(note, if self.of_hierarchy { 0 } else { noted(line) }, "{event:?}");
        self.events.push(event);
    }
}

fn noted(line: u64) -> u32 {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Observer for Log {
    fn asked(&mut self, level: usize, cache: usize, line: u64, found: Found) {
        self.came = line;
        self.events.push(Event::Asked(level, cache, line, found));
    }
    fn lost(&mut self, level: usize, cache: usize, line: u64, sharing: Sharing) {
        self.events.push(Event::Lost(level, cache, line, sharing));
    }
    fn held_elsewhere(&mut self, line: u64) {
        self.events.push(Event::HeldElsewhere(line));
    }
    fn filled(&mut self, level: usize, cache: usize, line: u64, bytes: u64) {
        self.events.push(Event::Filled(level, cache, line, bytes));
    }
    fn evicted(&mut self, level: usize, cache: usize, line: u64, note: u32) {
        self.left(Event::Evicted(level, cache, line), line, note);
    }
    fn entered(&mut self, level: usize, cache: usize, line: u64) {
        self.came = line;
        self.events.push(Event::Entered(level, cache, line));
    }
    fn reused(&mut self, level: usize, cache: usize, line: u64) {
        self.events.push(Event::Reused(level, cache, line));
    }
    fn note(&self) -> u32 {
        noted(self.came)
    }
    fn moved_inwards(&mut self, level: usize, cache: usize, line: u64, note: u32) {
        self.left(Event::MovedInwards(level, cache, line), line, note);
    }
    fn back_invalidated(&mut self, level: usize, cache: usize, line: u64, note: u32) {
        self.left(Event::BackInvalidated(level, cache, line), line, note);
    }
    fn invalidated(&mut self, level: usize, cache: usize, line: u64, note: u32, core: u32, tag: Tag) {
        self.left(Event::Invalidated(level, cache, line, core, tag.number()), line, note);
    }
}

/// Bytes first..=last.
pub type Bytes = (u64, u64);

fn hull(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

struct Loss {
    core: usize,
    tag: u32,
    /// Writes logged before the one that took the line.
    since: usize,
}

pub struct NaiveModel {
    pub spec: ModelSpec,
    /// Indexed by level, then by number within the level.
    pub caches: Vec<Vec<Cache>>,
    pub counters: Vec<LevelCounters>,
    pub traffic: Vec<LevelTraffic>,
    pub coherence: CoherenceCounters,
    pub prefetch: Vec<PrefetchCounters>,
    clock: u64,
    /// Cores that have made an access.
    ran: BTreeSet<usize>,
    /// Core, level, line, tag.
    queue: VecDeque<(usize, usize, u64, u32)>,
    pub log: Log,
    granule: u64,
    /// Levels of which there are several caches.
    private: usize,
    writes: Vec<(usize, Bytes)>,
    losses: HashMap<(usize, usize, u64), Loss>,
    // Of the line of the access under way:
    tag: u32,
    goes_on: bool,
    /// Another core's cache keeps the line, too.
    shared: bool,
    /// The level whose prefetcher requests it.
    from: Option<usize>,
    touched: Bytes,
    depth: Option<usize>,
    sharing: Option<Sharing>,
    kept_dirty: bool,
}

impl NaiveModel {
    pub fn new(spec: &ModelSpec) -> NaiveModel {
        let several = |shared_by: u32| spec.coherence == Coherence::Mesi && shared_by < spec.cores;
        let private = spec.levels.iter().filter(|level| several(level.shape.shared_by)).count();
        let caches = |level: &memlode_simulate::ModelLevel| {
            (0..spec.cores.div_ceil(level.shape.shared_by)).map(|_| Cache::new(level)).collect()
        };
        NaiveModel {
            spec: spec.clone(),
            caches: spec.levels.iter().map(caches).collect(),
            counters: vec![LevelCounters::default(); spec.levels.len()],
            traffic: vec![LevelTraffic::default(); spec.levels.len()],
            coherence: CoherenceCounters::default(),
            prefetch: vec![PrefetchCounters::default(); spec.levels.len()],
            clock: 0,
            ran: BTreeSet::new(),
            queue: VecDeque::new(),
            log: Log::default(),
            granule: private.checked_sub(1).map_or(1, |l| spec.levels[l].shape.line_bytes.into()),
            private,
            writes: Vec::new(),
            losses: HashMap::new(),
            tag: 0,
            goes_on: false,
            shared: false,
            from: None,
            touched: (0, 0),
            depth: None,
            sharing: None,
            kept_dirty: false,
        }
    }

    pub fn line_bytes(&self, level: usize) -> u64 {
        self.spec.levels[level].shape.line_bytes.into()
    }

    pub fn place(&self, level: usize, core: usize) -> usize {
        core / self.spec.levels[level].shape.shared_by as usize
    }

    /// The number of a cache, as observers count them.
    pub fn number(&self, level: usize, place: usize) -> usize {
        self.caches[..level].iter().map(Vec::len).sum::<usize>() + place
    }

    fn unit(&self, level: usize) -> u64 {
        self.spec.levels[level].sector_bytes.unwrap_or(self.spec.levels[level].shape.line_bytes).into()
    }

    fn sectors(&self, level: usize, (first, last): Bytes) -> BTreeSet<u64> {
        let (line, unit) = (self.line_bytes(level), self.unit(level));
        (first % line / unit..=last % line / unit).collect()
    }

    pub fn access(&mut self, core: usize, address: u64, bytes: u32, write: bool, tag: u32) -> Answer {
        if bytes == 0 {
            return Answer::default();
        }
        self.clock += 1;
        self.ran.insert(core);
        let last = (u128::from(address) + u128::from(bytes) - 1).min(u64::MAX.into()) as u64;
        let size = self.line_bytes(0);
        let mut all: Vec<Answer> = Vec::new();
        for line in address / size..=last / size {
            let piece = (address.max(line * size), last.min(line * size + (size - 1)));
            self.goes_on = piece.0 != address;
            all.push(self.access_line(core, piece, write, tag));
        }
        let outcome = Answer {
            depth: all.iter().map(|outcome| outcome.depth).max().unwrap(),
            transfer: all.iter().any(|outcome| outcome.transfer),
            sharing: {
                let mut sharing = all.iter().filter_map(|outcome| outcome.sharing);
                let first = sharing.clone().next();
                sharing.find(|sharing| sharing.is_true).or(first)
            },
        };
        match outcome.sharing {
            Some(sharing) if sharing.is_true => self.coherence.true_sharing += 1,
            Some(_) => self.coherence.false_sharing += 1,
            None => {}
        }
        for (level, counters) in self.counters.iter_mut().enumerate() {
            let asked = u64::from(level <= outcome.depth.into());
            let missed = u64::from(level < outcome.depth.into());
            if write {
                counters.writes += asked;
                counters.write_misses += missed;
            } else {
                counters.reads += asked;
                counters.read_misses += missed;
            }
        }
        outcome
    }

    fn access_line(&mut self, core: usize, bytes: Bytes, write: bool, tag: u32) -> Answer {
        (self.tag, self.from) = (tag, None);
        (self.touched, self.depth, self.sharing, self.kept_dirty) = (bytes, None, None, false);
        let size = self.line_bytes(0);
        let line = bytes.0 / size;
        let place = self.place(0, core);
        let needed = self.sectors(0, bytes);
        let held = self.caches[0][place].get(line).cloned();
        let here = held.as_ref().is_some_and(|held| held.sectors.is_superset(&needed));
        let owned = held.as_ref().is_some_and(|held| held.owned);
        let (mut shared, mut dirty) = (false, false);
        if self.private > 0 && !owned && (write || !here) {
            self.coherence.upgrades += u64::from(write && held.is_some());
            (shared, dirty) = self.claim(core, bytes, write, tag);
            if dirty {
                self.log.events.push(Event::HeldElsewhere(line));
            }
        }
        if write {
            self.writes.push((core, bytes));
        }
        self.shared = shared && !write;
        self.ask(0, core, (!write).then_some(bytes), write.then_some(bytes), None);
        if write && dirty && !self.kept_dirty {
            self.counters.last_mut().unwrap().write_backs += 1;
        }
        if self.private > 0
            && (write || (!here && !shared))
            && let Some(held) = self.caches[0][place].get(line)
        {
            held.owned = true;
        }
        let (depth, sharing) = (self.depth, self.sharing);
        self.fetch_ahead();
        let levels = self.spec.levels.len();
        let depth = depth.unwrap_or(levels);
        let transfer = dirty || (shared && depth == levels);
        self.coherence.transfers += u64::from(transfer);
        Answer { depth: depth as u8, transfer, sharing }
    }

    fn fetch_ahead(&mut self) {
        while let Some((core, level, line, tag)) = self.queue.pop_front() {
            let place = self.place(level, core);
            if self.caches[level][place].get(line).is_some() {
                continue;
            }
            self.prefetch[level].issued += 1;
            let start = line * self.line_bytes(level);
            let bytes = (start, start + (self.line_bytes(level) - 1));
            let inner = start / self.line_bytes(0);
            let own = self.place(0, core);
            let owned = self.caches[0][own].get(inner).is_some_and(|held| held.owned);
            let mut shared = false;
            if level < self.private && !owned {
                shared = self.claim(core, bytes, false, tag).0;
            }
            // No access waits for it.
            (self.goes_on, self.shared) = (false, shared);
            (self.touched, self.tag, self.from, self.depth) = (bytes, tag, Some(level), Some(usize::MAX));
            self.ask(level, core, Some(bytes), None, None);
            if level == 0 && self.private > 0 && !shared {
                self.caches[0][own].get(inner).unwrap().owned = true;
            }
        }
    }

    /// Accesses that are made while a line comes.
    fn on_the_way(&self) -> u64 {
        u64::from(self.spec.fill_accesses) * self.ran.len() as u64
    }

    /// Shows a request to the prefetchers of a cache.
    fn see(&mut self, level: usize, core: usize, line: u64, first: u64, hit: bool, demand: bool) {
        let kinds = self.spec.levels[level].prefetch.clone();
        let clock = self.clock;
        let (line_bytes, page_bytes) = (self.line_bytes(level), self.spec.page_bytes);
        let (tag, address, goes_on) = (self.tag, first.max(self.touched.0), self.goes_on);
        let place = self.place(level, core);
        let counters = &mut self.prefetch[level];
        let cache = &mut self.caches[level][place];
        let mut first_use = false;
        if hit {
            if let Some(arrives) = cache.get(line).unwrap().ahead.take() {
                first_use = true;
                counters.useful += 1;
                counters.late += u64::from(clock <= arrives);
            }
        } else if demand && cache.dropped.get(&(line % 4096)) == Some(&line) {
            cache.dropped.remove(&(line % 4096));
            counters.pollution += 1;
        }
        cache.seen.push(Seen { core, tag, address, line, goes_on, miss: !hit, first_use });
        for kind in kinds {
            for wanted in prefetch::wanted(kind, &cache.seen, line_bytes, page_bytes) {
                if wanted / (page_bytes / line_bytes) == line / (page_bytes / line_bytes) {
                    self.queue.push_back((core, level, wanted, tag));
                }
            }
        }
    }

    /// (someone else had the line, it was dirty there).
    fn claim(&mut self, core: usize, bytes: Bytes, write: bool, tag: u32) -> (bool, bool) {
        let (mut shared, mut dirty) = (false, false);
        let granule = bytes.0 / self.granule;
        for level in 0..self.private {
            let lines = self.granule / self.line_bytes(level);
            let own = self.place(level, core);
            for place in (0..self.caches[level].len()).filter(|place| *place != own) {
                let mut lost = false;
                for line in granule * lines..(granule + 1) * lines {
                    let number = self.number(level, place);
                    if write {
                        let Some(left) = self.caches[level][place].take(line) else { continue };
                        (shared, dirty, lost) = (true, dirty | left.dirty, true);
                        self.traffic[level].invalidations += 1;
                        self.prefetch[level].useless += u64::from(left.ahead.is_some());
                        self.log.events.push(Event::Invalidated(level, number, line, core as u32, tag));
                    } else if let Some(held) = self.caches[level][place].get(line) {
                        let left = held.clone();
                        (held.dirty, held.owned) = (false, false);
                        (shared, dirty) = (true, dirty | left.dirty);
                        if left.dirty {
                            self.write_back(level, place, &left);
                        }
                    }
                }
                if lost {
                    let loss = Loss { core, tag, since: self.writes.len() };
                    self.losses.insert((level, place, granule), loss);
                }
            }
        }
        (shared, dirty)
    }

    fn ask(
        &mut self,
        level: usize,
        core: usize,
        need: Option<Bytes>,
        write: Option<Bytes>,
        waiting: Option<(usize, usize)>,
    ) {
        let Some(bytes) = hull(need, write).filter(|_| level < self.spec.levels.len()) else { return };
        let rules = self.spec.levels[level].clone();
        let exclusive = rules.inclusion == Inclusion::Exclusive;
        let (place, line) = (self.place(level, core), bytes.0 / self.line_bytes(level));
        let number = self.number(level, place);
        let wanted = self.sectors(level, bytes);
        let have = self.caches[level][place].get(line).cloned();
        let missing: BTreeSet<u64> = match &have {
            Some(have) => wanted.difference(&have.sectors).copied().collect(),
            None => wanted.clone(),
        };
        let hit = missing.is_empty();
        let demand = self.depth.is_none();
        let prefetches = !self.spec.levels[level].prefetch.is_empty();
        if prefetches && (demand || self.from.is_some_and(|from| level > from)) {
            self.see(level, core, line, bytes.0, hit, demand);
        }
        let allocates = !exclusive && (need.is_some() || rules.write_allocate);
        if demand {
            if !hit && let Some(sharing) = self.why_lost(level, place, self.touched) {
                self.log.events.push(Event::Lost(level, number, line, sharing));
                self.sharing.get_or_insert(sharing);
            }
            let found = match (hit, have.is_some(), allocates) {
                (true, _, _) => Found::Hit,
                (_, true, _) => Found::Part,
                (_, _, true) => Found::Miss,
                _ => Found::Passed,
            };
            self.log.events.push(Event::Asked(level, number, line, found));
        }
        let mut here = false;
        let mut out = None;
        if have.is_some() && exclusive && need.is_some() {
            let left = self.caches[level][place].take(line).unwrap();
            self.log.events.push(Event::MovedInwards(level, number, line));
            let (inner, inner_place) = waiting.expect("somebody needs the line");
            let held = self.caches[inner][inner_place].get(line).unwrap();
            held.sectors.extend(&left.sectors);
            if self.spec.levels[inner].write == Write::Back && !self.shared {
                held.dirty |= left.dirty;
            } else if left.dirty {
                self.write_back(level, place, &left);
            }
        } else if have.is_some() {
            self.caches[level][place].touch(line);
            self.caches[level][place].get(line).unwrap().sectors.extend(&missing);
            if !demand {
                self.log.events.push(Event::Reused(level, number, line));
            }
            here = true;
            self.log_filled(level, number, line, missing.len());
        } else if allocates {
            let ahead = (self.from == Some(level)).then(|| self.clock + self.on_the_way());
            out = self.caches[level][place].put(Line {
                line,
                dirty: false,
                owned: false,
                ahead,
                sectors: wanted.clone(),
            });
            if ahead.is_some() {
                let dropped = &mut self.caches[level][place].dropped;
                if dropped.get(&(line % 4096)) == Some(&line) {
                    dropped.remove(&(line % 4096));
                }
                if let Some(out) = out.as_ref().filter(|out| out.ahead.is_none()) {
                    dropped.insert(out.line % 4096, out.line);
                }
            }
            self.losses.remove(&(level, place, bytes.0 / self.granule));
            if !demand {
                self.log.events.push(Event::Entered(level, number, line));
            }
            here = true;
            self.log_filled(level, number, line, wanted.len());
        }
        if hit && demand {
            self.depth = Some(level);
        }
        let mut write_on = write;
        if write.is_some() {
            if here && rules.write == Write::Back {
                self.caches[level][place].get(line).unwrap().dirty = true;
                (write_on, self.kept_dirty) = (None, true);
            } else {
                self.traffic[level].passed_writes += 1;
            }
        }
        let waits = !hit && (here || need.is_some());
        let start = line * self.line_bytes(level);
        let need_on = waits.then(|| {
            let (low, high) = (missing.first().unwrap(), missing.last().unwrap());
            (start + low * self.unit(level), start + high * self.unit(level) + (self.unit(level) - 1))
        });
        if let Some(out) = out {
            self.evict(level, place, out);
        }
        self.ask(level + 1, core, need_on, write_on, if here { Some((level, place)) } else { waiting });
    }

    fn log_filled(&mut self, level: usize, number: usize, line: u64, sectors: usize) {
        if self.spec.levels[level].sector_bytes.is_some() && sectors > 0 {
            let bytes = sectors as u64 * self.unit(level);
            self.log.events.push(Event::Filled(level, number, line, bytes));
        }
    }

    fn why_lost(&mut self, level: usize, place: usize, touched: Bytes) -> Option<Sharing> {
        if level >= self.private {
            return None;
        }
        let loss = self.losses.remove(&(level, place, touched.0 / self.granule))?;
        // Granules of more than 64 bytes are told apart in units of 2, 4, … bytes.
        let grain = (self.granule / 64).max(1);
        let is_true = self.writes[loss.since..].iter().any(|(core, (first, last))| {
            self.place(level, *core) != place
                && first / self.granule == touched.0 / self.granule
                && first / grain <= touched.1 / grain
                && touched.0 / grain <= last / grain
        });
        Some(Sharing { is_true, by_core: loss.core as u32, by_tag: Tag::new(loss.tag) })
    }

    fn evict(&mut self, level: usize, place: usize, mut out: Line) {
        let number = self.number(level, place);
        self.log.events.push(Event::Evicted(level, number, out.line));
        self.prefetch[level].useless += u64::from(out.ahead.is_some());
        let cores = self.spec.levels[level].shape.shared_by as usize;
        let core = place * cores;
        if self.spec.levels[level].inclusion == Inclusion::Inclusive {
            for inner in 0..level {
                for inner_place in 0..self.caches[inner].len() {
                    if self.place(level, inner_place * self.spec.levels[inner].shape.shared_by as usize)
                        != place
                    {
                        continue;
                    }
                    let lines = self.line_bytes(level) / self.line_bytes(inner);
                    for line in out.line * lines..(out.line + 1) * lines {
                        let Some(left) = self.caches[inner][inner_place].take(line) else { continue };
                        let number = self.number(inner, inner_place);
                        self.log.events.push(Event::BackInvalidated(inner, number, line));
                        self.traffic[inner].back_invalidations += 1;
                        self.prefetch[inner].useless += u64::from(left.ahead.is_some());
                        self.counters[inner].write_backs += u64::from(left.dirty);
                        out.dirty |= left.dirty;
                    }
                }
            }
        }
        let outer = level + 1;
        let Some(rules) = self.spec.levels.get(outer).cloned() else {
            return if out.dirty {
                self.write_back(level, place, &out)
            };
        };
        if rules.inclusion != Inclusion::Exclusive {
            return if out.dirty {
                self.write_back(level, place, &out)
            };
        }
        let outer_place = self.place(outer, core);
        self.counters[level].write_backs += u64::from(out.dirty);
        let keeps = out.dirty && rules.write == Write::Back;
        if let Some(held) = self.caches[outer][outer_place].get(out.line) {
            held.sectors.extend(&out.sectors);
            held.dirty |= keeps;
        } else {
            let new = Line { dirty: keeps, owned: false, ahead: None, ..out.clone() };
            let next = self.caches[outer][outer_place].put(new);
            self.losses.remove(&(outer, outer_place, out.line * self.line_bytes(outer) / self.granule));
            self.log.events.push(Event::Entered(outer, self.number(outer, outer_place), out.line));
            if let Some(next) = next {
                self.evict(outer, outer_place, next);
            }
        }
        if out.dirty && !keeps {
            self.write_back(outer, outer_place, &out);
        }
    }

    fn write_back(&mut self, level: usize, place: usize, line: &Line) {
        let core = place * self.spec.levels[level].shape.shared_by as usize;
        let start = line.line * self.line_bytes(level);
        self.counters[level].write_backs += 1;
        for outer in level + 1..self.spec.levels.len() {
            let unit = self.unit(level);
            let sectors: BTreeSet<u64> = line
                .sectors
                .iter()
                .flat_map(|sector| {
                    self.sectors(outer, (start + sector * unit, start + sector * unit + (unit - 1)))
                })
                .collect();
            let (outer_place, outer_line) = (self.place(outer, core), start / self.line_bytes(outer));
            if self.spec.levels[outer].write == Write::Back
                && let Some(held) = self.caches[outer][outer_place].get(outer_line)
            {
                held.dirty = true;
                held.sectors.extend(sectors);
                return;
            }
            self.counters[outer].write_backs += 1;
        }
    }
}
