//! The text of the lines that findings are about, read from the program's sources.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, SystemTime};

use memlode_trace::Trace;

use crate::model::{Position, Report, SourceLine, SourceText};

/// Bytes of the largest file that is read.
const LARGEST: u64 = 16 << 20;

/// The sources of a program as they are now; each file is read once.
pub struct Sources {
    /// When the recorded program was started.
    started: SystemTime,
    /// Lines shown on each side of the one that is asked for.
    context: u32,
    files: BTreeMap<String, Result<SourceFile, String>>,
}

struct SourceFile {
    text: String,
    /// Bytes in front of each line.
    begins: Vec<usize>,
    changed: bool,
}

impl SourceFile {
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
    /// Prepares to show lines of the program that `trace` was recorded of, with so many neighbours on each side.
    pub fn new(trace: &Trace, context: u32) -> Sources {
        let started = Duration::from_millis(trace.manifest().info.started_unix_ms);
        Sources { started: SystemTime::UNIX_EPOCH + started, context, files: BTreeMap::new() }
    }

    /// Adds the source lines to the findings of a report.
    pub fn add_to(&mut self, report: &mut Report) {
        for finding in &mut report.findings {
            finding.source = self.around(&finding.subject.position);
        }
    }

    /// The text of a position's line, or of the line of the program that it was inlined into. `None` if it has no line.
    pub fn around(&mut self, position: &Position) -> Option<SourceText> {
        let shown = position.inlined_into.as_deref().unwrap_or(position);
        let (name, line) = shown.file.as_ref().zip(shown.line)?;
        let started = self.started;
        let file = self.files.entry(name.clone()).or_insert_with(|| read(name, started));
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
        Some(SourceText::Lines { lines, changed: file.changed })
    }
}

/// Reads a source file. What is no regular file, such as a pipe that nobody writes to, is not opened.
fn read(name: &str, started: SystemTime) -> Result<SourceFile, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "it is not there".to_string(),
        _ => format!("it cannot be read: {error}"),
    };
    let known = fs::metadata(name).map_err(cannot)?;
    if !known.is_file() {
        return Err("it is no file of text".to_string());
    }
    if known.len() > LARGEST {
        return Err(format!("it has more than {} MiB", LARGEST >> 20));
    }
    let mut bytes = Vec::new();
    File::open(name).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)).map_err(cannot)?;
    let changed = known.modified().is_ok_and(|modified| modified > started);
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    let begins = std::iter::once(0).chain(feeds.map(|(at, _)| at + 1));
    Ok(SourceFile { begins: begins.collect(), text, changed })
}
