//! Events that move with cycles.

use comfy_table::{CellAlignment, Table, presets};
use memlode_counters::refusal::CountRefusal;
use memlode_measure::bias::counters::Correlations;

use super::ended_lines;
use crate::render::terminal::refusal;

/// Returns why an event is not in the table.
pub fn refused(event: &str, why: &CountRefusal) -> String {
    format!("{event}: {}", refusal(why))
}

/// Returns a table of at most `top` events.
pub fn text(found: &Correlations, top: usize) -> String {
    let mut table = Table::new();
    let head = ["event", "r", "rank r", "median"].map(str::to_owned).into_iter();
    let spikes = found.spikes.iter().map(|context| format!("spike at {context}"));
    table.load_preset(presets::NOTHING).set_header(head.chain(spikes));
    for row in found.rows.iter().take(top + 1) {
        let counts = std::iter::once(row.median).chain(row.spikes.iter().copied());
        let correlations =
            [row.event.clone(), format!("{:+.2}", row.pearson), format!("{:+.2}", row.spearman)];
        table.add_row(correlations.into_iter().chain(counts.map(|count| format!("{count:.0}"))));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let none = match found.spikes.is_empty() {
        true => format!("No context of {} spikes.\n", found.contexts),
        false => String::new(),
    };
    ended_lines(&table) + &none
}

#[cfg(test)]
mod tests {
    use memlode_measure::bias::counters::CounterTable;

    use super::*;

    fn found(cycles: impl Fn(u32) -> u32) -> Correlations {
        let rows: String = (0..100).map(|at| format!("{at},{},{at},7\n", cycles(at))).collect();
        let table = CounterTable::parse(&format!("c,cycles,x,y\n{rows}"), Some("c"), "cycles");
        table.expect("a table").correlate(2)
    }

    #[test]
    fn spikes_have_columns_of_their_own() {
        let text = text(&found(|at| if at == 31 { 9000 } else { 1000 + at % 7 }), 5);
        assert!(text.contains("spike at 31") && text.contains(" 9000"), "{text}");
    }

    #[test]
    fn an_even_table_says_so() {
        let text = text(&found(|at| 1000 + at % 7), 0);
        assert!(text.contains("No context of 100 spikes") && !text.contains("spike at"), "{text}");
    }
}
