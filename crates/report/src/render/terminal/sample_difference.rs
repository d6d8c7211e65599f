//! Two recordings of samples beside each other, in words.

use memlode_sample::{SampleDifference, SampleReport, ShareChange};

use super::Style;
use super::rows::NamedRows;
use crate::names::demangle_short;
use crate::render::text::{brief, count, cut_end, percent_of, printable};

/// Returns what `memlode diff` prints of two recordings of samples.
pub fn sample_difference(found: &SampleDifference, style: Style) -> String {
    let side =
        |report: &SampleReport| format!("{} ({} samples)", printable(&report.subject), count(report.samples));
    let unit = if found.before.is_time && found.after.is_time { "time" } else { "samples" };
    let text = format!(
        "{} and {}: shares of the {unit}, estimated from samples. A share is told to have changed if chance explains the \
         difference in fewer than 5 of 100 pairs of recordings. Shares say nothing of how long the whole took: time that",
        side(&found.before),
        side(&found.after)
    ) + " with `memlode bench`";
    let mut out = style.paragraph("samples", &text);
    out += &table("Data", &["data"], &found.data, style);
    out + &table("Functions", &["function"], &found.functions, style)
}

fn table(
    title: &'static str,
    columns: &'static [&'static str],
    rows: &[ShareChange],
    style: Style,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let room = style.width.saturating_sub(60).max(30);
    let row = |row: &ShareChange| {
        let name = match row.name.as_str() {
            "" => "(no function is known)".into(),
            name => brief(&printable(&demangle_short(name))),
        };
        let change = match row.is_changed {
            true => format!("{:+.1} points", 100.0 * (row.after.share - row.before.share)),
            false => "within chance".to_owned(),
        };
        let shares = [row.before, row.after]
            .map(|share| [percent_of(share.share), format!("±{}", percent_of(share.error))]);
        (vec![cut_end(&name, room).into_owned()], [shares.concat(), vec![change]].concat())
    };
    let (texts, numbers): (Vec<_>, Vec<_>) = rows.iter().take(style.top).map(row).unzip();
    let headings = ["before", "±", "after", "±", "change"].map(str::to_owned);
    NamedRows { title, columns, texts, below: Vec::new() }.table(&headings, numbers, rows.len(), style)
}
