//! The text of the lines that findings are about, read from the program's sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memlode_trace::Trace;

use super::compiled::{Compiled, NoSuchSource};
use crate::model::{CommandAnswer, CommandFindings, Position, SourceLine, SourceText};

/// The sources of a program as they were compiled; each file is read once.
pub struct Sources {
    /// Lines shown on each side of the requested one.
    context: u32,
    compiled: Compiled,
    files: BTreeMap<String, Result<SourceFile, String>>,
}

struct SourceFile {
    text: String,
    /// Bytes in front of each line.
    begins: Vec<usize>,
}

impl SourceFile {
    fn of(bytes: Vec<u8>) -> SourceFile {
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let begins = std::iter::once(0).chain(feeds.map(|(at, _)| at + 1));
        SourceFile { begins: begins.collect(), text }
    }

    /// Number of lines; behind the last line feed there is none.
    fn lines(&self) -> u32 {
        let open = self.begins.last().is_some_and(|&begin| begin < self.text.len());
        (self.begins.len() - usize::from(!open)) as u32
    }

    /// A line, counted from 1.
    fn line(&self, number: u32) -> &str {
        self.text[self.begins[number as usize - 1]..].lines().next().unwrap_or_default()
    }
}

impl Sources {
    /// Prepares to show lines of the program of `trace`, with a number of neighbours on each side.
    pub fn new(trace: &Trace, context: u32) -> Sources {
        Sources { context, compiled: Compiled::of(trace), files: BTreeMap::new() }
    }

    /// Never shows the text of these files, or of files in these folders.
    ///
    /// # Errors
    /// The first name that no source of the program goes by.
    pub fn hiding(self, trace: &Trace, confidential: &[PathBuf]) -> Result<Sources, NoSuchSource> {
        Ok(Sources { compiled: self.compiled.hiding(trace.sites(), confidential)?, ..self })
    }

    /// Shows sources without checksums below these directories, too ([`Compiled::within`]).
    pub fn within(self, directories: impl IntoIterator<Item = PathBuf>) -> Sources {
        Sources { compiled: self.compiled.within(directories), ..self }
    }

    /// Adds the source lines to the findings of a report, or to the edits that are worth it.
    pub fn add_to(&mut self, answer: &mut CommandAnswer) {
        match &mut answer.found {
            CommandFindings::Report(report) => {
                for finding in &mut report.findings {
                    finding.source = self.around(&finding.subject.position);
                }
            }
            CommandFindings::Advice(advice) => {
                for located in advice.worth_it.iter_mut().filter_map(|found| found.at.as_mut()) {
                    located.source = self.around(&located.access.position);
                }
            }
            _ => {}
        }
    }

    /// The lines of a file from `first` to `last`, as far as it has them.
    pub fn between(&mut self, name: &str, first: u32, last: u32) -> SourceText {
        let file = self
            .files
            .entry(name.to_string())
            .or_insert_with(|| self.compiled.read(Path::new(name)).map(SourceFile::of));
        let missing = |why: String| SourceText::Missing { file: name.to_string(), why };
        match file {
            Err(why) => missing(why.clone()),
            Ok(file) if first > file.lines() => {
                missing(format!("it has {} lines, and no line {first}", file.lines()))
            }
            Ok(file) => {
                let line = |number| SourceLine {
                    line: number,
                    text: file.line(number).to_string(),
                    is_subject: false,
                };
                SourceText::Lines { lines: (first.max(1)..=last.min(file.lines())).map(line).collect() }
            }
        }
    }

    /// The text of a position's line, or of the line of the program that it was inlined into. `None` if it has no line.
    pub fn around(&mut self, position: &Position) -> Option<SourceText> {
        let shown = position.inlined_into.as_deref().unwrap_or(position);
        let (name, line) = shown.file.as_ref().zip(shown.line)?;
        let file = self
            .files
            .entry(name.clone())
            .or_insert_with(|| self.compiled.read(Path::new(name)).map(SourceFile::of));
        let missing = |why: String| SourceText::Missing { file: name.clone(), why };
        let file = match file {
            Ok(file) => file,
            Err(why) => return Some(missing(why.clone())),
        };
        let (first, last) = (line.saturating_sub(self.context).max(1), line.saturating_add(self.context));
        if line == 0 || line > file.lines() {
            return Some(missing(format!("it has {} lines, and no line {line}", file.lines())));
        }
        let lines = (first..=last.min(file.lines())).map(|number| SourceLine {
            line: number,
            text: file.line(number).to_string(),
            is_subject: number == line,
        });
        let lines = lines.collect();
        Some(SourceText::Lines { lines })
    }
}
