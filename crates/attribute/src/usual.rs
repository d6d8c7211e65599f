//! What almost every access is: to one line, of memory whose class is known, by a site whose cell is known. The loop over these
//! keeps in registers what it asks for each time; it calls others only for lines that are not the most recent ones of their sets, for memory of
//! no object, and for sites that go from one class to another.

use memlode_simulate::Asked;
use memlode_trace::Events;
use memlode_trace::event::{Access, Mark, ThreadId};
use memlode_trace::sites::SiteId;

use crate::classes::ClassId;
use crate::objects::{NOBODY, Objects};
use crate::profile::{Origin, Profiler};
use crate::simulator::{MOST_WAITING, Simulator};
use crate::stacks::ThreadStack;

/// What the loop needs of a site, in one place.
#[derive(Clone, Copy)]
pub(crate) struct SiteFacts {
    /// Thread and class of the cell that the site used last.
    pub key: u64,
    /// Twice that cell, plus 1 if the site writes.
    pub cell: u32,
    /// The class of all its objects, where that is known without looking at the address; else [`ANY`].
    pub fixed: ClassId,
}

/// A class that no object has.
pub(crate) const ANY: ClassId = ClassId(u32::MAX);

/// A thread and a class in one.
#[inline(always)]
pub(crate) fn key(thread: ThreadId, class: ClassId) -> u64 {
    u64::from(thread.0) << 32 | u64::from(class.0)
}

impl SiteFacts {
    #[inline(always)]
    pub fn cell(&self) -> u32 {
        self.cell >> 1
    }

    #[inline(always)]
    pub fn is_write(&self) -> bool {
        self.cell & 1 != 0
    }

    /// The site was used last by a cell of this thread and class.
    #[inline(always)]
    pub fn remember(&mut self, thread: ThreadId, class: ClassId, cell: u32) {
        self.key = key(thread, class);
        self.cell = cell << 1 | self.cell & 1;
    }
}

/// A cell that was found not long ago. Sites that go from one class to another do so again and again.
#[derive(Clone, Copy)]
struct Found {
    /// Thread and class.
    key: u64,
    site: SiteId,
    cell: u32,
}

/// Places for [`Found`].
const PLACES: usize = 512;

/// Cells by where their keys fall.
pub(crate) struct FoundCells(Box<[Found; PLACES]>);

impl Default for FoundCells {
    fn default() -> FoundCells {
        let nothing = Found { key: key(ThreadId(u32::MAX), ANY), site: SiteId(0), cell: 0 };
        FoundCells(Box::new([nothing; PLACES]))
    }
}

impl FoundCells {
    #[inline(always)]
    fn place(&mut self, key: u64, site: SiteId) -> &mut Found {
        let sum = (key as u32).wrapping_mul(31).wrapping_add(site.0);
        &mut self.0[sum as usize % PLACES]
    }
}

impl<S: Simulator> Profiler<S> {
    /// All events of a piece that has only accesses and marks.
    pub(crate) fn events(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        mut events: Events<'_>,
    ) {
        loop {
            if self.has_few_questions() {
                self.usual(origin, objects, stack, &mut events);
                if self.caches.is_full() {
                    self.settle();
                    continue;
                }
            }
            let access = events.accesses.split_first();
            match events.marks.split_first() {
                Some(((at, mark), rest)) if *at as usize <= events.before || access.is_none() => {
                    self.mark(mark, objects, stack);
                    events.marks = rest;
                }
                _ => {
                    let Some((access, rest)) = access else { return };
                    self.access(origin, objects, stack, access);
                    events.accesses = rest;
                    events.before += 1;
                }
            }
        }
    }

    /// Accesses with nothing between them.
    pub(crate) fn accesses(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &mut ThreadStack,
        accesses: &[Access],
    ) {
        if !accesses.is_empty() {
            self.events(origin, objects, stack, Events { accesses, marks: &[], before: 0 });
        }
    }

    /// Whether caches are all that is asked.
    fn has_few_questions(&mut self) -> bool {
        self.gaps.is_none() && self.caches.counting().is_some()
    }

    /// The events up to the first access that is not to one line, or of an object or a cell that is not known yet, or the first mark
    /// that is no call. Ends early when it is time to settle.
    fn usual(&mut self, origin: Origin, objects: &Objects, stack: &mut ThreadStack, events: &mut Events<'_>) {
        let Profiler { caches, facts, hits, index, frames, found, .. } = self;
        let Some(mut front) = caches.counting().and_then(|caches| caches.front(origin.core)) else { return };
        let (facts, hits, known) = (facts.as_mut_slice(), hits.as_mut_slice(), objects.known());
        loop {
            let next = events.marks.first();
            let left =
                next.map_or(events.accesses.len(), |(at, _)| (*at as usize).saturating_sub(events.before));
            let (now, later) = events.accesses.split_at(left.min(events.accesses.len()));
            let mut done = now.len();
            for (number, access) in now.iter().enumerate() {
                let facts = &mut facts[access.site.0 as usize];
                let class = match facts.fixed {
                    ANY => ClassId(known.at(access.address)),
                    fixed => fixed,
                };
                if facts.key != key(origin.thread, class) {
                    let class = match class {
                        ClassId(NOBODY) => match stack.frame_of(access.address).map(|f| frames.get(&f)) {
                            None => ClassId::UNKNOWN,
                            Some(Some(&class)) => class,
                            Some(None) => {
                                done = number;
                                break;
                            }
                        },
                        class => class,
                    };
                    let key = key(origin.thread, class);
                    if facts.key != key {
                        let found = found.place(key, access.site);
                        if found.key != key || found.site != access.site {
                            let Some(&cell) = index.get(&(origin.thread, access.site, class)) else {
                                done = number;
                                break;
                            };
                            *found = Found { key, site: access.site, cell };
                        }
                        facts.remember(origin.thread, class, found.cell);
                    }
                }
                let address = access.address ^ origin.space;
                match front.access(address, access.bytes, facts.is_write(), facts.cell()) {
                    Asked::Hit => hits[facts.cell() as usize] += 1,
                    Asked::Waits if front.waiting() >= MOST_WAITING => {
                        done = number + 1;
                        break;
                    }
                    Asked::Waits => {}
                    Asked::Several => {
                        done = number;
                        break;
                    }
                }
            }
            events.before += done;
            if done < now.len() || front.waiting() >= MOST_WAITING {
                events.accesses = &events.accesses[done..];
                return;
            }
            events.accesses = later;
            match next {
                Some((_, Mark::Enter { function, frame })) => stack.enter(*function, *frame),
                Some((_, Mark::Exit { function })) => stack.exit(*function),
                _ => return,
            }
            events.marks = &events.marks[1..];
        }
    }
}
