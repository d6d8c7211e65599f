//! Kinds of words in source text, by the grammars of an editor.

use std::path::Path;

use serde::Serialize;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// Text of one kind: `c`omment, `s`tring, `n`umber, `k`eyword, `t`ype, `f`unction, `p`reprocessor, or none.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Token(&'static str, String);

/// Grammars of languages.
pub struct Colours {
    grammars: SyntaxSet,
    kinds: Vec<(Scope, &'static str)>,
}

impl Colours {
    /// Reads the grammars.
    pub fn new() -> Colours {
        const KINDS: &[(&str, &str)] = &[
            ("comment", "c"),
            ("string", "s"),
            ("constant", "n"),
            ("storage.type", "t"),
            ("support.type", "t"),
            ("entity.name.type", "t"),
            ("entity.name.struct", "t"),
            ("entity.name.function", "f"),
            ("support.function", "f"),
            ("variable.function", "f"),
            ("keyword.control.import", "p"),
            ("meta.preprocessor", "p"),
            ("keyword.operator.word", "k"),
            ("keyword.control", "k"),
            ("keyword.declaration", "k"),
            ("keyword.other", "k"),
            ("storage", "k"),
        ];
        let kind = |&(scope, kind): &(&str, &'static str)| Some((Scope::new(scope).ok()?, kind));
        Colours {
            grammars: two_face::syntax::extra_newlines(),
            kinds: KINDS.iter().filter_map(kind).collect(),
        }
    }

    /// Paints text of this file, which begins where no comment or string is open.
    pub fn painter(&self, file: &str) -> Painter<'_> {
        let grammars = &self.grammars;
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        // A header is read as C++, which has C's words.
        let ending = if ending == "h" { "hpp" } else { ending };
        let grammar = grammars.find_syntax_by_extension(ending);
        Painter {
            state: grammar.map(ParseState::new),
            grammars,
            kinds: &self.kinds,
            stack: ScopeStack::new(),
        }
    }
}

/// Paints one line after the other.
pub struct Painter<'a> {
    state: Option<ParseState>,
    grammars: &'a SyntaxSet,
    kinds: &'a [(Scope, &'static str)],
    stack: ScopeStack,
}

impl Painter<'_> {
    /// Cuts a line into tokens.
    pub fn line(&mut self, text: &str) -> Vec<Token> {
        let painted = self.painted(text);
        painted.unwrap_or_else(|| {
            // Without a grammar, or where it fails, the text is what it is.
            self.state = None;
            vec![Token("", text.to_string())]
        })
    }

    fn painted(&mut self, text: &str) -> Option<Vec<Token>> {
        let line = format!("{text}\n");
        let changes = self.state.as_mut()?.parse_line(&line, self.grammars).ok()?;
        let mut tokens: Vec<Token> = Vec::new();
        let mut from = 0;
        let mut push = |kind: &'static str, part: &str| match tokens.last_mut() {
            _ if part.is_empty() => {}
            Some(last) if last.0 == kind => last.1.push_str(part),
            _ => tokens.push(Token(kind, part.to_string())),
        };
        for (at, change) in changes {
            let at = at.min(text.len());
            push(self.kind(), text.get(from..at)?);
            self.stack.apply(&change).ok()?;
            from = at;
        }
        push(self.kind(), text.get(from..)?);
        Some(tokens)
    }

    /// The kind of what is innermost and has one.
    fn kind(&self) -> &'static str {
        let of = |scope: &Scope| self.kinds.iter().find(|(known, _)| known.is_prefix_of(*scope));
        self.stack.scopes.iter().rev().find_map(of).map_or("", |(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(file: &str, lines: &[&str]) -> Vec<Vec<Token>> {
        let colours = Colours::new();
        let mut painter = colours.painter(file);
        lines.iter().map(|line| painter.line(line)).collect()
    }

    fn kinds(line: &[Token], of: &str) -> Vec<&'static str> {
        line.iter().filter(|token| token.1.trim() == of).map(|token| token.0).collect()
    }

    #[test]
    fn words_have_their_kinds_in_each_language() {
        let c = painted("a.c", &["if (arc->state > 7) return 0; /* one"]);
        assert_eq!([kinds(&c[0], "if"), kinds(&c[0], "7"), kinds(&c[0], "/* one")], [["k"], ["n"], ["c"]]);
        for file in ["a.rs", "a.cpp", "a.f90", "a.h"] {
            let line = &painted(file, &["x = \"text\""])[0];
            assert!(line.contains(&Token("s", "\"text\"".into())), "{file}: {line:?}");
        }
    }

    #[test]
    fn no_character_is_lost() {
        let lines =
            ["/* open", "still */ int x = 'c'; // ünï", "", "#define A(x) \\", "\u{fffd}\"never closed"];
        for file in ["a.c", "a.unknown", ""] {
            for (line, tokens) in lines.iter().zip(painted(file, &lines)) {
                assert_eq!(tokens.iter().map(|token| &token.1[..]).collect::<String>(), *line, "{file}");
            }
        }
    }
}
