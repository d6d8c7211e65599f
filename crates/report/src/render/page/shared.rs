//! Words for objects that threads take cache lines of from each other.

use serde::Serialize;

use super::{Commands, data_name, object_name, place_name};
use crate::model::{AdvisedEdit, Report, SharedObject};
use crate::ranked::costly;
use crate::render::terminal::findings::arrow_of_shared;
use crate::render::terminal::shared::{fact, pairs};
use crate::render::text::percent_of;

/// The words of an object that threads take lines of.
#[derive(Debug, Serialize)]
pub struct SharedWords {
    /// The data that is waited for most.
    pub data: String,
    /// The line that waits most.
    pub place: String,
    /// The access that waits most, for a link.
    pub access: crate::model::Access,
    /// Its share of the run's cycles.
    pub share: String,
    /// Its cost, the kind of sharing, and its home.
    pub facts: Vec<String>,
    /// The edit that is advised, and its gain.
    pub advice: Option<String>,
    /// The command that replays it.
    pub command: Option<String>,
}

/// Finds the words of the objects that are findings, the costliest first.
pub fn words(report: &Report, commands: &Commands<'_>) -> Vec<SharedWords> {
    let mut edits: Vec<&AdvisedEdit> = report.advised.iter().collect();
    costly(report).into_iter().filter_map(|object| one(report, object, &mut edits, commands)).collect()
}

fn one(
    report: &Report,
    object: &SharedObject,
    edits: &mut Vec<&AdvisedEdit>,
    commands: &Commands<'_>,
) -> Option<SharedWords> {
    let found = report.sharing.as_ref()?;
    let access = &pairs(found, object).first()?.0.missed.access;
    let home = match object.stack_of {
        Some(thread) => format!("in the stack of thread {thread}"),
        None => format!("in {}", object_name(&object.object)),
    };
    let edit = object.edits.first();
    Some(SharedWords {
        data: data_name(&access.data),
        place: place_name(&access.position),
        access: access.clone(),
        share: share(report, object),
        facts: vec![fact(object), home],
        advice: arrow_of_shared(edits, object),
        command: edit.map(|edit| format!("{} --edit {}", (commands.of)("whatif"), (commands.quoted)(edit))),
    })
}

fn share(report: &Report, object: &SharedObject) -> String {
    percent_of(object.cycles as f64 / report.run_cycles.max(1.0))
}

/// The first sentence of a page, where an object that is shared costs more than any data that is waited for.
pub fn first(report: &Report) -> Option<String> {
    let object = costly(report).into_iter().next()?;
    let waits = report.findings.first().map_or(0.0, |finding| finding.cost.wait_cycles);
    let access = &pairs(report.sharing.as_ref()?, object).first()?.0.missed.access;
    (object.cycles as f64 > waits).then(|| {
        format!(
            "Threads lose about {} of the cycles to cache lines that they take from each other, of {}, at {}.",
            share(report, object),
            data_name(&access.data),
            place_name(&access.position)
        )
    })
}
