//! Handles: short names of findings, by which other recordings of a program name them, too.
//!
//! A handle is the beginning of a hash of a rule and of the names of its subject: type and member, or
//! variable; functions by their linkage names; files without their folders. So it stays on another
//! machine, in another folder and with other numbers of threads, and where lines above it are edited.
//!
//! Lines decide one thing: which of several places with equal names is meant. Places are counted in the
//! program's own tables, executed or not, so that a run that takes another way counts them alike.

use std::collections::{BTreeMap, BTreeSet};

use memlode_attribute::place::{place, what};
use memlode_layout::Edit;
use memlode_trace::sites::{FunctionId, SiteTable, StringId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::naming::Naming;
use crate::model::{Access, Data, Home, Object, Position, Report, SharedData, SharedLock, SharedObject};
use crate::names::without_hash;

/// Bytes of a hash that are kept: of a hundred findings, two have one handle in a million reports.
const BYTES: usize = 4;

/// Names of a subject, in order.
type Names = Vec<String>;

/// Gives each finding of a report, and whatever threads share, its handle.
pub(crate) fn name_findings(names: &SiteTable, report: &mut Report) {
    let mut functions = BTreeSet::new();
    visit_positions(report, &mut |position| {
        functions.insert(position.linkage_name.clone());
    });
    let places = Places::of(names, &functions);
    name_rows(
        &mut report.findings,
        |found| [vec![found.analysis.to_string()], places.access(&found.subject)].concat(),
        |found| order_of(&found.subject.position),
        |found, handle| found.handle = handle,
    );
    let Some(sharing) = &mut report.sharing else { return };
    name_rows(
        &mut sharing.objects,
        |found| [vec!["shared object".into()], places.object(&found.object)].concat(),
        |found| order_of(&(&found.object.home, found.stack_of)),
        |found: &mut SharedObject, handle| found.handle = handle,
    );
    name_rows(
        &mut sharing.locks,
        |found| [vec!["lock".into()], places.lock(found)].concat(),
        |found| order_of(&(&found.object.home, found.access.as_ref().map(|access| &access.position))),
        |found: &mut SharedLock, handle| found.handle = handle,
    );
    for (rule, pairs) in [
        ("false sharing", &mut sharing.false_sharing),
        ("true sharing", &mut sharing.true_sharing),
        ("handed over", &mut sharing.handed_over),
    ] {
        name_rows(
            pairs,
            |found| [vec![rule.to_string()], places.pair(found)].concat(),
            |found| {
                let written = found.written.as_ref().map(|side| &side.access.position);
                order_of(&(&found.object.home, &found.missed.access.position, written, found.stack_of))
            },
            |found: &mut SharedData, handle| found.handle = handle,
        );
    }
}

/// The handle of edits. Objects that they name by a line are meant by the function that it is in.
pub(crate) fn of_edits(names: &SiteTable, edits: &[Edit]) -> String {
    let mut text = vec!["advice".to_string()];
    for edit in edits {
        let mut words = edit.to_string();
        for object in edit.objects() {
            if let Some(line) = allocating_line(names, object) {
                words = words.replace(object, &line);
            }
        }
        text.push(words);
    }
    hash(&text)
}

/// `main.c:12` as the file, the function whose text holds the line, and which of its lines that is.
fn allocating_line(names: &SiteTable, object: &str) -> Option<String> {
    let (file, line) = object.rsplit_once(':')?;
    let (file, line) = (file_name(file), line.parse::<u32>().ok()?);
    let is_there = |name: Option<&str>| name.is_some_and(|name| file_name(name) == file);
    let of_file = names.locations().iter().filter(|at| at.line > 0 && is_there(names.file_name(at)));
    let function = |id: FunctionId| without_hash(names.string(names.symbol(id)));
    let mut lines: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for at in of_file {
        lines.entry(function(at.function)).or_default().insert(at.line);
    }
    let (function, lines) = lines.into_iter().find(|(_, lines)| lines.contains(&line))?;
    Some(format!("{file}/{function}/{}", lines.range(..line).count()))
}

/// Gives each row the handle of its names; those with the same ones are counted in this order.
fn name_rows<T>(
    rows: &mut [T],
    names: impl Fn(&T) -> Names,
    order: impl Fn(&T) -> String,
    set: impl Fn(&mut T, String),
) {
    let mut equal: BTreeMap<Names, Vec<(String, usize)>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        equal.entry(names(row)).or_default().push((order(row), at));
    }
    for (names, mut places) in equal {
        places.sort();
        for (number, (_, at)) in places.into_iter().enumerate() {
            let number = (number > 0).then(|| number.to_string());
            set(&mut rows[at], hash(&[names.clone(), number.into_iter().collect()].concat()));
        }
    }
}

fn order_of(subject: &impl Serialize) -> String {
    serde_json::to_string(subject).unwrap_or_default()
}

