//! Which events of a processor move with its cycles: a table of counters over many contexts, as `perf stat`
//! can fill it.
//!
//! The table has a row for each context and a column for each event. Events are ordered by how far they move
//! with cycles, in a straight line (Pearson) and by rank (Spearman); beside each stand its median over all
//! contexts and its value in the contexts whose cycles spike. An event that differs there, and nowhere else,
//! points to the cause.

use serde::Serialize;

use crate::Error;
use crate::stats::{median, pearson, quantile, spearman};

/// A spike is a context whose cycles lie above the median by more than this many times the distance from the
/// median to the 90% quantile: contexts that merely vary do not reach it.
const FAR: f64 = 3.0;
/// A spike is at least this part slower, however even the others are.
const LEAST: f64 = 0.02;

/// Counts by context and event.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterTable {
    /// Names of the contexts.
    contexts: Vec<String>,
    /// Names of the events other than cycles, and their counts by context.
    events: Vec<(String, Vec<f64>)>,
    /// The name of the event that others are compared with, and its counts.
    cycles: (String, Vec<f64>),
}

/// Events that move with cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correlations {
    /// Contexts of the table.
    pub contexts: usize,
    /// The contexts whose cycles spike, the highest first.
    pub spikes: Vec<String>,
    /// Cycles, and then the events, ordered by correlation. Events that never vary are left out.
    pub rows: Vec<CounterRow>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterRow {
    /// Its name.
    pub event: String,
    /// Pearson's correlation with cycles.
    pub pearson: f64,
    /// Spearman's.
    pub spearman: f64,
    /// The median over all contexts.
    pub median: f64,
    /// Counts by spike.
    pub spikes: Vec<f64>,
}

/// A table of the facts about calls in each context (see
/// [`crate::bias::function::facts_by_context`]) beside their times, in millionths of the median
/// context's: CSV that [`CounterTable::parse`] reads.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn predicted(sweep: &super::environment::Sweep, facts: &[crate::inside::Facts]) -> String {
    let mut text =
        "bytes,cycles,aliases,split_loads,split_stores,page_splits,set_conflicts,loads,stores\n".to_owned();
    for ((bytes, ratio), facts) in sweep.padding.iter().zip(&sweep.swept.ratio).zip(facts) {
        let counts = [
            facts.aliases,
            facts.split_loads,
            facts.split_stores,
            facts.page_splits,
            facts.set_conflicts,
            facts.loads,
            facts.stores,
        ];
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        text += &format!("{bytes},{:.0},{}\n", 1e6 * ratio, counts.join(","));
    }
    text
}

/// Returns whether the kernel lets this process count cycles.
pub fn can_count() -> bool {
    memlode_sample::counts_cycles()
}

impl CounterTable {
    /// Reads CSV with a head. Without a name for it, the first column is the context.
    ///
    /// # Errors
    /// If it is no table of numbers, or lacks a column.
    pub fn parse(text: &str, context: Option<&str>, cycles: &str) -> Result<CounterTable, Error> {
        let usage = |why: String| Error::Usage(why);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let head = reader.headers().map_err(|why| usage(why.to_string()))?.clone();
        let column = |name: &str| {
            let at = head.iter().position(|column| column == name);
            at.ok_or_else(|| {
                usage(format!(
                    "there is no column `{name}`; there is {}",
                    head.iter().collect::<Vec<_>>().join(", ")
                ))
            })
        };
        let context = context.map_or(Ok(0), column)?;
        let cycles = column(cycles)?;
        if context == cycles {
            return Err(usage(format!("the column `{}` cannot be both context and cycles", &head[cycles])));
        }
        let mut contexts = Vec::new();
        let mut columns = vec![Vec::new(); head.len()];
        for (number, record) in reader.records().enumerate() {
            let record = record.map_err(|why| usage(why.to_string()))?;
            contexts.push(record[context].to_owned());
            for at in (0..head.len()).filter(|at| *at != context) {
                let value = record[at].parse::<f64>().ok().filter(|value| value.is_finite());
                columns[at].push(value.ok_or_else(|| {
                    usage(format!("row {}: `{}` of {} is no number", number + 1, &record[at], &head[at]))
                })?);
            }
        }
        if contexts.len() < 3 {
            return Err(usage(format!("{} contexts are too few for a correlation", contexts.len())));
        }
        let all = head.iter().map(str::to_owned).zip(columns).enumerate();
        let (mut events, mut of_cycles) = (Vec::new(), (String::new(), Vec::new()));
        for (at, column) in all.filter(|(at, _)| *at != context) {
            if at == cycles { of_cycles = column } else { events.push(column) }
        }
        Ok(CounterTable { contexts, events, cycles: of_cycles })
    }

