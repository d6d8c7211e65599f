//! The fast path of almost every access: to one line, of memory whose class is known, by a site
//! whose cell is known. The loop over these accesses keeps in registers what each of them needs. It
//! calls other code only for lines that are not the most recent ones of their sets, for memory of
//! no object, and for sites that change from one class to another.

use memlode_replay::Events;
use memlode_simulate::{Asked, MemRef, Tag};
use memlode_trace::event::{Access, Mark};
use memlode_trace::sites::{Site, SiteId};
use rustc_hash::FxHashMap;

use crate::count::cells::{ANY, CellCounts, Found, FoundCells, key};
use crate::count::contexts::Context;
use crate::count::engine::{Engine, Lane, NO_PLACE};
use crate::count::profiler::{KnownSites, Memory, Profiler, Stream};
use crate::count::route::Direct;
use crate::objects::classes::ClassId;
use crate::objects::granules::Known;
use crate::objects::stacks::ThreadStack;
use crate::objects::{NOBODY, Objects};

/// Facts about a site that the loop needs, in one place.
#[derive(Clone, Copy)]
pub(crate) struct SiteFacts {
    /// Context and class of the cell that the site used last.
    pub key: u64,
    /// Hits of that cell, and accesses that wait, that are counted here alone so far.
    pub hits: u64,
    /// The cell.
    pub cell: u32,
    /// All objects of the site are of this class, wherever they lie.
    pub is_fixed: bool,
    pub is_write: bool,
    /// The site stores past the caches. It remembers no cell, and takes the slow path.
    pub is_past_caches: bool,
}

impl SiteFacts {
    /// Returns the facts of a site that was not used yet.
    pub fn new(site: &Site) -> SiteFacts {
        let (is_write, is_past_caches) = (site.kind.is_write(), site.is_past_caches());
        let key = key(Context::NONE, ANY);
        SiteFacts { key, hits: 0, cell: 0, is_fixed: false, is_write, is_past_caches }
    }

    /// The class of the cell that the site used last.
    #[inline(always)]
    pub fn class(&self) -> ClassId {
        ClassId(self.key as u32)
    }

    /// Adds the hits to the counts of their cell in `counted`; returns the number of hits.
    #[inline(always)]
    pub fn count_hits(&mut self, counted: &mut [u64]) -> u64 {
        let hits = std::mem::take(&mut self.hits);
        // A site that was not used yet has no cell.
        if hits > 0 {
            // What waited may have been answered before it is counted.
            let counted = &mut counted[self.cell as usize];
            *counted = counted.wrapping_add(hits);
        }
        hits
    }

    /// The site was used last by a cell of this context and class. Hits of the one before are
    /// counted.
    #[inline(always)]
    pub fn remember(&mut self, context: Context, class: ClassId, cell: u32) {
        debug_assert_eq!(self.hits, 0);
        self.key = key(context, class);
        self.cell = cell;
    }
}

/// The memory of accesses, and the addresses that they go to.
pub(crate) trait Places {
    /// Returns what is known of objects.
    fn known<'o>(&self, objects: &'o Objects) -> Known<'o>;

    /// Returns the class of an access's memory, [`NOBODY`] where no object is, and the address that it
    /// goes to. None if it goes to several places, or that takes longer to find.
    fn place(&self, known: Known<'_>, access: &Access) -> Option<(ClassId, u64)>;

    /// An access went to this address.
    fn gone(&mut self, access: &Access, address: u64);
}

impl Places for Direct {
    #[inline(always)]
    fn known<'o>(&self, objects: &'o Objects) -> Known<'o> {
        objects.known()
    }

    #[inline(always)]
    fn place(&self, known: Known<'_>, access: &Access) -> Option<(ClassId, u64)> {
        Some((ClassId(known.at(access.address)), access.address))
    }

    #[inline(always)]
    fn gone(&mut self, _access: &Access, _address: u64) {}
}

/// Knowledge of cells.
struct Finder<'p> {
    context: Context,
    /// Calls change the context.
    has_paths: bool,
    index: &'p FxHashMap<(Context, SiteId, ClassId), u32>,
    frames: &'p [Option<ClassId>],
    found: &'p mut FoundCells,
}

impl Finder<'_> {
    /// The class of an access, which may be [`NOBODY`] so far, and its cell, if they are known.
    #[inline(never)]
    fn find(
        &mut self,
        class: ClassId,
        facts: &SiteFacts,
        stack: &ThreadStack,
        access: &Access,
    ) -> Option<(ClassId, u32)> {
        let class = match class {
            ClassId(NOBODY) => match stack.frame_of(access.address) {
                None => ClassId::UNKNOWN,
                Some(function) => (*self.frames.get(function.0 as usize)?)?,
            },
            class => class,
        };
        let key = key(self.context, class);
        if facts.key == key {
            return Some((class, facts.cell));
        }
        let found = self.found.place(key, access.site);
        if found.key != key || found.site != access.site {
            let cell = *self.index.get(&(self.context, access.site, class))?;
            *found = Found { key, site: access.site, cell };
        }
        Some((class, found.cell))
    }
}

