//! The head of a report: the command, the machine and the tables.

use std::fmt::Write;

use super::label::{Detail, Label, distinct};
use super::names::{data_label, function_label, object_label, place_label, type_label};
use super::sample::{self, stall_share};
use super::{By, Style, plain_table, write_table};
use crate::model::{Access, LatenciesKnown, Level, Numbers, Object, Report, Row, Thread, Wait};
use crate::render::sentences::note;
use crate::render::text::{brief, bytes, count, cut, percent, percent_of, printable};

/// Columns that the error of a share takes: ` ± 0.55%`.
const ERROR: usize = 8;

/// Columns that a name has at least.
const LEAST: usize = 24;

/// Returns what was run on which machine, what each level answered, and how far names reach.
pub fn header(report: &Report, style: Style) -> String {
    let mut out = title(report, style);
    levels(&mut out, &report.machine.levels, report.total.numbers.accesses);
    if let Some(sample) = &report.trace.sample {
        let [of, errors] = sample::lines(sample);
        out += &style.warning_paragraph("sample", &of);
        out += &style.paragraph("", &printable(&errors));
    }
    if let Some(wait) = wait(&report.total.numbers.wait) {
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

/// Which part of the cycles waits for data, where instructions are known.
fn wait(wait: &Wait) -> Option<String> {
    let all = wait.cycles + wait.instruction_cycles;
    let first = wait.first_touch_cycles / all;
    let first = match first >= 0.005 {
        true => format!("; first touches of fresh memory take another {}", percent_of(first)),
        false => String::new(),
    };
    let known = wait.instruction_cycles > 0.0;
    known.then(|| {
        format!("about {} of the modelled cycles wait for data{first}", percent_of(wait.cycles / all))
    })
}

fn title(report: &Report, style: Style) -> String {
    let trace = &report.trace;
    let command = if trace.command.is_empty() { "unknown program".into() } else { trace.command.join(" ") };
    let machine = &report.machine;
    let caches: Vec<String> =
        machine.levels.iter().map(|level| format!("{} {}", level.name, bytes(level.bytes))).collect();
    let room = style.width.saturating_sub(10);
    let mut out = style.paragraph("program", &cut(&printable(&command), room));
    let known = match machine.latencies {
        LatenciesKnown::Measured => "measured",
        LatenciesKnown::PartlyMeasured => "partly measured",
        LatenciesKnown::Assumed => "assumed",
    };
    let machine =
        format!("{}: {} cores, {}; latencies {known}", machine.name, machine.cores, caches.join(", "));
    out += &style.paragraph("machine", &printable(&machine));
    let total = &report.total.numbers;
    let threads = match trace.threads {
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    };
    let processes =
        if trace.processes > 1 { format!(" of {} processes", trace.processes) } else { String::new() };
    let accesses = format!(
        "{}{}: {} reads, {} writes, by {threads}{processes}",
        count(total.accesses),
        if trace.sample.is_some() { " recorded" } else { "" },
        count(total.reads),
        count(total.writes),
    );
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
    let page = Page { report, style };
    tables.iter().map(|table| page.table(*table)).collect()
}

struct Page<'a> {
    report: &'a Report,
    style: Style,
}

/// The texts of a table, and the numbers beside them.
struct Rows<'a> {
    title: &'static str,
    columns: &'static [&'static str],
    texts: Vec<Vec<String>>,
    /// Below each row, where a row takes two lines.
    below: Vec<String>,
    numbers: Vec<&'a Numbers>,
    all: usize,
}

