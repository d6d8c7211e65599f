//! Steps of all threads, kept from one run of the model for the next: most have few that concern
//! others.

use memlode_simulate::side_by_side::{Item, Program};

/// Items of all threads that are kept at most: some tens of megabytes.
const MOST: usize = 1 << 21;

/// A program that records its items.
pub(super) struct Recorder<'p> {
    program: &'p mut dyn Program,
    /// Indexed by thread; none if it was too much, or something was left out.
    kept: Option<Vec<Vec<Item>>>,
    items: usize,
}

impl<'p> Recorder<'p> {
    pub fn new(program: &'p mut dyn Program) -> Recorder<'p> {
        let kept = Some(vec![Vec::new(); program.threads()]);
        Recorder { program, kept, items: 0 }
    }

    /// Returns the tape, if all of it was kept.
    pub fn tape(self) -> Option<Tape> {
        let makers = (0..self.program.threads()).map(|thread| self.program.maker(thread)).collect();
        let items = self.kept?.into_iter().map(Vec::into_iter).collect();
        Some(Tape { items, makers })
    }
}

impl Program for Recorder<'_> {
    fn threads(&self) -> usize {
        self.program.threads()
    }

    fn maker(&self, thread: usize) -> Option<(u32, u64)> {
        self.program.maker(thread)
    }

    fn next(&mut self, thread: usize) -> Option<Item> {
        let next = self.program.next(thread)?;
        self.items += 1;
        if self.items > MOST {
            self.kept = None;
        }
        if let Some(kept) = &mut self.kept {
            kept[thread].push(next.clone());
        }
        Some(next)
    }

    fn skip(&mut self, thread: usize, most: u64) -> u64 {
        self.kept = None;
        self.program.skip(thread, most)
    }
}

/// The same program again.
pub(super) struct Tape {
    items: Vec<std::vec::IntoIter<Item>>,
    makers: Vec<Option<(u32, u64)>>,
}

impl Program for Tape {
    fn threads(&self) -> usize {
        self.items.len()
    }

    fn maker(&self, thread: usize) -> Option<(u32, u64)> {
        self.makers[thread]
    }

    fn next(&mut self, thread: usize) -> Option<Item> {
        self.items[thread].next()
    }
}
