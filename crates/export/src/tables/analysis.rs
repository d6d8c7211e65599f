//! Tables of analyses as columns.
//!
//! A column of data becomes the columns `type`, `member` and `variable`; a line becomes `file`,
//! `line`, `function` and those behind. If an analysis has several, their names have a prefix, such
//! as `load_file` and `store_file`.

use memlode_analyses::Holds;
use memlode_report::{AnalysisTable, Data, NamedHome, NamedStackLine, NamedValue, Position};

use super::subjects;
use crate::columns::{Columns, ExportedTable};

/// Makes a table of one that an analysis filled, whose columns hold values of these kinds.
pub fn of_analysis(found: &AnalysisTable, holds: &[Holds]) -> ExportedTable {
    let mut out = Columns::new(found.rows.len());
    for (at, (column, &holds)) in found.columns.iter().zip(holds).enumerate() {
        let values: Vec<&NamedValue> = found.rows.iter().map(|row| &row[at]).collect();
        add(&mut out, &column.id, holds, &values);
    }
    out.named(&found.id)
}

fn add(out: &mut Columns, id: &str, holds: Holds, values: &[&NamedValue]) {
    match holds {
        Holds::Count | Holds::Bytes => out.maybe_u64(id, values.iter().map(|value| number(value))),
        Holds::Step => out.maybe_i64(
            id,
            values.iter().map(|value| match value {
                NamedValue::Step(step) => Some(*step),
                _ => None,
            }),
        ),
        Holds::Seconds | Holds::Share => out.maybe_f64(id, values.iter().map(|value| fraction(value))),
        Holds::Word(_) | Holds::File | Holds::Name | Holds::Number => {
            out.maybe_text(id, values.iter().map(|value| text(value)));
        }
        Holds::Histogram => pairs(out, id, ["from_bytes", "times"], values),
        Holds::Threads => pairs(out, id, ["thread", "count"], values),
        Holds::What => {
            let data: Vec<Data> = values.iter().map(|value| data(value)).collect();
            subjects::named_data(out, &prefix(id, "data"), &data.iter().collect::<Vec<_>>());
        }
        Holds::Place => {
            let lines: Vec<Option<&Position>> = values.iter().map(|value| position(value)).collect();
            subjects::positions(out, &prefix(id, "line"), &lines);
        }
        Holds::Bins => out.u64s(id, values.iter().map(|value| bins(value))),
        Holds::Stack => stacks(out, id, values),
        Holds::Object => subjects::homes(out, &values.iter().map(|value| home(value)).collect::<Vec<_>>()),
    }
}

/// Returns the prefix of the columns of one value: empty if the analysis has only one value of its
/// kind.
fn prefix(id: &str, usual: &str) -> String {
    match id.strip_suffix(usual).unwrap_or(id).trim_end_matches('_') {
        "" => String::new(),
        which => format!("{which}_"),
    }
}

/// Adds call paths as lists, one for each part of a line.
fn stacks(out: &mut Columns, id: &str, values: &[&NamedValue]) {
    let stacks: Vec<&[NamedStackLine]> = values
        .iter()
        .map(|value| match value {
            NamedValue::Stack(lines) => &lines[..],
            _ => &[],
        })
        .collect();
    let mut texts = |part: &str, text: fn(&NamedStackLine) -> &str| {
        let lists = stacks.iter().map(|lines| lines.iter().map(text).collect::<Vec<_>>());
        out.texts(&format!("{id}_{part}"), lists);
    };
    texts("functions", |line| &line.position.function);
    texts("linkage_names", |line| &line.position.linkage_name);
    texts("files", |line| line.position.file.as_deref().unwrap_or(""));
    let mut numbers = |part: &str, number: fn(&NamedStackLine) -> u64| {
        let lists = stacks.iter().map(|lines| lines.iter().map(number).collect::<Vec<_>>());
        out.u64s(&format!("{id}_{part}"), lists);
    };
    numbers("lines", |line| line.position.line.unwrap_or(0).into());
    numbers("inlined", |line| line.inlined.into());
}

fn number(value: &NamedValue) -> Option<u64> {
    match value {
        NamedValue::Count(number) | NamedValue::Bytes(number) => Some(*number),
        _ => None,
    }
}

fn fraction(value: &NamedValue) -> Option<f64> {
    match value {
        NamedValue::Seconds(number) | NamedValue::Share(number) => Some(*number),
        _ => None,
    }
}

fn bins(value: &NamedValue) -> Vec<u64> {
    match value {
        NamedValue::Bins(bins) => bins.clone(),
        _ => Vec::new(),
    }
}

fn text(value: &NamedValue) -> Option<&str> {
    match value {
        NamedValue::Text(text) => Some(text),
        NamedValue::Word(word) => Some(word),
        _ => None,
    }
}

fn data(value: &NamedValue) -> Data {
    match value {
        NamedValue::Data(data) => data.clone(),
        _ => Data::default(),
    }
}

fn position(value: &NamedValue) -> Option<&Position> {
    match value {
        NamedValue::Position(position) => Some(position),
        _ => None,
    }
}

fn home(value: &NamedValue) -> Option<&NamedHome> {
    match value {
        NamedValue::Home(home) => Some(home),
        _ => None,
    }
}

/// Adds pairs as two lists.
fn pairs(out: &mut Columns, id: &str, names: [&str; 2], values: &[&NamedValue]) {
    let both: Vec<(Vec<u64>, Vec<u64>)> = values
        .iter()
        .map(|value| match value {
            NamedValue::Histogram(buckets) => buckets.iter().copied().unzip(),
            NamedValue::Threads(threads) => threads.iter().map(|&(id, count)| (u64::from(id), count)).unzip(),
            _ => Default::default(),
        })
        .collect();
    out.u64s(&format!("{id}_{}", names[0]), both.iter().map(|(first, _)| first.clone()));
    out.u64s(&format!("{id}_{}", names[1]), both.iter().map(|(_, second)| second.clone()));
}
