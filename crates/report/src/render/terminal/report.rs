//! A report: what was run, what misses where, then the tables that were asked for.

use std::fmt::Write;

use super::sample::{self, not_told_apart, with_error};
use super::{By, Style, name, object, place, plain_table, write_table};
use crate::model::{
    Access, Cost, Data, Density, Doubt, Edit, Evidence, Finding, Home, LatenciesKnown, Numbers, Object,
    Report, Row, Thread,
};
use crate::names::demangle_short;
use crate::render::sentences::note;
use crate::render::text::{brief, bytes, count, cut, cut_end, percent, printable};

/// Findings shown on a screen.
const FINDINGS: usize = 5;

/// Columns that the error of a share takes: ` ± 0.55%`.
const ERROR: usize = 8;

/// What is wrong.
pub fn findings(report: &Report, style: Style) -> String {
    let mut out = String::new();
    Page { report, style }.findings(&mut out);
    out
}

/// Some of its tables.
pub fn tables(report: &Report, tables: &[By], style: Style) -> String {
    let mut out = String::new();
    for &table in tables {
        Page { report, style }.table(&mut out, table);
    }
    out
}

/// What was run on which machine, what each level answered, and how far names reach.
pub fn header(report: &Report, style: Style) -> String {
    let page = Page { report, style };
    let mut out = String::new();
    page.title(&mut out);
    page.levels(&mut out);
    page.sample(&mut out);
    page.coverage(&mut out);
    page.notes(&mut out);
    out
}

struct Page<'a> {
    report: &'a Report,
    style: Style,
}

