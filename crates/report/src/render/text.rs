//! Words and numbers for people: escaped, shortened, rounded, cut to fit.

use std::borrow::Cow;

use memlode_trace::text::is_unsafe;

/// A name that came out of a file, safe for a terminal: control characters, and those that change the
/// direction of text, become visible escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Longest template argument list that [`brief`] leaves alone, in characters.
const ARGUMENTS: usize = 23;

/// A C++ name for a column: long template argument lists keep their first argument, unnamed namespaces go.
///
/// `std::map<int, long, std::less<int>, …>::at` becomes `std::map<int, …>::at`.
pub fn brief(name: &str) -> String {
    const STRING: &str = "basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let name = name.replace("(anonymous namespace)::", "").replace("std::__cxx11::", "std::");
    let name = name.replace(STRING, "string").replace(&STRING.replace("> >", ">>"), "string");
    brief_arguments(&name, 0)
}

fn brief_arguments(name: &str, depth: u32) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, from_open) = rest.split_at(open);
        // `operator<`, `operator<<`, `operator<=>` open nothing.
        if before.ends_with("operator") || before.ends_with("operator<") {
            out.push_str(&rest[..open + 1]);
            rest = &rest[open + 1..];
            continue;
        }
        let Some((arguments, after)) = split_arguments(from_open) else { break };
        out.push_str(before);
        let arguments = arguments.trim();
        if arguments.chars().count() <= ARGUMENTS || depth >= 8 {
            out.push_str(&format!("<{arguments}>"));
        } else {
            let (first, more) = first_argument(arguments);
            let first = brief_arguments(first, depth + 1);
            let first = if first.chars().count() <= ARGUMENTS { first.as_str() } else { "…" };
            out.push_str(&if more && first != "…" {
                format!("<{first}, …>")
            } else {
                format!("<{first}>")
            });
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A member without what the library of its type calls its parts, whose names are reserved for it (C++23,
/// \[lex.name\]/3): `left._M_t._M_head_impl|right._M_t._M_head_impl` becomes `left|right`. Members of the library's
/// own types stay as they are.
pub fn brief_member(path: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    for path in path.split('|') {
        let parts: Vec<&str> = path.split('.').collect();
        let own = parts.iter().rposition(|part| !is_reserved(part)).map_or(parts.len(), |last| last + 1);
        let own = parts[..own].join(".");
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all.join("|")
}

/// Returns whether programs may not have this name: `_M_t`, `__value`.
fn is_reserved(name: &str) -> bool {
    let second = name.strip_prefix('_').and_then(|rest| rest.chars().next());
    second.is_some_and(|second| second == '_' || second.is_ascii_uppercase())
}

/// The members of a list as [`brief_member`] has them, each once.
pub fn brief_members(paths: &[impl AsRef<str>]) -> String {
    let mut all: Vec<String> = paths.iter().map(|path| brief_member(path.as_ref())).collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|member| seen.insert(member.clone()));
    all.join(", ")
}

/// Returns the text between the first `<` and its `>`, and the rest; `None` when they do not match.
fn split_arguments(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if previous != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[1..at], &text[at + 1..]));
        }
        previous = c;
    }
    None
}

fn first_argument(arguments: &str) -> (&str, bool) {
    let mut depth = 0;
    let mut previous = ' ';
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' if previous == '-' => {}
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => return (&arguments[..at], true),
            _ => {}
        }
        previous = c;
    }
    (arguments, false)
}

/// Three significant digits and a unit: `999`, `1.23 k`, `45.6 M`.
pub fn count(value: u64) -> String {
    scaled(value as f64, &["", "k", "M", "G", "T", "P", "E"], 1000.0)
}

/// Binary units: `64 B`, `1.25 MiB`.
pub fn bytes(value: u64) -> String {
    scaled(value as f64, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], 1024.0)
}

/// An estimated share, 0 to 1, in percent: `0%`, `<0.01%`, `0.93%`, `7.3%`, `42%`.
pub fn percent_of(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0%".into(),
        s if s < 0.01 => "<0.01%".into(),
        s if s < 0.995 => format!("{s:.2}%"),
        s if s < 9.95 => format!("{s:.1}%"),
        s => format!("{s:.0}%"),
    }
}

/// A share in percent: `0%`, `<0.1%`, `7.3%`, `42%`, `100%`. Only a whole is shown as `100%`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let share = 100.0 * part as f64 / whole as f64;
    match share {
        _ if part == 0 => "0%".into(),
        _ if part == whole => "100%".into(),
        s if s < 0.1 => "<0.1%".into(),
        s if s < 9.95 => format!("{s:.1}%"),
        s if s > 99.0 => format!("{:.1}%", s.min(99.9)),
        s => format!("{s:.0}%"),
    }
}

