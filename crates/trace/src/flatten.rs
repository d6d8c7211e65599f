//! Site tables of all modules to one [`SiteTable`], and segments to code a decoder runs.

mod layouts;
mod work;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::{Call, Caller, TableCall};
use crate::compiled::CompiledSources;
use crate::format::call_flag;
use crate::module::Module;
use crate::sites::{
    Function, FunctionId, Location, LocationId, Site, SiteId, SiteTable, StringId, Type, TypeId,
};
use crate::table::{Op, Source, Table, TableSite};
use crate::unrecorded::TablePlace;
use crate::untyped;
use crate::{LeftOut, Unrecorded, UnrecordedId};

use layouts::LayoutBook;
use work::WorkBook;

/// The segments of a module, in terms of the whole trace.
#[derive(Default)]
pub(crate) struct Code {
    /// For each anchor an index into `segments`.
    anchors: Vec<Option<u32>>,
    segments: Vec<CodeSegment>,
    templates: Vec<Template>,
    marks: Vec<(u16, Op)>,
    ops: Vec<Op>,
    sources: Vec<Source>,
}

/// The work of one execution of a segment.
pub(crate) struct CodeSegment {
    pub function: FunctionId,
    /// Words behind the header.
    pub words: u16,
    /// Access, range, masked and gather ops; 0 if it repeats strides.
    pub accesses: u32,
    /// Calls by which a function may be entered next.
    pub caller: Caller,
    /// Places that are executed as often, and not recorded.
    pub unrecorded: Option<UnrecordedId>,
    templates: (u32, u32),
    marks: (u32, u32),
    ops: (u32, u32),
    sources: (u32, u32),
}

/// An access op, ready to be filled in.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    /// Added to the word.
    pub offset: i32,
    pub bytes: u32,
    pub site: SiteId,
    pub word: u16,
    /// The segment that has the word: 0 is the segment itself, n is its source n − 1.
    pub source: u16,
}

impl Code {
    /// The segment an anchor stands for.
    pub fn segment(&self, anchor: u32) -> Option<&CodeSegment> {
        let index = (*self.anchors.get(anchor as usize)?)?;
        Some(&self.segments[index as usize])
    }

    /// The accesses of a segment, if it is plain: all that it has are accesses of known size, and
    /// marks.
    pub fn templates(&self, segment: &CodeSegment) -> &[Template] {
        &self.templates[segment.templates.0 as usize..segment.templates.1 as usize]
    }

    /// The marks of a plain segment, each with the number of accesses before it.
    pub fn marks(&self, segment: &CodeSegment) -> &[(u16, Op)] {
        &self.marks[segment.marks.0 as usize..segment.marks.1 as usize]
    }

    /// The segments whose words a segment refers to: offsets are the distances of their anchors.
    pub fn sources(&self, segment: &CodeSegment) -> &[Source] {
        &self.sources[segment.sources.0 as usize..segment.sources.1 as usize]
    }

    /// The ops of a segment that is not plain; sites are those of the whole trace.
    pub fn ops(&self, segment: &CodeSegment) -> &[Op] {
        &self.ops[segment.ops.0 as usize..segment.ops.1 as usize]
    }
}

