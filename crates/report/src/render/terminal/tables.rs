//! Tables of analyses as text.

use std::fmt::Write;

use super::{Style, home, name, place, plain_table, write_table};
use crate::model::{Table, Value};
use crate::render::text::{bytes, count, cut, percent, percent_of};

/// Threads of a row that are named.
const THREADS: usize = 4;

/// A table: at most `style.top` rows, unless they say something together.
pub fn table(table: &Table, style: Style) -> String {
    let mut out = String::new();
    let shown = if table.is_whole { table.rows.len() } else { table.rows.len().min(style.top) };
    let of = if table.rows.len() > shown {
        format!(" (first {shown} of {})", table.rows.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "\n{}{of}", style.heading(table.title));
    if table.rows.is_empty() {
        let _ = writeln!(out, "  none");
        return out;
    }
    let headings: Vec<String> = table.columns.iter().map(|column| column.id.replace('_', " ")).collect();
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
        lines.add_row(row.iter().map(|value| cut(&cell(value), room).into_owned()));
    }
    write_table(&mut out, &lines);
    out
}

fn is_words(value: &Value) -> bool {
    matches!(
        value,
        Value::Data(_)
            | Value::Position(_)
            | Value::Home(_)
            | Value::Threads(_)
            | Value::Word(_)
            | Value::Histogram(_)
    )
}

fn cell(value: &Value) -> String {
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
        Value::Data(data) => name(data),
        Value::Position(position) => place(position),
        Value::Home(at) => home(at),
        Value::Threads(threads) => {
            let total: u64 = threads.iter().map(|(_, n)| n).sum();
            let part = |(thread, n): &(u32, u64)| format!("{thread}: {}", percent(*n, total));
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
