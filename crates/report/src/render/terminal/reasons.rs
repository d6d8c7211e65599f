//! Why an edit gains, in a few words.

use memlode_layout::{Edit, Link, Scope};

use crate::model::ConstantMember;
use crate::render::text::{brief, bytes, count, printable};

/// A sentence about the reason why edits gain that are made together. `constants` are those of the
/// members they take away that code reads.
pub fn because(edits: &[Edit], constants: &[ConstantMember]) -> String {
    let mut all: Vec<String> = Vec::new();
    for reason in edits.iter().map(|edit| reason(edit, constants)) {
        if !all.contains(&reason) {
            all.push(reason);
        }
    }
    all.join("; ")
}

/// Why members can go: nothing reads them, or they are the same each time.
fn removed(structure: &str, members: &[String], constants: &[ConstantMember]) -> String {
    let of_it = |member: &&String| {
        constants.iter().find(|constant| constant.ty == structure && constant.member == **member)
    };
    let unread: Vec<String> = members.iter().filter(|member| of_it(member).is_none()).cloned().collect();
    let same = members.iter().filter_map(|member| of_it(&member));
    let same: Vec<String> = same
        .map(|found| {
            let (member, values) = (printable(&found.member), count(found.values));
            format!("{member} was always {} ({values} values)", found.value)
        })
        .collect();
    let of = printable(&brief(structure)).into_owned();
    let reasons = [
        (!unread.is_empty()).then(|| format!("no code reads {} of {of}", listed(&unread))),
        (!same.is_empty()).then(|| format!("in this run, of {of}, {}", same.join(", "))),
    ];
    reasons.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn reason(edit: &Edit, constants: &[ConstantMember]) -> String {
    match edit {
        Edit::Remove { structure, members } => removed(structure, members, constants),
        Edit::Split { hot, by, .. } => {
            let found = match by {
                Link::Parallel => "",
                Link::Index => ", which has an index for them",
                Link::Pointer => ", which has a pointer to them",
            };
            format!(
                "lines that are fetched for {} bring more of the same, without the others{found}",
                listed(hot)
            )
        }
        Edit::Soa { .. } => "a loop over one member fetches nothing but that member".into(),
        Edit::Aosoa { block, .. } => {
            format!(
                "a loop over one member fetches {block} of them at a time, and an element's members stay near each other"
            )
        }
        Edit::Reorder { .. } => "members that are used together lie in fewer lines".into(),
        Edit::Index { .. } => {
            "records with indices of 4 bytes are smaller: more of them fit into a cache".into()
        }
        Edit::Narrow { member, to, .. } => {
            format!(
                "every value of {} in this run fits into {}: more records share a line",
                printable(member),
                bytes(*to)
            )
        }
        Edit::Pad { of: None, .. } => "rows no longer fall into the same sets of a cache".into(),
        Edit::Shift { .. } => {
            "arrays that are used together no longer fall into the same sets of a cache".into()
        }
        Edit::Align { of: None, .. } | Edit::Pad { .. } => {
            "each begins at a line: none lies in one more than it must, or shares one".into()
        }
        Edit::Align { of: Some(Scope::Element), .. } => "elements of different threads share no line".into(),
        Edit::Align { of: Some(_), .. } => "objects of different threads share no line".into(),
        Edit::AlignMembers { .. } => "members that different threads use share no line".into(),
        Edit::Deal { .. } => "the elements of a thread share lines with no other thread's".into(),
        Edit::PerThread { .. } => {
            "threads only add to it, so no thread has to take the line from another".into()
        }
        Edit::Group { objects } => {
            format!("an element of {} is in one line, in the place of one for each", listed(objects))
        }
        Edit::Pack { .. } => "the walk finds the next object behind the last one: it becomes a stream".into(),
        Edit::Pages { to, .. } => {
            format!("one translation reaches over {}, so fewer page walks are waited for", bytes(*to))
        }
        Edit::Place { .. } => {
            "all nodes' memory serves it, each thread's part from nearby where there are parts".into()
        }
    }
}

/// `key, price and 3 more`.
fn listed(names: &[String]) -> String {
    const MOST: usize = 4;
    let shown: Vec<_> = names.iter().take(MOST).map(|name| printable(name)).collect();
    match names.len() {
        more if more > MOST + 1 => format!("{} and {} more", shown.join(", "), more - MOST),
        _ => names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use memlode_layout::edits_from_text;

    use super::*;

    #[test]
    fn edits_that_gain_for_one_reason_tell_it_once() {
        let edits = edits_from_text("shift a by 64; shift b by 128").expect("edits");
        assert_eq!(because(&edits, &[]), because(&edits[..1], &[]));
        let edits = edits_from_text("remove item: title, a, b, c, d, e").expect("an edit");
        assert_eq!(because(&edits, &[]), "no code reads title, a, b, c and 2 more of item");
        let constant =
            ConstantMember { ty: "item".into(), member: "kind".into(), value: "7".into(), values: 1000 };
        let edits = edits_from_text("remove item: kind, title").expect("an edit");
        assert_eq!(
            because(&edits, &[constant]),
            "no code reads title of item; in this run, of item, kind was always 7 (1.00 k values)"
        );
    }
}
