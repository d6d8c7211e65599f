//! Comments that say what something is, of Rust, C and C++: each begins with a sentence, or a noun phrase, and not with
//! a fragment of one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::law::sources;

/// Words that begin fragments.
const FRAGMENTS: [&str; 8] = ["What", "Who", "Whose", "Whether", "Where", "How", "Of", "By"];

/// Returns one sentence for each doc comment that begins with a fragment.
pub fn fragments(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources(root, &["rs", "c", "cpp", "h", "S"])? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        problems.extend(beginnings(&text).map(|(line, word)| {
            format!("{shown}:{line}: a doc comment begins with “{word}”; begin with a verb or a noun phrase")
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
}
