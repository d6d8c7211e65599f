//! A structure's definition in a unit: its members as they are declared.

use std::ops::Range;

use clang_sys::*;

use crate::clang::{Spot, Tree};
use crate::text::at_top;

/// A definition.
pub struct Record {
    /// Its cursor.
    pub node: usize,
    /// The place of its name.
    pub spot: Spot,
    /// Its members, in their order.
    pub fields: Vec<usize>,
}

/// Members that are declared together, and the bytes of that.
pub struct Declaration {
    /// Cursors of its members.
    pub fields: Vec<usize>,
    /// From its own comments in front to those behind it on its line.
    pub whole: Range<usize>,
    /// From its first specifier to its semicolon.
    pub bare: Range<usize>,
    /// The declarators, without the comma or semicolon behind each.
    pub declarators: Vec<Range<usize>>,
}

/// Definitions of a name in a unit, as a tag, a class or a name for a structure that has none.
pub fn records(tree: &Tree, name: &str) -> Vec<Record> {
    let bare = name.rsplit("::").next().unwrap_or(name);
    let aliases = tree.nodes.iter().filter(|node| {
        matches!(node.kind, CXCursor_TypedefDecl | CXCursor_TypeAliasDecl)
            && node.name == bare
            && node.ty.pointers == 0
    });
    let aliases: Vec<Spot> = aliases.filter_map(|node| node.ty.record).collect();
    let mut found: Vec<Record> = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let is_record = matches!(node.kind, CXCursor_StructDecl | CXCursor_ClassDecl | CXCursor_UnionDecl);
        let Some(spot) = node.spot.filter(|_| is_record) else { continue };
        let is_nameless = node.name.is_empty() || node.name.contains('(') || node.name == bare;
        let is_named = node.name == bare || (is_nameless && aliases.contains(&spot));
        let fields: Vec<usize> =
            tree.children(at).filter(|child| tree.nodes[*child].kind == CXCursor_FieldDecl).collect();
        if is_named && !fields.is_empty() && found.iter().all(|other| other.spot != spot) {
            found.push(Record { node: at, spot, fields });
        }
    }
    found
}

/// The declarations of a definition, or why its text is not understood.
pub fn declarations(
    tree: &Tree,
    record: &Record,
    text: &str,
    plain: &[u8],
) -> Result<Vec<Declaration>, &'static str> {
    let body = body(tree, record, plain).ok_or("its braces are not in the text: they come from a macro")?;
    let inside = plain.get(body.clone()).unwrap_or_default();
    let is_directive =
        |line: &[u8]| line.trim_ascii_start().starts_with(b"#") || line.trim_ascii_start().starts_with(b"%:");
    if inside.split(|byte| *byte == b'\n').any(is_directive) {
        return Err("there are preprocessor directives between its members");
    }
    let mut all: Vec<Declaration> = Vec::new();
    for &field in &record.fields {
        let node = &tree.nodes[field];
        let at = node.spot.map_or(0, |spot| spot.at);
        if node.from_macro || node.name.is_empty() || text.get(at..at + node.name.len()) != Some(&node.name) {
            return Err("a member comes from a macro, or has no name");
        }
        let start = tree.nodes[field].extent.start;
        let together = all.last_mut().filter(|last| tree.nodes[last.fields[0]].extent.start == start);
        match together {
            Some(last) => last.fields.push(field),
            None => {
                all.push(Declaration { fields: vec![field], whole: 0..0, bare: 0..0, declarators: vec![] })
            }
        }
    }
    let mut behind = body.start;
    for declaration in &mut all {
        let first = &tree.nodes[declaration.fields[0]];
        let last = &tree.nodes[declaration.fields[declaration.fields.len() - 1]];
        let end =
            at_top(plain, last.extent.end, b";").ok_or("a member's declaration has no end in the text")?;
        // Attributes may stand in front of what clang takes for the beginning.
        let from = plain[behind..first.extent.start].iter().rposition(|byte| b";{}".contains(byte));
        let from = from.map_or(behind, |at| behind + at + 1);
        let blank = plain[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        declaration.bare = from + blank..end + 1;
        if declaration.bare.start < behind || end + 1 > body.end || !body.contains(&declaration.bare.start) {
            return Err("its members overlap in the text");
        }
        declaration.whole = with_comments(text, plain, behind, &declaration.bare);
        declaration.declarators = declarators(tree, declaration, plain);
        behind = declaration.whole.end;
    }
    let macros = tree.nodes.iter().filter(|node| {
        let file = node.spot.map(|spot| spot.file);
        node.kind == CXCursor_MacroExpansion
            && file == Some(record.spot.file)
            && body.contains(&node.extent.start)
    });
    for node in macros {
        let is_inside =
            |one: &Declaration| one.bare.start <= node.extent.start && node.extent.end < one.bare.end;
        let is_between =
            node.extent.start >= all[0].bare.start && node.extent.end <= all[all.len() - 1].bare.end;
        if is_between && !all.iter().any(is_inside) {
            return Err("a macro stands between its members");
        }
    }
    Ok(all)
}

