//! The names of an access: what it touches, and its place in the source.

use memlode_trace::sites::{FunctionId, Site, SiteTable, StringId};

use crate::read::libraries::is_library_text;

/// The object of an access, as far as it has a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct What {
    /// Type that holds the member, or of the object.
    pub ty: Option<StringId>,
    /// Member path in it.
    pub member: Option<StringId>,
    /// Variable through which it is reached; `None` where the member is enough and rows of several
    /// variables are combined.
    pub variable: Option<StringId>,
}

/// A line of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// Directory and file name.
    pub file: Option<(StringId, StringId)>,
    /// Line, 0 when unknown.
    pub line: u32,
    /// The function whose text holds the line: its mangled name where it has one.
    pub function: StringId,
}

impl Line {
    /// A line of a function.
    pub fn of(names: &SiteTable, function: FunctionId, line: u32) -> Line {
        Line { file: names.function(function).file, line, function: names.symbol(function) }
    }
}

/// The position of an access in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The line itself.
    pub line: Line,
    /// If that line is the text of a library (`std::vector`'s, say), the nearest line outside
    /// libraries that it was inlined into: the one an engineer can change.
    pub inlined_into: Option<Line>,
}

/// Returns what a site touches. If it is a member, the variable is left out unless requested.
pub fn what(names: &SiteTable, site: &Site, with_variable: bool) -> What {
    let ty = site.ty.map(|ty| names.ty(ty).name);
    let variable = site.variable.filter(|_| with_variable || site.member.is_none());
    What { ty, member: site.member, variable }
}

/// Returns where a site stands: its innermost line, or its function as a whole.
pub fn place(names: &SiteTable, site: &Site) -> Place {
    let Some(location) = site.location else {
        return Place { line: Line::of(names, site.function, 0), inlined_into: None };
    };
    let mut lines = names.inline_chain(location).map(|at| Line::of(names, at.function, at.line));
    // A chain starts with its own location.
    let innermost = lines.next().unwrap_or(Line::of(names, site.function, 0));
    let of_library = |line: &Line| is_library_text(names, line.file, line.function);
    let inlined_into = of_library(&innermost).then(|| lines.find(|line| !of_library(line))).flatten();
    Place { line: innermost, inlined_into }
}
