//! Source lines with numbers beside them.

use std::fmt::Write;

use super::Style;
use super::names::name;
use super::source::untabbed;
use crate::build::listing::cycles;
use crate::model::{LevelCauses, ListedCode, ListedLine, ListedPart, Listing, Numbers, Precision, Simulated};
use crate::render::text::{brief, bytes, count, cut, cut_end, percent, percent_of, printable};

/// A line with this part of the cycles is one to look at.
pub(super) const HOT: f64 = 0.10;

/// An event that is listed for each line, in a column of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// The part of the run's modelled cycles.
    Share,
    /// Modelled cycles.
    Cycles,
    /// Cycles among these of waiting for data.
    Wait,
    /// Accesses.
    Accesses,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Misses of a level, 0 the innermost.
    Misses(usize),
    /// The commonest cause of the misses that cost most.
    Cause,
    /// Bytes that were fetched at that level and not used.
    Unused,
    /// The data that costs most.
    Data,
}

impl LineEvent {
    /// The events of these names; `misses` are those of every level.
    ///
    /// # Errors
    /// A sentence on the first unknown name.
    pub fn named(names: &[String], machine: &Simulated) -> Result<Vec<LineEvent>, String> {
        let mut events = Vec::new();
        for name in names {
            match name.as_str() {
                "share" => events.push(LineEvent::Share),
                "cycles" => events.push(LineEvent::Cycles),
                "wait" => events.push(LineEvent::Wait),
                "accesses" => events.push(LineEvent::Accesses),
                "reads" => events.push(LineEvent::Reads),
                "writes" => events.push(LineEvent::Writes),
                "misses" => events.extend((0..machine.levels.len()).map(LineEvent::Misses)),
                "cause" => events.push(LineEvent::Cause),
                "unused" => events.push(LineEvent::Unused),
                "data" => events.push(LineEvent::Data),
                _ => match machine.levels.iter().position(|level| level.name == *name) {
                    Some(level) => events.push(LineEvent::Misses(level)),
                    None => {
                        let levels: Vec<&str> = machine.levels.iter().map(|level| &*level.name).collect();
                        return Err(format!(
                            "no event is called {}: there are share, cycles, wait, accesses, reads, writes, misses, \
                             those of a level ({}), cause, unused and data",
                            printable(name),
                            levels.join(", ")
                        ));
                    }
                },
            }
        }
        Ok(events)
    }

    fn heading(self, machine: &Simulated) -> String {
        match self {
            LineEvent::Share => "share".into(),
            LineEvent::Cycles => "cycles".into(),
            LineEvent::Wait => "wait".into(),
            LineEvent::Accesses => "accesses".into(),
            LineEvent::Reads => "reads".into(),
            LineEvent::Writes => "writes".into(),
            LineEvent::Misses(level) => {
                machine.levels.get(level).map_or("", |level| &*level.name).to_string()
            }
            LineEvent::Cause => "cause".into(),
            LineEvent::Unused => "unused".into(),
            LineEvent::Data => "data".into(),
        }
    }
}

/// Returns the output of `memlode annotate`, with a column for each event.
pub fn listing(found: &Listing, events: &[LineEvent], style: Style) -> String {
    let mut out = String::new();
    for part in &found.parts {
        out += &head(part, style);
        out += &table(found, part, events, style);
        out.push('\n');
    }
    out + &left_out(found.left_out, "the modelled cycles", style)
}

/// The sentence on functions that are not shown, each with less than 1% of `whole`.
pub(super) fn left_out(functions: usize, whole: &str, style: Style) -> String {
    let others = match functions {
        0 => return String::new(),
        1 => "one function that has".to_string(),
        n => format!("{n} functions that have"),
    };
    style.paragraph("not shown", &format!("{others} less than 1% of {whole}"))
}

/// The name of a part, and its share.
fn head(part: &ListedPart, style: Style) -> String {
    let cost = format!(
        "{} of the modelled cycles, {} accesses",
        percent_of(part.share),
        count(part.numbers.accesses)
    );
    let heading = heading(part.function.as_deref(), part.file.as_deref(), &cost, style);
    let note = code_note(&part.code).map_or(String::new(), |note| style.indented(2, &note));
    heading + &note + &no_text(part.no_text.as_deref(), style)
}

