//! Source lines below the text that they illustrate.

use super::Style;
use crate::model::SourceText;
use crate::render::text::{cut, printable};

/// Columns in front of a source line.
const INDENT: usize = 4;

/// Columns that a tab goes on to.
const TAB: usize = 8;

/// The line itself and its neighbours, or why nothing is shown.
pub fn source(found: &SourceText, style: Style) -> String {
    let lines = match found {
        SourceText::Lines { lines } => lines,
        SourceText::Missing { file, why } => {
            let text = format!("(no source line: {}: {})", printable(file), printable(why));
            return style.indented(INDENT, &text);
        }
    };
    // One line stands at the margin; several keep what they are indented by, relative to each other.
    let texts: Vec<String> = lines.iter().map(|line| untabbed(&line.text)).collect();
    let margin = |text: &String| text.len() - text.trim_start_matches(' ').len();
    let common = texts.iter().filter(|text| !text.trim().is_empty()).map(margin).min().unwrap_or(0);
    let digits = lines.last().map_or(1, |line| line.line.to_string().len());
    let mut out = String::new();
    for (line, text) in lines.iter().zip(&texts) {
        let text = text.get(common..).unwrap_or("").trim_end();
        let mark = if line.is_subject && lines.len() > 1 { '>' } else { ' ' };
        let head = format!("{:INDENT$}{:digits$}{mark}│ ", "", line.line);
        let room = style.width.saturating_sub(head.chars().count());
        let row = format!("{head}{}", cut(&printable(text), room));
        out += row.trim_end();
        out.push('\n');
    }
    out
}

/// Text with its tabs as spaces; a control character would be shown as an escape.
pub(super) fn untabbed(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        let width = if c == '\t' { TAB - column % TAB } else { 1 };
        if c == '\t' {
            out.extend(std::iter::repeat_n(' ', width))
        } else {
            out.push(c)
        }
        column += width;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceLine;

    const STYLE: Style = Style { colours: false, width: 40, top: 0 };

    fn lines(first: u32, subject: u32, texts: &[&str]) -> String {
        let line = |(line, text): (u32, &&str)| SourceLine {
            line,
            text: text.to_string(),
            is_subject: line == subject,
        };
        source(&SourceText::Lines { lines: (first..).zip(texts).map(line).collect() }, STYLE)
    }

    #[test]
    fn one_line_stands_at_the_margin() {
        assert_eq!(lines(7, 7, &["\t\tsum += a->next;"]), "    7 │ sum += a->next;\n");
    }

    #[test]
    fn neighbours_keep_their_depth_and_the_line_is_marked() {
        let text = lines(9, 10, &["  for (;;) {", "\tsum += a;", "", "  }"]);
        assert_eq!(text, "     9 │ for (;;) {\n    10>│       sum += a;\n    11 │\n    12 │ }\n");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_long_lines_are_cut() {
        let text = lines(1, 1, &["a = \x1b[31m\u{202e}b;"]);
        assert_eq!(text, "    1 │ a = \\u{1b}[31m\\u{202e}b;\n");
        let text = lines(1, 1, &[&"x".repeat(100)]);
        assert_eq!(text.trim_end().chars().count(), 40);
    }

    #[test]
    fn a_missing_file_is_told() {
        let missing = SourceText::Missing { file: "/a/\x1b.c".into(), why: "it is not there".into() };
        assert_eq!(source(&missing, STYLE), "    (no source line: /a/\\u{1b}.c: it is\n    not there)\n");
    }
}
