//! One task: its part of the trace, and what analyses see there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memlode_attribute::annotate::{AnnotatedAccesses, BlockEvent, Extras, Options};
use memlode_attribute::{Simulation, Source};
use memlode_machine::Machine;
use memlode_trace::{ChunkRef, KeptTables, Trace};
use serde::{Deserialize, Serialize};

use super::memory::peak_memory;
use super::{Cut, Task, asked};
use crate::bytes::Sealer;
use crate::{BadArgument, Run, View};

/// The head of a result.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub task: Task,
    pub whole: Whole,
    /// Chunks that it decoded.
    pub chunks: u64,
    /// Chunks that it could not decode, a sentence each.
    pub damaged: Vec<String>,
    /// Executions of places that are not recorded, in those that it decoded.
    pub unrecorded: BTreeMap<u32, u64>,
    /// Peak memory of the process, in bytes.
    pub peak_bytes: Option<u64>,
}

/// The parts that belong together agree in this.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Whole {
    /// Threads, sites, strings, locations, chunks and accesses of the trace.
    trace: [u64; 6],
    /// A sum over all that the machine's description says.
    machine: u32,
}

impl Whole {
    pub fn of(trace: &Trace, machine: &Machine) -> Whole {
        let names = trace.sites();
        let counts =
            [trace.threads().len(), names.sites().len(), names.string_count(), names.locations().len()];
        let [threads, sites, strings, locations] = counts.map(|count| count as u64);
        let accesses = trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
        Whole {
            trace: [threads, sites, strings, locations, trace.chunks().len() as u64, accesses],
            machine: crc32fast::hash(format!("{machine:?}").as_bytes()),
        }
    }
}

/// The names of a machine's levels, memory last.
pub(super) fn levels(machine: &Machine) -> Vec<String> {
    machine.levels.iter().map(|level| level.name.clone()).chain(["memory".to_string()]).collect()
}

/// A part, and all that is needed to look at it.
pub struct Prepared {
    /// The trace: of a part of chunks, with these alone.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: Machine,
    /// The numbers in replay order of this part's accesses, unless it is cut otherwise.
    pub stretch: Range<u64>,
    whole: Whole,
}

impl Task {
    /// The chunks that the task reads, where its trace is found to be this one.
    pub fn chunks<'t>(&self, trace: &'t Trace) -> &'t [ChunkRef] {
        match self.cut {
            Cut::Chunks => &trace.chunks()[Shares::of(trace, self).chunks()],
            _ => trace.chunks(),
        }
    }

    /// Opens the trace, and finds the part and the machine.
    ///
    /// # Errors
    /// That the trace cannot be opened, or that there is no such machine.
    pub fn prepare(&self) -> Result<Prepared, String> {
        let machine = Machine::find(&self.machine).map_err(|error| error.to_string())?;
        let mut trace = Trace::open(Path::new(&self.trace)).map_err(|error| error.to_string())?;
        let whole = Whole::of(&trace, &machine);
        let shares = Shares::of(&trace, self);
        if let Cut::Chunks = self.cut {
            trace.keep_chunks(shares.chunks());
        }
        let stretch = if self.cut == Cut::Stretches { shares.stretch() } else { 0..u64::MAX };
        Ok(Prepared { trace: Arc::new(trace), machine, stretch, whole })
    }

    /// Opens the trace, analyses this part of it, and returns the results as bytes, for
    /// [`finish`](super::finish). A stretch finds in `tables`, which may be none for a trace, what it
    /// needs of the accesses before it, and keeps there what it knows of those that come later.
    ///
    /// # Errors
    /// That the trace cannot be opened, or the machine not be simulated.
    pub fn run(&self, tables: impl FnOnce(&Trace) -> Option<Arc<dyn KeptTables>>) -> Result<Vec<u8>, String> {
        let mut runs = Vec::new();
        for (_, question) in &self.questions {
            runs.push(asked(question).map_err(|BadArgument(why)| why)?);
        }
        let Prepared { trace, machine, stretch, whole } = self.prepare()?;
        let extras = runs.iter().map(|run| run.options().extras).fold(Extras::default(), Extras::and);
        let options = Options {
            extras,
            blocks: self.cut != Cut::Chunks,
            without_caches: !runs.iter().any(Run::reads_levels),
            stretch,
            tables: if self.cut == Cut::Stretches { tables(&trace) } else { None },
            ..Options::default()
        };
        let source = Source::Stored(trace.clone());
        let simulation = Simulation::of(&source, &machine);
        let mut annotations = simulation.rows(options).map_err(|error| error.to_string())?;
        let (levels, latencies) = (levels(&machine), machine.latencies());
        while let Some(mut rows) = annotations.next_batch() {
            let view = View::of(&trace, &machine, (&levels, &latencies), annotations.cells());
            match self.cut {
                Cut::Whole | Cut::Chunks | Cut::Stretches => {}
                Cut::Threads => {
                    keep(&mut rows, |rows, row| view.cell(rows.cell[row]).thread.0 % self.parts == self.part);
                }
                Cut::Lines => self.keep_lines(&mut rows, view.line_bytes()),
            }
            runs.iter_mut().for_each(|run| run.observe(&rows, &view));
            annotations.give_back(rows);
        }
        let mut states = Vec::new();
        for run in runs {
            states.push(run.save(annotations.cells()));
        }
        let replayed = annotations.finish();
        let head = Head {
            task: self.clone(),
            whole,
            chunks: replayed.chunks as u64,
            damaged: replayed.damaged.into_iter().map(|(_, error)| error.to_string()).collect(),
            unrecorded: replayed.unrecorded.into_iter().map(|(place, times)| (place.0, times)).collect(),
            peak_bytes: peak_memory(),
        };
        let mut sealer = Sealer::new().value(&head);
        for state in states.iter().flatten() {
            sealer = sealer.bytes(state);
        }
        Ok(sealer.seal())
    }

    /// Leaves the pieces of accesses to lines of this part.
    fn keep_lines(&self, rows: &mut AnnotatedAccesses, line_bytes: u64) {
        let is_ours = |line: u64| {
            // Neighbours go to different parts, as do the same places of pages.
            let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            mixed % u64::from(self.parts) == u64::from(self.part)
        };
        let all = std::mem::take(rows);
        let mut blocks = all.blocks.iter().peekable();
        for row in 0..all.rows() {
            while let Some(&block) = blocks.next_if(|block| block.row as usize <= row) {
                rows.blocks.push(moved(block, rows.rows()));
            }
            let end = all.address[row].saturating_add(u64::from(all.bytes[row].max(1)));
            let mut first = all.address[row];
            while first < end {
                let next = end.min((first / line_bytes + 1).saturating_mul(line_bytes));
                if is_ours(first / line_bytes) {
                    push(rows, &all, row);
                    let at = rows.rows() - 1;
                    (rows.address[at], rows.bytes[at]) = (first, (next - first) as u32);
                }
                first = next;
            }
        }
        blocks.for_each(|&block| rows.blocks.push(moved(block, rows.address.len())));
    }
}

