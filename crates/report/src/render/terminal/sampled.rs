//! Samples of a program that nobody rebuilt, in words.

use memlode_sample::{SampleReport, SampleShare, SampledData};

use super::Style;
use super::rows::NamedRows;
use super::style::together;
use crate::names::demangle_short;
use crate::render::text::{brief, count, cut, cut_end, percent_of, printable};

/// A smaller part of the time is not worth a sentence.
const LEAST_TOLD: f64 = 0.02;

/// Returns what `memlode sample` prints.
pub fn sampled(found: &SampleReport, style: Style) -> String {
    let mut out = style.paragraph("sampled", &subject(found));
    out += &style.paragraph("names", &coverage(found));
    for text in warnings(found) {
        out += &style.warning_paragraph("note", &text);
    }
    out += &data(found, style);
    out += &lines(found, style);
    out + &functions(found, style)
}

fn subject(found: &SampleReport) -> String {
    let threads = match found.threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    };
    let mut text = format!("{}: {} samples of {threads}", printable(&found.subject), count(found.samples));
    if !found.events.is_empty() {
        text += &format!(" by {}", found.events.join(" and "));
    }
    if found.period_ns > 0 {
        text += &format!(", one each {:.3} ms of CPU time", found.period_ns as f64 / 1e6);
    }
    if found.seconds > 0.0 {
        text += &format!(", in {:.2} s", found.seconds);
    }
    text + "; figures are shares of the time, with the distance within which they lie 19 times in 20"
}

fn coverage(found: &SampleReport) -> String {
    let part = |share: SampleShare| together(&percent_of(share.share));
    let of = &found.coverage;
    let mut text = format!(
        "{} of the time has a line; {} is at instructions that touch memory: {} with a variable or type, {} with a member",
        part(of.line),
        part(of.memory),
        part(of.typed),
        part(of.member)
    );
    let reasons: Vec<String> = found
        .untyped
        .iter()
        .filter(|row| row.time.share >= LEAST_TOLD)
        .map(|row| format!("{} at {}", part(row.time), reason(&row.why)))
        .collect();
    if !reasons.is_empty() {
        text += &format!("; without a type: {}", reasons.join(", "));
    }
    text
}

/// Words for a reason of `memlode_symbols::typing::Untyped`.
fn reason(why: &str) -> &str {
    match why {
        "NoDebugInformation" => "code without debug information",
        "NoFunction" => "code of functions that debug information does not know",
        "NoInstruction" => "bytes that are no known instruction",
        "UnknownPointer" => "pointers that no variable explains",
        "UntypedPointer" => "pointers to void",
        "Frame" => "values that the compiler keeps on the stack",
        "OtherMemory" => "thread-local memory and gathers",
        "Static" => "static memory without a variable",
        other => other,
    }
}

fn warnings(found: &SampleReport) -> Vec<String> {
    let mut texts = Vec::new();
    for image in found.images.iter().filter(|image| image.time.share >= 0.05) {
        let (path, share) = (printable(&image.path), percent_of(image.time.share));
        match &image.unread {
            Some(why) => texts.push(format!("{share} of the time is in {path}: {}", printable(why))),
            None if !image.has_debug => texts.push(format!(
                "{share} of the time is in {path}, which has no debug information that is read: compile it with -g and without \
                 -gz"
            )),
            None => {}
        }
    }
    if found.lost > 0 || found.throttled > 0 {
        texts.push(format!(
            "the kernel lost {} samples and paused {} times: take fewer with --rate",
            count(found.lost),
            count(found.throttled)
        ));
    }
    texts
}

fn cells(time: SampleShare) -> Vec<String> {
    vec![percent_of(time.share), format!("±{}", percent_of(time.error))]
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn place(file: &str, line: u32, function: &str) -> String {
    let function = brief(&demangle_short(function));
    printable(format!("{}:{line} {function}", base_name(file)).trim_end()).into_owned()
}

/// Columns that names may take beside the numbers.
fn room(style: Style) -> usize {
    style.width.saturating_sub(22).max(40)
}

fn table(
    title: &'static str,
    columns: &'static [&'static str],
    rows: Vec<(Vec<String>, SampleShare)>,
    all: usize,
    style: Style,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let (texts, numbers): (Vec<_>, Vec<_>) = rows.into_iter().map(|(text, time)| (text, cells(time))).unzip();
    let below = Vec::new();
    NamedRows { title, columns, texts, below }.table(&["time".into(), "±".into()], numbers, all, style)
}

fn name(data: &SampledData) -> String {
    let name = brief(&printable(&data.name()));
    match data.on_stack {
        Some(share) if share > 0.5 && data.variable.is_none() => format!("{name} (stack)"),
        _ => name,
    }
}

fn data(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let row = |data: &SampledData| {
        let at = data.lines.first().map(|(file, line, function)| place(file, *line, function));
        let (name, at) = (name(data), at.unwrap_or_default());
        (vec![cut(&name, width / 2).into_owned(), cut_end(&at, width / 2).into_owned()], data.time)
    };
    let rows = found.data.iter().take(style.top).map(row).collect();
    table(
        "Data, by time at the instructions that touch it",
        &["data", "mostly at"],
        rows,
        found.data.len(),
        style,
    )
}

fn lines(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let rows = found.lines.iter().take(style.top).map(|row| {
        let mut at = place(&row.file, row.line, &row.function);
        for outer in &row.inlined_into {
            at += &format!(" ← {}", brief(&printable(&demangle_short(outer))));
        }
        let data = row.data.as_deref().map_or(String::new(), |data| brief(&printable(data)));
        (vec![cut_end(&at, 2 * width / 3).into_owned(), cut(&data, width / 3).into_owned()], row.time)
    });
    table("Lines", &["line", "data"], rows.collect(), found.lines.len(), style)
}

fn functions(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let rows = found.functions.iter().take(style.top).map(|row| {
        let name = match row.function.as_str() {
            "" => "(no function is known)".into(),
            name => brief(&printable(&demangle_short(name))),
        };
        let image = match row.image.as_str() {
            "" => "memory without a file".into(),
            path => printable(base_name(path)).into_owned(),
        };
        (vec![cut_end(&name, 2 * width / 3).into_owned(), cut_end(&image, width / 3).into_owned()], row.time)
    });
    table("Functions", &["function", "in"], rows.collect(), found.functions.len(), style)
}