fn hash(names: &[String]) -> String {
    let text = serde_json::to_vec(names).unwrap_or_default();
    Sha256::digest(&text).iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Type and member, or else the variable: through which variable a member is reached says nothing of it.
fn data_names(data: &Data) -> [String; 3] {
    let variable = if data.member.is_some() { &None } else { &data.variable };
    [&data.ty, &data.member, variable].map(|name| name.clone().unwrap_or_default())
}

/// Function and file, and those that it was inlined into.
fn position_names(position: &Position) -> Names {
    let names = |position: &Position| {
        let file = position.file.as_deref().map_or("", file_name);
        [without_hash(&position.linkage_name), file.to_string()]
    };
    let outer = position.inlined_into.as_deref().map(names);
    names(position).into_iter().chain(outer.into_iter().flatten()).collect()
}

fn lines(position: &Position) -> (u32, u32) {
    let outer = position.inlined_into.as_deref().and_then(|outer| outer.line);
    (position.line.unwrap_or(0), outer.unwrap_or(0))
}

/// The places in the code of some functions, by their names.
struct Places {
    /// The places that access some data.
    of_data: BTreeMap<Names, BTreeSet<(u32, u32)>>,
    /// All places.
    all: BTreeMap<Names, BTreeSet<(u32, u32)>>,
    /// Lines of the functions' text, calls among them.
    text: BTreeMap<Names, BTreeSet<u32>>,
}

impl Places {
    fn of(names: &SiteTable, functions: &BTreeSet<String>) -> Places {
        let mut places = Places { of_data: BTreeMap::new(), all: BTreeMap::new(), text: BTreeMap::new() };
        let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
        let mut is_wanted = |id: FunctionId| {
            let symbol = names.symbol(id);
            *known.entry(symbol).or_insert_with(|| functions.contains(names.string(symbol)))
        };
        let mut seen = FxHashSet::default();
        for site in names.sites() {
            let holder = site.location.map_or(site.function, |at| names.location(at).function);
            if !is_wanted(holder) || !seen.insert((what(names, site, true), place(names, site))) {
                continue;
            }
            let access = Naming::new(names).access(&what(names, site, true), &place(names, site));
            let (position, lines) = (position_names(&access.position), lines(&access.position));
            let data = [data_names(&access.data).to_vec(), position.clone()].concat();
            places.of_data.entry(data).or_default().insert(lines);
            places.all.entry(position).or_default().insert(lines);
        }
        for at in names.locations().iter().filter(|at| at.line > 0) {
            if is_wanted(at.function) {
                let file = names.file_name(at).map_or("", file_name).to_string();
                let function = without_hash(names.string(names.symbol(at.function)));
                places.text.entry(vec![function, file]).or_default().insert(at.line);
            }
        }
        places
    }

    /// Data, function and file, and which of the places with these names it is.
    fn access(&self, access: &Access) -> Names {
        let data = data_names(&access.data).to_vec();
        let position = position_names(&access.position);
        let lines = lines(&access.position);
        let same = self.of_data.get(&[data.clone(), position.clone()].concat());
        // A member may have been found in another way than by the place's own names.
        let same = same.filter(|same| same.contains(&lines)).or_else(|| self.all.get(&position));
        let before = same.map_or(0, |same| same.range(..lines).count());
        [data, position, vec![before.to_string()]].concat()
    }

    /// Function and file of a line, and which of the function's lines it is.
    fn line(&self, position: &Position) -> Names {
        let mut names = position_names(&Position { inlined_into: None, ..position.clone() });
        let before = self.text.get(&names).map_or(0, |same| same.range(..lines(position).0).count());
        names.push(before.to_string());
        names
    }

    fn object(&self, object: &Object) -> Names {
        match &object.home {
            Home::Unknown => vec!["unknown".into()],
            Home::Heap { allocated_at, inlined_through, path, called_at, .. } => {
                let calls = inlined_through.iter().chain(called_at.iter().flatten());
                let calls = calls.flat_map(|call| self.line(call));
                let place = [vec!["heap".into()], self.line(allocated_at)].concat();
                place.into_iter().chain(path.iter().cloned()).chain(calls).collect()
            }
            Home::Global { symbol, .. } => vec!["global".into(), symbol.clone()],
            Home::Stack { function, variable } => {
                vec!["stack".into(), function.clone(), variable.clone().unwrap_or_default()]
            }
        }
    }

    /// The object and the lock in it, wherever it is taken.
    fn lock(&self, lock: &SharedLock) -> Names {
        let data = lock.access.as_ref().map(|access| data_names(&access.data).to_vec());
        [self.object(&lock.object), data.unwrap_or_default()].concat()
    }

    fn pair(&self, pair: &SharedData) -> Names {
        let written = pair.written.as_ref().map(|side| self.access(&side.access));
        let missed = self.access(&pair.missed.access);
        [self.object(&pair.object), missed, written.unwrap_or_default()].concat()
    }
}

/// Shows each position that the names of something depend on.
fn visit_positions(report: &Report, visit: &mut impl FnMut(&Position)) {
    report.findings.iter().for_each(|found| visit(&found.subject.position));
    let Some(sharing) = &report.sharing else { return };
    let pairs = [&sharing.false_sharing, &sharing.true_sharing, &sharing.handed_over];
    let pairs: Vec<&SharedData> = pairs.into_iter().flatten().collect();
    for side in pairs.iter().flat_map(|pair| [Some(&pair.missed), pair.written.as_ref()]).flatten() {
        visit(&side.access.position);
    }
    sharing.locks.iter().filter_map(|lock| lock.access.as_ref()).for_each(|access| visit(&access.position));
    let objects = pairs.iter().map(|pair| &pair.object);
    let objects = objects.chain(sharing.objects.iter().map(|found| &found.object));
    for object in objects.chain(sharing.locks.iter().map(|lock| &lock.object)) {
        if let Home::Heap { allocated_at, inlined_through, called_at, .. } = &object.home {
            visit(allocated_at);
            inlined_through.iter().chain(called_at.iter().flatten()).for_each(&mut *visit);
        }
    }
}