    /// Orders events by correlation with cycles. Lists at most `spikes` spikes.
    pub fn correlate(&self, spikes: usize) -> Correlations {
        let (name, cycles) = &self.cycles;
        let spikes = self.spikes(spikes);
        let row = |event: &str, counts: &[f64]| CounterRow {
            event: event.to_owned(),
            pearson: pearson(cycles, counts),
            spearman: spearman(cycles, counts),
            median: median(counts),
            spikes: spikes.iter().map(|at| counts[*at]).collect(),
        };
        let mut rows: Vec<CounterRow> =
            self.events.iter().map(|(event, counts)| row(event, counts)).collect();
        rows.retain(|row| row.pearson.is_finite());
        rows.sort_by(|a, b| b.pearson.abs().total_cmp(&a.pearson.abs()).then_with(|| a.event.cmp(&b.event)));
        rows.insert(0, row(name, cycles));
        Correlations {
            contexts: self.contexts.len(),
            spikes: spikes.iter().map(|at| self.contexts[*at].clone()).collect(),
            rows,
        }
    }

    fn spikes(&self, most: usize) -> Vec<usize> {
        let cycles = &self.cycles.1;
        let middle = median(cycles);
        let usual = (quantile(cycles, 0.9) - middle).max(middle.abs() * LEAST / FAR);
        let mut spikes: Vec<usize> =
            (0..cycles.len()).filter(|at| cycles[*at] > middle + FAR * usual).collect();
        spikes.sort_by(|a, b| cycles[*b].total_cmp(&cycles[*a]).then(a.cmp(b)));
        spikes.truncate(most);
        spikes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of the published sweep: 512 environments of 16 bytes, two spikes 4 KiB apart where
    /// loads are blocked, and an event that falls there, one that varies at random, and one that
    /// never changes.
    fn sweep() -> String {
        let mut text =
            String::from("bytes,cycles,ld_blocks_partial.address_alias,resource_stalls.rs,branches,halts\n");
        for context in 0..512u32 {
            let waver = context * 7919 % 97;
            let spike = context % 256 == 199;
            let (cycles, alias, stalls) =
                if spike { (825_311, 327_871, 136_000) } else { (692_686, 12, 272_000) };
            text += &format!(
                "{},{},{},{},{},0\n",
                16 * context,
                cycles + waver,
                alias + waver % 5,
                stalls - waver,
                65_600 + context % 3
            );
        }
        text
    }

    #[test]
    fn the_event_that_spikes_with_cycles_comes_first() {
        let table = CounterTable::parse(&sweep(), None, "cycles").expect("a table");
        let found = table.correlate(4);
        assert_eq!(found.spikes.len(), 2);
        assert!(found.spikes.contains(&"3184".into()) && found.spikes.contains(&"7280".into()), "{found:?}");
        // What never changes is left out. Two events follow the spikes alike; which of them comes first is the waver's doing.
        let row = |event: &str| found.rows.iter().position(|row| row.event == event);
        assert_eq!(
            (found.rows.len(), row("cycles"), row("branches"), row("halts")),
            (4, Some(0), Some(3), None)
        );
        let at = |event: &str| &found.rows[row(event).expect("a row")];
        let (alias, stalls) = (at("ld_blocks_partial.address_alias"), at("resource_stalls.rs"));
        let branches = at("branches");
        assert!(alias.pearson > 0.999 && alias.median < 20.0 && alias.spikes[0] > 327_000.0, "{alias:?}");
        assert!(stalls.pearson < -0.999 && stalls.spikes[1] < 137_000.0, "{stalls:?}");
        assert!(branches.pearson.abs() < 0.1, "{branches:?}");
        // The rank hears the wavering of all contexts, not how far two of them lie off.
        assert!(alias.spearman.abs() < 0.3 && stalls.spearman < -0.9, "{found:?}");
    }

    #[test]
    fn an_even_table_has_no_spikes() {
        let even: String = (0..100).map(|at| format!("{at},{},{}\n", 1000 + at % 7, at)).collect();
        let found = CounterTable::parse(&format!("c,cycles,x\n{even}"), Some("c"), "cycles")
            .expect("a table")
            .correlate(2);
        assert!(found.spikes.is_empty());
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for (text, why) in [
            ("", "no column `cycles`"),
            ("a,b\n1,2\n", "no column `cycles`; there is a, b"),
            ("a,cycles\n1,x\n", "row 1: `x` of cycles is no number"),
            ("a,cycles\n1,2,3\n", "found record with 3 fields"),
            ("a,cycles\n1,2\n2,3\n", "too few"),
            ("cycles,a\n1,2\n", "both context and cycles"),
            ("a,cycles\n1,inf\n", "is no number"),
        ] {
            let error = CounterTable::parse(text, None, "cycles").expect_err("no table").to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
