//! Laws that every layout keeps, after any edits: no byte is lost or shared, and all are aligned
//! and in bounds.

use memlode_layout::{AddressUse, Edit, Layout, Link, PartPiece, Refusal, Role, Structure, StructureMember};
use proptest::prelude::*;

/// A structure in C's layout; some members overlap the one before, as those of unions do.
fn structure() -> impl Strategy<Value = Structure> {
    let member = (0_u32..=3, 1_u64..=3, prop::bool::weighted(0.15), any::<bool>());
    prop::collection::vec(member, 1..9).prop_map(|members| {
        let mut end = 0_u64;
        let mut last = 0_u64;
        let mut found = Vec::new();
        for (at, (align, count, overlaps, pointer)) in members.into_iter().enumerate() {
            let align = 1_u64 << align;
            let role = if pointer && align == 8 && count == 1 { Role::Pointer } else { Role::Value };
            let offset = if overlaps { last } else { end }.next_multiple_of(align);
            let bytes = align * count;
            last = offset;
            end = end.max(offset + bytes);
            let name = format!("m{at}");
            found.push(StructureMember { name, offset, bytes, align, role, address: AddressUse::Kept });
        }
        let align = found.iter().map(|member| member.align).max().unwrap_or(1);
        Structure { name: "s".into(), bytes: end.next_multiple_of(align), align, members: found }
    })
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let members = prop::collection::hash_set((0..9).prop_map(|at| format!("m{at}")), 1..4)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>());
    let s = || "s".to_string();
    let link = prop_oneof![Just(Link::Pointer), Just(Link::Index), Just(Link::Parallel)];
    let edit = prop_oneof![
        members.clone().prop_map(move |members| Edit::Reorder { structure: s(), members }),
        (members.clone(), link).prop_map(move |(hot, by)| Edit::Split { structure: s(), hot, by }),
        Just(Edit::Soa { structure: s(), members: Vec::new() }),
        members.clone().prop_map(move |members| Edit::Soa { structure: s(), members }),
        (2_u32..=9).prop_map(move |block| Edit::Aosoa { structure: s(), block }),
        (2_u64..=200).prop_map(move |to| Edit::Pad { subject: s(), of: None, to }),
        (1_u32..=8).prop_map(move |to| Edit::Align { subject: s(), of: None, to: 1 << to }),
        (members.clone(), 1_u32..=8).prop_map(move |(members, to)| Edit::AlignMembers {
            structure: s(),
            members,
            to: 1 << to
        }),
        members.clone().prop_map(move |members| Edit::Index { structure: s(), members }),
        members.clone().prop_map(move |members| Edit::Remove { structure: s(), members }),
        (members, 0_u32..=2).prop_map(move |(members, to)| Edit::Narrow {
            structure: s(),
            member: members[0].clone(),
            to: 1 << to
        }),
    ];
    prop::collection::vec(edit, 0..5)
}

/// The layout after all edits that it accepts.
fn edited(structure: Structure, edits: &[Edit]) -> (Layout, Vec<Edit>) {
    let mut layout = Layout::compiled(structure).unwrap();
    let mut taken = Vec::new();
    for edit in edits {
        let before = format!("{layout:?}");
        match layout.apply(edit) {
            Ok(()) => taken.push(edit.clone()),
            Err(_) => assert_eq!(before, format!("{layout:?}"), "a refused edit changed something"),
        }
    }
    (layout, taken)
}

fn pieces(layout: &Layout, element: u64, offset: u64, bytes: u64) -> Vec<PartPiece> {
    let mut found = Vec::new();
    layout.pieces(element, offset, bytes, &mut found);
    found
}

