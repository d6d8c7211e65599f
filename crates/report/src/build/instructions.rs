//! Instructions beneath the lines of a listing, each with the accesses of its site.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use memlode_attribute::libraries::is_library_path;
use memlode_attribute::place::place;
use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;
use memlode_symbols::code::{AccessedMemory, CodeLine, FunctionCode, Version};
use memlode_symbols::debug::DebugFrame;
use memlode_trace::Trace;
use memlode_trace::sites::{Site, SiteId, SiteKind, SiteTable};

use crate::build::listing::WantedLines;
use crate::build::naming::Naming;
use crate::build::rows_by;
use crate::model::{ListedCode, ListedInstruction, Listing, Numbers, Position, Precision};
use crate::names::demangle;

/// Functions that an access was inlined through, each with line and column, the innermost first.
type Chain = Vec<(String, u32, u32)>;

/// A site by line: its chain, the kind of access and its bytes.
type SiteKey = (Chain, SiteKind, u32);

/// The accesses of a trace by site, for instructions.
pub struct SiteCounts<'t> {
    names: &'t SiteTable,
    numbers: BTreeMap<SiteId, Numbers>,
}

impl<'t> SiteCounts<'t> {
    /// Sums a profile of `trace` on `machine` up.
    pub fn of(trace: &'t Trace, machine: &Machine, profile: &Profile) -> SiteCounts<'t> {
        let costs = CostModel::new(profile, trace.sites(), machine);
        let rows = rows_by(trace, machine, profile, &costs, |cell| Some(cell.site));
        let numbers = rows.into_iter().map(|row| (row.subject, row.numbers)).collect();
        SiteCounts { names: trace.sites(), numbers }
    }

    /// Names of the functions that hold code of a listing's lines, as linkers know them.
    pub fn functions(&self, listing: &Listing, wanted: &WantedLines) -> BTreeSet<String> {
        let lines = LineIndex::of(listing, wanted);
        let naming = Naming::new(self.names);
        let mut functions = BTreeSet::new();
        for id in self.numbers.keys() {
            let site = self.names.site(*id);
            if lines.find(&naming.position(&place(self.names, site))).is_some() {
                functions.insert(self.symbol(site));
            }
        }
        functions
    }

    /// Adds to a listing's lines the instructions that belong to them.
    pub fn add_to(&self, listing: &mut Listing, wanted: &WantedLines, code: &[FunctionCode]) {
        let lines = LineIndex::of(listing, wanted);
        let names: BTreeSet<&str> = code.iter().map(|of| of.name.as_str()).collect();
        let known = Known::of(self, code, &names);
        let mut found: Vec<((usize, usize), ListedInstruction)> = Vec::new();
        let mut parts: BTreeMap<usize, BTreeSet<(&str, Version)>> = BTreeMap::new();
        for of in code {
            for line in &of.lines {
                let Some(at) = position(&line.frames).and_then(|own| lines.find(&own)) else { continue };
                let (numbers, counted) = known.count(of, line);
                let (function, address, text) = (demangle(&of.name), line.address, line.text.clone());
                found.push((at, ListedInstruction { function, address, text, counted, numbers }));
                parts.entry(at.0).or_default().insert((&of.name, of.version));
            }
        }
        for ((part, line), instruction) in found {
            listing.parts[part].lines[line].instructions.push(instruction);
        }
        for (part, functions) in parts {
            let code = functions.into_iter().map(|(name, version)| ListedCode {
                function: demangle(name),
                version: match version {
                    Version::Plain => "plain".into(),
                    Version::Dormant => "dormant".into(),
                    Version::Recording => "recording".into(),
                },
            });
            listing.parts[part].code = code.collect();
        }
    }

    fn symbol(&self, site: &Site) -> String {
        self.names.string(self.names.symbol(site.function)).to_string()
    }

    fn chain(&self, site: &Site) -> Chain {
        let Some(location) = site.location else { return Chain::new() };
        let at = self.names.inline_chain(location);
        let one = |at: &memlode_trace::sites::Location| {
            (self.names.string(self.names.symbol(at.function)).to_string(), at.line, at.column)
        };
        at.map(one).collect()
    }
}

/// The lines of a listing by file name, function and number: paths are written in several ways.
struct LineIndex<'w> {
    wanted: &'w WantedLines,
    lines: HashMap<(String, Option<String>, u32), (usize, usize)>,
}

impl<'w> LineIndex<'w> {
    fn of(listing: &Listing, wanted: &'w WantedLines) -> LineIndex<'w> {
        let mut lines = HashMap::new();
        for (part_at, part) in listing.parts.iter().enumerate() {
            for (line_at, line) in part.lines.iter().enumerate() {
                if let (Some(file), Some(line)) = (&part.file, line.line) {
                    let key = (file_name(file), part.linkage_name.clone(), line);
                    lines.entry(key).or_insert((part_at, line_at));
                }
            }
        }
        LineIndex { wanted, lines }
    }

    /// The part and the line at which accesses of a position are listed.
    fn find(&self, own: &Position) -> Option<(usize, usize)> {
        let position = self.wanted.position(own)?;
        let (file, line) = (file_name(position.file.as_deref()?), position.line?);
        let function = (!matches!(self.wanted, WantedLines::File(..))).then(|| position.linkage_name.clone());
        self.lines.get(&(file, function, line)).copied()
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_string(), |name| name.to_string_lossy().into_owned())
}

/// The position of code with its functions, as in a report: for a library's text also the line
/// outside of libraries.
fn position(frames: &[DebugFrame]) -> Option<Position> {
    let of = |frame: &DebugFrame| {
        let position = frame.position.as_ref()?;
        let linkage_name = frame.function.clone().unwrap_or_default();
        Some(Position {
            file: Some(position.file.clone()),
            line: Some(position.line),
            function: demangle(&linkage_name),
            linkage_name,
            ..Position::default()
        })
    };
    let own = of(frames.first()?)?;
    let is_of_library = |position: &Position| position.file.as_deref().is_some_and(is_library_path);
    let mut outer = frames[1..].iter().filter_map(of);
    let into = is_of_library(&own).then(|| outer.find(|position| !is_of_library(position))).flatten();
    Some(Position { inlined_into: into.map(Box::new), ..own })
}

/// Sites and instructions of some functions, by their distinguishing facts.
struct Known<'c> {
    counts: &'c SiteCounts<'c>,
    sites: HashMap<SiteKey, Vec<SiteId>>,
    /// Lines with sites, by the innermost function and line.
    lines: BTreeSet<(String, u32, bool)>,
    uses: HashMap<SiteKey, u32>,
}

