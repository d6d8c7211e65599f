//! The head of a report: the command, the machine and the tables.

use memlode_machine::Provenance;

use super::rows::{NamedRows, named};
use super::sample::{self, stall_share};
use super::{By, Style, plain_table, write_table};
use crate::model::{Level, Numbers, Recording, Report, Row, Simulated};
use crate::render::sentences::note;
use crate::render::text::{bytes, count, cut, percent, percent_of, printable};

/// Columns that the error of a share takes: ` ± 0.55%`.
const ERROR: usize = 8;

/// Columns that a name has at least.
const LEAST: usize = 24;

/// Returns the program, the machine, the accesses that each level served, and the coverage of
/// names.
pub fn header(report: &Report, style: Style) -> String {
    let mut out = title(report, style);
    levels(&mut out, &report.machine.levels, report.total.numbers.accesses);
    if let Some(sample) = &report.trace.sample {
        let [of, errors] = sample::lines(sample);
        out += &style.warning_paragraph("sample", &of);
        out += &style.paragraph("", &printable(&errors));
    }
    if let Some(wait) = wait(report) {
        out += &style.paragraph("wait", &wait);
    }
    let shares = &report.coverage;
    let whole = shares.accesses;
    let part = |share: f64| percent((share * whole as f64).round() as u64, whole);
    let attributed = format!(
        "attributed: {} of the recorded accesses to a line, {} to a variable or type, {} to a member, {} to an object",
        part(shares.line),
        part(shares.variable_or_type),
        part(shares.member),
        part(shares.object),
    );
    out += &style.paragraph("names", &attributed);
    if shares.approximate_line > 0.0 {
        let borrowed = format!(
            "~ in front of a line: {} have that of a neighbouring instruction",
            part(shares.approximate_line)
        );
        out += &style.paragraph("", &borrowed);
    }
    for known in &report.trace.notes {
        out += &style.warning_paragraph("note", &printable(&note(known)));
    }
    out
}

/// Which part of the run's cycles waits for data, where instructions are known.
pub fn wait(report: &Report) -> Option<String> {
    let (wait, run) = (&report.total.numbers.wait, report.run_cycles);
    let fresh = fresh_cycles(report) / run;
    let fresh = match fresh >= 0.005 {
        true => format!("; first touches of fresh memory take another {}", percent_of(fresh)),
        false => String::new(),
    };
    (wait.instruction_cycles > 0.0).then(|| {
        let (all, part) = (count(run as u64), percent_of(wait.cycles / run));
        format!("about {part} of the run's {all} modelled cycles wait for data{fresh}")
    })
}

/// Cycles of a run in which the kernel makes fresh memory, and lines of it are touched first.
pub fn fresh_cycles(report: &Report) -> f64 {
    let wait = &report.total.numbers.wait;
    let lost = report.sharing.as_ref().map_or(0.0, |sharing| sharing.cycles as f64);
    (report.run_cycles - wait.cycles - wait.instruction_cycles - lost).max(0.0)
}

/// The program, the machine, and how much was recorded.
fn title(report: &Report, style: Style) -> String {
    let Report { trace, machine, .. } = report;
    let total = &report.total.numbers;
    let recorded = if trace.sample.is_some() { " recorded" } else { "" };
    let counted = format!(
        "{}{recorded}: {} reads, {} writes",
        count(total.accesses),
        count(total.reads),
        count(total.writes)
    );
    program(trace, machine, &counted, style)
}

/// The program, the machine, and the accesses of its threads.
pub fn program(trace: &Recording, machine: &Simulated, counted: &str, style: Style) -> String {
    let command = if trace.command.is_empty() { "unknown program".into() } else { trace.command.join(" ") };
    let caches: Vec<String> =
        machine.levels.iter().map(|level| format!("{} {}", level.name, bytes(level.bytes))).collect();
    let room = style.width.saturating_sub(10);
    let mut out = style.paragraph("program", &cut(&printable(&command), room));
    let known = match machine.latencies {
        Provenance::Measured => "measured",
        Provenance::PartlyMeasured => "partly measured",
        Provenance::Assumed => "assumed",
    };
    let machine =
        format!("{}: {} cores, {}; latencies {known}", machine.name, machine.cores, caches.join(", "));
    out += &style.paragraph("machine", &printable(&machine));
    let threads = match trace.threads {
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    };
    let processes =
        if trace.processes > 1 { format!(" of {} processes", trace.processes) } else { String::new() };
    let accesses = format!("{counted}, by {threads}{processes}");
    out + &style.paragraph("accesses", &accesses)
}

fn levels(out: &mut String, levels: &[Level], accesses: u64) {
    let headings = ["level", "lookups", "read misses", "write misses", "local miss rate", "of all accesses"];
    let mut table = plain_table(&headings, 1);
    for level in levels {
        let lookups = level.reads + level.writes;
        let missed = level.read_misses + level.write_misses;
        table.add_row([
            level.name.clone(),
            count(lookups),
            count(level.read_misses),
            count(level.write_misses),
            percent(missed, lookups),
            percent(missed, accesses),
        ]);
    }
    write_table(out, &table);
}

/// Some of the tables.
pub fn tables(report: &Report, tables: &[By], style: Style) -> String {
    tables.iter().map(|&by| table(report, by, style)).collect()
}

fn table(report: &Report, by: By, style: Style) -> String {
    match by {
        By::Line => rows(report, by, &report.lines, style, |rows, room| named::lines(rows, room, style)),
        By::Data => rows(report, by, &report.data, style, named::data),
        By::Field => rows(report, by, &report.fields, style, named::members),
        By::Type => rows(report, by, &report.types, style, named::types),
        By::Function => rows(report, by, &report.functions, style, named::functions),
        By::Object => {
            rows(report, by, &report.objects, style, |rows, room| named::objects(rows, room, style))
        }
        By::Thread => {
            rows(report, by, &report.threads, style, |rows, _| named::threads(rows, report.trace.processes))
        }
    }
}

fn rows<S>(
    report: &Report,
    by: By,
    rows: &[Row<S>],
    style: Style,
    names: impl Fn(&[&S], usize) -> NamedRows,
) -> String {
    let levels = &report.machine.levels;
    let level_heading = |level: &str| match style.width >= 110 {
        // `L1d misses` where there is room for it.
        true => format!("{level} misses"),
        false => format!("{level:>6}"),
    };
    let headings = ["wait".to_string(), "accesses".to_string()];
    let headings: Vec<String> =
        headings.into_iter().chain(levels.iter().map(|level| level_heading(&level.name))).collect();
    let shown = &rows[..rows.len().min(style.top)];
    // Columns that are left for names: objects have two numbers more.
    let numbers = if by == By::Object { 4 } else { 2 };
    let errors = if report.total.numbers.standard_errors.is_some() { ERROR } else { 0 };
    let level = level_heading("L1d").len() + 2;
    let taken = 2 + numbers * 10 + errors + levels.len() * level;
    let subjects: Vec<&S> = shown.iter().map(|row| &row.subject).collect();
    let names = names(&subjects, style.width.saturating_sub(taken).max(LEAST));
    let cells = |numbers: &Numbers| {
        let error = numbers.standard_errors.as_ref().map(|errors| errors.wait_share);
        let misses = (0..levels.len()).map(|level| count(numbers.misses.of(level)));
        let first = [stall_share(numbers.wait_share, error), count(numbers.accesses)];
        first.into_iter().chain(misses).collect()
    };
    let cells = shown.iter().map(|row| cells(&row.numbers)).collect();
    names.table(&headings, cells, rows.len(), style)
}
