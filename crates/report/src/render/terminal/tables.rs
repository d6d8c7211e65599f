//! Tables of analyses as text.

use std::fmt::Write;

use super::label::{Detail, Label, distinct};
use super::names::{data_label, home_label, place_label, stack_label};
use super::{Style, plain_table};
use crate::model::{Table, Value};
use crate::render::text::{bytes, count, percent, percent_of, printable};

/// Threads of a row that are named.
const THREADS: usize = 4;

/// Columns that names keep.
const LEAST: usize = 12;

/// A table: at most `style.top` rows, unless they belong together.
pub fn table(table: &Table, style: Style) -> String {
    let mut out = String::new();
    let shown = if table.is_whole { table.rows.len() } else { table.rows.len().min(style.top) };
    let of = if table.rows.len() > shown {
        format!(" (first {shown} of {})", table.rows.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "\n{}{of}", style.heading(&table.title));
    if table.rows.is_empty() {
        let _ = writeln!(out, "  none");
        return out;
    }
    let headings: Vec<String> = table.columns.iter().map(|column| column.id.replace('_', " ")).collect();
    let rows = &table.rows[..shown];
    // Numbers take what they need; what is left is for names, the widest of which give way.
    let labels =
        |row: &Vec<Value>, detail| row.iter().map(|value| cell(value, detail)).collect::<Vec<Label>>();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, label) in widths.iter_mut().zip(labels(row, 0)) {
            *width = (*width).max(label.width());
        }
    }
    let is_name = |&at: &usize| rows.iter().any(|row| is_name(&row[at]));
    let (names, others): (Vec<usize>, Vec<usize>) = (0..widths.len()).partition(is_name);
    // Where names and numbers do not fit side by side, names have a line of their own.
    let is_beside = widths.iter().map(|width| width + 2).sum::<usize>() <= style.width || names.is_empty();
    let room = style.width.saturating_sub(2);
    while !is_beside && names.iter().map(|&at| widths[at] + 2).sum::<usize>() > room {
        let widest = names.iter().copied().max_by_key(|&at| widths[at]).filter(|&at| widths[at] > LEAST);
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    let columns = if is_beside { (0..widths.len()).collect() } else { others };
    let mut lines = plain_table(&columns.iter().map(|&at| &headings[at]).collect::<Vec<_>>(), 0);
    for (number, &at) in columns.iter().enumerate() {
        if let Some(column) = lines.column_mut(number).filter(|_| is_words(&table.rows[0][at])) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    let mut above: Vec<Option<String>> = vec![None];
    for row in distinct(rows, labels, &widths) {
        let named: Vec<&str> = names.iter().map(|&at| row[at].as_str()).collect();
        above.push((!is_beside).then(|| named.join("  ")));
        lines.add_row(columns.iter().map(|&at| &row[at]));
    }
    let margin = if is_beside { "  " } else { "    " };
    for (line, above) in lines.lines().zip(above) {
        above.into_iter().for_each(|names| _ = writeln!(out, "  {names}"));
        let _ = writeln!(out, "{margin}{}", line.trim_end());
    }
    out
}

fn is_name(value: &Value) -> bool {
    matches!(value, Value::Data(_) | Value::Position(_) | Value::Home(_) | Value::Stack(_))
}

fn is_words(value: &Value) -> bool {
    matches!(
        value,
        Value::Data(_)
            | Value::Position(_)
            | Value::Home(_)
            | Value::Stack(_)
            | Value::Threads(_)
            | Value::Word(_)
            | Value::Text(_)
            | Value::Histogram(_)
            | Value::Bins(_)
    )
}

fn cell(value: &Value, detail: Detail) -> Label {
    let text = match value {
        Value::Nothing => "–".to_string(),
        Value::Count(n) => count(*n),
        Value::Bytes(n) => bytes(*n),
        Value::Step(0) => "0".to_string(),
        Value::Step(step) => format!("{step:+}"),
        Value::Word(word) => (*word).to_string(),
        Value::Text(text) => printable(text).into_owned(),
        Value::Histogram(buckets) => bars(buckets),
        Value::Bins(bins) => even_bars(bins),
        Value::Seconds(seconds) => format!("{seconds:.6}"),
        Value::Share(share) => percent_of(*share),
        Value::Data(data) => return data_label(data, detail),
        Value::Position(position) => return place_label(position, detail),
        Value::Home(at) => return home_label(at, detail),
        Value::Stack(lines) => return stack_label(lines, detail),
        Value::Threads(threads) => {
            let total: u64 = threads.iter().map(|(_, n)| n).sum();
            let part = |(thread, n): &(u32, u64)| format!("{thread}: {}", percent(*n, total));
            let mut parts: Vec<String> = threads.iter().take(THREADS).map(part).collect();
            parts.extend((threads.len() > THREADS).then(|| "…".to_string()));
            parts.join(", ")
        }
    };
    Label::default().fixed(&text)
}

/// A histogram as a bar for each factor of four, from 64 bytes to 256 MiB and above; the highest is full.
fn bars(buckets: &[(u64, u64)]) -> String {
    let mut heights = [0u64; 12];
    for &(from, n) in buckets {
        let place = (from.max(64).ilog2() as usize - 6) / 2;
        heights[place.min(heights.len() - 1)] += n;
    }
    drawn(&heights)
}

/// Bins as at most sixteen bars, each of as many bins.
fn even_bars(bins: &[u64]) -> String {
    let together = bins.len().div_ceil(16).max(1);
    let heights: Vec<u64> = bins.chunks(together).map(|bins| bins.iter().sum()).collect();
    drawn(&heights)
}

/// Bars, the highest of which is full.
fn drawn(heights: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = heights.iter().copied().max().unwrap_or(0).max(1);
    let bar =
        |&n: &u64| if n == 0 { ' ' } else { BARS[((n * 8).div_ceil(highest) as usize).clamp(1, 8) - 1] };
    heights.iter().map(bar).collect()
}
