//! From the lines of a report to those of its sources.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use crate::build::source::Sources;
use crate::model::{
    Access, Data, LevelCauses, ListedLine, ListedPart, Listing, Numbers, Position, Report, Row, Simulation,
    SourceText,
};
use crate::names::demangle_short;

/// The requested lines.
#[derive(Clone, Debug, PartialEq)]
pub enum WantedLines {
    /// Lines of functions with at least this part of the run's modelled cycles, 0 to 1.
    Hot(f64),
    /// Lines of functions of this name, demangled or not.
    Function(String),
    /// Lines of a file, named by its path or the last components of it; one line alone, if there is a number.
    File(String, Option<u32>),
}

impl WantedLines {
    /// The position at which an access is listed: its own, or the line of the program that it was inlined into.
    pub(crate) fn position<'p>(&self, own: &'p Position) -> Option<&'p Position> {
        let into = own.inlined_into.as_deref();
        match self {
            WantedLines::Hot(_) => Some(into.unwrap_or(own)),
            _ => [Some(own), into].into_iter().flatten().find(|position| self.is_at(position)),
        }
    }

    /// Returns whether accesses at a position are requested.
    pub fn is_at(&self, position: &Position) -> bool {
        match self {
            WantedLines::Hot(_) => true,
            WantedLines::Function(name) => {
                position.linkage_name == *name
                    || position.function == *name
                    || demangle_short(&position.linkage_name) == *name
            }
            WantedLines::File(wanted, line) => {
                let wanted = wanted.strip_prefix("./").unwrap_or(wanted);
                let file = position.file.as_deref().map(Path::new);
                file.is_some_and(|file| file.ends_with(wanted)) && (line.is_none() || position.line == *line)
            }
        }
    }
}

/// Modelled cycles of accesses: instructions up to them, waiting, and first touches.
pub fn cycles(numbers: &Numbers) -> f64 {
    numbers.wait.cycles + numbers.wait.instruction_cycles + numbers.wait.first_touch_cycles
}

/// Sums of a line.
#[derive(Default)]
struct Sum<'r> {
    numbers: Option<Numbers>,
    causes: Vec<LevelCauses>,
    data: Vec<(f64, &'r Data)>,
}

impl<'r> Sum<'r> {
    fn add(&mut self, row: &'r Row<Access>) {
        match &mut self.numbers {
            Some(numbers) => numbers.add(&row.numbers),
            None => self.numbers = Some(Numbers { standard_errors: None, ..row.numbers.clone() }),
        }
        let (cycles, data) = (cycles(&row.numbers), &row.subject.data);
        match self.data.iter_mut().find(|(_, known)| *known == data) {
            Some((sum, _)) => *sum += cycles,
            None => self.data.push((cycles, data)),
        }
    }

    fn add_causes(&mut self, row: &Row<Access>) {
        let causes = row.detail.iter().flat_map(|detail| &detail.causes);
        for (at, level) in causes.enumerate() {
            match self.causes.get_mut(at) {
                Some(sum) => sum.add(level),
                None => self.causes.push(LevelCauses { evicted_by: Vec::new(), ..level.clone() }),
            }
        }
    }

    fn line(mut self, line: Option<u32>, text: Option<String>) -> ListedLine {
        self.data.sort_by(|a, b| b.0.total_cmp(&a.0));
        ListedLine {
            line,
            text,
            cycles: self.numbers.as_ref().map_or(0.0, cycles),
            numbers: self.numbers,
            causes: self.causes,
            data: self.data.into_iter().map(|(_, data)| data.clone()).collect(),
            instructions: Vec::new(),
        }
    }
}

/// A part: a file's path, and of a function its names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'r> {
    pub file: Option<&'r str>,
    pub function: Option<(&'r str, &'r str)>,
}

/// The lines of a part by number.
type Lines<'r> = BTreeMap<Option<u32>, Sum<'r>>;

/// Lists lines of a report's program, with `context` neighbours on each side. `simulation` is
/// another answer about the trace, with the causes of misses.
pub fn listing(
    report: &Report,
    simulation: Option<&Simulation>,
    sources: &mut Sources,
    wanted: &WantedLines,
    context: u32,
) -> Listing {
    let by_function = !matches!(wanted, WantedLines::File(..));
    let mut parts: BTreeMap<Key<'_>, Lines<'_>> = BTreeMap::new();
    let key = |position| Some(key(wanted.position(position)?, by_function));
    for row in &report.lines {
        if let Some((key, line)) = key(&row.subject.position) {
            parts.entry(key).or_default().entry(line).or_default().add(row);
        }
    }
    for row in simulation.iter().flat_map(|found| &found.report.lines) {
        let sum = key(&row.subject.position).and_then(|(key, line)| parts.get_mut(&key)?.get_mut(&line));
        if let Some(sum) = sum {
            sum.add_causes(row);
        }
    }
    let whole = cycles(&report.total.numbers).max(f64::MIN_POSITIVE);
    let (least, mut left_out) = (if let WantedLines::Hot(least) = wanted { *least } else { 0.0 }, 0);
    let mut found = Vec::new();
    for (key, lines) in parts {
        let numbers = Numbers::sum(lines.values().filter_map(|sum| sum.numbers.as_ref()));
        if cycles(&numbers) / whole < least {
            left_out += 1;
            continue;
        }
        found.push((key, lines, numbers));
    }
    let rank = |numbers: &Numbers| Reverse((cycles(numbers) * 10.0) as u64);
    found.sort_by_key(|(_, _, numbers)| (rank(numbers), Reverse(numbers.accesses)));
    let parts = found.into_iter().map(|(key, lines, numbers)| {
        let (lines, no_text) = with_text(key.file, lines, sources, context);
        let lines = lines.into_iter().map(|(line, text, sum)| sum.line(line, text)).collect();
        ListedPart {
            file: key.file.map(str::to_string),
            function: key.function.map(|(name, _)| name.to_string()),
            linkage_name: key.function.map(|(_, name)| name.to_string()),
            cycles: cycles(&numbers),
            share: cycles(&numbers) / whole,
            numbers,
            code: Vec::new(),
            lines,
            no_text,
        }
    });
    Listing {
        trace: report.trace.clone(),
        machine: report.machine.clone(),
        total: report.total.numbers.clone(),
        has_causes: simulation.is_some(),
        parts: parts.collect(),
        left_out,
    }
}

