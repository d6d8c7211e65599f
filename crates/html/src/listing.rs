//! The text of functions that cost something, with the numbers of each line.

use std::collections::BTreeMap;

use memlode_report::render::page::short;
use memlode_report::text::printable;
use memlode_report::{
    ListedInstruction, ListedPart, NamedListing, Numbers, Position, Precision, Report, SourceText, Sources,
};
use serde::Serialize;

use crate::colours::{Colours, Token};
use crate::side_by_side;

/// A function with this part of the cycles is shown with its text.
const LEAST: f64 = 0.005;

/// Lines around those that are accessed.
const AROUND: u32 = 4;

/// Lines between two that are accessed that are shown.
const GAP: u32 = 30;

/// Lines of all functions together.
const MOST_LINES: usize = 8_000;

/// Instructions of a function.
const MOST_INSTRUCTIONS: usize = 4_000;

/// Characters of a line that are shown.
const MOST_CHARACTERS: usize = 400;

/// A function.
#[derive(Debug, Serialize)]
pub struct Function {
    /// Its name, shortened.
    name: String,
    /// The name that the linker knows.
    linkage_name: String,
    /// The file.
    file: Option<String>,
    /// Cycles of its lines: instructions and waiting.
    cycles: f64,
    /// Their part of the run's, 0 to 1.
    share: f64,
    /// Rows of the report's lines.
    rows: Vec<usize>,
    /// Pieces of its text; none where it costs too little.
    pieces: Vec<Vec<Line>>,
    /// The reason why there is no text.
    no_text: Option<String>,
    /// The instructions of its lines.
    instructions: Vec<Instruction>,
}

/// An instruction of a line.
#[derive(Debug, Serialize)]
struct Instruction {
    #[serde(rename = "n")]
    line: u32,
    address: String,
    text: String,
    /// The function in whose code it stands, where that is another one.
    #[serde(rename = "in")]
    inside: Option<String>,
    /// Set if its accesses are known; else they are some of the line's.
    is_exact: Option<bool>,
    wait_share: f64,
    accesses: u64,
    /// Misses of each level.
    misses: Vec<u64>,
}

/// A line of the text.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(rename = "n")]
    number: u32,
    #[serde(rename = "t")]
    text: Vec<Token>,
}

/// Cycles of accesses: instructions up to them, and waiting.
fn cycles(numbers: &Numbers) -> f64 {
    numbers.wait.cycles + numbers.wait.instruction_cycles + numbers.wait.first_touch_cycles
}

/// The line that a reader can change.
fn shown(position: &Position) -> &Position {
    position.inlined_into.as_deref().unwrap_or(position)
}

/// Finds the functions of the report's lines, the costliest first, and the text of those that cost something.
pub fn functions(report: &Report, code: Option<&NamedListing>, sources: &mut Sources) -> Vec<Function> {
    let mut found: BTreeMap<(&str, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (at, row) in report.lines.iter().enumerate() {
        let position = shown(&row.subject.position);
        found.entry((&position.linkage_name, position.file.as_deref())).or_default().push(at);
    }
    let whole = cycles(&report.total.numbers).max(1.0);
    let mut functions: Vec<Function> = found
        .into_iter()
        .map(|((linkage_name, file), rows)| {
            let cycles: f64 = rows.iter().map(|&row| cycles(&report.lines[row].numbers)).sum();
            let position = shown(&report.lines[rows[0]].subject.position);
            Function {
                name: short(&position.function),
                linkage_name: linkage_name.to_string(),
                file: file.map(|file| printable(file).into_owned()),
                cycles,
                share: cycles / whole,
                rows,
                pieces: Vec::new(),
                no_text: None,
                instructions: Vec::new(),
            }
        })
        .collect();
    functions.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then_with(|| a.linkage_name.cmp(&b.linkage_name)));
    let is_found = |function: &Function| {
        let same = |finding: &memlode_report::NamedFinding| {
            shown(&finding.subject.position).linkage_name == function.linkage_name
        };
        report.findings.iter().any(same)
    };
    let mut room = MOST_LINES;
    let mut unpainted = Vec::new();
    for (at, function) in functions.iter_mut().enumerate() {
        if function.share < LEAST && !is_found(function) {
            function.no_text = Some("its text is left out: it has less than 0.5% of the cycles".into());
            continue;
        }
        let pieces = text(function, report, sources, &mut room);
        unpainted.extend(pieces.into_iter().map(|piece| (at, piece)));
        let parts = code.iter().flat_map(|code| &code.parts);
        let is_of = |part: &&ListedPart| {
            part.linkage_name.as_deref() == Some(&function.linkage_name)
                && part.file.as_deref().map(printable).as_deref() == function.file.as_deref()
        };
        function.instructions = parts.into_iter().find(is_of).map(instructions).unwrap_or_default();
    }
    paint(&mut functions, &unpainted);
    functions
}

