//! The text of a source with a definition as a layout has it.

use memlode_layout::{Layout, Role};

use crate::clang::Tree;
use crate::record::{Declaration, Record, declarations};
use crate::text::without_comments;

/// The edited text, or why the definition is not understood.
pub fn rewritten(tree: &Tree, record: &Record, text: &str, layout: &Layout) -> Result<String, &'static str> {
    let plain = without_comments(text);
    let all = declarations(tree, record, text, &plain)?;
    let order = order(tree, record, layout)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = indent(text, &all[0]);
    let mut items = items((tree, record, layout), &all, &order, text)?.into_iter();
    let mut pieces: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    let part = &layout.parts()[0];
    for (at, declaration) in all.iter().enumerate() {
        let is_last = at + 1 == all.len();
        let count = if is_last { usize::MAX } else { 1 };
        let mut new = String::new();
        for item in items.by_ref().take(count) {
            new += &if new.is_empty() { item } else { format!("{newline}{indent}{item}") };
        }
        if is_last && let Some(bytes) = padding(layout) {
            new += &format!("{newline}{indent}char {PADDING}[{bytes}];");
        }
        // What follows on the line must not become a part of a comment.
        let follows = text[declaration.whole.end..].chars().next();
        if !matches!(follows, Some('\n' | '\r')) && ends_in_comment(&new) {
            new += newline;
        }
        pieces.push((declaration.whole.clone(), new));
    }
    if part.align > layout.structure().align {
        let start = tree.nodes[record.node].extent.start;
        let word = ["struct", "class", "union"].into_iter().find(|word| text[start..].starts_with(word));
        let at = start + word.ok_or("its definition does not begin with `struct` or `class`")?.len();
        pieces.insert(0, (at..at, format!(" __attribute__((aligned({})))", part.align)));
    }
    let mut out = text.to_string();
    for (range, new) in pieces.into_iter().rev() {
        out.replace_range(range, &new);
    }
    Ok(out)
}

/// The name of bytes that an edit adds.
pub const PADDING: &str = "memlode_padding";

/// Bytes behind the last member that only a member can make.
fn padding(layout: &Layout) -> Option<u64> {
    let part = &layout.parts()[0];
    let end = part.slots.iter().map(|slot| slot.offset + slot.bytes).max().unwrap_or(0);
    let by_itself = end.next_multiple_of(part.align);
    (part.stride > by_itself).then(|| part.stride - end)
}

/// The members in their new order, as positions in the record's list, without removed ones.
pub fn order(tree: &Tree, record: &Record, layout: &Layout) -> Result<Vec<usize>, &'static str> {
    let other = "its members are not those of the trace";
    let members = &layout.structure().members;
    let own: Vec<_> =
        members.iter().filter(|member| !matches!(member.role, Role::Base | Role::VirtualTable)).collect();
    if own.len() != record.fields.len() {
        return Err(other);
    }
    let position = |name: &str| record.fields.iter().position(|field| tree.nodes[*field].name == name);
    for member in &own {
        let field = position(&member.name).ok_or(other)?;
        let offset = tree.nodes[record.fields[field]].member.map_or(-1, |(bits, _)| bits / 8);
        if u64::try_from(offset) != Ok(member.offset) {
            return Err(other);
        }
    }
    let mut order = Vec::new();
    for slot in &layout.parts()[0].slots {
        let mut together: Vec<usize> = slot.names.iter().filter_map(|name| position(name)).collect();
        together.sort_unstable();
        order.extend(together);
    }
    order.extend(layout.tail().and_then(|tail| position(tail.name)));
    Ok(order)
}

/// The declarations in their new order. A declaration whose members stay together stays whole.
fn items(
    (tree, record, layout): (&Tree, &Record, &Layout),
    all: &[Declaration],
    order: &[usize],
    text: &str,
) -> Result<Vec<String>, &'static str> {
    // An alignment that a member's type does not have.
    let attribute = |at: usize| {
        let node = &tree.nodes[record.fields[at]];
        let mut slots = layout.parts()[0].slots.iter();
        let slot = slots.find(|slot| slot.names.first() == Some(&node.name))?;
        let is_raised = u64::try_from(node.ty.align).is_ok_and(|align| slot.align > align);
        is_raised.then(|| format!("__attribute__((aligned({}))) ", slot.align))
    };
    let mut firsts = Vec::new();
    for (at, declaration) in all.iter().enumerate() {
        firsts.extend((0..declaration.fields.len()).map(|nth| (at, nth)));
    }
    let (mut out, mut at) = (Vec::new(), 0);
    while at < order.len() {
        let (number, nth) = firsts[order[at]];
        let declaration = &all[number];
        let count = declaration.fields.len();
        let are_together =
            nth == 0 && (0..count).all(|n| order.get(at + n).map(|to| firsts[*to]) == Some((number, n)));
        let aligned = attribute(order[at]);
        let is_one_aligned =
            count > 1 && (0..count).any(|n| order.get(at + n).is_some_and(|&to| attribute(to).is_some()));
        if are_together && !is_one_aligned {
            let (whole, bare) = (&declaration.whole, declaration.bare.start);
            let aligned = aligned.unwrap_or_default();
            out.push(format!("{}{aligned}{}", &text[whole.start..bare], &text[bare..whole.end]));
            at += count;
            continue;
        }
        let Some(range) = declaration.declarators.get(nth) else {
            return Err(
                "members that are declared together would have to be parted, and their type is not plain",
            );
        };
        let specifiers = &text[declaration.bare.start..declaration.declarators[0].start];
        let (before, behind) = match nth {
            0 => (
                &text[declaration.whole.start..declaration.bare.start],
                &text[declaration.bare.end..declaration.whole.end],
            ),
            _ => ("", ""),
        };
        let space = if specifiers.ends_with(char::is_whitespace) { "" } else { " " };
        let aligned = aligned.unwrap_or_default();
        out.push(format!("{before}{aligned}{specifiers}{space}{};{behind}", text[range.clone()].trim()));
        at += 1;
    }
    debug_assert!(all.iter().all(|one| one.fields.iter().all(|field| tree.nodes[*field].member.is_some())));
    Ok(out)
}

fn indent(text: &str, first: &Declaration) -> String {
    let line = text[..first.bare.start].rfind('\n').map_or(0, |at| at + 1);
    let blank: String = text[line..].chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
    if blank.is_empty() { "  ".to_string() } else { blank }
}

/// Returns whether the last line of a text ends in a comment that the end of the line closes.
fn ends_in_comment(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or(text);
    let plain = without_comments(line);
    let blank = String::from_utf8_lossy(&plain).trim_end().len();
    line.get(blank..).is_some_and(|rest| rest.contains("//"))
}
