//! Words for what measuring finds: `bench`, `bias`, `machine` and `validate`, a module each.

pub mod allocators;
pub mod bench;
pub mod blocks;
pub mod counters;
pub mod environment;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod heap;
pub mod links;
pub mod machine;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod page_names;
pub mod pages;
pub mod picture;
pub mod validate;
mod verdict;

use comfy_table::Table;
use memlode_measure::bias::sweep::{SweepVerdict, Swept};

use picture::{Drawing, Labels};

/// A table without blanks at the ends of lines.
fn trim(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The same, each line ended.
fn ended_lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// Returns by how much a ratio lies above 1.
fn beyond(ratio: f64) -> String {
    percent(ratio - 1.0)
}

/// The times of a sweep by where its contexts lie, with the spikes marked.
fn swept_picture(labels: Labels, swept: &Swept, places: impl Iterator<Item = f64>) -> Drawing {
    let points: Vec<(f64, f64)> = places.zip(swept.ratio.iter().copied()).collect();
    let marked = swept.of(SweepVerdict::Spike).iter().map(|spike| points[spike.context]).collect();
    Drawing { labels, points, marked, names: Vec::new() }
}
