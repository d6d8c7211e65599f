//! From ids of a trace's site table to names spelled out.

use memlode_attribute::Home;
use memlode_attribute::libraries::is_library_function;
use memlode_attribute::place::{Line, Place, What, place};
use memlode_trace::sites::{Function, FunctionId, Location, LocationId, Site, SiteTable, StringId};
use rustc_hash::FxHashSet;

use crate::model;
use crate::names::{demangle, is_parallel_region, parallel_region_at, short_name};

/// Accesses whose line is that of a neighbouring instruction: those of some data at a place, and all of a place.
pub(crate) type Borrowed = FxHashSet<(Option<What>, Place)>;

/// A function of a call path, and where it was called.
pub(crate) type Step = (FunctionId, Option<LocationId>);

/// Formats the names of a trace's site table.
#[derive(Clone, Copy)]
pub struct Naming<'t> {
    names: &'t SiteTable,
    borrowed: Option<&'t Borrowed>,
}

impl<'t> Naming<'t> {
    /// For the ids of a table.
    pub fn new(names: &'t SiteTable) -> Naming<'t> {
        Naming { names, borrowed: None }
    }

    /// Marks the lines of these as those of neighbouring instructions.
    pub(crate) fn borrowing(self, borrowed: &'t Borrowed) -> Naming<'t> {
        Naming { borrowed: Some(borrowed), ..self }
    }

    pub(crate) fn string(self, id: StringId) -> String {
        self.names.string(id).to_string()
    }

    /// Returns the name of an access's data.
    pub fn data(self, what: &What) -> model::Data {
        model::Data {
            ty: what.ty.map(|id| self.string(id)),
            member: what.member.map(|id| self.string(id)),
            variable: what.variable.map(|id| self.string(id)),
        }
    }

    /// Returns the names of an access's data and place.
    pub fn access(self, what: &What, place: &Place) -> model::Access {
        model::Access { data: self.data(what), position: self.position_of(Some(*what), place) }
    }

    /// Returns where it stands.
    pub fn position(self, place: &Place) -> model::Position {
        self.position_of(None, place)
    }

    fn position_of(self, what: Option<What>, place: &Place) -> model::Position {
        let inlined_into = place.inlined_into.map(|line| Box::new(self.line(&line)));
        let borrowed = self.borrowed.is_some_and(|borrowed| borrowed.contains(&(what, *place)));
        // The mark is for the line that is shown first.
        let inlined_into = inlined_into.map(|into| Box::new(model::Position { borrowed, ..*into }));
        let borrowed = borrowed && inlined_into.is_none();
        model::Position { borrowed, inlined_into, ..self.line(&place.line) }
    }

    /// A line.
    pub fn line(self, line: &Line) -> model::Position {
        let linkage_name = self.string(line.function);
        model::Position {
            file: line.file.map(|file| self.file(file)),
            line: (line.line > 0).then_some(line.line),
            function: self.written(line.function),
            linkage_name,
            borrowed: false,
            untyped: false,
            inlined_into: None,
        }
    }

    /// A linkage name as its language writes it; a function may have several parallel regions, so theirs
    /// have the line where each begins.
    pub(crate) fn written(self, linkage: StringId) -> String {
        let name = demangle(self.names.string(linkage));
        if !is_parallel_region(self.names.string(linkage)) {
            return name;
        }
        let begins = |of: &&Function| of.linkage_name == linkage && of.line > 0;
        match self.names.functions().iter().find(begins) {
            Some(of) => parallel_region_at(&name, of.line),
            None => name,
        }
    }

    /// A file by its directory and name.
    pub fn file(self, file: (StringId, StringId)) -> String {
        self.names.path(file)
    }

    fn function(self, id: FunctionId) -> String {
        let function = self.names.function(id);
        let mangled = self.names.string(function.linkage_name);
        if mangled.is_empty() {
            return self.string(function.name);
        }
        short_name(&self.written(function.linkage_name), mangled)
    }

    /// The functions of a path, from the first that is the program's own: how a `Vec` grows is the same for all. Each with
    /// the lines by which it called the one before it.
    fn callers(
        self,
        path: impl Iterator<Item = Step>,
        site: &Site,
    ) -> (Vec<String>, Vec<Vec<model::Position>>) {
        let all: Vec<Step> = path.collect();
        let own = all.iter().position(|step| !is_library_function(self.names, step.0)).unwrap_or(0);
        let calls = (own..all.len()).map(|at| at.checked_sub(1).and_then(|inner| all[inner].1));
        let calls = calls.map(|call| call.map_or(Vec::new(), |call| self.call(call, site)));
        (all[own..].iter().map(|step| self.function(step.0)).collect(), calls.collect())
    }

    /// The lines of a call, from the first one that is the program's own to the outermost.
    fn call(self, location: LocationId, site: &Site) -> Vec<model::Position> {
        let lines: Vec<&Location> = self.names.inline_chain(location).collect();
        let own = lines.iter().position(|at| !is_library_function(self.names, at.function)).unwrap_or(0);
        lines[own..].iter().map(|at| self.step(at, site)).collect()
    }

    /// A line on the way of a block from the allocating call of a site to the one who uses it.
    fn step(self, at: &Location, site: &Site) -> model::Position {
        let untyped = self.names.passes_on(at.function, site);
        model::Position { untyped, ..self.line(&Line::of(self.names, at.function, at.line)) }
    }

    /// The line of an allocating call. It is right, whatever line accesses borrow.
    fn allocation(self, site: &Site) -> model::Position {
        let named = place(self.names, site);
        let mut position = Naming::new(self.names).position(&named);
        let line = named.inlined_into.unwrap_or(named.line);
        let mut chain = site.location.into_iter().flat_map(|location| self.names.inline_chain(location));
        let at = chain.find(|at| Line::of(self.names, at.function, at.line) == line);
        let untyped = self.names.passes_on(at.map_or(site.function, |at| at.function), site);
        match &mut position.inlined_into {
            Some(into) => into.untyped = untyped,
            None => position.untyped = untyped,
        }
        position
    }

    /// The lines that an allocating call was inlined into, behind that which [`place`] names.
    fn inlined_through(self, site: &Site) -> Vec<model::Position> {
        let Some(location) = site.location else { return Vec::new() };
        let named = place(self.names, site);
        let named = named.inlined_into.unwrap_or(named.line);
        let is_named = |at: &&Location| Line::of(self.names, at.function, at.line) == named;
        let chain = self.names.inline_chain(location);
        chain.skip_while(|at| !is_named(at)).skip(1).map(|at| self.step(at, site)).collect()
    }

    /// Returns where objects live; `path` is the call path of heap objects, the innermost function first, each with the call
    /// by which the next one entered it.
    pub fn home(self, home: &Home, path: impl Iterator<Item = Step>) -> model::Home {
        match home {
            Home::Unknown => model::Home::Unknown,
            Home::Heap { site, dormant, .. } => {
                let made_at = self.names.site(*site);
                let (path, called_at) = self.callers(path, made_at);
                let allocated_at = self.allocation(made_at);
                let inlined_through = self.inlined_through(made_at);
                model::Home::Heap { allocated_at, inlined_through, path, called_at, path_complete: !dormant }
            }
            Home::Global { symbol, image } => {
                model::Home::Global { symbol: demangle(symbol), image: image.clone() }
            }
            Home::Stack { function, variable } => model::Home::Stack {
                function: self.function(*function),
                variable: variable.map(|id| self.string(id)),
            },
        }
    }
}
