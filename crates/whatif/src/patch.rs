//! An edited structure as C source: the definition in a text, written anew.
//!
//! ```text
//!   struct arc {                        struct arc_cold {
//!     long cost;  // per mile             char name[40];
//!     char name[40];          ──►       };
//!     int state;                        struct arc {
//!   };                                    int state;
//!                                         long cost;  // per mile
//!                                         struct arc_cold *cold;
//!                                       };
//!                                       _Static_assert(offsetof(struct arc, state) == 0, "arc.state");
//! ```
//! Declarations move as they stand, with their comments and attributes. What is not understood is not touched.

use memlode_layout::{Layout, Part};

/// Why a definition is not written anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritten {
    /// The text has no such definition.
    #[error("no definition of `struct {0}` is there")]
    NotThere(String),
    /// A part of the definition is not understood.
    #[error("the definition of `struct {name}` is not rewritten: {why}")]
    NotUnderstood {
        /// The structure.
        name: String,
        /// Why.
        why: &'static str,
    },
}

/// A declaration in a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declaration {
    /// Comments and blank lines in front of it.
    before: String,
    text: String,
    /// The rest of its line.
    behind: String,
    names: Vec<String>,
}

/// A text with the definition of a structure as a layout has it, and assertions of its offsets behind it.
///
/// # Errors
/// That it is not there, or not understood.
pub fn rewritten(text: &str, layout: &Layout) -> Result<String, Unwritten> {
    let name = &layout.structure().name;
    let not_understood = |why| Unwritten::NotUnderstood { name: name.clone(), why };
    let plain = without_comments(text);
    let (start, open) = definition(&plain, name).ok_or_else(|| Unwritten::NotThere(name.clone()))?;
    let close = matching(&plain, open).ok_or(not_understood("its braces do not match"))?;
    let end = plain[close..].find(';').map(|at| close + at + 1).ok_or(not_understood("it has no end"))?;
    let body = open + 1..close;
    if plain[body.clone()].lines().any(|line| line.trim_start().starts_with('#')) {
        return Err(not_understood("some of its members are conditional"));
    }
    let declarations = declarations(&text[body.clone()], &plain[body.clone()]).map_err(not_understood)?;
    let has_all = |part: &Part| {
        let mut names = part.slots.iter().filter(|slot| slot.was.is_some()).flat_map(|slot| &slot.names);
        names.all(|name| declarations.iter().any(|declaration| declaration.names.contains(name)))
    };
    let parts = layout.parts();
    if parts.iter().any(|part| part.block != 1) || !parts.iter().all(has_all) {
        return Err(not_understood("its members are not those of the trace, or become blocks of arrays"));
    }
    let head = &text[start..=open];
    let tail = &text[close..end];
    let (mut out, mut asserted) = (text[..start].to_string(), String::new());
    // Cold parts are named in front of the hot one, which may point there.
    for part in parts.iter().skip(1) {
        let cold = match parts.len() {
            2 => format!("{name}_cold"),
            _ => format!("{name}_{}", part.slots[0].names.join("_")),
        };
        out += &format!("struct {cold} {{{}}};\n\n", members(&declarations, part, None));
        asserted += &assertions(&cold, part);
    }
    let link = layout.link_piece(0).map(|link| match link.bytes {
        8 => format!("struct {name}_cold *cold;"),
        _ => "unsigned cold;".to_string(),
    });
    out += head;
    out += &members(&declarations, &parts[0], link.as_deref());
    out += tail;
    out += "\n";
    asserted += &assertions(name, &parts[0]);
    out += asserted.trim_end();
    out += &text[end..];
    Ok(with_offsetof(&out))
}

/// Returns the changes from one text of a file to another, as `patch` reads them.
pub fn unified_diff(file: &str, before: &str, after: &str) -> String {
    let file = file.trim_start_matches('/');
    let (from, to) = (format!("a/{file}"), format!("b/{file}"));
    similar::TextDiff::from_lines(before, after).unified_diff().header(&from, &to).to_string()
}

