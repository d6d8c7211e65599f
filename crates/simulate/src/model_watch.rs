//! What [`causes`](crate::causes) finds of a hierarchy, of a [`Model`]: there lines also come without being asked for, and go
//! for other reasons than to make room.
//!
//! - A miss is **true** or **false sharing** if the cache lost the line to another core's write ([`Model`] says how they are
//!   told apart). Every other miss is cold, capacity or conflict, as in a hierarchy. The fully associative cache that is
//!   asked sees what the level sees: it keeps what the level keeps when it misses, and gets what is prefetched into the level, or
//!   what fits into neither would be called a conflict. So a line that was prefetched, and lost before it was used, is not
//!   cold. It knows nothing of what other cores do. That of an exclusive level gets what the level gets, and gives away what it
//!   is asked for.
//! - A sector that is missing from a line that is there is cold: with the line it was not asked for.
//! - A fetch begins when the cache gets the line, and is charged to the access that asked for it or that set off the
//!   prefetch. It ends when the line leaves, for whatever reason. Who made it leave is remembered as of any eviction.
//! - An exclusive level fetches nothing: it is given what the level inside has used.
//!
//! Records are where [`places`](crate::places) says; above the stamp stands the tag + 1 of the fetch, marked as held, or of what
//! made the line leave. Uses are gathered as long as
//! accesses stay in one line of the first level, and entered with every cache on the core's way that holds the line, before
//! anything happens to it there.

use rustc_hash::FxHashMap;

use crate::causes::{Cause, CausesByLevel, Eviction, HELD, Level, LevelDetail, evictions};
use crate::hierarchy::{Found, Observer};
use crate::model::{Answer, Inclusion, Model, Sharing};
use crate::pairs::Pairs;
use crate::places::{OUTER, Place, places};
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::twin::{Before, Twin};
use crate::uses::widen;

/// Misses of some accesses to a line because of others by another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedLine {
    /// Tag of the accesses that missed.
    pub tag: u32,
    /// Tag of the writes that had taken the line.
    pub by: u32,
    /// They touch the same bytes; else only the same line.
    pub is_true: bool,
    /// First address of the line, one of the first level.
    pub address: u64,
    /// How many.
    pub misses: u64,
}

/// Observes every line of a [`Model`].
pub(crate) struct ModelWatch {
    levels: Vec<Level>,
    exclusive: [bool; MAX_LEVELS],
    /// Lines come in sectors, which are counted as they come.
    sectored: [bool; MAX_LEVELS],
    caches: Vec<Layer>,
    tables: Vec<Table>,
    /// By core: its cache at each level.
    paths: Vec<[u32; MAX_LEVELS]>,
    /// By tag and level.
    counts: Vec<LevelDetail>,
    /// By level: who missed for whose sake.
    evictions: Vec<Pairs>,
    /// Misses by (tag, tag of the write, whether it is true sharing, first address of the line).
    sharing: FxHashMap<(u32, u32, bool, u64), u64>,
    now: Now,
    last: Last,
    /// The line's record at the level asked last.
    at: At,
    /// Cache, address and record of the line that came last, and of the one that went: they often come elsewhere next.
    came: (usize, u64, At),
    went: (usize, u64, At),
}

/// What is kept of one cache.
struct Layer {
    twin: Twin,
    place: Place,
    /// The cache outside.
    outer: usize,
}

/// The access under way.
#[derive(Default)]
struct Now {
    core: usize,
    first: u64,
    last: u64,
    tag: u32,
    causes: CausesByLevel,
    /// The cache asked next has lost the line to this.
    lost: Option<Sharing>,
    /// What the access's miss is due to, and the address of the line.
    shared: Option<(Sharing, u64)>,
}

/// The line that was touched last, and uses of it that are not in the records yet.
struct Last {
    core: usize,
    /// Line of the first level.
    line: u64,
    record: At,
    /// Bits as in the first level.
    used: u64,
    /// It is the most recent line of the first level's fully associative cache.
    is_first: bool,
}

