//! A [`Model`] that is watched. In a model, lines also come without a request, and leave for other
//! reasons than to make room.
//!
//! - The fully associative cache sees what the level sees: it keeps what the level keeps on a miss,
//!   and gets the lines that are prefetched into the level; otherwise lines that fit into neither
//!   would be called conflicts. So a line that was prefetched, and lost before it was used, is not
//!   cold. The cache knows nothing of other cores. That of an exclusive level gets the lines that
//!   the level gets, and gives away the lines that are requested.
//! - A missing sector of a line that is there is cold: it was not requested with the line.
//! - A fetch begins when the cache gets the line, and is charged to the access that requested it or
//!   that set off the prefetch. It ends when the line leaves, for any reason. The tag that made it
//!   leave is remembered, as for any eviction.
//! - An exclusive level fetches nothing: it gets what the level inside has used.
//!
//! Uses of some hundred lines of the first level are gathered ([`recent`]). They are entered with
//! every cache on the core's way that holds the line, before anything happens to it there
//! ([`Uses::AtEachLevel`]).

mod recent;

use rustc_hash::FxHashMap;

use crate::fragment::Fragment;
use crate::loops::Strided;
use crate::lru::hierarchy::{Found, LevelCounters, Observer};
use crate::mem_ref::MemRef;
use crate::model::{Answer, Inclusion, Model, Sharing};
use crate::spec::{LevelSpec, MAX_LEVELS};
use crate::table::At;
use crate::tag::{LineState, Tag};
use crate::watch::batch::{AFTER_A_MISS, FAR, NEAR, jump};
use crate::watch::detailed::ModelDetails;
use crate::watch::misses::CausesByLevel;
use crate::watch::model::recent::{RECENT, Recent};
use crate::watch::records::{Place, Uses};
use crate::watch::twin::{Before, Twin};
use crate::watch::watched::{Found as AllFound, Miss, Watched, WatchedCaches};
use crate::watch::watcher::Watcher;

/// No line has this number: lines have at least 4 bytes.
const NO_LINE: u64 = u64::MAX;

/// Accesses of a loop that are written out at a time.
const UNROLLED: usize = 256;

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
    /// Number of misses.
    pub misses: u64,
}

/// A [`Model`] whose every line is watched.
pub(crate) struct WatchedModel {
    model: Model,
    lines: Lines,
}

/// Passes what it observes of a model's lines to a [`Watcher`].
struct Lines {
    watcher: Watcher,
    caches: Vec<Layer>,
    /// Misses by (tag, tag of the write, whether it is true sharing, first address of the line).
    sharing: FxHashMap<(Tag, Tag, bool, u64), u64>,
    now: Now,
    /// Lines that were touched of late, by the low bits of their numbers.
    recent: Box<[Recent; RECENT]>,
    /// The last-touched line of these, and whether it is the most recent line of the first level's
    /// fully associative cache.
    last: usize,
    is_first: bool,
    /// The line's record at the level that was looked up last.
    at: At,
    /// Cache, address and record of the line that came last, and of the one that went: they often
    /// come elsewhere next.
    came: (usize, u64, At),
    went: (usize, u64, At),
}

/// State of one cache.
struct Layer {
    twin: Twin,
    place: Place,
    /// The cache outside.
    outer: usize,
}

/// The access under way.
struct Now {
    /// Its bytes.
    first: u64,
    last: u64,
    /// The reason for which the cache that is looked up next has lost the line.
    lost: Option<Sharing>,
    /// The write that the access's miss is due to, and the address of the line.
    shared: Option<(Sharing, u64)>,
    /// Address of the line that was missed last for such a reason.
    lost_at: u64,
    /// The line of the first level that another core's cache holds; no line's number if none does.
    held: u64,
}

