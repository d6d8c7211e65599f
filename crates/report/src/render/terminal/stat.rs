//! Counters and ratios of a program, as text.

use memlode_counters::ratio::Ratio;
use memlode_counters::refusal::CountRefusal;
use memlode_counters::software::Software;
use memlode_counters::stat::{
    Change, FunctionRatio, FunctionRatios, FunctionSource, FunctionTable, Improvement, Interval, RatioFound,
    SimulatedRegion, Stat, StatComparison, ValueSource,
};

use super::ratios::{self, words};
use super::refusal::refusal;
use super::{Style, plain_table, write_table};
use crate::render::text::{count, milliseconds, printable};

/// Returns the output of `memlode stat`.
pub fn stat(found: &Stat, style: Style) -> String {
    let mut out = header(found, style);
    let mut reasons = Vec::new();
    if !found.seconds.is_empty() {
        out += &kernel_events(found, style, &mut reasons);
    }
    out += &all_ratios(found, style, &mut reasons);
    for table in &found.functions {
        out += &functions(table, style);
    }
    out += &missing(&reasons, style);
    if found.simulated.is_none() && reasons.contains(&CountRefusal::NoUnit) {
        let said = "most of these ratios are simulated of a program that memlode built, or from a trace (--trace DIR)";
        out += &style.paragraph("instead", said);
    }
    out + &explanations(found, style)
}

fn kernel_events(found: &Stat, style: Style, reasons: &mut Vec<CountRefusal>) -> String {
    let mut out = format!("\n{}\n", style.heading("Events of the kernel in each run"));
    let mut table = plain_table(&["event", "count", "95% interval", "source"], 1);
    for counted in &found.software {
        let shown = |value: f64| software_value(counted.event, value);
        table.add_row([
            ratios::software(counted.event).to_string(),
            counted.found.interval().map_or("–".into(), |found| shown(found.middle)),
            counted.found.interval().and_then(|found| ends(found, shown)).unwrap_or_default(),
            origin(&counted.found, true, reasons),
        ]);
    }
    write_table(&mut out, &table);
    out
}

fn all_ratios(found: &Stat, style: Style, reasons: &mut Vec<CountRefusal>) -> String {
    let mut out = format!("\n{}\n", style.heading("Ratios"));
    let mut table = plain_table(&["ratio", "value", "95% interval", "source"], 1);
    for ratio in &found.ratios {
        let shown = |value: f64| ratio_value(ratio.ratio, value);
        table.add_row([
            words(ratio.ratio).name.to_string(),
            ratio.found.interval().map_or("–".into(), |found| shown(found.middle)),
            ratio.found.interval().and_then(|found| ends(found, shown)).unwrap_or_default(),
            origin(&ratio.found, ratio.checked, reasons),
        ]);
    }
    write_table(&mut out, &table);
    out
}

/// One row for each function, and the ratios that any of them has as columns.
fn functions(table: &FunctionTable, style: Style) -> String {
    let (title, share) = match table.source {
        FunctionSource::Sampled => ("Ratios by function, from samples", "time"),
        FunctionSource::Simulated => ("Ratios by function, simulated", "cycles"),
    };
    let mut out = format!("\n{}\n", style.heading(title));
    if table.rows.is_empty() {
        let why = "no sample of the task clock met the program: it ran too briefly";
        return out + &style.indented(2, why);
    }
    let shown = &table.rows[..table.rows.len().min(style.top)];
    let known = |ratio: Ratio| shown.iter().any(|row| value_of(row, ratio).is_some());
    let columns: Vec<Ratio> = Ratio::ALL.into_iter().filter(|ratio| known(*ratio)).collect();
    let has_faults = shown.iter().any(|row| row.minor_faults.is_some());
    let mut headings = vec!["function", share];
    headings.extend(has_faults.then_some("faults"));
    headings.extend(columns.iter().map(|ratio| words(*ratio).column));
    let mut printed = plain_table(&headings, 1);
    for row in shown {
        let mut cells = vec![printable(&row.function).into_owned(), percent(row.share)];
        if has_faults {
            cells.push(row.minor_faults.map_or("–".into(), |faults| count(faults.round() as u64)));
        }
        cells.extend(
            columns
                .iter()
                .map(|ratio| value_of(row, *ratio).map_or("–".into(), |of| with_error(*ratio, of))),
        );
        printed.add_row(cells);
    }
    write_table(&mut out, &printed);
    if table.rows.len() > shown.len() {
        out += &style.indented(2, &format!("… and {} more", table.rows.len() - shown.len()));
    }
    let meanings: Vec<String> =
        columns.iter().map(|ratio| format!("{} = {}", words(*ratio).column, words(*ratio).name)).collect();
    if !meanings.is_empty() {
        out += &style.indented(2, &format!("Columns: {}.", meanings.join(", ")));
    }
    out
}

fn value_of(row: &FunctionRatios, ratio: Ratio) -> Option<FunctionRatio> {
    row.ratios.iter().find(|known| known.ratio == ratio).copied()
}

