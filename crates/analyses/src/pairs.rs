//! Pairs of a load and a store, for the analyses that look at both.

use memlode_attribute::place::{Place, What};
use memlode_trace::event::ThreadId;

use crate::{Column, Holds, Value, View};

/// The first columns of their tables.
pub(crate) const LOAD: Column = Column { id: "load", holds: Holds::What };
pub(crate) const LOAD_LINE: Column = Column { id: "load_line", holds: Holds::Place };
pub(crate) const STORE: Column = Column { id: "store", holds: Holds::What };
pub(crate) const STORE_LINE: Column = Column { id: "store_line", holds: Holds::Place };

/// A load and a store, by data and line. Threads and classes of objects that do the same are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoadAndStore {
    pub load: (What, Place),
    pub store: (What, Place),
}

impl LoadAndStore {
    /// Returns the names of two cells.
    pub fn of((load, store): (u32, u32), view: &View<'_>) -> LoadAndStore {
        LoadAndStore { load: view.key(load), store: view.key(store) }
    }

    /// Returns a row that begins with them.
    pub fn row(self, more: &[Value]) -> Vec<Value> {
        let (load, store) = (self.load, self.store);
        let first = [Value::What(load.0), Value::Place(load.1), Value::What(store.0), Value::Place(store.1)];
        [&first[..], more].concat()
    }
}

/// The thread of each cell, and whether the cell writes.
#[derive(Default)]
pub(crate) struct Actors(Vec<(ThreadId, bool)>);

impl Actors {
    /// Returns the number of a cell's thread, and whether the cell writes.
    pub fn of(&self, cell: u32) -> (usize, bool) {
        let (thread, writes) = self.0[cell as usize];
        (thread.0 as usize, writes)
    }

    /// Looks up the cells that have come since the last time; their number.
    pub fn look_up(&mut self, view: &View<'_>) -> usize {
        for cell in self.0.len()..view.cells.cells.len() {
            self.0.push((view.cell(cell as u32).thread, view.writes(cell as u32)));
        }
        self.0.len()
    }

    /// Takes what a later part knows: it knows no less of the cells that both know.
    pub fn merge(&mut self, later: Actors) {
        if later.0.len() > self.0.len() {
            *self = later;
        }
    }
}
