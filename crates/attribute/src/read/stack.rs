//! The lines that are on a thread's stack at an access.

use memlode_trace::sites::{FunctionId, LocationId, Site, SiteTable};

use crate::read::place::Line;

/// A line of a function on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLine {
    /// The function.
    pub function: FunctionId,
    /// The line that it executes, 0 where that is not known.
    pub line: u32,
    /// True if the function was inlined into that of the next line.
    pub is_inlined: bool,
}

impl StackLine {
    /// Returns the line with its file.
    pub fn named(&self, names: &SiteTable) -> Line {
        Line::of(names, self.function, self.line)
    }
}

/// Returns the lines of an access at a site whose thread is on a call path, the innermost first.
/// The path has its innermost function first, each with the call by which the next one entered it.
pub fn stack(
    names: &SiteTable,
    site: &Site,
    path: impl Iterator<Item = (FunctionId, Option<LocationId>)>,
) -> Vec<StackLine> {
    let mut path = path.peekable();
    let mut lines = Vec::new();
    push(&mut lines, names, site.function, site.location);
    // Nothing says where a function was called that was not seen entered.
    let mut called_at = path.next_if(|(function, _)| *function == site.function).and_then(|(_, call)| call);
    for (function, call) in path {
        push(&mut lines, names, function, called_at);
        called_at = call;
    }
    lines
}

/// Adds a function that executes a location, preceded by the functions that were inlined there.
fn push(lines: &mut Vec<StackLine>, names: &SiteTable, function: FunctionId, location: Option<LocationId>) {
    let first = lines.len();
    let chain = location.into_iter().flat_map(|location| names.inline_chain(location));
    lines.extend(chain.map(|at| StackLine { function: at.function, line: at.line, is_inlined: true }));
    // The function whose code it is stands outermost, whether a line says so or not.
    match lines[first..].last_mut().filter(|line| line.function == function) {
        Some(outermost) => outermost.is_inlined = false,
        None => lines.push(StackLine { function, line: 0, is_inlined: false }),
    }
}