impl<'c> Known<'c> {
    fn of(counts: &'c SiteCounts<'c>, code: &[FunctionCode], names: &BTreeSet<&str>) -> Known<'c> {
        let mut known = Known { counts, sites: HashMap::new(), lines: BTreeSet::new(), uses: HashMap::new() };
        for (at, site) in counts.names.sites().iter().enumerate() {
            let is_access = matches!(site.kind, SiteKind::Load | SiteKind::Store | SiteKind::Update);
            if !is_access || !names.contains(counts.symbol(site).as_str()) {
                continue;
            }
            let chain = counts.chain(site);
            if let Some((function, line, _)) = chain.first() {
                let kinds = [(site.kind != SiteKind::Store, false), (site.kind.is_write(), true)];
                let kinds = kinds.into_iter().filter(|(is_it, _)| *is_it);
                known.lines.extend(kinds.map(|(_, is_write)| (function.clone(), *line, is_write)));
            }
            for chain in with_and_without_column(chain) {
                known.sites.entry((chain, site.kind, site.bytes)).or_default().push(SiteId(at as u32));
            }
        }
        for line in code.iter().flat_map(|of| &of.lines) {
            let chain = chain(line);
            for (kind, bytes) in line.memory.iter().flat_map(kinds) {
                for chain in with_and_without_column(chain.clone()) {
                    *known.uses.entry((chain, kind, bytes)).or_default() += 1;
                }
            }
        }
        known
    }

    /// The accesses of an instruction, and how they are known.
    fn count(&self, of: &FunctionCode, line: &CodeLine) -> (Option<Numbers>, Option<Precision>) {
        let Some((function, number, _)) = chain(line).into_iter().next() else { return (None, None) };
        let is_on_line = |used: &AccessedMemory| {
            [(used.loads, false), (used.stores, true)].iter().any(|(is_it, is_write)| {
                *is_it && self.lines.contains(&(function.clone(), number, *is_write))
            })
        };
        if !line.memory.iter().any(is_on_line) {
            return (None, None);
        }
        let exact = match &line.memory[..] {
            // What adds a loaded value has the column of the addition: then the line must do.
            [one] if of.version != Version::Recording => {
                let chain = chain(line);
                self.exactly(&chain, one).or_else(|| self.exactly(&without_column(&chain), one))
            }
            _ => None,
        };
        match exact {
            Some(numbers) => (Some(numbers), Some(Precision::Exact)),
            None => (None, Some(Precision::Line)),
        }
    }

    /// The numbers of the one site that an instruction can be, if no other instruction can be that
    /// site.
    fn exactly(&self, chain: &Chain, used: &AccessedMemory) -> Option<Numbers> {
        let one = |kind: SiteKind| {
            let key = (chain.clone(), kind, used.bytes);
            match (self.sites.get(&key).map(Vec::as_slice), self.uses.get(&key)) {
                (Some([site]), Some(1)) => Some(self.counts.numbers.get(site).cloned().unwrap_or_default()),
                _ => None,
            }
        };
        match (used.loads, used.stores) {
            (true, true) => one(SiteKind::Update).or_else(|| {
                let (mut loads, stores) = (one(SiteKind::Load)?, one(SiteKind::Store)?);
                loads.add(&stores);
                Some(loads)
            }),
            (true, false) => one(SiteKind::Load),
            (false, true) => one(SiteKind::Store),
            (false, false) => None,
        }
    }
}

fn chain(line: &CodeLine) -> Chain {
    let one = |frame: &DebugFrame| {
        let (line, column) = frame.position.as_ref().map_or((0, 0), |at| (at.line, at.column));
        (frame.function.clone().unwrap_or_default(), line, column)
    };
    line.frames.iter().map(one).collect()
}

/// A chain without the column of the innermost place; columns count from 1.
fn without_column(chain: &Chain) -> Chain {
    let mut chain = chain.clone();
    if let Some(innermost) = chain.first_mut() {
        innermost.2 = 0;
    }
    chain
}

/// Both, where they differ.
fn with_and_without_column(chain: Chain) -> impl Iterator<Item = Chain> {
    let without = without_column(&chain);
    let differs = without != chain;
    std::iter::once(chain).chain(differs.then_some(without))
}

/// The kinds of sites that a use of memory can be, with its bytes.
fn kinds(used: &AccessedMemory) -> impl Iterator<Item = (SiteKind, u32)> {
    let bytes = used.bytes;
    let kinds = [
        (used.loads, SiteKind::Load),
        (used.stores, SiteKind::Store),
        (used.loads && used.stores, SiteKind::Update),
    ];
    kinds.into_iter().filter(|(is_it, _)| *is_it).map(move |(_, kind)| (kind, bytes))
}
