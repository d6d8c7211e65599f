//! A trace in parts, each of which any process of any machine can look at, with what they found put together.
//!
//! ```text
//!   plan: questions, number of parts ──► tasks, small        here
//!   Task::run: its part of the trace ──► bytes               anywhere, one process each
//!   finish: bytes of all tasks ──► what one pass finds       here
//! ```
//! A part of chunks decodes these alone. Any other part replays the trace in order up to its end, for
//! objects and order are known by what came before, but without caches, and rows are made and looked
//! at in the part alone: that is dear where looking is, as for reuse distances. A stretch begins near
//! its first access once there are tables of what came before ([`Task::run`]). Caches depend on
//! everything before, so that who asks for levels runs as one task.

mod finish;
mod memory;
mod run;

use memlode_trace::Trace;
use serde::{Deserialize, Serialize};

pub use finish::{Finished, finish};
pub use memory::peak_memory;
pub use run::Prepared;

use crate::{Arguments, BadArgument, Reads, Run, all};

/// The parts that a trace is cut into for some analyses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cut {
    /// None: one task.
    Whole,
    /// Chunks of any thread, which are decoded and nothing else.
    Chunks,
    /// Stretches of replay order.
    Stretches,
    /// Lines of memory.
    Lines,
    /// Threads.
    Threads,
}

impl Cut {
    /// Its name, in one word.
    pub fn word(self) -> &'static str {
        match self {
            Cut::Whole => "whole",
            Cut::Chunks => "chunks",
            Cut::Stretches => "stretches",
            Cut::Lines => "lines",
            Cut::Threads => "threads",
        }
    }
}

/// One part of a trace, and the analyses that look at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The trace directory, by its path for the process that runs the task.
    pub trace: String,
    /// The machine, as [`memlode_machine::Machine::find`] finds it.
    pub machine: String,
    /// The way in which the trace is cut.
    pub cut: Cut,
    /// Which part of it this is, from 0.
    pub part: u32,
    /// Number of parts.
    pub parts: u32,
    /// The place among all questions of each that looks at this part, and the question: `shared:least=1000`.
    pub questions: Vec<(u32, String)>,
    /// Number of all questions.
    pub asked: u32,
}

/// Makes tasks of some questions, each the name of an analysis of every access with its arguments: `shared:least=1000,ratio=4`. Each
/// question that can be cut is cut into `parts`.
///
/// # Errors
/// That there is no such analysis, or that it does not take such arguments.
pub fn plan(
    trace: &Trace,
    machine: &str,
    questions: &[String],
    parts: u32,
) -> Result<Vec<Task>, BadArgument> {
    let directory = directory(trace)?;
    let mut cuts: Vec<(Cut, Vec<(u32, String)>)> = Vec::new();
    for (number, question) in (0..).zip(questions) {
        let cut = match parts {
            0 | 1 => Cut::Whole,
            _ => cut(&asked(question)?),
        };
        asked(question)?;
        match cuts.iter_mut().find(|(known, _)| *known == cut) {
            Some((_, questions)) => questions.push((number, question.clone())),
            None => cuts.push((cut, vec![(number, question.clone())])),
        }
    }
    cuts.sort_by_key(|(cut, _)| *cut);
    let asked = cuts.iter().map(|(_, questions)| questions.len() as u32).sum();
    let tasks = |(cut, questions): &(Cut, Vec<(u32, String)>)| {
        let parts = if *cut == Cut::Whole { 1 } else { parts };
        let task = |part| Task {
            trace: directory.clone(),
            machine: machine.to_owned(),
            cut: *cut,
            part,
            parts,
            questions: questions.clone(),
            asked,
        };
        (0..parts).map(task).collect::<Vec<Task>>()
    };
    Ok(cuts.iter().flat_map(tasks).collect())
}

/// Makes a task without analyses for each part, for callers that read the rows themselves
/// ([`Task::prepare`]).
///
/// # Errors
/// If the directory's name is no text.
pub fn plan_rows(trace: &Trace, machine: &str, cut: Cut, parts: u32) -> Result<Vec<Task>, BadArgument> {
    let directory = directory(trace)?;
    let parts = if cut == Cut::Whole { 1 } else { parts.max(1) };
    let task = |part| Task {
        trace: directory.clone(),
        machine: machine.to_owned(),
        cut,
        part,
        parts,
        questions: Vec::new(),
        asked: 0,
    };
    Ok((0..parts).map(task).collect())
}

/// The directory, which travels as text.
fn directory(trace: &Trace) -> Result<String, BadArgument> {
    let directory = trace.directory();
    let text = directory.to_str().map(String::from);
    text.ok_or_else(|| {
        BadArgument(format!("{} is no name that can be sent: rename it in UTF-8", directory.display()))
    })
}

/// The analysis that a question asks for, and those that it goes on from.
fn asked(question: &str) -> Result<Run, BadArgument> {
    let (name, arguments) = question.split_once(':').unwrap_or((question, ""));
    let all = all();
    let of_rows = || all.iter().filter(|known| known.meta.reads == Reads::Rows);
    let Some(known) = of_rows().find(|known| known.meta.id == name) else {
        let names: Vec<&str> = of_rows().map(|known| known.meta.id).collect();
        let names = names.join(", ");
        return Err(BadArgument(format!("there is no analysis `{name}` of every access; there are {names}")));
    };
    let arguments: Arguments = arguments.parse()?;
    let mut run = Run::default();
    let added = run.add(known, &arguments);
    added.map_err(|BadArgument(why)| BadArgument(format!("{question}: {why}")))?;
    Ok(run)
}

/// The cut that makes the least work.
fn cut(run: &Run) -> Cut {
    let splits = run.splits();
    match () {
        () if run.reads_levels() => Cut::Whole,
        () if splits.chunks => Cut::Chunks,
        () if splits.time => Cut::Stretches,
        () if splits.address.is_some() => Cut::Lines,
        () if splits.thread => Cut::Threads,
        () => Cut::Whole,
    }
}
