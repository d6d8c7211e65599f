//! The filter of all output: names from traces, machines or files cannot command a terminal.
//!
//! Code that makes text keeps each name in its place; this is for cases that it overlooks. Arrow
//! streams are no text and go another way.

use std::io::{self, Write};

use memlode_trace::text::is_unsafe;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text: lines and tabs pass, and with colours our own escape sequences.
    Text {
        /// True if escape sequences that choose a colour or a weight pass.
        colours: bool,
    },
    /// JSON, in which characters can be escaped without a change of meaning.
    Json,
}

/// Writes text; characters that would command a terminal are escaped, and so become visible.
pub struct Door<W> {
    out: W,
    form: Form,
    /// The beginning of a character whose end is still to come.
    begun: Vec<u8>,
}

impl<W: Write> Door<W> {
    /// A door to `out`.
    pub fn new(out: W, form: Form) -> Door<W> {
        Door { out, form, begun: Vec::new() }
    }

    /// Returns the place of the first character that may not pass.
    fn first_unsafe(&self, text: &str) -> Option<usize> {
        let stays = |c| is_unsafe(c) && c != '\n' && (c != '\t' || self.form == Form::Json);
        let mut from = 0;
        while let Some(at) = first_special(&text.as_bytes()[from..]) {
            let c = text[from + at..].chars().next()?;
            if stays(c) {
                return Some(from + at);
            }
            from += at + c.len_utf8();
        }
        None
    }

    /// Writes a piece of text.
    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = self.first_unsafe(rest) {
            let (before, from) = rest.split_at(at);
            self.out.write_all(before.as_bytes())?;
            let passes = if self.form == (Form::Text { colours: true }) { colour(from) } else { 0 };
            let length = match (passes, from.chars().next()) {
                (0, Some(c)) => {
                    match self.form {
                        Form::Text { .. } => write!(self.out, "{}", c.escape_default())?,
                        // All of them have four digits.
                        Form::Json => write!(self.out, "\\u{:04x}", u32::from(c))?,
                    }
                    c.len_utf8()
                }
                (length, _) => {
                    self.out.write_all(&from.as_bytes()[..length])?;
                    length
                }
            };
            rest = &from[length..];
        }
        self.out.write_all(rest.as_bytes())
    }
}

/// Returns where the first byte is that is no printable ASCII and ends no line. Nearly all are, so blocks of them are passed.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    let all_plain = |block: &&[u8]| block.iter().fold(true, |all, &byte| all & is_plain(byte));
    let passed = BLOCK * bytes.chunks_exact(BLOCK).take_while(all_plain).count();
    bytes[passed..].iter().position(|&byte| !is_plain(byte)).map(|at| passed + at)
}

/// Bytes of an allowed sequence at the beginning of the text: one that makes text bold, dim,
/// italic, underlined or coloured.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let Some(end) = parameters.find(|c: char| !c.is_ascii_digit() && c != ';') else { return 0 };
    let ours = |number: &str| {
        number.is_empty()
            || number.parse().is_ok_and(|n: u32| matches!(n, 0..=4 | 22..=24 | 30..=37 | 39 | 90..=97))
    };
    let is_ours = parameters[end..].starts_with('m') && parameters[..end].split(';').all(ours);
    if is_ours { "\x1b[".len() + end + 1 } else { 0 }
}

impl<W: Write> Write for Door<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [&std::mem::take(&mut self.begun)[..], bytes].concat();
            rest = &joined;
        }
        loop {
            match str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.text(str::from_utf8(good).unwrap_or_default())?;
                    let Some(length) = error.error_len() else {
                        self.begun = bad.to_vec();
                        return Ok(bytes.len());
                    };
                    self.text("\u{fffd}")?;
                    rest = &bad[length..];
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(form: Form, pieces: &[&[u8]]) -> String {
        let mut door = Door::new(Vec::new(), form);
        pieces.iter().for_each(|piece| door.write_all(piece).unwrap());
        String::from_utf8(door.out).unwrap()
    }

    #[test]
    fn commands_are_shown_and_not_obeyed() {
        let plain = Form::Text { colours: false };
        let coloured = Form::Text { colours: true };
        let hostile = "\x1b]0;t\x07 \x1b[2J\x1b[8mhidden \u{9b}31m\u{202e}\r\x7f\n\t";
        let shown = "\\u{1b}]0;t\\u{7} \\u{1b}[2J\\u{1b}[8mhidden \\u{9b}31m\\u{202e}\\r\\u{7f}\n\t";
        for form in [plain, coloured] {
            assert_eq!(through(form, &[hostile.as_bytes()]), shown);
        }
        let ours = "\x1b[1;31mred\x1b[0m";
        assert_eq!(through(coloured, &[ours.as_bytes()]), ours);
        assert!(!through(plain, &[ours.as_bytes()]).contains('\x1b'));
        for odd in ["\x1b[1;8m", "\x1b[38;5;1m", "\x1b[", "\x1b[31", "\x1b[31K", "\x1b"] {
            assert!(!through(coloured, &[odd.as_bytes()]).contains('\x1b'), "{odd:?}");
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "a": "\u{9b}\u{202e}\x7fé\n\t\x1b" });
        let text = through(Form::Json, &[serde_json::to_string_pretty(&value).unwrap().as_bytes()]);
        assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn characters_in_pieces_are_whole_again() {
        let text = "a\u{9b}é漢\u{202e}b".as_bytes();
        let whole = through(Form::Json, &[text]);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(through(Form::Json, &bytes), whole);
        assert_eq!(through(Form::Json, &[b"a\xff\xc2", b"b"]), "a\u{fffd}\u{fffd}b");
    }
}
