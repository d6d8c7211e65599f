//! Debug information: the lines, functions and inlined calls of addresses; variables of the stack.
//!
//! [`addr2line`] finds lines and functions. It follows inlined calls by recursion, so information
//! that nests them without end is refused before.

pub(crate) mod index;
mod inside;
mod names;
pub(crate) mod sections;
mod split;
mod stack;
pub(crate) mod types;
pub(crate) mod variables;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{EndianArcSlice, Reader, RunTimeEndian, Section};

use crate::Error;

/// The reader of all debug information: bytes of the file, which it shares.
pub(crate) type Slice = EndianArcSlice<RunTimeEndian>;
pub(crate) type Dwarf = gimli::Dwarf<Slice>;
pub(crate) type Unit = gimli::Unit<Slice>;
pub(crate) type Entry<'abbrev, 'unit> = gimli::DebuggingInformationEntry<'abbrev, 'unit, Slice>;

/// Entries inside each other that are followed: compilers make some tens.
pub(crate) const DEEPEST: isize = 400;

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebugPosition {
    /// Its path, as the compiler wrote it.
    pub file: String,
    /// From 1; 0 for code that belongs to no line.
    pub line: u32,
    /// From 1; 0 if it is not known.
    pub column: u32,
}

impl DebugPosition {
    fn of(location: &addr2line::Location<'_>) -> Option<DebugPosition> {
        let file = location.file?.to_owned();
        Some(DebugPosition { file, line: location.line.unwrap_or(0), column: location.column.unwrap_or(0) })
    }
}

/// A function that code belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DebugFrame {
    /// Its name as linkers know it.
    pub function: Option<String>,
    /// The place of the code in it: of an outer frame, the call that was inlined.
    pub position: Option<DebugPosition>,
}

/// The debug information of a program.
pub struct Debug {
    path: PathBuf,
    dwarf: Arc<Dwarf>,
    context: Context<Slice>,
    too_deep: bool,
    index: OnceCell<index::Index>,
    types: types::KnownTypes,
}

impl Debug {
    /// Reads the sections that `section` finds by name. `None` if there is nothing to read.
    pub(crate) fn load(path: &Path, section: &dyn Fn(&str) -> Option<Slice>) -> Option<Debug> {
        let none = Slice::new(Arc::default(), RunTimeEndian::Little);
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            Ok(section(id.name()).unwrap_or_else(|| none.clone()))
        };
        let mut dwarf = Dwarf::load(load).ok()?;
        if dwarf.debug_info.reader().is_empty() {
            return None;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let dwarf = Arc::new(dwarf);
        let too_deep = is_too_deep(&dwarf);
        let context = Context::from_arc_dwarf(dwarf.clone()).ok()?;
        Some(Debug {
            path: path.to_owned(),
            dwarf,
            context,
            too_deep,
            index: OnceCell::new(),
            types: types::KnownTypes::default(),
        })
    }

    /// The functions that code at an address belongs to, the innermost inlined one first. None if
    /// it has no line.
    ///
    /// # Errors
    /// If the information is damaged, or nests its entries too deeply.
    pub fn frames(&self, address: u64) -> Result<Vec<DebugFrame>, Error> {
        if self.too_deep {
            return Err(self.damaged(format!("its entries are nested more than {DEEPEST} deep")));
        }
        let damaged = |why: gimli::Error| self.damaged(why.to_string());
        let mut found = with_split(self.context.find_frames(address)).map_err(damaged)?;
        let mut frames = Vec::new();
        while let Some(frame) = found.next().map_err(damaged)? {
            let function = frame.function.as_ref().and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let position = frame.location.as_ref().and_then(DebugPosition::of);
            frames.push(DebugFrame { function, position });
        }
        Ok(frames)
    }

    /// The line of code at an address, of the innermost inlined function.
    pub fn position(&self, address: u64) -> Option<DebugPosition> {
        self.context.find_location(address).ok().flatten().as_ref().and_then(DebugPosition::of)
    }

    /// All places that there is code for, by address; several times where it is in several places.
    pub fn positions(&self) -> impl Iterator<Item = DebugPosition> + '_ {
        let ranges = self.context.find_location_range(0, u64::MAX).ok();
        ranges.into_iter().flatten().filter_map(|(_, _, location)| DebugPosition::of(&location))
    }

    /// Directories that the compiler worked in, as it wrote them.
    pub fn directories(&self) -> BTreeSet<PathBuf> {
        if self.too_deep { BTreeSet::new() } else { self.index().directories(&self.dwarf) }
    }

    /// The static variable that begins at an address, or the nearest before it.
    pub(crate) fn global_before(&self, address: u64) -> Option<(u64, &index::Global)> {
        if self.too_deep { None } else { self.index().global_before(&self.dwarf, address) }
    }

    /// The variable of each thread's own that begins at a place of what they all begin with, or the
    /// nearest before it.
    pub(crate) fn thread_local_before(&self, place: u64) -> Option<(u64, &index::Global)> {
        if self.too_deep { None } else { self.index().thread_local_before(&self.dwarf, place) }
    }

    fn index(&self) -> &index::Index {
        self.index.get_or_init(|| index::Index::read(&self.dwarf))
    }

    fn damaged(&self, what: String) -> Error {
        Error::DamagedDebug { path: self.path.clone(), what }
    }
}

/// Ends a look-up, with the files that split debug information is in.
fn with_split<L: LookupContinuation<Buf = Slice>>(mut lookup: LookupResult<L>) -> L::Output {
    loop {
        lookup = match lookup {
            LookupResult::Output(found) => return found,
            LookupResult::Load { load, continuation } => continuation.resume(split::load(&load)),
        };
    }
}

/// Returns whether entries are nested more than `DEEPEST` deep. Damaged information counts up to
/// the damage.
pub(crate) fn is_too_deep(dwarf: &Dwarf) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(abbreviations) = dwarf.abbreviations(&header) else { continue };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { continue };
        while !entries.is_empty() {
            if entries.next_depth() > DEEPEST {
                return true;
            }
            match entries.read_abbreviation() {
                Ok(Some(kind)) if entries.skip_attributes(kind.attributes()).is_ok() => {}
                Ok(None) => {}
                _ => break,
            }
        }
    }
    false
}

/// An entry's name.
pub(crate) fn name(
    dwarf: &Dwarf,
    unit: &Unit,
    entry: &Entry<'_, '_>,
) -> Result<Option<String>, gimli::Error> {
    let Some(value) = entry.attr_value(gimli::DW_AT_name)? else { return Ok(None) };
    Ok(Some(dwarf.attr_string(unit, value)?.to_string_lossy()?.into_owned()))
}

#[cfg(test)]
mod tests;