impl ModelWatch {
    /// Watches a model from its beginning: it must not have simulated anything yet.
    pub fn new(model: &Model) -> ModelWatch {
        let spec = model.spec();
        let shapes: Vec<LevelSpec> = spec.levels.iter().map(|level| level.shape).collect();
        let (places, strides) = places(&shapes, spec.cores);
        let mut caches = Vec::with_capacity(places.len());
        let (mut exclusive, mut sectored) = ([false; MAX_LEVELS], [false; MAX_LEVELS]);
        for (i, level) in spec.levels.iter().enumerate() {
            let lines = (level.shape.bytes / u64::from(level.shape.line_bytes)) as u32;
            for core in (0..spec.cores as usize).step_by(level.shape.shared_by as usize) {
                let place = places[caches.len()];
                let outer = if i + 1 < shapes.len() { model.cache_of(core, i + 1) } else { usize::MAX };
                caches.push(Layer { twin: Twin::new(lines, place.word), place, outer });
            }
            exclusive[i] = level.inclusion == Inclusion::Exclusive;
            sectored[i] = level.sector_bytes.is_some();
        }
        let path = |core| {
            let mut path = [0; MAX_LEVELS];
            (0..spec.levels.len()).for_each(|level| path[level] = model.cache_of(core, level) as u32);
            path
        };
        ModelWatch {
            levels: spec.levels.iter().map(|level| Level::new(&level.shape)).collect(),
            exclusive,
            sectored,
            caches,
            tables: strides.into_iter().map(Table::new).collect(),
            paths: (0..spec.cores as usize).map(path).collect(),
            counts: Vec::new(),
            evictions: vec![Pairs::default(); spec.levels.len()],
            sharing: FxHashMap::default(),
            now: Now::default(),
            // No line has this number: lines have at least 4 bytes.
            last: Last { core: 0, line: u64::MAX, record: 0, used: 0, is_first: false },
            at: 0,
            came: (usize::MAX, 0, 0),
            went: (usize::MAX, 0, 0),
        }
    }

    /// One access; says what it met and its causes.
    #[inline]
    pub fn access(
        &mut self,
        model: &mut Model,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        tag: u32,
    ) -> (Answer, CausesByLevel) {
        if (tag as usize + 1) * self.levels.len() > self.counts.len() {
            self.make_room(tag);
        }
        // The last byte matters only when there is one.
        let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
        (self.now.core, self.now.first, self.now.last, self.now.tag) = (core, address, last, tag);
        let answer = model.access_observed(core, address, bytes, is_write, tag, self);
        if answer.depth == 0 {
            return (answer, [None; MAX_LEVELS]);
        }
        let causes = std::mem::replace(&mut self.now.causes, [None; MAX_LEVELS]);
        for (level, cause) in causes.iter().map_while(|cause| *cause).enumerate() {
            self.count(tag, level).count(cause);
        }
        if let Some((sharing, address)) = self.now.shared.take() {
            *self.sharing.entry((tag, sharing.by_tag, sharing.is_true, address)).or_default() += 1;
        }
        (answer, causes)
    }

