//! The words of one edit and where they stand, whichever form they were written in.

use std::fmt;
use std::ops::Range;

/// A word of an edit and its bytes in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    pub span: Range<usize>,
}

/// An argument with a name: `by=index`, `to 64`.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub key: Word,
    pub values: Vec<Word>,
}

/// One edit before its words are understood.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub verb: Word,
    /// The type or objects that are edited.
    pub subjects: Vec<Word>,
    /// The members, or other words without a key.
    pub items: Vec<Word>,
    pub arguments: Vec<Argument>,
}

impl Clause {
    /// The bytes from the first word to the last.
    pub fn span(&self) -> Range<usize> {
        let values = self.arguments.iter().flat_map(|a| std::iter::once(&a.key).chain(&a.values));
        let words = self.subjects.iter().chain(&self.items).chain(values);
        let spans = words.map(|word| &word.span).chain([&self.verb.span]);
        spans.fold(self.verb.span.clone(), |all, span| all.start.min(span.start)..all.end.max(span.end))
    }
}

/// An error in the text of an edit: its place, and a message.
///
/// Displayed, it shows the line and marks the word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct EditError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Characters of that line before the word.
    pub column: usize,
    /// The fault, as a sentence without a full stop.
    pub message: String,
    /// The whole line.
    shown: String,
    /// Characters that are marked, at least one.
    marked: usize,
}

impl EditError {
    /// A fault at some bytes of a text.
    pub(crate) fn at(text: &str, span: &Range<usize>, message: impl Into<String>) -> EditError {
        let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let start = floor(span.start).unwrap_or(0);
        let end = floor(span.end).unwrap_or(0).max(start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let shown = text[begin..].lines().next().unwrap_or("").to_string();
        let in_line = text[start..end].lines().next().unwrap_or("").chars().count();
        EditError {
            line: text[..begin].matches('\n').count() + 1,
            column: text[begin..start].chars().count(),
            message: message.into(),
            shown,
            marked: in_line.max(1),
        }
    }
}

impl EditError {
    /// The line, and below it what is marked of it.
    pub fn picture(&self) -> String {
        // A control character in the line would move the mark, or the terminal's cursor.
        let shown: String = self.shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("  {shown}\n  {}{}", " ".repeat(self.column), "^".repeat(self.marked))
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}: {}\n{}", self.line, self.message, self.picture())
    }
}