impl<E: Engine> Profiler<E> {
    /// Accesses and marks.
    pub(crate) fn events(&mut self, stream: &mut Stream, mut events: Events<'_>) {
        loop {
            if self.gaps.is_none() {
                self.most_events(stream, &mut events, &mut Direct);
                if self.caches.is_full() {
                    self.settle();
                    continue;
                }
            }
            let access = events.accesses.split_first();
            match events.marks.split_first() {
                Some(((at, mark), rest)) if *at as usize <= events.before || access.is_none() => {
                    // Blocks come and go with marks that are no calls.
                    self.label_residencies(stream);
                    self.mark(mark, stream);
                    events.marks = rest;
                }
                _ => {
                    let Some((access, rest)) = access else { return };
                    self.caches.comes(events.before, access.bytes);
                    self.access(stream, access);
                    events.accesses = rest;
                    events.before += 1;
                }
            }
        }
    }

    /// Accesses with nothing between them.
    pub(crate) fn accesses(&mut self, stream: &mut Stream, accesses: &[Access]) {
        if !accesses.is_empty() {
            self.events(stream, Events { accesses, marks: &[], before: NO_PLACE });
        }
    }

    /// Counts the hits of a site that it alone knows of.
    pub(crate) fn count_hits(&mut self, site: SiteId) {
        let facts = &mut self.sites.facts[site.0 as usize];
        let hits = facts.count_hits(&mut self.cells.hits);
        self.caches.count_hits(facts.is_write, hits);
    }

    /// The events up to the first access that is not to one line, or of an object or a cell that is
    /// not known yet, or the first mark that is no call. Ends early when it is time to settle.
    pub(crate) fn most_events(
        &mut self,
        stream: &mut Stream,
        events: &mut Events<'_>,
        places: &mut impl Places,
    ) {
        let Profiler {
            caches,
            sites: KnownSites { facts, .. },
            cells,
            contexts,
            memory: Memory { frames, .. },
            ..
        } = self;
        let CellCounts { hits, index, found, .. } = cells;
        let (context, has_paths) = (stream.origin.context, contexts.has_paths);
        let finder = Finder { context, has_paths, index, frames, found };
        let counts = (facts.as_mut_slice(), hits.as_mut_slice());
        if let Some(lane) = caches.lane(stream.origin.core) {
            single_line_loop(stream, events, finder, counts, (lane, places));
        }
    }
}

/// The loop of [`Profiler::most_events`].
fn single_line_loop(
    stream: &mut Stream,
    events: &mut Events<'_>,
    mut finder: Finder<'_>,
    (facts, hits): (&mut [SiteFacts], &mut [u64]),
    (mut lane, places): (impl Lane, &mut impl Places),
) {
    let Stream { origin, objects, stack } = stream;
    let (origin, known) = (*origin, places.known(objects));
    let Events { mut accesses, mut marks, mut before } = *events;
    loop {
        let next = marks.first();
        let until = next.map_or(accesses.len(), |(at, _)| (*at as usize).saturating_sub(before));
        let now = &accesses[..until.min(accesses.len())];
        let mut left = now;
        while let [access, rest @ ..] = left {
            let facts = &mut facts[access.site.0 as usize];
            let (class, address) = match facts.is_fixed {
                true => (facts.class(), access.address),
                false => match places.place(known, access) {
                    Some(place) => place,
                    None => break,
                },
            };
            if facts.key != key(origin.context, class) {
                if facts.is_past_caches {
                    break;
                }
                let Some((class, cell)) = finder.find(class, facts, stack, access) else { break };
                if facts.key != key(origin.context, class) {
                    lane.count_hits(facts.is_write, facts.count_hits(hits));
                    facts.remember(origin.context, class, cell);
                }
            }
            let asked = lane.access(MemRef {
                address: origin.space.place(address),
                bytes: access.bytes,
                core: origin.core as u32,
                tag: Tag::new(facts.cell),
                is_write: facts.is_write,
            });
            if asked == Asked::Several {
                break;
            }
            facts.hits += 1;
            places.gone(access, address);
            left = rest;
            if asked == Asked::Waits && lane.is_full() {
                break;
            }
        }
        let done = now.len() - left.len();
        before += done;
        accesses = &accesses[done..];
        if !left.is_empty() || lane.is_full() {
            break;
        }
        match next {
            _ if finder.has_paths => break,
            Some((_, Mark::Enter { function, frame, caller })) => stack.enter(*function, *frame, *caller),
            Some((_, Mark::Exit { function })) => stack.exit(*function),
            _ => break,
        }
        marks = &marks[1..];
    }
    *events = Events { accesses, marks, before };
}
