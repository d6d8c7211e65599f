//! Call paths with their costs, as a page draws them.

use std::collections::HashMap;

use memlode_report::build::{Limit, Rest};
use memlode_report::render::page::{place_name, short};
use memlode_report::{NamedStackLine, NamedValue, Numbers, PageRows, Position, Report};
use serde::Serialize;

use crate::cut::Kept;

/// Paths that a page draws at most: those that cost most.
pub const LIMIT: Limit = Limit::Rows { most: 6_000, rest: Rest::AddedByLine };

/// Call paths, column by column.
#[derive(Debug, Default, Serialize)]
pub struct Calls {
    frames: Vec<Frame>,
    /// Frames of each path, the outermost first.
    paths: Vec<Vec<usize>>,
    /// The line of each path's accesses.
    line: Vec<usize>,
    /// Modelled cycles: those of the line, divided by the latencies of misses and by accesses.
    cycles: Vec<f64>,
    /// Misses, by level.
    misses: Vec<Vec<u64>>,
    lines: Vec<Line>,
    /// Paths that are not here.
    left_out: usize,
}

/// A function of a path.
#[derive(Debug, PartialEq, Eq, Hash, Clone, Serialize)]
struct Frame {
    name: String,
    linkage_name: String,
}

/// A line of the source.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// Its rows among the report's lines.
    rows: Vec<usize>,
}

/// A line as paths and rows both have it.
type Key<'t> = (Option<&'t str>, Option<u32>, &'t str);

fn key(position: &Position) -> Key<'_> {
    (position.file.as_deref(), position.line, &position.linkage_name)
}

/// A row of the analysis of contexts.
struct Path<'t> {
    stack: &'t [NamedStackLine],
    accesses: u64,
    misses: Vec<u64>,
    stall_cycles: u64,
}

fn count(value: &NamedValue) -> Option<u64> {
    match value {
        NamedValue::Count(count) => Some(*count),
        _ => None,
    }
}

/// Reads a row: path, accesses, reads, writes, misses of each level, latencies.
fn read(row: &[NamedValue], levels: usize) -> Option<Path<'_>> {
    let [NamedValue::Stack(stack), accesses, _, _, rest @ ..] = row else { return None };
    let misses = rest.get(..levels)?.iter().map(count).collect::<Option<Vec<_>>>()?;
    let stall_cycles = count(rest.get(levels)?)?;
    (!stack.is_empty()).then_some(Path { stack, accesses: count(accesses)?, misses, stall_cycles })
}

/// Finds the call paths of a report, all of whose rows are still there.
pub fn calls<'t>(report: &'t Report, found: &'t PageRows) -> Option<Calls> {
    let table = found.table("contexts")?;
    let left_out = found.left_out("contexts");
    let levels = report.machine.levels.len();
    let paths: Vec<Path<'_>> = table.rows.iter().map(|row| read(row, levels)).collect::<Option<_>>()?;
    let others = left_out.map_or(&[][..], |left| &left.sums).iter();
    let others: Vec<Path<'_>> = others.map(|row| read(row, levels)).collect::<Option<_>>()?;
    let mut costs: HashMap<Key<'_>, (Vec<usize>, Numbers)> = HashMap::new();
    for (at, row) in report.lines.iter().enumerate() {
        let (rows, sum) = costs.entry(key(&row.subject.position)).or_default();
        rows.push(at);
        sum.add(&row.numbers);
    }
    let mut sums: HashMap<Key<'_>, (u64, u64)> = HashMap::new();
    for path in paths.iter().chain(&others) {
        let (stall, accesses) = sums.entry(key(&path.stack[0].position)).or_default();
        *stall = stall.saturating_add(path.stall_cycles);
        *accesses = accesses.saturating_add(path.accesses);
    }
    let mut made = Calls { misses: vec![Vec::new(); levels], ..Calls::default() };
    made.left_out = left_out.map_or(0, |left| left.rows);
    let (mut frames, mut functions, mut lines) = (HashMap::new(), HashMap::new(), HashMap::new());
    for path in paths {
        let line = key(&path.stack[0].position);
        let (stall, accesses) = sums[&line];
        let cost = costs.get(&line);
        let part = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        made.cycles.push(cost.map_or(0.0, |(_, numbers)| {
            let wait = &numbers.wait;
            let by_stalls =
                if stall > 0 { part(path.stall_cycles, stall) } else { part(path.accesses, accesses) };
            let cycles = wait.cycles * by_stalls
                + (wait.instruction_cycles + wait.first_touch_cycles) * part(path.accesses, accesses);
            (cycles * 10.0).round() / 10.0
        }));
        made.misses.iter_mut().zip(&path.misses).for_each(|(level, misses)| level.push(*misses));
        // A function is in thousands of paths, and its name is made short once.
        let mut number = |line: &'t NamedStackLine| {
            let position = &line.position;
            *functions.entry((&position.function, &position.linkage_name)).or_insert_with(|| {
                let frame =
                    Frame { name: short(&position.function), linkage_name: position.linkage_name.clone() };
                *frames.entry(frame.clone()).or_insert_with(|| {
                    made.frames.push(frame);
                    made.frames.len() - 1
                })
            })
        };
        made.paths.push(path.stack.iter().rev().map(&mut number).collect());
        made.line.push(*lines.entry(line).or_insert_with(|| {
            made.lines.push(Line {
                name: place_name(&path.stack[0].position),
                rows: cost.map_or_else(Vec::new, |(rows, _)| rows.clone()),
            });
            made.lines.len() - 1
        }));
    }
    Some(made)
}

impl Calls {
    /// Refers to the rows that are left of the report.
    pub fn refer_to(&mut self, kept: &Kept) {
        for line in &mut self.lines {
            line.rows = line.rows.iter().filter_map(|&row| kept.lines[row]).collect();
        }
    }
}