/// The line above a part: its function and file, and what it costs.
pub(super) fn heading(function: Option<&str>, file: Option<&str>, cost: &str, style: Style) -> String {
    let file = file.unwrap_or("(file not known)");
    let title = match function {
        Some(function) => format!("{}  {}", brief(function), file),
        None => file.to_string(),
    };
    let room = style.width.saturating_sub(cost.chars().count() + 2).max(24);
    format!("{}  {cost}\n", style.heading(&cut(&printable(&title), room)))
}

/// The reason why a part has no text, if it has none.
pub(super) fn no_text(why: Option<&str>, style: Style) -> String {
    why.map_or(String::new(), |why| style.indented(2, &format!("(no text: {})", printable(why))))
}

/// The sentence on the code that instructions are of.
fn code_note(code: &[ListedCode]) -> Option<String> {
    let has = |version: &str| code.iter().any(|one| one.version == version);
    let parts = [
        ("plain", "of a build without memlode"),
        ("dormant", "of the side that records nothing"),
        ("recording", "with memlode's own among them"),
    ];
    let parts: Vec<&str> =
        parts.iter().filter(|(version, _)| has(version)).map(|(_, words)| *words).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "instructions: {}; ~ in front of a number: the line's, which several share",
            parts.join(", or ")
        )
    })
}

/// A row: numbers by event, and the text beside them.
pub(super) struct Shown {
    pub numbers: Vec<String>,
    pub is_hot: bool,
    pub text: String,
}

fn table(found: &Listing, part: &ListedPart, events: &[LineEvent], style: Style) -> String {
    let digits = part.lines.iter().filter_map(|line| line.line).max().unwrap_or(0).to_string().len();
    let margin = common_margin(part.lines.iter().filter_map(|line| line.text.as_deref()));
    let mut rows: Vec<Shown> = Vec::new();
    let mut before = None;
    for line in &part.lines {
        rows.extend(gap(before, line.line, digits));
        before = line.line;
        rows.push(Shown {
            numbers: numbers(found, line, events),
            is_hot: line.cycles >= HOT * found.total_cycles(),
            text: beside(line.line, line.text.as_deref(), "accesses", digits, margin),
        });
        rows.extend(instructions(found, part, line, events, digits));
    }
    let headings: Vec<String> = events.iter().map(|event| event.heading(&found.machine)).collect();
    columns(&headings, &rows, style)
}

/// A row that stands for lines left out.
pub(super) fn gap(before: Option<u32>, line: Option<u32>, digits: usize) -> Option<Shown> {
    let is_gap = before.zip(line).is_some_and(|(before, now)| now > before + 1);
    is_gap.then(|| Shown { numbers: Vec::new(), is_hot: false, text: format!("{:>digits$} ⋮", "") })
}

