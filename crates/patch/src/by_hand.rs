//! Edits that a person has to make: where, why, and what to do there.

use std::fmt;

use memlode_layout::Layout;

/// A place to edit by hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceToEdit {
    /// File and line.
    pub place: String,
    /// Why the layout decides what stands there.
    pub why: String,
    /// The work that is to be done there.
    pub task: String,
}

impl fmt::Display for PlaceToEdit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.why)
    }
}

/// Why a cursor forbids an edit, and the work that it leaves.
pub struct Reason {
    /// The end of a sentence that begins with the place.
    pub why: String,
    /// An imperative.
    pub task: String,
}

impl Reason {
    /// Makes a reason of two ends of sentences.
    pub fn new(why: impl Into<String>, task: impl Into<String>) -> Reason {
        Reason { why: why.into(), task: task.into() }
    }
}

/// For pointers that may lead from one member to another.
pub const FOLLOW_POINTER: &str = "see that nothing goes from there to another member";
/// For the whole structure as bytes.
pub const FOLLOW_BYTES: &str =
    "see that whoever has or gets these bytes has the new layout: files, other programs, hashes";
/// For memory that is allocated.
pub const ALIGN_MEMORY: &str = "allocate it with the alignment of the structure, as `aligned_alloc` does";

/// Returns the work at a use of a member that an edit moves elsewhere or changes.
pub fn at_use(layout: &Layout, member: &str) -> String {
    let parts = layout.parts();
    let is_it = |name: &String| name == member;
    let found = parts.iter().enumerate().find_map(|(at, part)| {
        part.slots.iter().find(|slot| slot.names.iter().any(is_it)).map(|slot| (at, part, slot))
    });
    let Some((at, part, slot)) = found else {
        return "take this use out, or keep the member".to_string();
    };
    let mut tasks = Vec::new();
    if part.block > 1 {
        let block = part.block;
        tasks.push(format!("take element i as `{member}[i % {block}]` of block i / {block}"));
    } else if let Some(link) = layout.link().filter(|link| link.to == at) {
        let bytes = parts[0].slots[link.slot].bytes;
        let way = if bytes == 8 { "pointer" } else { "index" };
        tasks.push(format!("go to the cold part by the {way} that the hot one holds"));
    } else if parts.len() > 1 && at > 0 {
        let others = match part.slots.len() {
            1 => String::new(),
            _ => format!(" with {}", slot_names(part, slot)),
        };
        tasks.push(format!("take it from the array that has it{others}, at the same index"));
    }
    if slot.was.is_some() && slot.bytes != slot.was_bytes {
        tasks.push(format!("see that every value fits {} of {} bytes", slot.bytes, slot.was_bytes));
    }
    tasks.join(", and ")
}

/// The first of the other members in a part, for a reader to know it by.
fn slot_names(part: &memlode_layout::Part, own: &memlode_layout::Slot) -> String {
    const MOST: usize = 2;
    let others = part.slots.iter().filter(|slot| *slot != own).flat_map(|slot| slot.names.first());
    let named: Vec<&str> = others.take(MOST).map(String::as_str).collect();
    named.join(" and ")
}

/// The place that a message of clang's is about, where it says that another order of members is an error.
pub fn of_error(message: &str) -> PlaceToEdit {
    let (place, why) = message.split_once(": error: ").unwrap_or(("a source", message));
    let why = format!("clang says of another order of the members: {}", why.escape_debug());
    PlaceToEdit {
        place: place.escape_debug().to_string(),
        why,
        task: "make it independent of the order".to_string(),
    }
}
