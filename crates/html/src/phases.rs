//! Phases of a run: stretches in which the program waits for one thing.

use memlode_report::render::page::data_name;
use memlode_report::{NamedTable, NamedValue, PageRows};
use serde::Serialize;

/// A phase has at least this part of the accesses; what is shorter belongs to the one before.
const LEAST: f64 = 0.03;

/// Intervals that follow each other and wait most for the same data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its first access.
    access: u64,
    /// When that happens, in seconds since the program started.
    seconds: Option<f64>,
    accesses: u64,
    /// Misses of the last level of cache.
    misses: u64,
    wait_cycles: u64,
    /// The data that its longest run of intervals waits for most; none if it waits for nothing.
    data: Option<String>,
}

/// Finds the phases of a run by its time line.
pub fn phases(found: &PageRows) -> Vec<Phase> {
    let Some(table) = found.table("timeline") else { return Vec::new() };
    let intervals: Vec<Phase> = table.rows.iter().map(|row| interval(table, row)).collect();
    let least = LEAST * intervals.iter().map(|interval| interval.accesses as f64).sum::<f64>();
    let mut runs: Vec<Phase> = Vec::new();
    for interval in intervals {
        match runs.last_mut().filter(|run| run.data == interval.data) {
            Some(run) => run.add(&interval),
            None => runs.push(interval),
        }
    }
    let mut made: Vec<Phase> = Vec::new();
    for run in runs {
        // Short ones go to the phase before, and a phase goes on after one.
        match made.last_mut().filter(|phase| phase.data == run.data || (run.accesses as f64) < least) {
            Some(phase) => phase.add(&run),
            None => made.push(run),
        }
    }
    made
}

fn interval(table: &NamedTable, row: &[NamedValue]) -> Phase {
    let named = |id: &str| table.columns.iter().position(|column| column.id == id).and_then(|at| row.get(at));
    let count = |value: Option<&NamedValue>| match value {
        Some(NamedValue::Count(count)) => *count,
        _ => 0,
    };
    let is_misses = |id: &str| id.ends_with("_misses");
    let last = table.columns.iter().rposition(|column| is_misses(&column.id));
    Phase {
        access: count(named("access")),
        seconds: match named("seconds") {
            Some(NamedValue::Seconds(seconds)) => Some(*seconds),
            _ => None,
        },
        accesses: count(named("accesses")),
        misses: count(last.and_then(|at| row.get(at))),
        wait_cycles: count(named("wait_cycles")),
        data: match named("data") {
            Some(NamedValue::Data(data)) => Some(data_name(data)),
            _ => None,
        },
    }
}

impl Phase {
    fn add(&mut self, later: &Phase) {
        self.accesses += later.accesses;
        self.misses += later.misses;
        self.wait_cycles += later.wait_cycles;
    }
}

#[cfg(test)]
mod tests {
    use memlode_report::{Data, NamedAnalysis, NamedColumn, NamedTable};

    use super::*;

    /// A time line of intervals of ten accesses, each with the member that it waits for.
    fn of(members: &str) -> Vec<(u64, Option<String>, u64)> {
        let columns = ["access", "accesses", "L1d_misses", "wait_cycles", "data"];
        let row = |(at, member): (usize, char)| {
            let data = Data { ty: None, member: None, variable: Some(member.to_string()) };
            let data = if member == ' ' { NamedValue::Nothing } else { NamedValue::Data(data) };
            let counts = [10 * at as u64, 10, 1, 100].map(NamedValue::Count);
            [&counts[..], &[data]].concat()
        };
        let table = NamedTable {
            id: "timeline".into(),
            title: "".into(),
            columns: columns.iter().map(|id| NamedColumn { id: id.to_string() }).collect(),
            rows: members.chars().enumerate().map(row).collect(),
            is_whole: true,
        };
        let analysis = NamedAnalysis {
            trace: String::new(),
            machine: String::new(),
            notes: Vec::new(),
            tables: vec![table],
        };
        let found = PageRows { analysis, left_out: Vec::new() };
        let phase = |phase: Phase| (phase.access, phase.data, phase.accesses);
        phases(&found).into_iter().map(phase).collect()
    }

    #[test]
    fn a_phase_waits_for_one_thing_and_goes_on_after_something_short() {
        let of_a = |from, accesses| (from, Some("a".to_string()), accesses);
        let long = "a".repeat(40) + "b" + &"a".repeat(10) + &"c".repeat(9);
        assert_eq!(of(&long), [of_a(0, 510), (510, Some("c".into()), 90)]);
        assert_eq!(of("  a"), [(0, None, 20), of_a(20, 10)]);
        assert_eq!(of(""), []);
    }
}