impl WatchedModel {
    /// Watches a model from its beginning: it must not have simulated anything yet.
    pub fn new(model: Model) -> WatchedModel {
        let spec = model.spec();
        let shapes: Vec<LevelSpec> = spec.levels.iter().map(|level| level.shape).collect();
        let cache_of = |core, level| model.cache_of(core, level);
        let mut watcher = Watcher::new(&shapes, spec.cores, cache_of, Uses::AtEachLevel);
        let mut caches = Vec::with_capacity(watcher.places.len());
        for (i, level) in spec.levels.iter().enumerate() {
            let lines = (level.shape.bytes / u64::from(level.shape.line_bytes)) as u32;
            for core in (0..spec.cores as usize).step_by(level.shape.shared_by as usize) {
                let place = watcher.places[caches.len()];
                let outer = if i + 1 < shapes.len() { model.cache_of(core, i + 1) } else { usize::MAX };
                caches.push(Layer { twin: Twin::new(lines, place.word), place, outer });
            }
            watcher.exclusive[i] = level.inclusion == Inclusion::Exclusive;
            watcher.sectored[i] = level.sector_bytes.is_some();
        }
        let lines = Lines {
            watcher,
            caches,
            sharing: FxHashMap::default(),
            now: Now { first: 0, last: 0, lost: None, shared: None, lost_at: 0, held: NO_LINE },
            recent: Box::new([Recent { line: NO_LINE, used: 0, core: 0, record: 0 }; RECENT]),
            last: 0,
            is_first: false,
            at: 0,
            came: (usize::MAX, 0, 0),
            went: (usize::MAX, 0, 0),
        };
        WatchedModel { model, lines }
    }

    /// Simulates one access. If its depth is not 0, [`Lines::take`] is to follow.
    #[inline(always)]
    fn answer(&mut self, access: MemRef) -> Answer {
        self.lines.begin(access);
        self.model.access_observed(access, &mut self.lines)
    }
}

impl WatchedCaches for WatchedModel {
    fn access(&mut self, access: MemRef) -> Watched {
        let Answer { depth, sharing, .. } = self.answer(access);
        let causes = if depth == 0 { [None; MAX_LEVELS] } else { self.lines.take() };
        Watched { depth, sharing, causes }
    }

    fn access_all(&mut self, accesses: &[MemRef], missed: &mut Vec<Miss>) {
        // For how many accesses it is worth while to look ahead.
        let mut looks = 0;
        for (number, access) in accesses.iter().enumerate() {
            if looks > 0 {
                looks -= 1;
                // Fetches what leads to the record of a line that comes in a while, and soon the record.
                let watcher = &self.lines.watcher;
                if let Some(far) = jump(accesses, number + FAR) {
                    watcher.innermost(far.core()).prefetch_index(watcher.line(far.address));
                }
                if let Some(near) = jump(accesses, number + NEAR) {
                    watcher.innermost(near.core()).prefetch_record(watcher.line(near.address));
                }
            }
            let depth = self.answer(*access).depth;
            if depth > 0 {
                self.lines.take();
                looks = AFTER_A_MISS;
                missed.push((*access, depth));
            }
        }
    }

    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) -> (u8, u64) {
        let WatchedModel { model, lines } = self;
        let (mut answer, mut deepest) =
            (Answer::default(), fragments.first().map_or(0, |first| first.address));
        model.begin(access.core());
        for (number, &Fragment { address, bytes, is_write }) in fragments.iter().enumerate() {
            let fragment = MemRef { address, bytes, is_write, ..access };
            lines.begin(fragment);
            let here = model.access_part(fragment, fragment.last(), number > 0, lines);
            if here.depth > answer.depth {
                deepest = address;
            }
            answer.add(here);
        }
        let depth = model.count_answer(access.is_write, answer).depth;
        if depth > 0 {
            lines.take();
        }
        (depth, deepest)
    }

    fn access_iterations(
        &mut self,
        core: usize,
        iterations: u64,
        strides: &[Strided],
        missed: &mut Vec<Miss>,
    ) {
        // The rules of a model may depend on any access.
        let mut accesses = Vec::with_capacity(UNROLLED + strides.len());
        for iteration in 0..iterations {
            accesses.extend(strides.iter().map(|stride| stride.access_in(core, iteration)));
            if accesses.len() >= UNROLLED || iteration + 1 == iterations {
                self.access_all(&accesses, missed);
                accesses.clear();
            }
        }
    }

    fn counters(&self) -> Vec<LevelCounters> {
        self.model.counters()
    }

    fn first_level(&self) -> &LevelSpec {
        &self.model.spec().levels[0].shape
    }

    fn last_level(&self) -> (&LevelSpec, u64) {
        let levels = &self.model.spec().levels;
        (&levels[levels.len() - 1].shape, self.model.written_back())
    }

    fn watcher(&self) -> &Watcher {
        &self.lines.watcher
    }

    fn finish(self: Box<Self>) -> AllFound {
        let WatchedModel { model, mut lines } = *self;
        (0..RECENT).for_each(|number| lines.settle(number));
        let line = |((tag, by, is_true, address), misses)| SharedLine { tag, by, is_true, address, misses };
        let mut sharing: Vec<SharedLine> = lines.sharing.into_iter().map(line).collect();
        sharing.sort_unstable();
        let (traffic, prefetch) = (model.traffic().to_vec(), model.prefetch().to_vec());
        let details = ModelDetails { sharing, coherence: model.coherence(), traffic, prefetch };
        let (counts, evictions) = lines.watcher.finish();
        AllFound { counts, evictions, model: Some(details) }
    }
}