/// The members of a part as they are declared.
fn members(declarations: &[Declaration], part: &Part, link: Option<&str>) -> String {
    let mut out = String::new();
    let mut written: Vec<&str> = Vec::new();
    for slot in &part.slots {
        if slot.was.is_none() {
            out += &format!("\n  {}", link.unwrap_or_default());
            continue;
        }
        for name in &slot.names {
            let Some(found) = declarations.iter().find(|found| found.names.contains(name)) else { continue };
            if written.contains(&name.as_str()) {
                continue;
            }
            // Comments stay with the first of what was declared together.
            let is_first = found.names.first() == Some(name);
            out += if is_first && !found.before.trim().is_empty() { &found.before } else { "\n  " };
            out += &declared(found, name);
            out += if is_first { &found.behind } else { "" };
            written.push(name);
        }
    }
    out + "\n"
}

/// The declaration of one name out of several.
fn declared(found: &Declaration, name: &str) -> String {
    if found.names.len() == 1 {
        return found.text.clone();
    }
    let base = base_type(&found.text);
    let declarators = found.text[base.len()..].trim_end_matches(';').split(',');
    let own =
        declarators.map(str::trim).find(|declarator| declared_name(declarator).as_deref() == Some(name));
    format!("{base}{};", own.unwrap_or(name))
}

/// Returns the text in front of the first declarator: `struct node ` of `struct node *a, *b;`.
fn base_type(text: &str) -> &str {
    let first = text.split(',').next().unwrap_or(text);
    match first.find('*') {
        Some(at) => &text[..at],
        None => {
            let name = declared_name(first).unwrap_or_default();
            &text[..first.rfind(name.as_str()).unwrap_or(0)]
        }
    }
}

/// Assertions that members lie where they are said to.
fn assertions(name: &str, part: &Part) -> String {
    let members = part.slots.iter().filter(|slot| slot.was.is_some() && slot.names.len() == 1);
    let assertion = |member: &str, offset: u64| {
        format!("_Static_assert(offsetof(struct {name}, {member}) == {offset}, \"{name}.{member}\");\n")
    };
    members.map(|slot| assertion(&slot.names[0], slot.offset)).collect()
}

/// The text, with the header that `offsetof` is in.
fn with_offsetof(text: &str) -> String {
    if text.contains("<stddef.h>") {
        return text.to_string();
    }
    let line = "#include <stddef.h>\n";
    match text.find("#include") {
        Some(at) => format!("{}{line}{}", &text[..at], &text[at..]),
        None => format!("{line}\n{text}"),
    }
}

/// The text with blanks in the place of comments, strings and characters.
fn without_comments(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let length = match rest {
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                end.map_or(rest.len(), |end| end + 4)
            }
            [quote @ (b'"' | b'\''), ..] => {
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
    String::from_utf8(out).unwrap_or_default()
}

/// Returns the place where `struct NAME … {` begins, and that of its brace.
fn definition(plain: &str, name: &str) -> Option<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    plain.match_indices("struct").find_map(|(at, _)| {
        let rest = plain[at + 6..].trim_start();
        let named = rest.strip_prefix(name).filter(|rest| !rest.starts_with(is_word))?;
        let is_whole = !plain[..at].ends_with(is_word) && plain[at + 6..].starts_with(char::is_whitespace);
        let open = named.find(['{', ';', ')', '*', '=']).filter(|&open| named[open..].starts_with('{'))?;
        is_whole.then(|| (at, plain.len() - named.len() + open))
    })
}

/// The brace that closes another one.
fn matching(plain: &str, open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    plain[open..].char_indices().find_map(|(at, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        (depth == 0).then_some(open + at)
    })
}

/// The declarations of a body; `plain` is it without comments.
fn declarations(body: &str, plain: &str) -> Result<Vec<Declaration>, &'static str> {
    let mut found = Vec::new();
    let (mut begin, mut depth) = (0, 0_i32);
    let mut characters = plain.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ';' if depth == 0 => {
                // Comments behind it on its line are its own.
                let line = plain[at + 1..].find('\n').map_or(plain.len(), |end| at + 1 + end);
                let is_last = plain[at + 1..line].trim().is_empty();
                let end = if is_last { line } else { at + 1 };
                let text_at = begin + plain[begin..].find(|c: char| !c.is_whitespace()).unwrap_or(0);
                let text = &body[text_at..=at];
                let mut names = Vec::new();
                for declarator in split(&plain[text_at..at]) {
                    names.push(declared_name(declarator).ok_or("a member of it has no name")?);
                }
                found.push(Declaration {
                    before: body[begin..text_at].to_string(),
                    text: text.to_string(),
                    behind: body[at + 1..end].to_string(),
                    names,
                });
                begin = end;
                while characters.as_str().len() > plain.len() - end {
                    characters.next();
                }
            }
            _ => {}
        }
    }
    match plain[begin..].trim() {
        "" => Ok(found),
        _ => Err("its last member is not understood"),
    }
}

