//! The compiler as oracle: structures at random, compiled as they are and again as the edit would
//! have them written.

use std::fmt::Write as _;
use std::process::Command;

use memlode_layout::{AddressUse, Edit, Layout, Link, Role, Structure, StructureMember};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Types of members: how C writes one, its role, and whether it is packed into bits.
const TYPES: [(&str, &str, Role); 11] = [
    ("char", "", Role::Value),
    ("short", "", Role::Value),
    ("int", "", Role::Value),
    ("long", "", Role::Value),
    ("float", "[3]", Role::Value),
    ("double", "", Role::Value),
    ("long double", "", Role::Value),
    ("void *", "", Role::Pointer),
    ("char", "[7]", Role::Value),
    ("struct { char c; long l; }", "", Role::Value),
    ("struct { short a, b, c; }", "[2]", Role::Value),
];

/// A structure as C text: members by their index into `TYPES`, and how it is aligned and packed.
#[derive(Clone, Debug)]
struct Source {
    members: Vec<usize>,
    align: u32,
    packed: bool,
}

impl Source {
    fn declare(&self, at: usize) -> String {
        let (ty, suffix, _) = TYPES[self.members[at]];
        format!("{ty} m{at}{suffix};")
    }

    /// A structure with these members, aligned as the source is, or not.
    fn text(&self, name: &str, members: impl Iterator<Item = String>, aligned: bool) -> String {
        let align =
            if aligned && self.align > 0 { format!(", aligned({})", 1 << self.align) } else { String::new() };
        let packed = if self.packed { ", packed" } else { "" };
        let members: Vec<_> = members.collect();
        format!("struct __attribute__((unused{packed}{align})) {name} {{ {} }};\n", members.join(" "))
    }
}

fn source() -> impl Strategy<Value = Source> {
    let members = prop::collection::vec(0..TYPES.len(), 1..10);
    let align = prop_oneof![3 => Just(0_u32), 1 => 3_u32..=7];
    (members, align, prop::bool::weighted(0.15)).prop_map(|(members, align, packed)| Source {
        members,
        align,
        packed,
    })
}

/// Compiles a program that prints the size, the alignment, and each member's offset, size and
/// alignment of structures.
fn compiled(structures: &[(String, Vec<String>)]) -> Vec<Vec<u64>> {
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    let mut body = String::new();
    for (at, (structure, members)) in structures.iter().enumerate() {
        text += structure;
        write!(body, "printf(\"%zu %zu\", sizeof(struct s{at}), _Alignof(struct s{at}));").unwrap();
        for member in members {
            let of = format!("((struct s{at} *)0)->{member}");
            write!(
                body,
                "printf(\" %zu %zu %zu\", offsetof(struct s{at}, {member}), sizeof({of}), __alignof__({of}));"
            )
            .unwrap();
        }
        body += "puts(\"\");\n";
    }
    writeln!(text, "int main(void) {{\n{body}return 0;\n}}").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
    std::fs::write(&source, text).unwrap();
    let compiler = Command::new("clang-22").args(["-w", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(compiler.success());
    let printed = Command::new(&program).output().unwrap();
    let lines = String::from_utf8(printed.stdout).unwrap();
    lines.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect()
}

fn structure(source: &Source, facts: &[u64]) -> Structure {
    let member = |(at, facts): (usize, &[u64])| StructureMember {
        name: format!("m{at}"),
        offset: facts[0],
        bytes: facts[1],
        align: facts[2],
        role: TYPES[source.members[at]].2,
        address: AddressUse::Kept,
    };
    let members = facts[2..].chunks(3).enumerate().map(member).collect();
    Structure { name: "s".into(), bytes: facts[0], align: facts[1], members }
}

#[test]
fn offsets_are_the_compilers() {
    let mut runner = TestRunner::deterministic();
    let mut sources = Vec::new();
    for _ in 0..150 {
        sources.push(source().new_tree(&mut runner).unwrap().current());
    }
    let mut order = |count: usize| -> Vec<usize> {
        Just((0..count).collect::<Vec<_>>()).prop_shuffle().new_tree(&mut runner).unwrap().current()
    };
    let name = |at: &usize| format!("m{at}");
    let names = |list: &[usize]| list.iter().map(name).collect::<Vec<_>>();

    let as_they_are: Vec<_> = (sources.iter().enumerate())
        .map(|(at, source)| {
            let all: Vec<usize> = (0..source.members.len()).collect();
            let members = all.iter().map(|m| source.declare(*m));
            (source.text(&format!("s{at}"), members, true), names(&all))
        })
        .collect();
    let facts = compiled(&as_they_are);

    // What each part should be once the source is edited, and what the layout says it is.
    let mut written = Vec::new();
    let mut predicted = Vec::new();
    for (source, facts) in sources.iter().zip(&facts) {
        let count = source.members.len();
        let order = order(count);
        let mut layout = Layout::compiled(structure(source, facts)).unwrap();
        let reorder = Edit::Reorder { structure: "s".into(), members: names(&order) };
        layout.apply(&reorder).unwrap();
        let declare = |m: &usize| source.declare(*m);
        let at = written.len();
        written.push((source.text(&format!("s{at}"), order.iter().map(declare), true), names(&order)));
        predicted.push((layout.clone(), 0));
        if count < 2 || source.packed {
            continue;
        }
        let (mut aligned, to) = (layout.clone(), 1 << (1 + order[0] % 7));
        let some = &order[..count.div_ceil(3)];
        let edit = Edit::AlignMembers { structure: "s".into(), members: names(some), to };
        aligned.apply(&edit).unwrap();
        let declare_aligned = |m: &usize| match some.contains(m) {
            true => format!("__attribute__((aligned({to}))) {}", source.declare(*m)),
            false => source.declare(*m),
        };
        let at = written.len();
        written
            .push((source.text(&format!("s{at}"), order.iter().map(declare_aligned), true), names(&order)));
        predicted.push((aligned, 0));
        let (hot, cold) = order.split_at(count / 2);
        let edit = Edit::Split { structure: "s".into(), hot: names(hot), by: Link::Pointer };
        layout.apply(&edit).unwrap();
        // Both halves keep the order of the layout that is split.
        let link = std::iter::once("void *cold;".to_string());
        let at = written.len();
        written.push((source.text(&format!("s{at}"), hot.iter().map(declare).chain(link), true), names(hot)));
        predicted.push((layout.clone(), 0));
        let at = written.len();
        written.push((source.text(&format!("s{at}"), cold.iter().map(declare), false), names(cold)));
        predicted.push((layout, 1));
    }
    let facts = compiled(&written);
    assert!(facts.len() > 300 && facts.len() == predicted.len());
    for (((text, members), facts), (layout, part)) in written.iter().zip(&facts).zip(&predicted) {
        let part = &layout.parts()[*part];
        assert_eq!((part.stride, part.align), (facts[0], facts[1]), "{text}");
        for (member, facts) in members.iter().zip(facts[2..].chunks(3)) {
            let slot = part.slots.iter().find(|slot| slot.names.contains(member)).unwrap();
            assert_eq!((slot.offset, slot.bytes), (facts[0], facts[1]), "{member} of {text}");
        }
    }
}
