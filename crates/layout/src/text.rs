//! The short form: one edit a line, or several with `;` between them.
//!
//! ```text
//! edits  = edit { (";" | newline) edit }
//! edit   = verb names [ ":" [ names ] ] { argument }
//! argument = key ("=" | " ") names
//! names  = name { "," name }
//! ```
//!
//! A name is everything up to a blank, comma, `=`, `;`, `#` or `:`, but brackets of any kind keep
//! what is inside them together, and `::` and `:` before a digit belong to the name. So
//! `std::pair<int, long>` and `main.c:12` are names. Whatever else a name holds is written in
//! double quotes. `#` begins a comment.

use std::ops::Range;

use crate::clause::{Argument, Clause, EditError, Word};
use crate::edit::Edit;

/// Reads edits in their short form.
///
/// # Errors
/// An [`EditError`] points at the first word that is not understood.
pub fn edits_from_text(text: &str) -> Result<Vec<Edit>, EditError> {
    let tokens = tokens(text)?;
    let clauses = tokens.split(|token| token.kind == Kind::End).filter(|tokens| !tokens.is_empty());
    clauses.map(|tokens| Edit::understand(text, &clause(text, tokens)?)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Comma,
    Colon,
    Equals,
    End,
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    text: String,
    span: Range<usize>,
}

fn tokens(text: &str) -> Result<Vec<Token>, EditError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let kind = match first {
            ',' => Some(Kind::Comma),
            ':' => Some(Kind::Colon),
            '=' => Some(Kind::Equals),
            ';' | '\n' => Some(Kind::End),
            _ => None,
        };
        let end = if let Some(kind) = kind {
            let span = at..at + 1;
            found.push(Token { kind, text: first.to_string(), span });
            at + 1
        } else if first == '#' {
            text[at..].find('\n').map_or(text.len(), |length| at + length)
        } else if first.is_whitespace() {
            at + first.len_utf8()
        } else if first == '"' {
            let length = text[at + 1..]
                .find(['"', '\n'])
                .filter(|length| text[at + 1 + length..].starts_with('"'))
                .ok_or_else(|| EditError::at(text, &(at..at + 1), "this quotation has no end"))?;
            let end = at + length + 2;
            let inside = text[at + 1..end - 1].to_string();
            found.push(Token { kind: Kind::Name, text: inside, span: at..end });
            end
        } else {
            let end = at + name_length(&text[at..]);
            found.push(Token { kind: Kind::Name, text: text[at..end].to_string(), span: at..end });
            end
        };
        at = end;
    }
    Ok(found)
}

/// Bytes of the unquoted name that a text begins with, at least one character.
fn name_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut characters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        match character {
            '\n' => return at,
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ':' if before == ':' || next.is_some_and(|next| next == ':' || next.is_ascii_digit()) => {}
            ',' | '=' | ';' | '#' | ':' | '"' => return at,
            _ if character.is_whitespace() => return at,
            _ => {}
        }
        before = character;
    }
    text.len()
}

/// Reads one clause; there is at least one token.
fn clause(text: &str, tokens: &[Token]) -> Result<Clause, EditError> {
    let mut reader = Reader { text, tokens, at: 0 };
    let verb = reader.name("an edit begins with a verb, such as `split` or `pad`")?;
    let subjects = reader.names("a type or an object is named behind the verb")?;
    let mut items = Vec::new();
    if reader.take(Kind::Colon) && reader.peek(0) == Some(Kind::Name) && reader.peek(1) != Some(Kind::Equals)
    {
        items = reader.names("a name is expected here")?;
    }
    let mut arguments = Vec::new();
    while reader.peek(0).is_some() {
        let key = reader.name("the name of an argument is expected here, such as `by` or `to`")?;
        reader.take(Kind::Equals);
        if reader.peek(0) != Some(Kind::Name) {
            return Err(EditError::at(text, &key.span, format!("`{}` has no value", key.text)));
        }
        let values = reader.names("a value is expected here")?;
        arguments.push(Argument { key, values });
    }
    Ok(Clause { verb, subjects, items, arguments })
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self, further: usize) -> Option<Kind> {
        self.tokens.get(self.at + further).map(|token| token.kind)
    }

    fn take(&mut self, kind: Kind) -> bool {
        let there = self.peek(0) == Some(kind);
        self.at += usize::from(there);
        there
    }

    fn name(&mut self, otherwise: &str) -> Result<Word, EditError> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind == Kind::Name => {
                self.at += 1;
                Ok(Word { text: token.text.clone(), span: token.span.clone() })
            }
            Some(token) => Err(EditError::at(self.text, &token.span, otherwise)),
            None => {
                let last = self.tokens.last().map_or(0, |token| token.span.end);
                Err(EditError::at(self.text, &(last..last), otherwise))
            }
        }
    }

    fn names(&mut self, otherwise: &str) -> Result<Vec<Word>, EditError> {
        let mut names = vec![self.name(otherwise)?];
        while self.take(Kind::Comma) {
            names.push(self.name("a name is expected behind the comma")?);
        }
        Ok(names)
    }
}
