//! `cargo xtask check`: rooms that choose no words. What commands print is chosen in
//! `crates/report/src/render`; these rooms hand data to it, and their errors alone are sentences.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::law::{shown, sources};

/// Folders and files without words.
const ROOMS: &[&str] = &[
    "crates/cli/src/baseline.rs",
    "crates/cli/src/commands/advise.rs",
    "crates/cli/src/commands/bench.rs",
    "crates/cli/src/commands/bias",
    "crates/cli/src/commands/budget.rs",
    "crates/cli/src/commands/machine.rs",
    "crates/cli/src/commands/validate.rs",
    "crates/cli/src/commands/whatif.rs",
    "crates/cli/src/stop.rs",
    "crates/measure/src/bench",
    "crates/measure/src/bias",
    "crates/measure/src/machine",
    "crates/measure/src/validate",
];

/// Files of these rooms that have sentences, and why they may.
const MAY: &[(&str, &str)] =
    &[("crates/measure/src/machine/mod.rs", "the sources that a machine file names")];

/// Names in front of a bracket with words that are an error's, or that nobody reads.
const ERRORS: &[&str] = &[
    "Err",
    "Error",
    "anyhow",
    "assert",
    "assert_eq",
    "bail",
    "context",
    "debug_assert",
    "expect",
    "map_err",
    "ok_or",
    "ok_or_else",
    "panic",
    "too_few",
    "usage",
    "with_context",
];

/// Words in a row that make a text a sentence rather than a name.
const WORDS: usize = 4;

/// Returns one sentence for each text that a room without words has.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for room in ROOMS {
        let room = root.join(room);
        let files = if room.is_dir() { sources(&room, &["rs"])? } else { vec![room] };
        for path in files {
            let place = shown(root, &path);
            if place.ends_with("/tests.rs") || MAY.iter().any(|(file, _)| *file == place) {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {place}"))?;
            let found = sentences(&text).with_context(|| place.clone())?;
            problems.extend(found.into_iter().map(|(line, text)| {
                format!("{place}:{line}: `{text}` is chosen in crates/report/src/render, and not here")
            }));
        }
    }
    Ok(problems)
}

/// Finds the texts of a source that are sentences and no errors, with their lines.
fn sentences(source: &str) -> Result<Vec<(usize, String)>> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or(source);
    let tokens: TokenStream = code.parse().map_err(|why| anyhow!("{why}"))?;
    let mut found = Vec::new();
    walk(tokens, &mut found);
    Ok(found)
}

fn walk(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let before = &tokens[..at];
                // Comments and help are attributes.
                let is_attribute = group.delimiter() == Delimiter::Bracket && ends_with_mark(before);
                if !is_attribute && !is_error(before) {
                    walk(group.stream(), found);
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if is_sentence(&text) && !is_help(&tokens[..at]) {
                    found.push((literal.span().start().line, text.chars().take(60).collect()));
                }
            }
            _ => {}
        }
    }
}

/// Returns whether `#` or `#!` stands at the end.
fn ends_with_mark(before: &[TokenTree]) -> bool {
    let mark = |token: &TokenTree, mark| matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark);
    match before {
        [.., last] if mark(last, '#') => true,
        [.., first, last] => mark(first, '#') && mark(last, '!'),
        _ => false,
    }
}

/// Returns whether a path, a method or a macro of [`ERRORS`] stands at the end.
fn is_error(before: &[TokenTree]) -> bool {
    let path = before.iter().rev().map_while(|token| match token {
        TokenTree::Ident(ident) => Some(Some(ident.to_string())),
        TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '!') => Some(None),
        _ => None,
    });
    path.flatten().any(|name| ERRORS.contains(&name.as_str()))
}

/// Returns whether a constant of a name such as `AFTER_HELP` begins in front.
fn is_help(before: &[TokenTree]) -> bool {
    let idents = before.iter().rev().filter_map(|token| match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    });
    let mut last = idents.take(3);
    last.next().is_some_and(|ty| ty == "str") && last.next().is_some_and(|name| name.ends_with("HELP"))
}

/// Returns whether a literal has [`WORDS`] words in a row.
fn is_sentence(literal: &str) -> bool {
    let Some((_, text)) = literal.split_once('"') else { return false };
    let is_word = |word: &str| {
        let word = word.trim_end_matches([',', '.', ';', ':', '"']);
        !word.is_empty() && word.chars().all(char::is_alphabetic)
    };
    let words: Vec<bool> = text.split_whitespace().map(is_word).collect();
    words.windows(WORDS).any(|row| row.iter().all(|is_word| *is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(source: &str) -> Vec<usize> {
        sentences(source).expect("Rust").into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn sentences_are_found() {
        assert_eq!(
            lines("fn f() -> String {\n    format!(\"{x} is slower than {y} by far too much\")\n}"),
            [2]
        );
        assert_eq!(lines("fn f() {\n\n    line(&text(\"all of it is here\"));\n}"), [3]);
    }

    #[test]
    fn errors_help_comments_and_names_are_none() {
        assert!(lines("fn f() { bail!(\"{x} is no such file\"); }").is_empty());
        assert!(lines("fn f() { Err(format!(\"it is no such file\")) }").is_empty());
        assert!(lines("fn f() { Error::System { doing: \"cannot make a file\", source } }").is_empty());
        assert!(lines("fn f() { open().with_context(|| format!(\"cannot open that file\")) }").is_empty());
        assert!(lines("const AFTER_HELP: &str = \"How it is measured.\";").is_empty());
        assert!(lines("/// What it is for.\n#[arg(help = \"What it is for\")]\nstruct A;").is_empty());
        assert!(lines("fn f() { column(\"set conflicts\"); csv(\"bytes,cycles,loads\"); }").is_empty());
        assert!(lines("#[cfg(test)]\nmod tests { const A: &str = \"all of it is here\"; }").is_empty());
    }
}
