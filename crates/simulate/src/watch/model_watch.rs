//! What [`causes`](crate::watch::causes) finds of a hierarchy, of a [`Model`]: there lines also come without being asked for, and go
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
//! Records are where [`places`](crate::watch::records) says; above the stamp stands the [`LineState`]. Uses of some hundred lines of the first level are gathered, and entered with every cache on the core's way
//! that holds the line before anything happens to it there.

use rustc_hash::FxHashMap;

use crate::fragment::Fragment;
use crate::lru::hierarchy::{Found, Observer};
use crate::mem_ref::MemRef;
use crate::model::{Answer, Inclusion, Model, Sharing};
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::{At, Table};
use crate::tag::{LineState, Tag};
use crate::watch::causes::Level;
use crate::watch::misses::{Cause, CausesByLevel, Eviction, LevelDetail, evictions};
use crate::watch::pairs::Pairs;
use crate::watch::recent::{RECENT, Recent};
use crate::watch::records::{OUTER, Place, places};
use crate::watch::twin::{Before, Twin};

/// Misses of some accesses to a line because of others by another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedLine {
    /// Tag of the accesses that missed.
    pub tag: Tag,
    /// Tag of the writes that had taken the line.
    pub by: Tag,
    /// They touch the same bytes; else only the same line.
    pub is_true: bool,
    /// First address of the line, one of the first level.
    pub address: u64,
    /// How many.
    pub misses: u64,
}

/// Observes every line of a [`Model`].
pub(crate) struct ModelWatch {
    pub(crate) levels: Vec<Level>,
    pub(crate) exclusive: [bool; MAX_LEVELS],
    /// Lines come in sectors, which are counted as they come.
    sectored: [bool; MAX_LEVELS],
    pub(crate) caches: Vec<Layer>,
    pub(crate) tables: Vec<Table>,
    /// By core: its cache at each level.
    pub(crate) paths: Vec<[u32; MAX_LEVELS]>,
    /// By tag and level.
    counts: Vec<LevelDetail>,
    /// By level: who missed for whose sake.
    evictions: Vec<Pairs>,
    /// Misses by (tag, tag of the write, whether it is true sharing, first address of the line).
    sharing: FxHashMap<(Tag, Tag, bool, u64), u64>,
    pub(crate) now: Now,
    /// Lines that were touched of late, by the low bits of their numbers.
    pub(crate) recent: Box<[Recent; RECENT]>,
    /// Of these, the one that was touched last, and whether it is the most recent line of the first level's fully associative
    /// cache.
    pub(crate) last: usize,
    is_first: bool,
    /// The line's record at the level asked last.
    at: At,
    /// Cache, address and record of the line that came last, and of the one that went: they often come elsewhere next.
    came: (usize, u64, At),
    went: (usize, u64, At),
}

/// What is kept of one cache.
pub(crate) struct Layer {
    twin: Twin,
    pub(crate) place: Place,
    /// The cache outside.
    outer: usize,
}

