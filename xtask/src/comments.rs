//! Doc comments of Rust, C and C++: each begins with a sentence, or a noun phrase, and not with a fragment of one; and
//! they use the words of the field.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::law::sources;
use crate::prose::has_words;

/// Words that begin fragments, or refer to something that a reader has not met yet.
const FRAGMENTS: [&str; 21] = [
    "What", "Who", "Whose", "Whoever", "Whether", "Where", "How", "Of", "By", "As", "And", "Has", "Nobody",
    "None", "Said", "Says", "So", "Tells", "That", "Those", "Told",
];

/// Words of ours in doc comments that make a stranger read twice, and the words to use.
const UNUSUAL: [(&str, &str); 14] = [
    ("answered", "served"),
    ("at hand", "current"),
    ("by turns", "alternately, or one of each in every iteration"),
    ("foretold", "predicted"),
    ("hang on", "depend on"),
    ("hangs on", "depends on"),
    ("outwards", "to the next level"),
    ("so many", "a number of, or N"),
    ("tell apart", "distinguish"),
    ("tells apart", "distinguishes"),
    ("told apart", "distinguished"),
    ("whoever", "the actor's name"),
    ("is told", "is reported, or receives"),
    ("was told", "was reported, or received"),
];

/// Returns one sentence for each doc comment that begins with a fragment.
pub fn fragments(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources(root, &["rs", "c", "cpp", "h", "S"])? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        problems.extend(beginnings(&text).map(|(line, word)| {
            format!("{shown}:{line}: a doc comment begins with “{word}”; begin with a verb or a noun phrase")
        }));
        problems.extend(unusual(&text).map(|(line, word, instead)| {
            format!("{shown}:{line}: a doc comment says “{word}”; say: {instead}")
        }));
    }
    Ok(problems)
}

/// Returns the number of each line that begins a doc comment, or a paragraph of one, with such a word, and the word. In C
/// these are block comments that begin their line.
fn beginnings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let goes_on = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("///" | "//!")) && words.next().is_some()
    };
    let mut is_inside = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let begins =
            !std::mem::replace(&mut is_inside, goes_on(line)) && is_inside || line.starts_with("/* ");
        let word = line.split_whitespace().nth(1)?;
        (begins && FRAGMENTS.contains(&word)).then_some((number, word))
    })
}

/// Returns the number of each line of a doc comment that has unusual words, these words, and those to use. Code in
/// backquotes does not count.
fn unusual(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let comments = text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim_start();
        let said = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some((number, said.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase()))
    });
    comments.flat_map(|(number, said)| {
        let found: Vec<_> = UNUSUAL.iter().filter(|(word, _)| has_words(&said, word)).collect();
        found.into_iter().map(move |&(word, instead)| (number, word, instead))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_found_where_a_comment_begins() {
        let text = "//! What it is.\n\n/// Returns\n/// What goes on.\nfn f();\n    /// Whether it is.\n    a: bool,\n\
                    // What a plain comment says.\n/// One.\n///\n/// By level: two.\n\
                    /* How it ends. */\n  /* What goes on. */\n";
        assert_eq!(
            beginnings(text).collect::<Vec<_>>(),
            [(1, "What"), (6, "Whether"), (11, "By"), (12, "How")]
        );
    }

    #[test]
    fn unusual_words_are_found_outside_code() {
        let text = "/// So many lines.\n// So many.\nfn whoever();\n//! `whoever` and whomever\n    /// It hangs on a load.\n";
        let found: Vec<_> = unusual(text).map(|(line, word, _)| (line, word)).collect();
        assert_eq!(found, [(1, "so many"), (5, "hangs on")]);
    }
}
