//! Why an edit gains, in a few words.

use memlode_layout::{Edit, Link, Scope};

use crate::render::text::{brief, bytes, printable};

/// A sentence about the reason why edits gain that are made together.
pub fn because(edits: &[Edit]) -> String {
    let mut all: Vec<String> = Vec::new();
    for reason in edits.iter().map(reason) {
        if !all.contains(&reason) {
            all.push(reason);
        }
    }
    all.join("; ")
}

fn reason(edit: &Edit) -> String {
    match edit {
        Edit::Remove { structure, members } => {
            format!("no code reads {} of {}", listed(members), printable(&brief(structure)))
        }
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
        assert_eq!(because(&edits), because(&edits[..1]));
        let edits = edits_from_text("remove item: title, a, b, c, d, e").expect("an edit");
        assert_eq!(because(&edits), "no code reads title, a, b, c and 2 more of item");
    }
}