/// The access under way.
#[derive(Default)]
pub(crate) struct Now {
    core: usize,
    pub(crate) first: u64,
    pub(crate) last: u64,
    tag: Tag,
    causes: CausesByLevel,
    /// The cache asked next has lost the line to this.
    lost: Option<Sharing>,
    /// What the access's miss is due to, and the address of the line.
    shared: Option<(Sharing, u64)>,
    /// Address of the line that was missed last for such a reason.
    lost_at: u64,
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
            recent: Box::new([Recent { line: u64::MAX, used: 0, core: 0, record: 0 }; RECENT]),
            last: 0,
            is_first: false,
            at: 0,
            came: (usize::MAX, 0, 0),
            went: (usize::MAX, 0, 0),
        }
    }

    /// One access; says what it met and its causes.
    #[inline]
    pub fn access(&mut self, model: &mut Model, access: MemRef) -> (Answer, CausesByLevel) {
        let answer = self.answer(model, access);
        (answer, if answer.depth == 0 { [None; MAX_LEVELS] } else { self.take_causes() })
    }

    /// The same; says what it met. If its depth is not 0, [`Self::take_causes`] is to follow.
    #[inline(always)]
    pub fn answer(&mut self, model: &mut Model, access: MemRef) -> Answer {
        self.begin_access(access);
        model.access_observed(access, self)
    }

    /// [`Self::answer`] of an access whose bytes are those of fragments, in this order; says as well which is the first as deep as it
    /// went.
    pub fn answer_fragments(
        &mut self,
        model: &mut Model,
        access: MemRef,
        fragments: &[Fragment],
    ) -> (Answer, u64) {
        let (mut answer, mut deepest) =
            (Answer::default(), fragments.first().map_or(0, |first| first.address));
        model.begin(access.core());
        for (number, &Fragment { address, bytes, is_write }) in fragments.iter().enumerate() {
            let fragment = MemRef { address, bytes, is_write, ..access };
            self.begin_access(fragment);
            let here = model.access_part(fragment, fragment.last(), number > 0, self);
            if here.depth > answer.depth {
                deepest = address;
            }
            answer.add(here);
        }
        (model.count_answer(access.is_write, answer), deepest)
    }

    /// An access, or a part of one, is under way, for which there is room.
    #[inline(always)]
    fn begin_access(&mut self, access: MemRef) {
        if (access.tag.index() + 1) * self.levels.len() > self.counts.len() {
            self.make_room(access.tag);
        }
        // The last byte matters only when there is one.
        (self.now.core, self.now.tag) = (access.core(), access.tag);
        (self.now.first, self.now.last) = (access.address, access.last());
    }

    /// Counts the causes of the access's misses, and says them.
    #[inline(never)]
    pub fn take_causes(&mut self) -> CausesByLevel {
        let tag = self.now.tag;
        let causes = std::mem::replace(&mut self.now.causes, [None; MAX_LEVELS]);
        for (level, cause) in causes.iter().map_while(|cause| *cause).enumerate() {
            self.count(tag, level).count(cause);
        }
        if let Some((sharing, address)) = self.now.shared.take() {
            *self.sharing.entry((tag, sharing.by_tag, sharing.is_true, address)).or_default() += 1;
        }
        causes
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
        (0..RECENT).for_each(|number| self.settle(number));
        let mut level = 0;
        for (cache, layer) in self.caches.iter().enumerate() {
            while self.paths.iter().all(|path| path[level] != cache as u32) {
                level += 1;
            }
            let Place { table, word, .. } = layer.place;
            for record in self.tables[table].records() {
                let tag = LineState::of(record[word]).fetched_by();
                if let Some(tag) = tag.filter(|_| !self.exclusive[level]) {
                    let counts = &mut self.counts[tag.index() * self.levels.len() + level];
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
    fn make_room(&mut self, tag: Tag) {
        assert!(tag.number() < Tag::LIMIT, "tags have numbers below {}, not {tag:?}", Tag::LIMIT);
        self.counts.resize((tag.index() + 1) * self.levels.len(), LevelDetail::default());
    }

    #[inline]
    fn count(&mut self, tag: Tag, level: usize) -> &mut LevelDetail {
        &mut self.counts[tag.index() * self.levels.len() + level]
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
        let by = LineState::of(*table.word(at, place.word)).whose();
        let lost = self.now.lost.take();
        let (cause, by) = match (lost, found, before) {
            (Some(Sharing { is_true: true, by_tag, .. }), _, _) => (Cause::TrueSharing, Some(by_tag)),
            (Some(Sharing { by_tag, .. }), _, _) => (Cause::FalseSharing, Some(by_tag)),
            (None, Found::Part, _) | (None, _, Before::Never) => (Cause::Cold, None),
            (None, _, Before::Lost) => (Cause::Capacity, by),
            (None, _, Before::Held) => (Cause::Conflict, by),
        };
        if let Some(by) = by {
            self.evictions[level].add(self.now.tag, by);
        }
        self.now.causes[level].get_or_insert(cause);
        if found == Found::Miss {
            let line = table.key(at);
            // What others have used of lines in it, while it was not here.
            if self.levels[level].line_shift != self.levels[0].line_shift {
                self.settle_if(level, line);
                self.note_use();
            }
            self.begin(level, cache, line, at);
        }
    }

    /// [`Self::touch`] of the first level, which is not exclusive, for most accesses: it has the line.
    #[inline(always)]
    fn hit_first(&mut self, cache: usize) {
        let Layer { twin, place, .. } = &mut self.caches[cache];
        if twin.touch(&mut self.tables[place.table], self.at) != Before::Held {
            self.count(self.now.tag, 0).spared += 1;
        }
    }

    /// A cache's twin has the line, too, as its most recent one, and no access waits for it.
    #[inline]
    fn touch_twin(&mut self, level: usize, cache: usize, at: At) {
        let Layer { twin, place, .. } = &mut self.caches[cache];
        twin.touch(&mut self.tables[place.table], at);
        self.is_first &= level > 0;
    }

    /// A cache has a line from now on.
    #[inline]
    fn begin(&mut self, level: usize, cache: usize, line: u64, at: At) {
        let tag = self.now.tag;
        let place = &self.caches[cache].place;
        let table = &mut self.tables[place.table];
        LineState::held(tag).put(table.word(at, place.word));
        *table.word(at, place.word + 1) = 0;
        self.came = (cache, line << self.levels[level].line_shift, at);
        if !self.exclusive[level] && !self.sectored[level] {
            self.count(tag, level).fetched_bytes += 1 << self.levels[level].line_shift;
        }
    }

    /// A cache does not have a line any more, because of accesses with the tag `by` if that is anybody's fault.
    fn end(&mut self, level: usize, cache: usize, line: u64, at: At, by: Option<Tag>) {
        self.settle_if(level, line);
        let place = &self.caches[cache].place;
        let table = &mut self.tables[place.table];
        // Of an exclusive level nothing is read: what it drops has not been looked at for long, and a store waits for nobody.
        if !self.exclusive[level]
            && let Some(tag) = LineState::of(*table.word(at, place.word)).fetched_by()
        {
            let used = self.levels[level].used_bytes(*table.word(at, place.word + 1));
            let counts = &mut self.counts[tag.index() * self.levels.len() + level];
            counts.evicted_lines += 1;
            counts.evicted_used_bytes += used;
        }
        LineState::left(by).put(table.word(at, place.word));
        self.went = (cache, line << self.levels[level].line_shift, at);
    }
}

/// The record of a line in the cache outside `inside`, from one there that lies in it.
#[inline]
pub(crate) fn outer(caches: &[Layer], tables: &mut [Table], inside: usize, record: At, line: u64) -> At {
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
        let (number, core) = (line as usize % RECENT, self.now.core as u32);
        let Recent { line: before, core: by, mut record, .. } = self.recent[number];
        let is_known = before == line && by == core;
        if !is_known {
            self.settle(number);
            record = self.tables[self.caches[cache].place.table].find(line);
            self.recent[number] = Recent { line, used: 0, core, record };
        } else if found != Found::Hit {
            self.settle(number); // with what holds the line, before others get it
        }
        self.is_first &= is_known && number == self.last;
        self.last = number;
        self.note_use();
        if !(self.is_first && found == Found::Hit) {
            self.is_first = found != Found::Passed;
            self.at = record;
            match found {
                Found::Hit => self.hit_first(cache),
                _ => self.touch(0, cache, found),
            }
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
        let line = if level == 0 { line } else { self.recent[self.last].line };
        let address = line << self.levels[0].line_shift;
        let again = std::mem::replace(&mut self.now.lost_at, address) == address;
        // Of several lines, the first that is truly shared, else the first; of a line, the innermost level: as in `Answer::sharing`.
        if self.now.shared.is_none_or(|(have, _)| sharing.is_true && !have.is_true && !again) {
            self.now.shared = Some((sharing, address));
        }
    }

    fn entered(&mut self, level: usize, cache: usize, line: u64) {
        self.settle_if(level, line);
        let at = self.find(level, cache, line);
        self.touch_twin(level, cache, at);
        self.begin(level, cache, line, at);
        if self.is_last(level, line) && self.recent[self.last].core as usize == self.now.core {
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

    fn invalidated(&mut self, level: usize, cache: usize, line: u64, at: At, _core: u32, tag: Tag) {
        self.end(level, cache, line, at, Some(tag));
        self.count(tag, level).invalidations += 1;
    }
}