impl Page<'_> {
    /// Columns of a table that are left for names, beside so many numbers and those of the levels.
    fn room(&self, numbers: usize) -> usize {
        let levels = self.report.machine.levels.len();
        let is_sample = self.report.total.numbers.standard_errors.is_some();
        let errors = if is_sample { ERROR } else { 0 };
        let level = self.level_heading("L1d").len() + 2;
        self.style.width.saturating_sub(2 + numbers * 10 + errors + levels * level).max(LEAST)
    }

    /// `L1d misses` where there is room for it.
    fn level_heading(&self, level: &str) -> String {
        if self.style.width >= 110 { format!("{level} misses") } else { format!("{level:>6}") }
    }

    fn table(&self, by: By) -> String {
        let rows = self.rows(by);
        let levels = self.report.machine.levels.iter().map(|level| self.level_heading(&level.name));
        let headings: Vec<String> = rows
            .columns
            .iter()
            .map(|column| column.to_string())
            .chain(["wait".into(), "accesses".into()])
            .chain(levels)
            .collect();
        let mut table = plain_table(&headings, rows.columns.len());
        let shown = rows.texts.len();
        for (mut row, numbers) in rows.texts.into_iter().zip(rows.numbers) {
            let error = numbers.standard_errors.as_ref().map(|errors| errors.wait_share);
            row.push(stall_share(numbers.wait_share, error));
            row.push(count(numbers.accesses));
            row.extend((0..self.report.machine.levels.len()).map(|level| count(numbers.misses.of(level))));
            table.add_row(row);
        }
        let of = if rows.all > shown { format!(" (first {shown} of {})", rows.all) } else { String::new() };
        let mut out = format!("\n{}{of}\n", self.style.heading(rows.title));
        // A heading, and a line for each row.
        let below = std::iter::once(None).chain(rows.below.iter().map(Some)).chain(std::iter::repeat(None));
        for (line, below) in table.lines().zip(below) {
            let _ = writeln!(out, "  {}", line.trim_end());
            below.into_iter().for_each(|text| _ = writeln!(out, "    {text}"));
        }
        out
    }

    fn rows(&self, by: By) -> Rows<'_> {
        let report = self.report;
        // Two columns of numbers stand in every table: wait and accesses.
        let room = self.room(2);
        match by {
            By::Line => self.lines(&report.lines, room),
            By::Data => self.of("Data", &["data"], &report.data, data_label, room),
            By::Field => self.of("Members", &["member"], &report.fields, data_label, room),
            By::Type => self.of("Types", &["type"], &report.types, type_label, room),
            By::Function => self.of("Functions", &["function"], &report.functions, function_label, room),
            By::Object => self.objects(&report.objects, self.room(4)),
            By::Thread => self.threads(&report.threads),
        }
    }

    fn of<'r, S>(
        &self,
        title: &'static str,
        columns: &'static [&'static str],
        rows: &'r [Row<S>],
        label: impl Fn(&S, Detail) -> Label,
        room: usize,
    ) -> Rows<'r> {
        let shown = &rows[..rows.len().min(self.style.top)];
        let texts = distinct(shown, |row, detail| vec![label(&row.subject, detail)], &[room]);
        let numbers = shown.iter().map(|row| &row.numbers).collect();
        Rows { title, columns, texts, below: Vec::new(), numbers, all: rows.len() }
    }

    /// Data and line side by side, or where that would cut them, one below the other.
    fn lines<'r>(&self, rows: &'r [Row<Access>], room: usize) -> Rows<'r> {
        let shown = &rows[..rows.len().min(self.style.top)];
        let labels = |row: &Row<Access>, detail| {
            let Access { data, position } = &row.subject;
            vec![data_label(data, detail), place_label(position, detail)]
        };
        let widest = |column: usize, width: fn(&Label) -> usize| {
            shown.iter().map(|row| width(&labels(row, 0)[column])).max().unwrap_or(0)
        };
        let data = widest(0, Label::width);
        let left = room.saturating_sub(data + 4);
        let numbers = shown.iter().map(|row| &row.numbers).collect();
        let (title, all) = ("Data and line", rows.len());
        // Data whole, and some room for functions; otherwise two lines a row.
        if widest(1, Label::width) <= left || widest(1, Label::least_width) + 12 <= left {
            let texts = distinct(shown, labels, &[data, left]);
            return Rows { title, columns: &["data", "line"], texts, below: Vec::new(), numbers, all };
        }
        let below = self.style.width.saturating_sub(4);
        let texts = distinct(shown, labels, &[room, below]);
        let (texts, below) = texts.into_iter().map(|mut row| (vec![row.remove(0)], row.remove(0))).unzip();
        Rows { title, columns: &["data"], texts, below, numbers, all }
    }

    fn objects<'r>(&self, rows: &'r [Row<Object>], room: usize) -> Rows<'r> {
        let shown = &rows[..rows.len().min(self.style.top)];
        let element = |object: &Object| {
            let element = brief(object.element.as_deref().unwrap_or(""));
            Label::default().name(&if object.element_by_use { format!("~{element}") } else { element })
        };
        let labels =
            |row: &Row<Object>, detail| vec![object_label(&row.subject, detail), element(&row.subject)];
        let elements = shown.iter().map(|row| element(&row.subject).width()).max().unwrap_or(0);
        let elements = elements.min(room / 3).max("element".len());
        let left = room.saturating_sub(elements + 2);
        let widest = shown.iter().map(|row| object_label(&row.subject, 0).width()).max().unwrap_or(0);
        let is_wide = widest <= left;
        let widths = if is_wide { [left, elements] } else { [self.style.width.saturating_sub(4), room] };
        let mut below = Vec::new();
        let texts =
            distinct(shown, labels, &widths).into_iter().zip(shown).map(|(mut row, Row { subject, .. })| {
                if !is_wide {
                    below.push(row.remove(0));
                }
                let made = (subject.count > 0).then(|| [count(subject.count), bytes(subject.bytes)]);
                row.extend(made.unwrap_or_default());
                row
            });
        let texts = texts.collect();
        let columns: &[&str] =
            if is_wide { &["object", "element", "number", "size"] } else { &["element", "number", "size"] };
        let numbers = shown.iter().map(|row| &row.numbers).collect();
        Rows { title: "Objects", columns, texts, below, numbers, all: rows.len() }
    }

    fn threads<'r>(&self, rows: &'r [Row<Thread>]) -> Rows<'r> {
        let shown = &rows[..rows.len().min(self.style.top)];
        let texts = shown.iter().map(|Row { subject, .. }| {
            let name = match self.report.trace.processes {
                1 => format!("{} (tid {})", subject.thread, subject.tid),
                _ => format!("{} (tid {} of pid {})", subject.thread, subject.tid, subject.pid),
            };
            vec![name, subject.core.to_string()]
        });
        let numbers = shown.iter().map(|row| &row.numbers).collect();
        Rows {
            title: "Threads",
            columns: &["thread", "core"],
            texts: texts.collect(),
            below: Vec::new(),
            numbers,
            all: rows.len(),
        }
    }
}