fn scaled(value: f64, units: &[&str], step: f64) -> String {
    let (mut value, mut unit) = (value, 0);
    // 999.5 would be shown as 1000: it is 1.00 of the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 || value >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let mut text = format!("{value:.digits$}");
    if text.contains('.') && step == 1024.0 {
        // Cache sizes are round: 32 KiB, not 32.0 KiB.
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if units[unit].is_empty() { text } else { format!("{text} {}", units[unit]) }
}

/// At most `width` columns; a cut in the middle is shown as `…`. Counts characters.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= width {
        return Cow::Borrowed(text);
    }
    let keep = width.saturating_sub(1);
    let (head, tail) = (keep - keep / 2, keep / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// At most `width` columns, keeping the beginning.
pub fn cut_end(text: &str, width: usize) -> Cow<'_, str> {
    if text.chars().count() <= width {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().take(width.saturating_sub(1)).chain(['…']).collect())
}

/// Milliseconds in the unit that reads best: `1.20 s`, `35 ms`, `4.0 µs`.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{:.2} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms if ms >= 0.1 => format!("{ms:.2} ms"),
        ms => format!("{:.1} µs", ms * 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("plain ünï"), "plain ünï");
        assert_eq!(printable("\x1b[31mred\n\u{202e}"), "\\u{1b}[31mred\\n\\u{202e}");
    }

    #[test]
    fn a_members_name_ends_where_the_librarys_begin() {
        for (path, short) in [
            ("left._M_t._M_t._M_head_impl|right._M_t._M_t._M_head_impl", "left|right"),
            ("books[]._M_impl._M_start|books[]._M_impl._M_finish", "books[]"),
            ("pos.x|pos.y", "pos.x|pos.y"),
            ("_M_impl._M_start", "_M_impl._M_start"),
            ("_M_storage.second.name._M_dataplus._M_p", "_M_storage.second.name"),
            ("text_._Myptr", "text_"),
            ("a._b.__c", "a._b"),
        ] {
            assert_eq!(brief_member(path), short);
        }
        let members = ["key", "left._M_t|right._M_t", "left._M_t|right._M_t._M_head_impl"];
        assert_eq!(brief_members(&members), "key, left|right");
    }

    #[test]
    fn brief_names_keep_what_tells_them_apart() {
        for (name, short) in [
            ("main", "main"),
            ("(anonymous namespace)::Account", "Account"),
            ("std::vector<int, std::allocator<int> >::push_back", "std::vector<int, …>::push_back"),
            ("std::pair<const int, long>", "std::pair<const int, long>"),
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::size",
                "std::string::size",
            ),
            (
                "bool operator< <char, std::char_traits<char>, std::allocator<char> >",
                "bool operator< <char, …>",
            ),
            ("a::operator<<", "a::operator<<"),
            ("f<(x->y), std::allocator<a_long_name_indeed> >", "f<(x->y), …>"),
            (
                "Outer<Inner<alpha_alpha, beta_beta, gamma_gamma>, 3>::run",
                "Outer<Inner<alpha_alpha, …>, …>::run",
            ),
            ("unbalanced<a, b", "unbalanced<a, b"),
        ] {
            assert_eq!(brief(name), short);
        }
        let deep = format!("{}{}", "x<".repeat(2000), ">".repeat(2000));
        assert!(brief(&deep).chars().count() < deep.len());
    }

    #[test]
    fn numbers() {
        for (value, text) in
            [(0, "0"), (999, "999"), (1000, "1.00 k"), (45_600_000, "45.6 M"), (999_999, "1.00 M")]
        {
            assert_eq!(count(value), text);
        }
        for (value, text) in [(64, "64 B"), (32 << 10, "32 KiB"), (5 << 18, "1.25 MiB"), (1000, "1000 B")] {
            assert_eq!(bytes(value), text);
        }
        for (part, whole, text) in [
            (0, 9, "0%"),
            (1, 3000, "<0.1%"),
            (1, 3, "33%"),
            (73, 1000, "7.3%"),
            (999, 1000, "99.9%"),
            (5, 5, "100%"),
            (1, 0, "–"),
        ] {
            assert_eq!(percent(part, whole), text);
        }
    }

    #[test]
    fn cutting_keeps_both_ends_or_the_first() {
        assert_eq!(cut("abcdefgh", 5), "ab…gh");
        assert_eq!(cut("abc", 5), "abc");
        assert_eq!(cut_end("file.c:12 function", 10), "file.c:12…");
    }
}