impl Lines {
    /// Begins an access, or a part of one, and makes room for its tag.
    #[inline(always)]
    fn begin(&mut self, access: MemRef) {
        self.watcher.has_room(access.tag);
        self.watcher.begin(access.core(), access.tag);
        // The last byte matters only when there is one.
        (self.now.first, self.now.last) = (access.address, access.last());
        self.now.held = NO_LINE;
    }

    /// Ends an access that missed: counts its causes, and the line that it shares; returns the
    /// causes.
    #[inline(never)]
    fn take(&mut self) -> CausesByLevel {
        if let Some((sharing, address)) = self.now.shared.take() {
            let line = (self.watcher.tag, sharing.by_tag, sharing.is_true, address);
            *self.sharing.entry(line).or_default() += 1;
        }
        self.watcher.take()
    }

    /// Finds the line's record in a cache that gets the line without a request.
    fn find(&mut self, level: usize, cache: usize, line: u64) -> At {
        let table = self.caches[cache].place.table;
        for (near, address, record) in [self.came, self.went] {
            if address >> self.watcher.levels[level].line_shift != line {
                continue;
            }
            match self.caches.get(near) {
                Some(near) if near.place.table == table => return record,
                Some(inside) if inside.outer == cache => {
                    return self.watcher.outside(inside.place.table, record, table, line);
                }
                _ => {}
            }
        }
        self.watcher.tables[table].find(line)
    }

    /// Records that a cache was looked up for the current line, unless this is one more hit of the
    /// line that was touched last.
    fn touch(&mut self, level: usize, cache: usize, found: Found) {
        let (at, is_exclusive) = (self.at, self.watcher.exclusive[level]);
        let Layer { twin, place, .. } = &mut self.caches[cache];
        let table = &mut self.watcher.tables[place.table];
        let before = match twin.look(table, at) {
            // What is here may move inwards, and we are told if it does.
            before if is_exclusive && found != Found::Passed => before,
            Before::Held if !is_exclusive => twin.touch(table, at),
            _ if found == Found::Passed => twin.take(table, at),
            _ => twin.touch(table, at),
        };
        if found == Found::Hit {
            if before != Before::Held {
                self.watcher.spared(level);
            }
            return;
        }
        let (line, left_by) = (table.key(at), LineState::of(table.get(at, place.word)).whose());
        let before = if found == Found::Part { Before::Never } else { before };
        let is_held = self.now.held == self.recent[self.last].line;
        self.watcher.missed(level, self.now.lost.take(), is_held, before, left_by);
        if found == Found::Miss {
            // Enters what others have used of lines in it, while it was not here.
            if self.watcher.levels[level].line_shift != self.watcher.levels[0].line_shift {
                self.settle_if(level, line);
                self.note_use();
            }
            self.fetch(level, cache, line, at);
        }
    }

    /// [`Self::touch`] of the first level, which is not exclusive, for most accesses: it has the
    /// line.
    #[inline(always)]
    fn hit_first(&mut self, cache: usize) {
        let Layer { twin, place, .. } = &mut self.caches[cache];
        if twin.touch(&mut self.watcher.tables[place.table], self.at) != Before::Held {
            self.watcher.spared(0);
        }
    }