/// The declarators of a declaration, the first with the type in front of it.
fn split(declaration: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_comma = |c: char| {
        depth += match c {
            '(' | '[' | '{' => 1,
            ')' | ']' | '}' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    };
    declaration.split(is_comma).collect()
}

/// The name that a declarator declares: `next` of `struct arc *next`, `f` of `int (*f)(void)`, `bits` of `int bits : 3`.
fn declared_name(declarator: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let text = match declarator.find("(*") {
        Some(at) => declarator[at + 2..].split(')').next()?,
        None => declarator.split("__attribute__").next()?.split(['[', ':']).next()?,
    };
    let text = text.split('[').next()?.trim_end();
    let name = &text[text.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1)..];
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use memlode_layout::{AddressUse, Role, Structure, StructureMember, edits_from_text};

    use super::*;

    const SOURCE: &str = "\
// A road. struct arc { is no definition here.
#include <stdio.h>

struct node;

struct arc {
  /* where it is */
  struct node *tail, *head;
  char name[40]; // never read
  long cost __attribute__((aligned(8)));
  int (*price)(struct arc *, int);
  int state;
};

int main(void) { return 0; }
";

    fn arc(edits: &str) -> Layout {
        let member = |(name, offset, bytes, align)| StructureMember {
            name: String::from(name),
            offset,
            bytes,
            align,
            role: Role::Value,
            address: AddressUse::Kept,
        };
        let members = [
            ("tail", 0, 8, 8),
            ("head", 8, 8, 8),
            ("name", 16, 40, 1),
            ("cost", 56, 8, 8),
            ("price", 64, 8, 8),
            ("state", 72, 4, 4),
        ];
        let members = members.into_iter().map(member).collect();
        let mut layout =
            Layout::compiled(Structure { name: "arc".into(), bytes: 80, align: 8, members }).unwrap();
        edits_from_text(edits).unwrap().iter().for_each(|edit| layout.apply(edit).unwrap());
        layout
    }

    #[test]
    fn a_definition_is_written_anew_with_its_comments() {
        let text = rewritten(SOURCE, &arc("reorder arc: state, head")).unwrap();
        let expected = "\
struct arc {
  int state;
  struct node *head;
  /* where it is */
  struct node *tail;
  char name[40]; // never read
  long cost __attribute__((aligned(8)));
  int (*price)(struct arc *, int);
};
_Static_assert(offsetof(struct arc, state) == 0, \"arc.state\");
";
        assert!(text.contains(expected), "{text}");
        assert!(text.starts_with("// A road. struct arc { is no definition here.\n#include <stddef.h>\n"));
        assert!(text.ends_with("\n\nint main(void) { return 0; }\n"));
    }

    #[test]
    fn a_split_makes_two() {
        let text = rewritten(SOURCE, &arc("split arc: hot=cost,state by=pointer")).unwrap();
        assert!(
            text.contains(
                "struct arc_cold {\n  /* where it is */\n  struct node *tail;\n  struct node *head;"
            ),
            "{text}"
        );
        assert!(text.contains("  int state;\n  struct arc_cold *cold;\n};\n"), "{text}");
    }

    #[test]
    fn what_is_not_understood_is_not_touched() {
        let not = |source: &str| rewritten(source, &arc("reorder arc: state")).unwrap_err();
        assert_eq!(not("int main;"), Unwritten::NotThere("arc".into()));
        assert!(not("struct arc {\n#if X\n int state;\n#endif\n};").to_string().contains("conditional"));
        assert!(not("struct arc { int state; struct { int a; }; };").to_string().contains("no name"));
        assert!(not("struct arc { int state;").to_string().contains("braces"));
    }
}
