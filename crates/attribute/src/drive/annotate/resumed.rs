//! Tables of what a stretch needs of the accesses before it, so that these need not be replayed.
//!
//! ```text
//!   start ──────── point 1 ──────── point 2 ─ … ─ point 31 ──────► end
//!          table 1          table 2
//! ```
//! Between two points lies a thirty-second part of the accesses. A table has the blocks that came
//! and went in between, and where each stream, stack and clock is then.
//!
//! A replay that comes by a point writes the table of the part before it. Tables are of a part
//! each: all up to a point are read to begin there.

use std::sync::Arc;

use memlode_replay::Point;
use memlode_trace::{KeptTables, Trace};
use serde::{Deserialize, Serialize};

use crate::count::engine::Engine;
use crate::count::past_log::Logged;
use crate::count::profiler::Profiler;
use crate::drive::times::Times;

/// Number of parts.
const PARTS: u64 = 32;

/// Knowledge at a point.
#[derive(Serialize, Deserialize)]
struct PastTable {
    /// Number of accesses before it, where each line of a range is one.
    sequence: u64,
    times: Vec<(u32, u8, u64)>,
    point: Point,
    logged: Logged,
}

/// The tables of a trace.
pub(super) struct Resumed {
    tables: Option<Arc<dyn KeptTables>>,
    /// Bytes of a line, by which ranges are cut into accesses.
    line_bytes: u32,
    /// Numbers of the chunks in front of which points are.
    points: Vec<usize>,
    /// Points so far.
    passed: usize,
    /// A table that was looked for and is not there, or cannot be used, whatever it says.
    missing: Option<usize>,
}

impl Resumed {
    /// The tables of a trace; none if there is no place for them.
    pub fn of(tables: Option<Arc<dyn KeptTables>>, trace: &Trace, line_bytes: u32) -> Resumed {
        let points = if tables.is_some() { points(trace) } else { Vec::new() };
        Resumed { tables, line_bytes, points, passed: 0, missing: None }
    }

    /// The chunks in front of which points are wanted.
    pub fn points(&self) -> &[usize] {
        &self.points
    }

    /// Goes to the last point in front of an access; returns it with the number of accesses before
    /// it.
    pub fn begin<E: Engine>(
        &mut self,
        trace: &Trace,
        access: u64,
        profiler: &mut Profiler<E>,
        times: &mut Times,
    ) -> Option<(Point, u64)> {
        let tables = self.tables.clone()?;
        profiler.begin_log();
        let mut latest = None;
        while access > 0 && self.passed < self.points.len() {
            let read = tables.read(&self.name(self.passed));
            let table = read.and_then(|bytes| postcard::from_bytes::<PastTable>(&bytes).ok());
            let Some(table) = table.filter(|table| self.fits(table, trace, profiler.logged_classes())) else {
                self.missing = Some(self.passed);
                break;
            };
            if table.sequence >= access {
                break;
            }
            profiler.follow_log(&table.logged);
            *times = Times::of(&table.times);
            latest = Some((table.point, table.sequence));
            self.passed += 1;
        }
        latest
    }

    /// Returns whether a table can be that of the next point, after tables with this number of
    /// classes.
    fn fits(&self, table: &PastTable, trace: &Trace, classes: usize) -> bool {
        let next = self.points.get(self.passed + 1).copied().unwrap_or(usize::MAX);
        (self.points[self.passed]..next).contains(&table.point.taken())
            && table.point.fits(trace.chunks().len())
            && table.logged.fits(trace.sites(), classes)
    }

    /// Keeps the table of the part that ends at a point.
    pub fn keep<E: Engine>(
        &mut self,
        point: &Point,
        sequence: u64,
        profiler: &mut Profiler<E>,
        times: &Times,
    ) {
        let Some(tables) = &self.tables else { return };
        let number = self.points.partition_point(|first| *first <= point.taken()) - 1;
        let name = self.name(number);
        let logged = profiler.logged();
        if self.missing != Some(number) && tables.read(&name).is_some() {
            return;
        }
        let table = PastTable { sequence, times: times.all(), point: point.clone(), logged };
        let bytes = postcard::to_extend(&table, Vec::new()).expect("numbers and lists of known length");
        if !tables.keep(&name, &bytes) {
            // Nothing can be kept there.
            (self.tables, profiler.log) = (None, None);
        }
    }

    fn name(&self, number: usize) -> String {
        format!("past-{}-{:02}", self.line_bytes, number + 1)
    }
}

/// Numbers of the chunks with which parts of about as many accesses begin, but for the first.
fn points(trace: &Trace) -> Vec<usize> {
    let accesses = |chunk: &memlode_trace::ChunkRef| chunk.accesses();
    let all: u64 = trace.chunks().iter().map(accesses).sum();
    let (mut points, mut before, mut part) = (Vec::new(), 0u64, 0);
    for (number, chunk) in trace.chunks().iter().enumerate() {
        let here = (u128::from(before) * u128::from(PARTS) / u128::from(all.max(1))) as u64;
        if here > part {
            part = here;
            points.push(number);
        }
        before += chunk.accesses();
    }
    points
}
