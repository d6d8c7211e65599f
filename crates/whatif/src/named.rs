//! Names of types and objects, as edits have them.

use memlode_attribute::{Home, PathId};
use memlode_layout::{Edit, nearest};
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::{SiteId, SiteTable};
use rustc_hash::FxHashSet;

use crate::plan::{PlanError, PlanInputs};

/// All definitions of a type. `struct arc` is `arc`. A type may also go by its name without
/// namespaces and arguments (`Bucket` for `indexmap::Bucket<u64, Order>`), where one alone has it.
pub fn records_named(names: &SiteTable, name: &str) -> Vec<LayoutId> {
    let bare = ["struct ", "class "].iter().find_map(|tag| name.strip_prefix(tag)).unwrap_or(name);
    // One without a name is `struct {file.c:7}`, whole.
    let exact = records(names, |full| full == bare || full == name);
    if !exact.is_empty() {
        return exact;
    }
    let mut short = records(names, |full| is_short_for(bare, full));
    let full_name = |id: &LayoutId| names.layouts().layout(*id).name;
    let first = short.first().and_then(full_name);
    if short.iter().any(|id| full_name(id) != first) {
        short.clear();
    }
    short
}

fn records(names: &SiteTable, is_wanted: impl Fn(&str) -> bool) -> Vec<LayoutId> {
    let layouts = names.layouts().all().iter().enumerate();
    layouts
        .filter(|(_, layout)| layout.is_record() && !layout.is_incomplete)
        .filter(|(_, layout)| layout.name.is_some_and(|id| is_wanted(names.string(id))))
        .map(|(at, _)| LayoutId(at as u32))
        .collect()
}

/// Returns whether a name is another one without its arguments, and without some or all of its
/// namespaces.
fn is_short_for(short: &str, full: &str) -> bool {
    let (path, _) = full.split_once('<').unwrap_or((full, ""));
    let before = path.strip_suffix(short);
    !short.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

/// The homes that an object's name means: a variable, or the line of an allocation (`main.c:12`).
pub(crate) fn homes_named(known: &PlanInputs<'_>, name: &str) -> Vec<Home> {
    let classes = known.profile.classes.iter().filter(|class| match &class.home {
        Home::Global { symbol, .. } => symbol == name || (known.written)(symbol) == name,
        Home::Heap { site, path, .. } => {
            steps(known, *site, *path).any(|step| is_called(&step.line, name))
                || known
                    .profile
                    .paths
                    .functions(*path)
                    .any(|function| known.names.string(known.names.function(function).name) == name)
        }
        Home::Stack { .. } | Home::Unknown => false,
    });
    classes.map(|class| class.home.clone()).collect()
}

/// The name by which edits know the objects of a home, if it is theirs alone.
pub(crate) fn name_of(known: &PlanInputs<'_>, home: &Home) -> Option<String> {
    let names: Vec<String> = match home {
        Home::Global { symbol, .. } => vec![(known.written)(symbol)],
        Home::Heap { site, path, .. } => {
            // Functions that only pass on a block name it where nothing else does.
            let (passed_on, own): (Vec<Step>, Vec<Step>) =
                steps(known, *site, *path).partition(|step| step.passes_on);
            let all: Vec<String> = own.into_iter().chain(passed_on).map(|step| step.line).collect();
            let file = |line: &String| line.rsplit('/').next().unwrap_or(line).to_string();
            all.iter().map(file).chain(all.iter().cloned()).collect()
        }
        Home::Stack { .. } | Home::Unknown => Vec::new(),
    };
    names.into_iter().find(|name| homes_named(known, name) == [home.clone()])
}

/// Returns whether a line of a path goes by a name: the path, or the last parts of it.
fn is_called(line: &str, name: &str) -> bool {
    line == name || line.strip_suffix(name).is_some_and(|before| before.ends_with('/'))
}

/// A line on the way of a block from its allocator to its user.
struct Step {
    /// `file:line`.
    line: String,
    passes_on: bool,
}

/// The lines of an allocating call and of the calls of its path, the innermost first, each with those that
/// they were inlined into.
fn steps(known: &PlanInputs<'_>, site: SiteId, path: PathId) -> impl Iterator<Item = Step> {
    let names = known.names;
    let made_at = names.site(site);
    let calls = known.profile.paths.steps(path).filter_map(|(_, call)| call);
    let chains = made_at.location.into_iter().chain(calls);
    chains.flat_map(|location| names.inline_chain(location)).filter_map(move |at| {
        let line = format!("{}:{}", names.file_name(at)?, at.line);
        Some(Step { line, passes_on: names.passes_on(at.function, made_at) })
    })
}

/// Looks whether the types that edits name are in a trace, of which nothing needs to be counted for
/// that. Names of objects are not looked at, and names that may be either.
///
/// # Errors
/// The first type that is not there.
pub fn check_types(names: &SiteTable, edits: &[Edit]) -> Result<(), PlanError> {
    let is_known = |edit: &&Edit| match edit {
        Edit::Reorder { structure, .. }
        | Edit::Split { structure, .. }
        | Edit::Soa { structure, .. }
        | Edit::Aosoa { structure, .. }
        | Edit::AlignMembers { structure, .. }
        | Edit::Index { structure, .. }
        | Edit::Narrow { structure, .. }
        | Edit::Remove { structure, .. }
        | Edit::Pack { structure } => !records_named(names, structure).is_empty(),
        _ => true,
    };
    match edits.iter().find(|edit| !is_known(edit)) {
        Some(edit) => Err(unknown_type(names, edit, edit.subject())),
        None => Ok(()),
    }
}

pub(crate) fn unknown_type(names: &SiteTable, edit: &Edit, name: &str) -> PlanError {
    let layouts = names.layouts().all().iter();
    let mut all: Vec<String> = layouts
        .filter(|layout| layout.is_record() && !layout.is_incomplete)
        .filter_map(|layout| layout.name)
        .map(|id| names.string(id).to_string())
        .collect();
    all.sort();
    all.dedup();
    PlanError::Unknown {
        edit: edit.to_string(),
        what: "type",
        name: name.to_string(),
        known: nearest(name, all),
    }
}

pub(crate) fn unknown_object(known: &PlanInputs<'_>, edit: &Edit, name: &str) -> PlanError {
    // What nothing accesses is of no use to name, such as what the linker adds.
    let cells = known.profile.cells.iter().filter(|cell| cell.counts.accesses() > 0);
    let used: FxHashSet<usize> = cells.map(|cell| cell.class.0 as usize).collect();
    let classes = known.profile.classes.iter().enumerate();
    let mut all: Vec<String> = Vec::new();
    for (_, class) in classes.filter(|(number, _)| used.contains(number)) {
        match &class.home {
            Home::Global { symbol, .. } => all.push((known.written)(symbol)),
            Home::Heap { site, path, .. } => {
                all.extend(steps(known, *site, *path).map(|step| step.line));
            }
            Home::Stack { .. } | Home::Unknown => {}
        }
    }
    all.sort();
    all.dedup();
    let known = nearest(name, all);
    PlanError::Unknown { edit: edit.to_string(), what: "object", name: name.to_string(), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_the_ends_of_paths() {
        let bucket = "indexmap::Bucket<u64, orders::Order>";
        assert!(is_short_for("Bucket", bucket) && is_short_for("indexmap::Bucket", bucket));
        assert!(is_short_for("Order", "orders::Order"));
        for other in ["ucket", "Order", "u64", "", "indexmap", "Bucket<u64, orders::Order>"] {
            assert!(!is_short_for(other, bucket), "{other}");
        }
    }
}
