//! Cells of the counts, from which a page's filters choose.

use std::collections::HashMap;
use std::hash::Hash;

use memlode_report::render::page::CAUSES;
use memlode_report::{ByCause, Cells, Data, MissCauses, NamedAccess, OtherCells, Report, Row};
use serde::Serialize;

use crate::cut::Kept;

/// Cells whose references are rows of the tables of the page.
#[derive(Debug, Serialize)]
pub struct PageCells<'c> {
    stretch_accesses: u64,
    stretches: usize,
    groups: Groups,
    /// Groups as differences from the one before, which pack well.
    group_steps: Vec<usize>,
    stretch: &'c [usize],
    accesses: &'c [u64],
    misses: &'c [Vec<u64>],
    others: &'c OtherCells,
    /// The row of each line's data among the fields, and among the types.
    fields: Vec<Option<usize>>,
    types: Vec<Option<usize>>,
    /// Causes of misses that there are, if they are known.
    causes: Option<Vec<OfCause>>,
}

/// Misses of a level for one cause.
#[derive(Debug, PartialEq, Serialize)]
struct OfCause {
    level: usize,
    name: &'static str,
    /// Their part of the misses of each group, 0 to 1.
    share: Vec<f32>,
}

/// Groups, column by column. A row that the page does not have is none.
#[derive(Debug, Default, Serialize)]
struct Groups {
    thread: Vec<Option<usize>>,
    line: Vec<Option<usize>>,
    object: Vec<Option<usize>>,
    /// The prices of an access, by level.
    wait: Vec<Vec<f32>>,
    instructions: Vec<f32>,
    first_touch: Vec<f32>,
}

/// Finds the rows of the page that cells refer to, and the causes of their misses. `report` is cut, and `kept` has what was
/// left. Returns `None` for cells of another report.
pub fn cells<'c>(
    report: &Report,
    kept: &Kept,
    cells: &'c Cells,
    causes: Option<&MissCauses>,
) -> Option<PageCells<'c>> {
    let levels = report.machine.levels.len();
    if !cells.is_sound(kept.threads.len(), kept.lines.len(), kept.objects.len(), levels) {
        return None;
    }
    let mut groups = Groups { wait: vec![Vec::new(); levels], ..Groups::default() };
    for of in &cells.groups {
        groups.thread.push(kept.threads[of.thread]);
        groups.line.push(kept.lines[of.line]);
        groups.object.push(kept.objects[of.object]);
        groups.wait.iter_mut().zip(&of.wait).for_each(|(level, price)| level.push(*price as f32));
        groups.instructions.push(of.instructions as f32);
        groups.first_touch.push(of.first_touch as f32);
    }
    let mut before = 0;
    let step = |&group: &usize| group - std::mem::replace(&mut before, group);
    let columns = &cells.cells;
    let key = |data: &'_ Data| (data.ty.clone(), data.member.clone());
    let fields: HashMap<_, usize> = places(report.fields.iter().map(|row| key(&row.subject)));
    let types: HashMap<_, usize> = places(report.types.iter().map(|row| row.subject.name.clone()));
    let field_of = |line: &Row<NamedAccess>| {
        let data = &line.subject.data;
        data.member.as_ref().and_then(|_| fields.get(&key(data)).copied())
    };
    let type_of = |line: &Row<NamedAccess>| types.get(line.subject.data.ty.as_ref()?).copied();
    Some(PageCells {
        stretch_accesses: cells.stretch_accesses,
        stretches: cells.stretches,
        group_steps: columns.group.iter().map(step).collect(),
        groups,
        stretch: &columns.stretch,
        accesses: &columns.accesses,
        misses: &columns.misses,
        others: &cells.others,
        fields: report.lines.iter().map(field_of).collect(),
        types: report.lines.iter().map(type_of).collect(),
        causes: causes.map(|causes| by_cause(cells, causes, levels)),
    })
}

/// Causes that a cache has by itself, the first of all: cells have no misses because of other cores.
const ALONE: usize = 3;

/// The causes that there are, by level, and the part of each in the misses of the groups of cells.
fn by_cause(cells: &Cells, causes: &MissCauses, levels: usize) -> Vec<OfCause> {
    let known: HashMap<_, _> =
        causes.groups.iter().map(|of| ((of.thread, of.line, of.object), &of.misses)).collect();
    let found: Vec<_> =
        cells.groups.iter().map(|of| known.get(&(of.thread, of.line, of.object)).copied()).collect();
    let mut made = Vec::new();
    for level in 0..levels {
        for (at, name) in CAUSES.into_iter().take(ALONE).enumerate() {
            let share = |misses: &Option<&Vec<ByCause>>| {
                let misses = misses.and_then(|misses| misses.get(level)).copied().unwrap_or_default();
                let all = misses.iter().take(ALONE).fold(0u64, |sum, more| sum.saturating_add(*more));
                if all > 0 { misses[at] as f32 / all as f32 } else { 0.0 }
            };
            let share: Vec<f32> = found.iter().map(share).collect();
            if share.iter().any(|share| *share > 0.0) {
                made.push(OfCause { level, name, share });
            }
        }
    }
    made
}

fn places<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    keys.zip(0..).collect()
}
