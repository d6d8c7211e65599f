//! Results for people, for spreadsheets and for pages.

use comfy_table::{CellAlignment, Table, presets};

use super::verdict::{percent, seen};
use super::{Contestant, Metric, Result, Spread};
use crate::stats::Effect;

/// For people: a table, then the answers.
pub fn text(result: &Result, width: usize) -> String {
    let mut table = table(result, presets::NOTHING);
    table.set_width(width.try_into().unwrap_or(u16::MAX));
    let mut out = format!("{}\n\n", trim(&table));
    for line in answers(result) {
        out += &format!("{line}\n");
    }
    for note in &result.notes {
        out += &format!("note: {note}\n");
    }
    out
}

/// A table of Markdown, and the answers below.
pub fn markdown(result: &Result) -> String {
    let mut out = format!("{}\n\n", table(result, presets::ASCII_MARKDOWN));
    for line in answers(result).into_iter().chain(result.notes.iter().cloned()) {
        out += &format!("{line}\n\n");
    }
    out
}

/// Every run as a row.
///
/// # Panics
/// Never: memory takes whatever is written.
pub fn csv(result: &Result) -> String {
    let mut rows = csv::Writer::from_writer(Vec::new());
    let head = [
        "program",
        "round",
        "layout",
        "link_variant",
        "environment_padding_bytes",
        "addresses",
        "wall_seconds",
        "cpu_seconds",
        "queued_seconds",
        "calibration_nanoseconds",
    ];
    rows.write_record(head).expect("memory takes everything");
    for run in &result.runs {
        let place = &run.place;
        let fields = [
            result.programs[place.program].command.clone(),
            place.round.to_string(),
            if place.slot == 0 { "given" } else { "random" }.to_string(),
            place.variant.to_string(),
            place.layout.padding.to_string(),
            if place.layout.randomised { "random" } else { "fixed" }.to_string(),
            run.sample.wall.to_string(),
            run.sample.cpu.to_string(),
            run.sample.queued.to_string(),
            run.calibration.to_string(),
        ];
        rows.write_record(fields).expect("memory takes everything");
    }
    String::from_utf8_lossy(&rows.into_inner().unwrap_or_default()).into_owned()
}

fn answers(result: &Result) -> Vec<String> {
    let mut lines: Vec<String> = result.comparisons.iter().map(|one| one.sentence.clone()).collect();
    let moved = |program: &Contestant| {
        let layout = &program.layout;
        match layout.is_claimed() {
            true => format!(
                "The layout given makes {} {} than it is over random layouts.",
                program.command,
                percent(layout.ratio)
            ),
            false => format!(
                "That the layout given moves {} cannot be claimed, {}.",
                program.command,
                seen(layout)
            ),
        }
    };
    lines.extend(
        result.programs.iter().filter(|one| one.layout.is_claimed() || result.programs.len() == 1).map(moved),
    );
    lines.push(format!(
        "{} rounds{}, seed {}. Varied at random: {}.",
        result.rounds,
        if result.interrupted { " until it was interrupted" } else { "" },
        result.seed,
        result.varied
    ));
    lines
}

fn table(result: &Result, preset: &str) -> Table {
    let mut table = Table::new();
    let metric = match result.metric {
        Metric::Cpu => "CPU time",
        Metric::Wall => "wall time",
    };
    table.load_preset(preset).set_header([
        metric,
        "layout given",
        "10–90%",
        "random layouts",
        "10–90%",
        "ratio (95%)",
        "p",
    ]);
    for (number, program) in result.programs.iter().enumerate() {
        let compared = result.comparisons.iter().find(|one| one.program == number);
        let (ratio, p) = compared.map_or(("1".into(), String::new()), |one| ratio(&one.random));
        let [given, given_range] = times(&program.given);
        let [random, random_range] = times(&program.random);
        table.add_row([program.command.clone(), given, given_range, random, random_range, ratio, p]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Without blanks at the ends of lines.
fn trim(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn times(spread: &Spread) -> [String; 2] {
    let (scale, unit) = match spread.median {
        ..1e-3 => (1e6, "µs"),
        1e-3..1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let digits = |time: f64| match time * scale {
        ..10.0 => format!("{:.2}", time * scale),
        10.0..100.0 => format!("{:.1}", time * scale),
        _ => format!("{:.0}", time * scale),
    };
    [format!("{} {unit}", digits(spread.median)), format!("{}–{}", digits(spread.low), digits(spread.high))]
}

fn ratio(effect: &Effect) -> (String, String) {
    let p = if effect.p < 0.001 { "< 0.001".into() } else { format!("{:.3}", effect.p) };
    (format!("{:.4} ({:.4}–{:.4})", effect.ratio, effect.low, effect.high), p)
}
