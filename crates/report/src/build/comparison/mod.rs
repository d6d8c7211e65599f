//! Two reports, aligned by name: lines that moved and files that were renamed are the same lines.

mod align;

use std::collections::BTreeSet;

use crate::about::{self, About, Subject};
use crate::model::{Change, Compared, Comparison, Numbers, Report, Row, Status};

use memlode_whatif::noise::LEAST;

use align::{Aligned, align};

/// Aligns two reports. `run_cycles` are those of each; `noise` is the part of them that placement alone
/// changes, if it is known.
pub fn comparison(before: &Report, after: &Report, run_cycles: [f64; 2], noise: Option<f64>) -> Comparison {
    let least = noise.unwrap_or(LEAST) * run_cycles[0];
    let findings = [about::all(before), about::all(after)];
    Comparison {
        before: compared(before, run_cycles[0]),
        after: compared(after, run_cycles[1]),
        noise,
        data: changes(&before.data, &after.data, least, &findings),
        lines: changes(&before.lines, &after.lines, least, &findings),
        objects: changes(&before.objects, &after.objects, least, &findings),
        types: changes(&before.types, &after.types, least, &findings),
    }
}

fn compared(report: &Report, run_cycles: f64) -> Compared {
    Compared {
        trace: report.trace.directory.clone(),
        machine: report.machine.name.clone(),
        total: report.total.numbers.clone(),
        run_cycles,
        instructions: report.instructions,
        lost_cycles: report.sharing.as_ref().map(|sharing| sharing.cycles),
        remote_accesses: report.remote,
        levels: report.machine.levels.clone(),
    }
}

fn changes<S: Clone + Aligned + Subject>(
    before: &[Row<S>],
    after: &[Row<S>],
    least: f64,
    findings: &[Vec<About<'_>>; 2],
) -> Vec<Change<S>> {
    let subjects = |rows: &'_ [Row<S>]| rows.iter().map(|row| row.subject.clone()).collect::<Vec<S>>();
    let pairs = align(&subjects(before), &subjects(after));
    let row = |pair: (Option<usize>, Option<usize>)| {
        change([pair.0.map(|at| &before[at]), pair.1.map(|at| &after[at])], least, findings)
    };
    let mut changes: Vec<Change<S>> = pairs.into_iter().filter_map(row).collect();
    changes.sort_by(|a, b| {
        let by_wait = b.wait_cycles_change.abs().total_cmp(&a.wait_cycles_change.abs());
        by_wait.then(b.stall_cycles_change.abs().cmp(&a.stall_cycles_change.abs()))
    });
    changes
}

fn change<S: Clone + Subject>(
    [before, after]: [Option<&Row<S>>; 2],
    least: f64,
    findings: &[Vec<About<'_>>; 2],
) -> Option<Change<S>> {
    let subject = after.or(before)?.subject.clone();
    let stalls = |row: Option<&Row<S>>| row.map_or(0, |row| row.numbers.stall_cycles as i64);
    let cycles = |row: Option<&Row<S>>| row.map_or(0.0, |row| row.numbers.wait.cycles);
    let changed = cycles(after) - cycles(before);
    let status = match (before, after) {
        (None, _) => Status::New,
        (_, None) => Status::Gone,
        _ if changed.abs() <= least => Status::WithinNoise,
        _ if changed < 0.0 => Status::Better,
        _ => Status::Worse,
    };
    let numbers = |row: Option<&Row<S>>| -> Option<Numbers> { row.map(|row| row.numbers.clone()) };
    let sides = [before, after].into_iter().zip(findings);
    let handles = sides.flat_map(|(row, all)| {
        let about = move |about: &&About<'_>| row.is_some_and(|row| row.subject.is_of(about));
        all.iter().filter(about).map(|about| about.handle.to_string())
    });
    Some(Change {
        subject,
        findings: handles.collect::<BTreeSet<_>>().into_iter().collect(),
        status,
        wait_cycles_change: (changed * 10.0).round() / 10.0,
        stall_cycles_change: stalls(after) - stalls(before),
        before: numbers(before),
        after: numbers(after),
    })
}
