//! What almost every access is: to one line, of memory whose class is known, by a site whose cell is known. The loop over these
//! keeps in registers what it asks for each time; it calls others only for lines that are not the most recent ones of their sets, for memory of
//! no object, and for sites that go from one class to another.

use memlode_simulate::Asked;
use memlode_trace::event::{Access, ThreadId};

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

impl<S: Simulator> Profiler<S> {
    /// Accesses with nothing between them.
    pub(crate) fn accesses(
        &mut self,
        origin: Origin,
        objects: &mut Objects,
        stack: &ThreadStack,
        mut accesses: &[Access],
    ) {
        let few_questions = self.gaps.is_none() && self.caches.counting().is_some();
        while !accesses.is_empty() {
            if few_questions {
                let done = self.usual(origin, objects, stack, accesses);
                accesses = &accesses[done..];
                if self.caches.is_full() {
                    self.settle();
                    continue;
                }
            }
            let Some((access, rest)) = accesses.split_first() else { return };
            self.access(origin, objects, stack, access);
            accesses = rest;
        }
    }

    /// The accesses up to the first that is not to one line, or of an object or a cell that is not known yet; says how many they
    /// are. Ends early when it is time to settle.
    fn usual(
        &mut self,
        origin: Origin,
        objects: &Objects,
        stack: &ThreadStack,
        accesses: &[Access],
    ) -> usize {
        let Profiler { caches, facts, hits, index, frames, .. } = self;
        let Some(caches) = caches.counting() else { return 0 };
        let mut front = caches.front(origin.core);
        let (facts, hits, known) = (facts.as_mut_slice(), hits.as_mut_slice(), objects.known());
        for (done, access) in accesses.iter().enumerate() {
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
                        Some(None) => return done,
                    },
                    class => class,
                };
                if facts.key != key(origin.thread, class) {
                    let Some(&cell) = index.get(&(origin.thread, access.site, class)) else { return done };
                    facts.remember(origin.thread, class, cell);
                }
            }
            let address = access.address ^ origin.space;
            match front.access(address, access.bytes, facts.is_write(), facts.cell()) {
                Asked::Hit => hits[facts.cell() as usize] += 1,
                Asked::Waits if front.waiting() >= MOST_WAITING => return done + 1,
                Asked::Waits => {}
                Asked::Several => return done,
            }
        }
        accesses.len()
    }
}
