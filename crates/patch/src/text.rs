//! The text of a source: its comments, the ends of declarations, and changes in the form that
//! `patch` reads.

use std::path::Path;

use crate::Unpatched;

/// The text with blanks in the place of comments, strings and characters; as many bytes as before.
pub fn without_comments(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'/', b'/', ..] => line_comment(rest),
            [b'/', b'*', ..] => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                end.map_or(rest.len(), |end| end + 4)
            }
            // A quote inside a number divides its digits.
            [quote @ (b'"' | b'\''), ..] if *quote == b'"' || !ends_in_digit(&out) => {
                let mut end = 1;
                while end < rest.len() && rest[end] != *quote && rest[end] != b'\n' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1).min(rest.len())
            }
            _ => {
                out.push(rest[0]);
                at += 1;
                continue;
            }
        };
        out.extend(rest[..length].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
        at += length;
    }
    out
}

fn ends_in_digit(out: &[u8]) -> bool {
    out.last().is_some_and(u8::is_ascii_hexdigit)
}

/// Length of a comment up to the end of its line; a backslash there joins the next line.
fn line_comment(rest: &[u8]) -> usize {
    let mut from = 0;
    while let Some(end) = rest[from..].iter().position(|byte| *byte == b'\n') {
        let end = from + end;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        if !line.ends_with(b"\\") {
            return end;
        }
        from = end + 1;
    }
    rest.len()
}

/// The first of some bytes at depth 0 of brackets, from a place on.
pub fn at_top(plain: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in plain.iter().enumerate().skip(from) {
        if depth == 0 && wanted.contains(byte) {
            return Some(at);
        }
        depth += match byte {
            b'(' | b'[' | b'{' => 1,
            b')' | b']' | b'}' => -1,
            _ => 0,
        };
        if depth < 0 {
            return None;
        }
    }
    None
}

/// Returns the changes of a file as `patch -p1` applies them in a folder.
///
/// # Errors
/// A file that is not below the folder, or has a name that no patch can hold.
pub fn unified_diff(file: &Path, folder: &Path, before: &str, after: &str) -> Result<String, Unpatched> {
    let sentence =
        |why: &str| Unpatched::Sentence(format!("{} {why}", file.display().to_string().escape_debug()));
    let below = file.strip_prefix(folder).map_err(|_| {
        let folder = folder.display();
        sentence(&format!("is not below {folder}, where a patch would be applied: go to a folder above it"))
    })?;
    let name = below.to_str().ok_or_else(|| sentence("has a name that is no text"))?;
    if name.chars().any(char::is_control) {
        return Err(sentence("has control characters in its name, which no patch can hold"));
    }
    // A tab ends a name with blanks in it.
    let end = if name.contains(' ') { "\t" } else { "" };
    let (from, to) = (format!("a/{name}{end}"), format!("b/{name}{end}"));
    Ok(similar::TextDiff::from_lines(before, after).unified_diff().header(&from, &to).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_joined_lines_are_blank() {
        let text = "a; // b; \\\nc;\nd = \"e;\"; /* f;\n*/ g; 1'000; 'h';";
        let plain = String::from_utf8(without_comments(text)).expect("text");
        assert_eq!(plain.len(), text.len());
        let kept: Vec<&str> = plain.split_whitespace().collect();
        assert_eq!(kept, ["a;", "d", "=", ";", "g;", "1'000;", ";"]);
    }

    #[test]
    fn names_never_become_hunks() {
        let diff = |name: &str| unified_diff(&Path::new("/w").join(name), Path::new("/w"), "a\n", "b\n");
        assert!(diff("x y.c").expect("a diff").starts_with("--- a/x y.c\t\n+++ b/x y.c\t\n@@"));
        assert!(diff("x\n--- a/victim.c").is_err());
        assert!(diff("/elsewhere/x.c").is_err());
    }
}
