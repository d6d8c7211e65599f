//! Tables of analyses that look at every access, as text and as JSON.

use std::fmt::Write;

use memlode_analyses::events::{Table, Value};
use memlode_trace::Trace;
use serde_json::{Map, json};

use crate::naming::Naming;
use crate::terminal::{Style, home, name, place, plain_table};
use crate::text::{bytes, count, cut, percent, percent_of};

/// Threads of a row that are named.
const THREADS: usize = 4;

/// A table as text: at most `style.top` rows.
pub fn text(trace: &Trace, table: &Table, style: Style) -> String {
    let mut out = String::new();
    let title = if style.colours { format!("\x1b[1m{}\x1b[0m", table.title) } else { table.title.clone() };
    let shown = if table.is_whole { table.rows.len() } else { table.rows.len().min(style.top) };
    let of = if table.rows.len() > shown {
        format!(" (first {shown} of {})", table.rows.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "\n{title}{of}");
    if table.rows.is_empty() {
        let _ = writeln!(out, "  none");
        return out;
    }
    let headings: Vec<String> = table.columns.iter().map(|column| column.replace('_', " ")).collect();
    let mut lines = plain_table(&headings, 0);
    let words = table.rows[0].iter().filter(|value| is_words(value)).count();
    let bars = table.rows[0].iter().filter(|value| matches!(value, Value::Histogram(_))).count();
    for (at, value) in table.rows[0].iter().enumerate() {
        if let Some(column) = lines.column_mut(at).filter(|_| is_words(value)) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    // Numbers take some ten columns each, and bars a few more; names share the rest.
    let numbers = 11 * (table.columns.len() - words) + 14 * bars;
    let room = (style.width.saturating_sub(numbers) / (words - bars).max(1)).max(16);
    for row in table.rows.iter().take(shown) {
        lines.add_row(row.iter().map(|value| cut(&cell(trace, value), room).into_owned()));
    }
    for line in lines.lines() {
        let _ = writeln!(out, "  {}", line.trim_end());
    }
    out
}

fn is_words(value: &Value) -> bool {
    matches!(
        value,
        Value::What(_)
            | Value::Place(_)
            | Value::Object(_)
            | Value::Threads(_)
            | Value::Word(_)
            | Value::Histogram(_)
    )
}

fn cell(trace: &Trace, value: &Value) -> String {
    let naming = Naming::new(trace.sites());
    match value {
        Value::Nothing => "–".to_string(),
        Value::Count(n) => count(*n),
        Value::Bytes(n) => bytes(*n),
        Value::Step(0) => "0".to_string(),
        Value::Step(step) => format!("{step:+}"),
        Value::Word(word) => (*word).to_string(),
        Value::Histogram(buckets) => bars(buckets),
        Value::Seconds(seconds) => format!("{seconds:.6}"),
        Value::Share(share) => percent_of(*share),
        Value::What(what) => what.map_or("–".to_string(), |what| name(&naming.data(&what))),
        Value::Place(at) => place(&naming.position(at)),
        Value::Object(object) => home(&naming.home(&object.home, object.path.iter().copied())),
        Value::Threads(threads) => {
            let total: u64 = threads.iter().map(|(_, n)| n).sum();
            let part = |(thread, n): &(memlode_trace::event::ThreadId, u64)| {
                format!("{}: {}", thread.0, percent(*n, total))
            };
            let mut parts: Vec<String> = threads.iter().take(THREADS).map(part).collect();
            parts.extend((threads.len() > THREADS).then(|| "…".to_string()));
            parts.join(", ")
        }
    }
}

/// A histogram as a bar for each factor of four, from 64 bytes to 256 MiB and above; the highest is full.
fn bars(buckets: &[(u64, u64)]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut heights = [0u64; 12];
    for &(from, n) in buckets {
        let place = (from.max(64).ilog2() as usize - 6) / 2;
        heights[place.min(heights.len() - 1)] += n;
    }
    let highest = heights.iter().copied().max().unwrap_or(0).max(1);
    let bar =
        |&n: &u64| if n == 0 { ' ' } else { BARS[((n * 8).div_ceil(highest) as usize).clamp(1, 8) - 1] };
    heights.iter().map(bar).collect()
}

/// All rows of a table, each an object with the columns as members.
pub fn json(trace: &Trace, table: &Table) -> serde_json::Value {
    let row = |row: &Vec<Value>| {
        let members = table.columns.iter().zip(row).map(|(name, value)| (name.clone(), member(trace, value)));
        serde_json::Value::Object(Map::from_iter(members))
    };
    json!({ "table": table.id, "title": table.title, "rows": table.rows.iter().map(row).collect::<Vec<_>>() })
}

fn member(trace: &Trace, value: &Value) -> serde_json::Value {
    let naming = Naming::new(trace.sites());
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Count(n) | Value::Bytes(n) => json!(n),
        Value::Step(step) => json!(step),
        Value::Word(word) => json!(word),
        Value::Histogram(buckets) => json!(buckets),
        Value::Seconds(number) | Value::Share(number) => json!(number),
        Value::What(what) => json!(what.map(|what| naming.data(&what))),
        Value::Place(place) => json!(naming.position(place)),
        Value::Object(object) => json!(naming.home(&object.home, object.path.iter().copied())),
        Value::Threads(threads) => {
            json!(threads.iter().map(|(thread, count)| json!([thread.0, count])).collect::<Vec<_>>())
        }
    }
}