/// The part that a position is in, by function or file, and its line.
pub(crate) fn key(position: &Position, by_function: bool) -> (Key<'_>, Option<u32>) {
    let function = by_function.then_some((&*position.function, &*position.linkage_name));
    (Key { file: position.file.as_deref(), function }, position.line.filter(|line| *line > 0))
}

/// A line of a part: its number, its text, and what is known of it.
pub(crate) type TextLine<S> = (Option<u32>, Option<String>, S);

/// The lines of a part with their text and neighbours, or without, and why.
pub(crate) fn with_text<S: Default>(
    file: Option<&str>,
    mut sums: BTreeMap<Option<u32>, S>,
    sources: &mut Sources,
    context: u32,
) -> (Vec<TextLine<S>>, Option<String>) {
    let without = sums.remove(&None).map(|sum| (None, None, sum));
    let mut lines = Vec::new();
    let mut no_text = None;
    let numbers: Vec<u32> = sums.keys().copied().flatten().collect();
    match file {
        None if !numbers.is_empty() => no_text = Some("its file is not known".to_string()),
        _ => {}
    }
    for (first, last) in ranges(&numbers, context, 2) {
        let Some(file) = file else { break };
        match sources.between(file, first, last) {
            SourceText::Missing { why, .. } => no_text = Some(why),
            SourceText::Lines { lines: found } => {
                for line in found {
                    let sum = sums.remove(&Some(line.line)).unwrap_or_default();
                    lines.push((Some(line.line), Some(line.text), sum));
                }
            }
        }
    }
    // The text may be another one than was compiled, or not be there: the numbers are right all the same.
    lines.extend(sums.into_iter().map(|(line, sum)| (line, None, sum)));
    lines.sort_by_key(|(line, ..)| *line);
    lines.extend(without);
    (lines, no_text)
}

/// Ranges of lines, in order, with a number of neighbours on each side; ranges with fewer than
/// `gap` lines between them are joined.
pub fn ranges(lines: &[u32], context: u32, gap: u32) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &line in lines {
        let (first, last) = (line.saturating_sub(context).max(1), line.saturating_add(context));
        match ranges.last_mut() {
            Some(range) if first <= range.1.saturating_add(gap) => range.1 = last,
            _ => ranges.push((first, last)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_near_each_other_are_one_range() {
        assert_eq!(ranges(&[3, 10, 200], 4, 30), [(1, 14), (196, 204)]);
        assert_eq!(ranges(&[3, 5, 8], 0, 2), [(3, 5), (8, 8)]);
        assert_eq!(ranges(&[u32::MAX], 4, 2), [(u32::MAX - 4, u32::MAX)]);
        assert!(ranges(&[], 4, 30).is_empty());
    }

    #[test]
    fn a_file_is_named_by_its_last_components_and_a_function_by_any_of_its_names() {
        let into = Position {
            file: Some("/src/app/main.cc".into()),
            line: Some(7),
            function: "app::run(int)".into(),
            linkage_name: "_ZN3app3runEi".into(),
            ..Position::default()
        };
        let own = Position {
            file: Some("/usr/include/vector".into()),
            line: Some(1126),
            function: "std::at(int)".into(),
            inlined_into: Some(Box::new(into.clone())),
            ..Position::default()
        };
        let file = |name: &str, line| WantedLines::File(name.into(), line);
        assert_eq!(file("app/main.cc", None).position(&own), Some(&into));
        assert_eq!(file("./main.cc", Some(7)).position(&own), Some(&into));
        assert_eq!(file("vector", None).position(&own), Some(&own));
        assert_eq!(file("pp/main.cc", None).position(&own), None);
        assert_eq!(file("main.cc", Some(8)).position(&own), None);
        for name in ["app::run", "app::run(int)", "_ZN3app3runEi"] {
            assert_eq!(WantedLines::Function(name.into()).position(&own), Some(&into), "{name}");
        }
        assert_eq!(WantedLines::Hot(0.01).position(&own), Some(&into));
    }
}
