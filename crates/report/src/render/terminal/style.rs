//! Colours, widths and paragraphs.

use anstyle::{AnsiColor, Style as Colours};

/// Columns that the headings of paragraphs take.
const MARGIN: usize = 9;

/// A space at which no line is broken.
const NO_BREAK: char = '\u{a0}';

/// Text that stays on one line of a paragraph, if it fits.
pub fn together(text: &str) -> String {
    text.replace(' ', &NO_BREAK.to_string())
}

/// Text of which any space may end a line.
pub fn apart(text: &str) -> String {
    text.replace(NO_BREAK, " ")
}

/// The look of text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// True if to use escape sequences for colours.
    pub colours: bool,
    /// Columns to fill at most.
    pub width: usize,
    /// Rows of each table.
    pub top: usize,
}

impl Style {
    fn paint(self, colours: Colours, text: &str) -> String {
        if self.colours { format!("{colours}{text}{colours:#}") } else { text.to_string() }
    }

    /// A heading, or the subject of a line.
    pub fn heading(self, text: &str) -> String {
        self.paint(Colours::new().bold(), text)
    }

    /// The data that a finding is about.
    pub fn culprit(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// A change to make.
    pub fn advice(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// The heading of a warning.
    pub fn warning(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// A paragraph with a heading in the margin.
    pub fn paragraph(self, heading: &str, text: &str) -> String {
        self.paragraph_with(&self.heading(heading), heading.len(), text)
    }

    /// A paragraph that a reader must not overlook.
    pub fn warning_paragraph(self, heading: &str, text: &str) -> String {
        self.paragraph_with(&self.warning(heading), heading.len(), text)
    }

    /// A paragraph whose lines are indented by a number of columns.
    pub fn indented(self, columns: usize, text: &str) -> String {
        let margin = " ".repeat(columns);
        let options = textwrap::Options::new(self.width.max(columns + 24))
            .break_words(false)
            .initial_indent(&margin)
            .subsequent_indent(&margin);
        textwrap::wrap(text, options).join("\n").replace(NO_BREAK, " ") + "\n"
    }

    fn paragraph_with(self, painted: &str, taken: usize, text: &str) -> String {
        let room = self.width.saturating_sub(MARGIN).max(24);
        let gap = " ".repeat(MARGIN.saturating_sub(taken).max(1));
        let margin = " ".repeat(MARGIN);
        let lines = textwrap::wrap(text, textwrap::Options::new(room).break_words(false));
        let mut out = String::new();
        for (number, line) in lines.iter().enumerate() {
            out += &if number == 0 { format!("{painted}{gap}{line}\n") } else { format!("{margin}{line}\n") };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_keep_words_whole_and_a_margin() {
        let style = Style { colours: false, width: 33, top: 0 };
        let text = style.paragraph("rules", "one two three, and an_indivisible_word_that_is_long");
        assert_eq!(text, "rules    one two three, and\n         an_indivisible_word_that_is_long\n");
    }

    #[test]
    fn colours_are_used_only_where_they_belong() {
        let style = |colours| Style { colours, width: 80, top: 0 };
        assert_eq!(style(false).culprit("a"), "a");
        assert_eq!(style(true).heading("a"), "\u{1b}[1ma\u{1b}[0m");
    }
}