/// Leaves some rows, and all blocks.
fn keep(rows: &mut AnnotatedAccesses, is_kept: impl Fn(&AnnotatedAccesses, usize) -> bool) {
    let all = std::mem::take(rows);
    let mut blocks = all.blocks.iter().peekable();
    for row in (0..all.rows()).filter(|row| is_kept(&all, *row)) {
        while let Some(&block) = blocks.next_if(|block| block.row as usize <= row) {
            rows.blocks.push(moved(block, rows.rows()));
        }
        push(rows, &all, row);
    }
    blocks.for_each(|&block| rows.blocks.push(moved(block, rows.address.len())));
}

fn moved(block: BlockEvent, row: usize) -> BlockEvent {
    BlockEvent { row: row as u32, ..block }
}

fn push(rows: &mut AnnotatedAccesses, all: &AnnotatedAccesses, row: usize) {
    rows.sequence.push(all.sequence[row]);
    rows.stamp.push(all.stamp[row]);
    rows.address.push(all.address[row]);
    rows.bytes.push(all.bytes[row]);
    rows.cell.push(all.cell[row]);
    rows.level.push(all.level[row]);
    rows.path.extend(all.path.get(row));
    rows.place.extend(all.place.get(row));
    rows.traffic.extend(all.traffic.get(row));
}

/// Parts with about as many accesses each.
struct Shares {
    /// Accesses in front of each chunk, and of the end.
    before: Vec<u64>,
    part: u64,
    parts: u64,
}

impl Shares {
    fn of(trace: &Trace, task: &Task) -> Shares {
        let mut before = vec![0];
        for chunk in trace.chunks() {
            before.push(before[before.len() - 1] + chunk.accesses());
        }
        Shares { before, part: task.part.into(), parts: task.parts.max(1).into() }
    }

    /// The number of the first access of a part.
    fn access(&self, part: u64) -> u64 {
        (u128::from(self.before[self.before.len() - 1]) * u128::from(part) / u128::from(self.parts)) as u64
    }

    /// The stretch of replay order of this part. Ranges of several lines are more accesses than the chunks say, so the last one is longer.
    fn stretch(&self) -> Range<u64> {
        let end = if self.part + 1 == self.parts { u64::MAX } else { self.access(self.part + 1) };
        self.access(self.part)..end
    }

    /// The places of the chunks of this part.
    fn chunks(&self) -> Range<usize> {
        let chunks = self.before.len() - 1;
        let place = |part: u64| match part == self.parts {
            true => chunks,
            false => self.before.partition_point(|before| *before < self.access(part)).min(chunks),
        };
        place(self.part)..place(self.part + 1)
    }
}