    /// Makes the line the most recent one of the cache's twin, too; no access waits for it.
    #[inline]
    fn touch_twin(&mut self, level: usize, cache: usize, at: At) {
        let Layer { twin, place, .. } = &mut self.caches[cache];
        twin.touch(&mut self.watcher.tables[place.table], at);
        self.is_first &= level > 0;
    }

    /// Begins a fetch of a cache, and remembers it as the last one.
    #[inline]
    fn fetch(&mut self, level: usize, cache: usize, line: u64, at: At) {
        self.watcher.fetched(self.caches[cache].place, at);
        self.came = (cache, line << self.watcher.levels[level].line_shift, at);
    }

    /// Ends a fetch of a cache, because of accesses with the tag `by`, if there is one.
    fn end(&mut self, level: usize, cache: usize, line: u64, at: At, by: Option<Tag>) {
        self.settle_if(level, line);
        self.watcher.left(level, self.caches[cache].place, at, by);
        self.went = (cache, line << self.watcher.levels[level].line_shift, at);
    }
}

impl Observer for Lines {
    #[inline]
    fn asked(&mut self, level: usize, cache: usize, line: u64, found: Found) {
        if level > 0 {
            let inside = self.watcher.paths[self.watcher.core][level - 1] as usize;
            let [inner, outer] = [inside, cache].map(|cache| self.caches[cache].place.table);
            self.at = self.watcher.outside(inner, self.at, outer, line);
            self.note_use(); // An exclusive level may have dropped the line to make room for what the level inside did.
            return self.touch(level, cache, found);
        }
        let (number, core) = (line as usize % RECENT, self.watcher.core as u32);
        let Recent { line: before, core: by, mut record, .. } = self.recent[number];
        let is_known = before == line && by == core;
        if !is_known {
            self.settle(number);
            record = self.watcher.tables[self.caches[cache].place.table].find(line);
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
        self.end(level, cache, line, at, Some(self.watcher.tag));
    }

    fn note(&self) -> u32 {
        self.came.2
    }

    fn lost(&mut self, level: usize, _cache: usize, line: u64, sharing: Sharing) {
        self.now.lost = Some(sharing);
        let line = if level == 0 { line } else { self.recent[self.last].line };
        let address = line << self.watcher.levels[0].line_shift;
        let again = std::mem::replace(&mut self.now.lost_at, address) == address;
        // Of several lines, the first that is truly shared, else the first; of a line, the innermost level: as in `Answer::sharing`.
        if self.now.shared.is_none_or(|(have, _)| sharing.is_true && !have.is_true && !again) {
            self.now.shared = Some((sharing, address));
        }
    }

    fn held_elsewhere(&mut self, line: u64) {
        self.now.held = line;
    }

    fn entered(&mut self, level: usize, cache: usize, line: u64) {
        self.settle_if(level, line);
        let at = self.find(level, cache, line);
        self.touch_twin(level, cache, at);
        self.fetch(level, cache, line, at);
        if self.is_last(level, line) && self.recent[self.last].core as usize == self.watcher.core {
            self.note_use();
        }
    }

    fn reused(&mut self, level: usize, cache: usize, line: u64) {
        if !self.watcher.exclusive[level] {
            let at = self.find(level, cache, line);
            self.touch_twin(level, cache, at);
        }
    }

    fn filled(&mut self, level: usize, _cache: usize, _line: u64, bytes: u64) {
        if !self.watcher.exclusive[level] {
            self.watcher.count(self.watcher.tag, level).fetched_bytes += bytes;
        }
    }

    fn moved_inwards(&mut self, level: usize, cache: usize, line: u64, at: At) {
        self.end(level, cache, line, at, None);
        let Layer { twin, place, .. } = &mut self.caches[cache];
        twin.take(&mut self.watcher.tables[place.table], at);
    }

    fn invalidated(&mut self, level: usize, cache: usize, line: u64, at: At, _core: u32, tag: Tag) {
        self.end(level, cache, line, at, Some(tag));
        self.watcher.count(tag, level).invalidations += 1;
    }
}
