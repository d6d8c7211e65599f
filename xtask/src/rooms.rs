//! `cargo xtask check`: rooms inside a crate. A file may use only rooms below its own.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::law::{code_lines, shown, sources};

/// Crates whose rooms have an order: each room, a folder or a file of `src`, may name those before it.
const ROOMS: &[(&str, &[&str])] = &[(
    "attribute",
    &[
        "counts",
        "values",
        "objects",
        "setup",
        "residencies",
        "sampled",
        "profile",
        "count",
        "read",
        "drive",
        "sharing",
    ],
)];

/// Returns one sentence for each file that names a room after its own, and for each room that has no place.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (name, rooms) in ROOMS {
        let folder = root.join("crates").join(name).join("src");
        for path in sources(&folder, &["rs"])? {
            let inside = path.strip_prefix(&folder).unwrap_or(&path);
            let room = inside.iter().next().and_then(|first| first.to_str()).unwrap_or_default();
            let room = room.trim_end_matches(".rs");
            if room == "lib" || inside.iter().any(|part| part == "tests" || part == "tests.rs") {
                continue;
            }
            let place = shown(root, &path);
            let Some(floor) = rooms.iter().position(|other| *other == room) else {
                problems.push(format!(
                    "{place}: {room} has no place among the rooms of {name} (xtask/src/rooms.rs)"
                ));
                continue;
            };
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {place}"))?;
            for (number, line) in code_lines(&text) {
                let upward = rooms[floor + 1..].iter().find(|other| names(line, other));
                problems
                    .extend(upward.map(|other| format!("{place}:{number}: {room} must not name {other}")));
            }
        }
    }
    Ok(problems)
}

/// Returns whether a line of code names a room of its crate.
fn names(line: &str, room: &str) -> bool {
    line.split("crate::").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end] == room
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_named_by_its_whole_name() {
        assert!(names("use crate::count::engine::Engine;", "count"));
        assert!(!names("use crate::counts::Counts;", "count"));
        assert!(!names("use memlode_trace::count;", "count"));
    }
}
