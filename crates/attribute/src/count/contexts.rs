//! Contexts of accesses: the thread alone, or the thread and its call path.

use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

use crate::objects::paths::PathId;

/// The number of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Context(pub u32);

impl Context {
    /// No thread's.
    pub const NONE: Context = Context(u32::MAX);
}

/// The contexts so far. Without call paths, a thread's number is that of its context.
#[derive(Default)]
pub(crate) struct Contexts {
    /// True if call paths are distinguished.
    pub has_paths: bool,
    met: Vec<(ThreadId, PathId)>,
    numbers: FxHashMap<(ThreadId, PathId), Context>,
}

impl Contexts {
    /// The context of a thread on a path, where paths are distinguished.
    pub fn number(&mut self, thread: ThreadId, path: PathId) -> Context {
        let next = Context(self.met.len() as u32);
        let number = *self.numbers.entry((thread, path)).or_insert(next);
        if number == next {
            self.met.push((thread, path));
        }
        number
    }

    /// Returns the thread and path of a context.
    pub fn meaning(&self, Context(number): Context) -> (ThreadId, PathId) {
        match self.has_paths {
            true => self.met[number as usize],
            false => (ThreadId(number), PathId::ROOT),
        }
    }
}