impl Page<'_> {
    /// Columns of a table that are left for names, beside those for `numbers` numbers and the levels.
    fn room(&self, numbers: usize) -> usize {
        let levels = self.report.machine.levels.len();
        let errors = if self.is_sample() { ERROR } else { 0 };
        self.style
            .width
            .saturating_sub(2 + numbers * 10 + errors + levels * (self.level_heading("L1d").len() + 2))
    }

    /// Whether figures are estimates, with errors.
    fn is_sample(&self) -> bool {
        self.report.total.numbers.standard_errors.is_some()
    }

    /// `31%`, or with its error `31% ± 4.1%`.
    fn stall_share(&self, share: f64, standard_error: Option<f64>) -> String {
        with_error(&percent((share * 1000.0).round() as u64, 1000), standard_error)
    }

    /// `L1d misses` where there is room for it.
    fn level_heading(&self, level: &str) -> String {
        if self.style.width >= 110 { format!("{level} misses") } else { format!("{level:>6}") }
    }

    /// A column's share of the terminal, in characters.
    fn share(&self, percent: usize) -> usize {
        (self.style.width * percent / 100).max(12)
    }

    fn title(&self, out: &mut String) {
        let trace = &self.report.trace;
        let command =
            if trace.command.is_empty() { "unknown program".into() } else { trace.command.join(" ") };
        let machine = &self.report.machine;
        let caches: Vec<String> =
            machine.levels.iter().map(|level| format!("{} {}", level.name, bytes(level.bytes))).collect();
        let room = self.share(100).saturating_sub(10);
        let _ = writeln!(out, "{}  {}", self.style.heading("program"), cut(&printable(&command), room));
        let known = match machine.latencies {
            LatenciesKnown::Measured => "measured",
            LatenciesKnown::PartlyMeasured => "partly measured",
            LatenciesKnown::Assumed => "assumed",
        };
        let machine =
            format!("{}: {} cores, {}; latencies {known}", machine.name, machine.cores, caches.join(", "));
        let _ = writeln!(out, "{}  {}", self.style.heading("machine"), cut(&printable(&machine), room));
        let total = &self.report.total.numbers;
        let threads = match trace.threads {
            1 => "1 thread".to_string(),
            n => format!("{n} threads"),
        };
        let processes =
            if trace.processes > 1 { format!(" of {} processes", trace.processes) } else { String::new() };
        let _ = writeln!(
            out,
            "{} {}{}: {} reads, {} writes, by {threads}{processes}",
            self.style.heading("accesses"),
            count(total.accesses),
            if trace.sample.is_some() { " recorded" } else { "" },
            count(total.reads),
            count(total.writes),
        );
    }

    fn levels(&self, out: &mut String) {
        let mut table =
            plain_table(&["level", "asked", "read misses", "write misses", "missed", "of all"], 1);
        for level in &self.report.machine.levels {
            let asked = level.reads + level.writes;
            let missed = level.read_misses + level.write_misses;
            table.add_row([
                level.name.clone(),
                count(asked),
                count(level.read_misses),
                count(level.write_misses),
                percent(missed, asked),
                percent(missed, self.report.total.numbers.accesses),
            ]);
        }
        write_table(out, &table);
    }

    fn sample(&self, out: &mut String) {
        let Some(sample) = &self.report.trace.sample else { return };
        let [of, errors] = sample::lines(sample);
        let _ = writeln!(out, "{}   {of}", self.style.warning("sample"));
        let _ = writeln!(out, "         {}", printable(&errors));
    }

    fn coverage(&self, out: &mut String) {
        let shares = &self.report.coverage;
        let whole = shares.accesses;
        let part = |share: f64| percent((share * whole as f64).round() as u64, whole);
        let _ = writeln!(
            out,
            "{}    known for the accesses: line {}, variable or type {}, member {}, object {}",
            self.style.heading("names"),
            part(shares.line),
            part(shares.variable_or_type),
            part(shares.member),
            part(shares.object),
        );
    }

    fn notes(&self, out: &mut String) {
        for known in &self.report.trace.notes {
            *out += &self.style.warning_paragraph("note", &printable(&note(known)));
        }
    }

    fn findings(&self, out: &mut String) {
        let findings = &self.report.findings;
        if findings.is_empty() {
            let _ = writeln!(out, "\n{}: no line stands out.", self.style.heading("Findings"));
            return;
        }
        let _ = writeln!(
            out,
            "\n{}",
            self.style.heading(match &self.report.trace.sample {
                None => "Findings, by modelled cycles of waiting for data (an upper bound: misses overlap)",
                Some(_) => "Findings in the sample, by modelled cycles of waiting for data (misses overlap)",
            })
        );
        for (i, finding) in findings.iter().take(FINDINGS).enumerate() {
            self.finding(out, i + 1, finding);
        }
        if findings.len() > FINDINGS {
            let _ = writeln!(out, "   and {} smaller ones", findings.len() - FINDINGS);
        }
        for Doubt::Lead { value, standard_error } in findings.first().map_or(&[][..], |first| &first.doubt) {
            if let Some(note) = not_told_apart(*value, *standard_error) {
                let _ = writeln!(out, "   {note}");
            }
        }
    }

    fn finding(&self, out: &mut String, number: usize, finding: &Finding) {
        let errors = finding.numbers.standard_errors.as_ref();
        let share = self.stall_share(finding.numbers.stall_share, errors.map(|errors| errors.stall_share));
        let taken = 24 + if errors.is_some() { ERROR / 2 } else { 0 };
        let _ = writeln!(
            out,
            "{number:2}. {}  {}  {}",
            self.style.culprit(&cut(&name(&finding.subject.data), self.share(40))),
            self.style
                .heading(&cut_end(&place(&finding.subject.position), self.share(55).saturating_sub(taken))),
            self.style.heading(&format!("{share} of the wait")),
        );
        let ratios = errors.and_then(|errors| errors.miss_ratios.as_ref());
        let misses = self.report.machine.levels.iter().enumerate().map(|(i, level)| {
            let missed = finding.numbers.misses.of(i);
            let error = ratios.map(|ratios| ratios.of(i));
            format!("{} miss {}", with_error(&percent(missed, finding.numbers.accesses), error), level.name)
        });
        let misses: Vec<String> = misses.collect();
        let _ =
            writeln!(out, "    {} accesses, of which {}", count(finding.numbers.accesses), misses.join(", "));
        for evidence in &finding.evidence {
            let line = match evidence {
                Evidence::Together { lines } => self.together(&finding.cost, lines),
                Evidence::Objects { objects } => self.objects(objects),
                Evidence::Addresses { from } => Some(addresses(from)),
                Evidence::Density(density) => Some(self.density(density)),
            };
            line.into_iter().for_each(|line| _ = writeln!(out, "    {line}"));
        }
        if let Some(Edit::Split { ty, members }) = &finding.edit {
            let advice = format!(
                "→ keep {} apart from the rest of {}: in an array of {} own, or by moving the rest out",
                cut(&printable(&members.join(", ")), self.share(40)),
                printable(&brief(ty)),
                if members.len() == 1 { "its" } else { "their" },
            );
            let _ = writeln!(out, "    {}", self.style.advice(&advice));
        }
    }

    fn together(&self, cost: &Cost, lines: &[Row<Access>]) -> Option<String> {
        let next = lines.first()?;
        let whole = self.stall_share(cost.stall_share, cost.standard_error);
        let line = next.subject.position.line.map_or(String::new(), |line| format!(" at line {line}"));
        Some(format!(
            "{whole} with the other lines of this function: {}{line}{}",
            cut(&name(&next.subject.data), self.share(40)),
            and_more(lines.len()),
        ))
    }

    fn objects(&self, objects: &[Row<Object>]) -> Option<String> {
        let first = &objects.first()?.subject;
        let others = and_more(objects.len());
        let made = match (first.count, &first.home) {
            (0, _) | (_, Home::Global { .. }) => String::new(),
            (1, _) => format!(" (1 block of {})", bytes(first.bytes)),
            (n, _) => format!(" ({} blocks, {})", count(n), bytes(first.bytes)),
        };
        let kind = if matches!(first.home, Home::Heap { .. }) { "heap of " } else { "" };
        let object = format!("{kind}{}", object(first));
        let room = self.share(100).saturating_sub(8 + made.chars().count() + others.len());
        Some(format!("in {}{made}{others}", cut_end(&object, room)))
    }

    fn density(&self, density: &Density) -> String {
        format!(
            "{} of the {} bytes of each {} are used in this function: {}",
            density.used_bytes,
            density.type_bytes,
            printable(&brief(&density.ty)),
            cut(&printable(&density.members.join(", ")), self.share(50)),
        )
    }

    fn table(&self, out: &mut String, by: By) {
        let (title, columns): (_, &[&str]) = match by {
            By::Line => ("Data and line", &["data", "line"]),
            By::Field => ("Members", &["member"]),
            By::Type => ("Types", &["type"]),
            By::Object => ("Objects", &["object", "element", "number", "size"]),
            By::Function => ("Functions", &["function"]),
            By::Thread => ("Threads", &["thread", "core"]),
        };
        let (mut rows, total) = self.rows(by);
        rows.truncate(self.style.top);
        let shown = rows.len();
        let levels = self.report.machine.levels.iter().map(|level| self.level_heading(&level.name));
        let headings: Vec<String> = columns
            .iter()
            .map(|column| column.to_string())
            .chain(["wait".into(), "accesses".into()])
            .chain(levels)
            .collect();
        let mut table = plain_table(&headings, columns.len());
        for (cells, numbers) in rows {
            let mut row = cells;
            let error = numbers.standard_errors.as_ref().map(|errors| errors.stall_share);
            row.push(self.stall_share(numbers.stall_share, error));
            row.push(count(numbers.accesses));
            row.extend((0..self.report.machine.levels.len()).map(|level| count(numbers.misses.of(level))));
            table.add_row(row);
        }
        let of = if total > shown { format!(" (first {shown} of {total})") } else { String::new() };
        let _ = writeln!(out, "\n{}{of}", self.style.heading(title));
        write_table(out, &table);
    }

    /// The rows of a table and how many there are in all.
    fn rows(&self, by: By) -> (Vec<(Vec<String>, &Numbers)>, usize) {
        let report = self.report;
        let top = self.style.top;
        let fit = |text: &str, room: usize| cut(&printable(text), room.max(12)).into_owned();
        let fit_end = |text: &str, room: usize| cut_end(&printable(text), room.max(12)).into_owned();
        // Two columns of numbers stand in every table: wait and accesses.
        let room = self.room(2);
        match by {
            By::Line => {
                let lines = report.lines.iter().take(top);
                let data: Vec<String> =
                    lines.clone().map(|line| fit(&self.name_at_line(line), room * 45 / 100)).collect();
                // What the names leave: a place without its line is of no use.
                let widest = data.iter().map(|name| name.chars().count()).max().unwrap_or(0);
                let left = room.saturating_sub(widest + 4).max(16);
                let rows = lines.zip(data).map(|(line, data)| {
                    (vec![data, fit_end(&place(&line.subject.position), left)], &line.numbers)
                });
                (rows.collect(), report.lines.len())
            }
            By::Field => {
                let row = |data: &Data| vec![fit(&name(data), room)];
                let fields = &report.fields;
                (fields.iter().take(top).map(|f| (row(&f.subject), &f.numbers)).collect(), fields.len())
            }
            By::Type => {
                let types = &report.types;
                (
                    types
                        .iter()
                        .take(top)
                        .map(|t| (vec![fit(&brief(&t.subject.name), room)], &t.numbers))
                        .collect(),
                    types.len(),
                )
            }
            By::Object => {
                let room = self.room(4);
                let row = |object: &Object| {
                    let mut element = brief(object.element.as_deref().unwrap_or(""));
                    if object.element_by_use {
                        element.insert(0, '~');
                    }
                    let (number, size) = if object.count > 0 {
                        (count(object.count), bytes(object.bytes))
                    } else {
                        Default::default()
                    };
                    vec![fit_end(&self::object(object), room * 2 / 3), fit(&element, room / 3), number, size]
                };
                let objects = &report.objects;
                (objects.iter().take(top).map(|o| (row(&o.subject), &o.numbers)).collect(), objects.len())
            }
            By::Function => {
                let row = |linkage: &str| vec![fit(&brief(&demangle_short(linkage)), room)];
                let functions = &report.functions;
                (
                    functions.iter().take(top).map(|f| (row(&f.subject.linkage_name), &f.numbers)).collect(),
                    functions.len(),
                )
            }
            By::Thread => {
                let row = |thread: &Thread| {
                    let name = match report.trace.processes {
                        1 => format!("{} (tid {})", thread.thread, thread.tid),
                        _ => format!("{} (tid {} of pid {})", thread.thread, thread.tid, thread.pid),
                    };
                    vec![name, thread.core.to_string()]
                };
                let threads = &report.threads;
                (threads.iter().take(top).map(|t| (row(&t.subject), &t.numbers)).collect(), threads.len())
            }
        }
    }

    /// Two pointers to the same member in one line are two rows: the variable tells them apart.
    fn name_at_line(&self, line: &Row<Access>) -> String {
        let line = &line.subject;
        let same = |other: &&Row<Access>| {
            let (a, b) = (&line.data, &other.subject.data);
            other.subject.position == line.position && (&a.ty, &a.member) == (&b.ty, &b.member)
        };
        let alone = self.report.lines.iter().filter(same).nth(1).is_none();
        match &line.data.variable {
            Some(variable) if !alone && line.data.member.is_some() => {
                format!("{} ({})", name(&line.data), printable(variable))
            }
            _ => name(&line.data),
        }
    }
}

/// `, and 2 more`, behind the first of so many.
fn and_more(all: usize) -> String {
    if all > 1 { format!(", and {} more", all - 1) } else { String::new() }
}

fn addresses(from: &str) -> String {
    let wait = match from {
        "chased" => "each of these misses waits for the one before",
        _ => "these misses can overlap, and be prefetched",
    };
    format!("addresses are {from}: {wait}")
}
