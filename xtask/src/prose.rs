//! Markdown pages: prose in lines of at most 100 columns, which `cargo xtask wrap` makes, links that lead
//! somewhere, and the project's words.
//!
//! Tables, code blocks, headings and comments stay as they are, and so does a word that is longer than a line.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

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

/// The most lines that the README has: what is longer belongs into `docs/`.
const README_LINES: usize = 150;

/// One sentence for each page with a longer line, and for a README that is too long.
pub fn too_long(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources(root, &["md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        if shown.to_string() == "README.md" && text.lines().count() > README_LINES {
            problems.push(format!("README.md: more than {README_LINES} lines"));
        }
        if let Some(line) = first_difference(&text, &wrapped(&text)) {
            problems.push(format!(
                "{shown}:{line}: prose over {COLUMNS} columns in this paragraph; run `cargo xtask wrap`"
            ));
        }
    }
    Ok(problems)
}

/// One sentence for each link from a page to a file or heading that is not there.
pub fn dead_links(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources(root, &["md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = path.parent().unwrap_or(root);
        for target in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            let is_there = file.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&file).is_ok_and(|text| headings(&text).any(|h| h == heading)));
            if !is_there {
                let shown = path.strip_prefix(root).unwrap_or(&path).display();
                problems.push(format!("{shown}: links to {target}, which is not there"));
            }
        }
    }
    Ok(problems)
}

/// The page that lists the project's words.
const VOCABULARY: &str = "docs/dev/vocabulary.md";

/// One sentence for each place where a person reads a word that [`VOCABULARY`] replaces: pages, messages of the crates,
/// and the help of the command line.
pub fn banned_words(root: &Path) -> Result<Vec<String>> {
    let vocabulary = root.join(VOCABULARY);
    let text = fs::read_to_string(&vocabulary).with_context(|| format!("cannot read {VOCABULARY}"))?;
    let banned = banned(&text);
    ensure!(!banned.is_empty(), "{VOCABULARY}: no table `| not | but |`");
    let mut problems = Vec::new();
    let pages = sources(root, &["md"])?.into_iter().filter(|path| *path != vocabulary);
    for path in pages.chain(sources(&root.join("crates"), &["rs"])?) {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path);
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        let is_help = shown.starts_with("crates/cli");
        for (number, line) in text.lines().enumerate() {
            let start = line.trim_start();
            let is_read = is_page || !start.starts_with("//") || (is_help && start.starts_with("///"));
            let lower = line.to_lowercase();
            for (word, instead) in banned.iter().filter(|(word, _)| is_read && has_words(&lower, word)) {
                problems.push(format!("{}:{}: not `{word}` but: {instead}", shown.display(), number + 1));
            }
        }
    }
    Ok(problems)
}

/// The rows of the table of words that are not used.
fn banned(vocabulary: &str) -> Vec<(String, String)> {
    let rows = vocabulary.split_once("| not | but |\n|---|---|\n").map_or("", |(_, rows)| rows);
    let cells = rows.lines().filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    cells.map(|(word, instead)| (word.to_lowercase(), instead.to_string())).collect()
}

/// Returns whether these words stand in a line, not as parts of longer ones.
pub fn has_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + words.len()..]);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

/// Returns what a page links to within the tree.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let outside_code = text.split("```").step_by(2);
    let targets = outside_code.flat_map(|text| text.split("](").skip(1));
    targets.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim()).filter(|target| {
        !target.is_empty() && !target.contains("://") && !target.contains([' ', '`', '"', '|'])
    })
}

/// The names by which a page's headings are linked to.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let kept = line.trim_start_matches('#').trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
        });
        kept.collect()
    })
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
    fn words_that_are_not_used_are_found() {
        let page =
            "| word | meaning |\n|---|---|\n| a | b |\n\n| not | but |\n|---|---|\n| Hand on | pass on |\n";
        assert_eq!(banned(page), [("hand on".to_string(), "pass on".to_string())]);
        assert!(has_words("we hand on, here", "hand on") && !has_words("beforehand one", "hand on"));
    }

    #[test]
    fn links_and_headings_are_found() {
        let page = "[a](b.md#c) [w](https://x.y/z) [x\ny](#4-d) `v[i](1 + 2)`\n```\n[i](no.md)\n```\n";
        assert_eq!(links(page).collect::<Vec<_>>(), ["b.md#c", "#4-d"]);
        let page = "# A: `b c`, d\ntext\n### 4.4 Replay order\n";
        assert_eq!(headings(page).collect::<Vec<_>>(), ["a-b-c-d", "44-replay-order"]);
    }

    #[test]
    fn a_word_longer_than_a_line_is_left() {
        let address = format!("https://example.org/{}", "x".repeat(100));
        let text = format!("see\n{address}\nthere\n");
        assert_eq!(wrapped(&text), text);
    }
}
