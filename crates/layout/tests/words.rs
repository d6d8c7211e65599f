//! Edits as words: both forms mean the same, written edits can be read again, and errors are marked
//! at their place.

use memlode_layout::{Edit, Link, PagePlacement, Scope, edits_from_text, edits_from_toml};
use proptest::prelude::*;

#[test]
fn both_forms_say_the_same() {
    let text = "
        split arc: hot=ident,cost,tail,head by=index   # the scan reads these four
        reorder std::pair<int, long>: second; soa \"odd name\"
        aosoa cell by 8
        pad worker to 64; align stats to 4KiB of=object
        index node: next, child
        narrow arc: cost to 4
        remove arc: spare
        group xs, main.c:12
        shift out by 256
        per-thread hits
        deal cells by 4
        pack node
        pages grid to 2MiB
        place grid: interleave
        place grid: node=1
    ";
    let toml = r#"
        [[edit]]
        split = "arc"
        hot = ["ident", "cost", "tail", "head"]
        by = "index"
        [[edit]]
        reorder = "std::pair<int, long>"
        members = "second"
        [[edit]]
        soa = "odd name"
        [[edit]]
        aosoa = "cell"
        by = 8
        [[edit]]
        pad = "worker"
        to = 64
        [[edit]]
        align = "stats"
        to = "4KiB"
        of = "object"
        [[edit]]
        index = "node"
        members = ["next", "child"]
        [[edit]]
        narrow = "arc"
        members = "cost"
        to = 4
        [[edit]]
        remove = "arc"
        members = ["spare"]
        [[edit]]
        group = ["xs", "main.c:12"]
        [[edit]]
        shift = "out"
        by = 256
        [[edit]]
        per-thread = "hits"
        [[edit]]
        deal = "cells"
        by = 4
        [[edit]]
        pack = "node"
        [[edit]]
        pages = "grid"
        to = "2MiB"
        [[edit]]
        place = "grid"
        members = "interleave"
        [[edit]]
        place = "grid"
        node = 1
    "#;
    let edits = edits_from_text(text).unwrap();
    assert_eq!(edits, edits_from_toml(toml).unwrap());
    assert_eq!(edits.len(), 17);
    let hot = ["ident", "cost", "tail", "head"].map(String::from).to_vec();
    assert_eq!(edits[0], Edit::Split { structure: "arc".into(), hot, by: Link::Index });
    let worker = Edit::Pad { subject: "worker".into(), of: None, to: 64 };
    assert_eq!(edits[4], worker);
    assert_eq!(edits[9].to_string(), "group xs,\"main.c:12\"");
}

/// The message, and the marked part of the line.
fn fault(text: &str) -> (String, String) {
    let error = edits_from_text(text).unwrap_err();
    let shown = error.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let marked = lines[1].chars().zip(lines[2].chars()).filter(|(_, mark)| *mark == '^');
    (error.message, marked.map(|(character, _)| character).collect())
}

#[test]
fn faults_are_marked_where_they_stand() {
    let cases = [
        ("splt arc: hot=a by=index", "unknown verb `splt`; did you mean `split`?", "splt"),
        ("split arc: hot=a by=idnex", "`by` cannot be `idnex`; did you mean `index`?", "idnex"),
        ("split arc: hot=a", "`split` needs `by`: by=pointer, by=index, by=parallel", "split arc: hot=a"),
        ("split arc: hot=a,b,a by=index", "`a` stands here a second time", "a"),
        ("pad worker to 64 too 3", "`pad` has no argument `too`; did you mean `to`?", "too"),
        ("align w to 48", "`to` is a power of two of bytes from 2 to 1073741824, not `48`", "48"),
        ("narrow a: x, y to 2", "`narrow` takes one member; write another edit for this one", "y"),
        ("soa a: x, x", "`x` stands here a second time", "x"),
        ("pack a: x", "`pack` has no list behind its subject", "x"),
        ("soa a, b", "`soa` edits one type or object at a time", "b"),
        ("group xs", "`group` needs at least two arrays", "group xs"),
        (
            "place grid: interleaved",
            "unknown policy `interleaved`; did you mean `interleave`?",
            "interleaved",
        ),
        ("reorder arc", "`reorder` needs a member behind a colon", "reorder arc"),
        ("shift \"out by 3", "this quotation has no end", "\""),
        ("pad ä: ö to", "`to` has no value", "to"),
        (", soa", "an edit begins with a verb, such as `split` or `pad`", ","),
    ];
    for (text, message, marked) in cases {
        assert_eq!(fault(text), (message.to_string(), marked.to_string()), "{text}");
    }
    let third = edits_from_text("soa a\n\n  soa b c\n").unwrap_err();
    assert_eq!((third.line, third.column), (3, 8));
    let toml = edits_from_toml("[[edit]]\nsplit = \"arc\"\nhot = [\"a\"]\nby = \"idnex\"\n").unwrap_err();
    assert_eq!((toml.line, toml.column), (4, 5));
    assert!(edits_from_toml("[[edit]]\nmembers = \"a\"\n").unwrap_err().message.contains("reorder, split"));
    assert!(edits_from_toml("edits = 3").unwrap_err().message.contains("[[edit]]"));
}

