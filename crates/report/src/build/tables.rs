//! Findings of analyses of every access, with names.

use memlode_analyses::parts::Finished;
use memlode_analyses::{Table, Value};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;

use super::naming::Naming;
use super::{borrowed_by_site, notes};
use crate::model;

/// Formats the results of some analyses of `trace` on `machine`. `replayed` has the chunks that
/// could not be decoded.
pub fn analysis(trace: &Trace, machine: &Machine, tables: &[Table], replayed: &Replayed) -> model::Analysis {
    named(trace, machine, tables, notes::notes(trace, Some(replayed)))
}

/// Formats the results of analyses that looked at a trace in parts, as [`analysis`] those of one
/// pass.
///
/// # Errors
/// That nothing of the trace could be decoded.
pub fn analysis_in_parts(finished: Finished) -> Result<model::Analysis, String> {
    let Finished { trace, machine, found, chunks, damaged, unrecorded, .. } = finished;
    if let Some(first) = damaged.first().filter(|_| chunks == 0) {
        return Err(notes::nothing_in(&trace, first));
    }
    let replayed = Replayed { chunks: chunks as usize, unrecorded, ..Replayed::default() };
    let notes = notes::notes_without(&trace, Some(&replayed), damaged);
    let tables: Vec<Table> = found.into_iter().flat_map(|found| found.tables).collect();
    Ok(named(&trace, &machine, &tables, notes))
}

fn named(trace: &Trace, machine: &Machine, tables: &[Table], notes: Vec<model::Note>) -> model::Analysis {
    let borrowed = borrowed_by_site(trace.sites());
    let naming = Naming::new(trace.sites()).borrowing(&borrowed);
    model::Analysis {
        trace: trace.directory().display().to_string(),
        machine: machine.name.clone(),
        notes,
        tables: tables.iter().map(|found| table(naming, found)).collect(),
    }
}

fn table(naming: Naming<'_>, found: &Table) -> model::Table {
    let row = |row: &Vec<Value>| row.iter().map(|found| value(naming, found)).collect();
    model::Table {
        id: found.meta.id.into(),
        title: found.meta.title.into(),
        columns: found.columns.iter().map(|id| model::Column { id: id.clone() }).collect(),
        rows: found.rows.iter().map(row).collect(),
        is_whole: found.meta.is_whole,
    }
}

fn value(naming: Naming<'_>, found: &Value) -> model::Value {
    match found {
        Value::Nothing => model::Value::Nothing,
        Value::Count(n) => model::Value::Count(*n),
        Value::Bytes(n) => model::Value::Bytes(*n),
        Value::Step(step) => model::Value::Step(*step),
        Value::Word(word) => model::Value::Word((*word).into()),
        Value::Histogram(buckets) => model::Value::Histogram(buckets.clone()),
        Value::Bins(bins) => model::Value::Bins(bins.clone()),
        Value::Seconds(seconds) => model::Value::Seconds(*seconds),
        Value::Share(share) => model::Value::Share(*share),
        Value::What(what) => model::Value::Data(naming.data(what)),
        Value::Place(place) => model::Value::Position(naming.position(place)),
        Value::Object(object) => model::Value::Home(naming.home(&object.home, object.path.iter().copied())),
        Value::Stack(lines) => {
            let line = |(line, is_inlined): &(_, _)| model::StackLine {
                position: naming.line(line),
                inlined: *is_inlined,
            };
            model::Value::Stack(lines.iter().map(line).collect())
        }
        Value::File(directory, name) => model::Value::Text(naming.file((*directory, *name))),
        Value::Name(what) => model::Value::Text(data_name(&naming.data(what))),
        Value::Number(number) => model::Value::Text(number.to_string()),
        Value::Threads(threads) => {
            model::Value::Threads(threads.iter().map(|(thread, count)| (thread.0, *count)).collect())
        }
    }
}

/// The single name of data, as in the paper on shared variables: `stats.hits`, `counter`.
fn data_name(data: &model::Data) -> String {
    match (&data.ty, &data.member, &data.variable) {
        (Some(ty), Some(member), _) => format!("{ty}.{member}"),
        (_, _, Some(variable)) => variable.clone(),
        (ty, member, None) => ty.as_ref().or(member.as_ref()).cloned().unwrap_or_default(),
    }
}
