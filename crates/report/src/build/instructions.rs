//! Instructions beneath the lines of a listing, each with the accesses of its site.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use memlode_attribute::libraries::is_library_path;
use memlode_attribute::place::place;
use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;
use memlode_symbols::CodeSites;
use memlode_symbols::code::{CodeLine, FunctionCode, Version};
use memlode_symbols::debug::DebugFrame;
use memlode_trace::Trace;
use memlode_trace::sites::{Site, SiteId, SiteTable};

use crate::build::listing::WantedLines;
use crate::build::naming::Naming;
use crate::build::rows_by;
use crate::model::{ListedCode, ListedInstruction, Listing, Numbers, Position, Precision};
use crate::names::demangle;

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
        let own = (0..).map(SiteId).zip(self.names.sites());
        let own = own.filter(|(_, site)| names.contains(self.names.string(self.names.symbol(site.function))));
        let known = CodeSites::of(self.names, own.map(|(id, _)| id), code);
        let mut found: Vec<((usize, usize), ListedInstruction)> = Vec::new();
        let mut parts: BTreeMap<usize, BTreeSet<(&str, Version)>> = BTreeMap::new();
        for of in code {
            for line in &of.lines {
                let Some(at) = position(&line.frames).and_then(|own| lines.find(&own)) else { continue };
                let (numbers, counted) = self.count(&known, of.version, line);
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

    /// The accesses of an instruction, and how they are known.
    fn count(
        &self,
        known: &CodeSites,
        version: Version,
        line: &CodeLine,
    ) -> (Option<Numbers>, Option<Precision>) {
        if !known.has_line(line) {
            return (None, None);
        }
        let Some(sites) = known.exactly(version, line) else { return (None, Some(Precision::Line)) };
        let mut numbers = Numbers::default();
        for site in sites {
            self.numbers.get(&site).into_iter().for_each(|more| numbers.add(more));
        }
        (Some(numbers), Some(Precision::Exact))
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
