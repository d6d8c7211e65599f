//! From a place in a file to a source line and function, by debug information.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use memlode_sample::Skid;
use memlode_symbols::ProgramFile;
use memlode_symbols::debug::DebugPosition;

use super::SourceLine;
use crate::Error;

/// The place of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The line, of the innermost inlined function.
    pub line: SourceLine,
    /// The function's linkage name; empty if it has no name.
    pub function: String,
}

/// Files that samples lie in, each read once.
#[derive(Default)]
pub struct Images {
    /// `None` for a file that cannot be read or understood.
    by_path: BTreeMap<OsString, Option<Image>>,
}

struct Image {
    program: ProgramFile,
    places: BTreeMap<u64, Option<Place>>,
}

impl Images {
    /// The place of the instruction that waited while a sample named the one at `offset` of a file.
    ///
    /// # Errors
    /// If debug information is damaged.
    pub fn place(&mut self, path: &OsStr, offset: u64, skid: Skid) -> Result<Option<Place>, Error> {
        if !self.by_path.contains_key(path) {
            self.by_path.insert(path.to_owned(), Image::open(path));
        }
        let Some(Some(image)) = self.by_path.get_mut(path) else { return Ok(None) };
        image.place(skid.correct(offset))
    }

    /// All lines that the files have code for.
    pub fn lines(&self) -> BTreeSet<SourceLine> {
        let mut lines = BTreeSet::new();
        for image in self.by_path.values().flatten() {
            let positions = image.program.debug().into_iter().flat_map(|debug| debug.positions());
            lines.extend(positions.filter_map(line));
        }
        lines
    }
}

impl Image {
    fn open(path: &OsStr) -> Option<Image> {
        let program = ProgramFile::read(Path::new(path)).ok()?;
        Some(Image { program, places: BTreeMap::new() })
    }

    fn place(&mut self, offset: u64) -> Result<Option<Place>, Error> {
        if let Some(place) = self.places.get(&offset) {
            return Ok(place.clone());
        }
        let place = match self.program.address_of(offset) {
            None => None,
            Some(address) => self.find(address)?,
        };
        self.places.insert(offset, place.clone());
        Ok(place)
    }

    fn find(&self, address: u64) -> Result<Option<Place>, Error> {
        let Some(debug) = self.program.debug() else { return Ok(None) };
        let Some(frame) = debug.frames(address)?.into_iter().next() else { return Ok(None) };
        let line = frame.position.and_then(line);
        Ok(line.map(|line| Place { line, function: frame.function.unwrap_or_default() }))
    }
}

/// Line 0 is code that belongs to no line.
fn line(position: DebugPosition) -> Option<SourceLine> {
    let DebugPosition { file, line, .. } = position;
    (line > 0).then_some(SourceLine { file, line })
}
