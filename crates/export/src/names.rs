//! Names of the cells of annotated accesses: keys of dictionaries.

use std::hash::Hash;
use std::sync::Arc;

use memlode_attribute::Home;
use memlode_attribute::annotate::{Cells, EventObject};
use memlode_attribute::place::{Line, place};
use memlode_report::build::naming::Naming;
use memlode_report::render::terminal;
use memlode_trace::Trace;
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteKind, StringId};
use rustc_hash::FxHashMap;

use crate::table::Strings;

/// No name.
pub(crate) const NONE: i32 = -1;

/// Kinds of accesses.
pub(crate) const KINDS: [&str; 6] = ["load", "store", "atomic load", "atomic store", "update", "prefetch"];

/// Homes of objects; memory of unknown origin has none.
pub(crate) const HOMES: [&str; 3] = ["heap", "global", "stack"];

/// A row's text besides its own numbers: its cell's keys.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub process: u32,
    pub thread: u32,
    pub site: u32,
    pub object_kind: i8,
    pub object: i32,
    pub of_site: SiteKeys,
}

/// A site's text.
#[derive(Clone, Copy)]
pub(crate) struct SiteKeys {
    pub kind: i8,
    /// 0 if unknown.
    pub line: u32,
    pub function: i32,
    pub file: i32,
    pub inlined_into: i32,
    pub variable: i32,
    pub ty: i32,
    pub member: i32,
}

/// Names, and which cell has which.
pub(crate) struct Names {
    trace: Arc<Trace>,
    sites: Vec<SiteKeys>,
    /// Indexed by cell.
    pub cells: Vec<Keys>,
    /// Indexed by object: its kind and name.
    pub objects: Vec<(i8, i32)>,
    object_names: Dictionary<u32>,
    pub functions: Arc<Strings>,
    pub files: Arc<Strings>,
    pub inlined_into: Arc<Strings>,
    pub variables: Arc<Strings>,
    pub types: Arc<Strings>,
    pub members: Arc<Strings>,
    /// Grows as objects are met.
    pub object_texts: Arc<Strings>,
}

impl Names {
    /// Formats the names of a trace's sites.
    pub fn new(trace: Arc<Trace>) -> Names {
        let mut names = SiteNames::default();
        let sites = trace.sites().sites().iter().map(|site| names.keys(&trace, site)).collect();
        Names {
            sites,
            cells: Vec::new(),
            objects: Vec::new(),
            object_names: Dictionary::default(),
            functions: names.functions.texts(),
            files: names.files.texts(),
            inlined_into: names.lines.texts(),
            variables: names.variables.texts(),
            types: names.types.texts(),
            members: names.members.texts(),
            object_texts: Arc::default(),
            trace,
        }
    }

    /// Takes note of the cells and objects that were not there before.
    pub fn learn(&mut self, cells: &Cells) {
        let known = self.objects.len();
        for (number, object) in cells.objects.iter().enumerate().skip(known) {
            let entry = self.object(number as u32, object);
            self.objects.push(entry);
        }
        if self.objects.len() > known {
            self.object_texts = self.object_names.texts();
        }
        for cell in &cells.cells[self.cells.len()..] {
            let thread = &self.trace.threads()[cell.thread.0 as usize];
            let (object_kind, object) = self.objects[cell.object as usize];
            self.cells.push(Keys {
                process: thread.process.0,
                thread: cell.thread.0,
                site: cell.site.0,
                object_kind,
                object,
                of_site: self.sites[cell.site.0 as usize],
            });
        }
    }

    fn object(&mut self, number: u32, object: &EventObject) -> (i8, i32) {
        let kind = match object.home {
            Home::Unknown => return (NONE as i8, NONE),
            Home::Heap { .. } => 0,
            Home::Global { .. } => 1,
            Home::Stack { .. } => 2,
        };
        let naming = Naming::new(self.trace.sites());
        let text = || terminal::home(&naming.home(&object.home, object.path.iter().copied()));
        (kind, self.object_names.key(number, text))
    }
}

#[derive(Default)]
struct SiteNames {
    functions: Dictionary<StringId>,
    files: Dictionary<(StringId, StringId)>,
    lines: Dictionary<Line>,
    variables: Dictionary<StringId>,
    types: Dictionary<StringId>,
    members: Dictionary<StringId>,
}

impl SiteNames {
    fn keys(&mut self, trace: &Trace, site: &Site) -> SiteKeys {
        let table = trace.sites();
        let naming = Naming::new(table);
        let place = place(table, site);
        let text = |id: StringId| move || table.string(id).to_string();
        SiteKeys {
            kind: kind(site),
            line: place.line.line,
            function: self.functions.key(place.line.function, || naming.line(&place.line).function),
            file: place.line.file.map_or(NONE, |file| self.files.key(file, || naming.file(file))),
            inlined_into: place
                .inlined_into
                .map_or(NONE, |line| self.lines.key(line, || terminal::place(&naming.line(&line)))),
            variable: site.variable.map_or(NONE, |id| self.variables.key(id, text(id))),
            ty: site.ty.map_or(NONE, |ty| {
                let name = table.ty(ty).name;
                self.types.key(name, text(name))
            }),
            member: site.member.map_or(NONE, |id| self.members.key(id, text(id))),
        }
    }
}

/// The number of a site's kind among [`KINDS`].
pub(crate) fn kind(site: &Site) -> i8 {
    match (site.kind, site.flags & flag::ATOMIC != 0) {
        _ if site.is_prefetch() => 5,
        (SiteKind::Store, false) => 1,
        (SiteKind::Store, true) => 3,
        (SiteKind::Update, _) => 4,
        (_, false) => 0,
        (_, true) => 2,
    }
}

/// Texts, each once, and which id has which.
struct Dictionary<K> {
    ids: FxHashMap<K, i32>,
    /// Different ids may have the same text.
    numbers: FxHashMap<String, i32>,
    strings: Strings,
}

impl<K> Default for Dictionary<K> {
    fn default() -> Dictionary<K> {
        Dictionary { ids: FxHashMap::default(), numbers: FxHashMap::default(), strings: Strings::default() }
    }
}

impl<K: Hash + Eq> Dictionary<K> {
    fn key(&mut self, id: K, text: impl FnOnce() -> String) -> i32 {
        let Dictionary { ids, numbers, strings } = self;
        *ids.entry(id).or_insert_with(|| {
            let text = text();
            match numbers.get(&text) {
                Some(&number) => number,
                None => {
                    let number = strings.push(&text);
                    numbers.insert(text, number);
                    number
                }
            }
        })
    }

    fn texts(&self) -> Arc<Strings> {
        Arc::new(self.strings.clone())
    }
}
