//! Models beside a timer.

use comfy_table::{CellAlignment, Table, presets};
use memlode_measure::validate::{GOOD, Judged, Validation};

use super::trim;

/// The line of progress while the program is timed.
pub const PROGRESS: &str = "timing twice";

/// Returns at most `top` lines side by side, and how far the models agree with the timer.
pub fn text(found: &Validation, top: usize, width: usize) -> String {
    let timer = &found.timer;
    let mut out = format!(
        "program  {}\ntime     {:.2} s in user space; {} and {} samples ({}, every {:.0} µs)\n",
        found.command,
        found.measured_s,
        timer.samples[0],
        timer.samples[1],
        timer.source,
        timer.period_s * 1e6
    );
    let skid = match timer.skid.instructions {
        0 => "the waiting instruction itself",
        _ => "the instruction behind the one that waits, and is charged to the one before",
    };
    out += &format!(
        "skid     a sample names {skid}: {:.0}% of those of a known loop\n",
        100.0 * timer.skid.share
    );
    out += &format!(
        "         {:.0}% of the samples are at lines that touch no memory, {:.0}% at code without lines\n",
        100.0 * timer.without_memory,
        100.0 * timer.without_line
    );
    if timer.lost > 0 {
        out += &format!("         {} samples were lost\n", timer.lost);
    }
    out += &format!("\n{}\n\n{}", lines(found, top, width), agreements(&found.models, width));
    out
}

fn lines(found: &Validation, top: usize, width: usize) -> String {
    let models: Vec<&str> =
        found.models.iter().map(|judged| &*judged.model).filter(|name| *name != "timer2").collect();
    let head = ["timer", "again"].into_iter().chain(models.iter().copied()).chain(["line"]);
    let mut table = new_table(head, width);
    for row in found.lines.iter().take(top) {
        let shares = [row.timer, row.timer2].into_iter();
        let shares = shares.chain(models.iter().map(|model| row.models[*model])).map(percent);
        let file = row.line.file.rsplit('/').next().unwrap_or(&row.line.file);
        table.add_row(shares.chain([format!("{file}:{} {}", row.line.line, row.function)]));
    }
    align(&mut table, models.len() + 2);
    let more = found.lines.len().saturating_sub(top);
    let more = if more > 0 { format!("\n({more} more lines)") } else { String::new() };
    trim(&table) + &more
}

fn agreements(models: &[Judged], width: usize) -> String {
    let head = [
        "against the timer",
        "rank correlation",
        "slowest line is",
        "first is good",
        "on wrong lines",
        "predicted",
    ];
    let mut table = new_table(head, width);
    for judged in models {
        let agreement = &judged.agreement;
        table.add_row([
            match &*judged.model {
                "timer2" => "the timer again".to_owned(),
                model => model.to_owned(),
            },
            agreement.spearman.map_or_else(|| "–".into(), |rho| format!("{rho:.2}")),
            format!("no. {}", agreement.slowest_line_rank),
            if agreement.first_good { "yes" } else { "no" }.to_owned(),
            percent(agreement.misplaced_share),
            judged
                .predicted_over_measured
                .map_or_else(|| "–".into(), |ratio| format!("{ratio:.2} × measured")),
        ]);
    }
    trim(&table)
        + &format!(
            "\n\nFirst is good: the model's first line takes at least {:.0}% of the slowest line's time.\n",
            100.0 * GOOD
        )
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn new_table<'a>(head: impl IntoIterator<Item = &'a str>, width: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_width(width.try_into().unwrap_or(u16::MAX));
    table.set_header(head.into_iter().map(str::to_owned));
    table
}

fn align(table: &mut Table, columns: usize) {
    for column in table.column_iter_mut().take(columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
