//! Results of all parts, put together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use memlode_attribute::annotate::Cells;
use memlode_machine::Machine;
use memlode_trace::{Trace, UnrecordedId};

use super::run::{Head, Whole, levels};
use super::{Cut, Task, asked};
use crate::bytes::Opened;
use crate::{BadArgument, BadPart, Findings, Merged, Run, View};

/// Findings of all parts.
pub struct Finished {
    /// The trace.
    pub trace: Trace,
    /// The machine.
    pub machine: Machine,
    /// The findings of each question, in the order of the questions.
    pub found: Vec<Findings>,
    /// Chunks that were decoded.
    pub chunks: u64,
    /// Chunks that could not be decoded, a sentence each.
    pub damaged: Vec<String>,
    /// Executions of places that are not recorded, in those that were decoded.
    pub unrecorded: BTreeMap<UnrecordedId, u64>,
    /// Peak memory of the largest process that ran a task, in bytes.
    pub peak_bytes: Option<u64>,
}

/// The result of a part.
struct Part<'b> {
    head: Head,
    states: Opened<'b>,
}

/// Puts the results of all tasks of a plan together, in any order. A result that is there twice,
/// because its task was run again, counts once. The trace is opened at the path `trace`, or else at
/// the tasks' path.
///
/// # Errors
/// If a result is damaged or is no result, if one is missing, or if they are of different traces,
/// machines or questions.
pub fn finish(results: &[&[u8]], trace: Option<PathBuf>) -> Result<Finished, BadPart> {
    let mut parts = Vec::new();
    for bytes in results {
        let mut states = Opened::new(bytes)?;
        parts.push(Part { head: states.value()?, states });
    }
    let place = |part: &Part<'_>| (part.head.task.cut, part.head.task.part);
    parts.sort_by_key(place);
    parts.dedup_by(|a, b| place(a) == place(b));
    let Some(first) = parts.first() else { return Err(other("there are none")) };
    let machine = first.head.task.machine.clone();
    let machine = Machine::find(&machine).map_err(|error| other(error.to_string()))?;
    let directory = trace.unwrap_or_else(|| first.head.task.trace.clone().into());
    let trace = Trace::open(&directory).map_err(|error| other(error.to_string()))?;
    let whole = Whole::of(&trace, &machine);
    if let Some(part) = parts.iter().find(|part| part.head.whole != whole) {
        let Task { cut, part, .. } = part.head.task;
        return Err(other(format!(
            "part {part} of {} is of another trace than {}, or of another machine than `{}` is here: \
             name a machine, where `host` is not the same everywhere",
            cut.word(),
            directory.display(),
            machine.name,
        )));
    }
    let questions = complete(&parts)?;
    let (levels, latencies) = (levels(&machine), machine.latencies());
    let none = Cells::default();
    let view = View::of(&trace, &machine, (&levels, &latencies), &none);
    let mut merged = Merged::default();
    let mut sums: Vec<Option<Run>> = questions.iter().map(|_| None).collect();
    let Decoded { chunks, damaged, unrecorded } = Decoded::of(&parts);
    let peak_bytes = parts.iter().filter_map(|part| part.head.peak_bytes).max();
    for Part { head, mut states } in parts {
        for (number, question) in &head.task.questions {
            let run = asked(question).map_err(|BadArgument(why)| other(why))?;
            let run = run.load(|| states.bytes(), &mut merged, &view)?;
            match &mut sums[*number as usize] {
                Some(sum) => sum.merge(run),
                sum => *sum = Some(run),
            }
        }
        states.end()?;
    }
    let view = View { cells: merged.cells(), ..view };
    let found = sums.into_iter().flatten().flat_map(|run| run.finish(&view)).collect();
    Ok(Finished { found, chunks, damaged, unrecorded, peak_bytes, machine, trace })
}

/// The chunks of the trace, each counted once. Parts of chunks have them together; any other way to
/// cut a trace has a part that replays it to the end.
struct Decoded {
    chunks: u64,
    damaged: Vec<String>,
    unrecorded: BTreeMap<UnrecordedId, u64>,
}

impl Decoded {
    /// `parts` are complete, in the order of their cuts and numbers.
    fn of(parts: &[Part<'_>]) -> Decoded {
        let first = parts.chunk_by(|a, b| a.head.task.cut == b.head.task.cut).next().unwrap_or_default();
        let of_chunks = first.iter().all(|part| part.head.task.cut == Cut::Chunks);
        let counted = if of_chunks { first } else { &first[first.len().saturating_sub(1)..] };
        let mut decoded = Decoded { chunks: 0, damaged: Vec::new(), unrecorded: BTreeMap::new() };
        for Part { head, .. } in counted {
            decoded.chunks = decoded.chunks.saturating_add(head.chunks);
            decoded.damaged.extend(head.damaged.iter().cloned());
            for (&place, times) in &head.unrecorded {
                let sum = decoded.unrecorded.entry(UnrecordedId(place)).or_default();
                *sum = sum.saturating_add(*times);
            }
        }
        decoded
    }
}

/// All questions, if each part of each is there, and all ask the same.
fn complete(parts: &[Part<'_>]) -> Result<Vec<String>, BadPart> {
    let mut all: Vec<(u32, &String)> = Vec::new();
    for of_cut in parts.chunk_by(|a, b| a.head.task.cut == b.head.task.cut) {
        let first = &of_cut[0].head.task;
        if let Some(Part { head, .. }) = of_cut
            .iter()
            .find(|part| part.head.task.questions != first.questions || part.head.task.parts != first.parts)
        {
            return Err(other(format!("part {} of {} answers others", head.task.part, first.cut.word())));
        }
        let expected = if first.cut == Cut::Whole { 1 } else { first.parts };
        let is_there =
            |number: &u32| of_cut.get(*number as usize).is_some_and(|part| part.head.task.part == *number);
        if let Some(missing) = (0..expected).find(|number| !is_there(number)) {
            let cut = first.cut.word();
            return Err(other(format!("part {missing} of {expected} by {cut} is missing")));
        }
        all.extend(first.questions.iter().map(|(number, question)| (*number, question)));
    }
    all.sort();
    let asked = parts.iter().map(|part| part.head.task.asked).max().unwrap_or(0);
    match (0..asked).find(|number| all.get(*number as usize).is_none_or(|(known, _)| known != number)) {
        Some(missing) => Err(other(format!("nothing answers question {missing}"))),
        None if all.len() != asked as usize => Err(other("they answer different questions")),
        None => Ok(all.into_iter().map(|(_, question)| question.clone()).collect()),
    }
}

fn other(why: impl Into<String>) -> BadPart {
    BadPart::OtherWhole(why.into())
}