/// Lays rows out below their headings.
pub(super) fn columns(headings: &[String], rows: &[Shown], style: Style) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.numbers.get(column)).chain([&headings[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let taken = widths.iter().sum::<usize>() + 2 * widths.len() + 2;
    let room = style.width.saturating_sub(taken).max(24);
    let mut out = String::new();
    let empty = String::new();
    let mut write = |cells: &[String], is_hot: bool, text: &str| {
        let mut head = String::new();
        for (column, width) in widths.iter().enumerate() {
            let _ = write!(head, "  {:>width$}", cells.get(column).unwrap_or(&empty));
        }
        let head = if is_hot { style.culprit(&head) } else { head };
        let _ = writeln!(out, "{}", format!("{head} │{}", cut_end(text, room)).trim_end());
    };
    write(headings, false, "");
    rows.iter().for_each(|row| write(&row.numbers, row.is_hot, &row.text));
    out
}

/// The instructions of a line; where they are of other functions than the text, these are named.
fn instructions(
    found: &Listing,
    part: &ListedPart,
    line: &ListedLine,
    events: &[LineEvent],
    digits: usize,
) -> Vec<Shown> {
    let mut rows = Vec::new();
    let mut function = part.function.as_deref();
    for one in &line.instructions {
        if function != Some(&one.function) {
            let text = format!("{:>digits$}  in {}:", "", printable(&brief(&one.function)));
            rows.push(Shown { numbers: Vec::new(), is_hot: false, text });
            function = Some(&one.function);
        }
        let numbers = match one.counted {
            None => Vec::new(),
            Some(Precision::Exact) => {
                let numbers = one.numbers.as_ref().map(|numbers| ListedLine::counted(numbers.clone()));
                numbers.map(|line| self::numbers(found, &line, events)).unwrap_or_default()
            }
            Some(Precision::Line) => {
                let told = self::numbers(found, line, events).into_iter().zip(events);
                let is_number = |event: &LineEvent| {
                    !matches!(event, LineEvent::Cause | LineEvent::Unused | LineEvent::Data)
                };
                told.map(|(cell, event)| if is_number(event) { format!("~{cell}") } else { String::new() })
                    .collect()
            }
        };
        let text = format!("{:>digits$}    {:x}  {}", "", one.address, printable(&one.text));
        rows.push(Shown { numbers, is_hot: false, text });
    }
    rows
}

impl ListedLine {
    /// The numbers of an instruction, as a line has them.
    fn counted(numbers: Numbers) -> ListedLine {
        ListedLine {
            line: None,
            text: None,
            cycles: cycles(&numbers),
            numbers: Some(numbers),
            causes: Vec::new(),
            data: Vec::new(),
            instructions: Vec::new(),
        }
    }
}

impl Listing {
    fn total_cycles(&self) -> f64 {
        cycles(&self.total).max(f64::MIN_POSITIVE)
    }
}

/// Columns that all lines with text are indented by.
pub(super) fn common_margin<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    let indented = texts.map(untabbed).filter(|text| !text.trim().is_empty());
    indented.map(|text| text.len() - text.trim_start_matches(' ').len()).min().unwrap_or(0)
}

/// A line's number and text; without a number, the `what` that have none.
pub(super) fn beside(
    line: Option<u32>,
    text: Option<&str>,
    what: &str,
    digits: usize,
    margin: usize,
) -> String {
    let Some(number) = line else { return format!("{:>digits$}  ({what} without a line)", "?") };
    let text = text.map(untabbed).unwrap_or_default();
    let text = text.get(margin..).unwrap_or("").trim_end();
    format!("{number:>digits$}  {}", printable(text))
}

/// The numbers of a line; none of one without accesses.
fn numbers(found: &Listing, line: &ListedLine, events: &[LineEvent]) -> Vec<String> {
    let Some(numbers) = &line.numbers else { return Vec::new() };
    let level = costliest(&found.machine, numbers);
    let causes = level.and_then(|level| line.causes.get(level));
    let cell = |event: &LineEvent| match *event {
        LineEvent::Share => percent_of(line.cycles / found.total_cycles()),
        LineEvent::Cycles => count(line.cycles.round() as u64),
        LineEvent::Wait => count(numbers.wait.cycles.round() as u64),
        LineEvent::Accesses => count(numbers.accesses),
        LineEvent::Reads => count(numbers.reads),
        LineEvent::Writes => count(numbers.writes),
        LineEvent::Misses(level) => count(numbers.misses.of(level)),
        LineEvent::Cause => causes.map(cause).unwrap_or_default(),
        LineEvent::Unused => causes.map(unused).unwrap_or_default(),
        LineEvent::Data => line.data.first().map(name).unwrap_or_default(),
    };
    events.iter().map(cell).collect()
}

/// The level whose misses cost most, 0 the innermost; `None` if none missed.
fn costliest(machine: &Simulated, numbers: &Numbers) -> Option<usize> {
    let latency =
        |depth: usize| machine.levels.get(depth).map_or(machine.memory_latency_cycles, |l| l.latency_cycles);
    let cost = |&level: &usize| {
        let served = numbers.misses.of(level).saturating_sub(numbers.misses.of(level + 1));
        served.saturating_mul(u64::from(latency(level + 1).saturating_sub(latency(0))))
    };
    (0..machine.levels.len()).filter(|level| numbers.misses.of(*level) > 0).max_by_key(cost)
}

/// The commonest cause: `L2 capacity 98%`.
fn cause(level: &LevelCauses) -> String {
    let causes = CAUSES.into_iter().zip(level.by_cause());
    let most = causes.max_by_key(|(_, misses)| *misses).filter(|(_, misses)| *misses > 0);
    most.map(|(word, misses)| format!("{} {word} {}", level.level, percent(misses, level.misses())))
        .unwrap_or_default()
}

/// Names of the causes of misses, in the order of [`ByCause`](crate::model::ByCause).
pub const CAUSES: [&str; 6] =
    ["cold", "capacity", "conflict", "held elsewhere", "true sharing", "false sharing"];

/// Bytes that were not used, and their part of the fetched bytes.
fn unused(level: &LevelCauses) -> String {
    match level.fetched_bytes {
        0 => String::new(),
        fetched => format!("{} {}", bytes(level.unused_bytes), percent(level.unused_bytes, fetched)),
    }
}