/// A structure with some of another one in it, and where they are.
fn holder(inner: &Structure, count: u64) -> (Structure, Vec<u64>) {
    let member = |name: &str, offset, bytes, align| {
        let (name, role, address) = (name.to_string(), Role::Value, AddressUse::Kept);
        StructureMember { name, offset, bytes, align, role, address }
    };
    let at: Vec<u64> =
        (0..count).map(|number| 1_u64.next_multiple_of(inner.align) + number * inner.bytes).collect();
    let end = at[0] + count * inner.bytes;
    let align = inner.align.max(4);
    let last = end.next_multiple_of(4);
    let members = vec![
        member("first", 0, 1, 1),
        member("held", at[0], count * inner.bytes, inner.align),
        member("last", last, 4, 4),
    ];
    (Structure { name: "outer".into(), bytes: (last + 4).next_multiple_of(align), align, members }, at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_type_lies_in_another_one_as_it_lies_alone(
        structure in structure(), edits in edits(), count in 1_u64..3
    ) {
        let (inner, _) = edited(structure.clone(), &edits);
        let (outer, places) = holder(&structure, count);
        let held: Vec<_> = places.iter().map(|&at| (at, &inner, "held")).collect();
        let Some(around) = Layout::around(outer.clone(), &held) else {
            let is_whole = inner.parts().len() == 1 && inner.parts()[0].block == 1;
            prop_assert!(!is_whole, "one part can lie anywhere");
            return Ok(());
        };
        // Where it lies, and what is behind it, by the rules of C.
        let part = &inner.parts()[0];
        let begin = 1_u64.next_multiple_of(part.align);
        let last = (begin + count * part.stride).next_multiple_of(4);
        prop_assert_eq!(around.parts()[0].stride, (last + 4).next_multiple_of(part.align.max(4)));
        for element in [0, 7] {
            let base = element * around.parts()[0].stride;
            let alone = |offset| pieces(&inner, 0, offset, 1);
            for (number, at) in (0..).zip(&places) {
                for byte in 0..structure.bytes {
                    let found = pieces(&around, element, at + byte, 1);
                    let wanted = alone(byte);
                    prop_assert_eq!(found.len(), wanted.len());
                    for (found, wanted) in found.iter().zip(&wanted) {
                        prop_assert_eq!((found.part, found.bytes), (wanted.part, wanted.bytes));
                        let moved = match wanted.part {
                            0 => base + begin + number * part.stride,
                            other => element * inner.parts()[other].stride,
                        };
                        prop_assert_eq!(found.offset, moved + wanted.offset);
                    }
                }
            }
            let of_last = around.piece(element, outer.members[2].offset, 4).map(|piece| piece.offset);
            prop_assert_eq!(of_last, Some(base + last));
            prop_assert_eq!(around.link_piece(element).is_some(), inner.link().is_some());
        }
    }

    #[test]
    fn no_byte_is_lost_or_shared(structure in structure(), edits in edits()) {
        let (layout, taken) = edited(structure.clone(), &edits);
        let elements = 11;
        let mut used = std::collections::HashSet::new();
        let in_member = |byte| structure.members.iter().any(|m| (m.offset..m.offset + m.bytes).contains(&byte));
        let shrinks = taken.iter().any(|edit| matches!(edit, Edit::Narrow { .. } | Edit::Index { .. } | Edit::Remove { .. }));
        for element in 0..elements {
            for byte in 0..structure.bytes {
                let found = pieces(&layout, element, byte, 1);
                if !in_member(byte) {
                    prop_assert!(found.is_empty());
                } else if !shrinks {
                    prop_assert_eq!(found.len(), 1);
                    prop_assert!(used.insert((found[0].part, found[0].offset)), "byte {} twice", byte);
                }
                for piece in found {
                    prop_assert!(piece.offset + piece.bytes <= layout.parts()[piece.part].bytes(elements));
                }
            }
            if let Some(link) = layout.link_piece(element) {
                for byte in 0..link.bytes {
                    prop_assert!(used.insert((0, link.offset + byte)));
                }
            }
        }
    }

    #[test]
    fn an_access_is_its_bytes(
        structure in structure(), edits in edits(), element in 0_u64..100, from in 0_u64..100, bytes in 0_u64..100
    ) {
        let (layout, taken) = edited(structure.clone(), &edits);
        if taken.iter().any(|edit| matches!(edit, Edit::Narrow { .. } | Edit::Index { .. })) {
            return Ok(());
        }
        let whole = pieces(&layout, element, from, bytes);
        let bytes_of = |pieces: &[PartPiece]| {
            pieces.iter().flat_map(|p| (p.offset..p.offset + p.bytes).map(|at| (p.part, at))).collect::<Vec<_>>()
        };
        let single: Vec<_> = (from..from + bytes).flat_map(|at| bytes_of(&pieces(&layout, element, at, 1))).collect();
        prop_assert_eq!(bytes_of(&whole), single);
    }

    #[test]
    fn members_are_aligned_and_do_not_overlap(structure in structure(), edits in edits()) {
        let (layout, _) = edited(structure, &edits);
        for part in layout.parts() {
            prop_assert_eq!(part.stride % part.align, 0);
            let mut end = 0;
            for slot in &part.slots {
                prop_assert!(slot.offset >= end && slot.offset % slot.align == slot.phase);
                prop_assert!(part.align >= slot.align && (slot.phase == 0 || slot.names.len() > 1));
                end = slot.offset + u64::from(part.block - 1) * slot.step() + slot.bytes;
            }
            prop_assert!(end <= part.stride);
        }
    }

    #[test]
    fn the_stride_is_the_step_from_element_to_element(structure in structure(), edits in edits(), byte in 0_u64..64) {
        let (layout, _) = edited(structure, &edits);
        if let Some(stride) = layout.stride(byte) {
            for element in 0..4 {
                let (here, next) = (pieces(&layout, element, byte, 1), pieces(&layout, element + 1, byte, 1));
                prop_assert_eq!(here[0].offset + stride, next[0].offset);
            }
        }
    }
}

fn member(name: &str, offset: u64, bytes: u64, role: Role, address: AddressUse) -> StructureMember {
    StructureMember { name: name.into(), offset, bytes, align: bytes.clamp(1, 8), role, address }
}

/// `struct arc { long cost; struct node *tail, *head; short ident; … }`, 32 bytes.
fn arc() -> Structure {
    let kept = AddressUse::Kept;
    let members = vec![
        member("cost", 0, 8, Role::Value, kept),
        member("tail", 8, 8, Role::Pointer, kept),
        member("head", 16, 8, Role::Pointer, kept),
        member("ident", 24, 2, Role::Value, kept),
    ];
    Structure { name: "arc".into(), bytes: 32, align: 8, members }
}

/// Edits in their short form, applied; the refusal as text.
fn apply(structure: Structure, text: &str) -> Result<Layout, String> {
    let mut layout = Layout::compiled(structure).map_err(|refusal| refusal.to_string())?;
    for edit in memlode_layout::edits_from_text(text).unwrap() {
        layout.apply(&edit).map_err(|refusal| refusal.to_string())?;
    }
    Ok(layout)
}

#[test]
fn by_hand() {
    let split = apply(arc(), "split arc: hot=ident,cost by=index").unwrap();
    // cost 0, ident 8, link 12: 16 bytes; tail and head: 16 bytes.
    assert_eq!(split.parts().iter().map(|part| part.stride).collect::<Vec<_>>(), [16, 16]);
    assert_eq!(split.link_piece(3), Some(PartPiece { was: 0, part: 0, offset: 60, bytes: 4 }));
    assert_eq!(pieces(&split, 3, 16, 8), [PartPiece { was: 16, part: 1, offset: 56, bytes: 8 }]);
    // A copy of the whole element goes in three pieces: cost, both pointers, ident.
    assert_eq!(pieces(&split, 0, 0, 32).len(), 3);

    // The rest stays together: cost and head, 16 bytes; then the two arrays.
    let apart = apply(arc(), "soa arc: ident, tail").unwrap();
    assert_eq!(apart.parts().iter().map(|part| part.stride).collect::<Vec<_>>(), [16, 8, 2]);
    assert_eq!(pieces(&apart, 3, 24, 2), [PartPiece { was: 24, part: 2, offset: 6, bytes: 2 }]);

    let blocks = apply(arc(), "aosoa arc by 4").unwrap();
    assert_eq!(blocks.parts()[0].stride, 4 * 26);
    assert_eq!(pieces(&blocks, 5, 24, 2), [PartPiece { was: 24, part: 0, offset: 104 + 96 + 2, bytes: 2 }]);

    let small = apply(arc(), "index arc: tail, head; narrow arc: cost to 4").unwrap();
    assert_eq!(small.parts()[0].stride, 16);
    assert_eq!(pieces(&small, 1, 8, 8), [PartPiece { was: 8, part: 0, offset: 20, bytes: 4 }]);
    assert_eq!(pieces(&small, 1, 12, 4), [PartPiece { was: 12, part: 0, offset: 22, bytes: 2 }]);

    // Padding stays when members are put in another order afterwards.
    let padded = apply(arc(), "pad arc to 48; reorder arc: ident").unwrap();
    assert_eq!(padded.parts()[0].stride, 48);
}

#[test]
fn impossible_edits_are_refused_with_the_reason() {
    let refused = |structure, text, why: &str| {
        let refusal = apply(structure, text).unwrap_err();
        assert!(refusal.contains(why), "{text}: {refusal}");
    };
    refused(arc(), "reorder arc: costs", "has no member `costs`; it has cost, tail, head, ident");
    refused(arc(), "index arc: cost", "is not a pointer");
    refused(arc(), "narrow arc: tail to 4", "is not one plain value");
    refused(arc(), "narrow arc: ident to 2", "has 2 bytes already");
    refused(arc(), "split arc: hot=cost,tail,head,ident by=index", "nothing of `arc` would be cold");
    refused(arc(), "remove arc: cost,tail,head,ident", "nothing of `arc` would be left");
    refused(arc(), "remove arc: cost; narrow arc: cost to 4", "was removed");
    refused(arc(), "soa arc; reorder arc: tail", "is divided into several arrays");
    refused(arc(), "shift arc by 64", "moves objects");

    let mut cast = arc();
    cast.members[1].address = AddressUse::Cast;
    refused(cast.clone(), "reorder arc: tail", "the address of `tail` becomes a pointer of another type");
    assert!(apply(cast, "align arc to 64").is_ok());

    let mut class = arc();
    class.members[0].role = Role::VirtualTable;
    refused(class.clone(), "reorder arc: tail", "`cost` is a base class or the pointer");
    refused(class.clone(), "soa arc", "which the compiler puts first");
    // It stays hot without being named.
    let split = apply(class, "split arc: hot=tail by=pointer").unwrap();
    assert_eq!(split.parts()[0].slots[0].names, ["cost"]);

    let mut union = arc();
    union.members[1].offset = 4;
    refused(union, "remove arc: cost", "cost, tail share their bytes");

    let mut flexible = arc();
    flexible.members.push(member("rest", 26, 0, Role::FlexibleArray, AddressUse::Kept));
    refused(flexible.clone(), "pad arc to 64", "whose length its type does not tell");
    refused(flexible.clone(), "soa arc", "its objects lie in no array");
    refused(flexible.clone(), "split arc: hot=cost by=pointer", "its objects lie in no array");
    refused(flexible.clone(), "reorder arc: rest", "it stays behind the other members");
    let tail = |layout: &Layout| layout.tail().map(|tail| (tail.name.to_string(), tail.was, tail.now));
    let behind = |now| Some(("rest".to_string(), 26, now));
    assert_eq!(tail(&Layout::compiled(flexible.clone()).unwrap()), behind(26));
    // It may begin in what was padding, and before the size is full.
    assert_eq!(tail(&apply(flexible.clone(), "reorder arc: ident, cost").unwrap()), behind(32));
    assert_eq!(tail(&apply(flexible, "remove arc: head").unwrap()), behind(18));
    assert_eq!(tail(&Layout::compiled(arc()).unwrap()), None);

    let mut array = arc();
    array.members[0].role = Role::Several;
    refused(array, "narrow arc: cost to 4", "`cost` is not one plain value");

    let mut broken = arc();
    broken.bytes = 20;
    assert!(matches!(Layout::compiled(broken), Err(Refusal::Broken { .. })));
}