/// The bytes between the braces.
fn body(tree: &Tree, record: &Record, plain: &[u8]) -> Option<Range<usize>> {
    let extent = tree.nodes[record.node].extent.clone();
    let first = tree.nodes[record.fields[0]].extent.start;
    let close = extent.end.checked_sub(1).filter(|close| plain.get(*close) == Some(&b'}'))?;
    let open = plain.get(extent.start..first)?.iter().rposition(|byte| *byte == b'{')?;
    // Methods and types may stand in front of the first member; the brace of the definition is the outermost one.
    let outermost = at_top(plain, extent.start, b"{").unwrap_or(extent.start + open);
    (outermost < close).then_some(outermost + 1..close)
}

/// A declaration with the comments on the lines above it and on its own.
fn with_comments(text: &str, plain: &[u8], behind: usize, bare: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut start = bare.start;
    let line_of = |at: usize| bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut line = line_of(start);
    // The first line that is whole, and not of the declaration before.
    let floor =
        bytes[behind..].iter().position(|byte| *byte == b'\n').map_or(usize::MAX, |end| behind + end + 1);
    if line >= floor && plain[line..start].trim_ascii().is_empty() {
        let indent = bytes[line..start].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        start = line + indent;
        while line > floor {
            let above = line_of(line - 1);
            let is_comment =
                plain[above..line].trim_ascii().is_empty() && !bytes[above..line].trim_ascii().is_empty();
            if above < floor || !is_comment {
                break;
            }
            let indent = bytes[above..line].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            (line, start) = (above, above + indent);
        }
        // A comment that began further up stays whole where it is.
        let taken = &text[start..bare.start];
        if taken.find("*/").is_some_and(|end| taken.find("/*").is_none_or(|begin| begin > end)) {
            start = bare.start;
        }
    }
    let rest =
        bytes[bare.end..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| bare.end + end);
    let tail = text[bare.end..rest].trim_end();
    let is_whole =
        tail.matches("/*").count() == tail.matches("*/").count() || tail.trim_start().starts_with("//");
    let is_comment = plain[bare.end..rest].trim_ascii().is_empty() && is_whole && !tail.ends_with('\\');
    let end = if is_comment { bare.end + tail.len() } else { bare.end };
    start..end
}

/// Divides a declaration at its commas; empty if it cannot be.
fn declarators(tree: &Tree, declaration: &Declaration, plain: &[u8]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let name = tree.nodes[declaration.fields[0]].spot.map_or(0, |spot| spot.at);
    let Some(mut start) = first_declarator(plain, declaration.bare.start, name) else { return all };
    for field in &declaration.fields {
        let Some(end) = at_top(plain, tree.nodes[*field].extent.end, b",;") else { return Vec::new() };
        all.push(start..end);
        start = end + 1;
    }
    all
}

/// The first byte behind the specifiers of a declaration.
fn first_declarator(plain: &[u8], from: usize, name: usize) -> Option<usize> {
    let mut at = from;
    while at < name {
        match plain[at] {
            b'<' | b'{' => return None,
            b'*' | b'&' => return Some(at),
            b'[' => at = at_top(plain, at + 1, b"]")?,
            b'(' => {
                let before = plain[from..at].trim_ascii_end();
                let word = before.iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
                let word = &before[word.map_or(0, |at| at + 1)..];
                let takes: [&[u8]; 11] = [
                    b"__attribute__",
                    b"__attribute",
                    b"_Alignas",
                    b"alignas",
                    b"typeof",
                    b"__typeof__",
                    b"__typeof",
                    b"_Atomic",
                    b"_BitInt",
                    b"decltype",
                    b"typeof_unqual",
                ];
                if !takes.contains(&word) {
                    return Some(at);
                }
                at = at_top(plain, at + 1, b")")?;
            }
            _ => {}
        }
        at += 1;
    }
    Some(name)
}