    /// Line of the first level.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.levels[0].line_shift
    }

    /// Records of the lines of a core's first level.
    #[inline(always)]
    pub fn innermost(&self, core: usize) -> &Table {
        &self.tables[self.caches[self.paths[core][0] as usize].place.table]
    }

    /// By tag and, innermost first, level; by level, who missed for whose sake; and misses for other cores' sake.
    pub fn finish(mut self) -> (Vec<LevelDetail>, Vec<Vec<Eviction>>, Vec<SharedLine>) {
        self.settle();
        let mut level = 0;
        for (cache, layer) in self.caches.iter().enumerate() {
            while self.paths.iter().all(|path| path[level] != cache as u32) {
                level += 1;
            }
            let Place { table, word, .. } = layer.place;
            for record in self.tables[table].records() {
                if let Some(tag) = fetched_by(record[word]).filter(|_| !self.exclusive[level]) {
                    let counts = &mut self.counts[tag as usize * self.levels.len() + level];
                    counts.resident_lines += 1;
                    counts.resident_used_bytes += self.levels[level].used_bytes(record[word + 1]);
                }
            }
        }
        let line = |((tag, by, is_true, address), misses)| SharedLine { tag, by, is_true, address, misses };
        let mut sharing: Vec<SharedLine> = self.sharing.into_iter().map(line).collect();
        sharing.sort_unstable();
        (self.counts, evictions(&self.evictions), sharing)
    }

    /// Bytes of memory that grow with the number of distinct lines.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, tag: u32) {
        assert!(tag < HELD - 1, "a tag is below 2^31 - 1, not {tag}");
        self.counts.resize((tag as usize + 1) * self.levels.len(), LevelDetail::default());
    }

    #[inline]
    fn count(&mut self, tag: u32, level: usize) -> &mut LevelDetail {
        &mut self.counts[tag as usize * self.levels.len() + level]
    }

    /// The line's record in a cache that it comes to without being asked for.
    fn find(&mut self, level: usize, cache: usize, line: u64) -> At {
        let table = self.caches[cache].place.table;
        for (near, address, record) in [self.came, self.went] {
            if address >> self.levels[level].line_shift != line {
                continue;
            }
            match self.caches.get(near) {
                Some(near) if near.place.table == table => return record,
                Some(inside) if inside.outer == cache => {
                    return outer(&self.caches, &mut self.tables, near, record, line);
                }
                _ => {}
            }
        }
        self.tables[table].find(line)
    }

    /// Enters the uses of the last line with every cache on the core's way that has it.
    #[inline]
    fn settle(&mut self) {
        let Last { core, line, mut record, used, .. } = self.last;
        if used == 0 {
            return;
        }
        self.last.used = 0;
        let inner = &self.levels[0];
        let path = &self.paths[core];
        for (level, shape) in self.levels.iter().enumerate() {
            if level > 0 {
                let line = line << inner.line_shift >> shape.line_shift;
                let inside = path[level - 1] as usize;
                record = outer(&self.caches, &mut self.tables, inside, record, line);
            }
            let Place { table, word, .. } = self.caches[path[level] as usize].place;
            let table = &mut self.tables[table];
            if !self.exclusive[level] && fetched_by(*table.word(record, word)).is_some() {
                *table.word(record, word + 1) |= if shape.line_shift == inner.line_shift {
                    used
                } else {
                    widen(inner, shape, line << inner.line_shift, used)
                };
            }
        }
    }

    /// To be called before something happens to a line otherwise than by asking for it.
    #[inline]
    fn settle_if(&mut self, level: usize, line: u64) {
        if self.last.used != 0 && self.is_last(level, line) {
            self.settle();
        }
    }

    /// Whether the line that was touched last lies in this one.
    #[inline]
    fn is_last(&self, level: usize, line: u64) -> bool {
        self.last.line << self.levels[0].line_shift >> self.levels[level].line_shift == line
    }

    /// Notes what the access under way uses of the last line.
    #[inline]
    fn note_use(&mut self) {
        let inner = &self.levels[0];
        let start = self.last.line << inner.line_shift;
        let end = start + ((1 << inner.line_shift) - 1);
        self.last.used |= inner.bits(self.now.first.max(start), self.now.last.min(end));
    }

    /// A cache was asked for the line at hand, and this is not one more hit of the line that was touched last.
    fn touch(&mut self, level: usize, cache: usize, found: Found) {
        let (at, exclusive) = (self.at, self.exclusive[level]);
        let Layer { twin, place, .. } = &mut self.caches[cache];
        let table = &mut self.tables[place.table];
        let before = match twin.look(table, at) {
            // What is here may move inwards, and we are told if it does.
            before if exclusive && found != Found::Passed => before,
            Before::Held if !exclusive => twin.touch(table, at),
            _ if found == Found::Passed => twin.take(table, at),
            _ => twin.touch(table, at),
        };
        if found == Found::Hit {
            self.count(self.now.tag, level).spared += u64::from(before != Before::Held);
            return;
        }
        let by = (*table.word(at, place.word) >> 32) as u32;
        let lost = self.now.lost.take();
        let (cause, by) = match (lost, found, before) {
            (Some(Sharing { is_true: true, by_tag, .. }), _, _) => (Cause::TrueSharing, Some(by_tag)),
            (Some(Sharing { by_tag, .. }), _, _) => (Cause::FalseSharing, Some(by_tag)),
            (None, Found::Part, _) | (None, _, Before::Never) => (Cause::Cold, None),
            (None, _, Before::Lost) => (Cause::Capacity, by.checked_sub(1)),
            (None, _, Before::Held) => (Cause::Conflict, by.checked_sub(1)),
        };
        if let Some(by) = by {
            self.evictions[level].add(self.now.tag, by);
        }
        self.now.causes[level].get_or_insert(cause);
        if found == Found::Miss {
            let line = table.key(at);
            self.begin(level, cache, line, at);
        }
    }

    /// A cache's twin has the line, too, as its most recent one, and no access waits for it.
    #[inline]
    fn touch_twin(&mut self, level: usize, cache: usize, at: At) {
        let Layer { twin, place, .. } = &mut self.caches[cache];
        twin.touch(&mut self.tables[place.table], at);
        self.last.is_first &= level > 0;
    }

    /// A cache has a line from now on.
    #[inline]
    fn begin(&mut self, level: usize, cache: usize, line: u64, at: At) {
        let tag = self.now.tag;
        let place = &self.caches[cache].place;
        let table = &mut self.tables[place.table];
        let state = table.word(at, place.word);
        *state = u64::from(*state as u32) | u64::from((tag + 1) | HELD) << 32;
        *table.word(at, place.word + 1) = 0;
        self.came = (cache, line << self.levels[level].line_shift, at);
        if !self.exclusive[level] && !self.sectored[level] {
            self.count(tag, level).fetched_bytes += 1 << self.levels[level].line_shift;
        }
    }

    /// A cache does not have a line any more, because of accesses with the tag `by` if that is anybody's fault.
    fn end(&mut self, level: usize, cache: usize, line: u64, at: At, by: Option<u32>) {
        self.settle_if(level, line);
        let place = &self.caches[cache].place;
        let table = &mut self.tables[place.table];
        // Of an exclusive level nothing is read: what it drops has not been looked at for long, and a store waits for nobody.
        if !self.exclusive[level]
            && let Some(tag) = fetched_by(*table.word(at, place.word))
        {
            let used = self.levels[level].used_bytes(*table.word(at, place.word + 1));
            let counts = &mut self.counts[tag as usize * self.levels.len() + level];
            counts.evicted_lines += 1;
            counts.evicted_used_bytes += used;
        }
        let state = table.word(at, place.word);
        *state = u64::from(*state as u32) | by.map_or(0, |by| u64::from(by + 1) << 32);
        self.went = (cache, line << self.levels[level].line_shift, at);
    }
}