/// A value, and its standard error where it is an estimate.
fn with_error(ratio: Ratio, of: FunctionRatio) -> String {
    let value = ratio_value(ratio, of.value);
    if of.error > 0.0 { format!("{value} ±{}", ratio_value(ratio, of.error)) } else { value }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// Each reason for which something is missing.
fn missing(reasons: &[CountRefusal], style: Style) -> String {
    let sentences: String =
        reasons.iter().map(|reason| style.paragraph("missing", &refusal(reason))).collect();
    if sentences.is_empty() { sentences } else { format!("\n{sentences}") }
}

fn header(found: &Stat, style: Style) -> String {
    let subject = match found.pid {
        Some(pid) => format!("process {pid}"),
        None => found.command.join(" "),
    };
    let mut out = style.paragraph("program", &printable(&subject));
    if let Some(region) = &found.region {
        out += &style.paragraph("region", &printable(region));
    }
    if found.seconds.is_empty() {
        return out + &simulation(found, style);
    }
    let mean = 1000.0 * found.seconds.iter().sum::<f64>() / found.seconds.len().max(1) as f64;
    let runs = match (found.seconds.len(), found.pid) {
        (1, None) => format!("1 of {}", milliseconds(mean)),
        (runs, None) => format!("{runs} of {} in the mean", milliseconds(mean)),
        (stretches, Some(_)) => format!("{stretches} stretches of {}", milliseconds(mean)),
    };
    out += &style.paragraph("runs", &runs);
    if let Some(processor) = &found.processor {
        out += &style.paragraph("events", &format!("machines/events/{}.toml", printable(processor)));
    }
    out + &simulation(found, style)
}

fn simulation(found: &Stat, style: Style) -> String {
    let mut out = String::new();
    if let Some(run) = &found.simulated {
        let said = format!(
            "on {} from {} accesses and about {} instructions of the code that was compiled with memlode{}: a model, which \
             ranks; what it leaves out is in docs/report.md",
            printable(&run.machine),
            count(run.accesses),
            count(run.instructions),
            run.trace.as_ref().map(|trace| format!(", in {}", printable(trace))).unwrap_or_default()
        );
        out += &style.paragraph("simulated", &said);
        out +=
            &run.region.as_ref().map(|region| style.paragraph("region", &bounds(region))).unwrap_or_default();
    }
    out
}

/// A sentence about the misses that a region may have.
fn bounds(region: &SimulatedRegion) -> String {
    let levels: Vec<String> = region
        .misses
        .iter()
        .map(|level| format!("{} {} to {}", printable(&level.level), count(level.least), count(level.most)))
        .collect();
    let unknown = format!(
        "recorded alone, in {} {}: what the caches held when it was entered is not known",
        count(region.stretches as u64),
        if region.stretches == 1 { "stretch" } else { "stretches" }
    );
    match levels.is_empty() {
        true => unknown,
        false => format!("{unknown}; misses with any contents: {}", levels.join(", ")),
    }
}

/// Returns the source of a value; adds the reason to `reasons` if there is none.
fn origin(found: &ValueSource, checked: bool, reasons: &mut Vec<CountRefusal>) -> String {
    match found {
        ValueSource::Measured { user_only, .. } => {
            let user = if *user_only { ", user space only" } else { "" };
            format!("measured{user}{}", if checked { "" } else { ", codes unchecked" })
        }
        ValueSource::Simulated { .. } => "simulated".into(),
        ValueSource::Missing { refusal } => {
            if !reasons.contains(refusal) {
                reasons.push(refusal.clone());
            }
            match refusal {
                CountRefusal::NoUnit => "needs a PMU".into(),
                CountRefusal::NotRun => "not counted".into(),
                CountRefusal::NotCounted { .. } => "not counted by this processor".into(),
                _ => "refused".into(),
            }
        }
    }
}

/// Each ratio's formula, the meaning of a high value, and the next step.
fn explanations(found: &Stat, style: Style) -> String {
    let mut out = String::new();
    for RatioFound { ratio, formula, note, found, .. } in &found.ratios {
        let words = words(*ratio);
        let formula = match found {
            ValueSource::Measured { .. } => printable(formula).into_owned(),
            ValueSource::Simulated { .. } => words.simulated.to_string(),
            ValueSource::Missing { .. } => continue,
        };
        out += &style.indented(2, &format!("{} = {formula}", words.name));
        if let Some(note) = note {
            out += &style.indented(4, &format!("{}.", printable(note)));
        }
        out += &style.indented(4, &format!("High: {}. Next: {}.", words.high, words.next));
    }
    if out.is_empty() {
        return out;
    }
    format!("\n{}\n{out}", style.heading("Formulas, what a high value means, and what to do next"))
}

/// Returns the output of `memlode diff` for two files of `memlode stat`.
pub fn stat_comparison(found: &StatComparison, style: Style) -> String {
    let mut out = style.paragraph("before", &printable(&found.before.join(" ")));
    out += &style.paragraph("after", &printable(&found.after.join(" ")));
    let mut table = plain_table(&["", "before", "after", "improvement", "95% interval", "source"], 1);
    let mut reasons = Vec::new();
    if let Some(seconds) = &found.seconds {
        table.add_row(improvement_row(
            "time of a run",
            seconds,
            |value| milliseconds(1000.0 * value),
            "measured",
        ));
    }
    let software = found.software.iter().map(|(event, change)| {
        let event = *event;
        let shown: Box<dyn Fn(f64) -> String> = Box::new(move |value| software_value(event, value));
        (ratios::software(event), change, shown)
    });
    let of_ratios = found.ratios.iter().map(|(ratio, change)| {
        let ratio = *ratio;
        let shown: Box<dyn Fn(f64) -> String> = Box::new(move |value| ratio_value(ratio, value));
        (words(ratio).name, change, shown)
    });
    for (name, change, shown) in software.chain(of_ratios) {
        let row = match change {
            Change::Compared { simulated, improvement } => {
                improvement_row(name, improvement, shown, if *simulated { "simulated" } else { "measured" })
            }
            Change::Unlike => empty_row(name, "measured on one side, simulated on the other"),
            Change::Missing { refusal } => {
                if !reasons.contains(refusal) {
                    reasons.push(refusal.clone());
                }
                empty_row(
                    name,
                    if *refusal == CountRefusal::NoUnit { "needs a PMU" } else { "not on both sides" },
                )
            }
        };
        table.add_row(row);
    }
    write_table(&mut out, &table);
    out += &missing(&reasons, style);
    let said = "per cent by which a value became less; a load rate that rises is no loss by itself, as the same loads take \
                fewer clocks";
    out + &style.paragraph("note", said)
}

fn empty_row(name: &str, why: &str) -> [String; 6] {
    [name.into(), "–".into(), "–".into(), String::new(), String::new(), why.into()]
}

fn improvement_row(
    name: &str,
    found: &Improvement,
    shown: impl Fn(f64) -> String,
    source: &str,
) -> [String; 6] {
    let percent = |value: f64| format!("{value:+.1}%");
    [
        name.into(),
        shown(found.before.middle),
        shown(found.after.middle),
        found.percent.map_or("–".into(), |found| percent(found.middle)),
        found.percent.and_then(|found| ends(found, percent)).unwrap_or_default(),
        source.into(),
    ]
}

fn ends(found: Interval, shown: impl Fn(f64) -> String) -> Option<String> {
    found.ends.map(|(low, high)| format!("{} to {}", shown(low), shown(high)))
}

/// A ratio in per cent, or as a number; three digits.
fn ratio_value(ratio: Ratio, value: f64) -> String {
    if ratio.is_plain() {
        return format!("{value:.2}");
    }
    match 100.0 * value {
        0.0 => "0%".into(),
        percent if percent < 0.001 => "<0.001%".into(),
        percent if percent < 0.1 => format!("{percent:.3}%"),
        percent if percent < 10.0 => format!("{percent:.2}%"),
        percent => format!("{percent:.1}%"),
    }
}

fn software_value(event: Software, value: f64) -> String {
    match event {
        Software::TaskClock => milliseconds(value / 1e6),
        _ if value < 100.0 && value.fract() != 0.0 => format!("{value:.1}"),
        _ => count(value.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memlode_counters::stat::SoftwareCount;

    #[test]
    fn nothing_that_is_unknown_looks_like_a_number() {
        let missing = |refusal| ValueSource::Missing { refusal };
        let ratio =
            |ratio, found| RatioFound { ratio, formula: "a / b".into(), note: None, checked: false, found };
        let ends = Some((1.8, 2.2));
        let found = Stat {
            format: String::new(),
            version: 1,
            command: vec!["prog".into()],
            pid: None,
            region: None,
            processor: None,
            seconds: vec![0.5, 0.7],
            software: vec![SoftwareCount {
                event: Software::Migrations,
                found: missing(CountRefusal::Paranoid { level: 2, needed: 1 }),
            }],
            ratios: vec![
                ratio(Ratio::VirtualCalls, missing(CountRefusal::NoUnit)),
                ratio(Ratio::L1dMissRate, ValueSource::Simulated { value: 0.0153 }),
                ratio(
                    Ratio::ClocksPerInstruction,
                    ValueSource::Measured {
                        values: vec![2.0; 5],
                        interval: Interval { middle: 2.0, ends },
                        user_only: true,
                    },
                ),
            ],
            events: Vec::new(),
            simulated: None,
            functions: Vec::new(),
        };
        let text = stat(&found, Style { colours: false, width: 100, top: 10 });
        let line =
            |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_string();
        assert!(line("migrations").contains("–") && line("migrations").ends_with("refused"), "{text}");
        assert!(
            line("virtual calls").ends_with("needs a PMU") && !line("virtual calls").contains('0'),
            "{text}"
        );
        assert!(line("L1d miss rate").contains("1.53%") && line("L1d miss rate").ends_with("simulated"));
        let clocks = line("clocks per instruction");
        assert!(
            clocks.contains("1.80 to 2.20") && clocks.ends_with("user space only, codes unchecked"),
            "{clocks}"
        );
        assert!(text.contains("perf_event_paranoid=1") && text.contains("2 of 600 ms in the mean"), "{text}");
        assert!(!text.contains("virtual calls ="), "{text}");
    }
}