/// Gives equal values one number.
struct Interner<T> {
    numbers: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { numbers: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn number(&mut self, value: T) -> u32 {
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

/// Collects modules.
#[derive(Default)]
pub(crate) struct Flattener {
    strings: Interner<Arc<str>>,
    functions: Interner<Function>,
    locations: Interner<Location>,
    types: Interner<Type>,
    sites: Interner<Site>,
    layouts: LayoutBook,
    work: WorkBook,
    calls: Interner<Vec<Call>>,
    unrecorded: Interner<Vec<Unrecorded>>,
    /// Linkage names of functions of the modules.
    compiled: FxHashSet<StringId>,
    sources: CompiledSources,
    untyped: FxHashSet<FunctionId>,
    table_flags: u16,
    has_values: bool,
    left_out: BTreeMap<LeftOut, u64>,
    /// Rules and names that the user gave, and whether any unit has something for them.
    asked: BTreeMap<Arc<str>, bool>,
}

impl SiteTable {
    /// The sites of one module alone.
    pub fn of_module(module: &Module) -> SiteTable {
        let mut all = Flattener::default();
        all.add(module);
        all.table()
    }
}

/// New numbers of the entries of one translation unit.
struct Numbers {
    strings: Vec<StringId>,
    functions: Vec<FunctionId>,
    locations: Vec<LocationId>,
    types: Vec<TypeId>,
}

impl Flattener {
    /// Adds a module. Segments whose anchors the linker dropped leave no sites.
    pub fn add(&mut self, module: &Module) -> Code {
        let numbers: Vec<Numbers> = module.tables.iter().map(|table| self.numbers(table)).collect();
        self.table_flags |= module.tables.iter().fold(0, |flags, table| flags | table.flags);
        let has_value = |table: &Table| table.ops.iter().any(|op| matches!(op, Op::Value { .. }));
        self.has_values |= module.tables.iter().any(has_value);
        for (reason, count) in module.tables.iter().flat_map(|table| &table.left_out) {
            let sum = self.left_out.entry(*reason).or_default();
            *sum = sum.saturating_add(*count);
        }
        for table in &module.tables {
            for &(text, matched) in &table.asked {
                *self.asked.entry(table.strings[text as usize].as_str().into()).or_default() |= matched;
            }
        }
        let mut code = Code::default();
        // The sites of the ops of each table whose anchors were kept.
        let mut sites: Vec<_> = module.tables.iter().map(|table| vec![None; table.ops.len()]).collect();
        let beside: Vec<_> = module.tables.iter().map(by_segment).collect();
        for anchor in 0..module.anchor_count() as u32 {
            let segment = module.segment(anchor).map(|(table, segment)| {
                let found = (&numbers[table], &mut sites[table][..]);
                self.segment(&module.tables[table], found, segment, &beside[table], &mut code);
                code.segments.len() as u32 - 1
            });
            code.anchors.push(segment);
        }
        for (table, sites) in module.tables.iter().zip(&sites) {
            self.work.add(table, sites);
        }
        // The linker may have taken another compiler's copy of one.
        let foreign = module.image().foreign.functions.iter().filter(|function| !function.is_local);
        let foreign: FxHashSet<&str> = foreign.map(|function| function.name.as_str()).collect();
        for (table, numbers) in module.tables.iter().zip(&numbers) {
            let silent = table.unrecorded.silent.iter().map(|&name| name as usize);
            let ours = silent.filter(|&name| !foreign.contains(table.strings[name].as_str()));
            self.compiled.extend(ours.map(|name| numbers.strings[name]));
        }
        code
    }

    /// The table of everything added so far.
    pub fn table(&self) -> SiteTable {
        SiteTable {
            strings: self.strings.values.clone(),
            functions: self.functions.values.clone(),
            locations: self.locations.values.clone(),
            types: self.types.values.clone(),
            sites: self.sites.values.clone(),
            layouts: self.layouts.layouts(&self.strings.values),
            work: self.work.work(),
            table_flags: self.table_flags,
            has_values: self.has_values,
            left_out: self.left_out.clone(),
            calls: self.calls.values.clone(),
            unrecorded: self.unrecorded.values.clone(),
            compiled: self.compiled.clone(),
            sources: self.sources.clone(),
            untyped: untyped::accessed(
                &self.untyped,
                (&self.sites.values, &self.locations.values, &self.types.values),
            ),
            unmatched: self
                .asked
                .iter()
                .filter(|(_, matched)| !**matched)
                .map(|(text, _)| text.clone())
                .collect(),
        }
    }

    fn numbers(&mut self, table: &Table) -> Numbers {
        let strings: Vec<_> =
            table.strings.iter().map(|text| StringId(self.strings.number(text.as_str().into()))).collect();
        let string = |index: u32| strings[index as usize];
        let file = |index: u32| {
            let (directory, name) = table.files[index as usize];
            (string(directory), string(name))
        };
        let function = |function: &crate::table::TableFunction| Function {
            name: string(function.name),
            linkage_name: string(function.linkage_name),
            file: function.file.map(file),
            line: function.line,
        };
        self.sources.directories.extend(table.compiled.directory.map(string));
        for &(index, checksum) in &table.compiled.checksums {
            self.sources.checksums.entry(file(index)).or_default().insert(checksum);
        }
        let functions: Vec<_> =
            table.functions.iter().map(|f| FunctionId(self.functions.number(function(f)))).collect();
        self.untyped.extend(table.untyped.iter().map(|&function| functions[function as usize]));
        let mut locations: Vec<LocationId> = Vec::with_capacity(table.locations.len());
        for location in &table.locations {
            let number = self.locations.number(Location {
                function: functions[location.function as usize],
                line: location.line,
                column: location.column,
                inlined_at: location.inlined_at.map(|outer| locations[outer as usize]),
            });
            locations.push(LocationId(number));
        }
        let types = table.types.iter().map(|&(name, bytes)| Type { name: string(name), bytes });
        let types: Vec<_> = types.map(|ty| TypeId(self.types.number(ty))).collect();
        self.layouts.add(&table.descriptions, &strings, &types);
        Numbers { strings, functions, locations, types }
    }

    /// Adds a segment; returns the sites of its ops.
    fn segment(
        &mut self,
        table: &Table,
        (numbers, sites): (&Numbers, &mut [Option<SiteId>]),
        segment: usize,
        beside: &FxHashMap<u32, Vec<TablePlace>>,
        code: &mut Code,
    ) {
        let places = beside.get(&(segment as u32)).map_or(&[][..], Vec::as_slice);
        let calls = table.calls.get(segment).map_or(&[][..], Vec::as_slice);
        let segment = &table.segments[segment];
        let function = numbers.functions[segment.function as usize];
        let ops = &table.ops[segment.ops.start as usize..segment.ops.end as usize];
        let plain = is_plain(ops);
        let (first_template, first_mark) = (code.templates.len() as u32, code.marks.len() as u32);
        let first_op = code.ops.len() as u32;
        for (number, &op) in ops.iter().enumerate() {
            let op = op.with_site(|site| {
                let site = self.site(&table.sites[site as usize], numbers, function);
                sites[segment.ops.start as usize + number] = Some(SiteId(site));
                site
            });
            let (site, source, at) = match op {
                op if !plain => {
                    code.ops.push(op);
                    continue;
                }
                Op::Access { site, at } => (site, 0, at),
                Op::Derived { site, source, at } => (site, source + 1, at),
                op => {
                    let before = code.templates.len() as u32 - first_template;
                    code.marks.push((before as u16, op));
                    continue;
                }
            };
            let bytes = self.sites.values[site as usize].bytes;
            let (offset, site) = (at.offset as i32, SiteId(site));
            code.templates.push(Template { offset, bytes, site, word: at.word, source });
        }
        let first_source = code.sources.len() as u32;
        let sources = segment.sources.start as usize..segment.sources.end as usize;
        code.sources.extend_from_slice(&table.sources[sources]);
        code.segments.push(CodeSegment {
            function,
            words: segment.words,
            accesses: segment.accesses,
            caller: self.caller(calls, ops, numbers),
            unrecorded: self.unrecorded(places, function, numbers),
            templates: (first_template, code.templates.len() as u32),
            marks: (first_mark, code.marks.len() as u32),
            ops: (first_op, code.ops.len() as u32),
            sources: (first_source, code.sources.len() as u32),
        });
    }

    /// Returns the caller of a function that is entered after a segment with these calls and ops.
    fn caller(&mut self, calls: &[TableCall], ops: &[Op], numbers: &Numbers) -> Caller {
        if ops.contains(&Op::Exit) {
            return Caller::RETURNED;
        }
        if calls.is_empty() {
            return Caller::UNKNOWN;
        }
        let call = |&(location, callee, flags): &TableCall| Call {
            location: location.map(|index| numbers.locations[index as usize]),
            callee: callee.map(|index| numbers.strings[index as usize]),
            is_exact: u32::from(flags) & call_flag::EXACT != 0,
        };
        Caller::new(self.calls.number(calls.iter().map(call).collect()))
    }

    /// Returns the number of the places beside a segment of a function. Reasons that were added
    /// later are skipped.
    fn unrecorded(
        &mut self,
        places: &[TablePlace],
        function: FunctionId,
        numbers: &Numbers,
    ) -> Option<UnrecordedId> {
        self.compiled.insert(self.functions.values[function.0 as usize].linkage_name);
        let place = |&(reason, location, callee): &TablePlace| {
            Some(Unrecorded {
                reason: LeftOut::from_format(reason)?,
                function,
                location: location.map(|index| numbers.locations[index as usize]),
                callee: callee.map(|index| numbers.strings[index as usize]),
            })
        };
        let places: Vec<_> = places.iter().filter_map(place).collect();
        (!places.is_empty()).then(|| UnrecordedId(self.unrecorded.number(places)))
    }

    fn site(&mut self, site: &TableSite, numbers: &Numbers, function: FunctionId) -> u32 {
        let string = |index: u32| numbers.strings[index as usize];
        self.sites.number(Site {
            kind: site.kind,
            evidence: site.evidence,
            flags: site.flags,
            bytes: site.bytes,
            function,
            location: site.location.map(|location| numbers.locations[location as usize]),
            variable: site.variable.map(string),
            ty: site.ty.map(|ty| numbers.types[ty as usize]),
            member: site.member.map(string),
        })
    }
}

/// Returns the places of a table that are not recorded, by segment.
fn by_segment(table: &Table) -> FxHashMap<u32, Vec<TablePlace>> {
    let mut found: FxHashMap<u32, Vec<TablePlace>> = FxHashMap::default();
    for &(segment, place) in &table.unrecorded.places {
        found.entry(segment).or_default().push(place);
    }
    found
}

/// Returns whether a segment has nothing but marks and accesses of known size, in numbers that a
/// [`Template`] and a plan of it have room for.
fn is_plain(ops: &[Op]) -> bool {
    ops.len() <= usize::from(u16::MAX)
        && ops.iter().all(|op| match op {
            Op::Access { at, .. } | Op::Derived { at, .. } => i32::try_from(at.offset as i64).is_ok(),
            op => op.is_mark(),
        })
}