fn name() -> impl Strategy<Value = String> {
    let usual = "[a-z_][a-z0-9_]{0,6}(::[a-z]{1,3})?(<[a-z]{1,3}(, [a-z]{1,3})?>)?";
    prop_oneof![4 => usual, 1 => "[^\"\\p{C}]{1,12}"]
}

fn names(least: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::hash_set(name(), least..5).prop_map(|set| set.into_iter().collect())
}

fn edit() -> impl Strategy<Value = Edit> {
    let scope = prop::option::of(prop_oneof![Just(Scope::Type), Just(Scope::Element), Just(Scope::Object)]);
    let link = prop_oneof![Just(Link::Pointer), Just(Link::Index), Just(Link::Parallel)];
    let placement = prop_oneof![
        Just(PagePlacement::Interleave),
        Just(PagePlacement::Blockwise),
        Just(PagePlacement::FirstTouch),
        any::<u32>().prop_map(PagePlacement::Node)
    ];
    let simple = name().prop_flat_map(move |n| {
        let m = n.clone();
        prop_oneof![
            Just(Edit::Soa { structure: n.clone(), members: Vec::new() }),
            Just(Edit::PerThread { object: n.clone() }),
            Just(Edit::Pack { structure: n.clone() }),
            (2_u32..=65_536).prop_map({
                let n = n.clone();
                move |block| Edit::Aosoa { structure: n.clone(), block }
            }),
            (1_u64..=1 << 30).prop_map(move |by| Edit::Shift { object: m.clone(), by }),
        ]
    });
    prop_oneof![
        simple,
        (name(), names(1)).prop_map(|(structure, members)| Edit::Reorder { structure, members }),
        (name(), names(1)).prop_map(|(structure, members)| Edit::Soa { structure, members }),
        (name(), names(1)).prop_map(|(structure, members)| Edit::Index { structure, members }),
        (name(), names(1)).prop_map(|(structure, members)| Edit::Remove { structure, members }),
        (name(), names(1), link).prop_map(|(structure, hot, by)| Edit::Split { structure, hot, by }),
        (name(), scope.clone(), 2_u64..=1 << 30).prop_map(|(subject, of, to)| Edit::Pad { subject, of, to }),
        (name(), names(1), 1_u32..=30).prop_map(|(structure, members, to)| Edit::AlignMembers {
            structure,
            members,
            to: 1 << to
        }),
        (name(), scope, 1_u32..=30).prop_map(|(subject, of, to)| Edit::Align { subject, of, to: 1 << to }),
        (name(), name(), 0_u32..=2).prop_map(|(structure, member, to)| Edit::Narrow {
            structure,
            member,
            to: 1 << to
        }),
        names(2).prop_map(|objects| Edit::Group { objects }),
        (name(), 2_u32..=65_536).prop_map(|(object, parts)| Edit::Deal { object, parts }),
        (name(), 12_u32..=30).prop_map(|(object, to)| Edit::Pages { object, to: 1 << to }),
        (name(), placement).prop_map(|(object, on)| Edit::Place { object, on }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(edits in prop::collection::vec(edit(), 0..5)) {
        let written: Vec<String> = edits.iter().map(Edit::to_string).collect();
        prop_assert_eq!(edits_from_text(&written.join("\n")).unwrap(), edits.clone());
        prop_assert_eq!(edits_from_text(&written.join("; ")).unwrap(), edits);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z:=,;<>(\"# \n0-9é]{0,60}") {
        if let Err(error) = edits_from_text(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1);
            prop_assert!(!error.to_string().is_empty());
        }
        let _ = edits_from_toml(&text);
    }
}
