//! `cargo xtask wrap`: the prose of Markdown pages in lines of at most 100 columns.
//!
//! Tables, code blocks, headings and comments stay as they are, and so does a word that is longer than a line.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::law::sources;

/// The most columns that a line of prose has.
const COLUMNS: usize = 100;

/// Wraps the paragraphs of every page that have a longer line.
pub fn wrap_all(root: &Path) -> Result<()> {
    for path in sources(root, &["md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let wrapped = wrapped(&text);
        if wrapped != text {
            fs::write(&path, wrapped).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// One sentence for each page with a longer line.
pub fn too_long(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources(root, &["md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if let Some(line) = first_difference(&text, &wrapped(&text)) {
            let shown = path.strip_prefix(root).unwrap_or(&path).display();
            problems.push(format!(
                "{shown}:{line}: prose over {COLUMNS} columns in this paragraph; run `cargo xtask wrap`"
            ));
        }
    }
    Ok(problems)
}

fn first_difference(text: &str, other: &str) -> Option<usize> {
    (text != other).then(|| 1 + text.lines().zip(other.lines()).take_while(|(a, b)| a == b).count())
}

/// Returns the text with every paragraph wrapped that has a longer line.
pub fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut until: Option<&str> = None;
    let mut after_blank = true;
    for line in text.lines() {
        let start = line.trim_start();
        let as_it_is = if let Some(end) = until {
            if start.contains(end) {
                until = None;
            }
            true
        } else if let Some(fence) = ["```", "~~~"].into_iter().find(|fence| start.starts_with(fence)) {
            until = Some(fence);
            true
        } else if start.starts_with("<!--") {
            until = (!start.contains("-->")).then_some("-->");
            true
        } else {
            let code = after_blank && line.starts_with("    ") && marker(start).is_none();
            code || start.is_empty() || start.starts_with('|') || start.starts_with('#')
        };
        if as_it_is || marker(start).is_some() {
            flush(&mut paragraph, &mut out);
        }
        if as_it_is {
            out += line;
            out.push('\n');
        } else {
            paragraph.push(line);
            // A break that was asked for.
            if line.ends_with("  ") || line.ends_with('\\') {
                flush(&mut paragraph, &mut out);
            }
        }
        after_blank = start.is_empty();
    }
    flush(&mut paragraph, &mut out);
    out
}

/// The bytes of a list item's marker and the spaces behind it.
fn marker(start: &str) -> Option<usize> {
    let word = start.split(' ').next()?;
    let number = word.strip_suffix(['.', ')']).is_some_and(|number| number.parse::<u32>().is_ok());
    let is_marker = number || matches!(word, "-" | "*" | "+");
    let rest = start[word.len()..].trim_start();
    (is_marker && !rest.is_empty()).then(|| start.len() - rest.len())
}

/// Writes a paragraph, or the first one of a list item.
fn flush(paragraph: &mut Vec<&str>, out: &mut String) {
    if paragraph.iter().all(|line| line.chars().count() <= COLUMNS) {
        for line in paragraph.drain(..) {
            *out += line;
            out.push('\n');
        }
        return;
    }
    let first = paragraph[0];
    let indent = first.len() - first.trim_start().len();
    let head = indent + marker(first.trim_start()).unwrap_or(0);
    let text = std::iter::once(&first[head..]).chain(paragraph.drain(1..).map(str::trim_start));
    let text = text.collect::<Vec<_>>().join(" ");
    let mut line = first[..head].to_string();
    let mut empty = true;
    for word in words(&text) {
        if !empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            *out += line.trim_end();
            out.push('\n');
            line = " ".repeat(head);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &word;
        empty = false;
    }
    *out += &line;
    // The spaces of a break that was asked for.
    if text.ends_with("  ") {
        *out += "  ";
    }
    out.push('\n');
    paragraph.clear();
}

/// The pieces between which a line may end. Code of a few words stays in one piece, and what would begin a list or a
/// heading at the beginning of a line stays with the word before it.
fn words(text: &str) -> Vec<String> {
    const LONGEST_CODE: usize = 60;
    let mut words: Vec<String> = Vec::new();
    let mut in_code = false;
    for word in text.split_whitespace() {
        let begins = word.starts_with(['#', '>', '|', '=']) || matches!(word, "-" | "+" | "*" | "--");
        let numbers = word.strip_suffix(['.', ')']).is_some_and(|number| number.parse::<u32>().is_ok());
        match words.last_mut() {
            Some(last)
                if (in_code && last.chars().count() + word.chars().count() < LONGEST_CODE)
                    || begins
                    || numbers =>
            {
                last.push(' ');
                *last += word;
            }
            _ => words.push(word.to_string()),
        }
        in_code ^= word.matches('`').count() % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paragraphs_with_a_long_line_change() {
        let short = "a\nb\n\n- c\n";
        assert_eq!(wrapped(short), short);
        let long = "word ".repeat(30);
        let text = wrapped(&format!("# {long}\n\n{long}\nend\n\n| {long}|\n\n```\n{long}\n```\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2].chars().count(), 99);
        assert!(lines[3].ends_with("word end"));
        assert!(lines[0].len() > COLUMNS && lines[5].len() > COLUMNS && lines[8].len() > COLUMNS);
        assert_eq!(wrapped(&text), text, "what is wrapped stays");
    }

    #[test]
    fn items_keep_their_indent_and_code_its_words() {
        let long = "word ".repeat(18);
        let text = wrapped(&format!("  - {long}`a b c` 1. {long}\n  - next\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  - word") && lines[1].starts_with("    "), "{text}");
        assert!(text.contains("`a b c` 1."), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(lines.last(), Some(&"  - next"));
    }

    #[test]
    fn a_word_longer_than_a_line_is_left() {
        let address = format!("https://example.org/{}", "x".repeat(100));
        let text = format!("see\n{address}\nthere\n");
        assert_eq!(wrapped(&text), text);
    }
}
