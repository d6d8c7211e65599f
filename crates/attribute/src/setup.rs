//! The setup of a simulated machine: its rules, pages, and the cores that threads run on.

use std::fmt;

use memlode_machine::Machine;
#[cfg(doc)]
use memlode_simulate::Hierarchy;
pub use memlode_simulate::{Homes, Pages, Placement};

use crate::objects::classes::Home;

/// The setup of a detailed simulation.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The rules: the machine's own, or those of [`Hierarchy`] for all levels.
    pub rules: RuleChoice,
    /// The sizes of pages, in every process.
    pub pages: Pages,
    /// Pages of memory with a certain name, which come before ranges of addresses. If several
    /// entries have the name, the last one counts.
    pub named: Vec<NamedPages>,
    /// Thread *t* runs on the *t*-th of these cores, modulo their number; if there are none, on
    /// core *t*.
    pub cores: Vec<u32>,
    /// Which memory pages lie in, in every process.
    pub homes: Homes,
}

/// Pages of memory that has a name.
#[derive(Clone, Debug)]
pub struct NamedPages {
    /// The memory.
    pub memory: NamedMemory,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// Memory by its name.
#[derive(Clone, Debug)]
pub enum NamedMemory {
    /// Every object whose allocation was recorded.
    Heap,
    /// Stack variables, and everything else in stack frames.
    Stack,
    /// Objects of these homes.
    Objects(Vec<Home>),
    /// Global variables.
    Global {
        /// Their name.
        name: String,
        /// The source's spelling of a symbol: either of them may be the name.
        written: fn(&str) -> String,
    },
}

impl NamedMemory {
    /// Returns whether objects that live there are meant.
    pub fn has(&self, home: &Home) -> bool {
        match (self, home) {
            (NamedMemory::Heap, Home::Heap { .. }) | (NamedMemory::Stack, Home::Stack { .. }) => true,
            (NamedMemory::Objects(homes), home) => homes.contains(home),
            (NamedMemory::Global { name, written }, Home::Global { symbol, .. }) => {
                symbol == name || written(symbol) == *name
            }
            _ => false,
        }
    }
}

impl fmt::Display for NamedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NamedMemory::Heap => "heap",
            NamedMemory::Stack => "stack",
            NamedMemory::Objects(_) => "objects",
            NamedMemory::Global { name, .. } => name,
        })
    }
}

/// Which rules of caches are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleChoice {
    /// The prefetchers of the machine's description.
    #[default]
    Machine,
    /// Exact LRU, non-inclusive, write-back, write-allocate; no prefetchers, no coherence.
    Lru,
}

impl Setup {
    /// The machine as described, with its ordinary pages, each in the node of its first touch.
    pub fn of(machine: &Machine) -> Setup {
        let pages = Pages::of(machine.page_bytes);
        Setup {
            rules: RuleChoice::Machine,
            pages,
            named: Vec::new(),
            cores: Vec::new(),
            homes: Homes::default(),
        }
    }

    /// The cores that a program with this number of threads runs on: thread *t* on the *t*-th,
    /// modulo their number.
    pub fn cores(&self, machine: &Machine, threads: usize) -> Vec<u32> {
        if self.cores.is_empty() {
            return (0..machine.cores.min(threads.max(1) as u32)).collect();
        }
        self.cores.clone()
    }
}
