//! Reports as text that fits a screen.

mod advice;
mod causes;
mod comparison;
pub(super) mod findings;
mod label;
mod listing;
mod names;
mod ratios;
mod reasons;
mod record;
mod refusal;
pub(super) mod report;
mod rows;
mod rules;
pub(super) mod sample;
mod sample_difference;
mod sampled;
mod sampled_listing;
pub(super) mod shared;
mod sharing;
mod source;
mod stat;
mod style;
mod tables;
mod timing;
mod transfers;

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::sentences;
use crate::model::{Analysis, Report, SharedObject, Simulation};

pub use advice::{NOTHING_TRIED, advice, advice_sentences, found, tries};
pub use comparison::{comparison, confidence, hand_edit, verdict, what_if};
pub use findings::finding_sentences;
pub use listing::{CAUSES, LineEvent, listing};
pub use names::{home, name, object, place};
pub use record::draw as draw_record;
pub use refusal::{refusal, tier_refusal, tier_use};
pub use sample_difference::sample_difference;
pub use sampled::sampled;
pub use sampled_listing::{SampleEvent, sampled_listing};
pub use stat::{stat, stat_comparison};
pub use style::Style;
pub use timing::timing;

/// A table of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Data and line.
    Line,
    /// Data: members, and variables and arrays that have none.
    Data,
    /// Type.
    Type,
    /// Member of a type.
    Field,
    /// Objects.
    Object,
    /// Function.
    Function,
    /// Thread.
    Thread,
}

/// Returns the output of `memlode report`.
pub fn report(found: &Report, by: &[By], style: Style) -> String {
    let sharing = side_by_side(found, &findings::listed(found), style);
    let (header, findings) = (report::header(found, style), findings::findings(found, style));
    header + &findings + &sharing + &report::tables(found, by, style)
}

fn side_by_side(found: &Report, listed: &[&SharedObject], style: Style) -> String {
    found.sharing.as_ref().map(|found| transfers::transfers(found, listed, style)).unwrap_or_default()
}

/// Returns the output of `memlode sim`.
pub fn simulation(found: &Simulation, by: &[By], style: Style) -> String {
    let mut text = report::header(&found.report, style);
    text += &rules::rules(&found.rules, style);
    for &table in by {
        text += &causes::causes(found, table, style);
    }
    text += &sharing::sharing(found, style);
    text += &side_by_side(&found.report, &[], style);
    text += &rules::prefetchers(&found.besides, style);
    text += &causes::aliases(found, style);
    text + &report::tables(&found.report, &[By::Thread], Style { top: usize::MAX, ..style })
}

/// Returns the output of `memlode replay --analyse` and `memlode timeline`, and its notes.
pub fn analysis(found: &Analysis, style: Style) -> (String, Vec<String>) {
    let tables = found.tables.iter().map(|table| tables::table(table, style)).collect();
    (tables, found.notes.iter().map(sentences::note).collect())
}

/// A table without lines; the columns from `left` on hold numbers.
fn plain_table(headings: &[impl ToString], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(ToString::to_string));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn write_table(out: &mut String, table: &Table) {
    for line in table.lines() {
        let _ = writeln!(out, "  {}", line.trim_end());
    }
}
