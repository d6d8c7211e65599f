//! Names and objects that the numbers of analyses refer to.

use memlode_attribute::annotate::{Cells, EventCell};
use memlode_attribute::place::{Line, Place, What, place, what};
use memlode_attribute::tables::Tables;
use memlode_machine::Machine;
use memlode_simulate::Space;
use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::{Site, SiteTable};
use memlode_trace::{Clock, Thread, Trace};

use crate::Findings;

/// Names and objects that the numbers of batches and counts refer to.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The cells of the batches so far; none for analyses of counted cells.
    pub cells: &'a Cells,
    /// The names of the trace.
    pub names: &'a SiteTable,
    /// The threads of the trace.
    pub threads: &'a [Thread],
    /// The machine that the trace is replayed on.
    pub machine: &'a Machine,
    /// The machine's levels by name, memory last.
    pub levels: &'a [String],
    /// Cycles until each answers.
    pub latencies: &'a [u32],
    /// The speed of time stamps, if that is known. While a trace is written, it is not.
    pub clock: Option<Clock>,
    /// The counts, for analyses of counted cells.
    pub counted: Option<&'a Tables<'a>>,
    /// Findings of the analyses that this one goes on from ([`crate::Meta::after`]), in that order.
    pub before: &'a [Findings],
}

impl<'a> View<'a> {
    /// The names of a stored trace, and what the numbers of batches refer to.
    pub fn of(
        trace: &'a Trace,
        machine: &'a Machine,
        (levels, latencies): (&'a [String], &'a [u32]),
        cells: &'a Cells,
    ) -> View<'a> {
        View {
            cells,
            names: trace.sites(),
            threads: trace.threads(),
            machine,
            levels,
            latencies,
            clock: trace.clock(),
            counted: None,
            before: &[],
        }
    }

    /// A row's cell.
    pub fn cell(&self, cell: u32) -> EventCell {
        self.cells.cells[cell as usize]
    }

    /// A cell's site.
    pub fn site(&self, cell: u32) -> &'a Site {
        self.names.site(self.cell(cell).site)
    }

    /// Returns whether a cell's accesses write.
    pub fn writes(&self, cell: u32) -> bool {
        self.site(cell).kind.is_write()
    }

    /// Returns what a cell's accesses touch, and where that stands in the source.
    pub fn key(&self, cell: u32) -> (What, Place) {
        self.key_of(self.site(cell))
    }

    /// Returns what a site's accesses touch, and where that stands in the source.
    pub fn key_of(&self, site: &Site) -> (What, Place) {
        (what(self.names, site, true), place(self.names, site))
    }

    /// The line of a site and those that it was inlined into, the innermost first.
    pub fn inlines(&self, site: &Site) -> impl Iterator<Item = Line> + use<'a> {
        let names = self.names;
        let chain = site.location.map(|location| names.inline_chain(location));
        chain.into_iter().flatten().map(|at| Line::of(names, at.function, at.line))
    }

    /// Returns where a thread's addresses lie beside those of other processes.
    pub fn space(&self, thread: ThreadId) -> Space {
        self.process_space(self.threads[thread.0 as usize].process)
    }

    /// Returns where a process's addresses lie beside those of others.
    pub fn process_space(&self, process: ProcessId) -> Space {
        Space::of(process.0)
    }

    /// Bytes of the lines that memory is fetched in, and that threads take from each other.
    pub fn line_bytes(&self) -> u64 {
        self.machine.line_bytes.into()
    }

    /// The names of the cache levels.
    pub fn caches(&self) -> &'a [String] {
        &self.levels[..self.levels.len().saturating_sub(1)]
    }
}