/// A piece of the text of a file, which is not painted yet.
struct Unpainted {
    file: String,
    lines: Vec<(u32, String)>,
}

/// Paints the pieces of functions, which takes most of the time, on all cores.
fn paint(functions: &mut [Function], unpainted: &[(usize, Unpainted)]) {
    if unpainted.is_empty() {
        return;
    }
    let colours = Colours::new();
    let painted = side_by_side::map(unpainted, |(_, piece)| {
        let mut painter = colours.painter(&piece.file);
        let line = |(number, text): &(u32, String)| Line { number: *number, text: painter.line(text) };
        piece.lines.iter().map(line).collect()
    });
    for ((function, _), lines) in unpainted.iter().zip(painted) {
        functions[*function].pieces.push(lines);
    }
}

/// The instructions of a function's lines, as many as a page has room for.
fn instructions(part: &ListedPart) -> Vec<Instruction> {
    let lines = part.lines.iter().filter_map(|line| Some((line.line?, line)));
    let all = lines.flat_map(|(number, line)| line.instructions.iter().map(move |one| (number, one)));
    let one = |(line, of): (u32, &ListedInstruction)| {
        let numbers = of.numbers.clone().unwrap_or_default();
        Instruction {
            line,
            address: format!("{:x}", of.address),
            text: readable(&of.text),
            inside: (part.function.as_deref() != Some(&of.function)).then(|| short(&of.function)),
            is_exact: of.counted.map(|counted| counted == Precision::Exact),
            wait_share: numbers.wait_share,
            accesses: numbers.accesses,
            misses: numbers.misses.0.iter().map(|(_, misses)| *misses).collect(),
        }
    };
    all.take(MOST_INSTRUCTIONS).map(one).collect()
}

/// Finds the pieces of a function's text.
fn text(function: &mut Function, report: &Report, sources: &mut Sources, room: &mut usize) -> Vec<Unpainted> {
    let mut found = Vec::new();
    let positions = function.rows.iter().map(|&row| shown(&report.lines[row].subject.position));
    let mut lines: Vec<u32> =
        positions.clone().filter_map(|position| position.line).filter(|&line| line > 0).collect();
    lines.sort_unstable();
    let Some(file) = positions.clone().find_map(|position| position.file.as_deref()) else {
        function.no_text = Some("its file is not known".into());
        return found;
    };
    for (first, last) in pieces(&lines) {
        if *room == 0 {
            function.no_text = Some("the rest of its text is left out: the page has enough".into());
            return found;
        }
        let last = last.min(first + *room as u32 - 1);
        match sources.between(file, first, last) {
            SourceText::Missing { why, .. } => {
                function.no_text = Some(printable(&format!("no text: {why}")).into_owned());
                return found;
            }
            SourceText::Lines { lines } => {
                *room -= lines.len().min(*room);
                let lines = lines.iter().map(|line| (line.line, readable(&line.text))).collect();
                found.push(Unpainted { file: file.to_string(), lines });
            }
        }
    }
    found
}

/// A line without tabs and invisible characters, and not too long.
fn readable(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim_end().chars().take(MOST_CHARACTERS) {
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', 4 - out.chars().count() % 4)),
            c => out.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
        }
    }
    if text.trim_end().chars().count() > MOST_CHARACTERS {
        out.push('…');
    }
    out
}

/// Ranges of lines around those that are accessed, in order; lines far from each other are in different ones.
fn pieces(lines: &[u32]) -> Vec<(u32, u32)> {
    let mut pieces: Vec<(u32, u32)> = Vec::new();
    for &line in lines {
        let (first, last) = (line.saturating_sub(AROUND).max(1), line.saturating_add(AROUND));
        match pieces.last_mut() {
            Some(piece) if first <= piece.1.saturating_add(GAP) => piece.1 = last,
            _ => pieces.push((first, last)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_near_each_other_are_one_piece() {
        assert_eq!(pieces(&[3, 10, 200]), [(1, 14), (196, 204)]);
        assert_eq!(pieces(&[u32::MAX]), [(u32::MAX - AROUND, u32::MAX)]);
        assert!(pieces(&[]).is_empty());
    }

    #[test]
    fn a_line_is_shown_as_it_can_be_read() {
        assert_eq!(readable("\ta\u{202e}b\u{1b} "), "    a\\u{202e}b\\u{1b}");
        assert_eq!(readable(&"x".repeat(900)).chars().count(), MOST_CHARACTERS + 1);
    }
}