/// The tag of a fetch that has not ended.
#[inline]
fn fetched_by(state: u64) -> Option<u32> {
    let tag = (state >> 32) as u32;
    (tag & HELD != 0).then(|| (tag & !HELD) - 1)
}

/// The record of a line in the cache outside `inside`, from one there that lies in it.
#[inline]
fn outer(caches: &[Layer], tables: &mut [Table], inside: usize, record: At, line: u64) -> At {
    let (inner, outer) = (caches[inside].place.table, caches[caches[inside].outer].place.table);
    if inner == outer {
        return record;
    }
    match *tables[inner].word(record, OUTER) {
        0 => {
            let at = tables[outer].find(line);
            *tables[inner].word(record, OUTER) = u64::from(at) + 1;
            at
        }
        known => (known - 1) as At,
    }
}

impl Observer for ModelWatch {
    #[inline]
    fn asked(&mut self, level: usize, cache: usize, line: u64, found: Found) {
        if level > 0 {
            let inside = self.paths[self.now.core][level - 1] as usize;
            self.at = outer(&self.caches, &mut self.tables, inside, self.at, line);
            self.note_use(); // An exclusive level may have dropped the line to make room for what the level inside did.
            return self.touch(level, cache, found);
        }
        let again = self.last.line == line && self.last.core == self.now.core;
        if !again {
            self.settle();
            let record = self.tables[self.caches[cache].place.table].find(line);
            self.last = Last { core: self.now.core, line, record, used: 0, is_first: false };
        } else if found != Found::Hit {
            self.settle(); // with what holds the line, before others get it
        }
        self.note_use();
        if !(self.last.is_first && found == Found::Hit) {
            self.last.is_first = found != Found::Passed;
            self.at = self.last.record;
            self.touch(0, cache, found);
        }
    }

    fn evicted(&mut self, level: usize, cache: usize, line: u64, at: At) {
        self.end(level, cache, line, at, Some(self.now.tag));
    }

    fn note(&self) -> u32 {
        self.came.2
    }

    fn lost(&mut self, level: usize, _cache: usize, line: u64, sharing: Sharing) {
        self.now.lost = Some(sharing);
        let line = if level == 0 { line } else { self.last.line };
        let address = line << self.levels[0].line_shift;
        // Of several lines, the first that is truly shared, else the first, as in `Answer::sharing`.
        let better = |(have, at): (Sharing, u64)| sharing.is_true && !have.is_true && at != address;
        if self.now.shared.is_none_or(better) {
            self.now.shared = Some((sharing, address));
        }
    }

    fn entered(&mut self, level: usize, cache: usize, line: u64) {
        self.settle_if(level, line);
        let at = self.find(level, cache, line);
        self.touch_twin(level, cache, at);
        self.begin(level, cache, line, at);
        if self.is_last(level, line) && self.last.core == self.now.core {
            self.note_use();
        }
    }

    fn reused(&mut self, level: usize, cache: usize, line: u64) {
        if !self.exclusive[level] {
            let at = self.find(level, cache, line);
            self.touch_twin(level, cache, at);
        }
    }

    fn filled(&mut self, level: usize, _cache: usize, _line: u64, bytes: u64) {
        if !self.exclusive[level] {
            self.count(self.now.tag, level).fetched_bytes += bytes;
        }
    }

    fn moved_inwards(&mut self, level: usize, cache: usize, line: u64, at: At) {
        self.end(level, cache, line, at, None);
        let Layer { twin, place, .. } = &mut self.caches[cache];
        twin.take(&mut self.tables[place.table], at);
    }

    fn invalidated(&mut self, level: usize, cache: usize, line: u64, at: At, _core: u32, tag: u32) {
        self.end(level, cache, line, at, Some(tag));
        self.count(tag, level).invalidations += 1;
    }
}
